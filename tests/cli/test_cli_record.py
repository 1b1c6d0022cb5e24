# SPDX-License-Identifier: Apache-2.0
"""`iolab record`, with a probe that runs anywhere: what it tells, leaves and returns, and what a
kill leaves."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import iolab
from iolab.base.errors import sudo_command
from iolab.cli.main import run
from iolab.cli.record.words import summary_lines
from iolab.recordings.record.recorder import Outcome
from iolab.recordings.record.status import Status
from iolab.recordings.store.base.metadata import read_facts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.golden import Golden
from support.waiting import PATIENCE, gone, recorded_events, until, up_to_date

FRAMES = Path(__file__).parents[1] / "support/frames.py"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Make a probe of a script (see `support.frames`); its log has a line for each start."""

    def make(**script: Any) -> Path:
        log = tmp_path / "probe.log"
        log.touch()
        log.chmod(0o666)
        path = tmp_path / "probe"
        path.write_text(
            f"#!/bin/sh\nexec {sys.executable} {FRAMES} '{json.dumps({'log': str(log), **script})}' \"$@\"\n"
        )
        path.chmod(0o755)
        monkeypatch.setenv("IOLAB_PROBE", str(path))
        return log

    return make


@pytest.fixture
def root_needed() -> None:
    if os.geteuid() != 0:
        pytest.skip("recording block needs root")


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("root_needed")]


