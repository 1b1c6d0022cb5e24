# SPDX-License-Identifier: Apache-2.0
"""`iolab run`: its flags, the plan it prints, and what it asks before it runs a study's commands."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import iolab
from iolab.api import Opened
from iolab.base.errors import RunError
from iolab.cli.main import run
from iolab.studies.results.evidence.manifest import read_manifest
from iolab.studies.run.resuming import unit as resume_unit
from support.disks import need_loops
from support.golden import Golden
from support.waiting import PATIENCE

STUDY = """
[study]
name = "small"
repetitions = 2
seed = 6

[workload]
kind = "fio"
runtime = "2s"
ramp = "500ms"

[workload.options]
rw = "randwrite"
bs = "4k"
size = "1m"
rate_iops = 200

[factors]
numjobs = [1, 4]

[variants.plain]
[variants.synced]
workload.options.sync = "dsync"
"""
HOOKS = '\n[hooks.study]\nbefore = "echo began >> {log}"\n[hooks.run]\nafter = [["touch", "{log}.$IOLAB_RUN"]]\n'


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY, "utf-8")
    return path


def said(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(["run", *(str(arg) for arg in args)])
    return code, *capsys.readouterr()


PLAN = """\
small: 8 runs in 2 blocks, about 0:23, into results/small
target: directory, up to 4.00 MiB a run
overwrites: nothing
block 1:
  1  plain   numjobs=4
  2  synced  numjobs=4
  3  plain   numjobs=1
  4  synced  numjobs=1
block 2:
  5  synced  numjobs=1
  6  plain   numjobs=1
  7  synced  numjobs=4
  8  plain   numjobs=4
