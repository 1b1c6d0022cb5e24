# SPDX-License-Identifier: Apache-2.0
"""Files of a recording that are deleted together: what is lost is a loss of its time, before and
after a repair, and for the next writer.

`IOLAB_TEST_DEPTH=all` deletes every file alone, 500 pairs and 200 triples, and makes 500 changes of
single files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from iolab.base.clock import FakeClock
from iolab.cli.main import run
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.layout import KINDS, MAPS, SEGMENTS, Kind
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.segments.segments import MAP_NAMES
from iolab.recordings.store.write.writer import RecordingWriter
from support.mutations import Mutation, deletions, mutations, run_sets, written
from support.recordings import SECOND, START, events, samples

IS_DEEP = os.environ.get("IOLAB_TEST_DEPTH") == "all"
SECONDS, EACH = 30, 3


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten sealed segments of three seconds: a hundred events and a sample in each second."""
    path, clock = tmp_path_factory.mktemp("deleted") / "r", FakeClock(START)
    with RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "record"}, system=clock
    ) as writer:
        for second in range(SECONDS):
            at = START + second * SECOND
            writer.append_events(events(100, second, start_ns=at, per_s=100))
            writer.append_samples(samples(1, start_ns=at))
            clock.sleep(1)
            writer.tick(clock.realtime_ns())
            if second % EACH == EACH - 1:
                writer.seal()
    return path


@pytest.fixture
def recording(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "r"))


