# SPDX-License-Identifier: Apache-2.0
"""Measured cells and published ones: the same cells of both, and whether they are ordered alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import UsageError
from iolab.base.metrics import Metric, of
from iolab.base.stats.ranks import rank_correlation
from iolab.base.verdict import Level

from ..results.evidence.model import Run
from ..results.imports.table import table_runs
from .axes import level_text, parse_where, select
from .cells import mean_of
from .model import Comparison, Warning

Place = tuple[str, ...]


@dataclass(frozen=True)
class Agreement:
    """How alike a measured variant and a published one order the cells that both have.
    `correlation`: None where it means nothing."""

    metric: Metric
    variant: str
    published: str
    cells: int
    correlation: float | None

    def words(self, alone: bool) -> str:
        """As a sentence; `alone`: whether there is one measured variant only."""
        who = "" if alone else f" of {self.variant}"
        if self.correlation is None:
            return f"no rank correlation{who} with {self.published}: {self.cells} cells in common, or all alike"
        return f"rank correlation{who} with {self.published}: {self.correlation:.2f} over {self.cells} cells"


class Published:
    """A published table, to be compared with measured runs. `about`: what it says of itself.

    Args:
        path: the file; after it, as in `TABLE.csv:disks=1,2`, the levels of factors that alone are
        taken.

    UsageError, FormatError where it can't be read, or has no such level.
    """

    def __init__(self, path: Path) -> None:
        file, conditions = _split(path)
        self.about, self._runs = table_runs(file)
        self.name, self._file = file.stem, file.name
        if conditions:
            try:
                self._runs = select(self._runs, parse_where(conditions))
            except UsageError as error:
                raise UsageError(error.message, where=path.name, hint=error.hint) from None
            self.name += f" ({', '.join(conditions)})"
        self._factors = list(dict.fromkeys(name for run in self._runs for name in run.factors))

    def metrics(self) -> list[str]:
        """What was published, in the table's order."""
        return list(dict.fromkeys(name for run in self._runs for name in run.observations))

    def agreements(self, runs: Sequence[Run], metric: str) -> list[Agreement]:
        """For each measured variant and each published one, over the cells that both have.

        Raises UsageError where the cells are not known to be the same: a published factor that
        varies wasn't swept, or another one was.
        """
        self._check(runs)
        results_of_tables = []
        for variant in dict.fromkeys(run.variant for run in runs if run.plan.status != "failed"):
            own = self._means([run for run in runs if run.variant == variant], metric)
            for published in dict.fromkeys(run.variant for run in self._runs):
                theirs = self._means(
                    [run for run in self._runs if run.variant == published], metric
                )
                both = [place for place in own if place in theirs]
                correlation = rank_correlation(
                    [own[place] for place in both], [theirs[place] for place in both]
                )
                results_of_tables.append(
                    Agreement(
                        of(metric), variant, f"{published} of {self.name}", len(both), correlation
                    )
                )
        return results_of_tables

    def with_published(self, runs: Sequence[Run]) -> list[Run]:
        """The measured runs, and the published cells that were measured, as variants named `project
        (published)`; to be compared."""
        self._check(runs)
        measured = {self._place(run) for run in runs}
        swept = {
            name for run in runs for name in run.factors
        }  # a level that was picked there is no axis that both have
        theirs = [
            dataclasses.replace(
                run,
                plan=dataclasses.replace(
                    run.plan,
                    variant=f"{run.variant} (published)",
                    factors={name: level for name, level in run.factors.items() if name in swept},
                ),
            )
            for run in self._runs
            if self._place(run) in measured
        ]
        shared = set(self._factors)
        own = [
            dataclasses.replace(
                run,
                plan=dataclasses.replace(
                    run.plan,
                    factors={name: level for name, level in run.factors.items() if name in shared},
                ),
            )
            for run in runs
        ]
        return [*own, *theirs]

    def add_note(self, comparison: Comparison, runs: Sequence[Run]) -> Comparison:
        """The comparison with what its runs and the published cells have in common, as a note;
        unchanged where that metric wasn't published."""
        if comparison.metric.name not in self.metrics():
            return comparison
        agreement_list = self.agreements(runs, comparison.metric.name)
        alone = len({agreement.variant for agreement in agreement_list}) == 1
        notes = tuple(Warning("published", agreement.words(alone)) for agreement in agreement_list)
        return dataclasses.replace(comparison, warnings=(*comparison.warnings, *notes))

    def _place(self, run: Run) -> Place:
        return tuple(level_text(run.factors.get(name)) for name in self._varying)

    @property
    def _varying(self) -> list[str]:
        return [
            name
            for name in self._factors
            if len({level_text(run.factors.get(name)) for run in self._runs}) > 1
        ]

    def _check(self, runs: Sequence[Run]) -> None:
        swept = {name for run in runs for name in run.factors}
        missing = [name for name in self._varying if name not in swept]
        if missing:
            levels = dict.fromkeys(level_text(run.factors.get(missing[0])) for run in self._runs)
            raise UsageError(
                f"the published cells differ in {', '.join(missing)}, which was not swept here",
                where=self.name,
                hint=f"--published {self._file}:{missing[0]}={next(iter(levels))} takes the cells of one level (of "
                f"{', '.join(levels)})",
            )
        fixed_factors = {
            name for name in swept if len({level_text(run.factors.get(name)) for run in runs}) > 1
        } - set(self._varying)
        if fixed_factors:
            raise UsageError(
                f"the cells measured here differ in {', '.join(sorted(fixed_factors))} too, which the published table lacks",
                where=self.name,
                hint=f"--where {sorted(fixed_factors)[0]}=... picks one level",
            )

    def _means(self, runs: Sequence[Run], metric: str) -> dict[Place, float]:
        """One value for each cell, over its runs that count."""
        values: dict[Place, list[float]] = {}
        for run in runs:
            value = run.value(metric)
            if value is not None and run.verdict.level is not Level.INVALID:
                values.setdefault(self._place(run), []).append(value)
        return {
            place: mean_of(means_by_place, of(metric), 0.95)[0]
            for place, means_by_place in values.items()
        }


def _split(given: Path) -> tuple[Path, list[str]]:
    """`dir/TABLE.csv:disks=1:bs=8k` as the file and its conditions; a file that has such a name is
    itself."""
    name, *conditions = given.name.split(":")
    return (given, []) if not conditions or given.exists() else (given.with_name(name), conditions)
