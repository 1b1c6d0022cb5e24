# SPDX-License-Identifier: Apache-2.0
"""Conditions on events as users write them: `op=write,device=sda`, `latency=1ms..10ms`,
`size>=8KiB`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from iolab.base.errors import UsageError
from iolab.base.units import parse_quantity

Where: TypeAlias = Mapping[str, Sequence[str]]

NAMES = ("op", "device", "process", "file", "job", "client")
RANGES = {"latency": "time", "time": "time", "offset": "size", "size": "size"}
"""Dimensions that are compared as words, and those that are numbers, with the dimension of their
unit."""

_CONDITION = re.compile(r"\s*([a-z]+)\s*(>=|<=|<|>|=)\s*(.*?)\s*")


def parse_where(texts: Iterable[str]) -> dict[str, list[str]]:
    """Conditions as the native core takes them: {"op": ["write"], "latency":
    ["1000000..10000000"]}, numbers in ns and bytes.

    Commas part conditions; a part without a sign is one more choice for the dimension before it
    (`op=read,trim`). `low..high` leaves `high` out. UsageError for an unknown dimension or a value
    of another unit.
    """
    conditions: dict[str, list[str]] = {}
    for text in texts:
        name = ""
        for part in text.split(","):
            match = _CONDITION.fullmatch(part)
            if match:
                name, sign, value = match[1], match[2], match[3]
            elif name:
                sign, value = "=", part.strip()
            else:
                raise UsageError(
                    f"'{part}' is not a condition",
                    hint="write --where op=write,device=sda or --where 'latency>=10ms'",
                )
            if not value:
                raise UsageError(
                    f"the condition '{part.strip()}' names no value", hint="such as op=write"
                )
            conditions.setdefault(name, []).append(_choice(name, sign, value))
    return conditions


def parse_range(text: str, dimension: str) -> tuple[int | None, int | None]:
    """`0..10ms` as whole ns or bytes (`dimension` is "time" or "size"); either end may be left
    open, then it is None."""
    low, dots, high = text.partition("..")
    if not dots or not (low.strip() or high.strip()):
        raise UsageError(
            f"'{text}' is not a range",
            hint="write LOW..HIGH with units, such as 0..10ms, 8KiB..1MiB or 1ms..",
        )
    ends = [None if not end.strip() else _whole_quantity(end, dimension) for end in (low, high)]
    if ends[0] is not None and ends[1] is not None and ends[0] >= ends[1]:
        raise UsageError(f"the range '{text}' is empty", hint="LOW must be less than HIGH")
    return ends[0], ends[1]


def _choice(name: str, sign: str, value: str) -> str:
    if name in NAMES:
        if sign != "=":
            raise UsageError(
                f"'{name}' is a name: it can't be compared with '{sign}'",
                hint=f"write {name}={value}",
            )
        return value
    if name not in RANGES:
        raise UsageError(
            f"there is no dimension '{name}'", hint=f"there are {', '.join([*NAMES, *RANGES])}"
        )
    dimension = RANGES[name]
    if sign == "=":
        if ".." in value:
            low, high = parse_range(value, dimension)
            return f"{'' if low is None else low}..{'' if high is None else high}"
        exact = _whole_quantity(value, dimension)
        return f"{exact}..{exact + 1}"
    end = _whole_quantity(value, dimension)
    return {">=": f"{end}..", ">": f"{end + 1}..", "<": f"..{end}", "<=": f"..{end + 1}"}[sign]


def _whole_quantity(text: str, dimension: str) -> int:
    """A quantity in ns or bytes; zero needs no unit, anything else does: `10` could be ns, us or
    ms."""
    value = parse_quantity(text, dimension)
    if value < 0:
        raise UsageError(f"'{text.strip()}' is negative", hint="time and size begin at zero")
    if value and text.strip()[-1].isdigit() and dimension == "time":
        raise UsageError(
            f"'{text.strip()}' has no unit",
            hint=f"write {text.strip()}us, {text.strip()}ms or {text.strip()}s",
        )
    amount = value * (1e9 if dimension == "time" else 1)
    if amount > 2**64:
        raise UsageError(f"'{text.strip()}' is beyond 64 bits", hint="leave this end open")
    return round(amount)
