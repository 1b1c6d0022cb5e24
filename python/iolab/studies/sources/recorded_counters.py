# SPDX-License-Identifier: Apache-2.0
"""The machine's counters into the study's recording, with its I/O: `counters.log` of the run says
that they came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from .recorded import RecordedSource


class RecordedCounters(RecordedSource):
    """Counters of disks, CPUs, memory, network and OpenZFS, once a second, for statistics such as
    cpu.utilization and arc.hit_ratio."""

    name: ClassVar[str] = "counters"

    def count_lines(self, status: Mapping[str, object]) -> list[str]:
        """Readings since recording began."""
        samples = status.get("samples")
        return [f"samples {samples if isinstance(samples, int) and samples >= 0 else 0}\n"]

    def live(
        self, passed: float, before: Mapping[str, float], now: Mapping[str, float]
    ) -> Mapping[str, float]:
        """Nothing that a reader of one run would look for."""
        return {}
