# SPDX-License-Identifier: Apache-2.0
"""A program on the far side, and the files that go there with it and come back from it."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from signal import Signals
from typing import Any, Protocol

from iolab.base.errors import RunError

from .channel import Channel, HostLost
from .remote_paths import mirror_root, work_place

RUN_DIRECTORY = "IOLAB_RUN_DIR"
"""Variable with the place where a study's commands leave files: its value is a directory of this
machine, so it has a mirror too."""
_MARK = "IOLAB_CONNECTION"
_CHUNK = 1 << 20
_LARGEST_SENT = 64 << 20
_WORD = re.compile(r"[^\s'\"`;|&<>()$=,]+")


class Owner(Protocol):
    """The host that started a process."""

    @property
    def name(self) -> str:
        """What the host is called in results."""

    def release(self, process: SshProcess) -> None:
        """Remove the mirrors of directories that the process used and no other one uses."""


class SshProcess:
    """Runs in the mirror of a directory. `started` and `pid` are the far side's.

    Attributes:
        over: whether it ended, or is lost; lost: whether its connection went before it was known to
        have ended. mark: `NAME=value` that is in its environment and in no other but its
        children's.
    """

    def __init__(
        self, host: Owner, channel: Channel, generation: int, cwd: Path, stdout: Path, stderr: Path
    ) -> None:
        self._host, self._channel, self._generation = host, channel, generation
        self._cwd, self._words = cwd.absolute(), (stdout.absolute(), stderr.absolute())
        self._directories: list[Path] = []
        self._known: dict[tuple[Path, str], tuple[int, int]] = {}
        self._exit_code: int | None = None
        self._token = secrets.token_hex(8)
        self.mark = f"{_MARK}={self._token}"
        self.over = self.lost = False
        self.pid = 0
        self.started: int | None = None

    def begin(
        self, command: Sequence[str], environment: dict[str, str], folders: Sequence[str] = ()
    ) -> None:
        """Send what it needs and start it; RunError where that can't be done."""
        words = {**environment, _MARK: self._token}
        try:
            self._mirror(self._cwd)
            for folder in folders:
                (self._cwd / folder).mkdir(exist_ok=True)
                self._channel.call(
                    "make_own",
                    base=mirror_root(),
                    path=f"{work_place(self._cwd)}/{folder}",
                    passing=False,
                )
            run_directory = environment.get(RUN_DIRECTORY)
            if run_directory and Path(run_directory).is_dir():
                self._mirror(Path(run_directory))
                words[RUN_DIRECTORY] = work_place(Path(run_directory))
            for file in self._words:
                self._make(file.parent)
                file.write_bytes(b"")
            self._send(command)
            reply = self._channel.call(
                "start",
                command=list(command),
                cwd=work_place(self._cwd),
                stdout=self._far(self._words[0]),
                stderr=self._far(self._words[1]),
                environment=words,
            )[0]
        except HostLost:
            self.over = self.lost = True
            raise
        except (OSError, ValueError) as error:
            self.over = True
            self._leave()
            raise RunError(
                f"'{command[0]}' can't be started: {error}", where=self._host.name
            ) from None
        self.pid, self.started = reply["pid"], reply["started"]

    def wait(self, seconds: float) -> int | None:
        """Let at most `seconds` pass; the exit code once it ended and what it left has come back.
        RunError where it is lost."""
        if self._exit_code is None:
            code = self._ask("wait", max(seconds, 0.0), seconds=max(seconds, 0.0))
            if code is not None:
                self._finish(code)
        return self._exit_code

    def end(
        self, grace: float = 5.0, first: Signals = Signals.SIGTERM, patience: float = 30.0
    ) -> int | None:
        """End the whole group; None where something of it waits in the kernel. RunError where the
        host is lost; its programs are ended there, then."""
        code = self._ask(
            "end", 2 * grace + patience, grace=grace, first=int(first), patience=patience
        )
        if code is not None and self._exit_code is None:
            self._finish(code)
        return code

    def _ask(self, do: str, most: float, **values: Any) -> int | None:
        if self._exit_code is not None and do == "end" and self._channel.lost:
            return self._exit_code
        try:
            answer = self._channel.call(do, allow=most, pid=self.pid, **values)[0]
        except HostLost:
            self.over = self.lost = True
            raise
        except (OSError, ValueError) as error:
            raise RunError(
                f"process {self.pid} can't be followed: {error}", where=self._host.name
            ) from None
        return None if answer is None else int(answer)

    def _finish(self, code: int) -> None:
        """Bring back what it left, then count it as ended."""
        try:
            for directory in self._directories:
                for name, size, modified in self._channel.call(
                    "survey", path=work_place(directory)
                )[0]:
                    if self._known.get((directory, name)) != (size, modified):
                        self._bring(
                            f"{work_place(directory)}/{name}", inside(directory, name), size
                        )
            for file in self._words:
                if file.parent not in self._directories:
                    self._bring(self._far(file), file, None)
        except HostLost:
            self.over = self.lost = True
            raise
        except (OSError, ValueError) as error:
            raise RunError(
                f"what a program left can't be brought back: {error}", where=self._host.name
            ) from None
        finally:
            self.over = True
        self._exit_code = code
        self._leave()

    def _bring(self, path: str, place: Path, size: int | None) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(
            place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666
        )
        with os.fdopen(file, "wb") as sink:
            offset = 0
            while size is None or offset < size:
                data = self._channel.call("get", path=path, offset=offset, size=_CHUNK)[1]
                if not data:
                    break
                sink.write(data)
                offset += len(data)

    def _mirror(self, directory: Path) -> None:
        """A directory; its new files are copied back."""
        if directory not in self._directories:
            self._make(directory)
            self._directories.append(directory)
            for name, size, modified in self._channel.call("survey", path=work_place(directory))[0]:
                self._known[directory, name] = (size, modified)

    def _make(self, directory: Path) -> None:
        self._channel.call("make_own", base=mirror_root(), path=work_place(directory), passing=True)

    def _send(self, command: Sequence[str]) -> None:
        for name in _files_in_command(command, self._cwd):
            file = self._cwd / name
            content = file.read_bytes()
            far = f"{work_place(self._cwd)}/{name}"
            self._channel.call(
                "make_own", base=mirror_root(), path=far.rpartition("/")[0], passing=False
            )
            size, modified = self._channel.call(
                "put", content, path=far, mode=file.stat().st_mode & 0o777
            )[0]
            self._known[self._cwd, name] = (size, modified)

    def _far(self, file: Path) -> str:
        return f"{work_place(file.parent)}/{file.name}"

    def _leave(self) -> None:
        """Remove the mirrors that no other program of this machine works in."""
        with contextlib.suppress(RunError, OSError, ValueError):
            self._host.release(self)

    @property
    def places(self) -> set[Path]:
        """Directories of this machine with a mirror that it uses."""
        return {*self._directories, *(file.parent for file in self._words)}


def inside(directory: Path, name: str) -> Path:
    """Where a file of that name belongs; ValueError for a name that leads elsewhere: the far side
    is not to be trusted with it."""
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts:
        raise ValueError(f"'{name}' is not a name of a file in {directory}")
    place = directory.joinpath(*parts)
    if place.parent.exists() and directory.resolve() not in (
        place.parent.resolve(),
        *place.parent.resolve().parents,
    ):
        raise ValueError(f"'{name}' leads out of {directory}")
    return place


def _files_in_command(command: Sequence[str], cwd: Path) -> Iterator[str]:
    """Relative paths of the files in a directory that a command names, as a word or within a text
    for the shell."""
    names = set()
    for word in command:
        for part in (word, *_WORD.findall(word)):
            name = part.removeprefix("./")
            if (
                not name
                or len(name) > 1024
                or name.startswith("/")
                or "\0" in name
                or ".." in PurePosixPath(name).parts
                or name in names
            ):
                continue
            names.add(name)
            with contextlib.suppress(OSError):
                if (cwd / name).is_file() and (cwd / name).stat().st_size <= _LARGEST_SENT:
                    yield name
