# SPDX-License-Identifier: Apache-2.0
"""Readings of a host's counters put together as a `HostTable`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.tables import Floats, HostTable
from .counters_log import Damage, Reading, numbers_of, times_of

_LONGEST = 20
"""Digits of the largest 64-bit counter."""


@dataclass(frozen=True)
class Column:
    """One quantity of a host: its name, values per interval, base unit, and the kernel's words and
    unit for it."""

    name: str
    values: Floats | None
    unit: str
    source: str
    source_unit: str = ""


def host_table(
    kind: str, readings: Sequence[Reading], columns: Sequence[Column], damaged: Damage
) -> HostTable:
    """The table of those columns that the kernel had (`values` not None)."""
    steps, times = times_of(readings)
    known_columns = [column for column in columns if column.values is not None]
    return HostTable(
        kind=kind,
        interval=float(np.median(steps)) if len(steps) else 1.0,
        time_ns=times,
        columns={
            column.name: column.values for column in known_columns if column.values is not None
        },
        units={column.name: column.unit for column in known_columns},
        source_fields={
            column.name: (column.source, column.source_unit) for column in known_columns
        },
        damaged=tuple(damaged),
    )


def gauge(readings: Sequence[Reading], name: str, scale: float = 1.0) -> Floats | None:
    """A level as it stood at the end of each interval; None where no reading has it."""
    if not any(name in reading.counters for reading in readings):
        return None
    return numbers_of(name, readings, 1)[1:, 0] * scale


def rate(readings: Sequence[Reading], *names: str, scale: float = 1.0) -> Floats | None:
    """What counters of these names grew by per second, summed; nan where one went back; None where
    no reading has any."""
    present_names = [
        name for name in names if any(name in reading.counters for reading in readings)
    ]
    if not present_names:
        return None
    change = np.diff(np.hstack([numbers_of(name, readings, 1) for name in present_names]), axis=0)
    change[change < 0] = np.nan
    summed: Floats = change.sum(axis=1) * scale / times_of(readings)[0]
    return summed


def whole_numbers(fields: Sequence[str]) -> list[int] | None:
    """The fields as counters of 64 bits; None where one is none, or there is none at all."""
    if not fields or not all(
        field.isascii() and field.isdecimal() and len(field) <= _LONGEST for field in fields
    ):
        return None
    numbers = [int(field) for field in fields]
    return numbers if max(numbers) < 1 << 64 else None
