# SPDX-License-Identifier: Apache-2.0
"""A run's main numbers for whoever watches the study, by the one road from files to numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .. import metrics, registry
from ..errors import FormatError
from ..results.derive.derive import derive
from ..results.evidence.files import read_plan


def warm_up() -> None:
    """Load what `headline` needs, so that the first run's reading doesn't do it beside the second
    run's start."""
    registry.load_all("gate")
    registry.load_all("format")


def headline(run_dir: Path) -> Mapping[str, float]:
    """Metrics that a report shows unasked, base units; none where the evidence yields none."""
    try:
        found = derive(run_dir, read_plan(run_dir)).observations
    except FormatError:
        return {}
    return {
        one.metric: one.value
        for one in found
        if (known := metrics.find(one.metric)) is not None and known.headline
    }
