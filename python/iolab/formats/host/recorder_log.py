# SPDX-License-Identifier: Apache-2.0
"""iolab's own logs of what its recorder took in, `# iolab block 1`, `syscall`, `nfs` and `counters`:
events, losses and readings, as rates.

The events themselves are in the recording; these logs show that somebody watched, second by second,
and lost how many.
"""

from __future__ import annotations

from ..core.tables import HostTable
from .counter_set import HostLog
from .counters_log import read_log
from .host_columns import Column, host_table, rate, whole_numbers


class RecorderLog(HostLog):
    """Events recorded and events lost, per second."""

    def read(self, data: bytes, where: str) -> HostTable:
        """One value per interval between two readings; FormatError as `counters_log.read_log` says."""
        readings, damaged = read_log(self.name, data, where, _parse, "a count of events")
        columns = [
            Column(f"{self.name}.events", rate(readings, "events"), "1/s", "events", ""),
            Column(f"{self.name}.lost", rate(readings, "lost"), "1/s", "lost", ""),
        ]
        return host_table(self.name, readings, columns, damaged)


class BlockLog(RecorderLog):
    """Requests to block devices, recorded and lost."""

    name = "block"


class SyscallLog(RecorderLog):
    """Calls that move data of files, recorded and lost."""

    name = "syscall"


class NfsLog(RecorderLog):
    """Operations of the NFS server, recorded and lost."""

    name = "nfs"


class CountersLog(HostLog):
    """Readings of counters that were recorded."""

    name = "counters"

    def read(self, data: bytes, where: str) -> HostTable:
        """One value per interval between two readings; FormatError as `counters_log.read_log` says."""
        readings, damaged = read_log(self.name, data, where, _parse, "a count of readings")
        return host_table(
            self.name,
            readings,
            [Column("counters.samples", rate(readings, "samples"), "1/s", "samples", "")],
            damaged,
        )


def _parse(line: str) -> tuple[str, list[int]] | None:
    fields = line.split()
    numbers = whole_numbers(fields[1:])
    return (
        None
        if numbers is None or len(numbers) != 1 or fields[0] not in ("events", "lost", "samples")
        else (fields[0], numbers)
    )
