# SPDX-License-Identifier: Apache-2.0
"""The looks of a study that ends once its rules are decided: runs that are needed, and results of
looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab.base.errors import ResultsError, RunError, UsageError

from ...plan.cells.plan import PlannedRun
from ...plan.file.load import Study
from ...results.open.results import Results
from .journal import Journal

if TYPE_CHECKING:
    from iolab.base.stats.sequential import Look

    from ...compare.rules.check import Check
    from ...compare.rules.sequential import Until


class Looks:
    """Which blocks of a study are needed. Every block, unless the study has an `until`.

    The boundaries follow from the manifest, and the last look from the journal: a resumed study
    continues with the same ones. A decision is final, even if a failed run is repeated after it.
    """

    def __init__(
        self,
        study: Study,
        directory: Path,
        journal: Journal,
        notice: Callable[[str], None],
        events: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """`events`: of the journal of earlier attempts."""
        self._until: Until | None = study.until
        self._directory, self._journal, self._notice = directory, journal, notice
        self._done, self._is_decided = 0, False
        for event in events:
            number = event.get("look")
            if event["event"] == "look" and isinstance(number, int):
                self._done = number
                self._is_decided = event.get("outcome") != "inconclusive"

    @property
    def is_open(self) -> bool:
        """Whether a look is to come."""
        return (
            self._until is not None
            and not self._is_decided
            and self._done < len(self._until.design.looks)
        )

    def needs(self, run: PlannedRun) -> bool:
        """Whether a run is needed, by the looks so far."""
        if self._until is None or run.profile:
            return True
        return run.block <= self._until.design.looks[max(0, self._done - (not self.is_open))]

    def select(self, runs: Iterable[PlannedRun]) -> list[PlannedRun]:
        """Those of the runs that are needed."""
        return [run for run in runs if self.needs(run)]

    def take(self) -> None:
        """Look at the results, once the runs that are needed are done; the journal has the look.

        Raises RunError where the rules cannot be checked, such as for a metric that no run has.
        """
        from iolab.base.stats.sequential import Look

        assert self._until is not None
        look = Look(self._until.design, self._done + 1)
        check = self._check(self._until, look)
        self._journal.write(
            "look",
            look=look.number,
            blocks=look.blocks,
            level=look.level,
            outcome=check.outcome,
            rules={str(rule.rule): rule.outcome for rule in check.rules},
        )
        self._done, self._is_decided = look.number, check.outcome != "inconclusive"
        listed = ", ".join(f"{rule.rule}: {rule.outcome}" for rule in check.rules)
        following = "" if self.is_open or self._is_decided else "; undecided, and no further look"
        self._notice(
            f"look {look.number} of {len(look.design.looks)}, {look.blocks} of at most "
            f"{self._until.at_most} blocks: {listed}{following}"
        )

    def _check(self, until: Until, look: Look) -> Check:
        from ...compare.rules.check import check

        try:
            results = Results(self._directory)
            return check(results.runs, until.rules, baseline=results.baseline, look=look)
        except (UsageError, ResultsError) as error:
            raise RunError(
                f"the rules cannot be checked after block {look.blocks}: {error}",
                hint="what was measured is kept; run a corrected study into another directory with -o",
            ) from None
