# SPDX-License-Identifier: Apache-2.0
"""Joined default maps of deleted segments: a kill, damage, readers and retention cost no I/O and count
none twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iolab.base.clock import FakeClock
from iolab.base.files import remove
from iolab.recordings.ask.query import heat, query
from iolab.recordings.ask.question import Question
from iolab.recordings.store import catalogue, ledger
from iolab.recordings.store.base import layout
from iolab.recordings.store.base.grids import Linear
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.verify import verify_recording
from iolab.recordings.store.segments import segments
from iolab.recordings.store.segments.segments import map_paths, noted_segments, read_list
from iolab.recordings.store.write import joining, retention
from iolab.recordings.store.write.writer import RecordingWriter
from support.joined import shorten_joins
from support.plans import explain
from support.recordings import SECOND, START, events

ROWS, LENGTH, SEGMENTS = 40, 4 * SECOND, 14


@pytest.fixture(autouse=True)
def short_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_joins(monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A recording of 14 segments of 4 s, of which 12 have maps only."""
    clock = FakeClock(START)
    place = tmp_path / "r"
    with RecordingWriter.create(
        place,
        host="",
        clock="realtime",
        origin={"kind": "import"},
        retention={"age_s": 7},
        live=False,
        system=clock,
    ) as writer:
        for number in range(SEGMENTS):
            writer.append_segment([batch(number)])
        clock.sleep(SEGMENTS * LENGTH // SECOND)
    assert Recording(place).facts.dropped_through == 12
    return place


def batch(number: int) -> Any:
    """Events of a segment; every third one has small offsets, thus narrow buckets."""
    rows = events(ROWS, number, start_ns=START + number * LENGTH, per_s=ROWS * SECOND // LENGTH)
    if number % 3:
        return rows
    place = rows.schema.get_field_index("offset_bytes")
    offsets = [None if value is None else value % 2**20 for value in rows[place].to_pylist()]
    return rows.set_column(place, rows.schema.field(place), pa.array(offsets, pa.uint64()))


def reopen(path: Path, **retained: int) -> RecordingWriter:
    clock = FakeClock(START + SEGMENTS * LENGTH)
    return RecordingWriter.reopen(path, live=False, system=clock, retention=retained)


def join(path: Path) -> int:
    with reopen(path) as writer:
        return writer.map_joiner.join()


def answers(path: Path) -> list[Any]:
    """I/Os by second and name, and in maps of longer columns."""
    recording = Recording(path)
    maps = []
    for y, interval_s in (("latency", 1), ("latency", 20), ("offset", 1), ("size", 20)):
        counts = heat(recording, y, Question(interval_ns=interval_s * SECOND))
        columns = (counts.column.tolist(), counts.index.tolist(), counts.count.tolist())
        maps.append((counts.events, counts.without_y, *zip(*columns, strict=True)))
    return [query(recording, "io.ops[op=read]", interval_ns=SECOND).total, *maps]


def files(path: Path) -> set[Path]:
    return set(path.glob("histograms/*/io.*/*.parquet"))


def listed_files(path: Path) -> set[Path]:
    """Files that the lines name."""
    lines = noted_segments(path)
    return {file for number, line in lines.items() for file in map_paths(path, line, number)}


def trouble(path: Path) -> list[str]:
    return [str(place.relative_to(path)) for place, _ in Recording(path).damaged_files()]


def test_joined_maps_have_the_same_answers_and_fewer_files(path: Path) -> None:
    before, single = answers(path), len(files(path))
    assert join(path) > 2
    assert answers(path) == before
    ranges = layout.joined_ranges(path / layout.MAPS / "io.latency")
    assert ranges == [(1, 10)], "the last ones may be followed by more"
    assert files(path) == listed_files(path)
    assert len(files(path)) < single
    assert trouble(path) == []
    recording = Recording(path)
    [part] = explain(recording, "io.ops[latency]", interval_ns=20 * SECOND).parts()
    assert part.files == 5
    assert [heat_map.number for heat_map in recording.maps("io.size")] == [10, 11, 12, 13, 14]
    verification = verify_recording(path)
    assert (verification.findings, verification.unverified) == ((), 0)
    assert join(path) == 0


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", [0, 5, 22, 40, "line", "lines", "files"])
def test_killed_while_maps_are_joined(
    step: int | str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = answers(path)
    calls = [0]

    def kill_after(function: Callable[..., Any], most: int) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            calls[0] += 1
            if calls[0] > most:
                raise Killed
            return function(*args, **options)

        return call

    writer = reopen(path)
    with monkeypatch.context() as patch:
        if step == "line":
            patch.setattr(joining, "append_line", kill_after(ledger.append_line, 0))
        elif step == "lines":
            patch.setattr(joining, "append_line", kill_after(ledger.append_line, 3))
        elif step == "files":
            patch.setattr(joining, "remove", kill_after(remove, 4))
        else:
            patch.setattr(joining, "replacing", kill_after(layout.replacing, int(step)))
        with pytest.raises(Killed):
            writer.map_joiner.join()
    writer._lock.close()
    assert answers(path) == before
    assert trouble(path) == []
    assert join(path) > 0
    assert answers(path) == before
    assert files(path) == listed_files(path)


def test_a_reader_never_lacks_maps_that_are_joined_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = answers(path)
    writer = reopen(path)
    read_ledgers = segments.read_ledgers
    joins = iter(range(100))

    def read_and_join(directory: Path) -> Any:
        ledgers = read_ledgers(directory)
        once = iter((True, False))
        if next(joins) % 2 == 0:
            writer.map_joiner.join(lambda: next(once))
        return ledgers

    monkeypatch.setattr(catalogue, "read_ledgers", read_and_join)
    for _ in range(4):
        assert answers(path) == before
    assert layout.joined_ranges(path / layout.MAPS / "io.size") == [(1, 10)]
    writer.close()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("harm", [flip, Path.unlink, lambda path: path.write_bytes(b"PAR1")])
def test_a_damaged_joined_map_is_one_loss_of_its_time(
    harm: Callable[[Path], object], path: Path
) -> None:
    join(path)
    total = query(Recording(path), "io.ops", interval_ns=SECOND).total
    harm(layout.joined_map_file(path, 1, 10, "io.latency"))
    answer = query(Recording(path), "io.ops", interval_ns=SECOND)
    lost = sum(sum(batch(number).column("count").to_pylist()) for number in range(10))
    assert answer.total == total - lost
    assert trouble(path) == ["histograms/1s/io.latency/000001-000010.parquet"]
    [finding] = verify_recording(path).findings
    assert finding.path == "histograms/1s/io.latency/000001-000010.parquet"
    assert finding.lost
    assert not finding.is_derived


@pytest.mark.parametrize("harm", [flip, Path.unlink, lambda path: path.write_bytes(b"PAR1")])
def test_a_damaged_coarser_file_costs_nothing(harm: Callable[[Path], object], path: Path) -> None:
    join(path)
    before = answers(path)
    harm(layout.joined_map_file(path, 1, 10, "io.latency", 10))
    assert answers(path) == before
    assert trouble(path) == ["histograms/10s/io.latency/000001-000010.parquet"]
    [finding] = verify_recording(path).findings
    assert finding.lost == ""


def test_damaged_maps_are_not_joined(path: Path) -> None:
    flip(layout.map_file(path, 5, "io.size"))
    before = query(Recording(path), "io.ops[size]", interval_ns=SECOND).total
    join(path)
    numbers = layout.sealed_numbers(path / layout.MAPS / "io.size")
    assert 5 in numbers
    assert query(Recording(path), "io.ops[size]", interval_ns=SECOND).total == before
    assert trouble(path) == ["histograms/1s/io.size/000005.parquet"]


def test_a_damaged_list_is_restored_from_joined_maps(path: Path) -> None:
    join(path)
    before = answers(path)
    place = path / layout.SEGMENTS
    lines = place.read_text().splitlines(keepends=True)
    lines = [line.replace('"joined":1,', '"joined":2,') for line in lines]
    place.write_text("".join(lines))
    recording = Recording(path)
    assert "histograms/1s/io.latency/000001-000010.parquet" in trouble(path)
    assert query(recording, "io.ops[op=read]", interval_ns=SECOND).total < before[0]
    with reopen(path):
        pass
    assert answers(path) == before
    assert [heat_map.number for heat_map in Recording(path).maps("io.size")] == [10, 11, 12, 13, 14]


def test_joined_maps_are_deleted_by_age_with_all_their_files(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    join(path)
    monkeypatch.setattr(retention, "STALE", 0)
    with reopen(path, maps_age_s=11) as writer:
        writer.tick(START + SEGMENTS * LENGTH)
    assert layout.joined_ranges(path / layout.MAPS / "io.latency") == []
    assert not any("-" in file.stem for file in files(path))
    assert [heat_map.number for heat_map in Recording(path).maps("io.size")] == [12, 13, 14]
    assert trouble(path) == []


def test_replaced_lines_are_deleted_from_the_list(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    join(path)
    before = answers(path)
    monkeypatch.setattr(retention, "STALE", 0)
    with reopen(path):
        pass
    content = read_list(path).content
    assert (len(content.lines), content.replaced) == (5, 0)
    assert answers(path) == before


def test_maps_that_retention_deletes_meanwhile_are_not_joined(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_joined = joining.write_joined
    writer = reopen(path)

    def delete_then_write(*args: Any) -> Any:
        line = write_joined(*args)
        if line["joined"] == 1:
            writer.facts.retention["maps_age_s"] = 40
            writer._retention.apply(writer.facts, START + SEGMENTS * LENGTH)
        return line

    monkeypatch.setattr(joining, "write_joined", delete_then_write)
    writer.map_joiner.join()
    writer.close()
    assert min(heat_map.number for heat_map in Recording(path).maps("io.latency")) > 3
    assert trouble(path) == []
    assert {file for file in files(path) if not file.stem.startswith("0000")} <= listed_files(path)


@pytest.mark.parametrize("first", [-(2**70), 0, 3, 4, "1", None, 1.5, True, [1]])
def test_a_line_with_a_wrong_first_number_is_of_a_single_map(first: object, path: Path) -> None:
    line = dict(noted_segments(path)[3])
    before = answers(path)
    ledger.append_line(path / layout.SEGMENTS, {**line, "joined": first})
    if first is not True:
        assert answers(path) == before
    assert 2 in noted_segments(path) or first is True


def test_offsets_of_segments_with_other_widths(path: Path) -> None:
    assert len({line["offset_width"] for line in noted_segments(path).values()}) == 2
    until_ns = START + LENGTH
    before = heat(Recording(path), "offset", Question(span=(None, until_ns), interval_ns=SECOND))
    join(path)
    after = heat(Recording(path), "offset", Question(span=(None, until_ns), interval_ns=SECOND))
    assert isinstance(before.grid, Linear)
    assert isinstance(after.grid, Linear)
    assert before.grid.width == 4096 < after.grid.width
    assert (after.events, after.without_y) == (before.events, before.without_y)
