# SPDX-License-Identifier: Apache-2.0
"""What every host must do, the one in memory as well as the real one: else tests with the fake
would prove nothing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from iolab.base import registry
from iolab.base.clock import Clock, FakeClock, SystemClock
from iolab.base.errors import RunError
from iolab.hosts.base.host import Completed, Host, need, text_or_none
from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from iolab.hosts.kinds.local import LocalHost
from iolab.hosts.kinds.rig import RigHost, RigOptions
from iolab.hosts.ssh.host import SshHost
from support.narrow import present
from support.waiting import PATIENCE, until

PYTHON = "python3"
RIG = "IOLAB_TEST_RIG"
"""Variable that names a running rig to be held to the same; `make rig-test` sets it."""


def _fake() -> tuple[Host, Clock]:
    """A fake whose programs do what the commands of these tests do for real."""
    clock = FakeClock()

    def answer(command: Sequence[str]) -> Completed:
        code = 3 if "exit(3)" in command[-1] else 0
        return Completed(tuple(command), code, "out\n", "err\n")

    programs = {
        PYTHON: FakeProgram(seconds=0.2, output=answer),
        Path(sys.executable).name: FakeProgram(seconds=0.2, output=answer),
        "sleeper": FakeProgram(seconds=1000.0),
    }
    return FakeHost(clock, programs), clock


@pytest.fixture(
    params=[
        "fake",
        *(name for name in registry.names("host") if name != "rig" or RIG in os.environ),
    ]
)
def hosted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Host, Clock]]:
    if request.param == "fake":
        host, clock = _fake()
        assert isinstance(host, FakeHost)
        host.directories.update(str(parent) for parent in [tmp_path, *tmp_path.parents])
        yield host, clock
    elif request.param == "ssh":
        with SshHost(request.getfixturevalue("far_side")) as far:
            yield far, SystemClock()
    elif request.param == "rig":
        with RigHost(RigOptions(name=os.environ[RIG])) as machine:
            yield machine, SystemClock()
    else:
        plugin = registry.load("host", request.param)
        yield plugin(plugin.options()), SystemClock()


@pytest.fixture
def host(hosted: tuple[Host, Clock]) -> Host:
    return hosted[0]


@pytest.fixture
def place(host: Host, tmp_path: Path) -> Iterator[str]:
    """An empty directory of the host."""
    if isinstance(host, RigHost):
        path = host.make_scratch("/var/tmp", "iolab-test-")
        yield path
        host.remove_tree(path)
    else:
        yield str(tmp_path)


def python_of(host: Host) -> str:
    return "python3" if isinstance(host, RigHost) else sys.executable


def make(host: Host, text: str) -> None:
    """Let the host's shell make files."""
    done = host.run(["sh", "-ec", text])
    assert done.exit_code == 0, done.stderr


def sleeper(host: Host) -> list[str]:
    return (
        ["sleeper"]
        if isinstance(host, FakeHost)
        else [python_of(host), "-c", "import time; time.sleep(1000)"]
    )


def test_it_has_a_name_options_and_words_about_itself(host: Host) -> None:
    assert host.name
    assert type(host).__doc__
    assert type(host).options.model_fields is not None  # type: ignore[attr-defined]


def test_programs_are_found_or_not(host: Host) -> None:
    assert (host.which(PYTHON) or "").endswith(PYTHON)
    assert host.which("no-such-program-anywhere") is None
    with pytest.raises(RunError, match="apt install nothing"):
        need(host, "no-such-program-anywhere", "nothing")


def test_a_short_command_yields_words_and_exit_code(host: Host) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr)"
    done = host.run([python_of(host), "-c", code])
    assert (done.exit_code, done.stdout, done.stderr) == (0, "out\n", "err\n")
    assert host.run([python_of(host), "-c", code + "; exit(3)"]).exit_code == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        lambda host, path: host.run(["no-such-program-anywhere"]),
        lambda host, path: host.start(
            ["no-such-program-anywhere"], cwd=path, stdout=path / "o", stderr=path / "e"
        ),
    ],
)
def test_what_cannot_start_is_a_run_error(
    host: Host, tmp_path: Path, how: Callable[[Host, Path], object]
) -> None:
    with pytest.raises(RunError, match="can't be started"):
        how(host, tmp_path)


@pytest.mark.slow
def test_waiting_ends_with_the_program_or_the_time(
    hosted: tuple[Host, Clock], tmp_path: Path
) -> None:
    host, clock = hosted
    process = host.start(sleeper(host), cwd=tmp_path, stdout=tmp_path / "o", stderr=tmp_path / "e")
    try:
        begin = clock.monotonic()
        assert process.wait(0.1) is None
        assert 0.09 <= clock.monotonic() - begin < PATIENCE
        assert process.pid > 0
    finally:
        code = process.end(grace=5)
    assert present(code) >= 128
    assert process.wait(0) == code
    assert process.end() == code  # ending the ended changes nothing


