# SPDX-License-Identifier: Apache-2.0
"""A study's progress on stderr: a live bar on a terminal, a line per run elsewhere.

Each value is followed by that of the same cell in the previous block, so that drift is visible
early.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

from iolab.base.units import format_number
from iolab.base.untrusted_text import visible
from iolab.studies.compare.axes import axis_text

from ..base.output import hush

if TYPE_CHECKING:
    from iolab.studies.plan.cells.plan import Plan, PlannedRun
    from iolab.studies.plan.file.load import Study
    from iolab.studies.run.progress import Outcome, Status


_DEVICE_RATE = "device.iops"
_NOTHING: Mapping[str, float] = MappingProxyType({})


def clock_text(seconds: float) -> str:
    """`1:05` or `2:03:10`."""
    minutes, rest = divmod(max(round(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def count_text(number: int, word: str) -> str:
    """`1 run`, `3 runs`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def live_text(latest: Mapping[str, float], before: float | None) -> str:
    """`1240 IOPS at the device (block before: 1190)`; empty where no device is watched."""
    rate = latest.get(_DEVICE_RATE)
    if rate is None:
        return ""
    return f"{format_number(rate)} IOPS at the device" + (
        f" (block before: {format_number(before)})" if before is not None else ""
    )


def values_text(values: Mapping[str, float], before: Mapping[str, float] | None) -> str:
    """`write 1240 IOPS (block before: 1190)`, for each direction that a run had."""
    parts = []
    for name, rate in values.items():
        group, _, rest = name.partition(".")
        if rest == "iops":
            ghost = (before or {}).get(name)
            parts.append(
                f"{group} {format_number(rate)} IOPS"
                + (f" (block before: {format_number(ghost)})" if ghost is not None else "")
            )
    return ", ".join(parts)


