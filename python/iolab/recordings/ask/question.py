# SPDX-License-Identifier: Apache-2.0
r"""A question to a recording or trace, the same for every statistic, map and drill-down.

Names of statistics: `group.name[filter]...[breakdown]`, parsed and printed here alone (and by
the same vectors in the page).

A filter is `field=value,value`, `field!=value`, or for numbers `>=`, `>`, `<`, `<=` and
`field=low..high`, which leaves `high` out. A value with one of `] [ , = " < > !` in it, with a
space at an end, or empty, is in double quotes, where `\"` and `\\` are a quote and a
backslash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from iolab.base.errors import UsageError

from ..store.base.counts import Weight, Y
from .language.catalogue import CATALOGUE, Entry
from .language.fields import ANY, OF_DISKS, QUANTIZED, TIME, Field, near
from .language.quantities import parse_whole, print_whole

SIGNS = (">=", "<=", "!=", "=", ">", "<")
_SPECIAL = '][,="<>!'
_PLAIN = re.compile(r'[^][,="<>!]*')
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)(" *)?')
_HEAD = re.compile(r"\s*([^\[\]\s]*)\s*")


@dataclass(frozen=True)
class Between:
    """Whole numbers from `low` up to, not including, `high`; None leaves an end open."""

    low: int | None
    high: int | None


Value: TypeAlias = "str | Between"


@dataclass(frozen=True)
class Filter:
    """A condition: an event meets `=` where any of the values is its own, `!=` where none is.

    `>=`, `>`, `<` and `<=` have one value, Between(n, n + 1). An event that lacks the field meets
    `!=` alone.
    """

    field: str
    sign: str
    values: tuple[Value, ...]

    def __str__(self) -> str:
        kind = (ANY.get(self.field) or TIME).kind
        return f"{self.field}{self.sign}{','.join(_print(value, kind) for value in self.values)}"


@dataclass(frozen=True)
class Statistic:
    """A named question; `str()` is its canonical name. The filters begin with those that the
    catalogue implies, which the name leaves out."""

    group: str
    name: str
    filters: tuple[Filter, ...] = ()
    breakdown: str | None = None

    def __post_init__(self) -> None:
        implied = _implied_filters(self.entry)
        if implied:
            explicit = (condition for condition in self.filters if condition not in implied)
            object.__setattr__(self, "filters", (*implied, *explicit))

    @property
    def entry(self) -> Entry:
        """What the catalogue says of it."""
        return CATALOGUE[f"{self.group}.{self.name}"]

    def __str__(self) -> str:
        implied = _implied_filters(self.entry)
        brackets = [str(condition) for condition in self.filters if condition not in implied]
        brackets += [self.breakdown] if self.breakdown else []
        return f"{self.group}.{self.name}" + "".join(f"[{text}]" for text in brackets)


def places_asked(asked: Statistic) -> tuple[str, ...]:
    """The fields of a statistic that follow from the device (`OF_DISKS`). Of other statistics `pool`
    and `vdev` are columns of events."""
    if "device" not in asked.entry.filters:
        return ()
    fields = [*(condition.field for condition in asked.filters), asked.breakdown]
    return tuple(field for field in OF_DISKS if field in fields)


def _implied_filters(entry: Entry) -> tuple[Filter, ...]:
    return tuple(Filter(field, "=", (value,)) for field, value in entry.implied)


def same(one: Statistic, other: Statistic) -> bool:
    """Whether two names ask the same; the order of conditions says nothing."""
    return (one.group, one.name, set(one.filters), one.breakdown) == (
        other.group,
        other.name,
        set(other.filters),
        other.breakdown,
    )


def parse(text: str) -> Statistic:
    """The statistic of a name. UsageError says what is wrong, what is near and what is allowed
    there."""
    head = _HEAD.match(text)
    word = head[1] if head else ""
    if word not in CATALOGUE:
        raise _error(
            text,
            f"there is no statistic '{word}'" if word else "a statistic has a name",
            _near(word),
        )
    entry = CATALOGUE[word]
    filters: list[Filter] = []
    breakdown: str | None = None
    for name, sign, values in _brackets(text, head.end() if head else 0):
        allowed = entry.filters if sign else entry.breakdowns
        if name not in allowed:
            is_field = name in (*entry.filters, *entry.breakdowns)
            what = (
                "has no field"
                if not is_field
                else "can't be narrowed by"
                if sign
                else "can't be broken down by"
            )
            raise _error(text, f"{word} {what} '{name}'", near(name, allowed))
        if sign:
            filters.append(_filter(text, entry, ANY[name], sign, values))
        elif breakdown is not None:
            raise _error(
                text,
                f"a statistic has one breakdown, and '{breakdown}' and '{name}' are two",
                f"narrow the other one: [{breakdown}=...]",
            )
        else:
            breakdown = name
    group, _, name = word.partition(".")
    return Statistic(group, name, tuple(filters), breakdown)


def split_field(text: str, field: str) -> tuple[str, list[tuple[str, tuple[str, ...]]]]:
    """A statistic's name without the brackets of a field that is no field of events, and these
    brackets: (sign, values), or ("", ()) for a breakdown. UsageError as in `parse`."""
    head = _HEAD.match(text)
    end = head.end() if head else 0
    rest, brackets = text[:end], []
    for name, sign, values in _brackets(text, end):
        if name == field:
            brackets.append((sign, tuple(value for value, _ in values)))
            continue
        # a value that was not quoted is a number or a name without special characters
        words = (_print(value, "name") if quoted else value for value, quoted in values)
        rest += f"[{name}{sign}{','.join(words)}]"
    return rest, brackets


_OTHER_WORDS = {
    "iops": "io.ops",
    "ios": "io.ops",
    "ops": "io.ops",
    "throughput": "io.bytes",
    "bandwidth": "io.bytes",
    "bw": "io.bytes",
    "bytes": "io.bytes",
    "util": "io.utilization",
    "utilization": "io.utilization",
    "busy": "io.utilization",
    "qd": "io.queue",
    "depth": "io.queue",
    "cpu": "cpu.utilization",
    "disk": "io.ops[device]",
    "disks": "io.ops[device]",
    "files": "file.ops[file]",
    "clients": "nfs.ops[client]",
    "arc": "arc.hit_ratio",
    "network": "net.bytes",
    **dict.fromkeys(("latency", "lat", "clat", "slat", "tail", "percentiles"), "io.ops[latency]"),
}
"""Words of other tools, and the statistic that shows what they mean."""

_PERCENTILE = re.compile(r"p\d\d(\.\d+)?")


def _near(word: str) -> str:
    """The statistic that a word of another tool means, or names like the word: those of its group,
    where only that is known, or the groups."""
    name = word.lower()
    if name in CATALOGUE:
        return f"did you mean {name!r}? names are in lower case"
    group, _, rest = name.partition(".")
    has_maps = f"{group}.ops" in CATALOGUE
    if _PERCENTILE.fullmatch(name):
        return "did you mean 'io.ops[latency]' --percentiles?"
    if name in _OTHER_WORDS:
        return f"did you mean {_OTHER_WORDS[name]!r}?"
    if name in CATALOGUE["io.ops"].breakdowns:
        return f"did you mean 'io.ops[{name}]'? '{name}' is a field"
    if has_maps and rest in CATALOGUE[f"{group}.ops"].breakdowns:
        return f"did you mean '{group}.ops[{rest}]'? '{rest}' is a field"
    of_group = [name for name in CATALOGUE if name.startswith(f"{group}.")]
    if of_group:
        return near(name, of_group)
    hint = near(name, CATALOGUE)
    if hint.startswith("did you mean"):
        return hint.partition("?")[0] + "? 'iolab catalog statistics' lists all"
    groups = dict.fromkeys(name.partition(".")[0] for name in CATALOGUE)
    return f"'iolab catalog statistics' lists all, of {', '.join(groups)}"


def _error(text: str, message: str, hint: str) -> UsageError:
    return UsageError(message, where=f"statistic '{text}'", hint=hint)


def _brackets(text: str, place: int) -> Iterator[tuple[str, str, list[tuple[str, bool]]]]:
    """(field, sign or "", values each with whether it was quoted) of each pair of brackets."""
    while place < len(text):
        if text[place] != "[":
            raise _error(
                text, f"'{text[place:]}' found where '[' is expected", "such as [op=write][latency]"
            )
        word = _PLAIN.match(text, place + 1)
        assert word is not None
        name, end = word[0].strip(), word.end()
        sign = next((sign for sign in SIGNS if text.startswith(sign, end)), "")
        if not sign and not text.startswith("]", end):
            raise _error_at(text, end, "an operator or ']'", f"signs are {' '.join(SIGNS)}")
        if not name:
            raise _error(
                text, "a pair of brackets names no field", "such as [op=write] or [latency]"
            )
        values: list[tuple[str, bool]] = []
        if sign:
            value, is_quoted, end = _value(text, end + len(sign))
            values.append((value, is_quoted))
            while text.startswith(",", end):
                value, is_quoted, end = _value(text, end + 1)
                values.append((value, is_quoted))
            if not text.startswith("]", end):
                hint = "put a value with such characters in double quotes"
                raise _error_at(text, end, "',' or ']'", hint)
        yield name, sign, values
        place = len(text) - len(text[end + 1 :].lstrip())


def _error_at(text: str, end: int, expected: str, hint: str) -> UsageError:
    if end >= len(text):
        return _error(text, "it ends within brackets", "close them with ]")
    return _error(text, f"'{text[end:]}' found where {expected} is expected", hint)


def _value(text: str, place: int) -> tuple[str, bool, int]:
    """(value, whether it was quoted, where it ends)."""
    place = len(text) - len(text[place:].lstrip(" "))
    if not text.startswith('"', place):
        word = _PLAIN.match(text, place)
        assert word is not None
        return word[0].strip(" "), False, word.end()
    quoted = _QUOTED.match(text, place)
    assert quoted is not None
    if quoted[2]:
        return re.sub(r"\\(.)", r"\1", quoted[1]), True, quoted.end()
    if text.startswith("\\", quoted.end()):
        raise _error(
            text,
            'a backslash within quotes comes before " or \\ alone',
            "write \\\\ for a backslash",
        )
    raise _error(text, "a quoted value does not end", 'close it with "')


def _filter(
    text: str, entry: Entry, field: Field, sign: str, values: list[tuple[str, bool]]
) -> Filter:
    if any(not value and not quoted for value, quoted in values):
        raise _error(
            text,
            f"[{field.name}{sign}] names no value",
            f"such as [{field.name}={_example(field)}]",
        )
    if field.kind == "name":
        if sign not in ("=", "!="):
            raise _error(
                text,
                f"'{field.name}' is a name: it can't be compared with '{sign}'",
                f"write [{field.name}={_example(field)}]",
            )
        words = entry.words(field.name)
        for value, _ in values:
            if words and value not in words:
                raise _error(
                    text,
                    f"there is no {'operation' if field.name == 'op' else field.name} '{value}'",
                    near(value, words),
                )
        return Filter(field.name, sign, tuple(value for value, _ in values))
    if sign not in ("=", "!=") and len(values) > 1:
        raise _error(
            text, f"'{sign}' takes one value", f"such as [{field.name}{sign}{_example(field)}]"
        )
    try:
        ranges = tuple(_range(value, field) for value, _ in values)
    except UsageError as error:
        raise _error(text, f"{field.name}: {error.message}", error.hint or "") from None
    if sign not in ("=", "!=") and any(".." in value for value, _ in values):
        raise _error(
            text, f"'{sign}' takes a value, not a range", f"write [{field.name}={values[0][0]}]"
        )
    return Filter(field.name, sign, ranges)


def _range(text: str, field: Field) -> Between:
    low, dots, high = text.partition("..")
    if not dots:
        value = parse_whole(text, field.kind)
        return Between(value, value + 1)
    if not low.strip() and not high.strip():
        raise UsageError("'..' has no end", hint=f"such as 1..{_example(field)}")
    ends = [parse_whole(end, field.kind) if end.strip() else None for end in (low, high)]
    if ends[0] is not None and ends[1] is not None and ends[0] >= ends[1]:
        raise UsageError(
            f"the range '{text}' is empty",
            hint="its low end must be less than its high end, which is left out",
        )
    return Between(ends[0], ends[1])


def _print(value: Value, kind: str) -> str:
    if isinstance(value, str):
        if value and value == value.strip(" ") and not any(sign in value for sign in _SPECIAL):
            return value
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    ends = [("" if end is None else print_whole(end, kind)) for end in (value.low, value.high)]  # type: ignore[arg-type]
    exact = value.low is not None and value.high == value.low + 1
    return ends[0] if exact else "..".join(ends)


def _example(field: Field) -> str:
    return {
        "name": "write" if field.name == "op" else "NAME",
        "number": "1234",
        "time": "10ms",
        "size": "8KiB",
    }[field.kind]


COLUMNS = 400
"""Columns of time where the question has no interval."""


@dataclass(frozen=True)
class Question:
    """A question.

    Attributes:
        statistic: what; None for a map of I/Os under conditions that is no statistic. span: from
        and until (ns), None where left open. interval_ns: length of a column; None for one of 1, 2,
        5 times a power of ten that makes at most `columns` of the span. source: what must answer, None for any. y: of a map,
        None for numbers over time. filters: conditions. weight: what the cells of a map hold.
        low, high: of y, `low` <= y < `high`. buckets: at most so many equal ones.
    """

    statistic: Statistic | None = None
    span: tuple[int | None, int | None] = (None, None)
    interval_ns: int | None = None
    columns: int = COLUMNS
    source: str | None = None
    y: Y | None = None
    filters: tuple[Filter, ...] = ()
    weight: Weight = "count"
    low: int | None = None
    high: int | None = None
    buckets: int | None = None

    @classmethod
    def of(
        cls,
        statistic: Statistic,
        span: tuple[int | None, int | None],
        interval_ns: int | None,
        columns: int,
        source: str | None,
    ) -> Question:
        """The question of a statistic."""
        return cls(None, span, interval_ns, columns, source).with_statistic(statistic)

    def with_statistic(self, statistic: Statistic) -> Question:
        """The same of another statistic."""
        return replace(
            self,
            statistic=statistic,
            y=next((y for y in QUANTIZED if y == statistic.breakdown), None),
            filters=tuple(statistic.filters),
            weight=statistic.entry.weight,
        )

    @property
    def entry(self) -> Entry | None:
        """What the catalogue says of the statistic."""
        return None if self.statistic is None else self.statistic.entry

    @property
    def is_counted(self) -> bool:
        """Whether counters may have the answer."""
        return self.entry is not None and self.entry.counter is not None

    @property
    def breakdown(self) -> str | None:
        """The field that divides the answer."""
        return self.y if self.statistic is None else self.statistic.breakdown

    @property
    def name(self) -> str:
        """As messages name it."""
        return f"a map of {self.y}" if self.statistic is None else str(self.statistic)


SECOND = 10**9
MOST = 200_000
"""Columns of an answer."""
LONGEST = 36_525 * 24 * 3600 * SECOND


def round_interval(first_ns: int, last_ns: int, columns: int) -> int:
    """The shortest of 1, 2, 5 times a power of ten (ns) that makes at most `columns` columns, at
    least two.

    Columns begin at multiples of their length. The native readers choose alike.
    """
    decade = 1
    while True:
        for step in (1, 2, 5):
            interval = step * decade
            if last_ns // interval - first_ns // interval < max(2, columns):
                return interval
        decade *= 10


def check_interval(interval_ns: int | None) -> None:
    """UsageError for a length that no column has."""
    if interval_ns is not None and not 1 <= interval_ns <= LONGEST:
        raise UsageError(
            "an interval is at least 1 ns"
            if interval_ns < 1
            else "an interval has a hundred years at most"
        )


def columns_of(first_ns: int, last_ns: int, interval_ns: int) -> int:
    """Columns from the one with `first_ns` to the one with `last_ns`. UsageError where they are too
    many."""
    count = last_ns // interval_ns - first_ns // interval_ns + 1
    if count > MOST:
        raise UsageError(
            f"that makes {count} columns, and {MOST} are possible",
            hint="take a longer interval or less time",
        )
    return max(0, count)