@pytest.fixture(scope="module")
def all_kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording with every kind of file, of a writer that died."""
    return written(tmp_path_factory.mktemp("kinds"))


@pytest.fixture
def whole(all_kinds: Path, tmp_path: Path) -> Path:
    """A copy where `run_sets` expects it."""
    return Path(shutil.copytree(all_kinds, tmp_path / "r"))


def lost_seconds(path: Path) -> list[int]:
    found = query(
        Recording(path),
        "io.ops",
        from_ns=START,
        until_ns=START + SECONDS * SECOND,
        interval_ns=SECOND,
    )
    assert isinstance(found, Series)
    lost = [second for second, _ in found.lost]
    wrong = [second for second in range(SECONDS) if not found.values[second] > 0]
    assert set(wrong) <= set(lost)
    return lost


def repaired(path: Path) -> Path:
    run(["verify", str(path), "--repair"])
    return path


def reopened(path: Path) -> Path:
    clock = FakeClock(START + SECONDS * SECOND)
    RecordingWriter.reopen(path, system=clock).close()
    return path


def untouched(path: Path) -> Path:
    return path


@pytest.mark.parametrize("later", [untouched, repaired, reopened])
def test_a_segment_without_its_list_is_a_loss_of_its_time(
    later: Callable[[Path], Path], recording: Path
) -> None:
    (recording / SEGMENTS).unlink()
    (recording / "events/000009.parquet").unlink()
    assert lost_seconds(later(recording)) == [24, 25, 26]
    if later is repaired:
        assert run(["verify", str(recording)]) == 1


@pytest.mark.parametrize("later", [untouched, repaired, reopened])
def test_samples_without_their_list_are_a_loss_of_their_time(
    later: Callable[[Path], Path], recording: Path
) -> None:
    (recording / SEGMENTS).unlink()
    (recording / "samples/000004.parquet").unlink()
    [loss] = Recording(later(recording)).unreadable("samples")
    assert (loss["from_ns"], loss["until_ns"], loss["count"]) == (
        START + 9 * SECOND,
        START + 11 * SECOND + 1,
        3,
    )


@pytest.mark.parametrize("later", [untouched, repaired, reopened])
def test_a_number_without_any_file_is_a_loss_between_its_neighbours(
    later: Callable[[Path], Path], recording: Path
) -> None:
    (recording / SEGMENTS).unlink()
    for kind in ("events", "samples", *(f"{MAPS}/{name}" for name in MAP_NAMES)):
        (recording / kind / "000005.parquet").unlink()
    assert set(lost_seconds(later(recording))) >= {12, 13, 14}
    for kind in KINDS:
        assert [each["kind"] for each in Recording(recording).unreadable(kind)] == ["damaged"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_hot_file_stays_a_loss_for_the_next_writer(kind: Kind, whole: Path) -> None:
    next((whole / "hot").glob(f"*.{kind}.arrows")).unlink()
    [before] = [loss for loss in Recording(whole).unreadable(kind) if loss["source"] == ""]
    RecordingWriter.reopen(whole, live=False).close()
    losses = [each for each in Recording(whole).losses() if before["words"] in each["words"]]
    assert [(each["from_ns"], each["until_ns"], each["of"]) for each in losses] == [
        (before["from_ns"], before["until_ns"], kind)
    ]


def test_a_whole_list_makes_no_loss_of_unused_numbers(recording: Path) -> None:
    clock = FakeClock(START + SECONDS * SECOND)
    with RecordingWriter.reopen(recording, system=clock) as writer:
        writer.append_segment([events(10, 1)], label="one")
        writer.append_segment([events(10, 2)], label="two")
        writer.drop("one")
    assert lost_seconds(recording) == []
    assert run(["verify", str(recording)]) == 0


def test_a_list_alone_is_rebuilt(recording: Path) -> None:
    before = Recording(recording).summary()
    (recording / SEGMENTS).unlink()
    assert run(["verify", str(recording), "--repair"]) == 0
    assert run(["verify", str(recording)]) == 0
    after = Recording(recording).summary()
    assert (after.events, after.samples, after.percentiles) == (
        before.events,
        before.samples,
        before.percentiles,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [f"{MAPS}/io.latency/000001.parquet", "1s/io.bytes-device.276ed5b4/000006-000006.parquet"],
)
def test_columns_at_the_borders_of_a_loss_are_right_or_lost(
    name: str, whole: Path, tmp_path: Path
) -> None:
    [path] = {whole / name, whole / "histograms" / name} & set(whole.rglob("*.parquet"))
    sets = [[Mutation(str(path.relative_to(whole)), "delete")]]
    counted, wrong = run_sets(tmp_path, sets, repair=False)
    assert (counted["told"], wrong) == (1, [])


@pytest.mark.slow
@pytest.mark.parametrize("line", [0, 1])
def test_a_damaged_line_of_deleted_events_is_a_loss_of_their_time(
    line: int, whole: Path, tmp_path: Path
) -> None:
    """Retention deleted the events of the first two segments; their default maps remain."""
    start = sum(map(len, (whole / SEGMENTS).read_bytes().splitlines(keepends=True)[:line]))
    sets = [[Mutation(SEGMENTS, "flip", start + 350)]]
    counted, wrong = run_sets(tmp_path, sets, repair=True)
    assert (wrong, counted["told"]) == ([], 1)
    recording = Recording(shutil.copytree(whole, tmp_path / "copy"))
    sets[0][0].apply(recording.path)
    [loss] = recording.unreadable("events")
    assert (loss["until_ns"] - loss["from_ns"]) / SECOND == pytest.approx(20, abs=0.2)
    assert loss["count"] == 800


@pytest.mark.slow
@pytest.mark.parametrize(("together", "many"), [(2, 3), (3, 2)], ids=str)
def test_a_sample_of_deletions_changes_no_answer_silently(
    together: int, many: int, whole: Path, tmp_path: Path
) -> None:
    sets = deletions(whole, together, many, seed=together)
    outcomes, wrong = run_sets(tmp_path, sets, repair=True)
    assert not wrong, outcomes


@pytest.mark.slow
def test_a_sample_of_changes_changes_no_answer_silently(whole: Path, tmp_path: Path) -> None:
    changes = [(mutation,) for mutation in mutations(whole, 8, seed=1)]
    outcomes, wrong = run_sets(tmp_path, changes, repair=False)
    assert not wrong, outcomes
    assert outcomes["told"] > 1


@pytest.mark.deep
@pytest.mark.skipif(not IS_DEEP, reason="IOLAB_TEST_DEPTH=all")
@pytest.mark.parametrize(("together", "many"), [(1, 1000), (2, 500), (3, 200)], ids=str)
def test_no_deletions_change_an_answer_silently(
    together: int, many: int, whole: Path, tmp_path: Path
) -> None:
    sets = deletions(whole, together, many, seed=together)
    counted, wrong = run_sets(tmp_path, sets, repair=True)
    print(f"{len(sets)} sets of {together} deletions: {dict(counted)}")
    assert not wrong
    assert not counted["hang"] + counted["traceback"] + counted["silent"]


@pytest.mark.deep
@pytest.mark.skipif(not IS_DEEP, reason="IOLAB_TEST_DEPTH=all")
def test_no_change_of_a_file_changes_an_answer_silently(whole: Path, tmp_path: Path) -> None:
    sets = [(mutation,) for mutation in mutations(whole, 500, seed=3)]
    counted, wrong = run_sets(tmp_path, sets, repair=False)
    print(f"{len(sets)} single changes: {dict(counted)}")
    assert not wrong
