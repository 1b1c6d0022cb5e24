# SPDX-License-Identifier: Apache-2.0
"""How large a recording is: looked at a little at a time, and seldom, however many files it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.clock import FakeClock
from iolab.recordings.record import budget
from iolab.recordings.record.budget import SizeWatch


class Slow(FakeClock):
    """A millisecond passes at each look at it."""

    def monotonic(self) -> float:
        self.sleep(0.001)
        return super().monotonic()


def filled(directory: Path, files: int) -> int:
    for number in range(files):
        place = directory / f"{number % 3}"
        place.mkdir(exist_ok=True)
        (place / f"{number}").write_bytes(b"x" * number)
    (directory / "0" / "link").symlink_to("/dev/null")
    return sum(each.lstat().st_size for each in directory.rglob("*") if not each.is_dir())


def test_all_at_once(tmp_path: Path) -> None:
    whole = filled(tmp_path, 50)
    watch = SizeWatch(tmp_path, FakeClock())
    assert watch.bytes() == whole
    (tmp_path / "more").write_bytes(b"x" * 1000)
    assert watch.bytes(at_once=True) == whole + 1000
    assert SizeWatch(tmp_path / "none", FakeClock()).bytes() == 0


def test_a_little_at_a_time(tmp_path: Path) -> None:
    whole = filled(tmp_path, 100)
    clock = Slow()
    watch = SizeWatch(tmp_path, clock)
    (tmp_path / "first").write_bytes(b"x" * 1000)
    assert watch.bytes() == whole, "what was there before is known from the start: it isn't growth"
    whole, looks = whole + 1000, 0
    while watch.bytes() != whole:
        looks += 1
        assert looks < 100
    assert looks >= 5, "of 102 files some at a time"
    (tmp_path / "more").write_bytes(b"x" * 1000)
    begin = clock.monotonic()
    while watch.bytes() == whole:
        clock.sleep(1)
    assert clock.monotonic() - begin > 0.1 / budget._SHARE, "the longer it takes, the more seldom"
    assert watch.bytes() == whole + 1000


def test_files_that_vanish_count_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, 60)
    watch = SizeWatch(tmp_path, Slow())
    watch.bytes()
    for each in tmp_path.rglob("*"):
        if not each.is_dir():
            each.unlink()
    for _ in range(100):
        assert watch.bytes() < 60 * 60
    assert watch.bytes(at_once=True) == 0
