# SPDX-License-Identifier: Apache-2.0
"""A study with the real fio and the real perf, where this machine lets it sample."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.clock import SystemClock
from iolab.hosts.kinds.local import LocalHost
from iolab.hosts.ssh.host import SshHost
from iolab.hosts.ssh.remote_paths import there
from iolab.studies.plan.profile import Profiling
from iolab.studies.results.open.profiles import read_profiles
from iolab.studies.results.open.results import Results
from iolab.studies.run.load.profiling import Profiler
from iolab.studies.run.study import run_study
from support.acting import Listener, study_text
from support.sshd import nothing_is_left, sshd

pytestmark = pytest.mark.fio


@pytest.fixture
def perf(tmp_path: Path) -> None:
    problem = Profiler(
        Profiling(None, None, None, 99), LocalHost(), SystemClock(), tmp_path
    ).problem()
    if problem is not None:
        pytest.skip(problem)


@pytest.mark.usefixtures("perf")
def test_what_fio_does_is_seen(fio: str, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        study_text(repetitions=1, extra='[profile]\ncells = [{numjobs = 1}]\nseconds = "1s"\n')
        .replace('"2s"', '"4s"')
        .replace('"500ms"', "0"),
        "utf-8",
    )
    heard = Listener()
    out = run_study(study, tmp_path / "out", listener=heard)
    assert heard.end is not None
    assert (heard.end.finished, heard.end.failed) == (6, 0), heard.notes
    found, notes = read_profiles(out)
    assert not notes
    assert {one.variant for one in found} == {"plain", "synced"}
    assert len(Results(out).runs) == 4
    for one in found:
        assert one.samples > 20
        assert any(stack.startswith("fio") for stack in one.stacks)
        assert one.damaged == 0
        assert one.seconds is not None
        assert 0.2 < one.seconds < 4
    assert not list(out.glob("*.made"))
    assert not (out / "profile-data").exists()


@pytest.mark.exclusive
@pytest.mark.usefixtures("perf")
@pytest.mark.parametrize(("more", "whole"), [("", True), ('after = "50s"\n', False)])
def test_a_load_that_ends_by_its_size_is_sampled_from_its_start(
    fio: str, tmp_path: Path, more: str, whole: bool
) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        """
[study]
[workload]
kind = "files"
files = 40
size = "64k"
parallel = 2
runtime = "60s"
[workload.options]
fdatasync = 1
thinktime = "20ms"
[variants.plain]
[profile]
"""
        + more,
        "utf-8",
    )
    heard = Listener()
    out = run_study(study, tmp_path / "out", listener=heard)
    found, notes = read_profiles(out)
    if whole:
        [one] = found
        assert not notes
        assert one.samples > 5
    else:
        assert [reason for _, status, reason in heard.runs if status == "failed"] == [
            "no profile: the load had ended before sampling began; say an earlier profile.after"
        ]
        assert not found
    assert not (out / "profile-data").exists()


@pytest.mark.usefixtures("perf")
def test_another_host_is_sampled_there_and_what_perf_wrote_does_not_travel(
    fio: str, tmp_path: Path
) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        study_text(repetitions=1, extra='[profile]\ncells = [{numjobs = 1}]\nseconds = "1s"\n')
        .replace("numjobs = [1, 4]", "numjobs = [1]")
        .replace('"2s"', '"4s"')
        .replace('"500ms"', "0"),
        "utf-8",
    )
    heard = Listener()
    with sshd(tmp_path / "sshd") as options, SshHost(options) as host:
        out = run_study(study, tmp_path / "out", listener=heard, host=host, clock=host.clock)
    found, notes = read_profiles(out)
    assert not notes, heard.notes
    assert {(one.variant, one.host) for one in found} == {
        ("plain", host.name),
        ("synced", host.name),
    }
    for one in found:
        assert one.samples > 20
        assert one.commands[0][7].startswith(there(out))
    assert not list(out.rglob("perf.data*"))
    assert not list(out.glob("*.made"))
    nothing_is_left()