class _Mean:
    """Mean of a live value over one run, each reading counted once however often it is shown."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._count = 0
        self._last: float | None = None

    def add(self, value: float) -> None:
        if value != self._last:
            self._sum, self._count, self._last = self._sum + value, self._count + 1, value

    def value(self) -> float | None:
        return self._sum / self._count if self._count else None


def shared_progress(console: Console) -> Progress:
    """What bars are drawn with; one for each study that runs."""
    description, time_left, where, live = (
        TextColumn(
            f"{{task.{name}}}",
            markup=False,
            # the bar and the time left are whole at 80 columns; what does not fit ends in an ellipsis
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=ratio),
        )
        for name, ratio in (
            ("description", None),
            ("fields[left]", None),
            ("fields[where]", 3),
            ("fields[live]", 4),
        )
    )
    return Progress(
        description,
        BarColumn(bar_width=12),
        time_left,
        where,
        live,
        console=console,
        transient=True,
        expand=True,
        disable=not console.is_terminal,
    )


class Words(Console):
    """A console on stderr. A study continues if stderr is closed."""

    def __init__(self) -> None:
        super().__init__(stderr=True, highlight=False)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        hush(self.file.fileno())


class Bar:
    """Hears a study and shows where it is. Use as a context manager, so that the terminal is left
    as it was."""

    def __init__(
        self, console: Console | None = None, *, host: str = "", progress: Progress | None = None
    ) -> None:
        """`host`: named in every line, where there are several; `progress`: what their bars share."""
        self._console = console or Words()
        self._host = f"{host}: " if host else ""
        self._own = progress is None
        self._progress = progress or shared_progress(self._console)
        self._task: TaskID | None = None
        self._total = 0
        self._blocks = 0
        self._left = 0.0
        self._seconds = 1.0
        self._done = 0
        self._device = _Mean()
        self._device_before: dict[str, float] = {}
        self._values_before: dict[str, Mapping[str, float]] = {}
        self._study: Path | None = None
        self.result: Outcome | None = None

    def __enter__(self) -> Bar:
        if self._own:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._own:
            self._progress.stop()

    def begin_study(self, study: Study, plan: Plan, directory: Path) -> None:
        """The head: what is to come, and where it goes."""
        self._study = study.file
        self._total, self._left = len(plan.runs), plan.seconds
        self._seconds = plan.seconds or 1.0
        self._blocks = max((run.block for run in plan.measured_runs), default=0)
        extra_runs = (
            f", {count_text(len(plan.profiles), 'run')} for profiles" if plan.profiles else ""
        )
        self._say(
            f"{study.name}: {count_text(len(plan.measured_runs), 'run')} in {count_text(self._blocks, 'block')}{extra_runs}, "
            f"about {clock_text(plan.seconds)}, into {directory}"
        )
        self._task = self._progress.add_task(
            f"{self._host}run 0 of {self._total}", total=plan.seconds, where="", left="", live=""
        )

    def begin_run(self, run: PlannedRun, name: str) -> None:
        """Which run is in flight."""
        place = axis_text(run.cell.factors.keys(), tuple(run.cell.factors.values()))
        turn = "profile:" if run.profile else f"block {run.block} of {self._blocks}:"
        where = visible(" ".join(part for part in (turn, run.cell.variant, place) if part))
        self._device = _Mean()
        ghost = values_text(self._values_before.get(run.cell.identity(), {}), None)
        self._update(
            description=f"{self._host}run {run.number} of {self._total}",
            where=where,
            live=f"block before: {ghost}" if ghost else "",
        )

    def update_run(
        self,
        run: PlannedRun,
        seconds: float,
        expected: float,
        latest: Mapping[str, float] = _NOTHING,
    ) -> None:
        """Move the bar with time, at most to the end of the run, and show what the devices do."""
        inside = min(seconds, expected)
        live = live_text(latest, self._device_before.get(run.cell.identity()))
        if live:
            self._device.add(latest[_DEVICE_RATE])
            self._update(live=live)
        if self._task is not None:
            self._update(
                completed=max(self._seconds - self._left + inside, 0),
                left=f"{clock_text(self._left - inside)} left",
            )

    def end_run(
        self,
        run: PlannedRun,
        status: Status,
        reason: str,
        left_seconds: float,
        values: Mapping[str, float] = _NOTHING,
    ) -> None:
        """A line where there is no bar, and always for a run that didn't finish."""
        self._left = left_seconds
        cell = run.cell.identity()
        measured = values_text(values, self._values_before.get(cell))
        if status == "finished":
            self._values_before[cell] = dict(values)
            device = self._device.value()
            if device is not None:
                self._device_before[cell] = device
        self._done += 1
        place = axis_text(run.cell.factors.keys(), tuple(run.cell.factors.values()))
        turn = "profile" if run.profile else f"block {run.block}"
        head = f"run {run.number} of {self._total}, {turn}: {run.cell.variant} {place}".rstrip()
        if status != "finished":
            self._say(f"{head}: {status}: {reason}")
        elif not self._console.is_terminal:
            self._say(
                ", ".join(
                    part for part in (head, measured, f"{clock_text(left_seconds)} left") if part
                )
            )

    def notice(self, text: str) -> None:
        """A note."""
        self._say(f"note: {text}")

    def outcome(self, outcome: Outcome) -> None:
        """How it ended."""
        self.result = outcome
        if self._own:
            self._progress.stop()
        elif self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
        parts = [f"{count_text(outcome.finished, 'run')} finished"]
        parts += [f"{outcome.failed} failed"] if outcome.failed else []
        parts += [f"{outcome.remaining} not done"] if outcome.remaining else []
        how = "stopped" if outcome.interrupted else "done"
        self._say(
            f"{how} in {clock_text(outcome.seconds)}: {', '.join(parts)}; results in {outcome.directory}"
        )
        place = shlex.quote(str(outcome.directory))
        if outcome.remaining and self._study is not None:
            self._say(f"next: iolab run {shlex.quote(str(self._study))} -o {place} --resume")
        elif not outcome.remaining and outcome.finished:
            self._say(f"next: iolab compare {place}; iolab report {place} -o report.html")

    def _say(self, text: str) -> None:
        self._console.print(visible(f"{self._host}{text}"), soft_wrap=True, markup=False)

    def _update(self, **fields: object) -> None:
        if self._task is not None:
            self._progress.update(self._task, **fields)  # type: ignore[arg-type]
