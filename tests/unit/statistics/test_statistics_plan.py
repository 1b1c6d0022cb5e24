# SPDX-License-Identifier: Apache-2.0
"""The plan of a question: which tier answers, why not another, and what is read for it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from iolab.base.errors import UsageError
from iolab.cli.main import run
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.engine.snapshot import snapshot
from iolab.recordings.ask.engine.windows import Window, window_of
from iolab.recordings.ask.execute import execute
from iolab.recordings.ask.kept.files.paths import COARSER
from iolab.recordings.ask.plan import (
    UNSEALED,
    Cost,
    Frame,
    Numbers,
    Part,
    Reading,
    Span,
    Sums,
    plan,
)
from iolab.recordings.ask.query import query, tiers_of
from iolab.recordings.ask.question import SECOND, Question, parse
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.grids import Grid
from iolab.recordings.store.base.metadata import read_facts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.kept_data import START, add_segment, aged, io, make
from support.plans import explain
from support.statistics_data import Event, recording_of, trace_of


@dataclass
class FakeTier:
    """A tier of some segments, each of so many bytes, that answers statistics of some names."""

    name: str
    answers: tuple[str, ...]
    window: Window
    first: int = 0
    last: int = UNSEALED
    bytes: int = 100
    from_ns: int = 0

    def frame(self, question: Question) -> Frame | str:
        """As `Tier.frame`."""
        assert question.statistic is not None
        if question.statistic.entry.name not in self.answers:
            return f"{self.name} has no {question.statistic.entry.name}"
        return Frame(question, self.window)

    def covers(self, frame: Frame) -> Sequence[Span] | str:
        """As `Tier.covers`."""
        start = max(self.from_ns, frame.full_span.from_ns)
        return [Span(self.first, self.last, start, frame.full_span.until_ns)]

    def cost(self, frame: Frame, span: Span) -> Cost | None:
        """As `Tier.cost`."""
        return Cost(1, self.bytes)

    def read(self, frame: Frame, spans: Sequence[Span]) -> Reading:
        """Not read here."""
        raise NotImplementedError

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        """As `Tier.parts`."""
        return [Part(self.name, 0, SECOND, 1, 10, self.bytes)]


def ask(statistic: str) -> Question:
    return Question.of(parse(statistic), (None, None), SECOND, 400, None)


@pytest.fixture(scope="module")
def window(many: Recording) -> Window:
    """Of a minute."""
    return window_of(snapshot(many), "block", START, START + 60 * SECOND, SECOND, 400)


def test_the_first_tier_with_a_frame_determines_the_answer(window: Window) -> None:
    tiers = (
        FakeTier("roll-ups", ("io.bytes",), window),
        FakeTier("archive of another engine", ("io.ops", "io.bytes"), window),
        FakeTier("events", ("io.ops",), window),
    )
    chosen = plan(ask("io.ops"), tiers)
    assert chosen.lead == "archive of another engine"
    assert chosen.refusals == (("roll-ups", "roll-ups has no io.ops"),)
    assert chosen.spare == ("events",)
    assert chosen.as_data()["parts"] == [
        {
            "name": "archive of another engine",
            "first_ns": 0,
            "until_ns": SECOND,
            "files": 1,
            "rows": 10,
            "bytes": 100,
        }
    ]


def test_a_question_that_no_tier_covers_is_refused_with_all_reasons(window: Window) -> None:
    with pytest.raises(UsageError, match=r"nothing answers 'file\.ops'") as raised:
        plan(ask("file.ops"), [FakeTier("events", ("io.ops",), window)])
    assert "events: events has no file.ops" in (raised.value.hint or "")


def test_each_span_is_of_the_cheapest_tier_and_no_io_is_in_two(window: Window) -> None:
    middle = window.first_ns + 20 * SECOND
    tiers = (
        FakeTier("events", ("io.ops",), window, bytes=10**6),
        FakeTier("maps", (), window, 1, 7, 10**4),
        FakeTier("archive", (), window, 0, 3, 10, middle),
    )
    chosen = plan(ask("io.ops"), tiers)
    spans = {step.tier.name: step.spans for step in chosen.steps}
    ends = (window.first_ns, window.until_ns)
    assert spans == {
        "events": (Span(0, 0, ends[0], middle), Span(8, UNSEALED, *ends)),
        "maps": (Span(1, 3, ends[0], middle), Span(4, 7, *ends)),
        "archive": (Span(0, 3, middle, ends[1]),),
    }


@dataclass(frozen=True)
class ToyTier:
    """Sums of old segments by second and operation in a plain Parquet file, which the code of the
    planner does not know."""

    recording: Recording
    path: Path
    last: int
    name: str = "toy"

    def frame(self, question: Question) -> Frame | str:
        """As `Tier.frame`, with the time of the deleted segments."""
        if question.breakdown not in (None, "op") or question.filters:
            return "the toy tells operations apart"
        import duckdb

        rows = duckdb.execute(f"SELECT min(second), max(second) FROM '{self.path}'").fetchall()
        first, last = (second * SECOND for second in rows[0])
        ends = (*question.span, question.interval_ns, question.columns)
        earlier = (first, last + SECOND - 1)
        return Frame(question, window_of(snapshot(self.recording), "block", *ends, earlier=earlier))

    def covers(self, frame: Frame) -> Sequence[Span] | str:
        """As `Tier.covers`."""
        return [frame.full_span._replace(first=1, last=self.last)]

    def cost(self, frame: Frame, span: Span) -> Cost | None:
        """As `Tier.cost`. Sums of several segments are not told apart."""
        return Cost(1, 1) if (span.first, span.last) == (1, self.last) else None

    def read(self, frame: Frame, spans: Sequence[Span]) -> Reading:
        """As `Tier.read`."""
        return ToyReading(self.path, frame)

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        """As `Tier.parts`."""
        return [Part("toy sums", None, None, 1, None, self.path.stat().st_size)]


@dataclass(frozen=True)
class ToyReading(Reading):
    """The file while it is read."""

    path: Path
    frame: Frame

    def sums(self, grid: Grid | None) -> Sequence[Sums]:
        """As `Reading.sums`."""
        import duckdb

        window = self.frame.window
        key = "NULL" if self.frame.question.breakdown is None else "op"
        rows = duckdb.execute(
            f"SELECT (second * {SECOND} - {window.base_ns}) // {window.interval_ns} AS c, "
            f"CAST({key} AS VARCHAR) AS k, CAST(sum(amount) AS BIGINT) AS n, 0 AS lacking "
            f"FROM '{self.path}' WHERE second * {SECOND} >= {window.first_ns // SECOND * SECOND} "
            f"AND second * {SECOND} < {window.until_ns} GROUP BY ALL"
        ).fetchnumpy()
        return [Numbers(rows)]


@pytest.mark.parametrize("statistic", ["io.ops", "io.ops[op]"])
def test_a_tier_of_another_kind_takes_part_without_a_change_to_the_planner(
    statistic: str, tmp_path: Path
) -> None:
    import duckdb

    complete = grow(make(tmp_path / "complete", []).path)
    old = grow(aged(make(tmp_path / "full", []).path, tmp_path / "old", 1).path)
    toy = tmp_path / "toy.parquet"
    files = [str(complete.path / f"events/00000{number}.parquet") for number in range(1, 6)]
    duckdb.execute(
        f"COPY (SELECT time_ns // {SECOND} AS second, op, sum(count) AS amount "
        f"FROM read_parquet({files}) GROUP BY ALL) TO '{toy}' (FORMAT parquet)"
    )
    for maps in (old.path / "histograms/1s").glob("io.*/00000[1-5].parquet"):
        maps.unlink()
    facts = read_facts(old.path)
    assert facts.dropped is not None
    facts.dropped["maps_until_ns"] = facts.dropped["until_ns"]
    facts.write(old.path)
    question = Question.of(parse(statistic), (START, None), SECOND, 400, None)
    recording = old.frozen()
    tiers = [ToyTier(recording, toy, 5), *tiers_of(recording)]
    assert plan(question, tiers).tiers == ("toy", "segment maps", "events")
    answer, expected = (
        execute(question, tiers),
        query(complete, statistic, from_ns=START, interval_ns=SECOND),
    )
    assert isinstance(answer, Series | Stack)
    assert isinstance(expected, Series | Stack)
    assert answer.total == expected.total == 8 * 600
    assert np.array_equal(answer.values, expected.values)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A minute of I/O in three sealed segments and one that is not sealed."""
    folder = tmp_path_factory.mktemp("many")
    held = [
        Event(
            START + place * SECOND // 10,
            100_000 + place,
            4096 * place,
            op=("read", "write")[place % 2],
        )
        for place in range(600)
    ]
    return recording_of(trace_of(held, folder / "t.csv"), folder / "r", parts=4, hot=True)


