# SPDX-License-Identifier: Apache-2.0
"""A study over ssh with real fio: whole, and with the connection killed in mid-run."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from iolab.hosts.ssh.host import SshHost, SshOptions
from iolab.hosts.ssh.remote_paths import there
from iolab.studies.plan.cells.plan import PlannedRun
from iolab.studies.run.study import How, run_study
from support.acting import Listener
from support.sshd import nothing_is_left, sessions_of, sshd

pytestmark = pytest.mark.fio

STUDY = """
[study]
name = "far"
repetitions = 2
[workload]
kind = "fio"
runtime = "2s"
[workload.options]
rw = "randwrite"
bs = "4k"
size = "1m"
[variants.plain]
[variants.marked]
setup = "cat said.txt; echo done > $PWD/setup.txt"
"""


@pytest.fixture
def far_side(tmp_path: Path) -> Iterator[SshOptions]:
    with sshd(tmp_path / "sshd") as options:
        yield options


def plans(directory: Path) -> list[dict[str, object]]:
    return [
        json.loads((run / "run.json").read_text()) for run in sorted((directory / "runs").iterdir())
    ]


def test_a_study_runs_over_ssh_as_it_does_here(
    tmp_path: Path, fio: str, far_side: SshOptions
) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "said.txt").write_text("a word\n")
    listener = Listener()
    with SshHost(far_side) as host:
        run_study(
            tmp_path / "study.toml",
            tmp_path / "results",
            listener=listener,
            host=host,
            clock=host.clock,
            how=How(trusted=True),
        )
    assert [run[1:] for run in listener.runs] == [("finished", "")] * 4
    assert all(values["write.iops"] > 0 for values in listener.values)
    for plan in plans(tmp_path / "results"):
        assert plan["host"] == host.name
        assert str(plan["extra"]["place"]["path"]).startswith(there(tmp_path))  # type: ignore[index]
        assert plan["window"]
    names = {path.name for path in next((tmp_path / "results/runs").iterdir()).iterdir()}
    assert {"fio.json", "fio_bw.log", "job.fio", "stdout.txt", "stderr.txt", "cpu.log"} <= names
    assert (tmp_path / "setup.txt").read_text() == "done\n"
    assert "a word\n" in [path.read_text() for path in (tmp_path / "results/hooks").iterdir()]
    manifest = json.loads((tmp_path / "results/manifest.json").read_text())
    assert manifest["reproduce"][-2:] == ["--host", host.words]
    nothing_is_left()
    assert not list((tmp_path / "results").glob("*.made"))


class Cutter(Listener):
    """Kills every session of an sshd once, in the first run."""

    def __init__(self, options: SshOptions) -> None:
        super().__init__()
        self._options, self.cut = options, 0

    def update_run(
        self, run: PlannedRun, seconds: float, expected: float, latest: Mapping[str, float]
    ) -> None:
        if seconds > 0.3 and not self.cut:
            for session in sessions_of(self._options):
                os.kill(session, signal.SIGKILL)
                self.cut += 1


def test_a_connection_killed_in_mid_run_fails_that_run_and_no_other(
    tmp_path: Path, fio: str, far_side: SshOptions
) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "said.txt").write_text("a word\n")
    listener = Cutter(far_side)
    with SshHost(far_side) as host:
        run_study(
            tmp_path / "study.toml",
            tmp_path / "results",
            listener=listener,
            host=host,
            clock=host.clock,
            how=How(trusted=True),
        )
        assert listener.cut
        assert [status for _, status, _ in listener.runs] == [
            "failed",
            "finished",
            "finished",
            "finished",
        ]
        assert "the connection to the host is lost" in listener.runs[0][2]
        again = Listener()
        run_study(
            tmp_path / "study.toml",
            tmp_path / "results",
            listener=again,
            host=host,
            clock=host.clock,
            how=How(trusted=True, resume=True),
        )
    assert [(number, status) for number, status, _ in again.runs] == [(1, "finished")]
    nothing_is_left()
