# SPDX-License-Identifier: Apache-2.0
"""What the service answers, as data: the OpenAPI document and the page's types are generated from
these."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from iolab.base.documents import Model
from iolab.recordings.heatmap.wire import HeatMapGroup, LossesOfKind

Value = float | int | None


class VersionedModel(Model):
    """A whole answer, with the version of its shape."""

    schema_: Literal[1] = Field(1, serialization_alias="schema")


class Problem(VersionedModel):
    """Why there is no answer: what happened, and what to do about it (empty where nothing can be
    done)."""

    error: str
    hint: str = ""


class RecordingFacts(Model):
    """Something that is served. Times are ns on its own clock, null where it holds nothing; `clock`
    says whether they count from 1970.

    first_ns: of roll-ups where these begin before the events. last_ns: of the latest event; while
    it is recorded, how far the recorder is, with or without I/Os. `live`: whether it is still being
    recorded. events, samples: by source. events_from_ns: of the first event that is
    still there, null where there is none. `problem`: why it can't be read, else empty. hosts: of all
    hosts together, the names of their recordings by host; else empty.
    """

    name: str
    kind: Literal["recording", "trace", "hosts"]
    host: str
    clock: Literal["realtime", "trace"]
    live: bool
    first_ns: int | None
    last_ns: int | None
    events: dict[str, int]
    events_from_ns: int | None
    samples: dict[str, int]
    problem: str
    hosts: dict[str, list[str]] = Field(default_factory=dict)


class Recordings(VersionedModel):
    """Everything that is served."""

    recordings: list[RecordingFacts]


class Breakdown(Model):
    """A field that a statistic can be broken down by, and what the answer then is."""

    field: str
    kind: Literal["stack", "heat"]


class Lacking(Breakdown):
    """A field that a statistic has, and that what answers it there does not tell: the answer would
    be `unknown` alone."""

    why_not: str


class SourceFacts(Model):
    """A source that can answer a statistic, with the fields that it can tell; `counted` says that
    it is counters."""

    name: str
    counted: bool
    fields: list[str]


class StatisticFacts(Model):
    """A statistic of the catalogue, as far as the recording can answer it: `source` is what
    answers, `counted` says that these are counters, not events; `why_not` says why nothing does.
    `covers`: what its numbers hold. `sources`: all that can answer where they are named, the
    default first. `lacking`: fields that it could be broken down by elsewhere."""

    name: str
    about: str
    covers: str
    unit: str
    source: str
    sources: list[SourceFacts]
    counted: bool
    filters: list[str]
    breakdowns: list[Breakdown]
    lacking: list[Lacking]
    available: bool
    why_not: str


class Statistics(VersionedModel):
    """The catalogue, as far as it goes for one recording."""

    recording: str
    statistics: list[StatisticFacts]


class OverTime(VersionedModel):
    """Values by column of time, per second (levels and shares: on average); null where nothing was
    recorded.

    Column c begins at t0_ns + c * interval_ns. first_ns, until_ns: the time that the answer is
    about; covered_ns: the recorded part of it. total: the plain sum, 0 for levels and shares. mean:
    over the recorded time. lost_by_column: (column, records lost there), 0 for an unknown number.
    losses: the same by kind, with losses without a time.
    """

    statistic: str
    t0_ns: int
    interval_ns: int
    unit: str
    source: str
    first_ns: int
    until_ns: int
    covered_ns: int
    total: int
    mean: Value
    notes: list[str]
    lost_by_column: list[tuple[int, int]]
    losses: list[LossesOfKind]


class SeriesAnswer(OverTime):
    """A number over time."""

    kind: Literal["series"] = "series"
    values: list[Value]


class Layer(Model):
    """The values of one key of a breakdown."""

    key: str
    total: int
    mean: Value
    values: list[Value]


class Others(Model):
    """All keys together that are not named; `keys`: how many."""

    keys: int
    total: int
    mean: Value
    values: list[Value]


class StackAnswer(OverTime):
    """A number over time for each key, largest first.

    adds_up: whether keys are parts of a whole. False where they overlap (a partition and its disk)
    or are shares of several things: no sum of them says anything; of the first kind `others` then
    has no numbers, of the second an average.
    """

    kind: Literal["stack"] = "stack"
    adds_up: bool
    keys: list[Layer]
    others: Others | None


class HeatAnswer(VersionedModel):
    """Counts by column of time and by value: four lists of one length; low <= value < high in
    `unit`. `weight`: what `count` holds, I/Os or the bytes that they moved; `events` are I/Os.

    gaps: (first, one past the last) column in which nothing was recorded.
    """

    kind: Literal["heat"] = "heat"
    statistic: str
    t0_ns: int
    interval_ns: int
    y: str
    unit: Literal["ns", "B", ""]
    weight: Literal["count", "time", "bytes"]
    events: int
    without_y: int
    filtered: int
    outside: int
    lost: int
    damaged: int
    unpaired: int
    averaged: bool
    column: list[int]
    low: list[int]
    high: list[int]
    count: list[int]
    lost_by_column: list[tuple[int, int]]
    losses: list[LossesOfKind]
    gaps: list[tuple[int, int]]
    notes: list[str]


class Line(Model):
    """A number over time, and over all of it."""

    key: str
    mean: Value
    values: list[Value]


class PercentilesAnswer(VersionedModel):
    """A heat map as lines over time: percentiles, the largest value and the mean of each column,
    null where there was no I/O. `mean` of a line is that of all of the time together, never an
    average of columns. `gaps`: (first, one past the last) column in which nothing was recorded.
    `window`: the time that is answered for, null if unknown. Both may reach beyond the columns."""

    kind: Literal["percentiles"] = "percentiles"
    statistic: str
    t0_ns: int
    interval_ns: int
    y: str
    unit: Literal["ns", "B", ""]
    events: int
    keys: list[Line]
    notes: list[str]
    lost_by_column: list[tuple[int, int]]
    losses: list[LossesOfKind]
    gaps: list[tuple[int, int]]
    window: tuple[int, int] | None


class DrawnMap(VersionedModel):
    """A heat map made ready for the page's canvas. `group` is null where no event has such a value.

    gaps: (first, one past the last) column in which nothing was recorded; they may reach beyond the
    columns, to either side. window: (first, one past the last) column of the time that is answered
    for, null where that is not known.
    """

    kind: Literal["map"] = "map"
    statistic: str
    t0_ns: int
    interval_ns: int
    events: int
    notes: list[str]
    gaps: list[tuple[int, int]]
    window: tuple[int, int] | None
    group: HeatMapGroup | None


class Layers(VersionedModel):
    """A heat map split by a field: `map` has one dimension. Its parts are the keys in the
    order of the question, then all others together where these are requested. Their sum is the map,
    on the same columns and rows."""

    kind: Literal["layers"] = "layers"
    statistic: str
    by: str
    keys: list[str]
    rest: bool
    map: DrawnMap


class Extreme(Model):
    """A column of time with its value, per second (levels and shares: on average)."""

    from_ns: int
    until_ns: int
    value: float | int


class Extremes(VersionedModel):
    """The moments with the largest or smallest values, in that order, the earlier first among
    equals.

    statistic: what was looked at, a number over time: without the requested breakdown.
    Columns that the span cuts, and those of which a part was not recorded, are left out. columns:
    how many were compared.
    """

    statistic: str
    which: Literal["max", "min"]
    unit: str
    interval_ns: int
    columns: int
    moments: list[Extreme]
    notes: list[str]


class Share(Model):
    """A value of a dimension: I/Os inside the rectangle and outside of it, and its share of each
    (null where there are none at all)."""

    value: str
    inside: int
    outside: int
    share_inside: float | None
    share_outside: float | None


class DimensionShares(Model):
    """The values of a field, first those with the largest difference of shares inside and outside;
    `left`: how many more there are."""

    field: str
    telling: float
    values: list[Share]
    left: int
    left_inside: int
    left_outside: int


class Who(VersionedModel):
    """The values of the I/Os inside a rectangle of time and value, the most distinctive dimension
    first. An open end of it is null.

    without_y: I/Os that lack the value; they are outside.
    """

    recording: str
    statistic: str
    y: str
    unit: str
    source: str
    from_ns: int | None
    until_ns: int | None
    low: int | None
    high: int | None
    inside: int
    outside: int
    without_y: int
    notes: list[str]
    dimensions: list[DimensionShares]


class SingleIo(Model):
    """One recorded I/O. Times are ns, offset and size bytes; null where they are not known.

    id: `/io-layers` takes it. source: the layer that recorded it. time_ns: completion. queue_ns: in
    the queue, before the latency. count: 1, except in histogram logs.
    """

    id: str
    source: str
    time_ns: int
    latency_ns: int | None
    queue_ns: int | None
    offset_bytes: int | None
    size_bytes: int | None
    op: str
    device: str | None
    process: str | None
    file: str | None
    mount: str | None
    client: str | None
    job: str | None
    pid: int | None
    thread: int | None
    error: str | None
    flags: str | None
    count: int


class IoList(VersionedModel):
    """The single I/Os inside a rectangle of time and value, a page of them. total: I/Os inside.
    rows: rows inside, of which `ios` are those from `skip` on."""

    recording: str
    statistic: str
    source: str
    total: int
    rows: int
    skip: int
    notes: list[str]
    ios: list[SingleIo]


class RelatedIo(Model):
    """An I/O of another layer. match: what ties it to the chosen I/O: its thread, its process, or
    only the time. start_ns, end_ns: since the start of the chosen I/O."""

    io: SingleIo
    match: Literal["thread", "process", "time"]
    start_ns: int
    end_ns: int


class IoLayers(VersionedModel):
    """One I/O through the layers. above: calls during which it was issued; below: I/Os that were
    issued during it or overlap it, both by their start. above_left, below_left: how many more there
    are. elsewhere: I/Os that overlap it and belong to other calls, which are left out. layers: the
    sources of the recording that are layers, from the top."""

    recording: str
    io: SingleIo
    above: list[RelatedIo]
    below: list[RelatedIo]
    above_left: int
    below_left: int
    elsewhere: int
    layers: list[str]
    notes: list[str]


class FieldValue(Model):
    """A value of a field."""

    field: str
    value: str


class OddChange(Model):
    """A change of a statistic: rate, latency, tail (p99 of latency), size, offset, queue (I/Os in
    flight) or value (of counters).

    before, since: in `unit`, empty without I/Os. Of a map percentiles: p50 of latency and size, or
    p5 and p95 where p50 is the same; p99 of the tail, p5 and p95 of offsets. Else the mean.
    octaves: its scale-free size, log2. q: false-discovery rate. share: of the subject in all I/Os.
    low, high: range of the odd I/Os in a map.
    """

    quantity: Literal["rate", "latency", "tail", "size", "offset", "queue", "value"]
    statistic: str
    unit: str
    before: list[float]
    since: list[float]
    octaves: float
    q: float
    share: float
    low: int | None
    high: int | None


class Oddity(Model):
    """I/Os with one of `values` of a field, all I/Os where it is empty. Their changes, the strongest
    first. aliases: other values that mean the same I/Os. alone: whether nothing else is
    odd. lasting: whether it lasts until the end."""

    sentence: str
    field: str
    values: list[str]
    aliases: list[FieldValue]
    alone: bool
    from_ns: int
    until_ns: int
    lasting: bool
    score: float
    changes: list[OddChange]


class Odd(VersionedModel):
    """What differs most from the quiet time, the strongest first. from_ns, until_ns: the time that
    was searched. interval_ns: windows that were compared; compared: how many series."""

    recording: str
    quiet_from_ns: int
    quiet_until_ns: int
    from_ns: int
    until_ns: int
    interval_ns: int
    compared: int
    notes: list[str]
    oddities: list[Oddity]


class Node(Model):
    """A directory or file with all below it, the largest first. `own`: of its own name,
    not of those below;
    `others`: what is too small to be named, added up, and `left`: how many these are."""

    name: str
    total: int
    own: int
    others: int
    left: int
    children: list[Node]


class Hierarchy(VersionedModel):
    """The plain sums of paths, by directory, in I/Os or bytes. `unnamed`: of I/Os with an unknown
    path."""

    recording: str
    statistic: str
    unit: Literal["1", "B"]
    total: int
    unnamed: int
    root: Node


class Tick(VersionedModel):
    """Once a second in the stream: how far a recording is. `state`: "recording", "waiting" for the
    probe, "ended", or "" of what was not recorded live. now_ns: the end of the newest session, which
    is followed. It is less than last_ns where that session began after the clock was set back. lost,
    suspended (with the reason): by source, as the recorder says. silent_s: for how long a recorder
    that is there has written nothing, 0 for less than 5 s. problem: why it can't be read now, else
    empty."""

    recording: str
    state: str
    live: bool
    first_ns: int | None
    last_ns: int | None
    now_ns: int | None
    events: dict[str, int]
    lost: dict[str, int]
    suspended: dict[str, str]
    bytes: int | None
    silent_s: int
    problem: str


class Mark(Model):
    """A named span of time; until_ns is null while it lasts."""

    label: str
    kind: str
    from_ns: int
    until_ns: int | None
    link: str | None
    facts: dict[str, Any]


class Marks(VersionedModel):
    """Marks of a recording in the order they were made; `left`: how many earlier ones are not
    listed."""

    recording: str
    marks: list[Mark]
    left: int


class Loss(Model):
    """Something that is not in a recording; count is null where it is unknown."""

    source: str
    kind: str
    from_ns: int | None
    until_ns: int | None
    count: int | None
    words: str


class Losses(VersionedModel):
    """Losses in the order they were noted; `totals` by kind over all of them; `left`: how many
    earlier ones are not listed.

    recorded: (from, until) in ns when it was recorded, as far as that is still there; empty where
    it is unknown, as of traces.
    """

    recording: str
    losses: list[Loss]
    totals: dict[str, int]
    gaps: list[tuple[int, int]]
    recorded: list[tuple[int, int]]
    left: int
