# SPDX-License-Identifier: Apache-2.0
"""Files of kept statistics that are deleted: their time is a loss, before and after a repair, and
after the next writer."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from iolab.cli.main import run
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.kept.compaction import Merger
from iolab.recordings.ask.kept.files import listed, tables
from iolab.recordings.ask.kept.files.definitions import read_state
from iolab.recordings.ask.kept.files.paths import LIST, TIERS, File, files, folder_name
from iolab.recordings.ask.kept.writer import Keeper
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import SECOND
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.kept_data import START, aged, make

NAME = "io.bytes"
SEGMENTS, EACH = 6, 10


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six segments of ten seconds; events of the last two exist."""
    place = tmp_path_factory.mktemp("kept")
    make(place / "whole", (NAME,), segments=SEGMENTS, seconds=EACH, per_s=20)
    aged(place / "whole", place / "r", 2)
    return place / "r"


@pytest.fixture
def recording(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "r"))


def delete(path: Path, *numbers: int) -> None:
    for file in files(path, TIERS[0], folder_name(NAME)):
        if file.first in numbers:
            file.path.unlink()


def lost_seconds(path: Path) -> list[int]:
    answer = query(
        Recording(path),
        NAME,
        from_ns=START,
        until_ns=START + SEGMENTS * EACH * SECOND,
        interval_ns=SECOND,
    )
    assert isinstance(answer, Series)
    return [
        second
        for second, value in enumerate(answer.values)
        if value != value or second in dict(answer.lost)
    ]


def repaired(path: Path) -> Path:
    run(["verify", str(path), "--repair"])
    return path


def reopened(path: Path) -> Path:
    RecordingWriter.reopen(path, live=False).close()
    Keeper(path).look()
    return path


def untouched(path: Path) -> Path:
    return path


@pytest.mark.parametrize("later", [untouched, repaired, reopened])
@pytest.mark.parametrize("numbers", [(1,), (3,), (1, 2), (2, 3), (1, 3), (1, 2, 3)], ids=str)
@pytest.mark.parametrize("is_listed", [True, False], ids=["listed", "unlisted"])
def test_missing_files_are_a_loss_of_their_time(
    is_listed: bool, numbers: tuple[int, ...], later: Callable[[Path], Path], recording: Path
) -> None:
    delete(recording, *numbers)
    if not is_listed:
        (recording / LIST).unlink()
    wanted = [(number - 1) * EACH + second for number in numbers for second in range(EACH)]
    assert lost_seconds(later(recording)) == wanted


def test_the_last_files_are_known_from_the_state(recording: Path) -> None:
    (recording / LIST).unlink()
    delete(recording, 5, 6)
    [lost] = listed.find_lost_files(recording)
    assert (lost.file.first, lost.file.last) == (5, 6)
    assert (lost.first_s, lost.until_s) == (START // SECOND + 40, START // SECOND + 60)


def test_a_list_alone_is_rebuilt(recording: Path) -> None:
    (recording / LIST).unlink()
    assert run(["verify", str(recording), "--repair"]) == 0
    assert run(["verify", str(recording)]) == 0
    assert listed.is_whole(recording)
    assert lost_seconds(recording) == []


def test_files_that_were_merged_or_are_too_old_are_no_loss(recording: Path) -> None:
    state = read_state(recording)
    assert state is not None
    delete(recording, 1)
    state.statistics[NAME].begins["1s"] = START // SECOND + EACH
    state.write(recording)
    second, third = (file.path for file in files(recording, TIERS[0], folder_name(NAME))[:2])
    merged = second.with_name("000002-000003.parquet")
    listed.write(merged, map(tables.read, (second, third)), NAME, "block")
    for path in (second, third):
        listed.drop(path)
        path.unlink()
    (recording / LIST).unlink()
    assert listed.find_lost_files(recording) == []


def test_a_missing_file_is_not_hidden_by_a_merge(recording: Path) -> None:
    delete(recording, 2)
    merger = Merger(recording, NAME, "block")
    groups = merger._split(TIERS[0], [File(1, 1, Path()), File(3, 3, Path()), File(4, 4, Path())])
    assert [[file.first for file in group] for group in groups] == [[1], [3, 4]]
