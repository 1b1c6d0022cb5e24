# SPDX-License-Identifier: Apache-2.0
"""Questions to the recordings of many hosts: the sum of their answers, or an answer for each host.

`host` and labels of hosts are fields of such a question, as a condition and as a breakdown next to
another one: `io.ops[host]`, `io.ops[latency][rack]`, `io.bytes[host=db1,db2][process]`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from iolab.base.errors import IolabError, UsageError

from ..archive.recordings import ArchivedEvents
from ..store.base.counts import HeatCounts, alike, merge, sum_losses
from ..store.base.intervals import join
from ..store.read.recording import Recording
from .answers.answers import Answer, Floats, Series, Stack
from .attribution import Rectangle, Who, joined_who, who
from .engine.engine import Joint
from .engine.snapshot import Losses, Span
from .host_notes import clocks_of_hosts, join_notes, losses_of_hosts
from .kept.recorded import span_of as recorded_span
from .language.fields import near
from .query import query, with_notes
from .question import (
    COLUMNS,
    Filter,
    Question,
    Statistic,
    columns_of,
    parse,
    round_interval,
    split_field,
)
from .slowest import Columns
from .tiers.archive_engines import read_together
from .tiers.events import frame_of

HOST = "host"
NO_VALUE = "-"
"""The value of a label that a host lacks."""
MOST_VALUES = 1 << 20
"""Values of a dimension that are read of each recording, so that their sums are exact."""

TOGETHER = 128
"""Recordings that are asked by one statement. Their answers are in memory at once."""

T = TypeVar("T")
R = TypeVar("R", bound=Recording)


class HostCondition(NamedTuple):
    """A condition on hosts. field: `host` or a label. sign: "=" or "!="."""

    field: str
    sign: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class FleetStatistic:
    """A statistic of many hosts.

    Attributes:
        statistic: without hosts and labels. conditions: on hosts and labels. by: the field that has
        an answer for each of its values, `host` or a label; None for one answer.
    """

    statistic: Statistic
    conditions: tuple[HostCondition, ...] = ()
    by: str | None = None

    @classmethod
    def parse(cls, text: str, labels: Collection[str] = ()) -> FleetStatistic:
        """labels: names of labels that hosts have. UsageError as `names.parse`."""
        rest = text
        conditions: list[HostCondition] = []
        breakdowns: list[str] = []
        for field in (HOST, *sorted(labels)):
            rest, brackets = split_field(rest, field)
            for sign, values in brackets:
                if sign not in ("", "=", "!="):
                    raise UsageError(
                        f"'{field}' is a name: it can't be compared with '{sign}'",
                        where=f"statistic '{text}'",
                        hint=f"write [{field}=NAME]",
                    )
                if sign:
                    conditions.append(HostCondition(field, sign, values))
                else:
                    breakdowns.append(field)
        if len(set(breakdowns)) > 1:
            raise UsageError(
                f"hosts are broken down by {' and by '.join(breakdowns)}",
                where=f"statistic '{text}'",
                hint=f"narrow one of them: [{breakdowns[0]}=NAME]",
            )
        by = breakdowns[0] if breakdowns else None
        return cls(parse(rest), tuple(conditions), by)

    def as_one(self) -> Statistic:
        """One statistic with conditions on hosts and the breakdown by hosts in it, as a page names it.
        UsageError where it has another breakdown: the answer would be one for each host."""
        if self.by is not None and self.statistic.breakdown is not None:
            raise UsageError(
                f"a statistic has one breakdown here, and '{self.statistic.breakdown}' and "
                f"'{self.by}' are two",
                where=f"statistic '{self.statistic}'",
                hint=f"narrow one of them, such as [{self.by}=NAME]",
            )
        conditions = (Filter(field, sign, values) for field, sign, values in self.conditions)
        return replace(
            self.statistic,
            filters=(*conditions, *self.statistic.filters),
            breakdown=self.by or self.statistic.breakdown,
        )

    @classmethod
    def of(cls, statistic: Statistic, labels: Collection[str] = ()) -> FleetStatistic:
        """The statistic of which `as_one` gives this one."""
        fields = {HOST, *labels}
        return cls(
            replace(
                statistic,
                filters=tuple(item for item in statistic.filters if item.field not in fields),
                breakdown=None if statistic.breakdown in fields else statistic.breakdown,
            ),
            tuple(
                HostCondition(item.field, item.sign, tuple(map(str, item.values)))
                for item in statistic.filters
                if item.field in fields
            ),
            statistic.breakdown if statistic.breakdown in fields else None,
        )

    def select(self, recordings: Sequence[R]) -> list[R]:
        """Recordings of the hosts that meet the conditions. UsageError where a name is unknown or
        none is left."""
        remaining = list(recordings)
        for field, sign, values in self.conditions:
            field_values = sorted({value_of(recording, field) for recording in recordings})
            unknown = [value for value in values if value not in field_values and sign == "="]
            if unknown:
                raise UsageError(
                    f"there is no {field} '{unknown[0]}'", hint=near(unknown[0], field_values)
                )
            remaining = [
                recording
                for recording in remaining
                if (value_of(recording, field) in values) == (sign == "=")
            ]
        if not remaining:
            raise UsageError("no host meets the conditions", hint="leave a condition out")
        return remaining


def value_of(recording: Recording, field: str) -> str:
    """The host of a recording, or the value of a label of its host; NO_VALUE without one."""
    if field == HOST:
        return host_of(recording) or NO_VALUE
    return labels_of_host(recording).get(field, NO_VALUE)


def host_of(recording: Recording) -> str:
    """The host of a recording: outside an archive, as it was named to reach it; "" if unknown."""
    named = None if recording.in_archive else recording.facts.origin.get("host")
    return named if isinstance(named, str) and named else recording.facts.host


def labels_of_host(recording: Recording) -> Mapping[str, str]:
    """The labels of the host of a recording; a recording outside an archive has none."""
    return recording.archived.labels if isinstance(recording, ArchivedEvents) else {}


def labels_of(recordings: Sequence[Recording]) -> list[str]:
    """Names of the labels that hosts have."""
    return sorted({name for recording in recordings for name in labels_of_host(recording)})


def ask_fleet(
    recordings: Sequence[Recording],
    asked: FleetStatistic,
    *,
    from_ns: int | None = None,
    until_ns: int | None = None,
    interval_ns: int | None = None,
    columns: int = COLUMNS,
    source: str | None = None,
) -> Answer | dict[str, Answer]:
    """The answer of all recordings together, each as `query` gives it. With a breakdown by host or
    label and another one: the answer of each host, or of all hosts with a value of the label.

    Rates of recordings add up; a column has no value where none of them recorded. Recordings
    outside the span, and those that can't answer, are left out, the latter with a note.
    UsageError where none can.
    """
    selected = _within(asked.select(recordings), from_ns, until_ns)
    if len(selected) > 1 and interval_ns is None:
        interval_ns = _interval(selected, (from_ns, until_ns), columns)
    parts, refusals = ask_each(
        selected,
        asked.statistic,
        from_ns=from_ns,
        until_ns=until_ns,
        interval_ns=interval_ns,
        columns=columns,
        source=source,
    )
    notes = _notes_of_recordings([part.recording for part in parts], refusals)
    if asked.by is None:
        return with_notes(together(parts), notes)
    groups: dict[str, list[Part]] = {}
    for part in parts:
        groups.setdefault(value_of(part.recording, asked.by), []).append(part)
    answers = {value: together(of_value) for value, of_value in groups.items()}
    if asked.statistic.breakdown is None:
        series = {value: answer for value, answer in answers.items() if isinstance(answer, Series)}
        lost = losses_of_hosts({value: [answer] for value, answer in series.items()})
        return with_notes(_stack_by(asked.by, series, _covered_ns(parts)), (*lost, *notes))
    return {value: with_notes(answer, notes) for value, answer in answers.items()}


class Part(NamedTuple):
    """The answer of a recording. recorded: when it recorded what the answer is of."""

    recording: Recording
    answer: Answer
    recorded: list[Span]


Refusal = tuple[Recording, IolabError]
"""A recording that can't answer, and why."""


