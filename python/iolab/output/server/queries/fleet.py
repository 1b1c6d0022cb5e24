# SPDX-License-Identifier: Apache-2.0
"""A measure of all hosts of an archive over time: a row for each host, or for each value of a
label.

The models are what the fleet page shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast, get_args

import numpy as np

from iolab.base.documents import Model
from iolab.base.errors import UsageError
from iolab.recordings.ask.answers.answers import Answer, Floats, Series
from iolab.recordings.ask.answers.json_form import numbers
from iolab.recordings.ask.fleet import (
    HOST,
    FleetStatistic,
    Part,
    ask_each,
    labels_of,
    labels_of_host,
    notes_of,
    together,
    value_of,
)
from iolab.recordings.ask.language.fields import near
from iolab.recordings.ask.question import columns_of, round_interval
from iolab.recordings.heatmap import overlays
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording

from ..base.models import Value, VersionedModel
from ..base.store import LIVE_NS, Store
from .listing import is_live
from .parameters import Parameter, Words, count, number, one_of, span_of, text

Measure = Literal["p99", "iops", "utilization", "losses"]


class FleetRecording(Model):
    """A recording of a host, with the time that it covers in ns."""

    name: str
    first_ns: int
    last_ns: int


class FleetHost(Model):
    """A row: the values of a host, or of all hosts with a value of a label.

    Values are by column, null where nothing was recorded. The name of the host, or the value, is in
    `host`, and the number of hosts in `hosts`. Labels and recordings are those of one host,
    recordings in order of time. The problem says why there are no values, else it is empty.
    """

    host: str
    hosts: int
    labels: dict[str, str]
    recordings: list[FleetRecording]
    values: list[Value]
    problem: str


class FleetAnswer(VersionedModel):
    """A measure of all hosts of an archive, or of a folder of recordings.

    All URLs and folders that are served are in `archives`, and names of the hosts' labels in
    `labels`. `live`: a recording of the folder grows. What has
    a row is in `by`: `host` or a label.

    p99 is in ns, iops in I/Os a second, utilization a share from 0 to 1. Losses are the number of
    records that were lost. Of several hosts, iops and losses are sums. p99 is of all their I/Os,
    and utilization is the largest.

    Column c begins at t0_ns + c * interval_ns. The archive covers first_ns to last_ns. The clock
    says whether times count from 1970.
    """

    archive: str
    archives: list[str]
    whole: str
    live: bool
    by: str
    labels: list[str]
    measure: Measure
    unit: str
    clock: Literal["realtime", "trace"]
    t0_ns: int
    interval_ns: int
    columns: int
    first_ns: int
    last_ns: int
    hosts: list[FleetHost]
    notes: list[str]


COLUMNS = 120
MOST_COLUMNS = 400
SHARE = 0.99
STATISTICS: Mapping[Measure, str] = {
    "p99": "io.ops[latency]",
    "iops": "io.ops",
    "utilization": "io.utilization",
    "losses": "io.ops",
}
UNITS: Mapping[Measure, str] = {"p99": "ns", "iops": "/s", "utilization": "share", "losses": ""}

ARCHIVE = Parameter(
    "archive",
    "URL of an archive that is served, or path of a folder of recordings. Default: the first.",
    text(),
)
MEASURE = Parameter("measure", "What is shown of each host.", one_of(*get_args(Measure)))
BY = Parameter("rows", "What has a row: host, or a label. Default: host.", text())
FLEET_COLUMNS = Parameter("columns", "Columns of time, about.", count(MOST_COLUMNS, COLUMNS))


def fleet(store: Store, words: Words) -> FleetAnswer:
    """A measure of all hosts. NotServed where no such archive is served."""
    fleets = store.fleets()
    place = words.get("archive", next(iter(fleets), ""))
    measure = _measure(words.get("measure", "p99"))
    opened = store.open_fleet(place)
    spans = {recording.path: span for recording, span in opened.values()}
    names = {recording.path: name for name, (recording, _) in opened.items()}
    recordings = [recording for recording, _ in opened.values()]
    if not recordings:
        raise UsageError("holds no I/Os", where=place, hint="iolab archive push fills an archive")
    clock = recordings[0].facts.clock
    recordings = [item for item in recordings if item.facts.clock == clock]
    ends = (
        min(spans[item.path][0] for item in recordings),
        max(spans[item.path][1] for item in recordings),
    )
    growing = [
        item for item in recordings if not item.in_archive and is_live(store, names[item.path])
    ]
    if growing:
        # the I/Os of the last moments do not come from all hosts at one time
        ends = ends[0], max(ends[0], ends[1] - LIVE_NS)
    from_ns, until_ns = span_of(words, ends)
    span = from_ns, ends[1] + 1 if growing and until_ns is None else until_ns
    grid = _Grid(span, ends, number(words, "columns", COLUMNS, 1, MOST_COLUMNS))
    labels = labels_of(recordings)
    field = words.get("rows", HOST)
    if field not in (HOST, *labels):
        raise UsageError(f"no host has the label '{field[:40]}'", hint=near(field, [HOST, *labels]))
    rows, notes = _rows(recordings, field, measure, grid)
    hosts = []
    for value, (items, values, problem) in sorted(rows.items()):
        of_host = [
            FleetRecording(
                name=names[item.path], first_ns=spans[item.path][0], last_ns=spans[item.path][1]
            )
            for item in sorted(items, key=lambda item: spans[item.path])
        ]
        hosts.append(
            FleetHost(
                host=value,
                hosts=len({value_of(item, HOST) for item in items}),
                labels=dict(labels_of_host(items[0])) if field == HOST else {},
                recordings=of_host if field == HOST else [],
                values=numbers(values),
                problem=problem,
            )
        )
    return FleetAnswer(
        archive=place,
        archives=list(fleets),
        whole=next(name for name, path in store.fleet_names().items() if path == place),
        live=bool(growing),
        by=field,
        labels=labels,
        measure=measure,
        unit=UNITS[measure],
        clock=clock,
        t0_ns=grid.t0_ns,
        interval_ns=grid.interval_ns,
        columns=grid.columns,
        first_ns=ends[0],
        last_ns=ends[1],
        hosts=hosts,
        notes=list(notes)[:20],
    )


def _measure(name: str) -> Measure:
    for measure in STATISTICS:
        if measure == name:
            return measure
    raise UsageError(
        f"there is no measure '{name[:40]}'", hint=f"there are {', '.join(STATISTICS)}"
    )


class _Grid:
    """The columns of an answer.

    Attributes:
        span: of the question, None where it is open. interval_ns, t0_ns, columns: as in the answer.
    """

    def __init__(
        self, span: tuple[int | None, int | None], ends: tuple[int, int], columns: int
    ) -> None:
        """`ends`: first and last ns of the archive. UsageError where the span is empty."""
        self.span = span
        first = ends[0] if span[0] is None else span[0]
        last = ends[1] if span[1] is None else span[1] - 1
        if first > last:
            raise UsageError("the time ends before it begins", where="to")
        self.interval_ns = round_interval(first, last, columns)
        self.t0_ns = first // self.interval_ns * self.interval_ns
        self.columns = columns_of(self.t0_ns, last, self.interval_ns)

    def empty(self) -> Floats:
        """A row without values."""
        return np.full(self.columns, np.nan)

    def place(self, values: Floats, t0_ns: int) -> Floats:
        """A row with values that begin at a time."""
        row = self.empty()
        first = (t0_ns - self.t0_ns) // self.interval_ns
        low, high = max(0, first), min(self.columns, first + len(values))
        if low < high:
            row[low:high] = values[low - first : high - first]
        return row


def _rows(
    recordings: Sequence[Recording], field: str, measure: Measure, grid: _Grid
) -> tuple[dict[str, tuple[list[Recording], Floats, str]], dict[str, None]]:
    """(recordings, values, why there are none) for each value of a field, and notes. Levels of
    several recordings are not added: the largest is shown."""
    statistic = FleetStatistic.parse(STATISTICS[measure]).statistic
    from_ns, until_ns = grid.span
    groups: dict[str, list[Recording]] = {}
    for item in recordings:
        groups.setdefault(value_of(item, field), []).append(item)
    parts, refusals = ask_each(
        recordings, statistic, from_ns=from_ns, until_ns=until_ns, interval_ns=grid.interval_ns
    )
    problems = {value_of(item, field): error.message for item, error in refusals}
    by_value: dict[str, list[Part]] = {}
    for part in parts:
        by_value.setdefault(value_of(part.recording, field), []).append(part)
    rows: dict[str, tuple[list[Recording], Floats, str]] = {}
    notes: dict[str, None] = {}
    for value, items in groups.items():
        row, own = grid.empty(), by_value.get(value, [])
        for group in [own] if statistic.entry.additive and own else [[part] for part in own]:
            answer = together(group)
            row = np.fmax(row, grid.place(_values(answer, measure), answer.t0_ns))
            notes |= {f"{value}: {note}": None for note in notes_of(answer)}
        rows[value] = items, row, "" if np.isfinite(row).any() else problems.get(value, "")
    return rows, notes


def _values(answer: Answer, measure: Measure) -> Floats:
    if isinstance(answer, HeatCounts):
        return cast("Floats", overlays.lines(answer, max(1, answer.columns), (SHARE,))[0])
    assert isinstance(answer, Series)
    if measure != "losses":
        return answer.values
    lost = np.where(np.isnan(answer.values), np.nan, 0.0)
    for column, _, amount in answer.lost_at:
        if 0 <= column < len(lost):
            # of an unknown number at least one was lost
            lost[column] = np.nan_to_num(lost[column]) + max(1, amount)
    return lost
