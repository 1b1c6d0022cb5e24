# SPDX-License-Identifier: Apache-2.0
"""A host that exists in memory, for tests: hours of study pass at once, and every way of failing
can be simulated.

It is registered nowhere, so that no study can name it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals

from iolab.base.clock import FakeClock
from iolab.base.errors import RunError

from ..base.host import SAME_CLOCK, Completed, Offset
from ..base.options import Options
from ..base.orphans import well_formed


@dataclass
class FakeProgram:
    """What a program of the fake host does.

    Attributes:
        seconds: how long it runs once started; exit_code: how it ends.
        output: what `run` reads from it, by arguments.
        work: called at its end with its arguments and directory, to write what it would leave
        there. stubborn: whether it survives SIGTERM. hung: whether it waits in the kernel, which
        nothing ends. prints: its standard output after so many seconds.
        fails: the exit code by arguments, instead of `exit_code`.
    """

    seconds: float = 1.0
    exit_code: int = 0
    output: Callable[[Sequence[str]], Completed] | None = None
    work: Callable[[Sequence[str], Path], None] | None = None
    stubborn: bool = False
    hung: bool = False
    prints: Callable[[float], str] | None = None
    fails: Callable[[Sequence[str]], int] | None = None


class FakeKernelLog:
    """Lines that a test appends to the host's `messages`."""

    def __init__(self, messages: list[str]) -> None:
        self._messages, self._seen = messages, len(messages)

    def new(self) -> list[str]:
        """Those that came since the last call."""
        new_lines, self._seen = self._messages[self._seen :], len(self._messages)
        return new_lines

    def close(self) -> None:
        """Nothing."""


class FakeOptions(Options):
    """Nothing to choose."""


@dataclass
class FakeHost:
    """Programs by name, files by path, and a log of what was done to it.

    Attributes:
        files: path to content; every parent of a path counts as a directory. directories: further
        ones. free: bytes free on its one file system.
        started: (arguments, directory) of every started program, in order. ended: pids that were
        ended by force. environments: what was added to the environment of each started program, in
        the order of `started`. leftovers: (pid, start time) of processes that an earlier iolab
        left; ended ones leave it. unrecorded: pid to environment of those that it left without a
        record; ended ones leave it. messages: the kernel's log, None where it may not be read.
        offset: of its clock.
    """

    clock: FakeClock
    programs: dict[str, FakeProgram] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    directories: set[str] = field(default_factory=lambda: {"/"})
    links: dict[str, str] = field(default_factory=dict)
    free: int = 1 << 40
    name: str = "fake"
    started: list[tuple[tuple[str, ...], Path]] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    environments: list[dict[str, str]] = field(default_factory=list)
    leftovers: set[tuple[int, int]] = field(default_factory=set)
    unrecorded: dict[int, dict[str, str]] = field(default_factory=dict)
    messages: list[str] | None = field(default_factory=list)
    offset: Offset = SAME_CLOCK
    options = FakeOptions

    def which(self, program: str) -> str | None:
        """`/usr/bin/<program>` where the host has it."""
        return f"/usr/bin/{Path(program).name}" if Path(program).name in self.programs else None

    def run(self, command: Sequence[str], *, timeout: float = 30.0) -> Completed:
        """What the program's `output` says, or silence."""
        program = self._program(command)
        if program.output is None:
            return Completed(tuple(command), 0, "", "")
        return program.output(command)

    def start(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        stdout: Path,
        stderr: Path,
        environment: Mapping[str, str] | None = None,
        folders: Sequence[str] = (),
    ) -> FakeProcess:
        """Start a program that ends when the clock says so."""
        program = self._program(command)
        for folder in folders:
            (cwd / folder).mkdir(exist_ok=True)
        stdout.write_text("", "utf-8")
        stderr.write_text("", "utf-8")
        self.started.append((tuple(command), cwd))
        self.environments.append(dict(environment or {}))
        return FakeProcess(self, program, tuple(command), cwd, stdout, pid=1000 + len(self.started))

    def clock_offset(self) -> Offset:
        """What the test set."""
        return self.offset

    def end_leftover(self, pid: int, started: int, mark: str, grace: float = 10.0) -> list[int]:
        """End the one of that pid and start time."""
        if (pid, started) not in self.leftovers:
            return []
        self.leftovers.remove((pid, started))
        self.ended.append(pid)
        return [pid]

    def end_marked(self, marks: Sequence[str], grace: float = 10.0) -> list[int]:
        """End the processes with all marks in their environment."""
        expected_words = well_formed(marks)
        pids = [
            pid
            for pid, words in self.unrecorded.items()
            if expected_words <= {f"{name}={value}" for name, value in words.items()}
        ]
        for pid in pids:
            del self.unrecorded[pid]
        self.ended += pids
        return pids

    def kernel_log(self) -> FakeKernelLog | None:
        """What tests append to `messages`."""
        return None if self.messages is None else FakeKernelLog(self.messages)

    def read_text(self, path: str) -> str:
        """A file's content."""
        path = self.resolve(path)
        if path not in self.files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.files[path]

    def list_directory(self, path: str) -> list[str]:
        """Names below a directory."""
        path = self.resolve(path)
        if not self.is_directory(path):
            raise FileNotFoundError(2, "No such file or directory", path)
        prefix = path.rstrip("/") + "/"
        everything = [*self.files, *self.directories, *self.links]
        return sorted(
            {
                name[len(prefix) :].split("/")[0]
                for name in everything
                if name.startswith(prefix) and name != prefix
            }
        )

    def resolve(self, path: str) -> str:
        """The path with symbolic links followed, longest link first."""
        for link in sorted(self.links, key=len, reverse=True):
            if path == link or path.startswith(link + "/"):
                return self.links[link] + path[len(link) :]
        return path

    def is_directory(self, path: str) -> bool:
        """Whether it was made, or holds a file."""
        path = self.resolve(path)
        below = path.rstrip("/") + "/"
        return path in self.directories or any(
            name.startswith(below) for name in (*self.files, *self.directories)
        )

    def free_bytes(self, path: str) -> int:
        """What the test set."""
        return self.free

    def make_directory(self, path: str) -> None:
        """Note a directory."""
        if self.is_directory(path):
            raise FileExistsError(17, "File exists", path)
        self.directories.add(path)

    def make_scratch(self, parent: str, prefix: str) -> str:
        """Note a directory of a new name."""
        number = 1
        while self.is_directory(f"{parent}/{prefix}{number:04d}"):
            number += 1
        self.make_directory(f"{parent}/{prefix}{number:04d}")
        return f"{parent}/{prefix}{number:04d}"

    def remove_tree(self, path: str) -> None:
        """Forget a directory and what is below it."""
        self.removed.append(path)
        below = path.rstrip("/") + "/"
        self.directories = {
            name for name in self.directories if name != path and not name.startswith(below)
        }
        self.files = {name: text for name, text in self.files.items() if not name.startswith(below)}

    def _program(self, command: Sequence[str]) -> FakeProgram:
        program = self.programs.get(Path(command[0]).name)
        if program is None:
            raise RunError(
                f"'{command[0]}' can't be started: No such file or directory", where=self.name
            )
        return program


