# SPDX-License-Identifier: Apache-2.0
"""Units: everything is stored in seconds, bytes, per second or a plain share; a reader's unit is
chosen when shown.

Latency is kept in seconds, sizes in bytes, rates in 1/s or B/s, shares as a fraction of one. The
original unit of a number is stored in the observation, so that `µs` never becomes `ns`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from .errors import UsageError


@dataclass(frozen=True)
class Unit:
    """A unit of a dimension: `symbol` times `scale` is the dimension's base unit."""

    symbol: str
    dimension: str
    scale: float


BASE = {"time": "s", "size": "B", "rate": "1/s", "bandwidth": "B/s", "share": "1", "count": ""}
"""Dimension to the symbol of the unit in which it is stored."""

_BINARY = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_DECIMAL = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_TIMES = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}


def _all_units() -> dict[str, Unit]:
    units = [Unit(symbol, "time", scale) for symbol, scale in _TIMES.items()]
    for prefix, scale in (_BINARY | _DECIMAL).items():
        units.append(Unit(f"{prefix}B", "size", scale))
        units.append(Unit(f"{prefix}B/s", "bandwidth", scale))
    units += [
        Unit(f"{prefix}{name}", "bandwidth", scale / 8)
        for prefix, scale in _DECIMAL.items()
        for name in ("bit/s", "bps")
    ]
    units += [Unit(symbol, "rate", 1.0) for symbol in ("1/s", "/s", "IOPS")]
    units += [Unit(f"{prefix}/s", "rate", scale) for prefix, scale in _DECIMAL.items()]
    units += [
        Unit("%", "share", 0.01),
        Unit("1", "share", 1.0),
        Unit("", "count", 1.0),
        Unit("count", "count", 1.0),
    ]
    return {unit.symbol: unit for unit in units}


UNITS = _all_units()
"""Every unit that a table, a study or the command line may use, by symbol."""


def unit(symbol: str) -> Unit:
    """The unit of that symbol; raises UsageError naming the allowed ones."""
    known_unit = UNITS.get(symbol.strip())
    if known_unit is None:
        allowed = ", ".join(sorted(name for name in UNITS if name))
        raise UsageError(f"unknown unit '{symbol}'", hint=f"known units: {allowed}")
    return known_unit


def to_base(value: float, symbol: str) -> tuple[float, str]:
    """A value in any unit as (value, symbol) of its dimension's base unit."""
    source_unit = unit(symbol)
    return value * source_unit.scale, BASE[source_unit.dimension]


_QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\s\d]*)\s*")


def parse_quantity(text: str, dimension: str) -> float:
    """`10 GbE`-like words of users as a number in the base unit of `dimension`: `45us`, `1192
    MiB/s`, `60` (base unit).

    Raises UsageError when the text is no quantity or of another dimension.
    """
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise UsageError(
            f"'{text}' is not a quantity",
            hint=f"write a number and a unit of {dimension}, such as '{_EXAMPLE[dimension]}'",
        )
    number, symbol = float(match[1]), match[2]
    if not symbol:
        return number
    parsed_unit = unit(symbol)
    if parsed_unit.dimension != dimension:
        raise UsageError(
            f"'{text}' is a {parsed_unit.dimension}, not a {dimension}",
            hint=f"such as '{_EXAMPLE[dimension]}'",
        )
    return number * parsed_unit.scale


_EXAMPLE = {
    "time": "45us",
    "size": "8KiB",
    "rate": "1000/s",
    "bandwidth": "1192MiB/s",
    "share": "50%",
    "count": "8",
}

_FIO_SIZE = re.compile(r"\s*(\d+)\s*(b|(?:([kmgtp])(i?b?)))?\s*", re.IGNORECASE)
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]*)\s*", re.IGNORECASE)
_DURATION_SCALE = {
    name: scale
    for names, scale in (
        ("d day days", 86400.0),
        ("h hr hour hours", 3600.0),
        ("m min mins minute minutes", 60.0),
        ("s sec secs second seconds", 1.0),
        ("ms msec", 1e-3),
        ("us usec µs", 1e-6),
        ("ns nsec", 1e-9),
    )
    for name in names.split()
} | {"": 1.0}
_COMPOUND = re.compile(r"(?:\s*\d+(?:\.\d+)?\s*[a-zµ]+){2,}\s*", re.IGNORECASE)


