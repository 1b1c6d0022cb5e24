# SPDX-License-Identifier: Apache-2.0
"""A machine reached by the system's ssh as a host.

What is this machine's own and must exist there as well (a run's directory, a target's scratch) has
its mirror below one directory of the far side, under the same absolute path; see `mirror`.
Everything else bears the far side's own paths.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from iolab.base.errors import RunError, UsageError

from ..base.host import FROZEN, Completed, HungError, Offset
from ..base.options import Options
from ..base.orphans import start_ticks
from .channel import Channel, Destination, HostLost
from .clock import HostClock, measure
from .process import SshProcess
from .remote_paths import LOCAL_FILE, here, mirror_root, there, work_place, work_root

_OWN = "iolab-ssh-"
"""Begins the name of a process's directory for its connection, behind which comes the process's
number."""
_BETWEEN_TRIES = 10.0
"""Seconds before a host that could not be reached again is tried once more: each try may take as
long."""


class SshOptions(Options):
    """Where to connect to, and how; ssh's own configuration decides the rest."""

    address: Annotated[str, Field(description="HOST, USER@HOST, or a name of ~/.ssh/config")] = (
        "localhost"
    )
    port: Annotated[
        int | None, Field(ge=1, le=65535, description="port; default: ssh's own choice")
    ] = None
    identity: Annotated[Path | None, Field(description="a private key to use alone")] = None
    known_hosts: Annotated[
        Path | None, Field(description="the file that alone says which host keys are right")
    ] = None
    name: Annotated[
        str | None, Field(description="what the host is called in results; default: the address")
    ] = None


