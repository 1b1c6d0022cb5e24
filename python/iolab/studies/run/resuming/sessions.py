# SPDX-License-Identifier: Apache-2.0
"""The sessions of a study over several boots: which one may run now, and how one begins.

A session measures one variant on one boot. The change to the variant (a restart into another kernel,
a remount) happens before it: by the study's `[session] begin`, which may restart the host, by
`target.kernel`, for which iolab restarts a machine of a rig, or by hand. The journal has every step,
so that a resumed study knows whether the host was restarted for its session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.base.errors import RunError, UsageError
from iolab.hosts.base.host import Host
from iolab.hosts.facts.host_facts import boot_id

from ...plan.cells.plan import PlannedRun
from ...plan.file.load import Study
from ...results.evidence.files import run_number
from ..builds.kernels import check_kernels, kernel_host
from ..commands import CommandRunner
from ..hooks import variables
from .interrupts import Interrupts
from .journal import Journal
from .resume import find_changes

BEGIN, BEGUN = "begin", "begun"
"""States of the journal's event `session`: its commands are about to run; it may be measured."""

MOST_BEGUN = 3
"""How often a session may begin: a host that crashes in it would be restarted for ever."""


@dataclass(frozen=True)
class SessionEvent:
    """A step of a session, as the journal has it."""

    number: int
    state: str
    boot: str | None
    surroundings: Mapping[str, Any]


def session_events(events: Iterable[Mapping[str, Any]]) -> list[SessionEvent]:
    """The steps of all sessions, in order; damaged ones are left out."""
    return [
        SessionEvent(
            event["session"],
            str(event.get("state")),
            event["boot"] if isinstance(event.get("boot"), str) else None,
            event["surroundings"] if isinstance(event.get("surroundings"), dict) else {},
        )
        for event in events
        if event["event"] == "session" and type(event.get("session")) is int
    ]


