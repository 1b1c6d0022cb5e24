# SPDX-License-Identifier: Apache-2.0
"""Commands that alerts may run: named beforehand in a file of whoever starts the service, never in
a request."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import threading
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from iolab.base.errors import UsageError
from iolab.base.files import open_regular

from ..base.json_store import NAMES

LONGEST_S = 60.0
"""Seconds that a command may take; then it is ended."""


class Commands:
    """Commands by name. A running one is not started again."""

    def __init__(self, words: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self._words = dict(words or {})
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()

    @property
    def names(self) -> list[str]:
        """Names that actions may use."""
        return sorted(self._words)

    def run(
        self,
        name: str,
        facts: Mapping[str, str],
        failed: Callable[[str], None] = lambda words: None,
    ) -> str:
        """Start one, with what happened in its environment; why it was not started, empty where it
        was.

        `failed` is called from another thread with how a started command failed; not for a
        command that `close` ended.
        """
        words = self._words.get(name)
        if words is None:
            return f"there is no command '{name}'"
        with self._lock:
            if name in self._running and self._running[name].poll() is None:
                return f"command '{name}' still runs"
            try:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={**os.environ, **facts},
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                return f"command '{name}' can't be started: {getattr(error, 'strerror', None) or error}"
            self._running[name] = process
        threading.Thread(target=self._await, args=(name, process, failed), daemon=True).start()
        return ""

    def close(self) -> None:
        """End what still runs."""
        self._closed.set()
        with self._lock:
            for process in self._running.values():
                _kill_session(process)

    def _await(
        self, name: str, process: subprocess.Popen[bytes], failed: Callable[[str], None]
    ) -> None:
        try:
            code = process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            _kill_session(process)
            failed(f"command '{name}' took more than {LONGEST_S:g} s and was ended")
            return
        if code and not self._closed.is_set():
            failed(
                f"command '{name}' "
                + (f"failed with exit code {code}" if code > 0 else f"was ended by signal {-code}")
            )


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    """A command and what it started, which are a session of their own."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def owners() -> set[int]:
    """Owners of trusted files, in what is run and in who may ask: root, the user of this
    process, and the user who called sudo for it."""
    caller = os.environ.get("SUDO_UID", "")
    return {0, os.geteuid()} | ({int(caller)} if caller.isascii() and caller.isdecimal() else set())


def read_commands(path: Path | None) -> Commands:
    """The commands of a TOML file: `name = ["/path/to/program", "argument"]`, a line each; none
    without a file.

    UsageError where it can't be read, others than its owner could change it, or a line is no
    command.
    """
    if path is None:
        return Commands()
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or status.st_uid not in owners():
                raise UsageError(
                    "others could change what alerts run",
                    where=path,
                    hint=f"chmod go-w {path}, and own it",
                )
            table = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"can't be read: {error.strerror}", where=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"is no TOML: {error}",
            where=path,
            hint='a line is: name = ["/path/to/program", "argument"]',
        ) from None
    for name, words in table.items():
        if re.fullmatch(NAMES, name) is None:
            raise UsageError(
                f"'{name}' is not a name of a command",
                where=path,
                hint="letters, digits, dots, - and _",
            )
        if not (
            isinstance(words, list)
            and words
            and all(isinstance(word, str) and "\0" not in word for word in words)
            and words[0].startswith("/")
        ):
            raise UsageError(
                f"'{name}' is not a command",
                where=path,
                hint=f'write {name} = ["/path/to/program", "argument"]',
            )
    return Commands({name: tuple(words) for name, words in table.items()})