@pytest.mark.parametrize(
    ("statistic", "interval_ns", "tier", "reason"),
    [
        ("io.ops", SECOND, "segment maps", ""),
        ("io.ops[op=read][latency]", SECOND, "segment maps", ""),
        ("io.ops", SECOND // 2, "events", "columns are not whole seconds"),
        ("io.ops[process]", SECOND, "events", "segment maps do not tell the process"),
        ("io.ops[process=fio][latency]", SECOND, "events", "segment maps do not tell the process"),
        ("io.bytes", SECOND, "events", "segment maps count I/Os, not bytes"),
        ("io.ops[queue]", SECOND, "events", "segment maps have no time in the queue"),
    ],
)
def test_a_recordings_plan_names_the_tier_and_why_not_segment_maps(
    many: Recording, statistic: str, interval_ns: int, tier: str, reason: str
) -> None:
    found = explain(many, statistic, interval_ns=interval_ns)
    assert found.lead == tier
    assert dict(found.refusals).get("segment maps", "") == reason
    assert dict(found.refusals)["roll-ups"] == "the recording has no kept statistics"
    parts = {each.name: each for each in found.parts()}
    kind = "sealed events" if tier == "events" else "segment maps"
    assert list(parts) == [kind, "unsealed events"]
    assert parts["unsealed events"].rows == 150
    assert parts[kind].files == 3
    assert tier != "events" or parts[kind].rows == 450


def test_a_trace_is_read_whole(tmp_path: Path) -> None:
    trace = trace_of([Event(START)], tmp_path / "t.csv")
    found = explain(trace, "io.ops")
    assert found.parts() == [
        Part("trace", None, None, 1, None, (tmp_path / "t.csv").stat().st_size)
    ]


def grow(path: Path, segments: int = 1) -> Recording:
    """Half a minute more in each of some sealed segments, and half a minute that is not sealed."""
    with RecordingWriter.reopen(path, live=False) as writer:
        for number in range(segments):
            add_segment(writer, START + (180 + 30 * number) * SECOND, 30)
        writer.append_events(io(START + (180 + 30 * segments) * SECOND, 30))
        # leave what is not sealed as a kill would
        writer.close = lambda: None  # type: ignore[method-assign]
        writer._lock.close()
    return Recording(path)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Recording]:
    """The same I/O twice: complete, and with a kept statistic after retention removed most events
    that it holds."""
    folder = tmp_path_factory.mktemp("kept")
    kept = make(folder / "kept", ["io.ops[process]"])
    old = aged(kept.path, folder / "old", 1)
    complete = make(folder / "complete", [])
    return grow(complete.path), grow(old.path)


