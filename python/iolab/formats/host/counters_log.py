# SPDX-License-Identifier: Apache-2.0
"""iolab's own logs of counters: `# iolab <kind> 1`, then readings of a stamp and the kernel's
lines, again and again.

A stamp is `@ <realtime ns> <monotonic ns>`. What a line means is the kind's own affair; what the
end of the file cuts off (kill -9) is detected in the same way for all kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iolab.base.errors import FormatError

from ..core.tables import Floats
from ..core.text import decode

_FAMILY = "# iolab "
_VERSION = " 1"

Parse = Callable[[str], tuple[str, list[int]] | None]
"""A line of a reading to its name and its numbers, None for a line that is none of the kind's."""

Damage = list[tuple[int, str]]
"""Line numbers with what is wrong there."""


@dataclass
class Reading:
    """One reading: the line of its stamp, its times, and the numbers of each name."""

    line: int
    realtime_ns: int
    monotonic_ns: int
    counters: dict[str, list[int]] = field(default_factory=dict)


def header(kind: str) -> str:
    """The first line of a log."""
    return f"{_FAMILY}{kind}{_VERSION}"


def detect_log(kind: str, head: bytes) -> bool | None:
    """Yes at the first line; None while that is not whole."""
    mark = f"{_FAMILY}{kind} ".encode()
    if head.startswith(mark):
        return True
    return None if mark.startswith(head) else False


def read_log(
    kind: str, data: bytes, where: str, parse: Parse, what: str, end: str | None = None
) -> tuple[list[Reading], Damage]:
    """The whole readings of a log in order of time, and its damaged lines.

    Args:
        what: what the kind's lines are, for messages: "a device's counters".
        end: the line that every reading ends with, where names come and go; None where a reading is
        whole that has all names.

    Raises FormatError: nothing in the file, another format or a newer one, no whole reading.
    """
    text = decode(data, where, when_empty="the recorder was ended before its first reading")
    first = text[: text.find("\n")] if "\n" in text else text
    if first.rstrip() != header(kind):
        newer = first.startswith(f"{_FAMILY}{kind} ")
        raise FormatError(
            f"'{first[:60]}' is not a header of this log"
            if not newer
            else f"log of a newer kind: '{first[:60]}'",
            where=f"{where}:1",
            hint="a newer iolab reads it" if newer else f"it begins with '{header(kind)}'",
        )
    readings, damaged = _readings(text, parse, what, end)
    if not readings:
        raise FormatError("no whole reading in the log", where=where)
    return readings, damaged


def _readings(text: str, parse: Parse, what: str, end: str | None) -> tuple[list[Reading], Damage]:
    lines = text.split("\n")
    readings: list[Reading] = []
    damaged: Damage = []
    ended = 0
    if lines[-1]:
        damaged.append((len(lines), "cut off: no line end"))
    for number, line in enumerate(lines[1:-1], 2):
        if line.startswith("@"):
            fields = line.split()
            stamp = [int(value) for value in fields[1:] if value.isdecimal() and len(value) <= 19]
            if len(stamp) == 2 == len(fields) - 1 and max(stamp) < 2**63:
                readings.append(Reading(number, stamp[0], stamp[1]))
                continue
        elif readings and line == end:
            ended = len(readings)
            continue
        elif readings and (counter := parse(line)) is not None:
            readings[-1].counters[counter[0]] = counter[1]
            continue
        if line.strip():
            damaged.append((number, f"neither a reading's time nor {what}"))
    complete_readings = (
        _without_torn_end(readings, damaged)
        if end is None
        else _without_unended(readings, ended, damaged)
    )
    return _in_order(complete_readings, damaged), damaged


def _without_torn_end(readings: list[Reading], damaged: Damage) -> list[Reading]:
    """The readings without a last reading that lacks names of the previous reading."""
    if not readings:
        return readings
    last = readings[-1]
    before = readings[-2].counters.keys() if len(readings) > 1 else set()
    if last.counters and before <= last.counters.keys():
        return readings
    damaged.append((last.line, "the last reading is cut off and left out"))
    return readings[:-1]


def _without_unended(readings: list[Reading], ended: int, damaged: Damage) -> list[Reading]:
    """The readings without a last reading that has no end."""
    if ended < len(readings):
        damaged.append((readings[-1].line, "the last reading is cut off and left out"))
        return readings[:-1]
    return readings


def _in_order(readings: list[Reading], damaged: Damage) -> list[Reading]:
    kept: list[Reading] = []
    for reading in readings:
        if kept and reading.monotonic_ns <= kept[-1].monotonic_ns:
            damaged.append(
                (reading.line, "the reading's time is not after the one before it: left out")
            )
        else:
            kept.append(reading)
    return kept


def times_of(readings: Sequence[Reading]) -> tuple[Floats, NDArray[np.int64]]:
    """Seconds between readings, and realtime at the end of each interval; shape (readings - 1,)
    both."""
    steps = (
        np.diff(np.array([reading.monotonic_ns for reading in readings], dtype=np.float64)) / 1e9
    )
    return steps, np.array([reading.realtime_ns for reading in readings[1:]], dtype=np.int64)


def numbers_of(name: str, readings: Sequence[Reading], width: int) -> Floats:
    """The numbers of a name, shape (readings, width); nan where a reading lacks the name or has
    fewer numbers."""
    rows = [reading.counters.get(name, ()) for reading in readings]
    return np.array(
        [[*row[:width], *[np.nan] * (width - len(row))] for row in rows], dtype=np.float64
    ).reshape(len(readings), width)