class Sessions:
    """The sessions of one attempt at a study. Without `order = "sessions"` a study has none, and
    always continues."""

    def __init__(
        self,
        study: Study,
        host: Host,
        journal: Journal,
        commands: CommandRunner,
        notice: Callable[[str], None],
        *,
        variants: Sequence[str] = (),
        force: bool = False,
    ) -> None:
        """`variants`: measure sessions of these now; of all, if empty. force: whether the
        environment may change, and a session may begin more than `MOST_BEGUN` times."""
        self._study, self._host, self._journal = study, host, journal
        self._commands, self._notice = commands, notice
        self._variants, self._force = variants, force
        self._events: list[SessionEvent] = []
        self._count = 0
        self._pending: PlannedRun | None = None
        self._incomplete: set[int] = set()
        self.has_restarted = False

    def recall(self, events: Iterable[Mapping[str, Any]], runs: Sequence[PlannedRun]) -> None:
        """Take the steps of earlier attempts at these runs from their journal."""
        events = list(events)
        self._events = session_events(events)
        attempted = {
            run_number(str(event.get("run", "")))
            for event in events
            if event["event"] in ("finished", "failed")
        }
        self._incomplete = {run.session for run in runs if run.number not in attempted}

    @property
    def _is_automatic(self) -> bool:
        """Whether a session begins without its user."""
        return bool(self._study.session_begin or self._study.kernels)

    def check_kernel(self) -> None:
        """Start the host with the kernel of a study that has one kernel, unless it runs.

        RunError or UsageError where the host can't be started with a kernel of the study.
        """
        kernels = self._study.kernels
        check_kernels(self._host, kernels)
        if kernels and not self._study.session_order:
            self._boot(kernels[0])

    def _boot(self, kernel: str) -> None:
        host = kernel_host(self._host)
        if host.kernel() != kernel:
            self._notice(f"{self._host.name}: starting with the kernel '{kernel}'")
            host.boot(kernel)

    @property
    def latest(self) -> int:
        """The session that was begun last; 0 before the first."""
        return self._events[-1].number if self._events else 0

    def is_over(self, run: PlannedRun) -> bool:
        """Whether the run's session is over: a run of it that failed is not repeated, since the host
        is in another state.

        A later session has begun; or, by hand, each run of it was attempted and the host has been
        restarted or another variant is named.
        """
        if not 0 < run.session <= self.latest:
            return False
        if run.session < self.latest:
            return True
        if self._is_automatic or run.session in self._incomplete:
            return False
        boot, last = boot_id(self._host), self._events[-1].boot
        is_restarted = boot is not None and last is not None and boot != last
        return is_restarted or bool(self._variants and run.cell.variant not in self._variants)

    def _last_surroundings(self, variant: str) -> Mapping[str, Any] | None:
        """Tools and fingerprint of the last session of a variant; None before its first."""
        return next(
            (
                event.surroundings
                for event in reversed(self._events)
                if event.state == BEGUN and event.surroundings and self._variant(event) == variant
            ),
            None,
        )

    def _variant(self, event: SessionEvent) -> str:
        order = self._study.session_order
        return order[event.number - 1] if 0 < event.number <= len(order) else ""

    def begin(self, run: PlannedRun, directory: Path, interrupts: Interrupts) -> str:
        """Come to the session of a run.

        Returns why the study pauses here; empty where the session may be measured now, which
        `confirm` puts on record.

        Raises RunError where a command of `[session] begin` fails: nothing of the session is measured.
        UsageError where nothing shows that the host is in the state that the session needs.
        """
        if not run.session:
            return ""
        boot, last = boot_id(self._host), self._events[-1] if self._events else None
        if last is not None and last.number == run.session:
            if last.state == BEGUN and last.boot == boot:
                return ""
            if (
                last.state == BEGIN
                and boot is not None
                and last.boot != boot
                and self._study.restarts
            ):
                self._notice(f"session {run.session} ({run.cell.variant}): the host was restarted")
                return ""
        self._check_attempts(run)
        if self._variants and run.cell.variant not in self._variants:
            return self._pause(run, "--variant leaves it out")
        kernel = run.cell.kernel
        if last is None and kernel is not None and kernel_host(self._host).kernel() == kernel:
            return ""
        if not self._is_automatic:
            return self._begin_by_hand(run, last, boot)
        if self._study.restarts:
            if boot is None:
                raise RunError(
                    "the host's boot id can't be read, so that no restart would be noticed",
                    hint="leave out reboot and begin, and restart the host by hand",
                )
            self._pending = run
            return self._pause(run, "the host is restarted for it")
        self._run_commands(run, directory, interrupts)
        return self._pause(run, "stopped while it began") if interrupts.stop_after_run else ""

    def confirm(self, run: PlannedRun, surroundings: Mapping[str, Any]) -> None:
        """Record that a session is measured from here on.

        Raises UsageError where the environment differs from that of the variant's earlier
        sessions, unless that is permitted.
        """
        if not run.session:
            return
        expected = self._last_surroundings(run.cell.variant)
        changed = [] if expected is None else find_changes(expected, surroundings)
        if changed and not self._force:
            raise UsageError(
                f"session {run.session}: the environment differs from that of earlier sessions of "
                f"'{run.cell.variant}': {'; '.join(changed)}",
                hint="put it back, or continue with --force: later runs are marked as of another environment",
            )
        for change in changed:
            self._notice(f"another environment than the sessions before: {change}")
        self._count += 1
        last = (self._events[-1].number, self._events[-1].state) if self._events else None
        boot = boot_id(self._host)
        if last != (run.session, BEGUN) or self._events[-1].boot != boot:
            self._write(run, BEGUN, boot, surroundings)

    def _check_attempts(self, run: PlannedRun) -> None:
        """RunError where a session has begun too often, or was to begin and never did: the host would
        be restarted for ever."""
        if self._force:
            return
        states = [event.state for event in self._events if event.number == run.session]
        begun = states.count(BEGUN)
        if begun >= MOST_BEGUN:
            raise RunError(
                f"session {run.session} ({run.cell.variant}) has begun {begun} times and did not end",
                hint="look at what ends it (a crash of the host?); --force begins it once more",
            )
        if states[-MOST_BEGUN:] == [BEGIN] * MOST_BEGUN:
            raise RunError(
                f"the commands of session {run.session} ({run.cell.variant}) ran {MOST_BEGUN} times, and "
                "it did not begin",
                hint="look at their output in hooks; --force runs them once more",
            )

    def restart(self, directory: Path, interrupts: Interrupts) -> None:
        """Restart the host, if a session waits for it. To be called last, when nothing of the study
        is left running or mounted. `has_restarted` is true if the study can continue now.

        Raises RunError where a command fails, or the host does not start.
        """
        run = self._pending
        if run is None or interrupts.stop_after_run:
            return
        self._run_commands(run, directory, interrupts)
        if run.cell.kernel is not None:
            kernel_host(self._host).boot(run.cell.kernel)
            self.has_restarted = True

    def _run_commands(self, run: PlannedRun, directory: Path, interrupts: Interrupts) -> None:
        title, words = f"begin of session {run.session}", variables(cell=run.cell, factors=False)
        words["IOLAB_SESSION"] = str(run.session)
        self._write(run, BEGIN, boot_id(self._host), {})
        for command in self._study.session_begin:
            end = self._commands.run(command, title, directory, words, lambda: interrupts.stop_now)
            if end.failure and not interrupts.stop_after_run:
                raise RunError(
                    f"{title} ({run.cell.variant}): '{command.text}': {end.failure}",
                    hint="nothing of this session was measured; continue with --resume once it works",
                )

    def _begin_by_hand(self, run: PlannedRun, last: SessionEvent | None, boot: str | None) -> str:
        """Without commands, each call measures one session: on a boot of its own, or by name."""
        if self._count:
            return self._pause(run, "prepare the host for it, such as by a restart")
        is_restarted = last is None or (
            last.number != run.session and None not in (last.boot, boot) and last.boot != boot
        )
        if not is_restarted and not self._variants:
            raise UsageError(
                f"nothing shows that session {run.session} ({run.cell.variant}) can be measured now",
                hint=f"once it is what runs here, say so: --resume --variant '{run.cell.variant}'",
            )
        return ""

    def _pause(self, run: PlannedRun, why: str) -> str:
        total = len(self._study.session_order)
        advice = "" if self._pending is not None and self._study.kernels else "; --resume continues"
        return f"session {run.session} of {total} ({run.cell.variant}) is next: {why}{advice}"

    def _write(
        self, run: PlannedRun, state: str, boot: str | None, surroundings: Mapping[str, Any]
    ) -> None:
        self._journal.write(
            "session",
            session=run.session,
            variant=run.cell.variant,
            state=state,
            boot=boot,
            **({"surroundings": surroundings} if surroundings else {}),
        )
        self._events.append(SessionEvent(run.session, state, boot, surroundings))
