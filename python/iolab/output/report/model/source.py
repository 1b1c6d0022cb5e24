# SPDX-License-Identifier: Apache-2.0
"""What the report needs of results: the part of `iolab.studies.results.open.results.Results` that it reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from iolab.studies.results.evidence.completeness import Standing
from iolab.studies.results.evidence.manifest import Manifest
from iolab.studies.results.evidence.model import Histogram, Run, Series
from iolab.studies.results.open.profiles import Profile

Progress = Callable[[str], object]
"""Called with what is done next, as a phrase such as "comparing write.iops"."""


class Source(Protocol):
    """Results as the report reads them."""

    @property
    def path(self) -> Path:
        """The results directory, or the directory that all of several are below."""

    @property
    def manifest(self) -> Manifest:
        """Name, origin, variants and factors."""

    @property
    def standing(self) -> Standing | None:
        """How much of its study is there; None where that isn't known."""

    @property
    def runs(self) -> Sequence[Run]:
        """Every run, in order of execution."""

    def metrics(self) -> list[str]:
        """Metrics observed, in report order."""

    def series(self, run_id: str) -> Sequence[Series]:
        """A run's per-second series; empty where there are none."""

    def histograms(self, run_id: str) -> tuple[Histogram, ...]:
        """A run's latency histograms; empty where there are none."""

    def step_runs(self) -> list[Run]:
        """Steps of rising loads, as runs; ResultsError where there are none."""

    def window_runs(self) -> list[Run]:
        """Windows between marks, as runs; ResultsError where there are none."""

    def home(self, run: Run) -> Path:
        """The results directory of a run: that of its host, where results are of several hosts."""

    def profiles(self) -> tuple[list[Profile], list[str]]:
        """Profiles in order of their runs, and notes on those that cannot be read."""

    def environments(self) -> Mapping[str, dict[str, Any]]:
        """`{"fingerprint": ..., "facts": ...}` of each host or results directory, by the name
        before the names of its runs; that of a single one under an empty name."""

    def manifests(self) -> Mapping[str, Manifest]:
        """The manifest of each results directory by its label; that of a single one under an empty
        name."""


class Shown:
    """Results as the report reads them, with the runs of some variants alone."""

    def __init__(self, results: Source, variants: Collection[str]) -> None:
        self._results, self._variants = results, frozenset(variants)
        self.runs: Sequence[Run] = self._of(results.runs)

    def _of(self, runs: Sequence[Run]) -> list[Run]:
        return [run for run in runs if run.variant in self._variants]

    def step_runs(self) -> list[Run]:
        """See `Source.step_runs`."""
        return self._of(self._results.step_runs())

    def window_runs(self) -> list[Run]:
        """See `Source.window_runs`."""
        return self._of(self._results.window_runs())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._results, name)