def ask_each(
    recordings: Sequence[Recording],
    statistic: Statistic,
    *,
    from_ns: int | None,
    until_ns: int | None,
    interval_ns: int | None,
    columns: int = COLUMNS,
    source: str | None = None,
) -> tuple[list[Part], list[Refusal]]:
    """The answer of each recording, as `query` gives it. Their data is read together."""

    def ask(recording: Recording) -> Answer:
        return query(
            recording,
            statistic,
            from_ns=from_ns,
            until_ns=until_ns,
            interval_ns=interval_ns,
            columns=columns,
            source=source,
        )

    answers, refusals = _each(recordings, ask)
    return [
        Part(recording, answer, _recorded_spans(recording, answer, statistic, (from_ns, until_ns)))
        for recording, answer in answers
    ], refusals


def who_of_fleet(
    recordings: Sequence[Recording],
    asked: FleetStatistic,
    y: str,
    rectangle: Rectangle,
    *,
    around: tuple[int | None, int | None] = (None, None),
    during: Columns | None = None,
    is_own_included: bool = True,
    source: str | None = None,
    top: int,
) -> Who:
    """Who made the I/Os inside a rectangle, of all recordings together; `host` is a dimension.
    Arguments as in `attribution.who`."""
    selected = _within(asked.select(recordings), rectangle.from_ns, rectangle.until_ns)
    answers, refusals = _each(
        selected,
        lambda recording: who(
            recording,
            y,
            rectangle,
            filters=asked.statistic.filters,
            entry=asked.statistic.entry,
            around=around,
            during=during,
            is_own_included=is_own_included,
            source=source,
            top=MOST_VALUES,
        ),
    )
    notes = _notes_of_recordings([recording for recording, _ in answers], refusals)
    parts = [(value_of(recording, HOST), answer) for recording, answer in answers]
    named = join_notes((host, part.notes) for host, part in parts)
    return replace(joined_who(parts, top), notes=(*named, *notes))


