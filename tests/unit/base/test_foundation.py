# SPDX-License-Identifier: Apache-2.0
"""Verdicts, metrics, clock, errors, registry."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base import errors, metrics, registry
from iolab.base.clock import FakeClock, SystemClock
from iolab.base.errors import IolabError, UsageError, sudo_command
from iolab.base.units import BASE
from iolab.base.verdict import Level, Reason, Verdict
from support.golden import Golden


def reasons() -> st.SearchStrategy[list[Reason]]:
    return st.lists(
        st.builds(
            Reason,
            st.text(min_size=1),
            st.sampled_from([Level.OK, Level.SUSPECT, Level.INVALID]),
            st.text(),
            st.dictionaries(st.sampled_from(["seconds", "errno"]), st.integers()),
        )
    )


@given(reasons(), st.booleans())
def test_a_verdict_is_the_worst_of_its_reasons_and_survives_json(
    listed: list[Reason], judged: bool
) -> None:
    verdict = Verdict.of(listed, judged=judged)
    assert all(verdict.level.rank >= reason.level.rank for reason in listed)
    assert Verdict.from_json(verdict.as_json()) == verdict
    assert sorted([*verdict.blames, *verdict.notes], key=id) == sorted(verdict.reasons, key=id)


def test_published_numbers_stay_unjudged() -> None:
    assert Verdict.of([], judged=False).level is Level.UNJUDGED
    assert Verdict.of([Reason("x", Level.OK, "a note")], judged=False).level is Level.UNJUDGED


@pytest.mark.parametrize(
    ("name", "unit", "better"),
    [
        ("write.iops", "1/s", "higher"),
        ("read.bw", "B/s", "higher"),
        ("write.lat.mean", "s", "lower"),
        ("write.clat.p99.9", "s", "lower"),
        ("mixed.slat.max", "s", "lower"),
        ("device.util", "1", None),
        ("stall.seconds", "s", "lower"),
        ("read.time", "s", "lower"),
    ],
)
def test_known_metrics(name: str, unit: str, better: str | None) -> None:
    metric = metrics.find(name)
    assert metric is not None
    assert (metric.unit, metric.better) == (unit, better)
    assert metric.unit in BASE.values()


@pytest.mark.parametrize(
    "name",
    [
        "write.iops",
        "read.bw",
        "write.clat.p99",
        "read.lat.p99.9",
        "trim.slat.max",
        "mixed.lat.mean",
        "sync.lat",
        "device.util",
        "device.util[sdb]",
        "device.read.iops[sdb]",
        "vdev.write.wait[vdb]",
        "host.pressure.io.some",
    ],
)
def test_titles_name_the_quantity_first(name: str, golden: Golden) -> None:
    golden("metric-titles", metrics.of(name).title)


@pytest.mark.parametrize(
    ("first", "second", "title"),
    [
        ("write.iops", "write.lat.mean", "IOPS against mean latency, writes"),
        ("write.iops", "read.lat.mean", "IOPS, writes against mean latency, reads"),
        ("device.read.iops", "device.await", "IOPS, device reads against mean device latency"),
    ],
)
def test_an_operation_that_two_titles_share_is_written_once(
    first: str, second: str, title: str
) -> None:
    titles = metrics.of(first).title, metrics.of(second).title
    assert metrics.joint_title(*titles, "against") == title
    without_syncs = f"{titles[1]}{metrics.WITHOUT_SYNCS}"
    assert metrics.joint_title(titles[0], without_syncs, "against").startswith(title)


@pytest.mark.parametrize(
    "name", ["write", "write.iop", "write.lat.p", "erase.iops", "write.lat.p1000", ""]
)
def test_unknown_metrics(name: str) -> None:
    assert metrics.find(name) is None
    assert metrics.of(name, "B").better is None


def test_percentile_names() -> None:
    assert [metrics.percentile_name(percent) for percent in (99.0, 99.9, 99.99, 50.0, 1.0)] == [
        "p99",
        "p99.9",
        "p99.99",
        "p50",
        "p1",
    ]


def test_a_fake_clock_moves_only_when_slept_on() -> None:
    clock = FakeClock(1_000)
    clock.sleep(3600)
    clock.sleep(-5)
    assert (clock.monotonic(), clock.realtime_ns()) == (3600, 1_000 + 3600 * 10**9)
    assert SystemClock().monotonic() <= SystemClock().monotonic()


def test_an_error_says_where_what_and_what_to_do() -> None:
    assert (
        str(UsageError("no such thing", where="study.toml:3", hint="try another"))
        == "study.toml:3: no such thing; try another"
    )


def test_a_command_for_root_is_one_that_sudo_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere, usual = tmp_path / "a venv/bin", tmp_path / "usual"
    for directory in (elsewhere, usual):
        directory.mkdir(parents=True)
    monkeypatch.setattr(errors, "_SECURE_PATH", str(usual))
    monkeypatch.setattr(sys, "executable", str(elsewhere / "python"))
    assert sudo_command("record") == f"sudo '{elsewhere}/python' -m iolab record"
    (elsewhere / "iolab").touch(0o755)
    assert sudo_command("record") == f"sudo '{elsewhere}/iolab' record"
    (usual / "iolab").touch(0o755)
    assert sudo_command("record") == f"sudo '{elsewhere}/iolab' record", "another installation"
    (usual / "iolab").unlink()
    (usual / "iolab").symlink_to(elsewhere / "iolab")
    assert sudo_command("rig", "build", "x y") == "sudo iolab rig build 'x y'"


def test_every_error_has_an_exit_code() -> None:
    found = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, IolabError)
    ]
    assert len(found) >= 6
    assert all(1 <= kind.exit_code <= 5 for kind in found)


@pytest.mark.parametrize("kind", registry.kinds())
def test_every_built_in_loads_and_says_what_it_is(kind: str) -> None:
    for name in registry.names(kind):
        member = registry.load(kind, name)
        assert member.name == name
        assert member.__doc__


def test_an_unknown_name_says_what_is_near() -> None:
    with pytest.raises(
        UsageError,
        match=r"unknown format 'fio-jsn'; did you mean 'fio-json'\?.*there are: fio-json, ",
    ):
        registry.load("format", "fio-jsn")
