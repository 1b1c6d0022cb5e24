# SPDX-License-Identifier: Apache-2.0
"""Adding, pausing, pruning and dropping; the budget; counters that outlive their samples."""

from __future__ import annotations

import errno
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iolab.base.errors import ResultsError, UsageError
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.kept import manage, recovery
from iolab.recordings.ask.kept.files import definitions
from iolab.recordings.ask.kept.files.paths import STATE, folder_name
from iolab.recordings.ask.kept.writer import Budget, Keeper
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import SECOND
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.lock import take_lock
from iolab.recordings.store.base.metadata import read_facts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.kept_data import HOUR, START, add_segment, aged, make

NAME = "io.ops[process]"
MAP = "io.ops[process=fio][latency]"


def test_adding_twice_and_what_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [MAP], segments=1)
    for how in (manage.add, manage.pause, manage.drop):
        with pytest.raises(UsageError):
            how(path, ["io.opps"])
    with pytest.raises(UsageError, match="is kept already"):
        manage.add(path, ["io.ops[process = fio][latency]"])
    with pytest.raises(UsageError, match="is not kept") as error:
        manage.drop(path, ["io.ops[process=fio]"])
    assert MAP in (error.value.hint or "")
    with pytest.raises(UsageError, match="characters"):
        manage.add(path, ["io.ops[file=" + "x" * 10**6 + "]"])
    with pytest.raises(UsageError, match="names no statistic"):
        manage.drop(path, [])
    with pytest.raises(ResultsError, match="is not a recording"):
        manage.list_kept(tmp_path)
    with pytest.raises(UsageError, match="there is no tier"):
        manage.prune(path, [], before_ns=0, tier="1d")
    assert [row["statistic"] for row in manage.list_kept(path)] == [MAP]


def test_what_was_imported_does_not_age(tmp_path: Path) -> None:
    RecordingWriter.create(
        tmp_path / "r", host="", clock="trace", origin={"kind": "import"}, live=False
    ).close()
    with pytest.raises(UsageError, match="do not age") as error:
        manage.add(tmp_path / "r", [NAME], backfill=True)
    assert "query" in (error.value.hint or "")


def test_a_pause_is_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "r"
    with RecordingWriter.create(
        path, host="here", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        writer.facts.sessions.append({"from_ns": START, "until_ns": START + 120 * SECOND})
        writer.facts.write(path)
    manage.add(path, [NAME, MAP], now_ns=START + 1)
    manage.pause(path, [NAME], now_ns=START + 20 * SECOND + 5)
    manage.resume(path, [NAME], now_ns=START + 39 * SECOND + 5)
    whole = tmp_path / "whole"
    for where in (path, whole):
        if where is whole:
            make(where, [], segments=4)
            continue
        with RecordingWriter.reopen(where, live=False) as writer:
            for number in range(4):
                add_segment(writer, START + number * 30 * SECOND, 30)
    Keeper(path).look()
    row = manage.list_kept(path)[0]
    assert row["state"] == "kept"
    assert row["gaps"] == [[START + 21 * SECOND, START + 40 * SECOND]]
    assert manage.list_kept(path)[1]["gaps"] == []
    kept, scanned = (
        query(aged(path, tmp_path / "old", 0), NAME, interval_ns=SECOND),
        query(Recording(whole), NAME, interval_ns=SECOND),
    )
    assert isinstance(kept, Stack)
    assert isinstance(scanned, Stack)
    left = np.asarray(np.isnan(kept.values).all(axis=0))
    assert left.nonzero()[0].tolist() == list(range(21, 40))
    order = [scanned.keys.index(key) for key in kept.keys]
    assert np.array_equal(kept.values[:, ~left], scanned.values[order][:, ~left])
    assert kept.covered_ns == 101 * SECOND
    # paused again, it says so
    assert [each["state"] for each in manage.pause(path)] == ["paused", "paused"]


@pytest.mark.slow
def test_pruning_by_tier(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [NAME], segments=10, seconds=10, step_s=1800, per_s=5)
    whole = query(Recording(path), NAME, interval_ns=3600 * SECOND)
    manage.prune(path, [NAME], before_ns=START + 2 * HOUR + 1200 * SECOND, tier="1m")
    tiers = {each["tier"]: each for each in manage.list_kept(path)[0]["tiers"]}
    assert tiers["1s"]["first_ns"] >= START + 2 * HOUR + 1200 * SECOND
    assert tiers["1m"]["first_ns"] >= START + 2 * HOUR + 1200 * SECOND
    assert tiers["1h"]["first_ns"] == START
    old = aged(path, tmp_path / "old", 0)
    hours = query(old, NAME, interval_ns=3600 * SECOND)
    assert isinstance(hours, Stack)
    assert isinstance(whole, Stack)
    assert np.array_equal(hours.values, whole.values)
    seconds = query(old, NAME, interval_ns=SECOND)
    assert isinstance(seconds, Stack)
    assert 0 < seconds.total < whole.total
    # everything before a moment
    assert (
        manage.prune(path, [], before_ns=START + 3 * HOUR)[0]["tiers"][2]["first_ns"]
        == START + 3 * HOUR
    )


def test_dropping_removes_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [NAME, MAP], segments=2)
    maps = sorted((path / "histograms/1s/io.latency").iterdir())
    manage.drop(path, [NAME])
    assert [row["statistic"] for row in manage.list_kept(path)] == [MAP]
    assert not list(path.glob(f"histograms/*/{folder_name(NAME)}"))
    assert sorted((path / "histograms/1s/io.latency").iterdir()) == maps
    # one of the same name begins anew
    rows = manage.add(path, [NAME])
    assert rows[1]["rows"] == 0


