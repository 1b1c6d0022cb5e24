# SPDX-License-Identifier: Apache-2.0
"""Times and sizes in names of statistics: whole nanoseconds and bytes, read and printed without
rounding."""

from __future__ import annotations

import re
from fractions import Fraction

from ...errors import UsageError
from .fields import Kind

_UNITS: dict[Kind, dict[str, int]] = {
    "time": {
        "s": 10**9,
        "ms": 10**6,
        "us": 1000,
        "ns": 1,
        "µs": 1000,
        "min": 60 * 10**9,
        "h": 3600 * 10**9,
    },
    "size": {
        "TiB": 2**40,
        "GiB": 2**30,
        "MiB": 2**20,
        "KiB": 2**10,
        "B": 1,
        "kB": 10**3,
        "MB": 10**6,
        "GB": 10**9,
        "TB": 10**12,
    },
    "number": {"": 1},
}
_PRINTED: dict[Kind, tuple[str, ...]] = {
    "time": ("s", "ms", "us", "ns"),
    "size": ("TiB", "GiB", "MiB", "KiB", "B"),
    "number": ("",),
}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([^\s0-9.]*)")
_MOST = 2**64 - 1


def parse_whole(text: str, kind: Kind) -> int:
    """`1.5ms` as 1500000, `8KiB` as 8192. A time above zero needs a unit: `10` could be ns, us or
    ms.

    UsageError for what is no quantity of that kind, is no whole number of ns or bytes, or is beyond
    64 bits.
    """
    match = _QUANTITY.fullmatch(text.strip())
    example = {"time": "10ms", "size": "8KiB", "number": "1234"}[kind]
    if not match:
        raise UsageError(f"'{text.strip()}' is not a {kind}", hint=f"write it like {example}")
    number, unit = Fraction(match[1]), match[2]
    units = _UNITS[kind]
    if not unit and kind == "time" and number:
        raise UsageError(
            f"'{text.strip()}' has no unit", hint=f"write {match[1]}us, {match[1]}ms or {match[1]}s"
        )
    if unit and unit not in units:
        raise UsageError(
            f"'{unit}' is not a unit of {kind}",
            hint=f"there are {', '.join(units)}" if kind != "number" else "leave it out",
        )
    value = number * units.get(unit, 1)
    if value.denominator != 1 or value > _MOST:
        smallest = {"time": "nanoseconds", "size": "bytes", "number": "units"}[kind]
        raise UsageError(
            f"'{text.strip()}' is not a whole number of {smallest} within 64 bits",
            hint=f"write it like {example}",
        )
    return int(value)


def print_whole(value: int, kind: Kind) -> str:
    """The same number in the largest unit that needs no decimals: 1500000 ns is `1500us`, 8192
    bytes are `8KiB`."""
    if not value:
        return "0"
    unit = next(unit for unit in _PRINTED[kind] if value % _UNITS[kind][unit] == 0)
    return f"{value // _UNITS[kind][unit]}{unit}"
