# SPDX-License-Identifier: Apache-2.0
"""A shell on the recorded host that runs for as long as the recording: its output is read without
waiting."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Sequence

_PIECE = 1 << 20


class HostShell:
    """A running shell. OSError where it cannot be started."""

    def __init__(self, command: Sequence[str], *, has_input: bool = False) -> None:
        """`has_input`: whether lines are sent to it; the end of its input should end it."""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            process_group=0,
        )
        assert self._process.stdout is not None
        self._output = self._process.stdout
        os.set_blocking(self._output.fileno(), False)

    def send(self, line: str) -> None:
        """Send a line of a few bytes. OSError where the shell has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())

    def read(self, timeout_s: float = 0.0) -> bytes | None:
        """A piece of its output; None where there is none within the timeout, empty at its end."""
        if timeout_s > 0:
            select.select([self._output], [], [], timeout_s)
        data: bytes | None = self._output.read(_PIECE)
        return data

    def end(self, grace_s: float = 0.0) -> int:
        """Its exit code. It has `grace_s` seconds to end alone."""
        for pipe in (self._process.stdin, self._output):
            if pipe is not None:
                pipe.close()
        for seconds, number in ((grace_s, signal.SIGTERM), (5.0, signal.SIGKILL)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(seconds)
            # and the command that it runs
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
        return self._process.wait()
