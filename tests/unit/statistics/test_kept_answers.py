# SPDX-License-Identifier: Apache-2.0
"""What was kept says exactly what the events said, once these are gone, and joins what is still
there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.kept.files.paths import BITS
from iolab.recordings.ask.query import heat, query
from iolab.recordings.ask.question import SECOND, Question
from iolab.recordings.ask.tiers import segment_maps as scanning
from iolab.recordings.store.base.conditions import parse_where
from iolab.recordings.store.base.counts import HeatCounts, alike
from iolab.recordings.store.base.grids import LogLinear
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.kept_data import DAY, HOUR, START, add_segment, aged, io, make

MAPS = [
    "io.ops[process=fio][latency]",
    "io.ops[process!=fio][size]",
    "io.ops[queue]",
    "io.ops[file=/data/3,/data/4][offset]",
    "io.ops[latency>=1ms][size]",
]
NUMBERS = ["io.ops[process]", "io.bytes[file]", "io.bytes[process=db]", "io.ops[latency>=1ms][op]"]


def same_map(kept: HeatCounts, scanned: HeatCounts) -> None:
    """The same counts, on the grid of the coarser one."""
    if isinstance(scanned.grid, LogLinear):
        scanned = scanned.coarser(steps=scanned.grid.bits - BITS)
    one, other = alike([kept, scanned])
    assert one.t0_ns == other.t0_ns
    assert one.interval_ns == other.interval_ns
    for name in ("column", "index", "count"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert (one.events, one.without_y) == (other.events, other.without_y)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return make(tmp_path_factory.mktemp("kept") / "r", [*MAPS, *NUMBERS])


@pytest.mark.parametrize("left", [0, 3])
@pytest.mark.parametrize("interval", [1, 60])
@pytest.mark.parametrize("name", MAPS)
def test_maps_outlive_their_events(
    whole: Recording, tmp_path: Path, name: str, interval: int, left: int
) -> None:
    old = aged(whole.path, tmp_path / "old", left)
    kept = query(old, name, interval_ns=interval * SECOND)
    scanned = query(whole, name, interval_ns=interval * SECOND)
    assert isinstance(kept, HeatCounts)
    assert isinstance(scanned, HeatCounts)
    same_map(kept, scanned)
    assert any("from what was kept" in note for note in kept.assumptions)
    assert not any("kept" in note for note in scanned.assumptions), (
        "events are asked while they are there"
    )


@pytest.mark.parametrize("left", [0, 3])
@pytest.mark.parametrize("interval", [7])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_outlive_their_events(
    whole: Recording, tmp_path: Path, name: str, interval: int, left: int
) -> None:
    old = aged(whole.path, tmp_path / "old", left)
    kept, scanned = (query(each, name, interval_ns=interval * SECOND) for each in (old, whole))
    assert isinstance(kept, Series | Stack)
    assert isinstance(scanned, Series | Stack)
    assert (kept.t0_ns, kept.total) == (scanned.t0_ns, scanned.total)
    # imported: nobody knows when it recorded, so that every column is a whole one
    assert np.array_equal(kept.values, scanned.values)
    if isinstance(kept, Stack):
        assert isinstance(scanned, Stack)
        assert (kept.keys, kept.totals) == (scanned.keys, scanned.totals)


def test_a_window_of_what_is_gone(whole: Recording, tmp_path: Path) -> None:
    old = aged(whole.path, tmp_path / "old", 1)
    first, past = START + 20 * SECOND, START + 70 * SECOND
    for name in MAPS[:3]:
        kept, scanned = (
            query(each, name, interval_ns=SECOND, from_ns=first, until_ns=past)
            for each in (old, whole)
        )
        assert isinstance(kept, HeatCounts)
        assert isinstance(scanned, HeatCounts)
        same_map(kept, scanned)
    # an end within a second is widened, and told
    cut = query(
        old,
        "io.ops[process]",
        interval_ns=SECOND,
        from_ns=START + 20 * SECOND + 1,
        until_ns=START + 70 * SECOND - 1,
    )
    assert isinstance(cut, Stack)
    assert (cut.first_ns, cut.until_ns) == (START + 20 * SECOND, START + 70 * SECOND)
    assert any("widened" in note for note in cut.notes)


def test_what_was_kept_is_read_without_pyarrow(whole: Recording, tmp_path: Path) -> None:
    """It is small and wanted at once: loading what writes it would take as long as the answer."""
    old = aged(whole.path, tmp_path / "old", 0)
    code = (
        "import sys; from pathlib import Path; from iolab.recordings.store.read.recording import Recording; "
        "from iolab.recordings.ask.query import query; "
        "assert query(Recording(Path(sys.argv[1])), sys.argv[2], interval_ns=60 * 10**9).events > 1000; "
        "sys.exit(3 if 'pyarrow' in sys.modules else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(old.path), MAPS[0]],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_sum_comes_from_what_tells_more_apart(whole: Recording, tmp_path: Path) -> None:
    old = aged(whole.path, tmp_path / "old", 1)
    for name in ("io.ops[process=fio]", "io.ops[latency>=1ms]", "io.bytes"):
        kept, scanned = (query(each, name, interval_ns=SECOND) for each in (old, whole))
        assert isinstance(kept, Series)
        assert isinstance(scanned, Series)
        assert np.array_equal(kept.values, scanned.values)
        assert any("from what was kept" in note for note in kept.notes)


@pytest.mark.slow
@pytest.mark.parametrize("left", [0, 3])
@pytest.mark.parametrize(
    ("y", "where"),
    [
        ("queue", ()),
        ("latency", ("process=fio",)),
        ("offset", ("file=/data/3,/data/4",)),
        ("size", ("latency>=1ms",)),
    ],
)
def test_a_plain_map_comes_from_what_was_kept_of_it(
    whole: Recording, tmp_path: Path, y: str, where: tuple[str, ...], left: int
) -> None:
    """As `iolab heatmap` and the library ask: conditions, and no statistic's name."""
    old = aged(whole.path, tmp_path / "old", left)
    kept, scanned = (
        heat(each, y, Question(interval_ns=SECOND), where=parse_where(where))
        for each in (old, whole)
    )
    same_map(kept, scanned)
    assert kept.events > 100
    assert any("from what was kept" in note for note in kept.assumptions)
    assert (
        heat(old, y, Question(interval_ns=SECOND, source="block"), where=parse_where(where)).events
        == kept.events
    )
    if left:
        # what knows less than the question is left alone
        by_second = Question(interval_ns=SECOND)
        for question, has_kept in (
            (replace(by_second, low=4096), True),
            (replace(by_second, weight="time"), True),
            (by_second, False),
        ):
            assert (
                heat(old, y, question, where=parse_where(where), kept=has_kept).events < kept.events
            )


