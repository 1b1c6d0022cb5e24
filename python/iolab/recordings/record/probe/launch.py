# SPDX-License-Identifier: Apache-2.0
"""The probe as a process: started (directly, or by the starter once root is given up), read without
blocking, ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Collection, Sequence
from typing import Any, Protocol

from iolab.base.errors import RunError

from .privilege import caller
from .starter import open_program, start_probe, without_sources

_AT_ONCE = 1 << 20
_MOST_WORDS = 1 << 16


class Probe(Protocol):
    """A probe that was started."""

    pid: int

    def files(self) -> list[int]:
        """Descriptors that are readable when there is something to read."""

    def read(self) -> bytes | None:
        """What came since the last call, at most a megabyte; None where nothing did, b"" once
        nothing more will."""

    def words(self) -> list[str]:
        """Lines on its standard error since the last call."""

    def ask_to_stop(self) -> None:
        """Ask it to hand over what it has and to end. Safe to call twice."""

    def exit_code(self) -> int | None:
        """How it ended, 128 + n after signal n; None while it runs or where that is not known
        yet."""

    def away(self) -> str:
        """Why the machine that it is on is out of reach, in words; empty where it isn't."""

    def let_go(self) -> None:
        """Close every pipe, so that it ends; wait for it. Safe to call twice."""


class Launcher(Protocol):
    """Starts probes with one fixed command."""

    def launch(self, without: Collection[str] = ()) -> Probe:
        """Start the probe, with these sources left out. RunError where it can't be started."""

    def close(self) -> None:
        """Nothing will be launched any more."""


class _Pipes:
    """Three pipes to a program."""

    def __init__(self, pid: int, stdin: int, stdout: int, stderr: int) -> None:
        self.pid = pid
        self._stdin, self._stdout, self._stderr = stdin, stdout, stderr
        for number in (stdin, stdout, stderr):
            os.set_blocking(number, False)
        with contextlib.suppress(OSError):  # above the user's limit: the usual 64 KiB then
            import fcntl

            fcntl.fcntl(stdout, fcntl.F_SETPIPE_SZ, _AT_ONCE)
        self._line = b""

    def files(self) -> list[int]:
        return [number for number in (self._stdout, self._stderr) if number >= 0]

    def read(self) -> bytes | None:
        if self._stdout < 0:
            return b""
        try:
            return os.read(self._stdout, _AT_ONCE)
        except BlockingIOError:
            return None

    def words(self) -> list[str]:
        while self._stderr >= 0 and len(self._line) < _MOST_WORDS:
            try:
                data = os.read(self._stderr, 4096)
            except BlockingIOError:
                break
            if not data:
                os.close(self._stderr)
                self._stderr = -1
                self._line += b"\n" if self._line else b""
            self._line += data
        *lines, self._line = self._line.split(b"\n")
        if len(self._line) >= _MOST_WORDS:
            lines, self._line = [*lines, self._line[:200]], b""
        return [text for line in lines if (text := line.decode("utf-8", "replace").strip())]

    def tell(self, line: bytes) -> None:
        """Send a line, as far as the pipe takes it now; nothing happens where the probe ended."""
        if self._stdin >= 0:
            with contextlib.suppress(OSError):
                os.write(self._stdin, line)

    def ask_to_stop(self) -> None:
        if self._stdin >= 0:
            # the end of the pipe says the same
            self.tell(b"stop\n")
            os.close(self._stdin)
            self._stdin = -1

    def away(self) -> str:
        return ""

    def close(self) -> None:
        for number in (self._stdin, self._stdout, self._stderr):
            if number >= 0:
                os.close(number)
        self._stdin = self._stdout = self._stderr = -1


class DirectProbe(_Pipes):
    """A probe that is this process's own child."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        pipes = [pipe for pipe in (popen.stdin, popen.stdout, popen.stderr) if pipe is not None]
        super().__init__(popen.pid, *(os.dup(pipe.fileno()) for pipe in pipes))
        for pipe in pipes:
            pipe.close()

    def exit_code(self) -> int | None:
        """How it ended."""
        code = self._popen.poll()
        return None if code is None else _usual(code)

    def let_go(self) -> None:
        """Close the pipes; end it where it stays."""
        self.close()
        for end in (self._popen.terminate, self._popen.kill, lambda: None):
            try:
                self._popen.wait(5.0)
                return
            except subprocess.TimeoutExpired:
                end()


class DirectLauncher:
    """Starts the probe as a child, with this process's rights and, as far as these go, with the
    niceness that it has now."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._niceness = os.getpriority(os.PRIO_PROCESS, 0)

    def launch(self, without: Collection[str] = ()) -> DirectProbe:
        """Start it."""
        niceness = os.getpriority(os.PRIO_PROCESS, 0)
        try:
            # a child inherits it; whoever is not root may not lower it again
            with contextlib.suppress(PermissionError):
                os.setpriority(os.PRIO_PROCESS, 0, self._niceness)
            return DirectProbe(start_probe(without_sources(self._command, set(without))))
        except OSError as error:
            raise RunError(
                f"the probe can't be started: {error.strerror or error}", where=self._command[0]
            ) from None
        finally:
            os.setpriority(os.PRIO_PROCESS, 0, niceness)

    def close(self) -> None:
        """Nothing."""