def test_what_is_recorded_is_left_to_its_recorder(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [], segments=1)
    with take_lock(path):
        rows = manage.add(path, [NAME], wait_s=0.2)
        assert rows[0]["state"] == "pending"
        assert not (path / STATE).exists()
    assert manage.resume(path)[0]["state"] == "waiting"


def test_the_budget_suspends_the_largest(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [], segments=4)
    recovery.change_definitions(path, lambda before: replace(before, bytes=6000))
    rows = manage.add(path, [NAME, MAP, "io.ops[file]"], backfill=True)
    held = {row["statistic"]: row for row in rows}
    suspended = [name for name, row in held.items() if row["state"] == "suspended"]
    assert suspended
    assert "budget" in held[suspended[0]]["why"]
    assert held[suspended[0]]["gaps"][0][1] is None
    # what is suspended takes its place still, so that others follow
    assert min(held[name]["tiers"][0]["files"] for name in suspended) < 4
    recovery.change_definitions(path, lambda before: replace(before, bytes=None))
    after = {row["statistic"]: row for row in manage.resume(path)}
    assert {row["state"] for row in after.values()} == {"kept"}
    assert all(row["gaps"][0][1] is not None for name, row in after.items() if name in suspended)


def test_the_budget_counts_what_pauses() -> None:
    budget, limits = Budget(lambda: 0.0, cpus=2), definitions.Definitions(bytes=100)
    sizes = {"paused": 90, "small": 5, "smaller": 4}
    assert budget.excess(limits, sizes, {"small": 0, "smaller": 0}) is None
    found = budget.excess(limits, {**sizes, "small": 7}, {"small": 0, "smaller": 0})
    assert found is not None
    assert found[0] == "small"
    assert "101 B" in found[1]
    assert budget.excess(limits, {**sizes, "small": 7}, {}) is None


def test_the_budget_of_cpu_time() -> None:
    now = [0.0]
    budget = Budget(lambda: now[0], cpus=2)
    limits = definitions.Definitions(cpu_share=0.05)
    found = None
    for second in range(90):
        now[0] = float(second)
        spent = {"a": second * 10_000_000, "b": second * 95_000_000}
        found = budget.excess(limits, {}, spent)
        if found:
            break
    assert found is not None
    assert found[0] == "b"
    assert second == 60
    assert "5.2 % of all CPU time" in found[1]
    now[0] = 200.0
    assert budget.excess(replace(limits, cpu_share=None), {}, {"a": 10**15}) is None


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, list[Recording]]:
    """Counters of more than an hour, and the same of which all samples, or all but the last, are
    gone."""
    place = tmp_path_factory.mktemp("counted")
    whole = make(
        place / "r",
        ["io.utilization[device]", "cpu.utilization[mode]"],
        segments=14,
        seconds=300,
        per_s=1,
        counters=True,
    )
    return whole, [aged(whole.path, place / f"old{left}", left) for left in (0, 3)]