def test_a_program_that_ends_tells_its_code_at_once(
    hosted: tuple[Host, Clock], tmp_path: Path
) -> None:
    host, clock = hosted
    process = host.start(
        [python_of(host), "-c", "pass"], cwd=tmp_path, stdout=tmp_path / "o", stderr=tmp_path / "e"
    )
    begin = clock.monotonic()
    assert process.wait(60) == 0
    assert clock.monotonic() - begin < 60
    assert process.wait(0) == 0
    assert (tmp_path / "o").exists()
    assert (tmp_path / "e").exists()


def test_files_are_read_listed_and_missed(host: Host, place: str) -> None:
    if isinstance(host, FakeHost):
        host.files[f"{place}/d/text"] = "a\n"
    else:
        make(host, f"mkdir {place}/d; echo a > {place}/d/text")
    assert host.read_text(f"{place}/d/text") == "a\n"
    assert text_or_none(host, f"{place}/d/text") == "a"
    assert host.list_directory(f"{place}/d") == ["text"]
    assert host.is_directory(f"{place}/d")
    assert not host.is_directory(f"{place}/d/text")
    assert not host.is_directory(f"{place}/none")
    assert text_or_none(host, f"{place}/none") is None
    for miss in (host.read_text, host.list_directory):
        with pytest.raises(FileNotFoundError):
            miss(f"{place}/none")


def test_directories_are_made_once_and_removed_whole(host: Host, place: str) -> None:
    host.make_directory(f"{place}/made")
    with pytest.raises(FileExistsError):
        host.make_directory(f"{place}/made")
    scratch = [host.make_scratch(f"{place}/made", "iolab-") for _ in range(3)]
    assert len(set(scratch)) == 3
    assert all(path.startswith(f"{place}/made/iolab-") for path in scratch)
    assert host.free_bytes(f"{place}/made") > 0
    host.remove_tree(f"{place}/made")
    assert not host.is_directory(scratch[0])
    assert not host.is_directory(f"{place}/made")
    host.remove_tree(f"{place}/made")  # gone already: nothing happens


@pytest.mark.slow
def test_links_are_followed(host: Host, place: str) -> None:
    if isinstance(host, FakeHost):
        host.links[f"{place}/link"] = f"{place}/real"
        host.files[f"{place}/real/x"] = ""
    else:
        make(host, f"mkdir {place}/real; : > {place}/real/x; ln -s {place}/real {place}/link")
    assert host.resolve(f"{place}/link/x") == f"{place}/real/x"
    assert host.list_directory(f"{place}/link") == ["x"]


def running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def test_the_environment_of_a_program_is_the_hosts_and_what_is_added(
    host: Host, tmp_path: Path
) -> None:
    code = "import os; print(os.environ['ADDED'], 'PATH' in os.environ)"
    process = host.start(
        [python_of(host), "-c", code],
        cwd=tmp_path,
        stdout=tmp_path / "o",
        stderr=tmp_path / "e",
        environment={"ADDED": "a b=c"},
    )
    assert process.wait(PATIENCE) == 0
    if isinstance(host, FakeHost):
        assert host.environments == [{"ADDED": "a b=c"}]
    else:
        assert (tmp_path / "o").read_text() == "a b=c True\n"


def test_a_leftover_is_ended_by_its_id_and_start_time_alone(host: Host, tmp_path: Path) -> None:
    process = host.start(
        sleeper(host),
        cwd=tmp_path,
        stdout=tmp_path / "o",
        stderr=tmp_path / "e",
        environment={"MARK": "1"},
    )
    assert process.started is not None
    if isinstance(host, FakeHost):
        host.leftovers.add((process.pid, process.started))
    try:
        assert (
            host.end_leftover(process.pid, process.started + 1, "MARK=1") == []
        )  # a pid that was used again
        assert host.end_leftover(process.pid, process.started, "MARK=1") == [process.pid]
        assert host.end_leftover(process.pid, process.started, "MARK=1") == []
        assert isinstance(host, FakeHost) or process.wait(0) == 128 + 15
    finally:
        process.end()


