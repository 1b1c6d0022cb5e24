"""What the report needs of results: the part of `iolab.results.open.results.Results` that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ...results.evidence.completeness import Standing
from ...results.evidence.manifest import Manifest
from ...results.evidence.model import Histogram, Run, Series


class Source(Protocol):
    """Results as the report reads them."""

    @property
    def path(self) -> Path:
        """The results directory."""
        ...

    @property
    def manifest(self) -> Manifest:
        """Name, origin, variants and factors."""
        ...

    @property
    def standing(self) -> Standing | None:
        """How much of its study is there; None where that isn't known."""
        ...

    @property
    def runs(self) -> Sequence[Run]:
        """Every run, in order of execution."""
        ...

    def metrics(self) -> list[str]:
        """Metrics observed, in report order."""
        ...

    def series(self, run_id: str) -> Sequence[Series]:
        """A run's per-second series; empty where there are none."""
        ...

    def histograms(self, run_id: str) -> tuple[Histogram, ...]:
        """A run's latency histograms; empty where there are none."""
        ...

    def step_runs(self) -> list[Run]:
        """Steps of rising loads, as runs; ResultsError where there are none."""
        ...

    def window_runs(self) -> list[Run]:
        """Windows between marks, as runs; ResultsError where there are none."""
        ...

    def environment(self) -> dict[str, Any]:
        """`{"fingerprint": ..., "facts": ...}` of the host, or empty."""
        ...

    def environments(self) -> Mapping[str, dict[str, Any]]:
        """The same of each host; that of a single one under an empty name."""
        ...
