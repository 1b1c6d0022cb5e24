# SPDX-License-Identifier: Apache-2.0
"""Times and sizes as people write them: in names of statistics exactly, in commands also as moments
relative to a recording."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from iolab.base.errors import UsageError
from iolab.base.units import parse_fio_time, split_duration

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


_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?")
_EPOCH = 10**17
"""Later than this (March 1973) times count from 1970; earlier ones count from a trace's own start.
"""

_RELATIVE = "30s (after the start), -10m (before the end)"


def parse_duration(text: str) -> int:
    """`10ms`, `1.5s`, `10m` or `10min`, `2h`, `1h30m`, `1d` in ns. UsageError for anything else."""
    parts = split_duration(text.strip())
    if len(parts) > 1:
        parse_fio_time(text)  # refuses units that do not come down
    return sum(_single(part.strip()) for part in parts)


def _single(words: str) -> int:
    if re.fullmatch(r"[\d.]+\s*d", words):
        return 24 * parse_whole(words[:-1] + "h", "time")
    return parse_whole(re.sub(r"(?<=[\d\s])m$", "min", words), "time")


def is_after_start(text: str) -> bool:
    """Whether a moment is written as a time after the start, such as `30s`."""
    return re.fullmatch(r"[\d.]+\s*(?:[a-zµ]+\s*[\d.]+\s*)*[a-zµ]*", text.strip()) is not None


def parse_moment(text: str, first_ns: int, last_ns: int) -> int:
    """A moment in ns on the clock of events that lie from `first_ns` to `last_ns`.

    `30s` is after the first, `-10m` before the end, `2026-03-01T12:00:05` and `12:00:05` (of the
    first event's day) are UTC unless a zone is given. UsageError for what is none of these, or a
    clock's time where the events have no clock but their own.
    """
    words = text.strip()
    try:
        if words.startswith("-"):
            return last_ns + 1 - parse_duration(words[1:])
        if is_after_start(words):
            return first_ns + parse_duration(words)
        day = datetime.fromtimestamp(first_ns // 10**9, UTC)
        if _CLOCK.fullmatch(words):
            words = f"{day:%Y-%m-%d}T{words.zfill(len(words) + (words.find(':') == 1))}"
        moment = datetime.fromisoformat(words)
    except ValueError:
        raise UsageError(
            f"'{text}' is not a moment", hint=f"write {_RELATIVE} or 2026-03-01T12:00:05"
        ) from None
    except UsageError as error:
        raise UsageError(f"'{text}' is not a moment: {error.message}", hint=error.hint) from None
    if last_ns < _EPOCH:
        raise UsageError(
            f"'{text}' is a clock's time, but these events count from a start of their own",
            hint=f"write {_RELATIVE}",
        )
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = zoned - datetime(1970, 1, 1, tzinfo=UTC)
    return (since // timedelta(microseconds=1)) * 1000
