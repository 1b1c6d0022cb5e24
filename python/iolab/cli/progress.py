"""A study's progress on stderr: a live bar on a terminal, a line per run elsewhere."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from ..compare.axes import axis_text

if TYPE_CHECKING:
    from ..run.progress import Outcome, Status
    from ..study.load import Study
    from ..study.plan import Plan, PlannedRun


def clock_text(seconds: float) -> str:
    """`1:05` or `2:03:10`."""
    minutes, rest = divmod(max(round(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Bar:
    """Hears a study and shows where it is. Use as a context manager, so that the terminal is left as it was."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._progress = Progress(TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[where]}"),
                                  TextColumn("{task.fields[left]}"), console=self._console, transient=True,
                                  disable=not self._console.is_terminal)
        self._task: TaskID | None = None
        self._total = 0
        self._blocks = 0
        self._left = 0.0
        self._done = 0
        self.result: Outcome | None = None

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def planned(self, study: Study, plan: Plan, directory: Path) -> None:
        """The head: what is to come, and where it goes."""
        self._total, self._left = len(plan.runs), plan.seconds
        self._blocks = max((run.block for run in plan.runs), default=0)
        self._console.print(f"{study.name}: {self._total} runs in {self._blocks} blocks, about {clock_text(plan.seconds)}, "
                            f"into {directory}", soft_wrap=True, markup=False)
        self._task = self._progress.add_task(f"run 0 of {self._total}", total=plan.seconds, where="", left="")

    def started(self, run: PlannedRun, name: str) -> None:
        """Which run is in flight."""
        place = axis_text(run.cell.factors.keys(), tuple(run.cell.factors.values()))
        where = " ".join(part for part in (f"block {run.block} of {self._blocks}:", run.cell.variant, place) if part)
        self._update(description=f"run {run.number} of {self._total}", where=where)

    def waiting(self, run: PlannedRun, seconds: float, expected: float) -> None:
        """The bar moves with time, and never past the end of the run."""
        inside = min(seconds, expected)
        if self._task is not None:
            total = self._progress.tasks[self._task].total or 1.0
            self._update(completed=max(total - self._left + inside, 0), left=f"{clock_text(self._left - inside)} left")

    def ended(self, run: PlannedRun, status: Status, reason: str, left_seconds: float) -> None:
        """A line where there is no bar, and always for a run that didn't finish."""
        self._left = left_seconds
        self._done += 1
        place = axis_text(run.cell.factors.keys(), tuple(run.cell.factors.values()))
        head = f"run {run.number} of {self._total}, block {run.block}: {run.cell.variant} {place}".rstrip()
        if status != "finished":
            self._console.print(f"{head}: {status}: {reason}", soft_wrap=True, markup=False)
        elif not self._console.is_terminal:
            self._console.print(f"{head}, {clock_text(left_seconds)} left", soft_wrap=True, markup=False)

    def noticed(self, text: str) -> None:
        """A note."""
        self._console.print(f"note: {text}", soft_wrap=True, markup=False)

    def outcome(self, outcome: Outcome) -> None:
        """How it ended."""
        self.result = outcome
        self._progress.stop()
        parts = [f"{outcome.finished} runs finished"]
        parts += [f"{outcome.failed} failed"] if outcome.failed else []
        parts += [f"{outcome.left} not done"] if outcome.left else []
        how = "stopped" if outcome.interrupted else "done"
        self._console.print(f"{how} in {clock_text(outcome.seconds)}: {', '.join(parts)}; results in {outcome.directory}",
                            soft_wrap=True, markup=False)

    def _update(self, **fields: object) -> None:
        if self._task is not None:
            self._progress.update(self._task, **fields)  # type: ignore[arg-type]
