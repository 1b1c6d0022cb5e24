# SPDX-License-Identifier: Apache-2.0
"""`iolab doctor` and `iolab record --clean`: what this machine can do, and what dead recorders left
on it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import sudo_command
from iolab.cli import doctor as doctor_checks
from iolab.cli.main import run
from iolab.hosts.base.host import Completed, Host
from iolab.hosts.facts.host_facts import boot_id
from iolab.hosts.kinds.local import LocalHost
from iolab.recordings.record.probe.program import instances_of
from iolab.studies.results.evidence.lock import lock
from iolab.studies.targets.made import Made, loops_of
from support.disks import need_loops
from support.probe import Probe, need_probe, need_tracing
from support.probe import instances_of as made_by
from support.waiting import PATIENCE, gone, until


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    run(["doctor", "--format", "json", *words])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_each_check_says_what_was_found_and_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    need_probe()
    found = told(capsys)
    assert (found["schema"], found["kind"]) == (1, "doctor")
    assert [each["name"] for each in found["checks"]] == [
        "root",
        "fio",
        "probe",
        "record block",
        "record counters",
        "record nfs",
        "record syscall",
        "iostat",
        "perf",
        "file systems",
        "zfs",
        "qemu",
        "tracefs",
        "tracing",
        "lockdown",
        "clock",
        "room",
        "open files",
    ]
    assert all(each["found"] for each in found["checks"])
    assert all(bool(each["remedy"]) is False for each in found["checks"] if each["ok"])
    assert run(["doctor"]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 6


def test_without_a_probe_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("IOLAB_PROBE", "/nowhere/probe")
    found = told(capsys)
    [probe] = [each for each in found["checks"] if each["name"] == "probe"]
    assert (probe["ok"], "not built" in probe["found"]) == (False, True)


@pytest.mark.parametrize(
    "said", [b"[]", b"nothing", b'{"instances": 5}', b'{"instances": {"dead": [1]}, "sources": 7}']
)
def test_a_probe_that_says_nonsense_is_no_traceback(
    said: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    probe = tmp_path / "probe"
    probe.write_bytes(b"#!/bin/sh\ncat << 'END'\n" + said + b"\nEND\n")
    probe.chmod(0o755)
    monkeypatch.setenv("IOLAB_PROBE", str(probe))
    assert [each for each in told(capsys)["leftovers"] if each["kind"] == "tracefs-instance"] == []


def test_names_of_instances_are_taken_as_they_are() -> None:
    found = instances_of({"instances": {"dead": ["iolab-1-2-block", 5], "alive": []}})
    assert (list(found.dead), list(found.alive)) == (["iolab-1-2-block"], [])


def test_clean_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["record", "--clean", "--duration", "1s"]) == 2
    assert "--clean: cannot be combined with other arguments" in capsys.readouterr().err


@pytest.mark.tracing
@pytest.mark.exclusive
@pytest.mark.parametrize("words", [["doctor", "--clean"], ["record", "--clean"]])
def test_what_a_killed_recorder_and_its_killed_probe_left_is_removed(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_tracing()
    living = Probe.start("--source", "block")
    try:
        command = [
            sys.executable,
            "-m",
            "iolab.cli",
            "record",
            "block",
            "-o",
            str(tmp_path / "r"),
            "--quiet",
        ]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as recorder:
            children = Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children")
            pid = until(
                lambda: next(
                    (int(word) for word in children.read_text().split() if made_by(int(word))), 0
                ),
                "the probe",
            )
            os.kill(pid, signal.SIGKILL)
            recorder.kill()
        assert gone(pid)
        # the recorder may have been about to begin another
        left = made_by(pid)
        assert left
        assert {each["name"] for each in told(capsys)["leftovers"]} >= set(left)
        done = subprocess.run(
            [sys.executable, "-m", "iolab.cli", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        assert left[0] in done.stdout + done.stderr
        assert made_by(pid) == []
        assert len(made_by(living.process.pid)) == 1, "that of a living probe stays"
    finally:
        assert living.stop() == 0


@pytest.mark.loops
@pytest.mark.exclusive
def test_loop_devices_of_a_killed_study_are_removed_and_those_of_one_that_runs_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_probe()
    need_loops()
    scratch = tmp_path / "out/scratch"
    scratch.parent.mkdir()
    Made(str(scratch)).make_directory(LocalHost(), str(scratch))
    image = scratch / "disk-0.img"
    image.write_bytes(bytes(1 << 20))
    stranger = tmp_path / "disk-0.img"
    stranger.write_bytes(bytes(1 << 20))
    nodes = [
        subprocess.run(
            ["losetup", "--find", "--show", str(file)], capture_output=True, text=True, check=True
        ).stdout.strip()
        for file in (image, stranger)
    ]
    name = f"{Path(nodes[0]).name} on {image}"
    try:
        with lock(tmp_path / "out"):
            assert name not in [each["name"] for each in told(capsys, "--clean")["leftovers"]]
            run(["doctor"])
            assert f"in use     loop-device {name}: " in capsys.readouterr().out
            assert image.exists()
        os.chown(f"{scratch}.made", 65534, -1)
        assert name not in told(capsys, "--clean")["removed"], "a record of another user"
        os.chown(f"{scratch}.made", os.geteuid(), -1)
        [found] = [each for each in told(capsys)["leftovers"] if each["name"] == name]
        assert (found["kind"], found["removable"], found["remedy"]) == (
            "loop-device",
            True,
            sudo_command("doctor", "--clean"),
        )
        assert name in told(capsys, "--clean")["removed"]
        assert not scratch.exists()
        assert not Path(f"{scratch}.made").exists()
        assert loops_of(LocalHost(), str(stranger)) == [nodes[1]]
    finally:
        for node, file in zip(nodes, (image, stranger), strict=True):
            if file.exists() and node in loops_of(LocalHost(), str(file)):
                subprocess.run(["losetup", "--detach", node], check=False)


class _Machine(Host):
    """A host made of programs with what they print, and files with what they hold."""

    def __init__(self, programs: dict[str, str], files: dict[str, str]) -> None:
        self.programs, self.files = programs, files

    def which(self, program: str) -> str | None:
        return f"/bin/{program}" if program in self.programs else None

    def run(self, command: Sequence[str], *, timeout: float = 30.0) -> Completed:
        return Completed(
            tuple(command),
            1 if self.programs[command[0]] == "fails" else 0,
            self.programs[command[0]],
            "",
        )

    def read_text(self, path: str) -> str:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def list_directory(self, path: str) -> list[str]:
        raise FileNotFoundError(path)


def _machine(programs: dict[str, str], files: dict[str, str]) -> Host:
    return _Machine(programs, files)  # type: ignore[abstract]


_TRACED = {"/sys/kernel/tracing/current_tracer": "function", "/sys/kernel/tracing/set_event": ""}


@pytest.mark.parametrize(
    ("programs", "files", "name", "ok", "words"),
    [
        ({"fio": "fio-3.33"}, {}, "fio", True, "fio-3.33"),
        ({"fio": "fio-2.21"}, {}, "fio", False, "version 3"),
        ({"fio": "a shell"}, {}, "fio", False, "install"),
        ({"fio": "fails"}, {}, "fio", False, "install"),
        ({}, {}, "fio", False, "install"),
        ({}, {}, "iostat", False, "sysstat"),
        (
            {"perf": "perf version 6"},
            {"/proc/sys/kernel/perf_event_paranoid": "3"},
            "perf",
            False,
            "perf_event_paranoid=-1",
        ),
        (
            {"perf": "perf version 6"},
            {"/proc/sys/kernel/perf_event_paranoid": "-1"},
            "perf",
            True,
            "perf version 6",
        ),
        ({"mkfs.ext4": "", "mkfs.xfs": ""}, {}, "file systems", False, "btrfs-progs"),
        ({"zpool": ""}, {"/sys/module/zfs/version": "2.3.1-1"}, "zfs", True, "2.3.1-1"),
        ({"zpool": ""}, {}, "zfs", False, "modprobe zfs"),
        ({}, {}, "qemu", False, "qemu-system-x86"),
        ({}, _TRACED, "tracing", False, "tracer function"),
        ({}, {}, "tracing", True, "nothing else"),
        (
            {},
            {"/sys/kernel/security/lockdown": "none integrity [confidentiality]"},
            "lockdown",
            False,
            "confidentiality",
        ),
        (
            {},
            {"/sys/kernel/security/lockdown": "none [integrity] confidentiality"},
            "lockdown",
            True,
            "integrity",
        ),
        (
            {},
            {"/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"},
            "clock",
            False,
            "clocksource=tsc",
        ),
        (
            {},
            {"/sys/devices/system/clocksource/clocksource0/current_clocksource": "kvm-clock"},
            "clock",
            True,
            "kvm-clock",
        ),
    ],
)
def test_each_check_tells_what_is_missing(
    programs: dict[str, str],
    files: dict[str, str],
    name: str,
    ok: bool,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    [found] = [
        each for each in doctor_checks.checks(_machine(programs, files)) if each["name"] == name
    ]
    assert found["ok"] is ok
    assert words in f"{found['found']} {found['remedy']}"
    assert bool(found["remedy"]) is not ok


def test_a_user_is_sent_to_sudo_and_low_limits_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(doctor_checks, "_TRACEFS", ("/nowhere",))
    monkeypatch.setattr(doctor_checks, "_ROOM", 1 << 62)
    found = {each["name"]: each for each in doctor_checks.checks(_machine({}, {}))}
    assert "sudo" in found["root"]["remedy"]
    assert found["open files"]["remedy"] == "ulimit -n 4096"
    assert "as root" in found["tracefs"]["remedy"]
    assert not found["room"]["ok"]


def test_the_accelerator_that_rigs_use_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/dev/kvm alone says nothing: the last probe of a rig does."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    probed = tmp_path / "iolab/rigs/small/accelerator"
    probed.parent.mkdir(parents=True)
    host = _machine({"qemu-system-x86_64": ""}, {})

    def text() -> str:
        return str(doctor_checks._machines(host)["found"])

    assert "tests whether" in text()
    now = f"None {boot_id(LocalHost())}"
    for content, words in (
        ("another image, another boot tcg\n", "tests whether"),
        ("\0\xff", "tests whether"),
        (f"{now} icount\n", "tests whether"),
        (f"{now} tcg\n", "the kernel of small does not boot with it"),
        (f"{now} kvm\n", "with KVM (small)"),
    ):
        probed.write_text(content, "latin-1")
        assert words in text()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "without KVM" in text()


def test_a_tracefs_that_a_user_may_not_search_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tracefs is mounted with mode 0700, so that a user can't look for its events."""
    (tmp_path / "tracing/events").mkdir(parents=True)
    (tmp_path / "tracing").chmod(0)
    monkeypatch.setattr(doctor_checks, "_TRACEFS", (str(tmp_path / "tracing"),))
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        result = doctor_checks._tracefs(LocalHost())
    finally:
        os.seteuid(before)
    assert (result["name"], result["ok"]) == ("tracefs", False)
    assert "root" in result["remedy"]
