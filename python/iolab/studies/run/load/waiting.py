# SPDX-License-Identifier: Apache-2.0
"""Whether a load waits in the kernel without end, as on a file system that is frozen or a device
that is suspended.

Such a process is in state D (proc_pid_stat(5)) and nothing ends it, not even SIGKILL, until what it
waits for comes. Slow I/O is in the same state, but for a moment: a task counts only while the
kernel has not run it once between looks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from iolab.hosts.base.host import Host, text_or_none

_EVERY = 0.5
"""Seconds between looks."""
_MOST = 256
"""Tasks that are looked at: one is enough to hold all of a load."""


class Wait(Protocol):
    """Whether a load waits in the kernel: `KernelWait`, or those of several hosts."""

    def seconds(self, now: float) -> float:
        """How long a task of the load has waited by now, a monotonic second; 0 if none waits."""

    def words(self) -> str:
        """The task that waits, and in which function of the kernel."""

    def remaining(self) -> str:
        """`words` if a task that waited at the last look still does; else empty."""


class ClientWaits:
    """The waits of a load on several clients, by name."""

    def __init__(self, waits: Mapping[str, KernelWait]) -> None:
        self._waits = waits
        self._latest: dict[str, float] = {}

    def seconds(self, now: float) -> float:
        """The longest."""
        self._latest = {name: wait.seconds(now) for name, wait in self._waits.items()}
        return max(self._latest.values(), default=0.0)

    def words(self) -> str:
        """Of the client with the task that has waited longest."""
        name = max(self._waits, key=lambda name: self._latest.get(name, 0.0))
        return f"client {name}: {self._waits[name].words()}"

    def remaining(self) -> str:
        """Of the first client with a task that still waits."""
        for name, wait in self._waits.items():
            if words := wait.remaining():
                return f"client {name}: {words}"
        return ""


class KernelWait:
    """Looks at the processes of one load."""

    def __init__(self, host: Host, pid: int) -> None:
        self._host, self._pid = host, pid
        self._since: dict[str, tuple[str, float]] = {}
        self._looked = float("-inf")

    def seconds(self, now: float) -> float:
        """How long a task of the load has been waiting by now, a monotonic second; 0 where none is.
        Looks at most twice a second."""
        if now - self._looked >= _EVERY:
            self._looked = now
            waits = {}
            for task in self._tasks():
                switches = self._asleep(task)
                if switches is not None:
                    before = self._since.get(task)
                    waits[task] = (
                        before if before is not None and before[0] == switches else (switches, now)
                    )
            self._since = waits
        return max((now - since for _, since in self._since.values()), default=0.0)

    def words(self) -> str:
        """The waiting task and the kernel's function: `process 4711 (state D, in
        percpu_rwsem_wait)`."""
        for task in sorted(self._since, key=lambda task: self._since[task][1]):
            place = text_or_none(self._host, f"{task}/wchan") or ""
            if place in ("", "0"):
                stack = text_or_none(self._host, f"{task}/stack") or ""
                first = re.search(r"\] (\w+)\+", stack)
                place = first[1] if first else ""
            return f"process {task.rpartition('/')[2]} (state D{f', in {place}' if place else ''})"
        return f"process {self._pid}"

    def remaining(self) -> str:
        """The words for what waited when it was looked at last and still does; empty where nothing
        does."""
        self._since = {
            task: wait for task, wait in self._since.items() if self._asleep(task) is not None
        }
        return self.words() if self._since else ""

    def _tasks(self) -> list[str]:
        """Directories of the threads of the load's process and of all that came of it."""
        tasks: list[str] = []
        waiting = [str(self._pid)]
        while waiting and len(tasks) < _MOST:
            process = waiting.pop()
            try:
                threads = self._host.list_directory(f"/proc/{process}/task")
            except OSError:
                continue
            for thread in threads:
                tasks.append(f"/proc/{process}/task/{thread}")
                waiting += (text_or_none(self._host, f"{tasks[-1]}/children") or "").split()
        return tasks

    def _asleep(self, task: str) -> str | None:
        """How often the kernel has switched a task that can't be interrupted; None for another one."""
        if ((text_or_none(self._host, f"{task}/stat") or "").rpartition(")")[2].split() or [""])[
            0
        ] != "D":
            return None
        status = text_or_none(self._host, f"{task}/status") or ""
        return " ".join(re.findall(r"ctxt_switches:\s*(\d+)", status))
