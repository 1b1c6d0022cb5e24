# SPDX-License-Identifier: Apache-2.0
"""Who is this: every dimension's values by their share inside a rectangle of time and value against
outside, in one scan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from iolab.base.errors import UsageError

from ..store.read.recording import Recording
from ..store.read.trace import Trace
from .aliases import DEVICE, DiskGroups, host_names
from .engine.cells import where as where_all
from .engine.engine import BY, int64s
from .engine.windows import field_of
from .language.catalogue import CATALOGUE, Entry
from .language.fields import OF_DISKS, QUANTIZED, near
from .language.quantities import print_whole
from .query import OpenEvents, scan, trouble
from .question import Filter, Question, Statistic
from .slowest import Columns

TOP = 50
"""Values of a dimension that are named unless asked otherwise."""

FIRST, LAST = ("process", "file", "device", "client"), ("error", "flags")
"""Fields that come first and last: what can be acted on, and what needs an explanation."""

OWN = ("iolab", "iolab-probe")
"""Names of iolab's own processes: the recorder, the service and commands; the probe. What they do is
not what is looked for, unless it is named."""

FAMILY = ("process", "pid", "thread")
"""A field and its parts, which separate at least as much as the field itself."""


@dataclass(frozen=True)
class Rectangle:
    """A part of a map: times and values in ns or bytes, each up to and not including its end; None
    leaves an end open."""

    from_ns: int | None = None
    until_ns: int | None = None
    low: int | None = None
    high: int | None = None

    def sql(self, y: str | None) -> tuple[list[str], dict[str, Any]]:
        """Conditions that hold inside, and what is bound in them. y: field of the values, None for
        a rectangle of time alone."""
        ends: dict[str, tuple[str, int | None]] = {
            "r0": ("time_ns >=", self.from_ns),
            "r1": ("time_ns <", self.until_ns),
        }
        texts = []
        if y is not None:
            column = field_of(y).column
            texts = [f"{column} IS NOT NULL"]
            ends |= {"r2": (f"{column} >=", self.low), "r3": (f"{column} <", self.high)}
        texts += [f"{text} ${name}" for name, (text, end) in ends.items() if end is not None]
        return texts, {name: end for name, (_, end) in ends.items() if end is not None}


@dataclass(frozen=True)
class Share:
    """A value of a dimension: how much of what is inside is its own, and of what is outside. Shares
    are nan where there is nothing."""

    value: str
    inside: int
    outside: int
    share_inside: float
    share_outside: float


@dataclass(frozen=True)
class Dimension:
    """A field's values, those first with the largest difference of shares inside and outside.

    Attributes:
        telling: from 0 (the same inside and outside) to 1 (nothing in common): half the sum of the
        differences of shares. left: how many values are not named; left_inside, left_outside: their
        sums.
    """

    field: str
    telling: float
    values: tuple[Share, ...]
    left: int
    left_inside: int
    left_outside: int


@dataclass(frozen=True)
class Who:
    """`inside` and `outside` are plain sums; `without`: I/Os that lack y, which are outside.
    Dimensions: the most telling first, but a process before its parts."""

    y: str
    unit: str
    rectangle: Rectangle
    source: str
    inside: int
    outside: int
    without: int
    dimensions: tuple[Dimension, ...]
    notes: tuple[str, ...]


def who(
    events: Trace | Recording,
    y: str,
    rectangle: Rectangle,
    *,
    filters: Sequence[Filter] = (),
    entry: Entry | str = "io.ops",
    around: tuple[int | None, int | None] = (None, None),
    during: Columns | None = None,
    is_own_included: bool = True,
    source: str | None = None,
    top: int = TOP,
) -> Who:
    """Who issued the I/Os inside a rectangle: values of each dimension by their share inside
    against outside.

    Outside is all else of the time `around` that meets the conditions; with `during`, inside and
    outside are of these columns of time alone. Without `is_own_included`, I/Os of iolab's own
    processes are neither inside nor outside; a note has their number.

    Args:
        y: latency, queue, offset or size. filters: conditions on inside and outside
        alike. entry: what is added up, by its name in the catalogue: I/Os or bytes. top: values of a dimension that are named.
    UsageError for what can't be asked, FormatError for what can't be read.
    """
    of = CATALOGUE[entry] if isinstance(entry, str) else entry
    if y not in QUANTIZED:
        raise UsageError(f"there is no map of '{y}'", hint=near(y, QUANTIZED))
    if not of.sources:
        raise UsageError(
            f"{of.name} comes of counters, which tell of no single I/O",
            hint="ask for io.ops, file.ops or app.ops",
        )
    if y not in of.filters:
        raise UsageError(
            f"{of.name} has no field '{y}'",
            hint=near(y, [name for name in QUANTIZED if name in of.filters]),
        )
    has_disks = DEVICE in of.breakdowns
    fields = [
        name
        for name in of.breakdowns
        if name not in QUANTIZED and not (has_disks and name in OF_DISKS)
    ] + (["size"] if y != "size" and "size" in of.filters else [])
    conditions = host_names().filters(filters)
    places = tuple(OF_DISKS) if has_disks else ()
    condition_fields = {condition.field for condition in conditions}
    groups = DiskGroups.of(events, (field for field in places if field in condition_fields), around)
    conditions = groups.filters(conditions)
    group, _, name = of.name.partition(".")
    question = Question.of(Statistic(group, name, (), y), around, None, 1, source)

    def read(open_events: OpenEvents) -> Who:
        if during is not None:
            open_events = replace(open_events, conditions=(*open_events.conditions, during.sql))
        # a trace is read once, and is not of iolab's making
        if not is_own_included and "process" in of.filters and isinstance(events, Recording):
            open_events = _without_own(open_events)
        rows = _ask(open_events, y, rectangle, of, fields)
        values = _values(fields, rows)
        of_disks = DiskGroups.of(open_events.events, places, around)
        values |= of_disks.sums(values.get(DEVICE, {}))
        without = int(int64s(rows["lacking"])[int64s(rows["place"]) == 0].sum())
        notes = (*open_events.notes, *trouble(open_events.events))
        return _answer(y, of, rectangle, open_events.source, values, without, notes, top)

    return scan(events, question, conditions, read)


def _without_own(events: OpenEvents) -> OpenEvents:
    column = field_of("process").column
    names = ", ".join(f"'{name}'" for name in OWN)
    own = f"{column} IS NOT NULL AND {column} IN ({names})"
    sums = events.engine.ask(
        f"SELECT {BY} CAST(coalesce(sum(count), 0) AS BIGINT) AS n FROM events "
        f"{where_all((*events.conditions, own))} GROUP BY ALL",
        events.bound,
    )
    count = int(int64s(sums["n"]).sum())
    if not count:
        return events
    note = f"{print_count(count)} of iolab's own processes are left out (--all includes them)"
    return replace(
        events,
        conditions=(*events.conditions, f"NOT ({own})"),
        notes=(*events.notes, note),
    )


def print_count(count: int) -> str:
    """`1 I/O`, `12 345 I/Os`."""
    return f"{count:,} I/O{'' if count == 1 else 's'}".replace(",", " ")


def joined_who(parts: Sequence[tuple[str, Who]], top: int = TOP) -> Who:
    """Who issued the I/Os of several recordings, from the host and the answer of each with all
    values. `host` is a dimension."""
    values: dict[str, dict[str, list[int]]] = {"host": {}}
    for host, part in parts:
        dimensions = {"host": [(host, part.inside, part.outside)]} | {
            dimension.field: [
                (share.value, share.inside, share.outside) for share in dimension.values
            ]
            for dimension in part.dimensions
        }
        for field, shares in dimensions.items():
            sums = values.setdefault(field, {})
            for value, within, beyond in shares:
                pair = sums.setdefault(value, [0, 0])
                pair[0] += within
                pair[1] += beyond
    answers = [part for _, part in parts]
    inside, outside = (
        sum(getattr(part, name) for part in answers) for name in ("inside", "outside")
    )
    of_fields = [
        _dimension(field, of_field, (inside, outside), top) for field, of_field in values.items()
    ]
    return replace(
        answers[0],
        source=", ".join(dict.fromkeys(part.source for part in answers)),
        inside=inside,
        outside=outside,
        without=sum(part.without for part in answers),
        dimensions=_in_order(of_fields),
    )


def ordered(dimensions: Sequence[Dimension]) -> list[Dimension]:
    """Fields of an answer as they are shown: those of `FIRST`, the others by how much they
    differ, those of `LAST`; without threads that are the processes' only ones."""
    values = {
        dimension.field: {(share.value, share.inside, share.outside) for share in dimension.values}
        for dimension in dimensions
    }

    def place(dimension: Dimension) -> int:
        return -1 if dimension.field in FIRST else 1 if dimension.field in LAST else 0

    return sorted(
        (
            dimension
            for dimension in dimensions
            if dimension.field != "thread" or values["thread"] != values.get("pid")
        ),
        key=place,
    )