def cells_after_first(counts: HeatCounts, first_ns: int) -> dict[tuple[int, int], int]:
    cells = {
        (counts.t0_ns + column * counts.interval_ns, index): count
        for column, index, count in zip(
            counts.column.tolist(), counts.index.tolist(), counts.count.tolist(), strict=True
        )
    }
    return {place: count for place, count in cells.items() if place[0] > first_ns}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "io.utilization[device]",
        "io.utilization",
        "cpu.utilization[mode]",
        "cpu.utilization",
        "io.utilization[utilization]",
    ],
)
@pytest.mark.parametrize("interval", [1, 60, 3600])
def test_counters_outlive_their_samples(
    counted: tuple[Recording, list[Recording]], name: str, interval: int
) -> None:
    whole, without = counted
    scanned = query(whole, name, interval_ns=interval * SECOND)
    for old in without:
        kept = query(old, name, interval_ns=interval * SECOND)
        if isinstance(scanned, HeatCounts):
            assert isinstance(kept, HeatCounts)
            # the first second is not whole: its mean is kept, and there no reading ends
            assert cells_after_first(kept, scanned.t0_ns) == cells_after_first(
                scanned, scanned.t0_ns
            )
            assert 0 <= kept.events - scanned.events <= 2
            assert any(
                "means over a second" in note and "peaks within are not in it" in note
                for note in kept.assumptions
            )
            continue
        assert isinstance(kept, Series | Stack)
        assert kept.values == pytest.approx(scanned.values, rel=1e-6, nan_ok=True)
        assert kept.mean == pytest.approx(scanned.mean, rel=1e-6)
        assert any("from what was kept" in note for note in kept.notes)


def test_a_series(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, ["io.bytes[process!=fio]"], segments=3)
    recordings = aged(path, tmp_path / "old", 1), Recording(path)
    kept, scanned = (
        query(each, "io.bytes[process!=fio]", interval_ns=SECOND) for each in recordings
    )
    assert isinstance(kept, Series)
    assert isinstance(scanned, Series)
    assert np.array_equal(kept.values, scanned.values)


def test_what_is_kept_until_a_moment_pauses_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [], segments=2)
    now = [START + 30 * SECOND]
    until = START + 45 * SECOND + 5
    recovery.change_definitions(
        path,
        lambda before: before.with_(definitions.Definition(NAME, 1, until_ns=until)).with_(
            definitions.Definition(MAP, 1)
        ),
    )
    keeper = Keeper(path, now=lambda: now[0])
    assert keeper.look()
    row = manage.list_kept(path)[0]
    assert (row["state"], row["why"]) == ("kept", "until 2023-11-14T00:00:45Z")
    # what came later is not in, though nobody paused it yet
    assert row["tiers"][0]["until_ns"] == START + 46 * SECOND
    assert not keeper.look()
    now[0] = until
    assert keeper.look()
    keeper.look()
    assert not keeper.look()
    row, other = manage.list_kept(path)
    assert (row["state"], row["gaps"]) == ("paused", [[START + 46 * SECOND, None]])
    assert (other["state"], other["gaps"]) == ("kept", [])


def test_resuming_until_a_moment(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [], segments=1)
    with take_lock(path):
        # nobody keeps: what is asked for is looked at alone
        def held() -> tuple[int | None, definitions.Spans]:
            found = definitions.read_definitions(path)
            assert found is not None
            return found.statistics[NAME].until_ns, found.statistics[NAME].pauses

        manage.add(path, [NAME], now_ns=START, wait_s=0)
        manage.resume(path, [NAME], now_ns=START, until_ns=START + 60 * SECOND, wait_s=0)
        assert held() == (None, ()), "what is kept for ever stays so"
        manage.pause(path, now_ns=START, wait_s=0)
        manage.resume(path, now_ns=START + SECOND, until_ns=START + 60 * SECOND, wait_s=0)
        manage.resume(path, now_ns=START + SECOND, until_ns=START + 50 * SECOND, wait_s=0)
        assert held() == (START + 60 * SECOND, ((START, START + SECOND),))
        # over, and asked for again before the keeper saw it
        manage.resume(path, now_ns=START + 70 * SECOND, until_ns=START + 90 * SECOND, wait_s=0)
        assert held() == (
            START + 90 * SECOND,
            ((START, START + SECOND), (START + 60 * SECOND, START + 70 * SECOND)),
        )
        manage.resume(path, now_ns=START + 80 * SECOND, wait_s=0)
        assert held()[0] is None
        manage.drop(path, [NAME], wait_s=0)
        manage.add(path, [NAME], now_ns=START, until_ns=START + SECOND, wait_s=0)
        manage.pause(path, now_ns=START + 5 * SECOND, wait_s=0)
        assert held() == (None, ((START + SECOND, None),))