def parse_fio_size(text: str | int, *, kb_base: int = 1024) -> int:
    """A size as fio reads it, in bytes: `8k`, `8ki`, `8KB` and `8192` are all 8192 unless `kb_base`
    is 1000 (fio(1), kb_base)."""
    match = _FIO_SIZE.fullmatch(str(text))
    if not match:
        raise UsageError(f"'{text}' is not a size", hint="write it as fio does: 8k, 128k, 64M, 1g")
    if not match[3]:
        return int(match[1])
    base = 1024 if kb_base == 1024 or match[4].lower().startswith("i") else 1000
    return int(match[1]) * int(base ** ("kmgtp".index(match[3].lower()) + 1))


def split_duration(text: str) -> list[str]:
    """The parts of a compound duration: `1h30m` is `1h` and `30m`; any other text is its only part."""
    return (
        re.findall(r"[\d.]+\s*[a-zµ]+", text, re.IGNORECASE)
        if _COMPOUND.fullmatch(text)
        else [text]
    )


def parse_fio_time(text: str | float) -> float:
    """A duration in seconds, as fio reads it and as people write it: `60`, `60s`, `1m`, `500ms`;
    `1min`, `1h30m`, `2 hours`."""
    seconds = 0.0
    last = math.inf
    for part in split_duration(str(text)):
        match = _DURATION.fullmatch(part)
        scale = _DURATION_SCALE.get(match[2].lower()) if match else None
        # the units of a compound come down: 30m1h is a typing error
        if match is None or scale is None or scale >= last:
            raise UsageError(
                f"'{text}' is not a duration",
                hint="write seconds or a unit: 60, 90s, 2m, 1h30m, 500ms",
            )
        last = scale
        seconds += float(match[1]) * scale
    return seconds


_LADDERS: dict[str, list[tuple[str, float]]] = {
    "s": [("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)],
    "B": [(f"{prefix}B", scale) for prefix, scale in _BINARY.items()],
    "B/s": [(f"{prefix}B/s", scale) for prefix, scale in _BINARY.items()],
    "1/s": [("1/s", 1.0), ("k/s", 1e3), ("M/s", 1e6)],
    "1": [("%", 0.01)],
}


def readable_unit(values: Iterable[float], base: str) -> tuple[str, float]:
    """(symbol, scale) for a table or axis: the largest unit in which the median magnitude is at
    least one.

    One unit for a whole table keeps its numbers comparable. Rates stay in 1/s below 100 000 so that
    IOPS read as IOPS.
    """
    ladder = _LADDERS.get(base)
    if ladder is None:
        return base, 1.0
    sizes = sorted(abs(value) for value in values if value and math.isfinite(value))
    if not sizes:
        return {"1": ("%", 0.01)}.get(base, (base, 1.0))
    middle = sizes[len(sizes) // 2]
    if base == "1/s" and middle < 1e5:
        return "1/s", 1.0
    readable = ladder[0]
    for symbol, scale in ladder:
        if middle >= scale:
            readable = (symbol, scale)
    return readable


def format_number(value: float, digits: int = 4) -> str:
    """A number with `digits` significant digits and no exponent where a reader would not expect
    one; nan is an em dash."""
    if not math.isfinite(value):
        return "—" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    if places <= 0:
        return f"{value:,.0f}".replace(",", " ") if abs(value) >= 10_000 else f"{value:.0f}"
    return f"{value:.{min(places, 12)}f}"


def format_quantity(value: float, base: str, digits: int = 4) -> str:
    """A single value in its own readable unit: 0.000045 s is `45.00 µs`."""
    symbol, scale = readable_unit([value], base)
    return f"{format_number(value / scale, digits)} {symbol}".rstrip()
