"""A keeper that is killed at any moment doubles nothing, and makes again what it had not finished."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import kept_data
import numpy as np
import pytest
from kept_data import START, aged, make

from iolab.recording import layout
from iolab.recording.recording import Recording
from iolab.statistics.answers import Stack
from iolab.statistics.intervals import SECOND
from iolab.statistics.kept import definitions, keeper, manage, merging, tables
from iolab.statistics.kept.keeper import Keeper
from iolab.statistics.query import query

NAME = "io.ops[process]"


class Killed(BaseException):
    """As by kill -9: nothing is tidied up."""


def counts(path: Path) -> Stack:
    found = query(Recording(path), NAME, interval_ns=60 * SECOND)
    assert isinstance(found, Stack)
    return found


@pytest.mark.parametrize("nth", range(1, 26, 6))
@pytest.mark.parametrize("step", ["replace", "unlink", "fsync"])
def test_killed_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, nth: int) -> None:
    """Before the nth file takes its place, is removed, or is on disk: of segments of three hours, merged at once."""
    path = tmp_path / "r"
    make(path, [], segments=4, seconds=10, step_s=1500, per_s=5)
    expected = counts(path)
    definitions.change(path, lambda before: before.with_(definitions.Definition(NAME, 1)))
    calls = 0
    target = os if step == "fsync" else Path
    really = getattr(target, step)

    def stopping(*args: object, **more: object) -> object:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise Killed
        return really(*args, **more)

    stopped = False
    with monkeypatch.context() as patch:
        patch.setattr(target, step, stopping)
        try:
            Keeper(path).look()
        except Killed:
            stopped = True
    assert stopped or calls < nth
    Keeper(path).look()
    row = manage.listed(path)[0]
    assert row["state"] == "kept"
    assert row["tiers"][0]["files"] <= 4, "hours that are over are one file each"
    found = counts(aged(path, tmp_path / "old", 0).path)
    assert np.array_equal(found.values, expected.values)
    assert found.keys == expected.keys
    assert not list(path.rglob("*.tmp"))


def test_killed_at_random_moments(tmp_path: Path) -> None:
    path, chance = tmp_path / "r", random.Random(3)
    make(path, [], segments=8, seconds=10, step_s=1000, per_s=5)
    expected = counts(path)
    definitions.change(path, lambda before: before.with_(definitions.Definition(NAME, 1)))
    words = "import sys; from pathlib import Path; from iolab.statistics.kept.keeper import Keeper; print('go', flush=True); " \
            "Keeper(Path(sys.argv[1])).look(); print('done', flush=True)"
    done = False
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", words, str(path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "go\n"
        time.sleep(chance.uniform(0.05, 0.6))
        child.send_signal(signal.SIGKILL)
        done = child.stdout.read() == "done\n"
        child.stdout.close()
        child.wait()
        # readable as it was left
        assert np.array_equal(counts(path).values, expected.values)
        if done:
            break
    Keeper(path).look()
    found = counts(aged(path, tmp_path / "old", 0).path)
    assert np.array_equal(found.values, expected.values)
    assert manage.listed(path)[0]["state"] == "kept"


def test_what_a_merge_left_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [NAME], segments=4, seconds=10, step_s=1500, per_s=5)
    expected = counts(path)
    tier, folder = merging.TIERS[0], merging.folder_name(NAME)
    merged = merging.files(path, tier, folder)[0]
    assert merged.last > merged.first
    # the files that it was made of are there again
    copy = merging.path_of(path, tier, folder, merged.first, merged.first)
    sums = tables.read(merged.path)
    tables.write(copy, [sums], NAME, "block")
    found = counts(aged(path, tmp_path / "old", 0).path)
    assert np.array_equal(found.values, expected.values)
    Keeper(path).look()
    definitions.change(path, lambda before: before.with_(before.statistics[NAME]))
    manage.resume(path)
    assert not copy.exists()


def test_without_its_state_all_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [NAME], segments=4, seconds=10, step_s=1500, per_s=5)
    expected = counts(path)
    (path / keeper.DEFINITIONS).with_name("kept.json").unlink()
    Keeper(path).look()
    assert np.array_equal(counts(aged(path, tmp_path / "old", 0).path).values, expected.values)


def test_a_damaged_segment_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [], segments=3, seconds=10)
    layout.sealed_file(path, 2, "events").write_bytes(b"PAR1 no such thing PAR1")
    told: list[str] = []
    definitions.change(path, lambda before: before.with_(definitions.Definition(NAME, 1)))
    Keeper(path, noticed=told.append).look()
    assert manage.listed(path)[0]["segments"] == 2
    found = counts(aged_without(path, tmp_path / "old"))
    assert found.total == 2 * 10 * 20


def aged_without(path: Path, to: Path) -> Path:
    """All events gone."""
    import shutil

    from iolab.recording.facts import read_facts
    from iolab.recording.retention import finish_dropping

    shutil.copytree(path, to)
    facts = read_facts(to)
    facts.dropped = {"through": 3, "until_ns": START + 30 * SECOND, "segments": 3, "events": {}, "bytes": 0}
    facts.write(to)
    finish_dropping(to, facts)
    return to


def test_the_data_of_this_test_are_late_sometimes() -> None:
    times = kept_data.io(START, 30).column("time_ns").to_numpy()
    assert (times[1:] < times[:-1]).any()
