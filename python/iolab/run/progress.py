# SPDX-License-Identifier: Apache-2.0
"""What a study tells whoever watches it; the command line draws it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ..study.load import Study
from ..study.plan import Plan, PlannedRun

Status = Literal["finished", "failed", "interrupted"]


@dataclass(frozen=True)
class Outcome:
    """How a study ended.

    Attributes:
        directory: the results. finished: runs that ended well, those of earlier attempts too;
        failed: in this attempt; left: runs
            that are not done.
        interrupted: whether it was asked to stop.
        seconds: wall time.
    """

    directory: Path
    finished: int
    failed: int
    left: int
    interrupted: bool
    seconds: float


class ProgressListener(Protocol):
    """Hears what happens, in this order: planned, then per run started, waiting..., ended, then
    outcome; noticed any time.

    A resumed study's plan is the whole one; `planned` is followed by the runs that are missing
    alone.
    """

    def planned(self, study: Study, plan: Plan, directory: Path) -> None:
        """Everything is checked, the first run is about to start; `plan.seconds` is the estimate."""
        ...

    def started(self, run: PlannedRun, name: str) -> None:
        """A run starts; `name` is its identity, `0042-1a2b3c4d`."""
        ...

    def waiting(
        self, run: PlannedRun, seconds: float, expected: float, latest: Mapping[str, float]
    ) -> None:
        """A run goes on: seconds since its start, and how long it is expected to take. Several
        times a second.

        `latest`: the sources' newest readings, such as `device.iops`; empty before there are any.
        """
        ...

    def ended(
        self,
        run: PlannedRun,
        status: Status,
        reason: str,
        left_seconds: float,
        values: Mapping[str, float],
    ) -> None:
        """A run ended; `reason` says why where it didn't finish. `left_seconds`: estimate for the
        rest of the study.

        `values`: its main metrics in base units, as they are derived from its evidence; empty where
        it didn't finish.
        """
        ...

    def noticed(self, text: str) -> None:
        """Something worth knowing that stops nothing."""
        ...

    def outcome(self, outcome: Outcome) -> None:
        """The study is over."""
        ...


class Silence:
    """A listener that hears and says nothing."""

    def planned(self, study: Study, plan: Plan, directory: Path) -> None:
        """Nothing."""

    def started(self, run: PlannedRun, name: str) -> None:
        """Nothing."""

    def waiting(
        self, run: PlannedRun, seconds: float, expected: float, latest: Mapping[str, float]
    ) -> None:
        """Nothing."""

    def ended(
        self,
        run: PlannedRun,
        status: Status,
        reason: str,
        left_seconds: float,
        values: Mapping[str, float],
    ) -> None:
        """Nothing."""

    def noticed(self, text: str) -> None:
        """Nothing."""

    def outcome(self, outcome: Outcome) -> None:
        """Nothing."""
