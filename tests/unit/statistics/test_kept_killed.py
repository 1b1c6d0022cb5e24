# SPDX-License-Identifier: Apache-2.0
"""A keeper that is killed at any moment doubles nothing, and makes again what it had not finished."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from iolab.recordings.ask.answers.answers import Stack
from iolab.recordings.ask.kept import manage, recovery
from iolab.recordings.ask.kept.files import definitions, paths, tables
from iolab.recordings.ask.kept.writer import Keeper
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import SECOND
from iolab.recordings.store.base import layout
from iolab.recordings.store.base.metadata import read_facts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.retention import finish_dropping
from iolab.recordings.store.write.writer import RecordingWriter
from support import kept_data
from support.kept_data import START, aged, make

NAME = "io.ops[process]"


class Killed(BaseException):
    """As by kill -9: nothing is tidied up."""


def counts(path: Path) -> Stack:
    found = query(Recording(path), NAME, interval_ns=60 * SECOND)
    assert isinstance(found, Stack)
    return found


@pytest.mark.parametrize("nth", range(1, 26, 6))
@pytest.mark.parametrize("step", ["replace", "unlink", "fsync"])
def test_killed_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, nth: int
) -> None:
    """Before the nth file takes its place, is removed, or is on disk: of segments of three hours,
    merged at once."""
    path = tmp_path / "r"
    make(path, [], segments=4, seconds=10, step_s=1500, per_s=5)
    expected = counts(path)
    recovery.change_definitions(path, lambda before: before.with_(definitions.Definition(NAME, 1)))
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
    row = manage.list_kept(path)[0]
    assert row["state"] == "kept"
    assert row["tiers"][0]["files"] <= 4, "hours that are over are one file each"
    found = counts(aged(path, tmp_path / "old", 0).path)
    assert np.array_equal(found.values, expected.values)
    assert found.keys == expected.keys
    assert not list(path.rglob("*.tmp"))


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path: Path) -> None:
    path, chance = tmp_path / "r", random.Random(3)
    make(path, [], segments=8, seconds=10, step_s=1000, per_s=5)
    expected = counts(path)
    recovery.change_definitions(path, lambda before: before.with_(definitions.Definition(NAME, 1)))
    words = (
        "import sys; from pathlib import Path; from iolab.recordings.ask.kept.writer import Keeper; print('go', flush=True); "
        "Keeper(Path(sys.argv[1])).look(); print('done', flush=True)"
    )
    done = False
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", words, str(path)], stdout=subprocess.PIPE, text=True
        )
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
    assert manage.list_kept(path)[0]["state"] == "kept"


def test_what_a_merge_left_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [NAME], segments=4, seconds=10, step_s=1500, per_s=5)
    expected = counts(path)
    tier, folder = paths.TIERS[0], paths.folder_name(NAME)
    merged = paths.files(path, tier, folder)[0]
    assert merged.last > merged.first
    # the files that it was made of are there again
    copy = paths.path_of(path, tier, folder, merged.first, merged.first)
    sums = tables.read(merged.path)
    tables.write(copy, [sums], NAME, "block")
    found = counts(aged(path, tmp_path / "old", 0).path)
    assert np.array_equal(found.values, expected.values)
    Keeper(path).look()
    recovery.change_definitions(path, lambda before: before.with_(before.statistics[NAME]))
    manage.resume(path)
    assert not copy.exists()


def test_without_its_state_all_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [NAME], segments=4, seconds=10, step_s=1500, per_s=5)
    expected = counts(path)
    (path / paths.DEFINITIONS).with_name("kept.json").unlink()
    Keeper(path).look()
    assert np.array_equal(counts(aged(path, tmp_path / "old", 0).path).values, expected.values)


def test_a_damaged_segment_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [], segments=3, seconds=10)
    layout.sealed_file(path, 2, "events").write_bytes(b"PAR1 no such thing PAR1")
    told: list[str] = []
    recovery.change_definitions(path, lambda before: before.with_(definitions.Definition(NAME, 1)))
    Keeper(path, noticed=told.append).look()
    assert manage.list_kept(path)[0]["segments"] == 2
    found = counts(aged_without(path, tmp_path / "old"))
    assert found.total == 2 * 10 * 20


def aged_without(path: Path, to: Path) -> Path:
    """All events gone."""
    shutil.copytree(path, to)
    facts = read_facts(to)
    facts.dropped = {
        "through": 3,
        "until_ns": START + 30 * SECOND,
        "segments": 3,
        "events": {},
        "bytes": 0,
    }
    facts.write(to)
    finish_dropping(to, facts)
    return to


def test_the_data_of_this_test_are_late_sometimes() -> None:
    times = kept_data.io(START, 30).column("time_ns").to_numpy()
    assert (times[1:] < times[:-1]).any()


@pytest.mark.slow
@pytest.mark.parametrize("lost", [["kept.json"], ["keep.json"], ["keep.json", "kept.json"]])
def test_what_was_kept_survives_what_says_so(tmp_path: Path, lost: list[str]) -> None:
    """Events are gone: what is kept is all that there is of them. Counters go on where they were."""
    path, counter = tmp_path / "r", "io.utilization[device]"
    make(path, [NAME, counter], segments=6, seconds=10, step_s=1500, per_s=5, counters=True)
    old = aged(path, tmp_path / "old", 1).path
    kept = {name: query(Recording(old), name, interval_ns=60 * SECOND) for name in (NAME, counter)}
    files = sorted(each.relative_to(old) for each in old.glob("histograms/1*/i*.*/*.parquet"))
    for name in lost:
        (old / "histograms" / name).unlink()
    for _ in range(2):
        # what the hint of a damaged file says
        manage.resume(old)
        for name, before in kept.items():
            after = query(Recording(old), name, interval_ns=60 * SECOND)
            assert isinstance(after, Stack)
            assert isinstance(before, Stack)
            assert after.keys == before.keys
            assert np.array_equal(after.values, before.values, equal_nan=True)
        assert (
            sorted(each.relative_to(old) for each in old.glob("histograms/1*/i*.*/*.parquet"))
            == files
        )
    with RecordingWriter.reopen(
        old, live=False, retention={"bytes": None, "age_s": None}
    ) as writer:
        kept_data.add_segment(writer, START + 9000 * SECOND, 10, 5, counters=True)
    manage.add(old, ["io.bytes"])
    states = {row["statistic"]: (row["state"], row["until_ns"]) for row in manage.list_kept(old)}
    assert states[NAME][0] == states[counter][0] == "kept"
    assert set(states) == {NAME, counter, "io.bytes"}
    assert states[counter][1] > START + 9000 * SECOND
    again = query(Recording(aged(old, tmp_path / "gone", 0).path), counter, interval_ns=60 * SECOND)
    assert isinstance(again, Stack)
    assert again.values[:, :100] == pytest.approx(kept[counter].values[:, :100], nan_ok=True)  # type: ignore[union-attr]


def test_folders_of_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [NAME, "io.bytes"], segments=2)
    state = path / "histograms/kept.json"
    state.unlink()
    manage.drop(path, ["io.bytes"])
    assert list(path.glob("histograms/1s/io.bytes.*")), "nothing says what that was"
    # one that begins under that name begins anew
    manage.add(path, ["io.bytes"])
    assert manage.list_kept(path)[1]["rows"] == 0


@pytest.mark.parametrize("how", ["damaged inside", "damaged", "dropped"])
def test_what_could_not_be_kept_is_a_gap(tmp_path: Path, how: str) -> None:
    """A session of 30 s, whose middle third is lost before the keeper comes to it."""
    path = tmp_path / "r"
    with RecordingWriter.create(
        path, host="here", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        writer.facts.sessions.append({"from_ns": START, "until_ns": START + 30 * SECOND})
        writer.facts.write(path)
        kept_data.add_segment(writer, START, 10)
    manage.add(path, [NAME], backfill=True)
    with RecordingWriter.reopen(path, live=False) as writer:
        for number in (1, 2):
            kept_data.add_segment(writer, START + number * 10 * SECOND, 10)
    victim = layout.sealed_file(path, 2, "events")
    if how == "dropped":
        facts = read_facts(path)
        facts.dropped = {
            "through": 2,
            "until_ns": START + 20 * SECOND - 1,
            "segments": 2,
            "events": {},
            "bytes": 0,
        }
        facts.write(path)
        finish_dropping(path, facts)
    elif how == "damaged":
        victim.write_bytes(b"PAR1 no such thing PAR1")
    else:
        # its line still tells what it holds
        victim.write_bytes(b"\0" * victim.stat().st_size)
    manage.resume(path)
    gaps = manage.list_kept(path)[0]["gaps"]
    assert len(gaps) == 1
    assert gaps[0][0] == pytest.approx(START + 10 * SECOND, abs=SECOND)
    assert gaps[0][1] == pytest.approx(START + 20 * SECOND, abs=SECOND)
    found = counts_by_second(aged_without(path, tmp_path / "old"))
    assert np.isnan(found.values[:, 11:19]).all()
    assert not np.isnan(found.values[:, :9]).any()
    assert not np.isnan(found.values[:, 21:29]).any()


def counts_by_second(path: Path) -> Stack:
    found = query(Recording(path), NAME, interval_ns=SECOND)
    assert isinstance(found, Stack)
    return found