def joined_shares(first: Who, second: Who, top: int = TOP) -> tuple[Dimension, ...]:
    """Dimensions of two answers about all I/Os: values by their share in the first (`inside`) and in
    the second (`outside`). Each answer must name all values."""
    sums = (first.inside + first.outside, second.inside + second.outside)
    values: dict[str, dict[str, list[int]]] = {}
    for place, answer in enumerate((first, second)):
        for dimension in answer.dimensions:
            for share in dimension.values:
                pair = values.setdefault(dimension.field, {}).setdefault(share.value, [0, 0])
                pair[place] += share.inside + share.outside
    return _in_order([_dimension(field, of_field, sums, top) for field, of_field in values.items()])


def _ask(
    events: OpenEvents, y: str, rectangle: Rectangle, entry: Entry, fields: Sequence[str]
) -> dict[str, Any]:
    column = field_of(y).column
    texts, ends = rectangle.sql(y)
    inside = " AND ".join(texts)
    amount = (
        "count" if entry.measure == "ops" else "coalesce(CAST(size_bytes AS HUGEINT) * count, 0)"
    )
    keys = ", ".join(f"{_group(name)} AS g{place}" for place, name in enumerate(fields))
    words = ", ".join(
        f"{_word(name, f'g{place}')} AS k{place}" for place, name in enumerate(fields)
    )
    sets = ", ".join(f"({BY} inside, k{place})" for place in range(len(fields)))
    picked = " ".join(f"WHEN grouping(k{place}) = 0 THEN k{place}" for place in range(len(fields)))
    place = " ".join(f"WHEN grouping(k{place}) = 0 THEN {place}" for place in range(len(fields)))
    # dimensions go together (a process has its files), so that one pass makes few groups, and words
    # are made of these alone
    return events.engine.ask(
        f"WITH groups AS MATERIALIZED (SELECT {BY} ({inside}) AS inside, {keys}, CAST(sum({amount}) AS BIGINT) AS n, "
        f"CAST(sum(CASE WHEN {column} IS NULL THEN count ELSE 0 END) AS BIGINT) AS lacking "
        f"FROM events {where_all(events.conditions)} GROUP BY ALL), "
        f"named AS (SELECT {BY} inside, n, lacking, {words} FROM groups) "
        f"SELECT {BY} inside, CASE {place} END AS place, CASE {picked} END AS k, CAST(sum(n) AS BIGINT) AS n, "
        f"CAST(sum(lacking) AS BIGINT) AS lacking FROM named GROUP BY GROUPING SETS ({sets})",
        {**events.bound, **ends},
    )


