# SPDX-License-Identifier: Apache-2.0
"""A study of builds from sources to the summary, with a rig and a machine in memory: every stage is
interrupted and resumed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iolab.base.errors import ResultsError, RunError, UsageError
from iolab.cli.main import run
from iolab.hosts.kinds.fake import FakeProgram
from iolab.hosts.kinds.rig import RigState
from iolab.hosts.rigs.build import BUILD_FILE, Done
from iolab.hosts.rigs.builds import BuildRecord
from iolab.hosts.rigs.qemu import Disks, MachineOptions
from iolab.hosts.rigs.recipe import Rig
from iolab.hosts.rigs.source_tree import BuildRequest, with_absolute_paths
from iolab.studies.plan.adapt import Changes
from iolab.studies.run.builds import ab as module
from iolab.studies.run.builds.ab import Ab, AbRequest, ab_study, machine_name
from iolab.studies.run.study import run_study
from support.acting import SYS, fake_fio, write_result
from support.zfs import FakeZfs

STUDY = """
[study]
repetitions = 6

[target]
kind = "directory"

[workload]
kind = "fio"
runtime = "2s"
[workload.options]
rw = "write"
bs = "8k"
size = "1m"

[sources]

[factors]
numjobs = [1, 4]

[variants.unpatched]
[variants.patched]
setup = ["a command of the study"]

[reduced]
repetitions = 1
only = { numjobs = [1] }

[rig]
disks = 2
disk_iops = 170
memory = "2g"
target = { kind = "zpool", layout = "mirror:2", devices = "/dev/disk/by-id/virtio-disk*" }
"""
DEVICES = [f"/dev/disk/by-id/virtio-disk{number}" for number in range(2)]
BUILDS = ("2.1=/src/old", "2.3=/src/new")
STATE = RigState(
    rig="openzfs",
    name="",
    pid=1,
    started=1,
    port=1,
    accelerator="tcg",
    begun_ns=0,
    disks=2,
    disk_bytes=8 << 30,
    disk_iops=170,
    disk_bytes_per_s=None,
    memory_bytes=2 << 30,
    cpus=2,
    version="1",
)


class Rigs:
    """The rig and its machine. `calls`: what was done; `failures`: stage to the error that ends it
    once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        self.calls: list[str] = []
        self.failures: dict[str, BaseException] = {}
        self.disks: Disks | None = None
        self.machine: RigState | None = None
        self.made: list[BuildRecord] = []
        self.digests: dict[str, str] = {}
        self.replaced = ""
        self.zfs = FakeZfs()
        host: Any = self.zfs.host()
        self.host = host
        self.host.files |= {name: text for name, text in SYS.items() if name not in self.host.files}
        self.host.directories.update(str(path) for path in [directory, *directory.parents])
        self.host.programs |= {
            "fio": replace(fake_fio(), work=self._fio),
            "sync": FakeProgram(seconds=0.0),
        }
        host.words = "rig:fake"
        host.close = lambda: None
        monkeypatch.setattr(module, "build_rig", self.build_rig)
        monkeypatch.setattr(module, "records", lambda home: iter(self.made))
        monkeypatch.setattr(module, "machines", self.machines)
        monkeypatch.setattr("iolab.hosts.kinds.rig.machines", self.machines)
        monkeypatch.setattr(RigState, "running", property(lambda state: True))
        monkeypatch.setattr(Ab, "connect", lambda ab: self.host if ab.request.host else None)
        host_builds = SimpleNamespace(records=lambda: list(self.made), make=self._record)
        monkeypatch.setattr(module, "HostBuilds", lambda host: host_builds)
        monkeypatch.setattr(module, "HostBuildMaker", lambda *arguments: host_builds)
        monkeypatch.setattr(module, "up", self.up)
        monkeypatch.setattr(module, "await_machine", lambda state: self._stage("await"))
        monkeypatch.setattr(module, "down", self.down)
        monkeypatch.setattr(module, "RigHost", lambda options: self.host)
        monkeypatch.setattr(
            module, "run_study", lambda *a, **k: run_study(*a, **k, clock=self.host.clock)
        )

    def _stage(self, name: str) -> None:
        self.calls.append(name)
        if name in self.failures:
            raise self.failures.pop(name)

    def _fio(self, command: Sequence[str], directory: Path) -> None:
        self._stage("fio")
        write_result(command, directory)

    def machines(self) -> list[RigState]:
        return [] if self.machine is None else [self.machine]

    def build_rig(
        self,
        rig: Rig,
        requests: Sequence[BuildRequest],
        said: Callable[[str], None],
        built: Callable[[BuildRecord], None] = lambda _: None,
    ) -> list[Done]:
        for request in requests:
            built(self._record(request))
        return []

    def _record(self, request: BuildRequest) -> BuildRecord:
        self._stage(f"build {request.name}")
        digest = self.digests.get(request.name, f"d-{request.name}")
        record = BuildRecord(request.name, request.sources, digest, "", {}, "", "2")
        self.made = [other for other in self.made if other.name != record.name] + [record]
        self._install(record)
        return record

    def _install(self, record: BuildRecord) -> None:
        """Put the build's file where the machine has it."""
        path = f"/opt/openzfs/{record.name}/{BUILD_FILE}"
        self.host.files[path] = json.dumps(record.as_data())

    def replace_build(self, name: str) -> None:
        """Another comparison makes a build of this name, and the machine gets it."""
        record = next(record for record in self.made if record.name == name)
        self._install(replace(record, digest="of another comparison"))

    def up(
        self, rig: str, names: Sequence[str], options: MachineOptions, *_: object
    ) -> list[RigState]:
        self._stage("up")
        if self.replaced:
            self.replace_build(self.replaced)
        self.disks, self.machine = options.disks, replace(STATE, name=names[0])
        return [self.machine]

    def down(self, name: str) -> bool:
        self._stage("down")
        self.machine = None
        return True


