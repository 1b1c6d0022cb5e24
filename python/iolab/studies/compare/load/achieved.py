# SPDX-License-Identifier: Apache-2.0
"""Requested and achieved compressibility: levels that carry the ratio
achieved on the target."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...results.evidence.model import Run

METRIC = "target.compression"
FACTORS = ("compressibility", "buffer_compress_percentage")
"""Factors that ask for compressible data, in per cent."""


@dataclass(frozen=True)
class AchievedLevel:
    """A level of compressibility as requested, with the compression ratio that the target achieved with
    it."""

    requested: float
    ratio: float

    def __str__(self) -> str:
        return (
            f"{self.requested:g} ({self.ratio:.2f}x)"
            if self.ratio < 9.95
            else f"{self.requested:g} ({self.ratio:.0f}x)"
        )


def with_achieved(runs: Sequence[Run]) -> list[Run]:
    """The runs with compressibility levels that name the achieved ratio, where every level of the
    factor has one.

    The ratio of a level is the geometric mean over all its runs: it names the axis, so it must be
    one for all arms. A file system that stores in units (a sector, a record) achieves in steps
    whatever was asked.
    """
    listed = list(runs)
    for factor in FACTORS:
        ratios = _ratios(listed, factor)
        if ratios:
            listed = [
                dataclasses.replace(
                    run,
                    plan=dataclasses.replace(
                        run.plan,
                        factors={
                            **run.factors,
                            factor: AchievedLevel(
                                float(run.factors[factor]), ratios[float(run.factors[factor])]
                            ),
                        },
                    ),
                )
                for run in listed
            ]
    return listed


def _ratios(runs: Sequence[Run], factor: str) -> dict[float, float]:
    """Asked level to achieved ratio, empty unless every run has the factor as a number and every
    level was observed."""
    ratios: dict[float, list[float]] = {}
    for run in runs:
        level = run.factors.get(factor)
        if not isinstance(level, int | float) or isinstance(level, bool):
            return {}
        value = run.value(METRIC)
        ratios.setdefault(float(level), []).extend(
            [value] if value is not None and value > 0 else []
        )
    if not all(ratios.values()):
        return {}
    return {
        level: math.exp(sum(map(math.log, values)) / len(values))
        for level, values in ratios.items()
    }