@pytest.mark.slow
def test_a_plain_map_of_system_calls(tmp_path: Path) -> None:
    """Their statistics are called `file`; with or without events, they are asked for as the source
    or as the only one."""
    path = tmp_path / "r"
    with RecordingWriter.create(
        path, host="here", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        for number in range(3):
            batch = io(START + number * 30 * SECOND, 30)
            calls = pa.array(["syscall"] * batch.num_rows).dictionary_encode()
            writer.append_events(
                batch.set_column(0, EVENTS.field("source"), calls.cast(EVENTS.field("source").type))
            )
            writer.seal()
    manage.add(path, ["file.ops[process=fio][latency]"], backfill=True)
    where = parse_where(["process=fio"])
    scanned = heat(Recording(path), "latency", Question(interval_ns=SECOND), where=where)
    for left in (0, 1):
        old = aged(path, tmp_path / f"old{left}", left)
        for source in ("syscall", None):
            same_map(
                heat(old, "latency", Question(interval_ns=SECOND, source=source), where=where),
                scanned,
            )


def test_what_was_not_kept_stays_unknown(whole: Recording, tmp_path: Path) -> None:
    old = aged(whole.path, tmp_path / "old", 2)
    found = query(old, "io.ops[process=db][latency]", interval_ns=SECOND)
    assert isinstance(found, HeatCounts)
    assert found.t0_ns >= START + 4 * 30 * SECOND - 2 * SECOND
    assert any("no longer kept" in note for note in found.assumptions)


@pytest.mark.slow
def test_a_drill_down_of_three_levels_equals_what_was_kept_from_the_start(tmp_path: Path) -> None:
    """By process, of one its files, of one the latencies: asked of the events afterwards, and kept
    all the time."""
    levels = [
        "io.ops[process]",
        "io.ops[process=fio][file]",
        "io.ops[process=fio][file=/data/3][latency]",
    ]
    path = tmp_path / "r"
    with RecordingWriter.create(
        path, host="here", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        add_segment(writer, START, 10)
    manage.add(path, levels, backfill=True)
    for number in range(1, 7):
        with RecordingWriter.reopen(path, live=False) as writer:
            add_segment(writer, START + number * 30 * SECOND, 30, 500)
        manage.resume(path)  # has the keeper look
    asked = [query(Recording(path), name, interval_ns=SECOND) for name in levels]
    old = aged(path, tmp_path / "old", 0)
    kept = [query(old, name, interval_ns=SECOND) for name in levels]
    for one, other in zip(asked[:2], kept[:2], strict=True):
        assert isinstance(one, Stack)
        assert isinstance(other, Stack)
        assert one.total > 10_000
        assert np.array_equal(one.values, other.values)
        assert (one.keys, one.totals) == (other.keys, other.totals)
    assert isinstance(asked[2], HeatCounts)
    assert isinstance(kept[2], HeatCounts)
    same_map(kept[2], asked[2])
    assert asked[2].events > 500


def test_many_events_are_not_scanned_where_they_are_kept(
    whole: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from iolab.recordings.ask.kept import roll_ups

    # of a copy, no answers are remembered that were given with the usual limit
    whole = Recording(Path(shutil.copytree(whole.path, tmp_path / "copy")))
    monkeypatch.setattr(roll_ups, "LONG_SCAN", 1000)
    assert scanning.LONG_SCAN > 1000
    for name in MAPS[:3]:
        kept = query(whole, name, interval_ns=SECOND)
        assert isinstance(kept, HeatCounts)
        assert any("from what was kept" in note for note in kept.assumptions)
    with monkeypatch.context() as plain:
        plain.setattr(roll_ups, "LONG_SCAN", 10**9)
        other = Recording(Path(shutil.copytree(whole.path, tmp_path / "other")))
        scanned = query(other, MAPS[0], interval_ns=SECOND)
    assert isinstance(scanned, HeatCounts)
    assert not any("from what was kept" in note for note in scanned.assumptions)
    kept = query(whole, MAPS[0], interval_ns=SECOND)
    assert isinstance(kept, HeatCounts)
    same_map(kept, scanned)
    # less than a second has to be scanned
    short = query(whole, MAPS[0], interval_ns=SECOND // 10)
    assert isinstance(short, HeatCounts)
    assert not any("kept" in note for note in short.assumptions)


def test_default_maps_answer_what_they_know(whole: Recording, tmp_path: Path) -> None:
    manage.add(whole.path, ["io.ops[op=write][latency]"], backfill=True)
    old = aged(whole.path, tmp_path / "old", 1)
    found = query(old, "io.ops[op=write][latency]", interval_ns=SECOND)
    assert isinstance(found, HeatCounts)
    assert found.grid == LogLinear(6)


@pytest.mark.slow
def test_what_is_hot_and_what_was_sealed_since_is_joined(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [MAPS[0], NUMBERS[0]], segments=4)
    with RecordingWriter.reopen(path, live=False) as writer:
        add_segment(writer, START + 4 * 30 * SECOND, 30)
        writer.append_events(io(START + 5 * 30 * SECOND, 30))
        whole = {
            name: query(Recording(path), name, interval_ns=SECOND) for name in (MAPS[0], NUMBERS[0])
        }
        old = aged(path, tmp_path / "old", 2)
        for name, scanned in whole.items():
            kept = query(old, name, interval_ns=SECOND)
            if isinstance(kept, HeatCounts):
                assert isinstance(scanned, HeatCounts)
                same_map(kept, scanned)
            else:
                assert isinstance(kept, Stack)
                assert isinstance(scanned, Stack)
                assert np.array_equal(kept.values, scanned.values)
        assert old.snapshot("events")[1] is not None


def test_what_was_added_late_is_joined_with_the_events_before(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [], segments=4)
    since = START + 75 * SECOND
    manage.add(path, [NUMBERS[0]], now_ns=since + 1)
    rows = manage.list_kept(path)
    assert (rows[0]["since_ns"], rows[0]["until_ns"]) == (
        since,
        Recording(path).segments()[-1].last_ns + 1,
    )
    old = aged(path, tmp_path / "old", 3)
    kept, scanned = (
        query(each, NUMBERS[0], interval_ns=SECOND, from_ns=START + 40 * SECOND)
        for each in (old, Recording(path))
    )
    assert isinstance(kept, Stack)
    assert isinstance(scanned, Stack)
    assert np.array_equal(kept.values, scanned.values)


@pytest.mark.slow
def test_longer_sums_answer_for_longer_columns(tmp_path: Path) -> None:
    """Two days, about two segments an hour; seconds are kept for a day only."""
    path = tmp_path / "r"
    make(path, [], segments=95, seconds=20, step_s=1900, per_s=5)
    from iolab.recordings.ask.kept import recovery
    from iolab.recordings.ask.kept.files import definitions

    recovery.change_definitions(
        path,
        lambda before: definitions.Definitions(
            retention={"1s": DAY // SECOND, "1m": 10 * DAY // SECOND, "1h": 90 * DAY // SECOND}
        ),
    )
    manage.add(path, [MAPS[0], NUMBERS[0]], backfill=True)
    row = {each["tier"]: each for each in manage.list_kept(path)[0]["tiers"]}
    assert row["1s"]["files"] <= 6
    assert row["1m"]["files"] <= 5
    assert row["1h"]["files"] <= 5
    assert row["1m"]["first_ns"] == START
    assert row["1s"]["first_ns"] >= START + 12 * HOUR
    whole = Recording(path)
    old = aged(path, tmp_path / "old", 0)
    for seconds in (60, 300, 3600, 7200):
        kept, scanned = (
            query(each, MAPS[0], interval_ns=seconds * SECOND) for each in (old, whole)
        )
        assert isinstance(kept, HeatCounts)
        assert isinstance(scanned, HeatCounts)
        same_map(kept, scanned)
        numbers, plain = (
            query(each, NUMBERS[0], interval_ns=seconds * SECOND) for each in (old, whole)
        )
        assert isinstance(numbers, Stack)
        assert isinstance(plain, Stack)
        assert np.array_equal(numbers.values, plain.values)
    # left open, columns are of whole minutes
    free = query(old, MAPS[0])
    assert isinstance(free, HeatCounts)
    assert free.interval_ns % (60 * SECOND) == 0
    assert free.total == query(whole, MAPS[0], interval_ns=60 * SECOND).total
    # by the second only what is kept by the second
    fine = query(old, MAPS[0], interval_ns=10 * SECOND)
    assert isinstance(fine, HeatCounts)
    assert fine.t0_ns >= START + 12 * HOUR
    assert any("sums of 1m alone" in note for note in fine.assumptions)
    recent = query(old, MAPS[0], interval_ns=SECOND, from_ns=START + 45 * HOUR)
    there = query(whole, MAPS[0], interval_ns=SECOND, from_ns=START + 45 * HOUR)
    assert isinstance(recent, HeatCounts)
    assert isinstance(there, HeatCounts)
    same_map(recent, there)


@pytest.mark.parametrize(
    "damage", [b"{", b'{"kind": "kept", "schema": 99}', b'{"kind": "keep", "schema": 99}']
)
@pytest.mark.parametrize("name", ["keep.json", "kept.json"])
def test_what_says_what_is_kept_is_damaged_and_events_answer(
    whole: Recording, tmp_path: Path, name: str, damage: bytes
) -> None:
    from iolab.recordings.ask.kept.recorded import span_of

    old = aged(whole.path, tmp_path / "old", 2)
    (old.path / "histograms" / name).write_bytes(damage)
    series, stack = query(old, "io.bytes"), query(old, "io.bytes[file]")
    assert isinstance(series, Series)
    assert isinstance(stack, Stack)
    for found in (series, stack):
        assert found.total > 0
        assert any("what was kept can't be asked" in note and name in note for note in found.notes)
    assert span_of(old) is not None


def test_statistics_of_a_newer_iolab_harm_no_others(tmp_path: Path) -> None:
    from iolab.recordings.ask.kept import recovery
    from iolab.recordings.ask.kept.files import definitions

    path = tmp_path / "r"
    make(path, [], segments=2)
    recovery.change_definitions(
        path, lambda before: before.with_(definitions.Definition("io.novelty[moon]", 1))
    )
    manage.add(path, ["io.bytes[file]"], backfill=True)
    rows = {row["statistic"]: row for row in manage.list_kept(path)}
    assert (rows["io.novelty[moon]"]["state"], rows["io.bytes[file]"]["state"]) == (
        "waiting",
        "kept",
    )
    assert "does not know the statistic" in rows["io.novelty[moon]"]["why"]
    kept, scanned = (
        query(each, "io.bytes[file]", interval_ns=SECOND)
        for each in (aged(path, tmp_path / "old", 0), Recording(path))
    )
    assert isinstance(kept, Stack)
    assert isinstance(scanned, Stack)
    assert np.array_equal(kept.values, scanned.values)
    manage.drop(path, ["io.novelty[moon]"])
    assert [row["statistic"] for row in manage.list_kept(path)] == ["io.bytes[file]"]


def test_names_that_were_not_kept_apart_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from iolab.recordings.ask.kept import aggregate

    path = tmp_path / "r"
    with monkeypatch.context() as few:
        few.setattr(aggregate, "MOST_KEYS", 10)
        make(path, ["io.ops[file]", "io.ops[process]"], segments=3)
    old = aged(path, tmp_path / "old", 1)
    files, processes = (
        query(old, "io.ops[file]", interval_ns=SECOND),
        query(old, "io.ops[process]", interval_ns=SECOND),
    )
    assert isinstance(files, Stack)
    assert isinstance(processes, Stack)
    assert files.rest is not None
    assert any("largest of a segment are in the rest" in note for note in files.notes)
    assert not any("in the rest" in note for note in processes.notes)
    # of the whole nothing is missing
    series = query(old, "io.ops[op=write,read]", interval_ns=SECOND)
    assert isinstance(series, Series)
    assert not any("in the rest" in note for note in series.notes)
