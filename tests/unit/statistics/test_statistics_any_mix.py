# SPDX-License-Identifier: Apache-2.0
"""Any question to a recording of any history equals a count of its events by hand: maps with their
percentiles, numbers, and whose the I/Os of a rectangle are."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.attribution import Rectangle, who
from iolab.recordings.ask.engine.cells import lower_bounds
from iolab.recordings.ask.query import heat, query
from iolab.recordings.ask.question import Question as AskedQuestion
from iolab.recordings.ask.question import parse
from iolab.recordings.heatmap.overlays import lines
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.grids import LogLinear
from iolab.recordings.store.base.metadata import read_facts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write import retention
from iolab.recordings.store.write.writer import RecordingWriter
from support.depth import depth
from support.joined import shorten_joins
from support.recordings import SECOND, START, events

ROWS, LENGTH = 150, 4 * SECOND
"""Rows and time of a segment."""
SHARES = (0.5, 0.9, 0.99)
DELETED = "are no longer kept"
"""What an answer that lacks deleted events says."""

Booleans = npt.NDArray[np.bool_]

CONDITIONS: dict[str, tuple[str, str, Any]] = {
    "op=read": ("op", "==", ("read",)),
    "op=write,trim": ("op", "==", ("write", "trim")),
    "op!=read": ("op", "!=", ("read",)),
    "device=sda": ("device", "==", ("sda",)),
    "device=unknown": ("device", "==", (None,)),
    "device!=sda,unknown": ("device", "!=", ("sda", None)),
    "process=fio": ("process", "==", ("fio",)),
    "process!=fio": ("process", "!=", ("fio",)),
}
"""Conditions on names, as they are asked and as they are counted by hand."""
OF_MAPS = ("op", "device")
VALUES = {"latency": "latency_ns", "size": "size_bytes", "offset": "offset_bytes"}


class History:
    """A recording and all events that it ever had."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self._chance = random.Random(seed)
        self._is_late = bool(seed % 2)
        self.segments: list[pa.RecordBatch] = []
        self.deleted = 0
        self._mapless: set[int] = set()
        RecordingWriter.create(
            path, host="", clock="realtime", origin={"kind": "import"}, live=False
        ).close()

    def batch(self) -> pa.RecordBatch:
        """Events that follow the others; some are late, so that segments overlap in time."""
        number = len(self.segments)
        self.segments.append(
            events(
                ROWS,
                number,
                start_ns=START + number * LENGTH,
                per_s=ROWS * SECOND // LENGTH,
                backwards=self._is_late and number > 0,
            )
        )
        return self.segments[-1]

    def grow(self) -> None:
        with RecordingWriter.reopen(self.path, live=False) as writer:
            writer.append_segment([self.batch()])

    def grow_unsealed(self) -> None:
        """Append events and leave them unsealed, as after a kill."""
        writer = RecordingWriter.reopen(self.path, live=False)
        writer.append_events(self.batch())
        writer._lock.close()

    def delete(self) -> None:
        """Delete the events of the oldest segment; its maps remain. A segment without a map keeps
        its events, as both would be lost."""
        if self.deleted + 1 in self._mapless or self.deleted > len(self.segments) - 3:
            return
        self.deleted += 1
        facts = read_facts(self.path)
        rows = self.segments[: self.deleted]
        facts.dropped = {
            "through": self.deleted,
            "until_ns": max(max(batch["time_ns"].to_pylist()) for batch in rows),
            "segments": self.deleted,
            "events": {"block": sum(sum(batch["count"].to_pylist()) for batch in rows)},
            "bytes": 1,
        }
        facts.write(self.path)
        retention.finish_dropping(self.path, facts)

    def join(self) -> None:
        """Join the maps of deleted segments."""
        with RecordingWriter.reopen(self.path, live=False) as writer:
            writer.map_joiner.join()

    def lose_map(self) -> None:
        """Delete a default map of a segment that has its events."""
        number = self._chance.randint(self.deleted + 2, len(self.segments))
        self._mapless.add(number)
        name = self._chance.choice(("latency", "size", "offset"))
        (self.path / f"histograms/1s/io.{name}/{number:06}.parquet").unlink(missing_ok=True)

    def columns(self) -> dict[str, Any]:
        """All events by column, with `number`, that of their segment."""
        table = pa.Table.from_batches(self.segments)
        columns: dict[str, Any] = {
            name: np.array(table[name].to_pylist(), dtype=object)
            for name in ("op", "device", "process")
        }
        for name in ("time_ns", "count"):
            columns[name] = table[name].to_numpy().astype(np.int64)
        for name in VALUES.values():
            values = table[name].to_pylist()
            columns[name] = np.array([0 if value is None else value for value in values])
            columns[f"has {name}"] = np.array([value is not None for value in values])
        columns["number"] = np.arange(len(table)) // ROWS + 1
        return columns


def meets(columns: dict[str, Any], conditions: list[str]) -> Booleans:
    """Rows that meet conditions."""
    rows = np.ones(len(columns["count"]), dtype=bool)
    for condition in conditions:
        field, sign, values = CONDITIONS[condition]
        is_one = np.array([value in values for value in columns[field]])
        rows &= is_one if sign == "==" else ~is_one
    return rows


