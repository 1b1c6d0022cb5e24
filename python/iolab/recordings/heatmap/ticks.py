# SPDX-License-Identifier: Apache-2.0
"""Marks on an axis of nanoseconds or bytes, and single values in readable units.

The page draws its own axes while it is zoomed, so the same rules are in
`web/src/canvas/ticks.ts`; both are held to `tests/vectors/heatmap.json`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_LADDERS: dict[str, list[tuple[str, float]]] = {
    "ns": [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)],
    "B": [
        ("B", 1.0),
        ("KiB", 2.0**10),
        ("MiB", 2.0**20),
        ("GiB", 2.0**30),
        ("TiB", 2.0**40),
        ("PiB", 2.0**50),
    ],
    "": [("", 1.0)],
}
_LONG = [("min", 60e9), ("h", 3600e9), ("d", 86400e9)]
_LONG_STEPS = [60e9 * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)]
_SECOND_STEPS = [1e9 * seconds for seconds in (1, 2, 5, 10, 15, 30)]


@dataclass(frozen=True)
class Tick:
    """A mark: its position on the axis, and its words."""

    value: float
    label: str


def quantity(value: float, unit: str, digits: int = 4) -> str:
    """A value of nanoseconds ("ns"), bytes ("B") or a bare count ("") in its readable unit: 45300
    ns is `45.3 µs`."""
    ladder = _LADDERS[unit]
    symbol, scale = next(
        ((symbol, scale) for symbol, scale in reversed(ladder) if abs(value) >= scale), ladder[0]
    )
    return f"{_digits(value / scale, digits)} {symbol}".rstrip()


def linear_ticks(low: float, high: float, most: int, unit: str) -> list[Tick]:
    """At most `most` marks at round multiples, all in one unit."""
    if not high > low:
        return []
    step = next(
        step
        for step in _steps(unit, (high - low) / max(1, most))
        if math.floor(high / step) - math.ceil(low / step) < most
    )
    symbol, scale = _unit_of(step, max(abs(low), abs(high)), unit)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [
        Tick(number * step, f"{_digits(number * step / scale, 9)} {symbol}".rstrip())
        for number in range(first, last + 1)
    ]


def log_ticks(low: float, high: float, most: int, unit: str, at: float = 1) -> list[Tick]:
    """At most `most` marks at powers of ten (of two for bytes), finer ones between where there is
    room; each in its own unit.

    Where not every power has room, that below `at` has. A span of less than two such marks is as
    good as linear and gets linear marks.
    """
    if not high > low:
        return []
    low = max(low, 0.5)
    base = 2.0 if unit == "B" else 10.0
    first, last = math.ceil(_log(low, base) - 1e-9), math.floor(_log(high, base) + 1e-9)
    if unit == "B":
        first = max(
            0, first
        )  # an axis that has sizes of 0 begins below a byte, and nothing is of half a byte
    powers = [base**power for power in range(first, last + 1)]
    if base == 10:
        fine = [
            factor * base**power
            for power in range(first - 1, last + 1)
            for factor in (1, 2, 5)
            if low <= factor * base**power <= high
        ]
        if len(fine) <= most:
            powers = fine
    stride, anchor = 1, math.floor(_log(at, base) + 1e-9)
    while len([0 for power in range(first, last + 1) if (power - anchor) % stride == 0]) > most:
        stride += 1
    if stride > 1:
        powers = [base**power for power in range(first, last + 1) if (power - anchor) % stride == 0]
    if len(powers) < 2:
        return linear_ticks(low, high, most, unit)
    return [Tick(value, quantity(value, unit)) for value in powers]


def _log(value: float, base: float) -> float:
    return math.log2(value) if base == 2 else math.log10(value)


def _steps(unit: str, least: float) -> list[float]:
    """Steps of the unit's ladder from `least` on, ascending: enough of them for any axis that fits
    `most` marks."""
    if unit == "B":
        power = math.floor(math.log2(max(least, 1)))
        return [2.0**exponent for exponent in range(max(0, power), power + 4)]
    steps = [factor * 10.0**power for power in range(0, 9) for factor in (1, 2, 5)]
    if unit == "":
        steps += [factor * 10.0**power for power in range(9, 19) for factor in (1, 2, 5)]
    else:
        steps += [
            *_SECOND_STEPS,
            *_LONG_STEPS,
            *(86400e9 * factor * 10.0**power for power in range(0, 5) for factor in (1, 2, 5)),
        ]
    return [step for step in steps if step >= least * 0.999]


def _unit_of(step: float, high: float, unit: str) -> tuple[str, float]:
    """The unit for all marks: the largest not above the axis' end in which the step is short to
    write."""
    ladder = _LADDERS[unit]
    short = {"ns": 100.0, "B": 4.0, "": 1.0}[unit]
    chosen_unit = ladder[0]
    for symbol, scale in ladder:
        if scale <= high and (step * short) % scale == 0:
            chosen_unit = (symbol, scale)
    if unit == "ns":
        for symbol, scale in _LONG:
            if scale <= high and step % scale == 0:
                chosen_unit = (symbol, scale)
    return chosen_unit


def _digits(value: float, digits: int) -> str:
    """Significant digits without trailing zeros; never an exponent."""
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
