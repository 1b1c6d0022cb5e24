# SPDX-License-Identifier: Apache-2.0
"""The plan of a question: which tier answers, why not another, and what is read for it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from iolab.cli.main import run
from iolab.errors import UsageError
from iolab.recording.base.counts import HeatCounts
from iolab.recording.base.metadata import read_facts
from iolab.recording.read.recording import Recording
from iolab.recording.write.writer import RecordingWriter
from iolab.statistics.answers.answers import Series, Stack
from iolab.statistics.ask.plan import Coverage, Part, plan
from iolab.statistics.ask.query import explain, query
from iolab.statistics.kept.storage_kind import COARSER
from iolab.statistics.language.intervals import SECOND
from iolab.statistics.language.names import parse
from iolab.statistics.question import Question
from support.kept_data import START, add_segment, aged, io, make
from support.statistics_data import Event, recording_of, trace_of


@dataclass(frozen=True)
class FakeTier:
    """A tier that answers statistics of some names, or says why not."""

    name: str
    answers: tuple[str, ...]

    def covers(self, question: Question) -> Coverage | str:
        """As `Tier.covers`."""
        assert question.statistic is not None
        if question.statistic.entry.name not in self.answers:
            return f"{self.name} has no {question.statistic.entry.name}"
        series = Series(
            statistic=question.statistic,
            unit="1/s",
            t0_ns=0,
            interval_ns=SECOND,
            first_ns=0,
            until_ns=SECOND,
            covered_ns=SECOND,
            source=self.name,
            notes=(),
            losses=None,
            lost_at=(),
            values=np.ones(1),
            total=1,
        )
        return Coverage(lambda: series, lambda: [Part(self.name, 0, SECOND, 1, 10, 100)])


def ask(statistic: str) -> Question:
    return Question.of(parse(statistic), (None, None), None, 400, None)


TIERS = (
    FakeTier("roll-ups", ("io.bytes",)),
    FakeTier("archive of another engine", ("io.ops", "io.bytes")),
    FakeTier("events", ("io.ops",)),
)


@pytest.mark.parametrize(
    ("statistic", "tier", "refusals", "spare"),
    [
        ("io.bytes", "roll-ups", (), ("archive of another engine", "events")),
        (
            "io.ops",
            "archive of another engine",
            (("roll-ups", "roll-ups has no io.ops"),),
            ("events",),
        ),
    ],
)
def test_the_first_tier_that_covers_a_question_answers_it(
    statistic: str, tier: str, refusals: tuple[tuple[str, str], ...], spare: tuple[str, ...]
) -> None:
    found = plan(ask(statistic), TIERS)
    assert (found.tier, found.refusals, found.spare) == (tier, refusals, spare)
    answer = found.coverage.answer()
    assert isinstance(answer, Series)
    assert answer.source == tier
    assert found.as_data()["parts"] == [
        {"name": tier, "first_ns": 0, "until_ns": SECOND, "files": 1, "rows": 10, "bytes": 100}
    ]


def test_a_question_that_no_tier_covers_is_refused_with_all_reasons() -> None:
    with pytest.raises(UsageError, match=r"nothing answers 'file\.ops'") as raised:
        plan(ask("file.ops"), TIERS)
    assert "events: events has no file.ops" in (raised.value.hint or "")


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
    assert found.tier == tier
    assert dict(found.refusals).get("segment maps", "") == reason
    assert dict(found.refusals)["roll-ups"] == "the recording has no kept statistics"
    parts = {each.name: each for each in found.coverage.parts()}
    kind = "sealed events" if tier == "events" else "segment maps"
    assert list(parts) == [kind, "unsealed events"]
    assert parts["unsealed events"].rows == 150
    assert parts[kind].files == 3
    assert tier != "events" or parts[kind].rows == 450


def test_a_trace_is_read_whole(tmp_path: Path) -> None:
    trace = trace_of([Event(START)], tmp_path / "t.csv")
    found = explain(trace, "io.ops")
    assert found.coverage.parts() == [
        Part("trace", None, None, 1, None, (tmp_path / "t.csv").stat().st_size)
    ]


def grow(path: Path) -> Recording:
    """Half a minute more in a sealed segment, and half a minute that is not sealed."""
    with RecordingWriter.reopen(path, live=False) as writer:
        add_segment(writer, START + 180 * SECOND, 30)
        writer.append_events(io(START + 210 * SECOND, 30))
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
    assert (found.tier, found.refusals) == ("roll-ups", ())
    parts = {each.name: each for each in found.coverage.parts()}
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
def test_roll_ups_segment_maps_and_events_answer_together_and_exactly(
    statistic: str, tmp_path: Path
) -> None:
    """Old events and their maps were deleted, of a sealed segment the map is missing, and some
    events are not sealed: each time is answered by the cheapest data that has it."""
    kept = make(tmp_path / "kept", [statistic])
    old = grow(aged(kept.path, tmp_path / "old", 1).path)
    complete = grow(make(tmp_path / "complete", []).path)
    for path in (old.path / "histograms/1s").glob("io.*/00000[1-5].parquet"):
        path.unlink()
    facts = read_facts(old.path)
    assert facts.dropped is not None
    facts.dropped["maps_until_ns"] = facts.dropped["until_ns"]
    facts.write(old.path)
    parts = {
        part.name: part for part in explain(old, statistic, interval_ns=SECOND).coverage.parts()
    }
    assert list(parts) == ["roll-ups of 1s", "segment maps", "unsealed events"]
    assert (parts["segment maps"].files, parts["unsealed events"].rows) == (1, 600)
    one, other = (query(each, statistic, interval_ns=SECOND) for each in (old, complete))
    assert one.total == other.total
    if isinstance(one, HeatCounts) and isinstance(other, HeatCounts):
        assert cells(one) == cells(other.coarser(steps=COARSER))
    else:
        assert isinstance(one, Stack)
        assert isinstance(other, Stack)
        assert (one.keys, one.totals, one.t0_ns) == (other.keys, other.totals, other.t0_ns)
        assert np.array_equal(one.values, other.values)


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
    parts = {
        part.name: part
        for part in explain(recording, statistic, interval_ns=SECOND).coverage.parts()
    }
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
    assert text.startswith("io.ops[process]: answered by roll-ups\n")
    assert "reads sealed events from" in text
    assert "600 rows" in text
    assert run([*command, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["kind"], data["tier"]) == (1, "plan", "roll-ups")
    assert [each["name"] for each in data["parts"]] == [
        "roll-ups of 1s",
        "sealed events",
        "unsealed events",
    ]
    assert data["not_needed"] == ["counters", "segment maps", "events"]


@pytest.mark.parametrize("other", [["--follow"], ["--who", "1ms..1s"], ["--format", "csv"]])
def test_a_plan_is_refused_beside_what_has_none(
    other: list[str], many: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["query", str(many.path), "io.ops[latency]", "--explain", *other]) == 2
    assert (
        f"--explain cannot be combined with {' '.join(other[:1] if other[0] != '--format' else other)}"
        in capsys.readouterr().err
    )