class Question:
    """A random question about a span of a history."""

    def __init__(self, chance: random.Random, history: History) -> None:
        end = START + len(history.segments) * LENGTH
        self.conditions = chance.sample(sorted(CONDITIONS), chance.choice((0, 0, 1, 2)))
        self.is_cut = chance.random() < 0.3
        step = SECOND // 7 if self.is_cut else SECOND
        ends = sorted(chance.sample(range(START, end + 1, step), 2))
        self.span = (
            ends[0] if chance.random() < 0.6 else None,
            ends[1] if chance.random() < 0.6 else None,
        )
        self.interval_ns = chance.choice((SECOND, 3 * SECOND, 10 * SECOND, 300_000_000))
        if chance.random() < 0.2:
            self.interval_ns = 20 * SECOND
        of_names = {CONDITIONS[condition][0] for condition in self.conditions}
        self.is_of_maps = (
            of_names <= set(OF_MAPS)
            and self.interval_ns % SECOND == 0
            and all(end_ns is None or end_ns % SECOND == 0 for end_ns in self.span)
        )
        """Whether default maps know all that is asked."""

    @property
    def statistic(self) -> str:
        return "io.ops" + "".join(f"[{condition}]" for condition in self.conditions)

    def within(self, columns: dict[str, Any]) -> Booleans:
        """Rows in the span."""
        from_ns, until_ns = self.span
        rows = np.ones(len(columns["count"]), dtype=bool)
        if from_ns is not None:
            rows &= columns["time_ns"] >= from_ns
        if until_ns is not None:
            rows &= columns["time_ns"] < until_ns
        return rows

    def is_before_all(self, history: History) -> bool:
        """Whether it ends before all events that remain, which is an error for events alone."""
        columns = history.columns()
        first_ns = columns["time_ns"][columns["number"] > history.deleted].min()
        return self.span[1] is not None and self.span[1] <= first_ns

    def starts(self, columns: dict[str, Any]) -> Any:
        """Starts of the columns of time of rows."""
        return columns["time_ns"] // self.interval_ns * self.interval_ns


def shown_rows(
    question: Question, history: History, counted: Booleans, total: int, notes: Any
) -> Booleans:
    """Rows in the span that an answer with so many I/Os counts of `counted`: all, or those that
    were not deleted if a note states it."""
    columns = history.columns()
    within = question.within(columns)
    remaining: Booleans = within & (columns["number"] > history.deleted)
    if question.is_of_maps or total == int(columns["count"][within & counted].sum()):
        return within
    assert (within & ~remaining).any()
    assert any(DELETED in note for note in notes)
    return remaining


def check_map(question: Question, history: History, y: str, weight: Any) -> None:
    columns = history.columns()
    answer = (
        heat(
            Recording(history.path),
            y,
            AskedQuestion(
                span=question.span,
                interval_ns=question.interval_ns,
                weight=weight,
            ),
            where=None,
        )
        if not question.conditions
        else query(
            Recording(history.path),
            f"{question.statistic}[{y}]",
            from_ns=question.span[0],
            until_ns=question.span[1],
            interval_ns=question.interval_ns,
        )
    )
    assert isinstance(answer, HeatCounts)
    column = VALUES[y]
    has_value = columns[f"has {column}"]
    if answer.weight == "time":
        has_value = has_value & columns["has latency_ns"]
    total = answer.events + answer.without_y + answer.filtered
    question.is_of_maps &= y == "latency" or answer.weight == "count"
    everything = np.ones(len(columns["count"]), dtype=bool)
    shown = shown_rows(question, history, everything, total, answer.assumptions)
    chosen = shown & meets(columns, question.conditions)
    count = columns["count"]
    assert answer.filtered == count[shown & ~chosen].sum()
    assert answer.without_y == count[chosen & ~has_value].sum()
    assert answer.events == count[chosen & has_value].sum()
    rows = chosen & has_value
    amount = count * columns["latency_ns"] if answer.weight == "time" else count
    values = columns[column].astype(np.uint64)
    if isinstance(answer.grid, LogLinear):
        index = np.searchsorted(lower_bounds(answer.grid.bits), values, side="right") - 1
    else:
        index = (values.astype(np.int64) - answer.grid.low) // answer.grid.width
    expected: dict[tuple[int, int], int] = {}
    starts = question.starts(columns)
    for start, bucket, number in zip(starts[rows], index[rows], amount[rows], strict=True):
        key = int(start), int(bucket)
        expected[key] = expected.get(key, 0) + int(number)
    starts_of_cells = answer.t0_ns + answer.column * answer.interval_ns
    cells = zip(starts_of_cells.tolist(), answer.index.tolist(), strict=True)
    counted = dict(zip(cells, answer.count.tolist(), strict=True))
    assert counted == {key: number for key, number in expected.items() if number}
    if answer.weight == "count" and isinstance(answer.grid, LogLinear):
        check_percentiles(answer, values[rows], starts[rows], count[rows])