def starts(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def rows(recording: Path) -> int:
    found = Recording(recording)
    return sum(sum(segment.sources.values()) for segment in found.segments())


@contextlib.contextmanager
def started(
    *arguments: object, stderr: Any = subprocess.PIPE, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """`iolab record` as a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "iolab.cli", "record", *map(str, arguments)],
        stderr=stderr,
        text=True,
        env={**os.environ, **environment},
        process_group=0,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def gaps_of(recording: Path) -> dict[str, Mapping[str, Any]]:
    """The gap of each source."""
    return {loss["source"]: loss for loss in Recording(recording).losses() if loss["kind"] == "gap"}


def test_a_duration(probe: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    log = probe(rate=1000, lose=2)
    code, out, err = said(capsys, "record", "--duration", "2.3s")
    assert (code, out) == (0, "")
    [directory] = Path().glob("recording-*")
    assert (
        f"recording block, counters into {directory} (keeps 10.0 GiB and 7 days; budget 25 % of all CPU time); for 2.3 s"
        in err
    )
    assert "events/s" in err
    assert f"iolab show {directory}" in err
    summary = next(line for line in err.splitlines() if line.startswith("recorded"))
    assert f"recorded {rows(directory):,}".replace(",", " ") in summary
    assert "bytes an I/O" in summary
    assert rows(directory) > 1500
    losses, status = (
        Recording(directory).losses(),
        json.loads((directory / "status.json").read_text()),
    )
    assert {loss["kind"] for loss in losses} == {"overrun"}
    assert status["lost"] == {
        name: sum(loss["count"] for loss in losses if loss["source"] == name)
        for name in ("block", "counters")
    }
    assert min(status["lost"].values()) >= 4
    [start] = starts(log)
    assert start["arguments"] == [
        "--source",
        "block",
        "--source",
        "counters",
        "--exclude-pid",
        str(os.getpid()),
    ]
    assert gone(start["pid"])
    assert {entry.name for entry in directory.iterdir()} >= {"recording.json", "events", "samples"}
    assert not (directory / "control").exists()


@pytest.mark.parametrize("exit_code", [0, 7])
def test_a_command_gives_the_exit_code(
    exit_code: int, probe: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    probe()
    before = time.time_ns()
    code, _, _ = said(
        capsys, "record", "block", "-q", "-o", "r", "--", "sh", "-c", f"sleep 0.5; exit {exit_code}"
    )
    assert code == exit_code
    [mark] = Recording(Path("r")).marks()
    assert mark["label"] == f"sh -c 'sleep 0.5; exit {exit_code}'"
    assert mark["facts"] == {"exit_code": exit_code}
    assert 4e8 < mark["until_ns"] - mark["from_ns"] < time.time_ns() - before


def test_a_command_may_look_like_options(
    probe: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    probe()
    assert run(["record", "-q", "-o", "r", "--", "echo", "--duration", "--", "-o"]) == 0
    assert capfd.readouterr().out == "--duration -- -o\n"


def test_the_same_directory_is_gone_on_with(
    probe: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    probe(rate=1000)
    assert said(capsys, "record", "-o", "r", "--duration", "1s")[0] == 0
    before = rows(Path("r"))
    assert said(capsys, "record", "-o", "r", "--duration", "1s")[0] == 0
    assert rows(Path("r")) > before + 500
    assert len(Recording(Path("r")).facts.sessions) == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["blok"], 2),
        (["--device", "no-such-disk"], 2),
        (["--duration", "soon"], 2),
        (["--duration", "0"], 2),
        (["--duration", "3s", "--", "true"], 2),
        (["--budget", "much"], 2),
        (["--budget", "0%"], 2),
        (["--budget", "10"], 2),
        (["--keep", "lots"], 2),
        (["--keep", "10"], 2),
        (["--fs", "/no/such/place"], 2),
        (["-o", "file"], 2),
        (["-o", "full"], 2),
        (["--", "no-such-program"], 2),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str],
    code: int,
    probe: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
    golden: Golden,
) -> None:
    log = probe()
    Path("file").touch()
    Path("full").mkdir()
    Path("full/thing").touch()
    got, out, err = said(capsys, "record", *arguments)
    assert (got, out) == (code, "")
    told = re.sub(r"(no such block device;).*", r"\1 DEVICES", err)
    golden("cli/record-mistakes", f"$ iolab record {' '.join(arguments)}\n{told}")
    assert len(err.strip().splitlines()) == 1
    assert all(gone(start["pid"]) for start in starts(log))
    assert not list(Path().glob("recording-*"))


@pytest.mark.parametrize(
    ("code", "words", "exit_code"),
    [
        (4, "iolab-probe: tracefs is not mounted; mount -t tracefs nodev /sys/kernel/tracing", 5),
        (3, "iolab-probe: the kernel is locked down (integrity)", 5),
    ],
)
def test_what_the_probe_refuses_is_one_line(
    code: int,
    words: str,
    exit_code: int,
    probe: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    probe(refuse={"code": code, "words": words})
    got, _, err = said(capsys, "record", "-o", "r")
    assert got == exit_code
    assert words.removeprefix("iolab-probe: ") in err
    assert len(err.strip().splitlines()) == 1
    assert not Path("r").exists()


def test_a_probe_that_is_not_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("IOLAB_PROBE", str(tmp_path / "none"))
    code, _, err = said(capsys, "record")
    assert code == 5
    assert "the probe is not built" in err


def test_a_recording_that_is_being_written_is_refused(
    probe: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    log = probe()
    with RecordingWriter.create(Path("r"), host="x", clock="realtime", origin={"kind": "record"}):
        code, _, err = said(capsys, "record", "-o", "r", "--duration", "1s")
    assert code == 3
    assert f"is being recorded by process {os.getpid()}" in err
    assert all(gone(start["pid"]) for start in starts(log))


@pytest.mark.parametrize(
    ("events", "command"),
    [
        ({"block": 3, "zpool": 4}, "iolab heatmap"),
        ({"zpool": 4}, "iolab query"),
        ({}, "iolab query"),
    ],
)
def test_the_command_that_is_suggested_can_answer(
    events: dict[str, int], command: str, probe: Callable[..., Path]
) -> None:
    with RecordingWriter.create(Path("r"), host="x", clock="realtime", origin={"kind": "record"}):
        pass
    outcome = Outcome(Status(events=events), "duration", None, None, 1.0)
    assert f"; {command} r" in summary_lines(outcome, Path("r"))[-1]


def test_who_is_not_root_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], probe: Callable[..., Path]
) -> None:
    probe()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    code, _, err = said(capsys, "record", "-o", "r")
    assert code == 5
    assert (
        f"recording block needs root: the kernel shows its I/O to root only; {sudo_command('record')}"
        in err
    )
    code, _, _ = said(capsys, "record", "counters", "-o", "r", "--duration", "0.5s")
    assert code == 0


def test_ctrl_c_ends_it_in_order(probe: Callable[..., Path]) -> None:
    log = probe(rate=1000)
    with started("-o", "r") as process:
        recorded_events(Path("r"), 100)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "recorded" in err
    assert "Traceback" not in err
    assert rows(Path("r")) > 100
    assert gone(starts(log)[0]["pid"])


def test_ctrl_c_at_a_terminal_reaches_the_command_too_and_its_end_is_awaited(
    probe: Callable[..., Path],
) -> None:
    probe(rate=1000)
    script = "trap 'sleep 1; exit 5' INT; while :; do sleep 0.1; done"
    with started("-o", "r", "--", "sh", "-c", script) as process:
        recorded_events(Path("r"), 100)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 5
    assert "Traceback" not in err
    [mark] = Recording(Path("r")).marks()
    assert mark["facts"] == {"exit_code": 5}


def test_a_plain_kill_ends_the_command_too(probe: Callable[..., Path], tmp_path: Path) -> None:
    probe(rate=1000)
    with started("-o", "r", "--", "sh", "-c", "echo $$ > pid; exec sleep 100") as process:
        recorded_events(Path("r"), 100)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_killed_recorder_leaves_nothing_running_and_loses_two_seconds_at_most(
    probe: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = probe(rate=1000)
    with started("-o", "r", "--", "sh", "-c", "echo $$ > pid; exec sleep 100") as process:
        status = recorded_events(Path("r"), 3000)
        up_to_date(Path("r"))
        killed_ns = time.time_ns()
        process.kill()
        process.wait()
    assert gone(starts(log)[0]["pid"])
    assert gone(int((tmp_path / "pid").read_text()))
    assert rows(Path("r")) >= sum(status["events"].values())
    span = Recording(Path("r")).span()
    assert span is not None
    assert killed_ns - span[1] < 2e9
    assert said(capsys, "record", "-o", "r", "--duration", "1s")[0] == 0
    [gap] = [loss for loss in Recording(Path("r")).losses() if loss["kind"] == "gap"]
    assert gap["from_ns"] <= killed_ns + 2e9
    assert gap["until_ns"] >= killed_ns


def test_a_clock_that_is_set_ends_a_session(probe: Callable[..., Path]) -> None:
    log = probe(rate=1000, set_ahead=7200)
    with started("-o", "r") as process:
        recorded_events(Path("r"), 500)
        until(lambda: gaps_of(Path("r")).keys() == {"block", "counters"}, "the gap")
        recorded_events(Path("r"), rows(Path("r")) + 500)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert (
        "the clock went ahead by 2.00 h: it was set, or the machine slept; recording continues with the new time"
        in err
    )
    [_, again] = starts(log)
    recording = Recording(Path("r"))
    [before, after] = recording.facts.sessions
    assert after["from_ns"] == again["hello_ns"]
    assert recording.gaps() == [(before["until_ns"], again["hello_ns"])]


def test_a_killed_probe_is_begun_again_and_the_gap_is_shown(probe: Callable[..., Path]) -> None:
    log = probe(rate=1000)
    with started("-o", "r") as process:
        recorded_events(Path("r"), 500)
        up_to_date(Path("r"))
        killed_ns = time.time_ns()
        os.kill(starts(log)[0]["pid"], signal.SIGKILL)
        until(lambda: gaps_of(Path("r")).keys() == {"block", "counters"}, "the gap")
        recorded_events(Path("r"), rows(Path("r")) + 500)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "the probe died: it ended (exit code 137)" in err
    gap, [_, again] = gaps_of(Path("r"))["block"], starts(log)
    # from the last that came of the one to the first of the other
    assert killed_ns - 2e9 < gap["from_ns"] < again["hello_ns"] == gap["until_ns"]
    assert all(gone(start["pid"]) for start in starts(log))


def test_all_but_the_probe_runs_as_whoever_called_sudo(
    probe: Callable[..., Path], tmp_path: Path
) -> None:
    above = [Path(sys.executable), *Path(iolab.__file__).resolve().parents]
    if not all(place.stat().st_mode & 0o001 for place in above):
        pytest.skip("other users cannot read this clone")
    log = probe(rate=1000)
    for directory in (tmp_path, *list(tmp_path.parents)[:3]):
        directory.chmod(directory.stat().st_mode | 0o055)
    place = tmp_path / "place"
    place.mkdir()
    os.chown(place, 65534, 65534)
    script = f"id -u > {place}/who; until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    with started(
        "-o", place / "r", "--", "sh", "-c", script, SUDO_UID="65534", SUDO_GID="65534"
    ) as process:
        recorded_events(place / "r", 500)
        assert (
            Path(f"/proc/{process.pid}").stat().st_uid == 65534
            or "Uid:\t65534" in Path(f"/proc/{process.pid}/status").read_text()
        )
        os.kill(starts(log)[0]["pid"], signal.SIGKILL)  # it can be begun again all the same
        until(lambda: gaps_of(place / "r"), "the gap")
        recorded_events(place / "r", rows(place / "r") + 500)
        (tmp_path / "go").touch()
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert (place / "who").read_text() == "65534\n"
    assert {path.stat().st_uid for path in (place / "r").rglob("*")} == {65534}
    assert [start["uid"] for start in starts(log)] == [0, 0]
    assert all(gone(start["pid"]) for start in starts(log))
    assert rows(place / "r") > 1000


@pytest.mark.parametrize(
    ("words", "files", "directories"), [([], 0o600, 0o700), (["--shared"], 0o644, 0o755)]
)
def test_what_is_recorded_is_its_owners_alone_unless_it_is_shared(
    words: list[str], files: int, directories: int, probe: Callable[..., Path], tmp_path: Path
) -> None:
    """Names of files below private directories, and command lines, stand in it; kept statistics
    too."""
    probe(rate=1000)
    before = os.umask(0o022)
    try:
        with started(
            *words, "-o", tmp_path / "r", "--", "sh", "-c", f"touch {tmp_path}/made; sleep 2"
        ) as process:
            process.communicate(timeout=PATIENCE)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o644, (
        "the command's files are its own affair"
    )
    found = [tmp_path / "r", *(tmp_path / "r").rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_file()} <= {files, 0o600}
    assert files in {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_file()}
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()} == {directories}


def test_a_directory_that_the_user_may_not_write_is_refused_though_root_might(
    probe: Callable[..., Path], tmp_path: Path
) -> None:
    log = probe()
    (tmp_path / "mine").mkdir(mode=0o700)
    with started(
        "-o", tmp_path / "mine/r", "--duration", "1s", SUDO_UID="65534", SUDO_GID="65534"
    ) as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode in (1, 2, 3)
    assert "Permission denied" in err
    assert "Traceback" not in err
    assert not (tmp_path / "mine/r").exists()
    assert all(gone(start["pid"]) for start in starts(log))


def test_a_full_disk_is_one_line_and_what_was_kept_is_readable(
    probe: Callable[..., Path], tmp_path: Path
) -> None:
    log = probe(rate=200_000)
    small, words, go = tmp_path / "small", tmp_path / "words", tmp_path / "go"
    small.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", small], check=False, capture_output=True
    ).returncode:
        pytest.skip("no tmpfs can be mounted")
    try:
        with (
            words.open("w") as stderr,
            started(
                "-o",
                small / "r",
                "--",
                "sh",
                "-c",
                f"until [ -e {go} ]; do sleep 0.1; done; exit 4",
                stderr=stderr,
            ) as process,
        ):
            until(lambda: "' continues" in words.read_text(), "the disk to be full")
            go.touch()
            assert (
                process.wait(PATIENCE) == 4
            )  # the command's end is worth more than its recording's
        err = words.read_text()
        assert "No space left" in err
        assert "Traceback" not in err
        assert rows(small / "r") > 1000
        assert all(gone(start["pid"]) for start in starts(log))
    finally:
        subprocess.run(["umount", small], check=True)


def test_another_process_ends_a_recording_whose_owner_is_gone(
    probe: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probe(rate=1000)
    with started("block", "-q", "-o", tmp_path / "r") as process:
        recorded_events(tmp_path / "r", 100)
        code, out, err = said(capsys, "record", "--stop", tmp_path / "r")
        assert process.wait(PATIENCE) == 0
    assert (code, out) == (0, "")
    recorded = f"{rows(tmp_path / 'r'):,}".replace(",", " ")
    assert err == f"{tmp_path / 'r'}: recording ended: {recorded} events, 0 lost\n"
    assert Recording(tmp_path / "r").facts.sessions[-1]["until_ns"] is not None
    code, _, err = said(capsys, "record", "--stop", tmp_path / "r")
    assert code == 5
    assert "no recorder listens" in err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--stop", "nowhere"], 3),
        (["--stop", "r", "block"], 2),
        (["--stop", "r", "--duration", "2s"], 2),
        (["--stop", "r", "--", "ls"], 2),
    ],
)
def test_what_can_not_be_stopped_is_said(
    arguments: list[str], code: int, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    found, _, err = said(capsys, "record", *arguments)
    assert found == code
    golden("cli/record-not-stopped", f"$ iolab record {' '.join(arguments)}\n{err}")
    assert err.count("\n") == 1


def test_others_are_left_out_where_that_is_asked(
    probe: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    log = probe(rate=10)
    assert (
        said(
            capsys,
            "record",
            "block",
            "--duration",
            "0.5s",
            "--leave-out",
            "12",
            "--leave-out",
            "13",
            "-o",
            "r",
        )[0]
        == 0
    )
    assert starts(log)[0]["arguments"][-6:] == [
        "--exclude-pid",
        str(os.getpid()),
        "--exclude-pid",
        "12",
        "--exclude-pid",
        "13",
    ]


def test_events_that_retention_deleted_are_counted(
    probe: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was deleted by a limit is not lost, but not in the recording either."""
    probe(rate=20_000)
    code, _, err = said(capsys, "record", "block", "--duration", "2.3s", "--keep", "10k", "-o", "r")
    assert code == 0
    dropped = read_facts(Path("r")).dropped
    assert dropped is not None
    deleted = sum(dropped["events"].values())
    assert deleted > 1000
    assert any(
        f"{deleted:,}".replace(",", " ") in line and "--keep" in line for line in err.splitlines()
    )
