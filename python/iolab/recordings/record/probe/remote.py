# SPDX-License-Identifier: Apache-2.0
"""The probe on another host: brought there, checked by its hash, its frames read over a session of
the same connection.

Whatever may take long (to connect, to bring the probe there) is done by one thread of its own, so
that the recorder hears everybody else meanwhile. That thread lives as long as the connection: the
kernel ends ssh with the thread that started it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from iolab.base.errors import IolabError, RunError
from iolab.hosts.ssh.remote import Elsewhere

from ..settings import COUNTERS
from .launch import DirectProbe
from .program import NAME, OVERRIDE, check_sources
from .starter import start_probe, without_sources

LEASE = 60
"""Seconds without a word from here after which the probe ends there."""
_ALIVE = 10.0
"""Seconds between such words."""
_LONGEST_HEAD = 1 << 16
_LOST = 255
"""ssh's own exit code; a program's is its shell's, 128 + n after signal n."""
_CLOSING = 20.0
_SCRIPT = 'printf "%s\\n" "$0"; "$@"; exit $?'


class FarProbe:
    """A probe there, from its request on: it begins once `begun` or `failed` was called, by
    another thread."""

    pid = 0

    def __init__(self, name: str) -> None:
        """`name`: the host's."""
        self.mark = f"iolab-begins-{secrets.token_hex(8)}"
        self.dropped = False
        self._name = name
        self._result: queue.SimpleQueue[DirectProbe | IolabError] = queue.SimpleQueue()
        self._session: DirectProbe | None = None
        self._failure: IolabError | None = None
        self._head: bytes | None = b""
        self._alive_at = time.monotonic()

    def complete(self, session: DirectProbe) -> None:
        """The session runs."""
        self._result.put(session)

    def fail(self, error: IolabError) -> None:
        """It can't be had."""
        self._result.put(error)

    def files(self) -> list[int]:
        """The session's, once there is one."""
        session = self._begun()
        return [] if session is None else session.files()

    def read(self) -> bytes | None:
        """What came; what a shell prints at its start is left out."""
        session = self._begun()
        if session is None:
            return None if self._failure is None else b""
        if time.monotonic() - self._alive_at >= _ALIVE:
            self._alive_at = time.monotonic()
            session.tell(b"alive\n")
        data = session.read()
        if self._head is None or not data:
            return data
        before, mark, rest = (self._head + data).partition(f"{self.mark}\n".encode())
        self._head = None if mark else before[-_LONGEST_HEAD:]
        return rest or None

    def words(self) -> list[str]:
        """Lines on its standard error, and ssh's."""
        return [] if self._session is None else self._session.words()

    def ask_to_stop(self) -> None:
        """Ask it to hand over what it has and to end."""
        session = self._begun()
        if session is None:
            self.dropped = True
            self._failure = self._failure or RunError("recording ended before it began")
        else:
            session.ask_to_stop()

    def exit_code(self) -> int | None:
        """How it ended."""
        return None if self._session is None else self._session.exit_code()

    def away(self) -> str:
        """Why the host is out of reach, empty where it isn't."""
        if self._failure is not None:
            return str(self._failure)
        return f"the connection to {self._name} is lost" if self.exit_code() == _LOST else ""

    def let_go(self) -> None:
        """Close every pipe; a probe that did not begin yet will not."""
        self.dropped = True
        session = self._begun()
        if session is not None:
            session.let_go()

    def _begun(self) -> DirectProbe | None:
        with contextlib.suppress(queue.Empty):
            result = self._result.get_nowait()
            if isinstance(result, DirectProbe):
                self._session = result
            else:
                self._failure = result
        return self._session


class FarLauncher:
    """Starts probes on one host, with one fixed command; connects again where the connection was
    lost.

    Attributes:
        arguments: of the probe, without its path; what works for this machine over there is left
        out too. connection: how the host is reached and the state of its clock, as of the latest
        connection.
    """

    def __init__(self, host: Elsewhere, program: Path, arguments: Sequence[str] = ()) -> None:
        """`program`: the probe."""
        self._host, self._content, self.arguments = host, program.read_bytes(), list(arguments)
        self.connection: Mapping[str, Any] = {}
        self._generation, self._path = -1, ""
        self._tasks: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=host.name, daemon=True)
        self._thread.start()

    def reach(self, look: Callable[[], object], sources: Sequence[str]) -> None:
        """Connect, `look` there, bring the probe there, and see that it can record; what goes wrong
        is raised."""
        done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

        def attempt() -> None:
            try:
                self._host.reach()
                check_far(self._host, sources)
                look()
                self._bring()
                check_sources(self._host, self._path, sources)
            except BaseException as error:  # raised where it is waited for
                done.put(error)
            else:
                done.put(None)

        self._tasks.put(attempt)
        if (error := done.get()) is not None:
            raise error

    def session(self, *words: str) -> list[str]:
        """Argument list of a further session over the connection, for another thread; OSError while
        it is lost: only this one mends it."""
        try:
            if self._host.is_connected:
                return self._host.session(*words)
        except RunError:
            pass  # lost just now
        raise ConnectionResetError(errno.ECONNRESET, "the connection is lost", self._host.name)

    def launch(self, without: Collection[str] = ()) -> FarProbe:
        """Have it started."""
        probe = FarProbe(self._host.name)
        self._tasks.put(lambda: self._begin(probe, set(without)))
        return probe

    def close(self) -> None:
        """Hang up."""
        self._tasks.put(None)
        self._thread.join(_CLOSING)

    def command(self) -> list[str]:
        """The probe's command line there."""
        return [
            self._path,
            *self.arguments,
            "--exclude-pid",
            str(self._host.far["pid"]),
            "--lease-s",
            str(LEASE),
        ]

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
        self._host.close()

    def _bring(self) -> None:
        if self._generation != self._host.generation:
            self._path = self._host.keep_program(NAME, self._content)
            self._host.clock.renew()
            self.connection = {"host": self._host.name, **self._host.connection_facts()}
            self._generation = self._host.generation

    def _begin(self, probe: FarProbe, without: set[str]) -> None:
        try:
            if probe.dropped:
                return
            self._host.reach()
            self._bring()
            session = self._host.session(
                "sh", "-c", _SCRIPT, probe.mark, *without_sources(self.command(), without)
            )
            begun = DirectProbe(start_probe(session))
        except IolabError as error:
            probe.fail(error)
        except (OSError, ValueError) as error:
            probe.fail(RunError(str(error), where=self._host.name))
        else:
            probe.complete(begun)
            if probe.dropped:
                begun.let_go()


def check_far(host: Elsewhere, sources: Collection[str]) -> None:
    """RunError where these sources can't be recorded there whatever its kernel can: not root,
    another kind of processor."""
    far, local = host.far, os.uname().machine
    if far["machine"] != local and OVERRIDE not in os.environ:
        raise RunError(
            f"its processor is {far['machine']}, the probe was built for {local}",
            where=host.name,
            hint=f"build the probe there and name it by {OVERRIDE}",
        )
    tracing = [name for name in sources if name != COUNTERS]
    if tracing and far["uid"] != 0:
        raise RunError(
            f"recording {' and '.join(tracing)} needs root there: the kernel shows its I/O to root only",
            where=host.name,
            hint="connect as root: --host root@...",
        )
