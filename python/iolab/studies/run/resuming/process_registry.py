# SPDX-License-Identifier: Apache-2.0
"""Identifies the processes that a study started, even if it was killed before the journal named
them.

Each process has the results directory and a mark in its environment. The mark is a random word of
the attempt and the number of the start. So the mark of a start without a line in the journal is
known too.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from iolab.base.errors import ResultsError
from iolab.hosts.base.host import Host, HungError, Process
from iolab.hosts.facts.host_facts import boot_id

from ...results.evidence.lock import check_free
from .journal import Journal

MARK = "IOLAB_RESULTS"
"""Variable in the environment of everything that a study starts: the results' directory."""
START = "IOLAB_START"
"""Variable in the environment of its commands and loads: `<attempt>.<number>`."""
_ENDS = ("finished", "failed", "interrupted")


class Starts:
    """The starts of one attempt at a study, on one host. Commands and loads start one after the
    other, so one number is enough."""

    def __init__(self, results: Path, host: Host, journal: Journal) -> None:
        self._results, self._host, self._journal = str(results.absolute()), host, journal
        self._attempt, self._number = secrets.token_hex(8), 1

    @property
    def facts(self) -> dict[str, str | None]:
        """What the journal records before the first start; `end_left_running` reads it."""
        return {"boot": boot_id(self._host), "results": self._results, "attempt": self._attempt}

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the environment of the next start."""
        return {MARK: self._results, START: f"{self._attempt}.{self._number}"}

    def note(self, event: str, process: Process, **data: Any) -> None:
        """Write a start to the journal, synced. OSError leaves its number to the next start."""
        self._journal.write(
            event,
            **data,
            host=self._host.name,
            pid=process.pid,
            pid_started_ticks=process.started,
            start=self._number,
        )
        self._number += 1


def end_left_running(
    events: Sequence[Mapping[str, Any]],
    directory: Path,
    journal: Journal,
    host: Host,
    notice: Callable[[str], None],
) -> None:
    """End the processes of the latest attempt that are still running: those without an end in the
    journal, and the last start.

    Does nothing if the host was booted since, or if these results are a copy and the study still
    runs in the original.

    Args:
        events: of the journal, in order.
        directory: of the results now; the processes' environment has the directory at their start.

    Raises:
        HungError: a process can't be ended. Access to its files would wait too.
    """
    attempt: Mapping[str, Any] = {}
    running: dict[int, tuple[str, int, object]] = {}
    on_clients: dict[object, str] = {}
    hung: set[str] = set()
    last = 0
    for event in events:
        kind, pid, started = event["event"], event.get("pid"), event.get("pid_started_ticks")
        if kind in ("opened", "resumed"):
            attempt, running, on_clients, hung, last = event, {}, {}, set(), 0
        elif kind == "started" and isinstance(event.get("clients"), list):
            on_clients[event.get("start")] = str(event.get("run"))
            last = event["start"] if isinstance(event.get("start"), int) else last
        elif kind in ("started", "hook") and isinstance(pid, int) and isinstance(started, int):
            running[pid] = (
                str(event.get("run") or event.get("title")),
                started,
                event.get("start"),
            )
            last = event["start"] if isinstance(event.get("start"), int) else last
        elif kind == "hook-ended" and isinstance(pid, int):
            running.pop(pid, None)
        elif kind in _ENDS and event.get("hung"):
            hung.add(str(event.get("run")))
        elif kind in _ENDS:
            running = {pid: start for pid, start in running.items() if start[0] != event.get("run")}
            on_clients = {n: run for n, run in on_clients.items() if run != event.get("run")}
    results = str(attempt.get("results", directory.absolute()))
    # process ids and start times are valid within one boot
    if (
        attempt.get("boot") is None
        or attempt["boot"] != boot_id(host)
        or _runs_elsewhere(Path(results), directory)
    ):
        return

    def report(of: str, pids: Sequence[int]) -> None:
        if pids:
            journal.write("ended-leftover", of=of, pids=list(pids))
            notice(
                f"ended {len(pids)} process{'es' if len(pids) > 1 else ''} that the killed study had left (of {of})"
            )

    mark = f"{MARK}={results}"
    for pid, (of, started, number) in running.items():
        report(of, host.end_leftover(pid, started, mark))
        still = host.end_leftover(pid, started, mark, grace=0.0)
        if of in hung and "attempt" in attempt:  # jobs whose parent has ended
            still += host.end_marked((mark, f"{START}={attempt['attempt']}.{number}"), grace=1.0)
            still = still and host.end_marked(
                (mark, f"{START}={attempt['attempt']}.{number}"), grace=0.0
            )
        if still:
            raise HungError(
                f"process {still[0]} of an earlier attempt (of {of}) waits in the kernel and can't be ended",
                where=str(directory),
                hint="continue after it has ended: check whether its file system is frozen (fsfreeze --unfreeze) or its device is "
                "suspended (dmsetup resume)",
            )
    for number, of in on_clients.items():  # far clients end theirs when the connection is lost
        if "attempt" in attempt:
            report(of, host.end_marked((mark, f"{START}={attempt['attempt']}.{number}")))
    if "attempt" in attempt:
        report(
            "a start that was not on record yet",
            host.end_marked((mark, f"{START}={attempt['attempt']}.{last + 1}")),
        )


def _runs_elsewhere(results: Path, directory: Path) -> bool:
    """Whether another study has the lock of the results' original directory: its processes are in
    use."""
    with contextlib.suppress(OSError):
        if results.exists() and not results.samefile(directory):
            try:
                check_free(results)
            except ResultsError:
                return True
    return False
