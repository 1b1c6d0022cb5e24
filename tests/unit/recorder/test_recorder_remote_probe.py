# SPDX-License-Identifier: Apache-2.0
"""The probe on another host: what is checked before, what a shell's noise and a lost host do, and
that nobody waits for either."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from iolab._core import FrameReader
from iolab.base.clock import FakeClock
from iolab.base.errors import RunError
from iolab.hosts.base.host import Completed
from iolab.hosts.kinds.fake import FakeHost
from iolab.recordings.record.probe.launch import Probe
from iolab.recordings.record.probe.remote import FarLauncher, FarProbe, check_far
from support.waiting import PATIENCE, until

FRAMES = Path(__file__).parents[2] / "support/frames.py"


@dataclass
class FarFake(FakeHost):
    """A host elsewhere in memory: its sessions are processes of this machine. `down`: why it can't
    be reached."""

    down: str = ""
    noise: str = ""
    far: dict[str, Any] = field(
        default_factory=lambda: {"pid": 7, "uid": 0, "machine": os.uname().machine}
    )
    generation: int = 1
    words: str = "ssh:fake"
    kept: list[bytes] = field(default_factory=list)
    blocked: threading.Event | None = None
    unblocked: int = 0
    closed: bool = False
    says: str = '{"sources": {"block": {"available": true, "words": []}}}'

    def __post_init__(self) -> None:
        self.measured = 0
        self.program = ""

    @property
    def is_connected(self) -> bool:
        return not self.down

    def reach(self) -> None:
        if self.blocked is not None:
            self.blocked.wait(PATIENCE)
            self.unblocked += 1
        if self.down:
            raise RunError(self.down, where=self.name)

    def keep_program(self, name: str, content: bytes) -> str:
        self.kept.append(content)
        return self.program

    def renew(self) -> None:
        self.measured += 1

    def connection_facts(self) -> dict[str, Any]:
        return {
            "connection": {"kind": "fake"},
            "clock_offset_ns": 5 * self.measured,
            "clock_offset_uncertainty_ns": 1,
        }

    def session(self, *words: str) -> list[str]:
        return ["sh", "-c", f'printf \'{self.noise}\'; exec "$0" "$@"', *words]

    def run(self, command: Any, *, timeout: float = 30.0) -> Completed:
        return Completed(tuple(command), 0, self.says, "")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def host(tmp_path: Path) -> FarFake:
    made = FarFake(FakeClock())
    made.clock = made  # type: ignore[assignment]  # what the launcher asks of it is `renew`
    path = tmp_path / "probe"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {FRAMES} \'{{"rate": 100}}\' "$@"\n')
    path.chmod(0o755)
    made.program = str(path)
    return made


@pytest.fixture
def launcher(host: FarFake) -> Iterator[FarLauncher]:
    made = FarLauncher(host, Path(host.program), ["--source", "block"])  # type: ignore[arg-type]
    yield made
    made.close()
    assert host.closed


def read_until(probe: Probe, kind: str, reader: FrameReader | None = None) -> list[str]:
    reader = reader or FrameReader()
    found: list[str] = []

    def came() -> bool:
        data = probe.read()
        assert data != b"", probe.words()
        found.extend(frame["kind"] for frame in reader.feed(data or b""))
        return kind in found

    until(came, kind)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["", "welcome\\nto this machine\\n", "ioLb half a frame"])
def test_what_a_shell_prints_is_no_frame(noise: str, host: FarFake, launcher: FarLauncher) -> None:
    host.noise = noise
    probe, reader = launcher.launch(), FrameReader()
    assert read_until(probe, "tick", reader)[0] == "hello"
    probe.ask_to_stop()
    assert read_until(probe, "end", reader)[-1] == "end"
    until(lambda: probe.exit_code() == 0, "its end")
    assert probe.away() == ""
    probe.let_go()


def test_it_is_brought_there_once_a_connection(host: FarFake, launcher: FarLauncher) -> None:
    for generation in (1, 1, 2):
        host.generation = generation
        probe = launcher.launch()
        read_until(probe, "hello")
        probe.let_go()
    assert host.kept == [Path(host.program).read_bytes()] * 2
    assert launcher.connection == {
        "host": "fake",
        "connection": {"kind": "fake"},
        "clock_offset_ns": 10,
        "clock_offset_uncertainty_ns": 1,
    }
    assert launcher.command()[1:] == ["--source", "block", "--exclude-pid", "7", "--lease-s", "60"]


def test_a_host_out_of_reach_is_told_by_the_probe_and_a_connection_lost_too(
    host: FarFake, launcher: FarLauncher
) -> None:
    host.down = "no route"
    probe = launcher.launch()
    until(lambda: probe.read() == b"", "its end")
    assert probe.away() == "fake: no route"
    host.down = ""
    host.session = lambda *words: ["sh", "-c", "exit 255"]  # type: ignore[method-assign]
    lost = launcher.launch()
    until(lambda: lost.read() == b"" and lost.exit_code() == 255, "its end")
    assert lost.away() == "the connection to fake is lost"
    lost.let_go()


def test_a_probe_killed_there_died_and_the_host_is_not_away(
    host: FarFake, launcher: FarLauncher
) -> None:
    Path(host.program).write_text("#!/bin/sh\nkill -9 $$\n")
    probe = launcher.launch()
    until(lambda: probe.read() == b"" and probe.exit_code() is not None, "its end")
    assert (probe.exit_code(), probe.away()) == (137, "")
    probe.let_go()


def test_nobody_waits_for_a_host_that_does_not_answer(host: FarFake, launcher: FarLauncher) -> None:
    host.blocked = threading.Event()
    probe = launcher.launch()
    assert probe.read() is None
    assert probe.files() == []
    assert probe.words() == []
    probe.let_go()
    again = launcher.launch()
    again.ask_to_stop()
    assert again.read() == b""
    assert host.unblocked == 0, "all that was done before it answered"
    host.blocked.set()
    until(lambda: launcher._tasks.empty(), "the host")
    assert probe.exit_code() is None


def test_others_have_sessions_only_while_the_host_is_there(
    host: FarFake, launcher: FarLauncher
) -> None:
    assert launcher.session("ls")[-1] == "ls"
    host.down = "no route"
    with pytest.raises(OSError, match="the connection is lost"):
        launcher.session("ls")
    host.down = ""

    def lost(*words: str) -> list[str]:
        raise RunError("lost just now")

    host.session = lost  # type: ignore[method-assign]
    with pytest.raises(OSError, match="the connection is lost"):
        launcher.session("ls")


def test_what_goes_wrong_before_is_raised(host: FarFake, launcher: FarLauncher) -> None:
    def look() -> None:
        raise RunError("nothing to look at")

    with pytest.raises(RunError, match="nothing to look at"):
        launcher.reach(look, ["block"])
    host.says = '{"sources": {"block": {"available": false, "words": ["no tracefs is mounted"]}}}'
    with pytest.raises(
        RunError, match=r"fake: can't be recorded there: block: no tracefs is mounted"
    ):
        launcher.reach(lambda: None, ["block"])
    host.down = "no route"
    with pytest.raises(RunError, match="no route"):
        launcher.reach(lambda: None, ["block"])


def test_root_and_the_right_processor_are_needed_there(
    host: FarFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_far(host, ["block"])  # type: ignore[arg-type]
    host.far["uid"] = 1000
    with pytest.raises(RunError, match=r"recording block needs root there.*--host root@"):
        check_far(host, ["block", "counters"])  # type: ignore[arg-type]
    check_far(host, ["counters"])  # type: ignore[arg-type]
    host.far["machine"] = "pdp11"
    with pytest.raises(RunError, match="its processor is pdp11"):
        check_far(host, ["counters"])  # type: ignore[arg-type]
    monkeypatch.setenv("IOLAB_PROBE", "/of/pdp11")
    check_far(host, ["counters"])  # type: ignore[arg-type]


def test_a_probe_that_is_asked_to_stop_before_it_began_never_begins() -> None:
    probe = FarProbe("x")
    probe.ask_to_stop()
    assert probe.dropped
    assert probe.read() == b""
    assert "ended before it began" in probe.away()
