# SPDX-License-Identifier: Apache-2.0
"""Limits of what is kept: shown, changed, taken up, refused; and what a damaged file says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import ResultsError, UsageError
from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.kept.files.paths import DEFINITIONS, TIERS
from iolab.recordings.ask.kept.manage import Wanted, limit, limits
from iolab.recordings.store.base.lock import take_lock
from iolab.recordings.store.write.writer import RecordingWriter
from support.kept_data import DAY, START, add_segment, make

NAMES = ["io.ops[process]", "io.ops[process=fio][latency]"]
DAYS = {"1s": 7 * 86400, "1m": 14 * 86400, "1h": 90 * 86400}


def test_what_holds_unless_chosen(tmp_path: Path) -> None:
    make(tmp_path / "r", [], segments=1)
    assert limits(tmp_path / "r") == {
        "bytes": 1 << 30,
        "cpu_share": 0.05,
        "retention": DAYS,
        "used_bytes": 0,
        "pending": False,
    }
    assert not (tmp_path / "r" / DEFINITIONS).exists(), "to look changes nothing"
    with pytest.raises(ResultsError, match="is not a recording"):
        limits(tmp_path)


def test_what_is_chosen_holds_and_nothing_else_changes(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, NAMES, segments=2)
    before = manage.list_kept(path)
    found = limit(path, {"bytes": None})
    assert found == {
        "bytes": None,
        "cpu_share": 0.05,
        "retention": DAYS,
        "pending": False,
        "used_bytes": sum(row["bytes"] for row in before),
    }
    limit(path, {"cpu_share": 0.5, "retention": {"1h": 400 * 86400}})
    found = limit(path, {"bytes": 5000, "retention": {"1s": 3600}})
    assert (found["bytes"], found["cpu_share"], found["retention"]) == (
        5000,
        0.5,
        {"1s": 3600, "1m": 14 * 86400, "1h": 400 * 86400},
    )
    assert found == limits(path)
    after = manage.list_kept(path)
    assert [tier["keep_s"] for tier in after[0]["tiers"]] == [3600, 14 * 86400, 400 * 86400]
    assert [row["statistic"] for row in after] == NAMES


def test_a_shorter_age_lets_go_at_once(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, NAMES, segments=6, seconds=10, step_s=86400, per_s=5)
    assert {tier["first_ns"] for tier in manage.list_kept(path)[0]["tiers"]} == {START}
    limit(path, {"retention": {"1s": 86400, "1m": 2 * 86400}})
    tiers = {tier["tier"]: tier["first_ns"] for tier in manage.list_kept(path)[0]["tiers"]}
    assert tiers["1h"] == START
    assert START < tiers["1m"] < tiers["1s"] <= START + 5 * DAY


def test_a_smaller_size_suspends_and_a_larger_one_lets_it_go_on(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, NAMES, segments=2)
    limit(path, {"bytes": 10})
    with RecordingWriter.reopen(path, live=False) as writer:
        add_segment(writer, START + 600 * 10**9, 30)
    assert "suspended" in {row["state"] for row in manage.resume(path, [])}
    limit(path, {"bytes": 1 << 20})
    assert "suspended" in {row["state"] for row in manage.list_kept(path)}, (
        "that is for who looks after it"
    )
    assert {row["state"] for row in manage.resume(path)} == {"kept"}


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"bytes": 0}, "a size is more than nothing"),
        ({"bytes": -5}, "a size"),
        ({"bytes": 1 << 63}, "a size"),
        ({"cpu_share": 0.0}, "a share"),
        ({"cpu_share": 1.5}, "a share"),
        ({"cpu_share": float("nan")}, "a share"),
        ({"retention": {"1s": 0}}, "for a second at least"),
        ({"retention": {"1s": 30 * 86400}}, "at least as long as shorter ones"),
        ({"retention": {"1h": 10**12}}, "100 years at most"),
        ({"retention": {"1d": 5}}, "there is no tier '1d'"),
    ],
)
def test_limits_that_can_not_be(wanted: Wanted, says: str, tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, NAMES, segments=1)
    before = limits(path)
    with pytest.raises(UsageError, match=says):
        limit(path, wanted)
    assert limits(path) == before


def test_what_was_imported_has_none(tmp_path: Path) -> None:
    RecordingWriter.create(
        tmp_path / "r", host="", clock="trace", origin={"kind": "import"}, live=False
    ).close()
    with pytest.raises(UsageError, match="do not age"):
        limit(tmp_path / "r", {"bytes": None})


def test_they_are_left_to_whoever_records(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, NAMES, segments=1)
    with take_lock(path):
        assert limit(path, {"bytes": 10**6}, wait_s=0.1)["pending"]
    assert limits(path)["pending"]
    manage.resume(path)
    assert not limits(path)["pending"]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("budget",), None),
        (("budget", "bytes"), "much"),
        (("budget", "bytes"), -1),
        (("budget", "cpu_share"), []),
        (("budget", "cpu_share"), float("inf")),
        (("budget", "bytes"), float("inf")),
        (("retention",), {}),
        (("retention",), [1, 2, 3]),
        (("retention", "1s"), -86400),
        (("retention", "1m"), 5),
        (("retention", "1h"), None),
        (("retention", "1h"), 10**30),
    ],
)
def test_damaged_limits_are_told_and_nothing_goes(
    place: tuple[str, ...], value: Any, tmp_path: Path
) -> None:
    path = tmp_path / "r"
    make(path, NAMES, segments=2)
    file = path / DEFINITIONS
    data = json.loads(file.read_text())
    at = data
    for name in place[:-1]:
        at = at[name]
    at[place[-1]] = value
    file.write_text(json.dumps(data))
    held = sorted(path.glob("histograms/*/*/*.parquet"))
    for act in (limits, lambda path: limit(path, {"bytes": None}), manage.list_kept, manage.resume):
        with pytest.raises(ResultsError, match="is damaged") as error:
            act(path)
        assert "keep.json" in str(error.value)
    assert sorted(path.glob("histograms/*/*/*.parquet")) == held
    assert json.dumps(json.loads(file.read_text())) == json.dumps(data)
    # removed, it is made again of what was kept, with the limits that hold unless chosen
    file.unlink()
    assert limit(path, {"bytes": 12345})["retention"] == {tier.name: tier.keep_s for tier in TIERS}
    assert [row["statistic"] for row in manage.list_kept(path)] == NAMES
