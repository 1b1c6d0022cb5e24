# SPDX-License-Identifier: Apache-2.0
"""`iolab ab` with builds of a program: a harmful and a harmless patch, interrupted at each stage."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from iolab.cli.main import run
from iolab.hosts.ssh.host import SshHost
from iolab.studies.results.evidence.files import run_directories
from iolab.studies.run.builds.program_builds import ProgramBuilds
from iolab.studies.run.load.loop import LoadRunner
from iolab.studies.run.resuming.interrupts import Interrupts
from support.sshd import sshd

SOURCE = "#!/bin/sh\n: text\nsleep 0.002\n"
HARMFUL = """--- a/tool
+++ b/tool
@@ -3,1 +3,1 @@
-sleep 0.002
+sleep 0.1
"""
HARMLESS = """--- a/tool
+++ b/tool
@@ -2,1 +2,1 @@
-: text
+: other text
"""
STUDY = """[study]
repetitions = 6
[sources]
diskstats = {}
[builds.base]
sources = "tree"
commands = [["install", "-t", "{prefix}/bin", "tool"]]
[workload]
kind = "program"
command = ["tool"]
[reduced]
repetitions = 2
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/tool").write_text(SOURCE)
    (tmp_path / "tree/tool").chmod(0o755)
    (tmp_path / "harmful.patch").write_text(HARMFUL)
    (tmp_path / "harmless.patch").write_text(HARMLESS)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def ab(patch: str, *options: str) -> int:
    builds = ["--build", "old=tree", "--build", f"new=tree+{patch}.patch"]
    return run(["ab", "--study", "study.toml", *builds, "-o", "out", "--trust", *options])


def test_a_harmful_patch_is_found(place: Path) -> None:
    assert ab("harmful") == 0
    summary = (place / "out/summary.md").read_text()
    assert "| sources | tree | tree+harmful.patch |" in summary
    assert "All 12 runs passed every gate." in summary
    assert ", significant, q" in summary
    assert f"iolab ab --study {place}/study.toml --build old={place}/tree" in summary
    assert "sudo" not in summary
    assert (place / "out/report.html").stat().st_size > 100_000


def test_a_harmless_patch_is_another_build(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ab("harmless", "--reduced") == 0
    assert len(list(run_directories(place / "out/results"))) == 4
    summary = (place / "out/summary.md").read_text()
    assert "All 4 runs passed every gate." in summary
    (programs,) = [line for line in summary.splitlines() if line.startswith("| program |")]
    assert len(set(programs.split("|")[2:4])) == 2
    assert ab("harmless") == 2
    assert "holds a comparison of builds already" in capfd.readouterr().err


def test_a_failure_begins_again_where_it_stopped(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Interrupts in the compiler, and in a run."""
    make = ProgramBuilds.make

    def make_interrupted(builds: ProgramBuilds, stopping: object) -> None:
        make(builds, lambda: True)

    monkeypatch.setattr(ProgramBuilds, "make", make_interrupted)
    assert ab("harmful", "--reduced") == 130
    assert not (place / "out/results").exists()
    monkeypatch.setattr(ProgramBuilds, "make", make)

    load = LoadRunner.run

    def run_interrupted(runner: LoadRunner, *arguments: object) -> object:
        interrupts = runner._interrupts
        assert isinstance(interrupts, Interrupts)
        interrupts.press()
        return load(runner, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(LoadRunner, "run", run_interrupted)
    assert run(["ab", "--resume", "-o", "out"]) == 130
    assert "iolab ab --resume -o out continues" in capfd.readouterr().err
    assert len(list(run_directories(place / "out/results"))) == 1
    monkeypatch.setattr(LoadRunner, "run", load)

    assert run(["ab", "--resume", "-o", "out"]) == 0
    assert len(list(run_directories(place / "out/results"))) == 4
    assert (place / "out/summary.md").is_file()
    request = json.loads((place / "out/ab.json").read_text())["request"]
    assert request["machine"] == ""


def test_builds_are_made_and_measured_on_a_host(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    builds = place / "opt/builds"
    with sshd(place / "sshd", f"SetEnv IOLAB_BUILDS={builds}") as options:
        host = SshHost(options).words
        load = LoadRunner.run

        def run_interrupted(runner: LoadRunner, *arguments: object) -> object:
            interrupts = runner._interrupts
            assert isinstance(interrupts, Interrupts)
            interrupts.press()
            return load(runner, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(LoadRunner, "run", run_interrupted)
        assert ab("harmful", "--reduced", "--host", host) == 130
        assert "iolab ab --resume -o out continues" in capfd.readouterr().err
        monkeypatch.setattr(LoadRunner, "run", load)
        assert run(["ab", "--resume", "-o", "out"]) == 0
        assert len(list(run_directories(place / "out/results"))) == 4
        assert len(list((builds / ".programs").iterdir())) == 2
        assert not (place / "cache/iolab/builds").exists()
        summary = (place / "out/summary.md").read_text()
        assert "All 4 runs passed every gate." in summary
        assert f"- host: {options.address}:{options.port}" in summary
        assert "--host" in summary.partition("### Repeat")[2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--keep-up"], "--keep-up: no machine of a rig is started"),
        (["--rig", "other"], "--rig: the study has [builds] of a program"),
    ],
)
def test_options_of_a_machine_are_refused(
    place: Path, capfd: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert ab("harmful", *options) == 2
    assert words in capfd.readouterr().err
    assert not (place / "out").exists()


def test_a_patch_that_does_not_apply_is_one_line(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["sed", "-i", "s/text/changed/", "tree/tool"], check=True)
    assert ab("harmless") == 5
    lines = capfd.readouterr().err.splitlines()
    assert [line for line in lines if "does not apply to tool" in line] == lines[-1:]
