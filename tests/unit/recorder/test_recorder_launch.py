# SPDX-License-Identifier: Apache-2.0
"""The probe as a process, started directly and by the one that keeps root: nothing of it is ever
left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab._core import FrameReader
from iolab.base.errors import RunError, UsageError
from iolab.recordings.record.probe.launch import DirectLauncher, Probe, StarterLauncher
from iolab.recordings.record.probe.program import failure, probe_arguments, probe_path
from iolab.recordings.record.probe.starter import without_sources
from iolab.recordings.record.recorder import wait_readable
from support.waiting import PATIENCE, gone, until


def fake(**script: Any) -> list[str]:
    """The command of a probe that runs anywhere."""
    return [
        sys.executable,
        str(Path(__file__).parents[2] / "support/frames.py"),
        json.dumps(script),
        "--source",
        "block",
        "--source",
        "counters",
    ]


@pytest.fixture(params=[DirectLauncher, StarterLauncher])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def launcher(kind: Any) -> Iterator[Any]:
    made = kind(fake(rate=200))
    yield made
    made.close()


def frames_of(
    probe: Probe, seconds: float = PATIENCE, until: str = "end", reader: FrameReader | None = None
) -> list[dict[str, Any]]:
    reader = reader or FrameReader()
    found: list[dict[str, Any]] = []
    limit = time.monotonic() + seconds
    while time.monotonic() < limit and not any(frame["kind"] == until for frame in found):
        wait_readable(probe.files(), 0.1)
        data = probe.read()
        if data == b"":
            break
        found += reader.feed(data or b"")
    return found


def test_frames_come_and_stop_ends_it_in_order(launcher: Any) -> None:
    probe, reader = launcher.launch(), FrameReader()
    assert frames_of(probe, until="events", reader=reader)[0]["sources"].keys() == {
        "block",
        "counters",
    }
    probe.ask_to_stop()
    probe.ask_to_stop()
    assert frames_of(probe, reader=reader)[-1]["kind"] == "end"
    probe.let_go()
    assert probe.exit_code() == 0
    assert gone(probe.pid)
    probe.let_go()


def test_letting_go_ends_it(launcher: Any) -> None:
    probe = launcher.launch()
    frames_of(probe, until="hello")
    probe.let_go()
    assert gone(probe.pid)


def test_a_killed_probe_tells_how_it_died_and_another_can_follow(launcher: Any) -> None:
    probe = launcher.launch()
    frames_of(probe, until="hello")
    os.kill(probe.pid, signal.SIGKILL)
    frames_of(probe, until="nothing")
    probe.let_go()
    assert probe.exit_code() == 137
    second = launcher.launch(["block"])
    assert frames_of(second, until="hello")[0]["sources"].keys() == {"counters"}
    second.let_go()


def test_one_that_follows_has_the_first_ones_niceness(launcher: Any) -> None:
    """The recorder steps back behind what it measures once it records; a probe must not come late."""
    found = [os.getpriority(os.PRIO_PROCESS, 0)]

    def follow() -> None:
        os.nice(7)  # of this thread alone
        probe = launcher.launch()
        found.extend(
            [os.getpriority(os.PRIO_PROCESS, probe.pid), os.getpriority(os.PRIO_PROCESS, 0)]
        )
        probe.let_go()

    if os.geteuid() != 0:
        pytest.skip("only root may undo niceness")
    thread = threading.Thread(target=follow)
    thread.start()
    thread.join()
    assert found == [found[0], found[0], min(19, found[0] + 7)]


def test_words_on_standard_error_come_as_lines(kind: Any) -> None:
    launcher = kind(fake(refuse={"code": 4, "words": "no tracefs\nat all"}))
    probe = launcher.launch()
    words: list[str] = []
    limit = time.monotonic() + PATIENCE
    while len(words) < 2 and time.monotonic() < limit:
        wait_readable(probe.files(), 0.1)
        words += probe.words()
    probe.let_go()
    assert words == ["no tracefs", "at all"]
    assert probe.exit_code() == 4
    launcher.close()


def test_a_program_that_is_not_there_is_one_error(kind: Any) -> None:
    with pytest.raises(RunError, match="can't be started"):
        kind(["/nowhere/iolab-probe"]).launch()


def test_the_starter_starts_one_at_a_time_and_nothing_but_its_command() -> None:
    launcher = StarterLauncher(fake(rate=1))
    first = launcher.launch()
    with pytest.raises(RunError, match="runs already"):
        launcher.launch()
    channel = launcher._channel
    for nonsense in (b"start", b'{"start": 5}', b'{"run": ["sh"]}', b"{}", b"\xff"):
        channel.send(nonsense)
        answer, pipes = launcher._receive()
        assert answer == {"error": "not understood"}
        assert pipes == []
    first.let_go()
    launcher.close()


def test_the_starter_limits_starts(tmp_path: Path) -> None:
    program = tmp_path / "probe"
    program.write_bytes(b"no program")
    program.chmod(0o755)
    launcher = StarterLauncher([str(program)])
    said = set()
    for _ in range(25):
        with pytest.raises(RunError) as error:
            launcher.launch()
        said.add(error.value.message.rpartition(": ")[2])
    assert said == {"Exec format error", "too many starts within a minute"}
    launcher.close()


def test_when_the_recorder_is_killed_starter_and_probe_end(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    code = (
        "import sys, time, pathlib; from iolab.recordings.record.probe.launch import StarterLauncher; "
        "l = StarterLauncher(sys.argv[2:]); p = l.launch(); "
        "pathlib.Path(sys.argv[1]).write_text(f'{p.pid} {l._starter.pid}'); time.sleep(1000)"
    )
    recorder = subprocess.Popen([sys.executable, "-c", code, str(note), *fake(rate=1)])
    pids = [
        int(word)
        for word in until(lambda: note.read_text().split() if note.exists() else [], "the probe")
    ]
    recorder.kill()
    recorder.wait()
    assert all(gone(pid) for pid in pids)


def test_a_probe_that_ignores_its_pipes_is_ended_by_the_starter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from iolab.recordings.record.probe import starter

    monkeypatch.setattr(starter, "_GRACE", 0.3)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one = starter.Starter(
        theirs,
        os.open("/bin/sh", os.O_RDONLY),
        ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"],
    )
    one._start(["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"])
    assert one._probe is not None
    pid = one._probe.pid
    ours.close()
    one.serve()
    assert gone(pid)


def test_sources_are_left_out_of_the_command() -> None:
    command = [
        "/p",
        *probe_arguments(
            ["block", "counters"], devices=["8:0"], mounts=["/mnt"], exclude=[7], ring_kib=64
        ),
    ]
    assert command == [
        "/p",
        "--source",
        "block",
        "--source",
        "counters",
        "--device",
        "8:0",
        "--mount",
        "/mnt",
        "--exclude-pid",
        "7",
        "--ring-kib",
        "64",
    ]
    assert without_sources(command, {"block"}) == ["/p", *command[3:]]
    assert without_sources(command, set()) == command
    assert without_sources(["/p", "--source"], {"block"}) == ["/p", "--source"]


def test_a_probe_that_is_not_built_is_told_with_the_way_to_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("IOLAB_PROBE", str(tmp_path / "none"))
    with pytest.raises(RunError, match="the probe is not built"):
        probe_path()
    (tmp_path / "none").write_text("")
    with pytest.raises(RunError, match="not built"):  # not executable
        probe_path()
    (tmp_path / "none").chmod(0o755)
    assert probe_path() == tmp_path / "none"


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (2, UsageError, "x"),
        (3, RunError, "sudo"),
        (4, RunError, "x"),
        (None, RunError, "before it began"),
    ],
)
def test_exit_codes_become_errors(code: int | None, kind: type, words: str) -> None:
    error = failure(code, ["first", "iolab-probe: x"])
    assert type(error) is kind
    assert words in str(error)
    assert str(failure(code, []))


def test_the_program_that_was_opened_is_run_whatever_lies_at_its_path_later(tmp_path: Path) -> None:
    program = tmp_path / "probe"
    shutil.copy("/bin/sh", program)
    launcher = StarterLauncher([str(program), "-c", "echo first >&2"])
    try:
        program.unlink()
        program.write_text("#!/bin/sh\necho second >&2\n")
        program.chmod(0o755)
        probe = launcher.launch()
        until(lambda: probe.exit_code() is not None, "its end")
        assert probe.words() == ["first"]
        probe.let_go()
    finally:
        launcher.close()


def test_a_program_that_is_changed_in_place_is_not_run(tmp_path: Path) -> None:
    program = tmp_path / "probe"
    shutil.copy("/bin/sh", program)
    launcher = StarterLauncher([str(program), "-c", "echo first >&2"])
    try:
        probe = launcher.launch()
        until(lambda: probe.exit_code() is not None, "its end")
        probe.let_go()
        with program.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\1")
        with pytest.raises(RunError, match="was changed since recording began"):
            launcher.launch()
    finally:
        launcher.close()


def test_only_a_program_that_nobody_else_may_write_is_run_as_root(tmp_path: Path) -> None:
    program = tmp_path / "probe"
    shutil.copy("/bin/sh", program)
    program.chmod(0o777)
    with pytest.raises(RunError, match="may be written by everybody"):
        StarterLauncher([str(program)])
    program.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(program, 4321, 4321)
        with pytest.raises(RunError, match="belongs to user 4321"):
            StarterLauncher([str(program)])
    with pytest.raises(RunError, match="can't be started"):
        StarterLauncher([str(tmp_path / "nothing")])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RunError, match="is not a file"):
        StarterLauncher([str(tmp_path / "pipe")])
