# SPDX-License-Identifier: Apache-2.0
"""The one part of a recording, besides the probe, that stays root: it starts the probe again when
the recorder asks.

Run as `python -m iolab.recordings.record.probe.starter FD PROGRAM PROBE ARGUMENT...` with a socket
(SOCK_SEQPACKET) at FD and the probe, opened, at PROGRAM (see `open_program`): that file is what runs,
whatever is at the path PROBE later. It takes one word, `start` with the sources to leave out, and
starts that one program with those arguments and nothing else; it sends back three pipes, and the
exit code once the probe ends. The socket's end means that the recorder ended: the probe's
pipes ended with it, and it gets a while to end before it is killed. What may be started was
settled before root was given up, so the recorder can ask for nothing more.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Sequence

MOST_STARTS_A_MINUTE = 20
_GRACE = 5.0
_LONGEST = 4096


class Starter:
    """Serves one recorder."""

    def __init__(self, channel: socket.socket, program: int, command: Sequence[str]) -> None:
        self._channel, self._program, self._command = channel, program, list(command)
        self._digest = digest(program)
        self._probe: subprocess.Popen[bytes] | None = None
        self._starts: list[float] = []

    def serve(self) -> None:
        """Until the recorder ended; then wait for the probe."""
        poller = select.poll()
        poller.register(self._channel, select.POLLIN)
        try:
            while True:
                pidfd = self._pidfd()
                if pidfd is not None:
                    poller.register(pidfd, select.POLLIN)
                ready = [fd for fd, _ in poller.poll()]
                if pidfd is not None:
                    poller.unregister(pidfd)
                    os.close(pidfd)
                self._tell_end()
                if self._channel.fileno() in ready:
                    message = self._channel.recv(_LONGEST)
                    if not message:
                        return
                    self._obey(message)
        except OSError:
            return
        finally:
            self._channel.close()
            self._see_out()

    def _pidfd(self) -> int | None:
        return None if self._probe is None else os.pidfd_open(self._probe.pid)

    def _obey(self, message: bytes) -> None:
        try:
            request = json.loads(message)
            without = {str(name) for name in request["start"]}
        except (ValueError, KeyError, TypeError):
            return self._say(error="not understood")
        now = time.monotonic()
        self._starts = [when for when in self._starts if now - when < 60]
        if self._probe is not None:
            return self._say(error="a probe runs already")
        if len(self._starts) >= MOST_STARTS_A_MINUTE:
            return self._say(error="too many starts within a minute")
        self._starts.append(now)
        self._start(without_sources(self._command, without))
        return None

    def _start(self, command: Sequence[str]) -> None:
        if digest(self._program) != self._digest:
            return self._say(error=f"{command[0]} was changed since recording began")
        try:
            self._probe = start_probe(command, self._program)
        except OSError as error:
            return self._say(error=f"{command[0]} can't be started: {error.strerror or error}")
        pipes = [self._probe.stdin, self._probe.stdout, self._probe.stderr]
        numbers = [pipe.fileno() for pipe in pipes if pipe is not None]
        socket.send_fds(self._channel, [json.dumps({"pid": self._probe.pid}).encode()], numbers)
        # kept here they would hide the end of the recorder from the probe, and the other way round
        for pipe in pipes:
            if pipe is not None:
                pipe.close()
        return None

    def _tell_end(self) -> None:
        if self._probe is not None and (code := self._probe.poll()) is not None:
            self._probe = None
            self._say(exit=code)

    def _see_out(self) -> None:
        if self._probe is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                self._probe.wait(_GRACE)
                return
            except subprocess.TimeoutExpired:
                self._probe.send_signal(number)
        self._probe.wait()

    def _say(self, **words: object) -> None:
        self._channel.send(json.dumps(words).encode())


def without_sources(command: Sequence[str], left_out: set[str]) -> list[str]:
    """The command without `--source NAME` for the names left out."""
    kept: list[str] = []
    at = 0
    while at < len(command):
        if command[at] == "--source" and at + 1 < len(command):
            kept += [] if command[at + 1] in left_out else command[at : at + 2]
            at += 2
        else:
            kept.append(command[at])
            at += 1
    return kept


def start_probe(command: Sequence[str], program: int | None = None) -> subprocess.Popen[bytes]:
    """Start the probe on three pipes, out of reach of a Ctrl-C at the terminal, which is for the
    recorder to hear. `program`: a descriptor of the file that is run instead of the path."""
    return subprocess.Popen(
        list(command),
        executable=None if program is None else f"/proc/self/fd/{program}",
        stdin=subprocess.PIPE,
        pass_fds=() if program is None else (program,),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd="/",
        process_group=0,
    )


def open_program(path: str, trusted: Sequence[int]) -> int:
    """A descriptor of the program at a path, which root will run. PermissionError where another
    user than those who are trusted (user numbers), or any user, may write it."""
    program = os.open(
        os.path.realpath(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    )
    try:
        status = os.fstat(program)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError(errno.EPERM, "is not a file")
        if status.st_uid not in trusted:
            raise PermissionError(
                errno.EPERM,
                f"belongs to user {status.st_uid}, neither to root nor to who called sudo",
            )
        if status.st_mode & stat.S_IWOTH:
            raise PermissionError(errno.EPERM, "may be written by everybody")
    except OSError:
        os.close(program)
        raise
    return program


def digest(program: int) -> str:
    """The hash of what an open program holds."""
    hasher, at = hashlib.sha256(), 0
    while data := os.pread(program, 1 << 20, at):
        hasher.update(data)
        at += len(data)
    return hasher.hexdigest()


def main(arguments: Sequence[str]) -> None:
    """Serve the socket with the number in the first argument, with the program that the second is,
    and the command that the others are."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    Starter(socket.socket(fileno=int(arguments[0])), int(arguments[1]), arguments[2:]).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