@pytest.mark.parametrize("marked", [True, False])
def test_members_of_a_leftover_group_go_where_they_carry_its_mark(
    tmp_path: Path, marked: bool
) -> None:
    host = LocalHost()
    code = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); child = os.fork(); "
        "child and open('child', 'w').write(str(child)); time.sleep(1000)"
    )
    process = host.start(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        stdout=tmp_path / "o",
        stderr=tmp_path / "e",
        environment={"MARK": "mine"},
    )
    assert process.started is not None
    try:
        child = int(
            until(
                lambda: (tmp_path / "child").read_text() if (tmp_path / "child").exists() else "",
                "its child",
            )
        )
        os.kill(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
        ended = host.end_leftover(
            process.pid, process.started, "MARK=mine" if marked else "MARK=other", grace=0.2
        )
        assert ended == ([child] if marked else [])
        assert running(child) is not marked
        if not marked:
            os.kill(child, signal.SIGKILL)
    finally:
        process.end()


def test_a_leftover_without_a_record_is_ended_by_all_of_its_marks(
    host: Host, tmp_path: Path
) -> None:
    """Beside it run another start of the same results, and the same start of others: of a copy, or
    of a second study."""
    marks = [
        {"RESULTS": "/a b", "START": "x.1"},
        {"RESULTS": "/a b", "START": "x.2"},
        {"RESULTS": "/a", "START": "x.1"},
    ]
    processes = [
        host.start(
            sleeper(host),
            cwd=tmp_path,
            stdout=tmp_path / f"o{place}",
            stderr=tmp_path / f"e{place}",
            environment=words,
        )
        for place, words in enumerate(marks)
    ]
    if isinstance(host, FakeHost):
        host.unrecorded.update(
            {process.pid: words for process, words in zip(processes, marks, strict=True)}
        )
    try:
        assert host.end_marked(("RESULTS=/a b", "START=x.3")) == []
        assert host.end_marked(("RESULTS=/a b", "START=x.1")) == [processes[0].pid]
        assert host.end_marked(("RESULTS=/a b", "START=x.1")) == []
        assert isinstance(host, FakeHost) or processes[0].wait(0) == 128 + 15
        assert [process.wait(0) for process in processes[1:]] == [None, None]
    finally:
        for process in processes:
            process.end()


@pytest.mark.slow
@pytest.mark.parametrize("marks", [(), ("",), ("RESULTS",), ("RESULTS=",), ("RESULTS=/a", "=x")])
def test_marks_that_any_process_may_carry_are_refused(host: Host, marks: Sequence[str]) -> None:
    with pytest.raises(ValueError, match="can't be identified by"):
        host.end_marked(marks)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["local", "ssh"])
def test_what_came_of_a_leftover_without_a_record_goes_with_it(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    """The leader is gone, its child leads a session of its own, hears no SIGTERM and forks once
    more when it gets one."""
    host: Host = LocalHost() if kind == "local" else SshHost(request.getfixturevalue("far_side"))
    child, late = tmp_path / "child", tmp_path / "late"
    code = f"""
import os, signal, time
def forks(number, frame):
    if os.fork() == 0:
        open({str(late)!r}, "w").write(str(os.getpid()))
signal.signal(signal.SIGTERM, forks)
if os.fork() == 0:
    os.setsid()
    open({str(child)!r}, "w").write(str(os.getpid()))
    while True:
        time.sleep(1000)
"""
    process = host.start(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        stdout=tmp_path / "o",
        stderr=tmp_path / "e",
        environment={"MARK": "mine"},
    )
    try:
        forked = int(until(lambda: child.read_text() if child.exists() else "", "its child"))
        assert process.wait(PATIENCE) == 0
        assert host.end_marked(["MARK=other"]) == []
        ended = host.end_marked(["MARK=mine"], grace=2)
        assert forked in ended
        assert int(late.read_text()) in ended
        assert not any(running(pid) for pid in ended)
        assert host.end_marked(["MARK=mine"]) == []
    finally:
        if isinstance(host, SshHost):
            host.close()


def test_the_kernels_log_begins_now_and_closes(host: Host) -> None:
    log = host.kernel_log()
    if log is None:
        pytest.skip("this user may not read the kernel's log")
    assert all(isinstance(line, str) for line in log.new())
    if isinstance(host, FakeHost):
        assert host.messages is not None
        host.messages.append("warn  [    1.000000] text")
        assert log.new() == ["warn  [    1.000000] text"]
    elif host.run(["sh", "-c", "test -w /dev/kmsg"]).exit_code == 0:
        word = f"iolab test {os.getpid()}"
        make(host, f"echo '<5>{word}' > /dev/kmsg")
        assert sum(line.startswith("notice[") and line.endswith(word) for line in log.new()) == 1
        assert not any(word in line for line in log.new())
    log.close()
    log.close()


def test_the_local_host_is_registered() -> None:
    assert registry.load("host", "local") is LocalHost
