# SPDX-License-Identifier: Apache-2.0
"""Colours of names over time, such as devices and operations.

They are equal to those of the worksheet and of the report's page (`web/src/canvas/hues.ts`;
`tests/vectors/hues.json` tests both).

Variants of a study have the palette of `theme` instead: they are no names of a recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

HUES = (
    "#2896f5",
    "#e6ac3d",
    "#946db1",
    "#385805",
    "#e57766",
    "#9cb4fe",
    "#8d1e72",
    "#455ee1",
    "#7e6f08",
    "#4ec5b1",
    "#c24173",
    "#6928b0",
)
REST = "#8a929c"
"""What has no colour of its own."""

_USUAL: Mapping[str, Mapping[str, int]] = {
    "op": {"read": 0, "write": 1, "flush": 10, "sync": 2, "trim": 9, "other": 8},
    "direction": {"in": 0, "out": 1},
    "percentiles": {"mean": 1, "p50": 0, "p90": 7, "p99": 11, "p99.9": 6, "max": 10},
}
_DIGITS = re.compile("[0-9]+")


def place_of(field: str, name: str) -> int:
    """The place among the hues that a name alone has: FNV-1a of all but its digits and its last
    letter, plus that letter and its numbers, so that neighbours such as sda and sdb, or nvme0n1 and
    nvme1n1, differ."""
    usual = _USUAL.get(field, {}).get(name)
    if usual is not None:
        return usual
    letters = _DIGITS.sub("", name).encode("utf-8", "replace")
    value = 0x811C9DC5
    for byte in letters[:-1]:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    numbers = sum(_number(digits) for digits in _DIGITS.findall(name))
    return (value + sum(letters[-1:]) + numbers) % len(HUES)


def _number(digits: str) -> int:
    """A number less whole turns around the hues; it may have any number of digits."""
    value = 0
    for digit in digits:
        value = (10 * value + int(digit)) % len(HUES)
    return value


def places_of(field: str, names: Iterable[str]) -> dict[str, int]:
    """Places of names, the largest first: each its own, or the next that is free. Names for which
    no place is left are absent."""
    places: dict[str, int] = {}
    for name in names:
        if name in places or len(places) >= len(HUES):
            continue
        place = place_of(field, name)
        while place in places.values():
            place = (place + 1) % len(HUES)
        places[name] = place
    return places


def colours_of(field: str, names: Iterable[str]) -> dict[str, str]:
    """Colours `#rrggbb` on a light background, by name; grey for names without a place."""
    names = list(names)
    places = places_of(field, names)
    return {name: HUES[places[name]] if name in places else REST for name in names}
