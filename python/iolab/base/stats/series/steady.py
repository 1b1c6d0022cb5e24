# SPDX-License-Identifier: Apache-2.0
"""Whether a window is steady: throughput that still drifts measures the warm-up."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Values

ROUNDS = 5
"""Rounds of the measurement window, as in the SNIA specification."""

LEAST_SAMPLES = 10
"""Two samples a round: below, nothing can be said."""

RANGE_LIMIT = 0.20
SLOPE_LIMIT = 0.10
HALVES_LIMIT = 1.10


@dataclass(frozen=True)
class Steadiness:
    """How steady a window is.

    Attributes:
        ok: range, slope and halves all within their limits.
        range_share: largest minus smallest round, as a share of the mean (limit 0.20).
        slope_share: rise or fall of the best-fit line from the first round to the last, as a share
        of the mean,
            without sign (limit 0.10).
        halves_ratio: mean of the second half over mean of the first (limit 1.10 either way); inf
        where the first is 0. n: samples that were known.
    """

    ok: bool
    range_share: float
    slope_share: float
    halves_ratio: float
    n: int


def steady(values: Values) -> Steadiness | None:
    """The steady-state test of SNIA's performance test specification, on samples per second.

    SNIA's rounds are runs of a minute each; seconds are far noisier (a file system that writes in
    bursts of five seconds would never be steady by the second). So the window is cut into five
    rounds of equal length, and their means are judged: they stay within 20 % of their average, and
    the line fitted to them rises or falls by at most 10 % of it. In addition, the halves of the
    window are compared. Rounds hide bursts that are short against them; of bursts so long that a
    round holds two or three, one more or less moves its mean, and the window is too short to call
    steady.

    Args:
        values: samples of equal length in order of time, shape (n,); nan where nothing is known,
        which is left out.

    Returns:
        None with fewer than ten known samples or an average that is not above zero: nothing can be
        said.

    Source: SNIA Solid State Storage Performance Test Specification 2.0.2, definition of "Steady
    State".
    """
    samples = np.asarray(values, dtype=np.float64)
    finite_samples = samples[np.isfinite(samples)]
    if len(finite_samples) < LEAST_SAMPLES:
        return None
    average = float(finite_samples.mean())
    if average <= 0:
        return None
    rounds = np.array([part.mean() for part in np.array_split(finite_samples, ROUNDS)])
    range_share = float(np.ptp(rounds)) / average
    slope = float(np.polyfit(np.arange(ROUNDS), rounds, 1)[0])
    slope_share = abs(slope) * (ROUNDS - 1) / average
    middle = len(finite_samples) // 2
    first, second = float(finite_samples[:middle].mean()), float(finite_samples[-middle:].mean())
    halves_ratio = second / first if first > 0 else math.inf
    halves_agree = 1 / HALVES_LIMIT <= halves_ratio <= HALVES_LIMIT
    ok = range_share <= RANGE_LIMIT and slope_share <= SLOPE_LIMIT and halves_agree
    return Steadiness(ok, range_share, slope_share, halves_ratio, len(finite_samples))
