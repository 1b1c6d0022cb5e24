# SPDX-License-Identifier: Apache-2.0
"""Hosts over ssh, against an sshd of the tests' own: what goes there and comes back, and what a
lost connection leaves."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import RunError, UsageError
from iolab.cli.main import run
from iolab.hosts.base.orphans import start_ticks
from iolab.hosts.facts.host_facts import host_facts
from iolab.hosts.kinds.local import LocalHost
from iolab.hosts.kinds.parse import host_named
from iolab.hosts.ssh.channel import Channel
from iolab.hosts.ssh.host import SshHost, SshOptions
from iolab.hosts.ssh.process import inside
from iolab.hosts.ssh.remote_paths import here, mirror_root, scratch_on, there, work_place
from support.sshd import nothing_is_left, sessions_of, sshd
from support.waiting import PATIENCE, gone, until


@pytest.fixture(scope="module")
def far_side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshOptions]:
    with sshd(tmp_path_factory.mktemp("sshd")) as options:
        yield options


@pytest.fixture
def host(far_side: SshOptions) -> Iterator[SshHost]:
    with SshHost(far_side) as host:
        yield host
    nothing_is_left()


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    """Let `ssh` do something first."""
    real = LocalHost().which("ssh")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ssh").write_text(f'#!/bin/sh\n{first}\nexec {real} "$@"\n')
    (tmp_path / "bin/ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def test_files_that_a_command_names_go_there_and_new_ones_come_back(
    host: SshHost, tmp_path: Path
) -> None:
    run, words, results = tmp_path / "run", tmp_path / "words", tmp_path / "results"
    for directory in (run, words, results, run / "below"):
        directory.mkdir()
    (run / "job.fio").write_text("job\n")
    (run / "below/part").write_text("part\n")
    (run / "secret").write_text("stays\n")
    script = "cat job.fio ./below/part; ls; pwd >&2; mkdir sub; echo new > sub/new; echo more >> job.fio; echo 1 > $IOLAB_RUN_DIR/left"
    process = host.start(
        ["sh", "-c", script],
        cwd=run,
        stdout=words / "out",
        stderr=words / "err",
        environment={"IOLAB_RUN_DIR": str(results)},
    )
    assert process.wait(PATIENCE) == 0
    assert (words / "out").read_text() == "job\npart\nbelow\njob.fio\n"
    assert (words / "err").read_text() == f"{work_place(run)}\n"
    assert (run / "sub/new").read_text() == "new\n"
    assert (run / "job.fio").read_text() == "job\nmore\n"
    assert (results / "left").read_text() == "1\n"
    assert not Path(work_place(run)).exists()


def test_the_mirror_of_a_directory_stays_while_another_program_works_there(
    host: SshHost, tmp_path: Path
) -> None:
    watcher = host.start(
        ["sh", "-c", "echo begun > begun; sleep 1000"],
        cwd=tmp_path,
        stdout=tmp_path / "o",
        stderr=tmp_path / "e",
    )
    other = host.start(
        ["sh", "-c", "until [ -e begun ]; do sleep 0.05; done"],
        cwd=tmp_path,
        stdout=tmp_path / "o2",
        stderr=tmp_path / "e2",
    )
    assert other.wait(PATIENCE) == 0
    assert Path(work_place(tmp_path)).is_dir()
    assert watcher.end() == 128 + 15
    assert not Path(work_place(tmp_path)).exists()


def test_a_file_that_is_open_here_is_carried_over(host: SshHost) -> None:
    with open(os.memfd_create("carried"), "w+") as file:  # noqa: PTH123
        file.write("in memory\n")
        file.flush()
        answer = host.run(["cat", f"/proc/{os.getpid()}/fd/{file.fileno()}"])
    assert answer.stdout == "in memory\n"


@pytest.mark.slow
def test_a_lost_connection_fails_what_ran_and_ends_it_there(
    host: SshHost, far_side: SshOptions, tmp_path: Path
) -> None:
    process = host.start(
        ["sleep", "1000"], cwd=tmp_path, stdout=tmp_path / "o", stderr=tmp_path / "e"
    )
    pid, started = process.pid, process.started
    assert process.wait(0.1) is None
    sessions = sessions_of(far_side)
    assert sessions
    for session in sessions:
        os.kill(session, signal.SIGKILL)
    with pytest.raises(RunError, match=r"the connection to the host is lost.*--resume"):
        process.wait(PATIENCE)
    with pytest.raises(RunError, match="connection to the host is lost"):
        process.end()
    assert host.run(["echo", "again"]).stdout == "again\n"  # connected anew
    assert gone(pid, started)
    assert host.read_text("/proc/sys/kernel/osrelease")
    assert not Path(work_place(tmp_path)).exists()


@pytest.mark.slow
@pytest.mark.parametrize("answered", [True, False])
def test_what_a_far_end_that_hangs_leaves_running_is_ended_by_the_next_connection(
    far_side: SshOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answered: bool
) -> None:
    """It can't notice that the connection went; nor, in the second case, did its answer to the
    start come here."""
    real, told = Channel.call, []

    def call(
        self: Channel, do: str, data: bytes = b"", *, allow: float = 0.0, **values: Any
    ) -> tuple[Any, bytes]:
        answer = real(self, do, data, allow=allow, **values)
        if do == "start":
            told.append(answer[0])
            os.kill(self.far["pid"], signal.SIGSTOP)
            if not answered:
                raise self._loss()
        return answer

    with SshHost(far_side) as host:
        far = host.far["pid"]
        with monkeypatch.context() as patch:
            patch.setattr(Channel, "call", call)
            try:
                process = host.start(
                    ["sleep", "1000"], cwd=tmp_path, stdout=tmp_path / "o", stderr=tmp_path / "e"
                )
            except RunError:
                assert not answered
        try:
            if answered:
                for session in sessions_of(far_side):
                    os.kill(session, signal.SIGKILL)
                with pytest.raises(RunError, match="connection to the host is lost"):
                    process.wait(PATIENCE)
            assert start_ticks(told[0]["pid"]) == told[0]["started"]
            host.reach()
            fields = Path(f"/proc/{told[0]['pid']}/stat").read_text().rpartition(")")[2].split()
            assert fields[0] == "Z"  # its parent hangs
        finally:
            os.kill(far, signal.SIGCONT)
        assert gone(far)
    nothing_is_left()


@pytest.mark.slow
def test_programs_end_with_a_killed_iolab(far_side: SshOptions, tmp_path: Path) -> None:
    """kill -9 of the process that holds the connection: its ssh goes with it, and the far end ends
    what it started."""
    child = os.fork()
    if child == 0:
        try:
            host = SshHost(far_side)
            process = host.start(
                ["sleep", "1000"], cwd=tmp_path, stdout=tmp_path / "o", stderr=tmp_path / "e"
            )
            (tmp_path / "new").write_text(f"{process.pid} {process.started} {host._directory}")
            (tmp_path / "new").rename(tmp_path / "pid")
            time.sleep(1000)
        finally:
            os._exit(0)
    until((tmp_path / "pid").exists, "the program")
    pid, started, directory = (tmp_path / "pid").read_text().split()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert gone(int(pid), int(started))
    nothing_is_left()
    assert Path(directory).is_dir()
    with SshHost(far_side) as host:  # whoever connects next removes what the killed one left here
        host.reach()
        assert not Path(directory).exists()


def test_file_methods_of_a_host_out_of_reach_are_os_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, f"echo call >> {tmp_path}/calls")
    host = SshHost(SshOptions(address="nobody@127.0.0.1", port=1, known_hosts=tmp_path / "none"))
    with pytest.raises(RunError, match=r"can't be reached.*refused"):
        host.run(["true"])
    with pytest.raises(OSError, match="can't be reached"):
        host.read_text("/etc/hostname")
    assert host.kernel_log is not None
    with pytest.raises(OSError):
        host.list_directory("/")
    assert (tmp_path / "calls").read_text() == "call\n"  # not tried again at once
    host.close()


@pytest.mark.slow
def test_the_far_clock_is_this_machines_within_the_uncertainty(host: SshHost) -> None:
    offset = host.clock.offset()
    assert abs(offset.nanoseconds) <= offset.uncertainty_ns + 1_000_000
    assert offset.round_trip_ns > 0
    before, told, after = time.time_ns(), host.clock.realtime_ns(), time.time_ns()
    assert (
        before - offset.uncertainty_ns - 1_000_000
        <= told
        <= after + offset.uncertainty_ns + 1_000_000
    )
    facts = host_facts(host).facts
    assert facts["clock_offset_ns"] == offset.nanoseconds
    assert facts["connection"]["kind"] == "ssh"
    assert facts["host"] == host.name


@pytest.mark.slow
def test_what_a_shell_prints_at_its_start_does_not_disturb(
    far_side: SshOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A login shell's start-up files may write; here a program that stands before ssh does."""
    stand_in(tmp_path, monkeypatch, "echo noise; echo more noise")
    with SshHost(far_side) as host:
        assert host.run(["echo", "plain"]).stdout == "plain\n"


