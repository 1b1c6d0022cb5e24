# SPDX-License-Identifier: Apache-2.0
"""Recording another machine, over an sshd of the tests' own: the probe goes there, its frames come
here, and nothing stays there."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import run
from iolab.hosts.ssh.host import SshHost, SshOptions
from iolab.recordings.record.control import end_recorder
from iolab.recordings.store.read.recording import Recording
from iolab.studies.results.open.results import Results
from iolab.studies.run.study import run_study
from support.acting import Listener
from support.recorded import device_in_memory, ext4_in_memory
from support.sshd import nothing_is_left, sessions_of, sshd
from support.waiting import PATIENCE, gone, recorded_events, until

FRAMES = Path(__file__).parents[2] / "support/frames.py"

pytestmark = pytest.mark.fio


@pytest.fixture(scope="module")
def far_side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshOptions]:
    with sshd(tmp_path_factory.mktemp("sshd")) as options:
        yield options


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("the far side must be root's, and it is this user's")
    for name in ("SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Make a probe of a script (see `support.frames`) that is brought over; its log has a line for
    each start."""

    def make(**script: Any) -> Path:
        log = tmp_path / "probe.log"
        path = tmp_path / "probe"
        check = json.dumps(
            {
                "sources": {
                    name: {"available": True, "words": []}
                    for name in ("block", "syscall", "counters")
                }
            }
        )
        path.write_text(
            f"#!/bin/sh\nif [ \"$1\" = --check ]; then echo '{check}'; exit; fi\n"
            f"exec {sys.executable} {FRAMES} '{json.dumps({'log': str(log), **script})}' \"$@\"\n"
        )
        monkeypatch.setenv("IOLAB_PROBE", str(path))
        path.chmod(0o755)
        return log

    return make