def _within(
    recordings: Sequence[Recording], from_ns: int | None, until_ns: int | None
) -> list[Recording]:
    """Recordings that overlap a span. UsageError where they can't be asked together."""
    clocks = {recording.facts.clock for recording in recordings}
    if len(clocks) > 1:
        raise UsageError(
            "recordings with a clock of their own can't be asked together with others",
            hint="choose hosts with [host=NAME]",
        )
    overlapping = [
        recording
        for recording in recordings
        if (span := _span_of(recording)) is not None
        and (until_ns is None or span[0] < until_ns)
        and (from_ns is None or span[1] >= from_ns)
    ]
    if not overlapping:
        raise UsageError(
            "no recording overlaps this time",
            hint="ask for another one; iolab archive list and iolab show say when it was recorded",
        )
    return overlapping


def _span_of(recording: Recording) -> Span | None:
    """(first, last) ns of a recording; None where it has nothing yet."""
    if isinstance(recording, ArchivedEvents):
        first_ns = recording.archived.first_ns
        # what age deleted belongs to its time
        existing = recording.span()
        return None if first_ns is None else (first_ns, existing[1] if existing else first_ns)
    return recorded_span(recording)


def _interval(
    recordings: Sequence[Recording], span: tuple[int | None, int | None], columns: int
) -> int:
    """A length of columns that all can have."""
    spans = [_span_of(recording) or (0, 0) for recording in recordings]
    first = span[0] if span[0] is not None else min(first for first, _ in spans)
    last = span[1] - 1 if span[1] is not None else max(last for _, last in spans)
    return round_interval(first, max(first, last), columns)


def _each(
    recordings: Sequence[Recording], ask: Callable[[Recording], T]
) -> tuple[list[tuple[Recording, T]], list[Refusal]]:
    """The answer of each recording."""
    answers: list[tuple[Recording, T]] = []
    refusals: list[Refusal] = []
    for first in range(0, len(recordings), TOGETHER):
        group = recordings[first : first + TOGETHER]
        joint = Joint([partial(ask, recording) for recording in group])
        for recording, outcome in zip(group, joint.answers(read_together), strict=True):
            if isinstance(outcome, IolabError):
                refusals.append((recording, outcome))
            else:
                answers.append((recording, outcome))
    return answers, refusals


def _notes_of_recordings(
    answered: Sequence[Recording], refusals: Sequence[Refusal]
) -> tuple[str, ...]:
    """Notes on recordings that can't answer, and on those that overlap. The error of the first
    where none answered."""
    if not answered:
        raise refusals[0][1]
    notes = [
        f"{host_of(recording) or recording.path.name} is left out: {error.message}"
        for recording, error in refusals[:3]
    ]
    if len(refusals) > 3:
        rest = len(refusals) - 3
        notes.append(f"{rest} more {'recording is' if rest == 1 else 'recordings are'} left out")
    hosts = {host_of(recording): recording for recording in answered}
    return (*notes, *_overlaps(answered), *clocks_of_hosts(hosts))


