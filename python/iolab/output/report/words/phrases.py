# SPDX-License-Identifier: Apache-2.0
"""Changes, counts and places as sentences and tables of the report write them, in step with
`compare.render.words`."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.base.units import format_number, readable_unit
from iolab.studies.compare.axes import level_text
from iolab.studies.compare.model import Change, Comparison, Key
from iolab.studies.compare.render.words import change_number, change_unit, factors_text, short

MINUS = "−"
SPACE = "\N{NO-BREAK SPACE}"
"""Between a number and its unit, a factor and its level: what belongs together stays on one line.
"""


def signed_text(number: float) -> str:
    """A number that bears its sign: one place after the point, none from a thousand on. What rounds
    to zero bears none."""
    text = (
        f"{abs(number):.{1 if abs(number) < 1000 else 0}f}"
        if abs(number) < 10_000
        else format_number(abs(number))
    )
    return text if not text.strip("0.") else f"{'+' if number > 0 else MINUS}{text}"


def brief(number: float) -> str:
    """A number without a sign for a crowded place: one digit after the point below 10, else none.

    From 10,000 on it is grouped.
    """
    size = abs(number)
    if size >= 9_999.5:
        return format_number(size)
    return f"{size:.1f}" if size < 9.95 else f"{size:.0f}"


def brief_signed(number: float) -> str:
    """`+62`, `−8.4`, `0.0`: a change in a cell of a matrix. What rounds to zero has no sign.

    A fall of nearly everything keeps a digit: `−99.6`, for -100 % is impossible for a ratio.
    """
    text = f"{min(-number, 99.9):.1f}" if -100 < number <= -99.5 else brief(number)
    return text if not text.strip("0.") else f"{'+' if number > 0 else MINUS}{text}"


def change_text(value: float, comparison: Comparison) -> str:
    """`+62.3 %`, `−3.1 points`."""
    return (
        f"{signed_text(change_number(value, comparison))}{SPACE}{change_unit(comparison)}".rstrip()
    )


def change_interval_text(change: Change, comparison: Comparison) -> str:
    """`[+58.0, +66.2]`, `[x 0.011, x 250]` for what reaches beyond tenfold, empty where there is no
    interval."""
    if change.low is None or change.high is None:
        return ""
    if factors := factors_text(change, comparison):
        return factors
    return f"[{signed_text(change_number(change.low, comparison))}, {signed_text(change_number(change.high, comparison))}]"


def change_with_interval(change: Change, comparison: Comparison) -> str:
    """`+62.3 % [+58.0, +66.2]`; without an interval only the estimate."""
    return f"{change_text(change.value, comparison)} {change_interval_text(change, comparison)}".rstrip()


def probability_text(value: float | None) -> str:
    """`= 0.012`, `< 0.001`."""
    if value is None:
        return "—"
    return (
        "< 0.001"
        if value < 0.001
        else f"= {value:.2g}"
        if value < 0.01
        else f"= {value:.3f}".rstrip("0").rstrip(".")
    )


def value_interval_text(low: float | None, high: float | None, scale: float) -> str:
    """`[58.0, 66.2]`, empty where there is no interval; as many digits as it takes to tell the ends
    apart, up to five."""
    if low is None or high is None:
        return ""
    for digits in (3, 4, 5):
        ends = [format_number(end / scale, digits) for end in (low, high)]
        if ends[0] != ends[1]:
            break
    return f"[{ends[0]}, {ends[1]}]"


def place_text(factors: Sequence[str], key: Key) -> str:
    """`disks 8, media hdd`; empty without factors."""
    return ", ".join(
        f"{name}{SPACE}{level_text(level)}" for name, level in zip(factors, key, strict=True)
    )


def key_text(key: Key) -> str:
    """`8, hdd`: levels of factors that are named elsewhere."""
    return ", ".join(level_text(level) for level in key)


def size_text(number: float) -> str:
    """`128 KiB`, `1.25 MiB`: three digits at most, no zeros at the end."""
    symbol, scale = readable_unit([number], "B")
    return f"{short(number / scale)} {symbol}"


def count_text(number: int, one: str, many: str | None = None) -> str:
    """`1 run`, `3 runs`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def list_text(items: Sequence[str], most: int = 4) -> str:
    """`a, b and c`; beyond `most` the rest is counted."""
    if len(items) > most:
        return f"{', '.join(items[:most])} and {len(items) - most} more"
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"
