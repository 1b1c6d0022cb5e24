# SPDX-License-Identifier: Apache-2.0
"""What a host is: the one way in which the runner touches a machine, so that a fake or a remote one
can replace it.

`Offset` compares the clock of a host with that of this machine; `Place` is where a load goes: what a
target offers and a workload takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import Literal, Protocol

from iolab.base.errors import RunError


@dataclass(frozen=True)
class Offset:
    """The host's clock minus this machine's, correct within the uncertainty.

    Attributes:
        nanoseconds: by the quickest of several round trips. uncertainty_ns: half that round trip.
        measured_at: monotonic second of the measurement.
    """

    nanoseconds: int
    uncertainty_ns: int
    round_trip_ns: int
    measured_at: float


SAME_CLOCK = Offset(0, 0, 0, 0.0)
"""Of this machine itself."""


@dataclass(frozen=True)
class Completed:
    """A short command that ended: its exit code (128 + n after signal n) and what it wrote."""

    command: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str


class Process(Protocol):
    """A program that a host started, in a process group of its own.

    Attributes:
        pid: process id, which is also the id of its group.
        started: kernel start time in clock ticks since boot (proc(5), field 22 of stat), or None
        where unknown. The pair
            of both names the process for good: a recycled pid has another start time.
    """

    pid: int
    started: int | None

    def wait(self, seconds: float) -> int | None:
        """Let at most `seconds` pass; the exit code (128 + n after signal n) once it ended, None
        while it runs."""

    def end(
        self, grace: float = 5.0, first: Signals = Signals.SIGTERM, patience: float = 30.0
    ) -> int | None:
        """End the whole group, by `first` and by SIGKILL after `grace` seconds; returns the exit
        code.

        None where something of it is there `patience` seconds after SIGKILL: it waits in the
        kernel, and ends when that lets it.
        """


FROZEN = "see whether the file system is frozen (fsfreeze --unfreeze) or its device is suspended (dmsetup resume)"
"""The hint of a `HungError`."""


class HungError(RunError):
    """Something waits in the kernel and can't be ended: whatever touches the same place would wait
    as well."""


class KernelLog(Protocol):
    """The kernel's messages from now on."""

    def new(self) -> list[str]:
        """Lines that came since the last call (or since it was opened), as dmesg writes them: `warn
        [ 4033.860585] text`."""

    def close(self) -> None:
        """Release it. Safe to call twice."""


class Host(Protocol):
    """A machine that commands run on. File methods raise OSError as the system calls do, paths are
    the host's own."""

    name: str

    def which(self, program: str) -> str | None:
        """Full path of a program, or None where the host doesn't have it."""

    def run(self, command: Sequence[str], *, timeout: float = 30.0) -> Completed:
        """Run a short command to its end; RunError where it can't be started or outlives `timeout`
        seconds."""

    def start(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        stdout: Path,
        stderr: Path,
        environment: Mapping[str, str] | None = None,
        folders: Sequence[str] = (),
    ) -> Process:
        """Start a command, its words going to two files; RunError where it can't be started.

        `environment` is added to the host's own; `folders`, names below `cwd`, are made beforehand
        where they aren't there. The process gets SIGTERM when whoever started it dies.
        """

    def clock_offset(self) -> Offset:
        """Measure the host's clock against this machine's. RunError if the host is lost."""

    def end_leftover(self, pid: int, started: int, mark: str, grace: float = 10.0) -> list[int]:
        """End the remaining processes of a process group that a killed iolab had started in this
        boot; the processes that were ended.

        The leader is known by its pid and start time (see `Process.started`). Others of its group
        count only where they carry `mark`, a `NAME=value` that stood in the `environment` they were
        started with. Strangers are never touched.
        """

    def end_marked(self, marks: Sequence[str], grace: float = 10.0) -> list[int]:
        """End what a killed iolab had started but couldn't put on record, and what came of it; the
        processes that were ended.

        These are all that carry every one of `marks`, each a `NAME=value` that stood in the
        `environment` they were started with: no others may have been started with the same.
        ValueError where none is given, or one is no `NAME=value`.
        """

    def kernel_log(self) -> KernelLog | None:
        """The kernel's messages from now on; None where they may not be read."""

    def read_text(self, path: str) -> str:
        """A text file's content."""

    def list_directory(self, path: str) -> list[str]:
        """Names in a directory, sorted."""

    def resolve(self, path: str) -> str:
        """The absolute path without symbolic links."""

    def is_directory(self, path: str) -> bool:
        """Whether a directory is there."""

    def free_bytes(self, path: str) -> int:
        """Bytes that an ordinary user may still write to the file system that holds `path`."""

    def make_directory(self, path: str) -> None:
        """Make a directory that must not exist yet; parents must."""

    def make_scratch(self, parent: str, prefix: str) -> str:
        """Make a fresh directory under `parent` with a unique name; returns its path."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory with everything in it; nothing happens where it does not exist."""


def text_or_none(host: Host, path: str) -> str | None:
    """A file's stripped content, or None where it can't be read (another kernel, no right, not
    there)."""
    try:
        return host.read_text(path).strip()
    except (OSError, ValueError):
        return None


def need(host: Host, program: str, package: str) -> str:
    """Path of a program that a study needs; RunError with the way to get it."""
    path = host.which(program)
    if path is None:
        raise RunError(
            f"{program} is not installed on host '{host.name}'",
            hint=f"install it: apt install {package} (Debian, Ubuntu), dnf install {package} (Fedora)",
        )
    return path


@dataclass(frozen=True)
class Place:
    """Where a load goes: a fresh, empty directory, or block devices.

    Attributes:
        path: the directory; or the devices' nodes joined by `:`, as fio's `filename` takes them
        (none has a colon itself).
    """

    path: str
    kind: Literal["directory", "device"] = "directory"