def test_roll_ups_and_both_kinds_of_events_answer_together_and_exactly(
    recordings: tuple[Recording, Recording],
) -> None:
    complete, old = recordings
    found = explain(old, "io.ops[process]", interval_ns=SECOND)
    assert found.tiers == ("roll-ups", "events")
    assert dict(found.refusals)["segment maps"] == "segment maps do not tell the process"
    parts = {each.name: each for each in found.parts()}
    assert list(parts) == ["roll-ups of 1s", "sealed events", "unsealed events"]
    assert (parts["sealed events"].rows, parts["unsealed events"].rows) == (600, 600)
    assert parts["roll-ups of 1s"].first_ns == START
    one, other = (query(each, "io.ops[process]", interval_ns=SECOND) for each in (old, complete))
    assert isinstance(one, Stack)
    assert isinstance(other, Stack)
    assert (one.keys, one.totals, one.t0_ns) == (other.keys, other.totals, other.t0_ns)
    assert np.array_equal(one.values, other.values)
    assert sum(one.totals) == 8 * 600


def cells(counts: HeatCounts) -> tuple[int, list[int], list[int], list[int]]:
    return counts.t0_ns, counts.column.tolist(), counts.index.tolist(), counts.count.tolist()


@pytest.mark.parametrize("statistic", ["io.ops[op]", "io.ops[latency]", "io.ops[op=read][latency]"])
def test_all_tiers_of_events_answer_together_and_exactly(
    statistic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Old events and their maps were deleted, of a sealed segment the map is missing, and some
    events are not sealed: each time is answered by the cheapest data that has it."""
    kept = make(tmp_path / "kept", [statistic])
    old = aged(kept.path, tmp_path / "old", 1)
    facts = read_facts(old.path)
    facts.retention["bytes"] = None  # nothing more is deleted
    facts.write(old.path)
    grow(old.path, 2)
    complete = grow(make(tmp_path / "complete", []).path, 2)
    for number in (1, 2, 3, 4, 5, 8):
        for path in (old.path / "histograms/1s").glob(f"io.*/{number:06}.parquet"):
            path.unlink()
    facts = read_facts(old.path)
    assert facts.dropped is not None
    facts.dropped["maps_until_ns"] = facts.dropped["until_ns"]
    facts.write(old.path)
    command = ["query", str(old.path), statistic, "--interval", "1s", "--explain"]
    assert run([*command, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["tiers"] == ["roll-ups", "segment maps", "events"]
    parts = {part["name"]: (part["files"], part["rows"]) for part in data["parts"]}
    assert list(parts) == ["roll-ups of 1s", "segment maps", "sealed events", "unsealed events"]
    assert parts["segment maps"][0] == 1
    assert (parts["sealed events"], parts["unsealed events"]) == ((1, 600), (0, 600))
    one, other = (query(each, statistic, interval_ns=SECOND) for each in (old, complete))
    assert one.total == other.total
    if isinstance(one, HeatCounts) and isinstance(other, HeatCounts):
        assert cells(one) == cells(other.coarser(steps=COARSER))
    else:
        assert isinstance(one, Stack)
        assert isinstance(other, Stack)
        assert (one.keys, one.totals, one.t0_ns) == (other.keys, other.totals, other.t0_ns)
        assert np.array_equal(one.values, other.values)


def test_a_late_begin_has_a_note_where_no_map_of_deleted_events_is_left(tmp_path: Path) -> None:
    full = make(tmp_path / "full", [], segments=6, seconds=20, per_s=40)
    old = aged(full.path, tmp_path / "old", 4)
    for maps in (old.path / "histograms").rglob("*.parquet"):
        maps.unlink()
    facts = read_facts(old.path)
    assert facts.dropped is not None
    facts.dropped["maps_until_ns"] = facts.dropped["until_ns"]
    facts.write(old.path)
    late = "the answer begins there"
    for name in ("io.ops[process]", "io.ops[latency]"):
        assert sum(late in note for note in explain(old, name).notes) == 1
        inside = explain(old, name, from_ns=facts.dropped["until_ns"]).notes
        assert not any(late in note for note in inside)
        assert not any(late in note for note in explain(full, name).notes)


@pytest.mark.parametrize("name", ["io.ops", "io.ops[op]", "io.ops[latency]"])
def test_an_open_question_covers_the_time_of_deleted_events(name: str, tmp_path: Path) -> None:
    """Columns that maps do not have would leave the time of deleted events out of the answer."""
    full = make(tmp_path / "full", [], segments=6, seconds=20, per_s=40)
    old = aged(full.path, tmp_path / "old", 4)
    expected, answer = (query(recording, name) for recording in (full, old))
    assert explain(old, name).tiers == ("segment maps",)
    assert not any("no longer kept" in note for note in explain(old, name).notes)
    if isinstance(answer, HeatCounts):
        assert isinstance(expected, HeatCounts)
        assert int(answer.count.sum()) == int(expected.count.sum())
        return
    assert isinstance(answer, Series | Stack)
    assert isinstance(expected, Series | Stack)
    assert (answer.first_ns, answer.until_ns) == (expected.first_ns, expected.until_ns)
    assert np.nansum(answer.values) * answer.interval_ns == pytest.approx(
        np.nansum(expected.values) * expected.interval_ns
    )


@pytest.mark.parametrize("damage", ["missing", "damaged"])
@pytest.mark.parametrize("statistic", ["io.ops[op]", "io.ops[latency]", "io.ops[op=read][offset]"])
def test_a_map_that_can_not_be_read_costs_its_own_segment(
    statistic: str, damage: str, many: Recording, tmp_path: Path
) -> None:
    """The events of that segment are scanned; maps answer for all others."""
    expected = query(many, statistic, interval_ns=SECOND)
    recording = Recording(Path(shutil.copytree(many.path, tmp_path / "r")))
    for path in recording.path.glob("histograms/1s/*/000002.parquet"):
        if damage == "missing":
            path.unlink()
        else:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
    answer = query(recording, statistic, interval_ns=SECOND)
    parts = {part.name: part for part in explain(recording, statistic, interval_ns=SECOND).parts()}
    assert {name: part.files for name, part in parts.items()} == {
        "segment maps": 2,
        "sealed events": 1,
        "unsealed events": 0,
    }
    if isinstance(answer, HeatCounts):
        assert isinstance(expected, HeatCounts)
        assert (answer.events, answer.filtered, answer.grid) == (
            expected.events,
            expected.filtered,
            expected.grid,
        )
        assert cells(answer) == cells(expected)
    else:
        assert isinstance(answer, Stack)
        assert isinstance(expected, Stack)
        assert (answer.keys, answer.totals) == (expected.keys, expected.totals)
        assert np.array_equal(answer.values, expected.values)


def test_a_plan_is_printed_as_text_and_json(
    recordings: tuple[Recording, Recording], capsys: pytest.CaptureFixture[str]
) -> None:
    _, old = recordings
    command = ["query", str(old.path), "io.ops[process]", "--interval", "1s", "--explain"]
    assert run(command) == 0
    text = capsys.readouterr().out
    assert text.startswith("io.ops[process]: answered by roll-ups and events\n")
    assert "reads roll-ups of 1s from 2023-11-14T00:00:00.000 to " in text
    assert "reads sealed events from 2023-11-14T00:" in text
    assert "600 rows" in text
    assert run([*command, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["kind"]) == (1, "plan")
    assert data["tiers"] == ["roll-ups", "events"]
    assert [each["name"] for each in data["parts"]] == [
        "roll-ups of 1s",
        "sealed events",
        "unsealed events",
    ]
    assert data["not_needed"] == []


@pytest.mark.parametrize("other", [["--follow"], ["--percentiles"], ["--format", "csv"]])
def test_a_plan_is_refused_beside_what_has_none(
    other: list[str], many: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["query", str(many.path), "io.ops[latency]", "--explain", *other]) == 2
    message = capsys.readouterr().err
    assert "cannot be combined with" in message
    assert "--explain" in message
    assert " ".join(other) in message