def test_times_are_those_of_the_recorded_hosts_clock(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [], segments=1)
    facts = read_facts(path)
    ahead = 3 * 365 * 86400 * SECOND
    facts.sessions.append({"from_ns": START, "until_ns": None, "clock_offset_ns": ahead})
    facts.write(path)
    before = time.time_ns() + ahead
    manage.add(path, [NAME])
    manage.pause(path)
    found = definitions.read_definitions(path)
    assert found is not None
    added = found.statistics[NAME]
    assert before <= added.added_ns <= time.time_ns() + ahead
    assert added.since_ns is not None
    assert 0 <= added.pauses[0][0] - added.since_ns < 60 * SECOND
    manage.resume(path)
    found = definitions.read_definitions(path)
    assert found is not None
    assert found.statistics[NAME].resumed_ns >= before


def test_pruning_seconds_of_an_hour_that_is_not_over_leaves_what_longer_sums_need(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r"
    make(path, [NAME], segments=4, seconds=10, step_s=1500, per_s=5)
    # the last segment, of the second hour, is not over
    manage.prune(path, [NAME], before_ns=START + 5000 * SECOND, tier="1m")
    tiers = {each["tier"]: each for each in manage.list_kept(path)[0]["tiers"]}
    assert tiers["1s"]["first_ns"] == START + 4500 * SECOND
    for seconds in (60, 3600):
        scanned = query(Recording(path), NAME, interval_ns=seconds * SECOND)
        kept = query(aged(path, tmp_path / f"old{seconds}", 0), NAME, interval_ns=seconds * SECOND)
        assert isinstance(kept, Stack)
        assert isinstance(scanned, Stack)
        last = [
            dict(zip(each.keys, each.values[:, -1].tolist(), strict=True))
            for each in (kept, scanned)
        ]
        assert last[0] == last[1]
        assert sum(last[0].values()) > 0
    # once that hour is over, what was asked for is done
    with RecordingWriter.reopen(path, live=False) as writer:
        add_segment(writer, START + 2 * HOUR + 10 * SECOND, 10, 5)
    manage.resume(path)
    tiers = {each["tier"]: each for each in manage.list_kept(path)[0]["tiers"]}
    assert tiers["1s"]["first_ns"] >= START + 2 * HOUR
    # everything is everything
    assert manage.prune(path, [NAME], before_ns=START + 3 * HOUR)[0]["rows"] == 0


def test_a_limit_of_time_leaves_the_rest_to_the_next_change(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [], segments=3)
    row = manage.add(path, [NAME], backfill=True, work_s=0)[0]
    assert (row["state"], row["segments"]) == ("pending", 0)
    assert "keep resume" in row["why"]
    row = manage.resume(path, [NAME], work_s=60)[0]
    assert (row["state"], row["why"], row["segments"]) == ("kept", "", 3)


@pytest.mark.parametrize("backfill", [True, False])
def test_what_was_ended_before_it_was_done_is_added_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backfill: bool
) -> None:
    path = tmp_path / "r"
    make(path, [], segments=3)
    with monkeypatch.context() as patch:
        patch.setattr(Keeper, "look", full_disk)
        with pytest.raises(OSError, match="full"):
            manage.add(path, [NAME], backfill=backfill)
    assert manage.list_kept(path)[0]["state"] == "pending"
    with pytest.raises(UsageError, match="kept already"):
        manage.add(path, [NAME], backfill=not backfill)
    row = manage.add(path, [NAME], backfill=backfill)[0]
    assert row["state"] == ("kept" if backfill else "waiting")
    assert row["segments"] == (3 if backfill else 0)
    with pytest.raises(UsageError, match="kept already"):
        manage.add(path, [NAME], backfill=backfill)


def test_a_backfill_that_ran_out_of_time_is_continued_by_the_same_command(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [], segments=3)
    assert manage.add(path, [NAME], backfill=True, work_s=0)[0]["state"] == "pending"
    row = manage.add(path, [NAME], backfill=True)[0]
    assert (row["state"], row["segments"]) == ("kept", 3)


def full_disk(keeper: Keeper) -> None:
    raise OSError(errno.ENOSPC, "the disk is full")
