# SPDX-License-Identifier: Apache-2.0
"""Intervals of ratios whose ends mean nothing as numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.verdict import Verdict
from iolab.studies.compare.compare import compare
from iolab.studies.compare.model import Change
from iolab.studies.compare.render.words import factors_text
from iolab.studies.results.evidence.model import Observation, Run, RunPlan


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1.2e-7 - 1, 963_057_486.0, "[< x 0.001, > x 1000]"),
        (0.011 - 1, 249.0, "[x 0.011, x 250]"),
        (-0.5, 0.5, ""),
    ],
)
def test_ends_beyond_a_thousandfold(low: float, high: float, words: str) -> None:
    run = Run(
        RunPlan(run="0001-00000000", variant="a", factors={}, repetition=1, block=1),
        Path("/nowhere"),
        {"write.iops": Observation("write.iops", 1.0, "1/s", "f", "x", 1.0, "1/s")},
        Verdict.of([], judged=True),
        {},
        (),
    )
    comparison = compare([run], "write.iops")
    assert factors_text(Change(0.1, low, high, 2, 0), comparison) == words