class StartedProbe(_Pipes):
    """A probe that the starter started; it alone learns how it ends."""

    def __init__(self, launcher: StarterLauncher, pid: int, pipes: Sequence[int]) -> None:
        super().__init__(pid, *pipes)
        self._launcher = launcher

    def exit_code(self) -> int | None:
        """How it ended, as the starter says."""
        return self._launcher.exit_of(self.pid)

    def let_go(self) -> None:
        """Close the pipes; wait a while for the starter's word that it ended."""
        self.close()
        self._launcher.wait_end(self.pid, 15.0)


class StarterLauncher:
    """Asks a process that kept root (see `starter`) to start the probe. Made before root is given
    up."""

    def __init__(self, command: Sequence[str]) -> None:
        """`command`: the probe's, which is opened once, here, and has to belong to root or to the
        user who called sudo (RunError)."""
        user = caller(os.environ)
        try:
            program = open_program(
                command[0], (0, os.getuid(), *(() if user is None else (user.uid,)))
            )
        except OSError as error:
            raise RunError(
                f"the probe can't be run as root: it {error.strerror or error}"
                if isinstance(error, PermissionError)
                else f"the probe can't be started: {error.strerror or error}",
                where=command[0],
                hint="install iolab for root, or as the user who calls sudo",
            ) from None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._starter = subprocess.Popen(
                    [
                        sys.executable,
                        "-P",
                        "-m",
                        f"{__package__}.starter",
                        str(theirs.fileno()),
                        str(program),
                        *command,
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno(), program],
                    process_group=0,
                )
            except OSError as error:
                ours.close()
                raise RunError(
                    f"the probe's starter can't be started: {error.strerror or error}"
                ) from None
            finally:
                os.close(program)
        self._channel = ours
        self._current = 0
        self._ends: dict[int, int] = {}

    def launch(self, without: Collection[str] = ()) -> StartedProbe:
        """Have it started."""
        answer, pipes = self._ask({"start": sorted(without)})
        if "pid" not in answer or len(pipes) != 3:
            for number in pipes:
                os.close(number)
            raise RunError(
                f"the probe can't be started: {answer.get('error', 'its starter ended')}"
            )
        self._current = int(answer["pid"])
        self._ends.pop(self._current, None)
        return StartedProbe(self, self._current, pipes)

    def exit_of(self, pid: int) -> int | None:
        """The exit code of a probe, None while it is not known."""
        while select.select([self._channel], [], [], 0)[0]:
            if not self._receive()[0]:
                break
        return self._ends.get(pid)

    def wait_end(self, pid: int, seconds: float) -> None:
        """Wait until a probe ended."""
        while pid not in self._ends and select.select([self._channel], [], [], seconds)[0]:
            if not self._receive()[0]:
                return

    def close(self) -> None:
        """Let the starter go; it sees a probe out that is still there."""
        self._channel.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._starter.wait(20.0)

    def _ask(self, words: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        try:
            self._channel.send(json.dumps(words).encode())
        except OSError:
            return {}, []
        while select.select([self._channel], [], [], 10.0)[0]:
            answer, pipes = self._receive()
            if not answer or "pid" in answer or "error" in answer:
                return answer, pipes
        return {"error": "its starter doesn't answer"}, []

    def _receive(self) -> tuple[dict[str, Any], list[int]]:
        """One message; empty once the starter ended."""
        try:
            data, pipes, _, _ = socket.recv_fds(self._channel, 4096, 3)
            answer: dict[str, Any] = json.loads(data) if data else {}
        except (OSError, ValueError):
            return {}, []
        if "exit" in answer:
            self._ends[self._current] = _usual(int(answer["exit"]))
        return answer, pipes


def _usual(code: int) -> int:
    return 128 - code if code < 0 else code
