# SPDX-License-Identifier: Apache-2.0
"""A run's main numbers for the progress display, by `derive`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ... import metrics, registry
from ...errors import FormatError
from ...results.derive.derive import derive
from ...results.evidence.files import read_plan


def warm_up() -> None:
    """Load the plugins of `headline`, so that this does not happen during the second run."""
    registry.load_all("gate")
    registry.load_all("format")


def headline(run_dir: Path) -> Mapping[str, float]:
    """Headline metrics in base units; empty if the evidence has none."""
    try:
        observations = derive(run_dir, read_plan(run_dir)).observations
    except FormatError:
        return {}
    return {
        observation.metric: observation.value
        for observation in observations
        if (metric := metrics.find(observation.metric)) is not None and metric.headline
    }