def check_percentiles(answer: HeatCounts, values: Any, starts: Any, count: Any) -> None:
    """A percentile is the largest value of the bucket that holds the I/O of its rank."""
    assert isinstance(answer.grid, LogLinear)
    bounds = lower_bounds(answer.grid.bits)
    drawn = lines(answer, answer.columns, SHARES)
    for start in np.unique(starts).tolist():
        ordered = np.sort(np.repeat(values[starts == start], count[starts == start]))
        for number, share in enumerate(SHARES):
            rank = -(-len(ordered) * round(1000 * share) // 1000)
            bucket = int(np.searchsorted(bounds, ordered[rank - 1], side="right"))
            place = (start - answer.t0_ns) // answer.interval_ns
            assert drawn[number, place] == float(bounds[bucket] - np.uint64(1))


def check_numbers(question: Question, history: History, breakdown: str | None) -> None:
    columns = history.columns()
    answer = query(
        Recording(history.path),
        question.statistic + (f"[{breakdown}]" if breakdown else ""),
        from_ns=question.span[0],
        until_ns=question.span[1],
        interval_ns=question.interval_ns,
    )
    assert isinstance(answer, Series | Stack)
    if isinstance(answer, Series):
        totals, values = {"": answer.total}, {"": answer.values}
    else:
        totals = dict(zip(answer.keys, answer.totals, strict=True))
        values = dict(zip(answer.keys, answer.values, strict=True))
    question.is_of_maps &= breakdown != "process"
    chosen = meets(columns, question.conditions)
    shown = shown_rows(question, history, chosen, answer.total, answer.notes)
    rows = shown & chosen
    names = columns[breakdown][rows] if breakdown else [""] * int(rows.sum())
    starts = question.starts(columns)[rows]
    expected: dict[str, int] = {} if breakdown else {"": 0}
    filled: set[tuple[str, int]] = set()
    for start, name, count in zip(starts, names, columns["count"][rows], strict=True):
        key = "unknown" if name is None else name
        expected[key] = expected.get(key, 0) + int(count)
        filled.add((key, int(start)))
    assert totals == expected
    # values are rates of the part of a column that was recorded
    assert filled == {
        (key, answer.t0_ns + column * answer.interval_ns)
        for key, series in values.items()
        for column in np.flatnonzero(np.nan_to_num(series) > 0).tolist()
    }


def check_who(question: Question, history: History, chance: random.Random) -> None:
    columns = history.columns()
    low = chance.choice((None, 10_000, 100_000))
    edge = START + chance.randrange(len(history.segments)) * LENGTH + 123
    rectangle = Rectangle(from_ns=chance.choice((None, edge)), low=low)
    filters = parse(question.statistic).filters
    answer = who(
        Recording(history.path), "latency", rectangle, filters=filters, around=question.span
    )
    within = question.within(columns)
    chosen = within & (columns["number"] > history.deleted) & meets(columns, question.conditions)
    if (within & (columns["number"] <= history.deleted)).any():
        assert any(DELETED in note for note in answer.notes)
    inside = columns["has latency_ns"] & (columns["latency_ns"] >= (low or 0))
    if rectangle.from_ns is not None:
        inside &= columns["time_ns"] >= rectangle.from_ns
    count = columns["count"]
    assert answer.inside == count[chosen & inside].sum()
    assert answer.outside == count[chosen & ~inside].sum()
    assert answer.without == count[chosen & ~columns["has latency_ns"]].sum()
    for dimension in answer.dimensions:
        if dimension.field not in ("op", "device", "process"):
            continue
        names = np.array(["unknown" if n is None else n for n in columns[dimension.field]])
        expected = {
            name: (
                int(count[chosen & inside & (names == name)].sum()),
                int(count[chosen & ~inside & (names == name)].sum()),
            )
            for name in np.unique(names[chosen]).tolist()
        }
        assert {
            share.value: (share.inside, share.outside) for share in dimension.values
        } == expected


@pytest.mark.parametrize("seed", range(depth(3, 40)))
def test_any_question_of_any_history_equals_a_count_by_hand(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_joins(monkeypatch)
    chance = random.Random(seed)
    history = History(tmp_path / "r", seed)
    for _ in range(4):
        history.grow()
    for number in range(18):
        step = chance.random()
        if number == 12:
            history.grow_unsealed()
        elif step < 0.25 and number < 12:
            history.grow()
        elif step < 0.45:
            history.delete()
        elif step < 0.6:
            history.lose_map()
        elif step < 0.75:
            for _ in range(chance.randint(0, 3)):
                history.delete()
            history.join()
        question = Question(chance, history)
        if question.is_before_all(history):
            continue
        kind = chance.random()
        if kind < 0.5:
            y = chance.choice(("latency", "size", "offset"))
            check_map(question, history, y, chance.choice(("count", "count", "time")))
        elif kind < 0.75:
            check_numbers(question, history, chance.choice((None, "op", "device", "process")))
        else:
            check_who(question, history, chance)
