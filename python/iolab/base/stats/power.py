# SPDX-License-Identifier: Apache-2.0
"""How many blocks an effect needs, and which effect a number of blocks can find, by the paired t
test. `exact_power` answers both for the exact test.

Effects and standard deviations are in the unit of the differences: of logarithms for a ratio, so
that 10 % more is log(1.1). Source of the formulas: the noncentral t distribution; Cohen (1988),
"Statistical Power Analysis".
"""

from __future__ import annotations

import math

import scipy


def _check(sd: float, alpha: float) -> None:
    if not (math.isfinite(sd) and sd >= 0):
        raise ValueError("a standard deviation is finite and not negative")
    if not 0 < alpha < 1:
        raise ValueError("alpha must be between 0 and 1")


def power_of(effect: float, sd: float, n: int, alpha: float = 0.05, cells: float = 1.0) -> float:
    """Probability that a two-sided paired t test over `n` blocks finds `effect` at level `alpha`.

    Args:
        effect: true mean difference; sd: standard deviation of a single pair's difference.
        cells: how many cells of that many blocks the variance is pooled over: it has `cells` (n -
            1) degrees of freedom.

    Returns:
        nan below two blocks, where there is no test; alpha for an effect of zero; 1 without any
        noise.

    Raises:
        ValueError: the standard deviation is negative or not finite, or alpha not between 0 and 1.
    """
    _check(sd, alpha)
    if n < 2 or math.isnan(effect):
        return math.nan
    if sd == 0:
        return alpha if effect == 0 else 1.0
    df = (n - 1) * cells
    shift = abs(effect) / sd * math.sqrt(n)
    limit = float(scipy.special.stdtrit(df, 1 - alpha / 2))
    missed, wrong_side = _below(df, shift, limit), _below(df, shift, -limit)
    return min(max(1 - missed + wrong_side, 0.0), 1.0)


def _below(df: float, shift: float, limit: float) -> float:
    """P(T <= limit) of the noncentral t distribution.

    Far in its lower tail the library's function underflows to nan (seen below -limit from a shift
    of 4 on, and above it only where the shift exceeds the limit by more than 30): the probability
    is nothing there.
    """
    probability = float(scipy.special.nctdtr(df, shift, limit))
    return 0.0 if math.isnan(probability) else probability


def blocks_needed(
    effect: float,
    sd: float,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    most: int = 1000,
    cells: float = 1.0,
) -> int | None:
    """Smallest number of blocks at which a two-sided paired t test finds `effect` with probability
    `power`.

    `alpha` is the level that this one test must reach: in a sweep of k tests, alpha / k where
    nothing else differs. `cells` as for `power_of`.

    Returns:
        At least 2; None where `most` blocks do not suffice, or where there is no effect to find.

    Raises:
        ValueError: as `power_of`, or `power` not between 0 and 1.
    """
    _check(sd, alpha)
    if not 0 < power < 1:
        raise ValueError("power must be between 0 and 1")
    if effect == 0 or math.isnan(effect) or power_of(effect, sd, most, alpha, cells) < power:
        return None
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(effect, sd, middle, alpha, cells) >= power:
            high = middle
        else:
            low = middle
    return high


def detectable(
    sd: float, n: int, alpha: float = 0.05, power: float = 0.8, cells: float = 1.0
) -> float | None:
    """Smallest effect that `n` blocks find with probability `power` at level `alpha`; None below
    two blocks. `cells` as for `power_of`.

    Raises:
        ValueError: as `blocks_needed`.
    """
    _check(sd, alpha)
    if not alpha < power < 1:
        raise ValueError("power must be between alpha and 1")
    if n < 2:
        return None
    if sd == 0:
        return 0.0

    def missing(effect: float) -> float:
        return power_of(effect, 1.0, n, alpha, cells) - power

    high = 1.0
    while missing(high) < 0:
        high *= 2
    return sd * float(scipy.optimize.brentq(missing, 0.0, high, xtol=1e-9))
