# SPDX-License-Identifier: Apache-2.0
"""The COMMAND that is recorded: run as the calling user, on the user's own terminal."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import Protocol

from iolab.base.errors import UsageError

_PR_SET_PDEATHSIG = 1  # prctl(2)
_LIBC = ctypes.CDLL(None, use_errno=True)


class Recorded(Protocol):
    """A program that is recorded."""

    text: str

    def start(self) -> None:
        """Start it; UsageError where it can't be."""

    def exit_code(self) -> int | None:
        """How it ended, 128 + n after signal n; None while it runs."""

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send it a signal."""


def check_program(name: str) -> None:
    """UsageError where there is no such program: said before anything is set up."""
    if shutil.which(name) is None:
        raise UsageError(
            "no such program",
            where=name,
            hint="what follows -- is run as it is; for shell syntax: -- sh -c '...'",
        )


class Command:
    """A program with the recorder's standard streams and process group, so that a Ctrl-C at the
    terminal reaches it directly.

    It gets SIGTERM when the recorder is killed.
    """

    def __init__(self, arguments: Sequence[str], umask: int = -1) -> None:
        """`umask`: that of its files; -1 for the recorder's own."""
        self._umask = umask
        self.text = shlex.join(arguments)
        self._arguments = list(arguments)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        try:
            self._process = subprocess.Popen(
                self._arguments, preexec_fn=_before(os.getpid()), umask=self._umask
            )
        except OSError as error:
            raise UsageError(
                f"can't be started: {error.strerror or error}", where=self._arguments[0]
            ) from None

    def exit_code(self) -> int | None:
        """How it ended."""
        code = None if self._process is None else self._process.poll()
        return None if code is None else 128 - code if code < 0 else code

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send it a signal."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)


def _before(parent: int) -> Callable[[], None]:
    """In the child: no niceness of the recorder's is inherited that it took on later, and SIGTERM
    when the recorder dies."""

    def prepare() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
        if os.getppid() != parent:  # died in between
            os._exit(1)

    return prepare