def _overlaps(recordings: Sequence[Recording]) -> Iterator[str]:
    """Notes on recordings of a host that cover the same time."""
    ends: dict[str, int] = {}
    for recording in sorted(recordings, key=lambda item: (_span_of(item) or (0, 0))[0]):
        host, span = host_of(recording), _span_of(recording)
        if span is None:
            continue
        if host and span[0] <= ends.get(host, -(2**63)):
            yield f"recordings of {host} overlap: the same I/Os may be counted twice"
        ends[host] = max(span[1], ends.get(host, span[1]))


def _recorded_spans(
    recording: Recording,
    answer: Answer,
    statistic: Statistic,
    span: tuple[int | None, int | None],
) -> list[Span]:
    """When a recording recorded what an answer is of."""
    if isinstance(answer, HeatCounts):
        return []
    counter = statistic.entry.counter
    if counter is not None and answer.source == counter.source:
        return [(answer.first_ns, answer.until_ns)]
    question = Question.of(statistic, span, answer.interval_ns, 1, answer.source)
    recorded = frame_of(recording, question, with_deleted=False).window.recorded
    return [(answer.first_ns, answer.until_ns)] if recorded is None else list(recorded)


def _covered_ns(parts: Sequence[Part]) -> int:
    return sum(
        until - first for first, until in join(span for _, _, spans in parts for span in spans)
    )


def together(parts: Sequence[Part]) -> Answer:
    """The sum of the answers of recordings. Notes and losses are named with their hosts."""
    if len(parts) == 1:
        return parts[0][1]
    by_host: dict[str, list[Answer]] = {}
    for part in parts:
        by_host.setdefault(host_of(part.recording), []).append(part.answer)
    notes = join_notes(
        (host, notes_of(answer)) for host, answers in by_host.items() for answer in answers
    )
    return _replace_notes(_sum(parts), (*notes, *losses_of_hosts(by_host)))


def notes_of(answer: Answer) -> tuple[str, ...]:
    """The notes of an answer."""
    return answer.assumptions if isinstance(answer, HeatCounts) else answer.notes


def _replace_notes(answer: Answer, notes: tuple[str, ...]) -> Answer:
    if isinstance(answer, HeatCounts):
        return replace(answer, assumptions=notes)
    return replace(answer, notes=notes)


def _sum(parts: Sequence[Part]) -> Answer:
    maps = [answer for _, answer, _ in parts if isinstance(answer, HeatCounts)]
    if maps:
        return merge(alike(maps))
    covered_ns = _covered_ns(parts)
    series = [answer for _, answer, _ in parts if isinstance(answer, Series)]
    if series:
        return _sum_series(series, covered_ns)
    return _sum_stacks([answer for _, answer, _ in parts if isinstance(answer, Stack)], covered_ns)


def _sum_series(series: Sequence[Series], covered_ns: int) -> Series:
    _check_sum(series[0])
    first = _common(series, covered_ns)
    values = _sum_rates([_align(answer.values, answer, first, series) for answer in series])
    return replace(first, values=values, total=sum(answer.total for answer in series), average=None)


def _sum_stacks(stacks: Sequence[Stack], covered_ns: int) -> Stack:
    _check_sum(stacks[0])
    first = _common(stacks, covered_ns)
    totals: dict[str, int] = {}
    rows: dict[str, list[Floats]] = {}
    for stack in stacks:
        for key, values, total in zip(stack.keys, stack.values, stack.totals, strict=True):
            totals[key] = totals.get(key, 0) + total
            rows.setdefault(key, []).append(_align(values, stack, first, stacks))
    keys = sorted(totals, key=lambda key: (-totals[key], key))
    # where a recording lacks a key that another one has, its rate was 0
    zeros = [
        _align(np.where(np.isnan(_any_row(stack)), np.nan, 0.0), stack, first, stacks)
        for stack in stacks
    ]
    base = _sum_rates(zeros)
    rests = [_align(stack.rest, stack, first, stacks) for stack in stacks if stack.rest is not None]
    return replace(
        first,
        keys=keys,
        values=np.array([_sum_rates([base, *rows[key]]) for key in keys]).reshape(
            len(keys), len(base)
        ),
        totals=[totals[key] for key in keys],
        rest=_sum_rates(rests) if rests else None,
        rest_keys=sum(stack.rest_keys for stack in stacks),
        rest_total=sum(stack.rest_total for stack in stacks),
        averages=None,
        average=None,
        whole=None
        if all(stack.whole is None for stack in stacks)
        else sum(stack.total for stack in stacks),
    )