def test_folders_are_made_there_and_come_back(host: SshHost, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    process = host.start(
        ["sh", "-c", "echo 1 > ios/a; ls -d ios other"],
        cwd=run,
        stdout=tmp_path / "o",
        stderr=tmp_path / "e",
        folders=("ios", "other"),
    )
    assert process.wait(PATIENCE) == 0, (tmp_path / "e").read_text()
    assert (run / "ios/a").read_text() == "1\n"
    assert (tmp_path / "o").read_text() == "ios\nother\n"
    assert (run / "other").is_dir()


def test_a_program_is_kept_there_as_long_as_the_connection_lasts(host: SshHost) -> None:
    path = host.keep_program("tool", b"#!/bin/sh\necho at work\n")
    assert host.run([path]).stdout == "at work\n"
    assert Path(path).stat().st_mode & 0o777 == 0o700
    left = Path(path).parent.parent / "1-1"  # of a connection that ended without a word
    left.mkdir()
    (left / "tool").write_text("old")
    assert host.keep_program("tool", b"#!/bin/sh\necho anew\n") == path
    assert host.run([path]).stdout == "anew\n"
    assert not left.exists()
    host.close()
    assert not Path(path).exists()


@pytest.mark.slow
def test_a_program_that_arrives_otherwise_is_refused(host: SshHost) -> None:
    with pytest.raises(ValueError, match="other bytes arrived"):
        host.call("keep_program", b"x", base=mirror_root(), name="tool", digest="0" * 64)
    host.call("remove", path=f"{mirror_root()}/programs")


@pytest.mark.slow
def test_a_lost_connection_is_made_again_when_asked(host: SshHost, far_side: SshOptions) -> None:
    host.reach()
    pid, generation = host.far["pid"], host.generation
    host.reach()
    assert (host.far["pid"], host.generation) == (pid, generation)
    for session in sessions_of(far_side):
        os.kill(session, signal.SIGKILL)
    host.reach()
    assert host.generation == generation + 1
    assert host.far["pid"] != pid
    assert host.far["machine"] == os.uname().machine


@pytest.mark.slow
def test_a_further_session_shares_the_connection(host: SshHost) -> None:
    answer = LocalHost().run(host.session("echo", "a b", "$HOME"))
    assert (answer.exit_code, answer.stdout) == (0, "a b $HOME\n")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", ""])
def test_names_from_the_far_side_stay_inside(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is not a name of a file"):
        inside(tmp_path, name)


def test_a_link_does_not_lead_out_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/out").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="leads out of"):
        inside(tmp_path / "run", "out/file")
    assert inside(tmp_path / "run", "sub/file") == tmp_path / "run/sub/file"


def test_mirrors_turn_round(tmp_path: Path) -> None:
    assert here(there(tmp_path / "x")) == str(tmp_path / "x")
    assert here("/somewhere/else") == "/somewhere/else"
    assert scratch_on(LocalHost(), tmp_path) == str(tmp_path)
    assert scratch_on(SshHost(SshOptions(address="a@b")), tmp_path) == there(tmp_path)


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("local", "LocalHost", "local"),
        ("root@zeno1", "SshHost", "root@zeno1"),
        ("me@zeno1:2222", "SshHost", "me@zeno1:2222"),
        ("ssh:zeno1", "SshHost", "zeno1"),
        ("me@[fe80::1]:22", "SshHost", "me@fe80::1:22"),
        ("rig:openzfs", "RigHost", "rig:openzfs"),
    ],
)
def test_hosts_are_named(text: str, kind: str, name: str) -> None:
    host = host_named(text)
    assert type(host).__name__ == kind
    assert host.name == name