@contextlib.contextmanager
def recorder(far_side: SshOptions, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """`iolab record --host` as a process of its own; nothing may be left there in the end."""
    words = ["record", "--host", SshHost(far_side).words, *map(str, arguments)]
    process = subprocess.Popen(
        [sys.executable, "-m", "iolab.cli", *words],
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
        nothing_is_left()


def starts(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def rows(recording: Path) -> int:
    return sum(sum(segment.sources.values()) for segment in Recording(recording).segments())


def test_what_is_recorded_there_is_kept_here(
    far_side: SshOptions,
    probe: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log, place = probe(rate=1000, lose=2), tmp_path / "r"
    with recorder(far_side, "block", "--duration", "2.3s", "-o", place) as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert rows(place) > 1500
    assert {loss["kind"] for loss in Recording(place).losses()} == {"overrun"}
    [start] = starts(log)
    assert start["arguments"][:3] == ["--source", "block", "--exclude-pid"]
    assert start["arguments"][-2:] == ["--lease-s", "60"]
    assert gone(start["pid"])
    facts = Recording(place).facts
    assert facts.origin["host"] == facts.origin["connection"]["host"] == SshHost(far_side).name
    assert facts.origin["connection"]["kind"] == "ssh"
    session = facts.sessions[-1]
    offset, uncertainty = session["clock_offset_ns"], session["clock_offset_uncertainty_ns"]
    assert offset is not None
    assert uncertainty is not None
    assert abs(offset) <= uncertainty + 1_000_000
    capsys.readouterr()
    assert run(["show", str(place)]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("reached ")]
    assert f"{SshHost(far_side).name}; its clock was " in line


def test_a_lost_connection_is_a_gap_and_recording_goes_on(
    far_side: SshOptions, probe: Callable[..., Path], tmp_path: Path
) -> None:
    log, place = probe(rate=1000), tmp_path / "r"
    with recorder(far_side, "block", "-q", "-o", place) as process:
        before = recorded_events(place, 1000)
        cut = time.time_ns()
        for session in sessions_of(far_side):
            os.kill(session, signal.SIGKILL)
        until(lambda: len(starts(log)) > 1, "another probe")
        after = recorded_events(place, sum(before["events"].values()) + 1500)
        assert after["deaths"] == 1
        status = end_recorder(place, PATIENCE)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert err.count("is lost; it is tried again") == 1
    [gap] = Recording(place).losses()
    assert (gap["kind"], gap["source"]) == ("gap", "block")
    assert gap["from_ns"] < cut + 10**9 < gap["until_ns"] + 10**9
    assert "the connection to" in gap["words"]
    assert rows(place) == sum(status["events"].values())
    assert all(gone(start["pid"]) for start in starts(log))


def test_a_host_that_stays_away_is_waited_for_until_recording_is_stopped(
    probe: Callable[..., Path], tmp_path: Path
) -> None:
    probe(rate=1000)
    place = tmp_path / "r"
    with contextlib.ExitStack() as stack:
        server = contextlib.ExitStack()
        options = server.enter_context(sshd(tmp_path / "sshd"))
        process = stack.enter_context(recorder(options, "block", "-q", "-o", place))
        try:
            recorded_events(place, 500)
            for session in sessions_of(options):
                os.kill(session, signal.SIGKILL)
        finally:
            server.close()
        until(
            lambda: json.loads((place / "status.json").read_text())["state"] == "waiting",
            "the host to be missed",
        )
        time.sleep(2)
        assert process.poll() is None
        end_recorder(place, PATIENCE)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert err.count("it is tried again") == 1
    [gap] = Recording(place).losses()
    assert gap["until_ns"] - gap["from_ns"] > 2 * 10**9


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_probe_there_ends_with_the_recorder_here(
    number: signal.Signals, far_side: SshOptions, probe: Callable[..., Path], tmp_path: Path
) -> None:
    log, place = probe(rate=1000), tmp_path / "r"
    with recorder(far_side, "block", "-q", "-o", place) as process:
        recorded_events(place, 500)
        process.send_signal(number)
        process.wait(PATIENCE)
        [start] = starts(log)
        assert gone(start["pid"])
    if number != signal.SIGKILL:
        assert process.returncode == 0
        assert Recording(place).losses() == []


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        (
            {"refuse": {"code": 4, "words": "iolab-probe: no tracefs is mounted"}},
            5,
            "no tracefs is mounted",
        ),
        ({"refuse": {"code": 3, "words": "iolab-probe: not permitted"}}, 5, "not permitted"),
    ],
)
def test_a_probe_that_refuses_there_is_one_line(
    script: dict[str, Any],
    code: int,
    words: str,
    far_side: SshOptions,
    probe: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    probe(**script)
    assert (
        run(["record", "block", "--host", SshHost(far_side).words, "-o", str(tmp_path / "r")])
        == code
    )
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--device", "no-such"], 2, "no such block device"),
        (["--fs", "/no/such"], 2, "'/no/such' does not exist on host"),
        (["--host", "nobody@127.0.0.1:1"], 5, "can't be reached"),
        (["--host", "nowhere"], 2, "names no host"),
    ],
)
def test_mistakes_are_said_before_anything_is_recorded(
    arguments: list[str],
    code: int,
    words: str,
    far_side: SshOptions,
    probe: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    probe()
    host = [] if "--host" in arguments else ["--host", SshHost(far_side).words]
    assert run(["record", "block", *host, *arguments, "-o", str(tmp_path / "r")]) == code
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1
    assert not (tmp_path / "r").exists()


def test_live_shows_another_machine(
    far_side: SshOptions, probe: Callable[..., Path], tmp_path: Path
) -> None:
    log = probe(rate=1000)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "iolab.cli",
            "live",
            "--host",
            SshHost(far_side).words,
            "--port",
            "0",
            "-o",
            str(tmp_path / "r"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        recorded_events(tmp_path / "r", 500)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 0, err
    assert gone(starts(log)[0]["pid"])
    assert rows(tmp_path / "r") >= 500


REAL = """
sources = ["block", "syscall", "diskstats"]
[study]
name = "far"
repetitions = 1
[target]
kind = "directory"
path = "{place}"
[workload]
kind = "fio"
runtime = "2s"
log_ios = true
[workload.options]
rw = "randwrite"
bs = "4k"
size = "4m"
direct = 1
[variants.plain]
"""


def test_a_study_records_there_what_it_would_here(
    far_side: SshOptions, fio: str, tmp_path: Path
) -> None:
    """The block layer, system calls and fio's own log of every I/O agree on how many there were."""
    with ext4_in_memory(tmp_path) as (_, point):
        (tmp_path / "study.toml").write_text(REAL.format(place=point))
        listener = Listener()
        with SshHost(far_side) as host:
            run_study(
                tmp_path / "study.toml",
                tmp_path / "results",
                listener=listener,
                host=host,
                clock=host.clock,
            )
            name = host.name
    assert [run[1:] for run in listener.runs] == [("finished", "")], listener.notes
    [run] = Results(tmp_path / "results").runs
    assert run.plan.extra["recording"].get("problem") is None
    counts = run.plan.extra["recording"]["events"]
    kept = json.loads((run.evidence / "log_ios.json").read_text())
    assert kept["kept"] is None, kept
    ios = kept["events"]["write"]
    assert ios > 500
    assert ios <= counts["block"] < ios * 1.1 + 200  # the journal writes too
    assert ios <= counts["syscall"] < ios * 1.1 + 2000
    assert run.plan.extra["recording"]["lost"] == {"block": 0, "syscall": 0}
    lost = [
        loss
        for loss in Recording(tmp_path / "results/recordings" / name).losses()
        if loss["kind"] in ("overrun", "gap")
    ]
    assert not [loss for loss in lost if loss["source"] != "fio"]
    begin, end = kept["from_ns"], kept["until_ns"]  # fio's own log covers its run alone
    assert all(
        (loss["until_ns"] is not None and loss["until_ns"] <= begin) or loss["from_ns"] >= end
        for loss in lost
    ), (lost, kept)
    assert not (run.evidence / "ios").exists()
    nothing_is_left()


def test_every_request_there_is_recorded_here(
    far_side: SshOptions, fio: str, tmp_path: Path
) -> None:
    report = tmp_path / "fio.json"
    load = [
        "fio",
        "--name=j",
        "--rw=randread",
        "--bs=4k",
        "--ioengine=io_uring",
        "--iodepth=16",
        "--direct=1",
        "--runtime=2",
        "--time_based=1",
        "--output-format=json",
        f"--output={report}",
    ]
    with device_in_memory(tmp_path) as node:
        place = tmp_path / "r"
        words = [
            "block",
            "-q",
            "--device",
            node,
            "--budget",
            "none",
            "-o",
            place,
            "--",
            *load,
            f"--filename={node}",
        ]
        with recorder(far_side, *words) as process:
            _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    ios = sum(int(job["read"]["total_ios"]) for job in json.loads(report.read_text())["jobs"])
    assert [loss for loss in Recording(place).losses() if loss["kind"] in ("overrun", "gap")] == []
    assert rows(place) == ios > 1000


def refused(far_side: SshOptions, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What `iolab run` says of a study that can't be recorded there; it must be one line, and
    nothing is left."""
    (tmp_path / "study.toml").write_text(REAL.format(place=tmp_path))
    capsys.readouterr()
    assert (
        run(
            [
                "run",
                str(tmp_path / "study.toml"),
                "--host",
                SshHost(far_side).words,
                "-o",
                str(tmp_path / "results"),
            ]
        )
        == 5
    )
    err = capsys.readouterr().err
    assert err.count("\n") == 1, err
    assert not (tmp_path / "results").exists()
    nothing_is_left()
    return err


def test_a_study_is_told_what_is_missing_there_before_its_first_run(
    far_side: SshOptions,
    fio: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "probe"
    says = json.dumps(
        {
            "sources": {
                "block": {"available": False, "words": ["no tracefs is mounted"]},
                "syscall": {"available": True, "words": []},
            }
        }
    )
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    monkeypatch.setenv("IOLAB_PROBE", str(path))
    assert "can't be recorded there: block: no tracefs is mounted" in refused(
        far_side, tmp_path, capsys
    )
    path.write_text("#!/bin/sh\necho 'iolab-probe: not permitted' >&2; exit 3\n")
    assert "not permitted" in refused(far_side, tmp_path, capsys)
    path.write_text("no program")
    assert "iolab-probe" in refused(far_side, tmp_path, capsys)


class Cutter(Listener):
    """Kills the connection of the study's recorder, not the study's own, in the middle of the run."""

    def __init__(self, recording: Path) -> None:
        super().__init__()
        self._recording, self.cut = recording, 0

    def update_run(self, run: Any, seconds: float, expected: float, latest: Any) -> None:
        if seconds > 1.5 and not self.cut:
            recorder = json.loads((self._recording / "status.json").read_text())["pid"]
            children = [
                child
                for task in Path(f"/proc/{recorder}/task").iterdir()
                for child in (task / "children").read_text().split()
            ]
            [master] = [
                child
                for child in children
                if b"ControlMaster=yes" in Path(f"/proc/{child}/cmdline").read_bytes()
            ]
            os.kill(int(master), signal.SIGKILL)
            self.cut += 1


def test_a_recorders_connection_lost_in_mid_run_is_judged_and_the_load_goes_on(
    far_side: SshOptions, fio: str, probe: Callable[..., Path], tmp_path: Path
) -> None:
    probe(rate=1000)
    (tmp_path / "study.toml").write_text(
        REAL.format(place=tmp_path)
        .replace('"2s"', '"6s"')
        .replace("log_ios = true", "")
        .replace('["block", "syscall", "diskstats"]', '["block"]')
    )
    with SshHost(far_side) as host:
        listener = Cutter(tmp_path / "results/recordings" / host.name)
        run_study(
            tmp_path / "study.toml",
            tmp_path / "results",
            listener=listener,
            host=host,
            clock=host.clock,
        )
        place = tmp_path / "results/recordings" / host.name
    assert listener.cut
    assert [run[1:] for run in listener.runs] == [("finished", "")], listener.notes
    [run] = Results(tmp_path / "results").runs
    assert [
        reason.code
        for reason in run.verdict.reasons
        if "block" in reason.text and "connection" in reason.text
    ], run.verdict
    [gap] = [loss for loss in Recording(place).losses() if loss["kind"] == "gap"]
    assert "is lost" in gap["words"]
    assert run.value("write.iops")
