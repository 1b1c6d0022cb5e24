# SPDX-License-Identifier: Apache-2.0
"""How a process is known as one that a study started, also where a kill came before the journal
could name it.

Whatever a study starts bears the results directory and a number in its environment: a word that
each attempt at the study draws anew, and the place of the start among those on record. So it is
known after a kill what a start bears whose line is missing.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ResultsError
from ..hosts.base.host import Host, HungError, Process
from ..hosts.facts.host_facts import boot_id
from ..results.evidence.lock import check_free
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
        """What the journal holds of the attempt before anything is started, for `end_left_running`
        to go by."""
        return {"boot": boot_id(self._host), "results": self._results, "attempt": self._attempt}

    @property
    def environment(self) -> dict[str, str]:
        """What stands in the environment of what is started next."""
        return {MARK: self._results, START: f"{self._attempt}.{self._number}"}

    def note(self, event: str, process: Process, **data: Any) -> None:
        """Put a start on record, on disk before this returns. OSError leaves its number to the next
        start."""
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
    noticed: Callable[[str], None],
) -> None:
    """End what the latest attempt left running: what it has on record as begun and not as ended,
    and what it began last of all.

    HungError where something of it can't be ended: what it works on would make whoever touches it
    wait too. Nothing is ended where the host was booted since, nor where these results are a copy
    and the study still runs in the original.

    Args:
        events: of the journal, in order.
        directory: where the results are now; the environment of what is left has where they were.
    """
    attempt: Mapping[str, Any] = {}
    left: dict[int, tuple[str, int, object]] = {}
    on_clients: dict[object, str] = {}
    hung: set[str] = set()
    last = 0
    for event in events:
        kind, pid, started = event["event"], event.get("pid"), event.get("pid_started_ticks")
        if kind in ("opened", "resumed"):
            attempt, left, on_clients, hung, last = event, {}, {}, set(), 0
        elif kind == "started" and isinstance(event.get("clients"), list):
            on_clients[event.get("start")] = str(event.get("run"))
            last = event["start"] if isinstance(event.get("start"), int) else last
        elif kind in ("started", "hook") and isinstance(pid, int) and isinstance(started, int):
            left[pid] = (str(event.get("run") or event.get("title")), started, event.get("start"))
            last = event["start"] if isinstance(event.get("start"), int) else last
        elif kind == "hook-ended" and isinstance(pid, int):
            left.pop(pid, None)
        elif kind in _ENDS and event.get("hung"):
            hung.add(str(event.get("run")))
        elif kind in _ENDS:
            left = {pid: one for pid, one in left.items() if one[0] != event.get("run")}
            on_clients = {n: run for n, run in on_clients.items() if run != event.get("run")}
    results = str(attempt.get("results", directory.absolute()))
    # ids and start times hold within a boot alone
    if (
        attempt.get("boot") is None
        or attempt["boot"] != boot_id(host)
        or _runs_elsewhere(Path(results), directory)
    ):
        return

    def ended(of: str, pids: Sequence[int]) -> None:
        if pids:
            journal.write("ended-leftover", of=of, pids=list(pids))
            noticed(
                f"ended {len(pids)} process{'es' if len(pids) > 1 else ''} that the killed study had left (of {of})"
            )

    mark = f"{MARK}={results}"
    for pid, (of, started, number) in left.items():
        ended(of, host.end_leftover(pid, started, mark))
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
                hint="go on once it is gone: see whether its file system is frozen (fsfreeze --unfreeze) or its device is suspended "
                "(dmsetup resume)",
            )
    for number, of in on_clients.items():  # far clients end theirs when the connection is lost
        if "attempt" in attempt:
            ended(of, host.end_marked((mark, f"{START}={attempt['attempt']}.{number}")))
    if "attempt" in attempt:
        ended(
            "a start that was not on record yet",
            host.end_marked((mark, f"{START}={attempt['attempt']}.{last + 1}")),
        )


def _runs_elsewhere(results: Path, directory: Path) -> bool:
    """Whether another study than the one here holds the results that were begun there: what it
    started is not left over."""
    with contextlib.suppress(OSError):
        if results.exists() and not results.samefile(directory):
            try:
                check_free(results)
            except ResultsError:
                return True
    return False