@pytest.fixture
def rigs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rigs:
    (tmp_path / "s.toml").write_text(STUDY, "utf-8")
    monkeypatch.chdir(tmp_path)
    return Rigs(monkeypatch, tmp_path)


def command(*more: str) -> list[str]:
    builds = [part for text in BUILDS for part in ("--build", text)]
    return ["ab", "--study", "s.toml", *builds, "--reduced", "-o", "out", *more]


def test_builds_become_variants_on_the_machine_of_the_study(rigs: Rigs, tmp_path: Path) -> None:
    request = AbRequest(tmp_path / "s.toml", "openzfs", "m", BUILDS, Changes(reduced=True))
    study, changes = ab_study(request)
    assert (study.variants, study.baseline, study.repetitions) == (("2.1", "2.3"), "2.1", 1)
    assert [(cell.variant, dict(cell.factors)) for cell in study.cells] == [
        ("2.1", {"numjobs": 1}),
        ("2.3", {"numjobs": 1}),
    ]
    assert not study.consent
    assert Changes.from_data(changes.as_data()) == changes
    whole, _ = ab_study(replace(request, changes=Changes()))
    assert (whole.repetitions, len(whole.cells)) == (6, 4)
    assert AbRequest.from_data(request.as_data()) == request


def test_a_comparison_leaves_results_report_and_summary(
    rigs: Rigs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command()) == 0, capsys.readouterr().err
    assert rigs.calls == ["build 2.1", "build 2.3", "up", "fio", "fio", "down"]
    assert rigs.disks == Disks(2, 8 << 30, 170)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "ab.json",
        "report.html",
        "results",
        "summary.md",
    }
    summary = (tmp_path / "out/summary.md").read_text("utf-8")
    assert "## s: 2.3 against 2.1" in summary
    assert len(re.findall(r"2 runs", summary)) == 1
    notes = re.findall(r"(?m)^note: .*", summary)
    assert len(notes) == len(set(notes))
    assert "| sources | old | new |" in summary
    assert "### write.iops: IOPS, writes" in summary
    assert "- disks: 2 of 8.00 GiB, 170 IOPS each" in summary
    assert "emulated" in summary
    repeated = summary.partition("### Repeat")[2].split()
    assert repeated[:3] == ["sudo", "iolab", "ab"]
    assert "--reduced" in repeated
    assert run(command()) == 2
    assert "--resume" in capsys.readouterr().err


def test_the_modules_are_as_before_whichever_build_ran_last(
    rigs: Rigs, capsys: pytest.CaptureFixture[str]
) -> None:
    rigs.zfs.loaded = "2.3"
    # old, new, new, old: the pool is the first one's
    assert run(command("--repetitions", "2")) == 0
    assert "not as they were" not in capsys.readouterr().err
    assert rigs.zfs.loaded == "2.3"
    assert not rigs.zfs.pools


