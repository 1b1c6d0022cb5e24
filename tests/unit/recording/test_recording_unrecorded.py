# SPDX-License-Identifier: Apache-2.0
"""A source that was not recorded for a time, while others were: every answer lacks that time, and
none says 0."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iolab.base.clock import FakeClock
from iolab.cli.main import run
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.engine.snapshot import snapshot
from iolab.recordings.ask.kept.coverage import held_of
from iolab.recordings.ask.kept.files.definitions import Definition
from iolab.recordings.ask.kept.files.paths import TIERS
from iolab.recordings.ask.kept.recovery import change_definitions
from iolab.recordings.ask.kept.writer import Keeper
from iolab.recordings.ask.query import heat, query
from iolab.recordings.ask.question import Question, parse
from iolab.recordings.store.base.intervals import Unrecorded, in_all, unrecorded_times
from iolab.recordings.store.base.loss_log import noted_losses
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events, samples

WHY = "suspended: recording took 80 % of all CPU time"


def at(second: float) -> int:
    return START + round(second * SECOND)


def recording(
    place: Path, gaps: list[tuple[str, float, float | None]], *, kill: bool = False
) -> Recording:
    """Twelve seconds of 100 requests and 100 system calls each, and of counters, with gaps of
    sources, in which they have nothing."""
    clock = FakeClock(START)
    writer = RecordingWriter.create(
        place,
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        system=clock,
        sources={"block": {}, "syscall": {}, "counters": {}},
    )
    for second in range(12):
        for source in ("block", "syscall"):
            if not any(
                name == source and first <= second < (12 if until is None else until)
                for name, first, until in gaps
            ):
                writer.append_events(
                    events(100, second, start_ns=at(second), per_s=100, source=source)
                )
        writer.append_samples(samples(2, start_ns=at(second)).slice(0, 1))
        for name, first, until in gaps:
            if second == int(first):
                writer.loss("gap", name, at(first), None, None, WHY)
            if until is not None and second == int(until):
                writer.loss("gap", name, at(first), at(until), None, WHY)
        clock.sleep(1)
        writer.tick(at(second + 1))
    if kill:
        return Recording(place)
    writer.close()
    return Recording(place)


def values(found: object) -> list[float | None]:
    assert isinstance(found, Series)
    return [None if math.isnan(value) else value for value in found.values.tolist()]


def test_a_gap_of_one_source_is_no_zero_of_it_and_no_gap_of_another(tmp_path: Path) -> None:
    one = recording(tmp_path / "r", [("block", 3, 8)])
    of_block = query(one, "io.ops", interval_ns=SECOND, source="block")
    assert isinstance(of_block, Series)
    assert [value is None for value in values(of_block)] == [
        3 <= second < 8 for second in range(12)
    ]
    assert of_block.covered_ns == 7 * SECOND
    assert of_block.mean == pytest.approx(of_block.total / 7)
    of_calls = query(one, "io.ops", interval_ns=SECOND, source="syscall")
    assert None not in values(of_calls)
    assert heat(one, "latency", Question(interval_ns=SECOND, source="block")).gaps == ((3, 8),)
    assert heat(one, "latency", Question(interval_ns=SECOND, source="syscall")).gaps == ()
    assert one.gaps() == [], "something was recorded all the time"
    assert one.holes("events", "block") == [(at(3), at(8))]


def test_part_of_a_column_is_weighed_by_what_was_recorded_of_it(tmp_path: Path) -> None:
    """The rate over the half that was recorded, not half of it."""
    writer = RecordingWriter.create(
        tmp_path / "r",
        host="",
        clock="realtime",
        origin={"kind": "record"},
        system=FakeClock(START),
        sources={"block": {}, "counters": {}},
    )
    batch = events(500, start_ns=START, per_s=100)
    writer.append_events(
        batch.set_column(
            batch.schema.get_field_index("count"),
            EVENTS.field("count"),
            pa.array([1] * 500, pa.uint64()),
        )
    )
    writer.loss("gap", "block", at(5), at(10), None, WHY)
    writer.tick(at(10))
    writer.close()
    found = query(Recording(tmp_path / "r"), "io.ops", interval_ns=10 * SECOND)
    assert values(found) == [pytest.approx(100)]


def test_a_gap_of_all_sources_is_one_of_the_recording(tmp_path: Path) -> None:
    one = recording(
        tmp_path / "r",
        [
            (name, first, until)
            for name, first, until in (
                ("block", 3.0, 6.0),
                ("syscall", 2.0, 5.0),
                ("counters", 3.5, 7.0),
            )
        ],
    )
    assert one.gaps() == [(at(3.5), at(5))]
    assert one.holes("samples", "diskstats") == [(at(3.5), at(7))]
    assert one.holes("samples", "zpool") == [(at(3.5), at(7))]


def test_a_gap_that_was_open_when_the_recorder_was_killed_lasts_until_the_end_of_its_session(
    tmp_path: Path,
) -> None:
    one = recording(tmp_path / "r", [("block", 4, None)], kill=True)
    assert [
        value is None for value in values(query(one, "io.ops", interval_ns=SECOND, source="block"))
    ] == [second >= 4 for second in range(12)]
    facts = json.loads((tmp_path / "r/recording.json").read_text())
    facts["sessions"][0]["until_ns"] = at(12)
    facts["sessions"].append({**facts["sessions"][0], "from_ns": at(20), "until_ns": at(22)})
    (tmp_path / "r/recording.json").write_text(json.dumps(facts))
    assert [each.span for each in Recording(tmp_path / "r").unrecorded_spans()] == [
        (at(4), at(12)),
        (at(12), at(20)),
    ]


def test_the_end_of_a_gap_takes_the_place_of_its_beginning(tmp_path: Path) -> None:
    one = recording(tmp_path / "r", [("block", 3, 5), ("block", 7, 9), ("syscall", 7, 8)])
    assert [
        (each["source"], each["from_ns"], each["until_ns"])
        for each in noted_losses(one.path).single
    ] == [("block", at(3), at(5)), ("block", at(7), at(9)), ("syscall", at(7), at(8))]
    assert one.summary().losses == {"gap": {"notes": 3, "count": 0, "unknown": 3}}


def test_counters_do_not_grow_across_their_gap(tmp_path: Path) -> None:
    one = recording(tmp_path / "r", [("counters", 4.5, 6.5)])
    assert any(start == at(4.5) for start, _ in one.breaks("diskstats"))
    assert recording(tmp_path / "other", [("block", 4.5, 6.5)]).breaks("diskstats") == []


def test_what_was_kept_lacks_it_too(tmp_path: Path) -> None:
    one = recording(tmp_path / "r", [("block", 3, 8)])
    change_definitions(
        one.path,
        lambda before: before.with_(Definition("io.ops", 0, source="block", since_ns=START)),
    )
    Keeper(one.path).look()
    [held] = held_of(one.path, parse("io.ops"), "block")
    before, after = held.spans(TIERS[:1], snapshot(one)) or []
    assert (before, after[0]) == ((at(0), at(3)), at(8))


def test_show_says_which_source_for_how_long_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = recording(tmp_path / "r", [("block", 3, 8)])
    assert run(["show", str(one.path)]) == 0
    told = capsys.readouterr().out
    assert f"gap       block not recorded for 5 s from 2023-11-14 22:13:23 UTC: {WHY}" in told
    assert "losses    none" not in told
    assert run(["show", str(one.path), "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["gaps"] == []
    assert found["unrecorded"] == [
        {"source": "block", "of": None, "from_ns": at(3), "until_ns": at(8), "words": WHY}
    ]


def test_show_says_once_what_holds_for_all_sources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = recording(tmp_path / "r", [(name, 3, 8) for name in ("block", "syscall", "counters")])
    assert run(["show", str(one.path)]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("gap")]
    assert told == [f"gap       nothing recorded for 5 s from 2023-11-14 22:13:23 UTC: {WHY}"]


def test_damage_is_a_time_that_is_not_known_of_its_kind_of_rows(tmp_path: Path) -> None:
    lines = [
        {
            "source": "",
            "kind": "damaged",
            "from_ns": 5,
            "until_ns": 9,
            "count": None,
            "words": "torn",
            "of": "events",
        },
        {
            "source": "block",
            "kind": "overrun",
            "from_ns": 1,
            "until_ns": 2,
            "count": 7,
            "words": "",
        },
    ]
    [found] = unrecorded_times([{"from_ns": 0, "until_ns": 10}], lines)
    assert found == Unrecorded(5, 9, "", "events", "torn")
    assert (found.concerns("events", "block"), found.concerns("samples", "diskstats")) == (
        True,
        False,
    )
    assert in_all([found], "events", ["block"]) == [(5, 9)]
    assert in_all([found], None, ["block"]) == []
