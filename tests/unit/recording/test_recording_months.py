# SPDX-License-Identifier: Apache-2.0
"""What months leave in a recording: long files of lines are read once, and limits are applied
without looking at everything again."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.base.clock import FakeClock
from iolab.base.errors import ResultsError
from iolab.recordings.ask.engine.snapshot import DeletedSegments, deleted_segments, snapshot
from iolab.recordings.store import ledger
from iolab.recordings.store.base import layout
from iolab.recordings.store.base.metadata import read_facts
from iolab.recordings.store.ledger import NumberedLedger, append_line, line_of, objects
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.segments import segments
from iolab.recordings.store.segments.segments import note_segment, noted_segments
from iolab.recordings.store.write import retention
from iolab.recordings.store.write.retention import Retention
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events, samples


def numbered(line: dict[str, Any]) -> int | None:
    number = line.get("number")
    return number if isinstance(number, int) else None


def lines_of(kept: NumberedLedger, path: Path) -> Mapping[int, Any]:
    return kept.content(path).lines


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 9), st.integers(0, 10**6)),
        st.tuples(st.just("torn"), st.integers(1, 30), st.just(0)),
        st.tuples(st.just("replace"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("rewrite"), st.integers(0, 400), st.just(0)),
        st.tuples(st.just("cut"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("remove"), st.just(0), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_it_says_what_the_file_says_whatever_becomes_of_it(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "lines.jsonl"
    kept = NumberedLedger(numbered)
    for step, number, value in steps:
        if step == "append":
            append_line(path, {"number": number, "value": value, "filling": "x" * (value % 300)})
        elif step == "torn":
            with path.open("ab") as file:
                file.write(b'{"number": 3, "value": "torn'[:number])
        elif step == "replace":
            with layout.replacing(path) as temporary:
                temporary.write_text("".join(f'{{"number": {each}}}\n' for each in range(number)))
        elif step == "rewrite":
            path.write_text('{"number": 7}\n' + " " * number + "\n")
        elif step == "cut" and path.exists():
            path.write_bytes(path.read_bytes()[: -number or None])
        elif step == "remove":
            path.unlink(missing_ok=True)
        assert lines_of(kept, path) == lines_of(NumberedLedger(numbered), path)


def test_only_what_is_new_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, parsed = tmp_path / "lines.jsonl", 0

    def counted(data: bytes) -> Any:
        nonlocal parsed
        parsed += len(data)
        return objects(data)

    monkeypatch.setattr(ledger, "objects", counted)
    path.write_text("".join(f'{{"number": {number}}}\n' for number in range(10_000)))
    kept = NumberedLedger(numbered)
    first = lines_of(kept, path)
    assert parsed == path.stat().st_size
    assert lines_of(kept, path) is first
    append_line(path, {"number": 10_000})
    assert len(lines_of(kept, path)) == 10_001
    assert len(first) == 10_000, "what was handed out is never changed"
    assert parsed == path.stat().st_size


def test_what_is_remembered_is_bounded(tmp_path: Path) -> None:
    kept = NumberedLedger(numbered)
    for number in range(20):
        append_line(tmp_path / f"{number}.jsonl", {"number": number})
        assert list(lines_of(kept, tmp_path / f"{number}.jsonl")) == [number]
    assert len(kept._held) == ledger.MOST_FILES


def test_a_file_that_cannot_be_read_is_not_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines.jsonl"
    kept = NumberedLedger(numbered)
    assert lines_of(kept, path) == {}
    append_line(path, {"number": 1})
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "open_regular", refused)
        with pytest.raises(
            ResultsError, match=r"lines\.jsonl: can't read what it holds: Too many open files"
        ):
            lines_of(kept, path)
    assert list(lines_of(kept, path)) == [1]


def refused(*_: object) -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_a_line_that_is_no_segments_is_left_out(tmp_path: Path) -> None:
    note_segment(tmp_path, 1, {"rows": 5})
    path = tmp_path / layout.SEGMENTS
    good = json.loads(path.read_text())
    damaged: tuple[object, ...] = (
        {**good, "rows": 6},
        {**good, "number": "1"},
        {"number": 2},
        {**good, "number": None},
        [],
    )
    for bad in damaged:
        with path.open("a") as file:
            file.write(json.dumps(bad) + "\n")
        assert list(noted_segments(tmp_path)) == [1]
        assert noted_segments(tmp_path)[1]["rows"] == 5


def grown(path: Path, *, anew: bool, **limits: int) -> tuple[dict[str, Any], list[str]]:
    """What retention left of a recording of 30 segments, of which some lack events or a line.
    `anew`: looked at from scratch each time."""
    clock = FakeClock(START)
    with RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "record"}, retention=limits, system=clock
    ) as writer:
        for number in range(30):
            if number % 4:
                writer.append_events(
                    events(10 + number % 7, number, start_ns=START + 10 * number * SECOND)
                )
            if number % 3 == 0:
                writer.append_samples(samples(2, start_ns=START + 10 * number * SECOND))
            if number % 7 == 6:
                writer.append_segment([events(5, number)], label="run")
            if number == 17:
                writer.drop("run")
            if number == 20 and limits.get("bytes") != 1:
                # of segments whose events are there
                lines = (path / layout.SEGMENTS).read_text().splitlines(keepends=True)
                (path / layout.SEGMENTS).write_text("".join(lines[:-2]))
            if anew:
                writer._retention = Retention(path)
            writer.seal()
            clock.sleep(10)
        clock.sleep(limits.get("maps_age_s", 0) / 2)
        writer.tick(clock.realtime_ns())
    facts = read_facts(path).as_json()
    # names by line, as sizes of lines may differ by their time
    noted = [f"{number} {sorted(line)}" for number, line in sorted(noted_segments(path).items())]
    return facts["dropped"], noted + sorted(
        f"{each.relative_to(path)} {each.stat().st_size}" for each in path.rglob("*.parquet")
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits",
    [
        {"bytes": 20_000},
        {"bytes": 1},
        {"age_s": 50},
        {"age_s": 30, "maps_age_s": 100},
        {"age_s": 20, "maps_bytes": 15_000},
        {"bytes": 30_000, "maps_bytes": 0},
        {"maps_age_s": 40},
    ],
)
def test_what_is_remembered_changes_nothing(
    limits: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "STALE", 3)
    assert grown(tmp_path / "kept", anew=False, **limits) == grown(
        tmp_path / "anew", anew=True, **limits
    )


def months(path: Path, many: int, live: int) -> None:
    """A recording of many segments, of whose events the latest `live` are there; its files are
    empty."""
    for name in segments.MAP_NAMES:
        (path / layout.MAPS / name).mkdir(parents=True)
    with RecordingWriter.create(
        path / "r", host="", clock="realtime", origin={"kind": "record"}, live=False
    ):
        pass
    shutil.move(path / "r/recording.json", path / "recording.json")
    (path / "events").mkdir()
    lines = []
    for number in range(1, many + 1):
        first = START + number * 60 * SECOND
        line = {
            "number": number,
            "first_ns": first,
            "last_ns": first + 59 * SECOND,
            "offset_width": 4096,
            "sources": {"block": {"events": 1}},
            "bytes": {"events": 0, "samples": None},
        }
        lines.append(
            line_of(
                {**line, "sources": {"block": {}}, "maps": 30} if number <= many - live else line
            )
            + "\n"
        )
        if number > many - live:
            layout.sealed_file(path, number, "events").touch()
        for name in segments.MAP_NAMES:
            layout.map_file(path, number, name).touch()
    (path / layout.SEGMENTS).write_text("".join(lines))
    facts = read_facts(path)
    facts.dropped = {
        "through": many - live,
        "segments": many - live,
        "events": {},
        "bytes": 0,
        "until_ns": START,
        "maps_from_ns": START,
    }
    facts.retention = {"bytes": None, "age_s": live * 60 - 30, "maps_age_s": None}
    facts.write(path)


def test_a_seal_after_months_looks_at_what_is_new_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, many, live = tmp_path, 4000, 200
    months(path, many, live)
    facts, kept = read_facts(path), Retention(tmp_path)
    looked: list[object] = []

    def noted(function: Callable[..., Any], what: Callable[..., object]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            looked.append(what(*args))
            return function(*args)

        return call

    monkeypatch.setattr(
        retention, "_numbers_of_maps", noted(retention._numbers_of_maps, lambda *args: "all")
    )
    monkeypatch.setattr(retention, "_map", noted(retention._map, lambda *args: args[1]))
    monkeypatch.setattr(segments, "part_of", noted(segments.part_of, lambda *args: args[2]))
    for number in range(many + 1, many + 6):
        looked.clear()
        first = START + number * 60 * SECOND
        for name in segments.MAP_NAMES:
            layout.map_file(path, number, name).touch()
        layout.sealed_file(path, number, "events").touch()
        note_segment(
            path,
            number,
            {
                "first_ns": first,
                "last_ns": first + 59 * SECOND,
                "offset_width": 4096,
                "sources": {"block": {"events": 1}},
            },
        )
        assert kept.apply(facts, first + 60 * SECOND) == 1
        if number > many + 1:
            assert len(looked) < 10, (
                "neither the segments that are there nor the maps of those that are gone"
            )
            assert "all" not in looked
    assert facts.dropped_through == many - live + 5
    assert len(Recording(path).segments()) == live
    assert len(noted_segments(path)) == many + 5


def test_deleted_segments_are_those_with_maps_and_lines(tmp_path: Path) -> None:
    months(tmp_path, 3000, 100)
    folder = tmp_path / layout.MAPS / "io.latency"
    recording = Recording(tmp_path)

    def deleted() -> DeletedSegments:
        return deleted_segments(snapshot(recording))

    assert deleted().numbers.tolist() == list(range(1, 2901))
    assert deleted().span("block") == (START + 60 * SECOND, START + (2900 * 60 + 59) * SECOND)
    assert deleted().span("syscall") is None
    assert deleted().within((START + 600 * SECOND, START + 720 * SECOND)) == [10, 11]
    layout.map_file(tmp_path, 1, "io.latency").unlink()
    assert deleted().numbers[0] == 2
    # another segment's events are deleted
    facts = read_facts(tmp_path)
    assert facts.dropped is not None
    facts.dropped["through"] = 2950
    facts.write(tmp_path)
    assert deleted().numbers[-1] == 2950
    # lines that can't be read count for nothing
    lines = (tmp_path / layout.SEGMENTS).read_text().splitlines(keepends=True)
    (tmp_path / layout.SEGMENTS).write_text(
        "".join([*lines[:100], "{\n", lines[101].replace(":", ";"), *lines[102:]])
    )
    assert set(range(95, 105)) - set(deleted().numbers.tolist()) == {101, 102}
    shutil.rmtree(folder)
    assert deleted().numbers.tolist() == []
    assert deleted().span("block") is None


def test_deleted_segments_are_found_once_for_a_question(tmp_path: Path) -> None:
    months(tmp_path, 300, 100)
    frozen = Recording(tmp_path).frozen()
    first = deleted_segments(snapshot(frozen))
    assert len(first.numbers) == 200
    assert deleted_segments(snapshot(frozen)) is first