@pytest.mark.parametrize(
    "stage",
    ["build 2.1", "build 2.3", "up", "fio", "down"],
    ids=lambda name: name.replace(" ", "-"),
)
def test_each_stage_is_resumed(
    stage: str, rigs: Rigs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rigs.failures[stage] = KeyboardInterrupt()
    assert run(command()) == 130
    before = list(rigs.calls)
    assert before[-1] == stage
    assert run(["ab", "--resume", "-o", "out"]) == 0, capsys.readouterr().err
    assert rigs.machine is None
    assert (tmp_path / "out/summary.md").exists()
    calls = rigs.calls[len(before) :]
    assert (
        calls
        == {
            "build 2.1": ["build 2.1", "build 2.3", "up", "fio", "fio", "down"],
            "build 2.3": ["build 2.1", "build 2.3", "up", "fio", "fio", "down"],
            "up": ["up", "fio", "fio", "down"],
            "fio": ["await", "fio", "fio", "down"],
            "down": ["down"],
        }[stage]
    )


def test_a_complete_comparison_is_written_again_without_a_machine(
    rigs: Rigs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command()) == 0
    summary = (tmp_path / "out/summary.md").read_text("utf-8")
    (tmp_path / "out/summary.md").unlink()
    rigs.calls.clear()
    rigs.made.clear()  # another comparison replaced the builds meanwhile
    capsys.readouterr()
    assert run(["ab", "--resume", "-o", "out"]) == 0
    assert not rigs.calls
    assert "all runs exist" in capsys.readouterr().err
    assert (tmp_path / "out/summary.md").read_text("utf-8") == summary
    # a run that is missing is done
    run_directory = next((tmp_path / "out/results/runs").iterdir())
    run_directory.rename(tmp_path / run_directory.name)
    assert run(["ab", "--resume", "-o", "out"]) == 0
    assert rigs.calls == ["build 2.1", "build 2.3", "up", "fio", "down"]


def test_an_error_names_the_machine_that_is_up(
    rigs: Rigs, capsys: pytest.CaptureFixture[str]
) -> None:
    rigs.failures["fio"] = KeyboardInterrupt()
    assert run(command()) == 130
    rigs.failures["await"] = RunError("did not start within 900 s", where="rig:m")
    capsys.readouterr()
    assert run(["ab", "--resume", "-o", "out"]) == RunError.exit_code
    *lines, error = capsys.readouterr().err.splitlines()
    assert error == "iolab: rig:m: did not start within 900 s"
    assert lines[-2] == "iolab ab --resume -o out continues"
    assert "iolab rig down ab-" in lines[-1]


def test_failed_runs_end_with_their_code_and_the_machine_is_deleted(
    rigs: Rigs, tmp_path: Path
) -> None:
    rigs.host.programs["fio"] = replace(rigs.host.programs["fio"], exit_code=1)
    assert run(command()) == 5
    assert rigs.calls[-1] == "down"
    assert (tmp_path / "out/summary.md").exists()


def test_a_failure_of_a_build_is_one_line(rigs: Rigs, capsys: pytest.CaptureFixture[str]) -> None:
    rigs.failures["build 2.3"] = RunError("the patch does not apply", where="fix.patch")
    assert run(command()) == RunError.exit_code
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error == "iolab: fix.patch: the patch does not apply"
    assert "up" not in rigs.calls


def test_a_build_that_another_comparison_replaced_is_one_line_and_runs_nothing(
    rigs: Rigs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rigs.replaced = "2.3"
    assert run(command()) == RunError.exit_code
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "the build '2.3'" in error
    assert "iolab rig down" in error
    assert "fio" not in rigs.calls
    rigs.replaced, rigs.machine = "", None
    rigs.digests["2.3"], rigs.made = "d-2.3", [replace(rigs.made[1], digest="other"), rigs.made[0]]
    assert run(["ab", "--resume", "-o", "out"]) == 0
    said = capsys.readouterr().err
    assert "2.3: replaces the build of /src/new" in said
    assert (tmp_path / "out/summary.md").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"digest": 1}'])
def test_a_damaged_file_of_a_build_is_one_line(
    text: str, rigs: Rigs, capsys: pytest.CaptureFixture[str]
) -> None:
    rigs.failures["fio"] = KeyboardInterrupt()
    assert run(command()) == 130
    rigs.host.files[f"/opt/openzfs/2.1/{BUILD_FILE}"] = text
    assert run(["ab", "--resume", "-o", "out"]) == RunError.exit_code
    assert "the build '2.1'" in capsys.readouterr().err.strip().splitlines()[-1]


def on_host(*more: str) -> list[str]:
    target = [
        part
        for text in ("kind=zpool", "layout=mirror:2", f"devices={json.dumps(DEVICES)}")
        for part in ("--target", text)
    ]
    return command("--host", "root@zeno1", *target, *more)


def test_builds_are_made_and_measured_on_a_host(rigs: Rigs, tmp_path: Path) -> None:
    assert run(on_host("--destructive")) == 0
    assert rigs.calls == ["build 2.1", "build 2.3", "fio", "fio"]
    summary = (tmp_path / "out/summary.md").read_text("utf-8")
    repeated = summary.partition("### Repeat")[2]
    assert "iolab ab --study" in repeated
    assert "sudo" not in repeated
    assert "--host root@zeno1" in repeated
    assert "- disks:" not in summary
    assert "emulated" not in summary
    assert Ab.reopen(tmp_path / "out", print).request.host == "root@zeno1"


@pytest.mark.parametrize("stage", ["build 2.3", "fio"], ids=["build", "run"])
def test_each_stage_on_a_host_is_resumed(
    stage: str, rigs: Rigs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rigs.failures[stage] = KeyboardInterrupt()
    assert run(on_host("--destructive")) == 130
    assert "iolab ab --resume -o out continues" in capsys.readouterr().err
    before = len(rigs.calls)
    assert run(["ab", "--resume", "-o", "out", "--destructive"]) == 0, capsys.readouterr().err
    calls = rigs.calls[before:]
    assert calls == (["build 2.1", "build 2.3"] if stage != "fio" else []) + ["fio", "fio"]


def test_disks_of_a_host_are_not_overwritten_without_permission(
    rigs: Rigs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(on_host()) == UsageError.exit_code
    assert "--destructive" in capsys.readouterr().err.splitlines()[-1]
    assert not rigs.calls


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([*command(), "--host", "local"], "names no machine that is reached by ssh"),
        (
            [*command(), "--host", "root@x", "--keep-up", "--destructive"],
            "no machine of a rig is started",
        ),
        (["ab", "--resume", "-o", "x", "--host", "root@x"], "takes the directory"),
        (["ab", "--study", "s.toml", "--build", "old=/src"], "needs two builds"),
        (["ab", "--build", "a=/x", "--build", "b=/y"], "names no study"),
        (["ab", "--study", "s.toml", "--build", "a=/x", "--build", "a=/y"], "given twice"),
        (["ab", "--study", "s.toml", "--build", "a", "--build", "b=/y"], "is not a build"),
        (["ab", "--resume"], "takes the directory"),
        (["ab", "--resume", "-o", "none"], "holds no comparison of builds"),
    ],
)
def test_wrong_use_is_one_line(
    words: list[str], error: str, rigs: Rigs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) in (UsageError.exit_code, ResultsError.exit_code)
    text = capsys.readouterr().err
    assert error in text
    assert text.count("\n") == 1
    assert not rigs.calls


def test_a_study_without_a_pool_or_a_reduced_form_is_refused(
    rigs: Rigs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = STUDY.partition("[reduced]")[0]
    (tmp_path / "s.toml").write_text(text, "utf-8")
    assert run(command()) == UsageError.exit_code
    assert "the study has no [reduced] table" in capsys.readouterr().err
    request = AbRequest(tmp_path / "s.toml", "openzfs", "m", BUILDS, Changes())
    with pytest.raises(UsageError, match="only a target of kind zpool has builds"):
        ab_study(request)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "[]",
        "{}",
        '{"schema": 2}',
        '{"schema": 1, "request": {}, "records": []}',
        '{"schema": 1, "request": {"study": 3, "rig": "x", "machine": "x", "builds": 1, '
        '"changes": {}}, "records": []}',
    ],
)
def test_a_damaged_file_is_one_line(data: str, tmp_path: Path) -> None:
    (tmp_path / "ab.json").write_text(data)
    with pytest.raises(ResultsError, match="can't be read"):
        Ab.reopen(tmp_path, print)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    request = AbRequest(tmp_path / "s.toml", "openzfs", "m", BUILDS, Changes(reduced=True))
    ab = Ab(tmp_path, request, print)
    ab.records = (BuildRecord("2.1", "/src/old", "d", "", {"fix.patch": "e"}, "", "2"),)
    ab.begin()
    other = Ab.reopen(tmp_path, print)
    assert (other.request, other.records) == (request, ab.records)
    assert json.loads((tmp_path / "ab.json").read_text())["schema"] == 1


def test_paths_of_sources_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree").mkdir()
    (tmp_path / "fix.patch").touch()
    assert with_absolute_paths("a=tree+fix.patch") == f"a={tmp_path}/tree+{tmp_path}/fix.patch"
    assert with_absolute_paths("a=2.3") == "a=2.3"
    study = tmp_path / "s.toml"
    assert machine_name(study, BUILDS) == machine_name(study, BUILDS)
    assert machine_name(study, BUILDS) != machine_name(study, BUILDS[:1])
