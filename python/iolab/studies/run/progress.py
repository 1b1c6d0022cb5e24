# SPDX-License-Identifier: Apache-2.0
"""Progress of a study, as events for a listener; the command line shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ..plan.cells.plan import Plan, PlannedRun
from ..plan.file.load import Study

Status = Literal["finished", "failed", "interrupted"]


@dataclass(frozen=True)
class Outcome:
    """How a study ended.

    Attributes:
        directory: the results. finished: runs that ended well, those of earlier attempts too;
        failed: in this attempt; remaining: runs that are not done.
        interrupted: whether a user stopped it.
        seconds: wall time.
    """

    directory: Path
    finished: int
    failed: int
    remaining: int
    interrupted: bool
    seconds: float


class ProgressListener(Protocol):
    """Is called in this order: `begin_study`; for each run `begin_run`, `update_run` several times
    a second, `end_run`; then `outcome`; `notice` at any time.

    A resumed study's plan has all runs; only the missing ones follow `begin_study`.
    """

    def begin_study(self, study: Study, plan: Plan, directory: Path) -> None:
        """Everything is checked, the first run is about to start; `plan.seconds` is the estimate."""

    def begin_run(self, run: PlannedRun, name: str) -> None:
        """A run starts; `name` is its identity, `0042-1a2b3c4d`."""

    def update_run(
        self, run: PlannedRun, seconds: float, expected: float, latest: Mapping[str, float]
    ) -> None:
        """Seconds since the run's start, and its expected duration.

        `latest`: the sources' newest readings, such as `device.iops`; empty before the first.
        """

    def end_run(
        self,
        run: PlannedRun,
        status: Status,
        reason: str,
        left_seconds: float,
        values: Mapping[str, float],
    ) -> None:
        """A run ended; `reason`: why it did not finish. `left_seconds`: estimate for the rest of
        the study.

        `values`: its main metrics in base units, derived from its evidence; empty if it did not
        finish.
        """

    def notice(self, text: str) -> None:
        """Something worth knowing that stops nothing."""

    def outcome(self, outcome: Outcome) -> None:
        """The study is over."""


class Silence:
    """A listener that hears and says nothing."""

    def begin_study(self, study: Study, plan: Plan, directory: Path) -> None:
        """Nothing."""

    def begin_run(self, run: PlannedRun, name: str) -> None:
        """Nothing."""

    def update_run(
        self, run: PlannedRun, seconds: float, expected: float, latest: Mapping[str, float]
    ) -> None:
        """Nothing."""

    def end_run(
        self,
        run: PlannedRun,
        status: Status,
        reason: str,
        left_seconds: float,
        values: Mapping[str, float],
    ) -> None:
        """Nothing."""

    def notice(self, text: str) -> None:
        """Nothing."""

    def outcome(self, outcome: Outcome) -> None:
        """Nothing."""