def _group(field: str) -> str:
    """What the events are grouped by; of sizes the power of two at or below, -1 for 0: they are as
    many as I/Os at worst."""
    if field == "size":
        return "CASE WHEN size_bytes = 0 THEN CAST(-1 AS TINYINT) ELSE CAST(floor(log2(size_bytes)) AS TINYINT) END"
    return field_of(field).column


def _word(field: str, group: str) -> str:
    return f"coalesce(CAST({group} AS VARCHAR), '{field_of(field).missing}')"


def _key_word(field: str, key: str) -> str:
    """The word for a key: of sizes the range, as a filter takes it."""
    if field != "size" or key == "unknown":
        return host_names().label(field, key)
    power = int(key)
    return (
        "0"
        if power < 0
        else f"{print_whole(1 << power, 'size')}..{print_whole(1 << power + 1, 'size')}"
    )


def _values(fields: Sequence[str], found: dict[str, Any]) -> dict[str, dict[str, list[int]]]:
    """Sums [inside, outside] by field and value."""
    places, amount = int64s(found["place"]), int64s(found["n"])
    inside = np.ma.filled(found["inside"], False).astype(bool)
    keys = np.ma.filled(found["k"], "").astype(str)
    values: dict[str, dict[str, list[int]]] = {field: {} for field in fields}
    for place, field in enumerate(fields):
        for row in np.flatnonzero(places == place).tolist():
            sums = values[field].setdefault(_key_word(field, str(keys[row])), [0, 0])
            sums[0 if inside[row] else 1] += int(amount[row])
    return values