class SshHost:
    """Another machine, by keys and without questions. It needs a shell and Python 3.9 or newer;
    nothing is installed there.

    `words` is what names it on a command line. The connection is made at the first question and
    once more after each loss, which fails what was running then.
    """

    name: str = "ssh"
    words: str
    options: ClassVar[type[Options]] = SshOptions

    def __init__(self, options: SshOptions) -> None:
        if options.address.startswith("-") or not re.fullmatch(r"[^\s/]+", options.address):
            raise UsageError(f"'{options.address}' names no host", hint="write HOST or USER@HOST")
        self.name = options.name or options.address + (f":{options.port}" if options.port else "")
        self.words = _words(options)
        self._to = Destination(
            self.name, options.address, options.port, options.identity, options.known_hosts
        )
        self._directory: Path | None = None
        self._channel: Channel | None = None
        self._generation = 0
        self._failed = -_BETWEEN_TRIES
        self._failure: RunError | None = None
        self._open: list[SshProcess] = []
        self.clock = HostClock(self._measure)

    # what every host does

    def which(self, program: str) -> str | None:
        """Full path of a program there, or None."""
        path = self.call("which", program=program)[0]
        return None if path is None else str(path)

    def run(self, command: Sequence[str], *, timeout: float = 30.0) -> Completed:
        """Run a short command there to its end. A path of a file that is open here,
        `/proc/<pid>/fd/<n>`, is carried over."""
        words, carried, data = list(command), [], b""
        for place, word in enumerate(words):
            if LOCAL_FILE.fullmatch(word) and word.startswith(f"/proc/{os.getpid()}/"):
                carried, data = [place], Path(word).read_bytes()
        try:
            answer = self.call(
                "run", data, allow=timeout, command=words, timeout=timeout, carried=carried
            )[0]
        except (OSError, ValueError) as error:
            raise RunError(f"'{words[0]}' can't be started: {error}", where=self.name) from None
        if answer.get("hung"):
            raise HungError(
                f"'{words[0]}' did not end within {timeout:g} s: it waits in the kernel",
                where=self.name,
                hint=FROZEN,
            )
        if answer.get("late"):
            raise RunError(f"'{words[0]}' did not end within {timeout:g} s", where=self.name)
        return Completed(tuple(command), answer["exit_code"], answer["stdout"], answer["stderr"])

    def start(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        stdout: Path,
        stderr: Path,
        environment: Mapping[str, str] | None = None,
        folders: Sequence[str] = (),
    ) -> SshProcess:
        """Start a command in the mirror of `cwd`, with copies of the files in there that it names.

        What it leaves in there, and its words, are copied back when it ended. Where the connection
        is lost it is ended.
        """
        self.clock.refresh()
        process = SshProcess(self, self.channel(), self._generation, cwd, stdout, stderr)
        self._open = [open_process for open_process in self._open if not open_process.over] + [
            process
        ]
        process.begin(command, dict(environment or {}), folders)
        return process

    def clock_offset(self) -> Offset:
        """Measured again, over several round trips."""
        self.clock.renew()
        return self.clock.offset()

    def end_leftover(self, pid: int, started: int, mark: str, grace: float = 10.0) -> list[int]:
        """End what a killed iolab left running there."""
        return [
            int(ended)
            for ended in self.call(
                "end_leftover", allow=2 * grace, pid=pid, started=started, mark=mark, grace=grace
            )[0]
        ]

    def end_marked(self, marks: Sequence[str], grace: float = 10.0) -> list[int]:
        """End what a killed iolab left running there without a record."""
        return [
            int(ended)
            for ended in self.call("end_marked", allow=3 * grace, marks=list(marks), grace=grace)[0]
        ]

    def kernel_log(self) -> SshKernelLog | None:
        """The kernel's messages there."""
        log = SshKernelLog(self)
        return log if log.open() else None

    def read_text(self, path: str) -> str:
        """A text file's content; bytes that are no UTF-8 are replaced."""
        return (
            self.call_files("read", path=path)[1]
            .decode("utf-8", "replace")
            .replace("\r\n", "\n")
            .replace("\r", "\n")
        )

    def list_directory(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        return [str(name) for name in self.call_files("list", path=path)[0]]

    def resolve(self, path: str) -> str:
        """The absolute path without symbolic links; a relative one starts in the user's directory
        there."""
        return str(self.call_files("resolve", path=path)[0])

    def is_directory(self, path: str) -> bool:
        """Whether a directory is there."""
        return bool(self.call_files("is_directory", path=path)[0])

    def free_bytes(self, path: str) -> int:
        """Bytes free for ordinary users."""
        return int(self.call_files("free", path=path)[0])

    def make_directory(self, path: str) -> None:
        """Make a directory that must not exist yet; below the mirror, with what leads to it."""
        root = mirror_root()
        if path.startswith(root + "/"):
            self.call_files("make_own", base=root, path=path.rpartition("/")[0], passing=False)
        self.call_files("make", path=path)

    def make_scratch(self, parent: str, prefix: str) -> str:
        """Make a fresh directory under `parent`."""
        return str(self.call_files("make_scratch", parent=parent, prefix=prefix)[0])

    def remove_tree(self, path: str) -> None:
        """Remove a directory with everything in it."""
        self.call_files("remove", allow=600, path=path)
        parent = path.rpartition("/")[0]
        # Directories that are here as well were only made over there to lead to it.
        if here(parent) != parent and Path(here(parent)).is_dir():
            self.call_files("prune", base=mirror_root(), path=parent)

    # what hosts elsewhere have on top

    def scratch(self, local: Path) -> str:
        """Where the host keeps what this machine would keep at `local`."""
        return there(local)

    def connection_facts(self) -> dict[str, Any]:
        """How it is reached, and the offset of its clock from this machine's."""
        far, offset = self.channel().far, self.clock.offset()
        return {
            "connection": {
                "kind": "ssh",
                "address": self._to.address,
                "port": self._to.port,
                "node": far["node"],
                "python": far["python"],
                "user_id": far["uid"],
                "round_trip_ns": offset.round_trip_ns,
            },
            "clock_offset_ns": offset.nanoseconds,
            "clock_offset_uncertainty_ns": offset.uncertainty_ns,
        }

    def session(self, *words: str) -> list[str]:
        """Argument list of a further session over the same connection, with its own standard input
        and output."""
        return self.channel().command(*words)

    def keep_program(self, name: str, content: bytes) -> str:
        """Put a program there, checked by its hash; its path, which holds as long as the connection
        does.

        RunError where it can't be kept there, or not be run from there.
        """
        digest = hashlib.sha256(content).hexdigest()
        try:
            return str(
                self.call(
                    "keep_program", content, base=mirror_root(), name=name, digest=digest, allow=600
                )[0]
            )
        except (OSError, ValueError) as error:
            raise RunError(f"'{name}' can't be brought there: {error}", where=self.name) from None

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection that isn't known to be lost."""
        return self._channel is not None and not self._channel.lost

    def reach(self) -> None:
        """Connect again where the connection was lost, which only a request detects;
        RunError where it can't be reached."""
        if self._channel is not None and self.is_connected:
            with contextlib.suppress(HostLost):
                self._channel.call("hello")
        self.channel()

    @property
    def far(self) -> Mapping[str, Any]:
        """What the far side is: `pid` of what works for this machine there, `uid`, `node`,
        `python`, `machine` (its kind of processor)."""
        return self.channel().far

    def close(self) -> None:
        """Hang up; what was started and still runs is ended. Safe to call twice."""
        if self._channel is not None:
            if not self._channel.lost:
                with contextlib.suppress(OSError, ValueError, RunError):
                    self._channel.call("prune", base=mirror_root(), path=mirror_root())
            self._channel.close()
            self._channel = None
        self._forget_directory()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # the connection

    def channel(self) -> Channel:
        """The connection, made where there is none; RunError where it can't be."""
        if self._channel is not None and not self._channel.lost:
            return self._channel
        if self._failure is not None and time.monotonic() - self._failed < _BETWEEN_TRIES:
            raise self._failure
        is_reopened = self._channel is not None
        try:
            to = self.destination()
            if self._directory is None:
                _remove_left()
                self._directory = Path(tempfile.mkdtemp(prefix=f"{_OWN}{os.getpid()}-"))
            self._channel = Channel(to, self._directory)
        except RunError as error:
            self._failed, self._failure = time.monotonic(), error
            self._forget_directory()
            raise
        self._failure = None
        self._generation += 1
        if is_reopened:
            self._end_lost()
        return self._channel

    def call(
        self, do: str, data: bytes = b"", *, allow: float = 0.0, **values: Any
    ) -> tuple[Any, bytes]:
        """Ask the far side; RunError where it isn't there, else as `Channel.call`."""
        return self.channel().call(do, data, allow=allow, **values)

    def call_files(
        self, do: str, data: bytes = b"", *, allow: float = 0.0, **values: Any
    ) -> tuple[Any, bytes]:
        """Like `call`, a lost or unreachable host being an OSError as file methods promise."""
        try:
            return self.call(do, data, allow=allow, **values)
        except RunError as error:
            raise ConnectionResetError(104, error.message, self.name) from None

    def release(self, process: SshProcess) -> None:
        """Remove the mirrors of directories that a process used and no other one uses."""
        self._open = [open_process for open_process in self._open if open_process is not process]
        used = {
            place
            for open_process in self._open
            if not open_process.over
            for place in open_process.places
        }
        for place in process.places - used:
            self.call("remove", path=work_place(place), allow=60)
            self.call("prune", base=mirror_root(), path=work_root())

    @property
    def generation(self) -> int:
        """How many connections there were."""
        return self._generation

    def destination(self) -> Destination:
        """Where to connect to now."""
        return self._to

    def _forget_directory(self) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def _measure(self) -> Offset:
        return measure(self.channel())

    def _end_lost(self) -> None:
        """Programs of the connection that was lost: the far end ends them, unless it can't tell yet
        that the connection is lost."""
        for process in self._open:
            if process.lost or not process.over:
                with contextlib.suppress(RunError, OSError, ValueError):
                    if process.started is None:  # its start was asked for and never answered
                        self.end_marked([process.mark], grace=5.0)
                    else:
                        self.end_leftover(process.pid, process.started, process.mark, grace=5.0)
        self._open = []


def _words(options: SshOptions) -> str:
    """What a command line takes; as JSON where a name alone would not find there again."""
    if options.identity is None and options.known_hosts is None and options.name is None:
        name = options.address + (f":{options.port}" if options.port else "")
        return name if "@" in options.address else f"ssh:{name}"
    return json.dumps({"kind": "ssh", **options.model_dump(mode="json", exclude_none=True)})


def _remove_left() -> None:
    """Directories that killed processes of this user left."""
    for place in Path(tempfile.gettempdir()).glob(f"{_OWN}*-*"):
        pid = place.name.removeprefix(_OWN).partition("-")[0]
        with contextlib.suppress(OSError):
            if (
                pid.isdecimal()
                and start_ticks(int(pid)) is None
                and place.lstat().st_uid == os.getuid()
            ):
                shutil.rmtree(place, ignore_errors=True)


class SshKernelLog:
    """The far kernel's messages; after a lost connection, those that come after the next."""

    def __init__(self, host: SshHost) -> None:
        self._host, self._generation = host, -1

    def open(self) -> bool:
        """Begin now; whether they may be read."""
        is_open = bool(self._host.call("log_open")[0])
        self._generation = self._host.generation
        return is_open

    def new(self) -> list[str]:
        """Lines since the last call; none while the host is lost."""
        try:
            if self._generation != self._host.generation and not self.open():
                return []
            return [str(line) for line in self._host.call("log_new")[0]]
        except (HostLost, RunError, OSError, ValueError):
            return []

    def close(self) -> None:
        """Release it."""
        if self._generation == self._host.generation:
            with contextlib.suppress(RunError, OSError, ValueError):
                self._host.call("log_close")
        self._generation = -1
