# SPDX-License-Identifier: Apache-2.0
"""Rows of an archive are deleted by age: events before segment maps. Old time is answered by maps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.base.errors import FormatError, UsageError
from iolab.cli.main import run
from iolab.recordings.archive import (
    Archive,
    choose,
    compact,
    delete_by_age,
    fetch,
    push,
    retention,
    tables,
)
from iolab.recordings.archive.recordings import ArchivedEvents, open_recordings
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.answers.json_form import as_data
from iolab.recordings.ask.fleet import FleetStatistic, ask_fleet
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import parse
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording
from support.archives import SEGMENT_S, record
from support.recordings import SECOND, START

pytestmark = pytest.mark.slow
SEGMENTS = 4


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """An archive of four segments of a host: three of 5 s, a gap, and one."""
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    record(tmp_path / "db1", segments=SEGMENTS)
    push(tmp_path / "db1", archive)
    return archive


def open_recording(archive: Archive) -> ArchivedEvents:
    [recording] = open_recordings(archive, archive.recordings())
    return recording


def delete(archive: Archive, **segments: int) -> dict[str, retention.Removed]:
    """Delete so many segments of each tier."""
    ages = {tier: 1000 * SECOND - count * SEGMENT_S * SECOND for tier, count in segments.items()}
    return delete_by_age(archive, ages, now_ns=START + 1000 * SECOND)


def ask(archive: Archive, text: str, **asked: Any) -> Any:
    return ask_fleet([open_recording(archive)], FleetStatistic.parse(text), **asked)


def cells(counts: HeatCounts) -> Any:
    """What a map counts."""
    data = as_data(parse("io.ops[latency]"), counts, None)
    return {name: value for name, value in data.items() if name not in ("notes", "source")}


def rows_of(archive: Archive, table: tables.Table) -> dict[int, int]:
    """Rows by segment."""
    numbers = archive.read(table, None, ("segment",))["segment"].to_pylist()
    return {number: numbers.count(number) for number in sorted(set(numbers))}


def test_old_events_are_answered_by_maps(
    tmp_path: Path, archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {
        text: ask(archive, text, interval_ns=SECOND) for text in ("io.ops[op]", "io.ops[latency]")
    }
    done = delete(archive, events=2)
    assert (done["events"].recordings, done["events"].segments) == (1, 2)
    assert (done["events"].rows, done["samples"].rows) == (800, 40)
    assert set(rows_of(archive, tables.EVENTS)) == {3, 4}
    assert set(rows_of(archive, tables.SEGMENT_MAPS)) == {1, 2, 3, 4}

    after = ask(archive, "io.ops[op]", interval_ns=SECOND)
    assert after.totals == before["io.ops[op]"].totals
    assert (after.values == before["io.ops[op]"].values)[~(after.values != after.values)].all()
    assert any("deleted by age" in note for note in after.notes)
    heat = ask(archive, "io.ops[latency]", interval_ns=SECOND)
    expected = before["io.ops[latency]"]
    assert isinstance(heat, HeatCounts)
    assert cells(heat) == cells(expected)
    assert run(["heatmap", f"archive:{archive.url}"]) == 0
    assert "deleted by age" in capsys.readouterr().out

    # open columns become whole seconds; another field has only the events that remain
    assert ask(archive, "io.ops", columns=1000).interval_ns == SECOND
    late = query(
        Recording(tmp_path / "db1"), "io.ops[process]", from_ns=START + 10 * SECOND,
    )  # fmt: skip
    stack = ask(archive, "io.ops[process]")
    assert stack.total == late.total
    assert stack.first_ns >= START + 10 * SECOND
    assert any("maps can't answer" in note for note in stack.notes)
    later = ask(archive, "io.ops", from_ns=START + 10 * SECOND)
    assert not any("deleted by age" in note for note in later.notes)


def test_maps_are_deleted_after_the_events(archive: Archive) -> None:
    total = ask(archive, "io.ops").total
    delete(archive, events=3, maps=1)
    assert set(rows_of(archive, tables.SEGMENT_MAPS)) == {2, 3, 4}
    assert set(rows_of(archive, tables.COARSE_MAPS)) == {2, 3, 4}
    answer = ask(archive, "io.ops")
    assert isinstance(answer, Series)
    assert 0 < answer.total < total
    # the first segment is not recorded time any more, rather than time without I/Os
    assert answer.first_ns >= START + 5 * SECOND
    assert answer.covered_ns < 20 * SECOND
    before = ask(archive, "io.ops", from_ns=START, until_ns=START + 4 * SECOND)
    assert before.total == 0
    assert np.isnan(before.values).all()
    assert [note for note in before.notes if "nor are their maps" in note]
    with pytest.raises(UsageError) as error:
        ask(archive, "io.ops", until_ns=START + 4 * SECOND)
    assert "deleted" in str(error.value)

    delete(archive, events=100)
    assert rows_of(archive, tables.EVENTS) == {}
    # without any event the maps answer
    assert ask(archive, "io.ops").total == answer.total
    with pytest.raises(UsageError):
        ask(archive, "io.utilization[device]")
    delete(archive, events=100, maps=100)
    with pytest.raises((UsageError, FormatError)):
        ask(archive, "io.ops")


def test_an_interrupted_deletion_is_completed(
    tmp_path: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the files have rows of segments that remain
    compact(archive)
    total = ask(archive, "io.ops").total
    with monkeypatch.context() as patch:
        patch.setattr(retention, "_delete_rows", lambda *_: (_ for _ in ()).throw(OSError("away")))
        with pytest.raises(OSError, match="away"):
            delete(archive, events=2)
    assert set(rows_of(archive, tables.EVENTS)) == {1, 2, 3, 4}
    # rows that are to be deleted are in no answer
    assert ask(archive, "io.ops").total == total
    assert delete(archive, events=2)["events"].rows == 800
    # a push adds no deleted row again
    assert push(tmp_path / "db1", archive).files == 0
    assert rows_of(archive, tables.EVENTS) == {3: 400, 4: 400}
    assert delete(archive, events=2)["events"] == retention.Removed()
    assert ask(archive, "io.ops").total == total


def test_a_segment_without_a_map_is_a_gap(archive: Archive) -> None:
    total = ask(archive, "io.ops").total
    numbers = archive.read(tables.SEGMENT_MAPS)
    from iolab.recordings.archive.store import expressions

    where = expressions().EqualTo("segment", 1)
    assert numbers.num_rows
    archive.commit(tables.SEGMENT_MAPS, lambda change: change.delete(where))
    delete(archive, events=2)
    answer = ask(archive, "io.ops", interval_ns=SECOND)
    assert 0 < answer.total < total
    assert answer.first_ns >= START + 5 * SECOND or not (answer.values[:4] == 0).any()


def test_a_fetch_marks_deleted_time_as_a_gap(tmp_path: Path, archive: Archive) -> None:
    delete(archive, events=2)
    assert fetch(archive, tmp_path / "back", choose(archive)).events < 6400
    gaps = [loss for loss in Recording(tmp_path / "back").losses() if loss["kind"] == "gap"]
    assert START in {gap["from_ns"] for gap in gaps}


@pytest.mark.parametrize(
    "ages",
    [
        {"events": 2 * SECOND, "maps": SECOND},
        {"maps": SECOND},
        {"rows": SECOND},
        {"events": 0},
    ],
)
def test_ages_that_can_not_be(ages: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        retention.check_ages(ages)


def test_the_command(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    words = ["archive", "expire", archive.url, "--for", "events=1d", "--for", "maps=1d"]
    assert run([*words, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["deleted"]["events"]["segments"] == SEGMENTS
    assert run(words) == 0
    assert "snapshots" in capsys.readouterr().out
    for wrong in ("events", "events=soon", "rows=1d", "maps=1d"):
        assert run(["archive", "expire", archive.url, "--for", wrong]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