"""


@pytest.mark.fio
def test_the_plan_is_printed_in_order_and_nothing_is_written(
    fio: str, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, "study.toml", "--dry-run") == (0, PLAN, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["study.toml"]


@pytest.mark.fio
def test_notes_of_loads_are_in_the_plan(
    fio: str, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study.write_text(STUDY.replace("numjobs = [1, 4]", "iodepth = [1, 4]"), "utf-8")
    code, out, _ = said(capsys, study, "--dry-run")
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("note: ")] == [
        "note: iodepth=4 has no effect: psync keeps one I/O in flight (io_uring and libaio keep more)"
    ]
    assert said(capsys, study, "--dry-run", "--format", "json")[1].count("iodepth=4 has no") == 1


@pytest.mark.fio
def test_changes_and_commands_stand_in_the_plan(
    fio: str, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study.write_text(STUDY + '\n[hooks.run]\nbefore = ["sync", ["echo", "a b"]]\n', "utf-8")
    code, out, _ = said(
        capsys,
        study,
        "--dry-run",
        "--only",
        "numjobs=4",
        "--repetitions",
        "1",
        "--a-a",
        "--runtime",
        "3s",
        "-o",
        "there",
    )
    assert code == 0
    assert out.splitlines() == [
        "small: 3 runs in 1 block, about 0:12, commands not counted, into there",
        "changed: --only numjobs=4 --repetitions 1 --runtime 3s --a-a",
        "target: directory, up to 4.00 MiB a run",
        "overwrites: nothing",
        "commands:",
        "  hooks.run.before: sync",
        "  hooks.run.before: echo 'a b'",
        "block 1:",
        "  1  plain        numjobs=4",
        "  2  synced       numjobs=4",
        "  3  plain-again  numjobs=4",
    ]


@pytest.mark.fio
def test_sizes_and_nested_options_of_a_target_are_readable(
    fio: str, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(
        capsys,
        study,
        "--dry-run",
        "--target",
        "kind=filesystem",
        "--target",
        "fs=btrfs",
        "--target",
        "loop.size=2g",
        "--target",
        "mount_options=compress=zstd",
    )
    refused = [line for line in out.splitlines() if line.startswith("can't be done here now: ")]
    assert code == int(bool(refused)), "1 only with a reason"
    assert os.geteuid() == 0 or refused
    assert shutil.which("mkfs.btrfs") or any("mkfs.btrfs" in line for line in refused)
    assert out.splitlines()[2:4] == [
        "target: filesystem (loop.size 2.00 GiB, fs btrfs, mount_options compress=zstd), up to 4.00 MiB a run",
        "overwrites: nothing",
    ]


@pytest.mark.fio
def test_what_would_be_overwritten_is_said(
    fio: str, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(
        capsys,
        study,
        "--dry-run",
        "--target",
        "kind=device",
        "--target",
        "device=/dev/disk/by-id/no-such-disk",
    )
    assert code == 1
    assert "can't be done here now: /dev/disk/by-id/no-such-disk: does not exist" in out
    assert "overwrites: everything on /dev/disk/by-id/no-such-disk (needs --destructive)" in out


@pytest.mark.fio
def test_the_plan_as_json_is_complete(
    fio: str, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(
        capsys,
        study,
        "--dry-run",
        "--format",
        "json",
        "--variant",
        "synced",
        "--target",
        "path=/tmp",
        "--seed",
        "7",
    )
    plan = json.loads(out)
    assert code == 0
    assert (plan["kind"], plan["schema"], plan["variants"], plan["baseline"]) == (
        "plan",
        1,
        ["synced"],
        "synced",
    )
    assert plan["changes"] == {"variants": ["synced"], "seed": 7, "target": {"path": "/tmp"}}
    assert [target["options"]["path"] for target in plan["targets"]] == ["/tmp"]
    assert plan["targets"][0]["room_bytes"] == 4 * 2**20
    assert [run["number"] for run in plan["runs"]] == [1, 2, 3, 4]
    assert sum(run["seconds"] for run in plan["runs"]) == pytest.approx(plan["seconds"])
    assert (plan["problem"], plan["problems"]) == (None, [])


@pytest.mark.fio
def test_everything_that_would_be_refused_is_told_at_once(
    fio: str, study: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    study.write_text(STUDY.replace('bs = "4k"', 'bs = "4k"\nioengine = "solarisaio"'), "utf-8")
    code, out, _ = said(capsys, study, "--dry-run", "--target", f"path={tmp_path}/missing")
    refused = [line for line in out.splitlines() if line.startswith("can't be done here now: ")]
    assert code == 1
    assert len(refused) == 2
    assert "this fio has no ioengine 'solarisaio'" in refused[0]
    assert "is not a directory" in refused[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["study.toml"]
    large = ("--workload", "options.ioengine=psync", "--workload", "options.size=1t")
    code, out, _ = said(capsys, study, "--dry-run", *large)
    assert code == 1
    assert "the workload asks for 4.00 TiB (size x jobs)" in out
    code, out, _ = said(capsys, study, "--dry-run", "--format", "json", *large)
    assert code == 1
    assert len(json.loads(out)["problems"]) == 1


@pytest.mark.fio
def test_a_cold_cache_in_memory_is_refused_before_anything(
    fio: str, study: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if not Path("/dev/shm").is_dir():
        pytest.skip("/dev/shm is absent")
    for flags, expected in ((("--dry-run",), 1), ((), 5)):
        code, out, err = said(
            capsys,
            study,
            *flags,
            "--target",
            "path=/dev/shm",
            "--target",
            "cache=cold",
            "-o",
            "out",
        )
        assert code == expected
        assert "is on tmpfs, which keeps its files in memory: there is no cold cache" in out + err
    assert not (tmp_path / "out").exists()


@pytest.mark.fio
def test_loop_files_that_fit_alone_but_not_together_are_refused_first(
    fio: str, study: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    need_loops()
    free = os.statvfs(tmp_path)
    size = free.f_bavail * free.f_frsize * 2 // 3 >> 20
    text = (
        STUDY
        + f'\n[target]\nkind = "filesystem"\nfs = "ext4"\nmkfs_options = "-I {{inode}}"\nloop = {{size = "{size}m"}}\n'
    )
    study.write_text(text.replace("numjobs = [1, 4]", "numjobs = [1]\ninode = [256, 512]"), "utf-8")
    for flags, expected in ((("--dry-run",), 1), ((), 5)):
        code, out, err = said(capsys, study, *flags, "-o", "out")
        assert code == expected
        assert "loop files of 2 targets need" in out + err
    assert not (tmp_path / "out").exists()


def test_a_missing_program_is_said_by_the_plan_and_ends_a_run(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    code, out, _ = said(capsys, study, "--dry-run")
    assert code == 1
    assert "can't be done here now: fio is not installed on host 'local'" in out
    code, out, err = said(capsys, study)
    assert (code, out) == (5, "")
    assert "apt install fio" in err
    assert not Path("results/small").exists()


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--only", "numjobs"], 2),
        (["--only", "threads=1"], 2),
        (["--only", "numjobs=3"], 2),
        (["--variant", "plane"], 2),
        (["--repetitions", "0"], 2),
        (["--seed", "-1"], 2),
        (["--runtime", "soon"], 2),
        (["--runtime", "0"], 2),
        (["--target", "path"], 2),
        (["--target", "paht=/tmp"], 4),
        (["--target", "kind=tape"], 4),
        (["--format", "json"], 2),
        (["--format", "xml", "--dry-run"], 2),
        (["--frobnicate"], 2),
    ],
)
def test_wrong_flags_are_one_line(
    study: Path, capsys: pytest.CaptureFixture[str], args: list[str], code: int, golden: Golden
) -> None:
    found, out, err = said(capsys, study, *args)
    assert (found, out) == (code, "")
    golden("cli/run-wrong-flags", f"$ iolab run STUDY {' '.join(args)}\n{err}")
    assert err.count("\n") == 1
    assert not Path("results").exists()


def test_commands_are_shown_and_refused_where_nobody_can_agree(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study.write_text(STUDY + HOOKS.replace("{log}", str(tmp_path / "log")), "utf-8")
    code, out, err = said(capsys, study)
    assert (code, out) == (4, "")
    lines = err.splitlines()
    assert lines[:3] == [
        f"{study} runs these commands and sets these options with your rights:",
        f"  hooks.study.before: echo began >> {tmp_path}/log",
        f"  hooks.run.after: touch '{tmp_path}/log.$IOLAB_RUN'",
    ]
    assert "say --trust" in lines[3]
    assert not (tmp_path / "log").exists()
    assert not (tmp_path / "results").exists()


@pytest.mark.fio
def test_a_study_with_trusted_commands_runs_and_what_was_changed_is_kept(
    fio: str, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study.write_text(STUDY + HOOKS.replace("{log}", str(tmp_path / "log")), "utf-8")
    flags = ["--only", "numjobs=1", "--repetitions", "1", "--runtime", "1s", "--a-a"]
    code, out, err = said(capsys, study, "-o", "out", "--trust", *flags)
    assert (code, out) == (0, "")
    assert (tmp_path / "log").read_text() == "began\n"
    opened = iolab.open("out")
    assert isinstance(opened, Opened)
    assert sorted(
        (each.variant, dict(each.factors), each.plan.runtime) for each in opened.runs
    ) == [
        ("plain", {"numjobs": 1}, 1.0),
        ("plain-again", {"numjobs": 1}, 1.0),
        ("synced", {"numjobs": 1}, 1.0),
    ]
    manifest = read_manifest(Path("out"))
    assert manifest.reproduce == [
        "iolab",
        "run",
        str(study),
        "-o",
        "out",
        "--only",
        "numjobs=1",
        "--repetitions",
        "1",
        "--runtime",
        "1s",
        "--a-a",
    ]
    assert manifest.study is not None
    assert manifest.study["changes"] == {
        "only": {"numjobs": ["1"]},
        "repetitions": 1,
        "runtime": "1s",
        "again": True,
    }
    assert "run 3 of 3" in err
    assert "write " in err
    # agreed to once: the same text is not asked about again
    code, _, err = said(capsys, study, "-o", "out", "--resume")
    assert code == 0, err
    assert "runs these commands" not in err


def test_whoever_sits_at_a_terminal_is_asked(study: Path, tmp_path: Path) -> None:
    study.write_text(STUDY + HOOKS.replace("{log}", str(tmp_path / "log")), "utf-8")
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "iolab.cli", "run", str(study)],
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        close_fds=True,
        env={**os.environ, "PATH": "/nowhere"},
    )
    os.close(theirs)
    shown = ""
    try:
        deadline = time.monotonic() + PATIENCE
        while "[y/N]" not in shown and time.monotonic() < deadline:
            shown += os.read(mine, 4096).decode()
        os.write(mine, b"n\n")
        assert process.wait(PATIENCE) == 130
    finally:
        process.kill()
        process.wait()
        os.close(mine)
    assert "hooks.study.before: echo began" in shown
    assert "Run them? [y/N]" in shown
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("flags", [["--dry-run"], ["--variant", "plain"], ["--host", "root@x"]])
def test_a_unit_resumes_a_whole_study_on_this_host(
    study: Path, capsys: pytest.CaptureFixture[str], flags: list[str]
) -> None:
    code, _, err = said(capsys, study, "--install-resume", *flags)
    assert code == 2
    assert "--install-resume" in err


@pytest.mark.parametrize("writable", [True, False])
def test_without_systemd_or_a_kept_agreement_no_unit_is_written(
    study: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    writable: bool,
) -> None:
    monkeypatch.setattr(resume_unit, "BOOTED", str(tmp_path / "no systemd"))
    study.write_text(STUDY + HOOKS.format(log=tmp_path / "log"))
    if not writable:
        (tmp_path / "state").write_text("not a directory")
    code, _, err = said(capsys, study, "--install-resume", "--trust")
    assert code == RunError.exit_code
    assert ("no systemd" if writable else "is not stored") in err
    assert not (tmp_path / "log").exists()
    assert not (tmp_path / "results").exists()