def test_words_lead_to_the_same_host(tmp_path: Path) -> None:
    for options in (
        SshOptions(address="a@b", port=7),
        SshOptions(address="b"),
        SshOptions(address="b", identity=tmp_path, name="c"),
    ):
        again = host_named(SshHost(options).words)
        assert isinstance(again, SshHost)
        assert (again.name, again.words, again.destination()) == (
            SshHost(options).name,
            SshHost(options).words,
            SshHost(options).destination(),
        )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "zeno1",
        "{",
        "{}",
        '{"kind": "fake"}',
        '{"kind": "ssh", "adress": "x"}',
        '{"kind": ["ssh"]}',
        "{1}",
        "-oProxyCommand=x@y",
        "ssh:-x",
        "a b@c",
        "root@",
        "rig:",
        "rig:../x",
        "me@host:99999",
        "me@host:x",
    ],
)
def test_what_names_no_host_is_said(text: str) -> None:
    with pytest.raises(UsageError):
        host_named(text)


@pytest.mark.slow
def test_a_command_line_with_no_such_host_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "study.toml").write_text("""
[workload]
kind = "fio"
runtime = "1s"
[workload.options]
rw = "read"
size = "1m"
[variants.a]
""")
    for words, code, said in (
        ("zeno1", 2, "'zeno1' names no host"),
        ("nobody@127.0.0.1:1", 5, "can't be reached"),
        ("rig:none", 5, "no rig 'none' is up"),
    ):
        assert (
            run(["run", str(tmp_path / "study.toml"), "--host", words, "-o", str(tmp_path / "out")])
            == code
        )
        assert said in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
