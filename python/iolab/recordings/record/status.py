# SPDX-License-Identifier: Apache-2.0
"""What a recording says of itself while it grows: counts so far, what they cost, and `status.json`
for whoever looks on."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from iolab.base.files import write_atomically

FILE = "status.json"
SCHEMA = 1


@dataclass
class Status:
    """A recording so far.

    Attributes:
        state: `recording`, `waiting` (for a probe to come back), `ended`.
        seconds: since its start. from_ns: realtime at its start; until_ns: everything up to here
        was taken in. events, lost: by source, since the start. samples: readings of counters.
        suspended: sources that are, with the reason. bytes: of the recording on disk.
        probe_cpu_ns, recorder_cpu_ns: CPU time spent so far. probe_rss_bytes: memory of the probe.
        deaths: how often a probe died. troubles: what befell it, in words, in order.
        archive: empty without one. archive, rows, bytes: its URL, and what it lacks. behind_s: age
        of the first row that it lacks. pushed_ns, error: time of the last push, and why it failed.
    """

    state: str = "recording"
    pid: int = field(default_factory=os.getpid)
    seconds: float = 0.0
    from_ns: int = 0
    until_ns: int = 0
    events: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    samples: int = 0
    suspended: dict[str, str] = field(default_factory=dict)
    bytes: int = 0
    probe_cpu_ns: int = 0
    recorder_cpu_ns: int = 0
    probe_rss_bytes: int = 0
    deaths: int = 0
    troubles: list[str] = field(default_factory=list)
    archive: dict[str, Any] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """Plain data for `status.json` and the word `status`."""
        return {
            "schema": SCHEMA,
            "kind": "recording-status",
            **asdict(self),
            "troubles": self.troubles[-20:],
        }


def write_status(directory: Path, status: Status, now_ns: int) -> None:
    """Replace `status.json`; not made durable, for it says nothing that the recording doesn't hold.
    A full disk is no harm."""
    with contextlib.suppress(OSError):
        write_atomically(
            directory / FILE,
            json.dumps({**status.as_data(), "written_ns": now_ns}) + "\n",
            durable=False,
        )