def _answer(
    y: str,
    entry: Entry,
    rectangle: Rectangle,
    source: str,
    values: Mapping[str, dict[str, list[int]]],
    without: int,
    notes: tuple[str, ...],
    top: int,
) -> Who:
    sums = (0, 0)
    dimensions = []
    for field, of_field in values.items():
        sums = (
            sum(pair[0] for pair in of_field.values()),
            sum(pair[1] for pair in of_field.values()),
        )
        dimensions.append(_dimension(field, of_field, sums, top))
    return Who(
        y,
        "1" if entry.measure == "ops" else "B",
        rectangle,
        source,
        *sums,
        without,
        _in_order(dimensions),
        notes,
    )


def _in_order(dimensions: Sequence[Dimension]) -> tuple[Dimension, ...]:
    """The most telling first, but a process before its parts."""
    ordered = sorted(dimensions, key=lambda dimension: -dimension.telling)
    places = [place for place, dimension in enumerate(ordered) if dimension.field in FAMILY]
    family = sorted((ordered[place] for place in places), key=lambda part: FAMILY.index(part.field))
    for place, part in zip(places, family, strict=True):
        ordered[place] = part
    return tuple(ordered)


def _dimension(
    field: str, values: dict[str, list[int]], sums: tuple[int, int], top: int
) -> Dimension:
    shares = [
        Share(
            value,
            within,
            beyond,
            within / sums[0] if sums[0] else float("nan"),
            beyond / sums[1] if sums[1] else float("nan"),
        )
        for value, (within, beyond) in values.items()
    ]
    # without anything on one side the other side's shares decide
    apart = {
        share.value: float(np.nan_to_num(share.share_inside) - np.nan_to_num(share.share_outside))
        for share in shares
    }
    # of two values alone, both are as far apart, but for the last bit
    shares.sort(
        key=lambda each: (
            -round(abs(apart[each.value]), 9),
            -apart[each.value],
            -each.inside - each.outside,
            each.value,
        )
    )
    # exact, so that the order of rows does not show in the last bit
    telling = math.fsum(abs(difference) for difference in apart.values()) / 2 if all(sums) else 0.0
    rest = shares[top:]
    return Dimension(
        field,
        telling,
        tuple(shares[:top]),
        len(rest),
        sum(share.inside for share in rest),
        sum(share.outside for share in rest),
    )


def as_data(found: Who) -> dict[str, Any]:
    """For JSON: shares are null where there is nothing to be a share of."""
    head = {"y": found.y, "unit": found.unit, "source": found.source, **asdict(found.rectangle)}
    sums = {"inside": found.inside, "outside": found.outside, "without_y": found.without}
    dimensions = [
        {
            "field": dimension.field,
            "telling": dimension.telling,
            "left": dimension.left,
            "left_inside": dimension.left_inside,
            "left_outside": dimension.left_outside,
            "values": [_share_data(share) for share in dimension.values],
        }
        for dimension in found.dimensions
    ]
    return {**head, **sums, "notes": list(found.notes), "dimensions": dimensions}


def _share_data(share: Share) -> dict[str, Any]:
    return {name: None if value != value else value for name, value in asdict(share).items()}
