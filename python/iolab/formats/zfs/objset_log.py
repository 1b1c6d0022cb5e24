# SPDX-License-Identifier: Apache-2.0
"""iolab's log of data sets' counters, `# iolab objset 1`: the data set's name, a tab, and a line of
its kstat; `end` after each reading."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..core.tables import Floats, HostTable
from ..host.counter_set import HostLog
from ..host.counters_log import read_log
from ..host.host_columns import Column, host_table, rate
from .kstat_log import named_counter

_RATES = {
    "read.calls": ("reads", "1/s"),
    "read.bw": ("nread", "B/s"),
    "write.calls": ("writes", "1/s"),
    "write.bw": ("nwritten", "B/s"),
    "unlinks": ("nunlinks", "1/s"),
    "zil.commits": ("zil_commit_count", "1/s"),
}


class ObjsetLog(HostLog):
    """Calls and bytes per second of each data set, `objset.write.bw[tank/home]`, and of all,
    `objset.write.bw`.

    A data set that came or went is nan in the intervals where it is missing at an end, and not in
    the sum there.
    """

    name = "objset"

    def read(self, data: bytes, where: str) -> HostTable:
        """One value per interval between two readings; FormatError as `counters_log.read_log`
        says."""
        readings, damaged = read_log(
            self.name, data, where, _parse, "a data set's counter", end="end"
        )
        names = dict.fromkeys(
            name.partition("\t")[0] for reading in readings for name in reading.counters
        )
        columns = []
        for column, (field, unit) in _RATES.items():
            rates = {
                name: values
                for name in names
                if (values := rate(readings, f"{name}\t{field}")) is not None
            }
            columns += _all(column, rates.values(), unit, field) if rates else []
            columns += [
                Column(f"objset.{column}[{name}]", values, unit, f"{field} of {name}")
                for name, values in rates.items()
            ]
        return host_table(self.name, readings, columns, damaged)


def _all(column: str, each: Iterable[Floats], unit: str, field: str) -> list[Column]:
    rows = np.array(list(each), dtype=np.float64)
    summed = np.where(np.isnan(rows).all(axis=0), np.nan, np.nansum(rows, axis=0))
    return [Column(f"objset.{column}", summed, unit, f"{field} of all data sets")]


def _parse(line: str) -> tuple[str, list[int]] | None:
    owner, tab, rest = line.partition("\t")
    counter = named_counter(rest) if tab and owner else None
    return None if counter is None else (f"{owner}\t{counter[0]}", counter[1])