class FakeProcess:
    """A program that runs while the fake clock does."""

    def __init__(
        self,
        host: FakeHost,
        program: FakeProgram,
        command: tuple[str, ...],
        cwd: Path,
        stdout: Path,
        pid: int,
    ) -> None:
        self._host, self._program, self._command, self._cwd, self._stdout = (
            host,
            program,
            command,
            cwd,
            stdout,
        )
        self._begun = host.clock.monotonic()
        self._due = self._begun + program.seconds
        self._exit_code: int | None = None
        self.pid = pid
        self.started: int | None = pid

    def wait(self, seconds: float) -> int | None:
        """Let time pass up to the program's end."""
        if self._exit_code is None:
            remaining = self._due - self._host.clock.monotonic()
            self._host.clock.sleep(min(max(seconds, 0.0), max(remaining, 0.0)))
            self._print()
            if self._host.clock.monotonic() >= self._due:
                if self._program.work is not None:
                    self._program.work(self._command, self._cwd)
                self._exit_code = (
                    self._program.exit_code
                    if self._program.fails is None
                    else self._program.fails(self._command)
                )
        return self._exit_code

    def _print(self) -> None:
        if self._program.prints is not None:
            passed = min(self._host.clock.monotonic() - self._begun, self._program.seconds)
            self._stdout.write_text(self._program.prints(passed), "utf-8")

    def end(
        self, grace: float = 5.0, first: Signals = Signals.SIGTERM, patience: float = 30.0
    ) -> int | None:
        """End it: at once, or after the grace where it is stubborn."""
        if self._exit_code is None:
            self._print()
            self._host.ended.append(self.pid)
            if self._program.hung:
                self._host.clock.sleep(grace + patience)
                return None
            if self._program.stubborn:
                self._host.clock.sleep(grace)
            self._exit_code = 137 if self._program.stubborn else 128
        return self._exit_code
