# SPDX-License-Identifier: Apache-2.0
"""What can go wrong through no fault of iolab: one tree of errors, each with a way out.

An error says what happened, where (a file with its line, a run) and what to do. `cli` alone turns
it into a line on stderr and an exit code; everything below raises.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


class IolabError(Exception):
    """A user's mistake or the world's: printed as one line, without a traceback.

    Args:
        message: what happened, without a full stop at the end.
        where: file, `file:line`, run or key that it happened at; printed first.
        hint: what to do about it; printed after the message.
    """

    exit_code = 1

    def __init__(
        self, message: str, *, where: str | Path | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = None if where is None else str(where)
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"; {self.hint}" if self.hint else ""
        return f"{place}{self.message}{advice}"


class UsageError(IolabError):
    """The command line, or a call, asks for something that isn't there (an unknown metric, a
    baseline not in the data)."""

    exit_code = 2


class PluginError(IolabError):
    """A plugin of another package can't be loaded."""


class FormatError(IolabError):
    """A file is not what it should be, or is damaged. It costs the run it belongs to, never the
    tree."""

    exit_code = 3


class ResultsError(IolabError):
    """A results directory can't be read or written: locked, of a newer schema, or not one at all."""

    exit_code = 3


class StudyError(IolabError):
    """A study file is wrong; `where` is `file:line`."""

    exit_code = 4


class RunError(IolabError):
    """A run or what it needs (fio, the target, a host) failed; what was measured so far is kept."""

    exit_code = 5


_SECURE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where sudo finds commands unless sudoers says otherwise (sudoers(5), secure_path)."""


def sudo_command(*words: str) -> str:
    """A command line of iolab as root. It has the path of this installation where sudo would not
    find `iolab`, or would find another one."""
    program = Path(sys.executable).with_name("iolab")
    # each command loads this module, and few ask this
    import shutil

    usual = shutil.which("iolab", path=_SECURE_PATH)
    if usual and (not program.is_file() or Path(usual).samefile(program)):
        command = ["iolab"]
    elif program.is_file():
        command = [str(program)]
    else:
        command = [sys.executable, "-m", "iolab"]
    return shlex.join(["sudo", *command, *words])