def _any_row(stack: Stack) -> Floats:
    """Values of some key: all lack the same columns."""
    if len(stack.keys):
        row: Floats = stack.values[0]
        return row
    return np.full(stack.values.shape[1], np.nan)


def _check_sum(answer: Series | Stack) -> None:
    if not answer.statistic.entry.additive:
        raise UsageError(
            f"{answer.statistic.entry.name} has no sum over several recordings",
            hint="choose a host with [host=NAME], or break it down with [host]",
        )


def _stack_by(field: str, hosts: Mapping[str, Series], covered_ns: int) -> Stack:
    """A stack with a key for each host or value of a label."""
    series = list(hosts.values())
    first = _common(series, covered_ns)
    keys = sorted(hosts, key=lambda host: (-hosts[host].total, host))
    is_additive = first.statistic.entry.additive
    averages = None if is_additive else [hosts[host].mean for host in keys]
    common = {
        name: getattr(first, name)
        for name in (
            "unit", "t0_ns", "interval_ns", "first_ns", "until_ns", "covered_ns", "source",
            "lost_at", "losses",
        )
    }  # fmt: skip
    return Stack(
        statistic=replace(first.statistic, breakdown=field),
        **common,
        notes=join_notes((host, hosts[host].notes) for host in keys),
        keys=keys,
        values=np.array([_align(hosts[host].values, hosts[host], first, series) for host in keys]),
        totals=[hosts[host].total for host in keys],
        rest=None,
        rest_keys=0,
        rest_total=0,
        averages=averages,
        average=None if averages is None else float(np.mean(averages)),
        adds_up=is_additive,
    )


_A = TypeVar("_A", Series, Stack)


def _common(answers: Sequence[_A], covered_ns: int) -> _A:
    """The first answer with what all have in common: time, notes, losses."""
    first = answers[0]
    t0_ns = min(answer.t0_ns for answer in answers)
    known_losses = [answer.losses for answer in answers if answer.losses is not None]
    losses = (
        Losses(
            sum(part.lost for part in known_losses),
            sum(part.damaged for part in known_losses),
            sum(part.unpaired for part in known_losses),
            tuple(timed for part in known_losses for timed in part.timed),
            frozenset(kind for part in known_losses for kind in part.unknown),
        )
        if known_losses
        else None
    )
    return replace(
        first,
        t0_ns=t0_ns,
        first_ns=min(answer.first_ns for answer in answers),
        until_ns=max(answer.until_ns for answer in answers),
        covered_ns=covered_ns,
        source=", ".join(dict.fromkeys(answer.source for answer in answers)),
        notes=tuple(dict.fromkeys(note for answer in answers for note in answer.notes)),
        losses=losses,
        lost_at=sum_losses(
            (column + (answer.t0_ns - t0_ns) // answer.interval_ns, kind, count)
            for answer in answers
            for column, kind, count in answer.lost_at
        ),
    )


def _align(
    values: Floats, answer: Series | Stack, first: Series | Stack, answers: Sequence[Series | Stack]
) -> Floats:
    """Values of an answer in the columns that all of them have together."""
    until_ns = max(answer.until_ns for answer in answers)
    columns = columns_of(first.t0_ns, until_ns - 1, first.interval_ns)
    aligned = np.full(columns, np.nan)
    start = (answer.t0_ns - first.t0_ns) // answer.interval_ns
    aligned[start : start + len(values)] = values[: columns - start]
    return aligned


def _sum_rates(parts: Sequence[Floats]) -> Floats:
    """The sum of rates; nan where none is known."""
    stacked = np.array(parts)
    total: Floats = np.where(np.isnan(stacked).all(axis=0), np.nan, np.nansum(stacked, axis=0))
    return total
