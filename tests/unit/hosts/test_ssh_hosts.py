# SPDX-License-Identifier: Apache-2.0
"""One study on two machines at once, by the command line: two sshds of the tests' own, and real
fio."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import run
from iolab.hosts.ssh.host import SshHost, SshOptions
from support.sshd import nothing_is_left, sessions_of, sshd
from support.waiting import PATIENCE, until

pytestmark = pytest.mark.fio

STUDY = """
[study]
name = "both"
repetitions = 2
[workload]
kind = "fio"
runtime = "2s"
[workload.options]
rw = "randwrite"
bs = "4k"
size = "1m"
[variants.plain]
"""


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[SshOptions, SshOptions]]:
    with sshd(tmp_path / "one") as one, sshd(tmp_path / "two") as other:
        yield one, other
        nothing_is_left()


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def flags(*options: SshOptions) -> list[str]:
    return [word for one in options for word in ("--host", SshHost(one).words)]


def shown(capsys: pytest.CaptureFixture[str], path: Path) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run(["show", str(path), "--format", "json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["runs"]
    return found


def test_both_do_all_of_it_and_the_directory_of_both_is_looked_at_as_one(
    study: Path, fio: str, two: tuple[SshOptions, SshOptions], capsys: pytest.CaptureFixture[str]
) -> None:
    names = [SshHost(one).name for one in two]
    assert run(["run", str(study), *flags(*two)]) == 0
    said = capsys.readouterr().err
    for name in names:
        assert f"{name}: both: 2 runs" in said
        assert f"{name}: run 2 of 2, block 2: plain, write " in said
        assert f"{name}: done in" in said
        assert {path.name for path in Path("results/both", name).iterdir()} >= {
            "manifest.json",
            "journal.jsonl",
            "runs",
        }
    runs = shown(capsys, Path("results/both"))
    assert sorted((each["host"], each["status"]) for each in runs) == [
        (name, "finished") for name in sorted(names) for _ in (1, 2)
    ]
    # side by side: what is measured overlaps, though one of them may be slower to begin
    first, other = (
        [
            json.loads(path.read_text())["window"]
            for path in sorted(Path("results/both", name).glob("runs/*/run.json"))
        ]
        for name in names
    )
    assert any(max(one[0], two[0]) < min(one[1], two[1]) for one in first for two in other), (
        first,
        other,
    )
    assert run(["compare", "results/both", "--where", f"host={names[0]}"]) == 0
    capsys.readouterr()
    assert run(["report", "results/both", "-o", "both.html"]) == 0
    assert names[1] in Path("both.html").read_text()


def test_a_host_lost_in_mid_run_costs_its_run_alone_and_resume_needs_no_hosts(
    study: Path, fio: str, two: tuple[SshOptions, SshOptions], capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = two
    names = [SshHost(each).name for each in two]
    process = subprocess.Popen(
        [sys.executable, "-m", "iolab.cli", "run", str(study), "-o", "out", *flags(one, other)],
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        # in its first run: the other may be before or in its own
        until(
            lambda: '"started"' in _text(Path("out", names[0], "journal.jsonl")), "its first load"
        )
        for session in sessions_of(one):
            os.kill(session, signal.SIGKILL)
        _, err = process.communicate(timeout=2 * PATIENCE)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 5, err
    assert (
        f"{names[0]}: run 1 of 2, block 1: plain: failed: {names[0]}: the connection to the host is lost"
        in err
    )
    assert [each["status"] for each in shown(capsys, Path("out", names[1]))] == [
        "finished",
        "finished",
    ]
    assert [each["status"] for each in shown(capsys, Path("out", names[0]))] == [
        "failed",
        "finished",
    ]
    assert run(["run", str(study), "-o", "out", "--resume"]) == 0
    said = capsys.readouterr().err
    assert f"{names[1]}: note: all 2 runs are there" in said
    assert [each["status"] for each in shown(capsys, Path("out"))] == ["finished"] * 4


def test_a_host_out_of_reach_is_said_and_the_other_measures(
    study: Path, fio: str, two: tuple[SshOptions, SshOptions], capsys: pytest.CaptureFixture[str]
) -> None:
    one, _ = two
    away = ["--host", "nobody@127.0.0.1:1"]
    assert run(["run", str(study), *away, *flags(one), "--dry-run", "--format", "json"]) == 5
    out, err = capsys.readouterr()
    plans = json.loads(out)
    assert list(plans["hosts"]) == [SshHost(one).name]
    assert len(plans["hosts"][SshHost(one).name]["runs"]) == 2
    assert "nobody@127.0.0.1:1: can't be reached" in err
    assert run(["run", str(study), *away, *flags(one), "--repetitions", "1"]) == 5
    err = capsys.readouterr().err
    assert "nobody@127.0.0.1:1: not measured: can't be reached" in err
    assert [each["status"] for each in shown(capsys, Path("results/both"))] == ["finished"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_all(
    number: signal.Signals, study: Path, fio: str, two: tuple[SshOptions, SshOptions]
) -> None:
    names = [SshHost(each).name for each in two]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "iolab.cli",
            "run",
            str(study),
            "-o",
            "out",
            "--repetitions",
            "5",
            # SIGTERM ends a run, which must not be over before
            *(("--runtime", "60s") if number == signal.SIGTERM else ()),
            *flags(*two),
        ],
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        until(
            lambda: all('"started"' in _text(Path("out", name, "journal.jsonl")) for name in names),
            "both loads",
        )
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    status = "finished" if number == signal.SIGINT else "interrupted"
    for name in names:
        *before, last = [
            json.loads(path.read_text())["status"]
            for path in sorted(Path("out", name).glob("runs/*/run.json"))
        ]
        assert last == status
        assert set(before) <= {"finished"}
        assert len(before) < 4
        assert f"{name}: stopped in" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "a@b", "--host", "a@b"], "'a@b' is given twice"),
        (["--host", "a@b", "--host", "x"], "'x' names no host"),
    ],
)
def test_wrong_hosts_are_said(
    arguments: list[str], words: str, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", str(study), *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not Path("results").exists()


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text()
    return ""
