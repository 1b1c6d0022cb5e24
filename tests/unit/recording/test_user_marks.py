# SPDX-License-Identifier: Apache-2.0
"""Marks of users: added while a recorder writes, removed, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.errors import ResultsError, UsageError
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write import user_marks
from iolab.recordings.store.write.user_marks import add_mark, remove_mark
from support.recordings import SECOND, START
from support.service import recorded


def labels(recording: Recording) -> list[str]:
    return [mark["label"] for mark in recording.marks()]


def test_marks_of_users_and_of_the_recorder_are_in_one_list(tmp_path: Path) -> None:
    writer = recorded(tmp_path / "rec", seconds=2)
    recording = Recording(tmp_path / "rec")
    add_mark(recording, "fan \N{SNOWMAN}", START, START + SECOND, "louder\nthan before")
    writer.mark("run 2", START, START + SECOND, "run")
    add_mark(recording, "fan \N{SNOWMAN}", START + 5 * SECOND, START + 5 * SECOND, "")
    assert labels(recording) == ["run 1", "fan \N{SNOWMAN}", "run 2", "fan \N{SNOWMAN}"]
    assert recording.marks()[1]["facts"] == {"note": "louder\nthan before"}
    # a browser's numbers have 53 bits
    remove_mark(recording, "fan \N{SNOWMAN}", int(float(START + 1)))
    assert labels(recording) == ["run 1", "run 2", "fan \N{SNOWMAN}"]
    writer.close()
    assert labels(Recording(tmp_path / "rec")) == ["run 1", "run 2", "fan \N{SNOWMAN}"]


def test_only_marks_of_users_are_removed(tmp_path: Path) -> None:
    recorded(tmp_path / "rec", seconds=2).close()
    recording = Recording(tmp_path / "rec")
    for label, from_ns in (("run 1", START), ("nothing", START)):
        with pytest.raises(UsageError):
            remove_mark(recording, label, from_ns)
    assert labels(recording) == ["run 1"]


def test_what_can_not_be_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(tmp_path / "rec", seconds=2).close()
    recording = Recording(tmp_path / "rec")
    for from_ns, until_ns in ((2, 1), (-1, 1), (0, 2**63)):
        with pytest.raises(UsageError):
            add_mark(recording, "x", from_ns, until_ns, "")
    monkeypatch.setattr(user_marks, "MOST", 1)
    add_mark(recording, "x", 1, 2, "")
    with pytest.raises(UsageError):
        add_mark(recording, "y", 1, 2, "")
    # a link to elsewhere is not followed
    (recording.path / "marks.jsonl").unlink()
    (recording.path / "marks.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ResultsError):
        add_mark(recording, "x", 1, 2, "")
    assert not (tmp_path / "elsewhere").exists()
