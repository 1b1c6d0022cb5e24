# SPDX-License-Identifier: Apache-2.0
"""Which effect the exact test finds in how many blocks (see `exact.sign_flip_p`).

Differences are taken as normal about the effect. With few blocks, or few assignments of signs that
decide, the test itself is run over simulated pairs, with a fixed seed. Otherwise its power is that
of the t test at the level that the exact test can reach.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from . import power as of_t
from .arrays import Floats
from .exact import ALL_SIGNS_UP_TO, DRAWS, LEAST_PAIRS

FEW_BLOCKS, FEW_ASSIGNMENTS = 10, 32
"""With more of both the t test's power is within two points of a simulation's."""

_STUDIES, _SEED = 1000, 1935
_HIGHEST, _STEPS = 4.0, 10
"""Effects are searched up to four standard deviations, which every test finds that can reach its
level, to a precision of 0.004."""


def blocks_needed(
    effect: float, sd: float, *, alpha: float = 0.05, power: float = 0.8, most: int = 1000
) -> int | None:
    """Smallest number of blocks at which the exact test finds `effect` with probability `power`;
    arguments as for `power.blocks_needed`.

    Pairs that are all equal (`sd` 0) are found as soon as the test can reach `alpha` at all.
    """
    if effect == 0 or math.isnan(effect):
        return None
    return next(
        (n for n in range(LEAST_PAIRS, most + 1) if _is_found(abs(effect), sd, n, alpha, power)),
        None,
    )


def detectable(sd: float, n: int, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """Smallest effect that the exact test finds in `n` blocks with probability `power`; None where
    it cannot reach `alpha` at all."""
    reachable = reachable_level(n, alpha)
    if reachable is None:
        return None
    if _is_simulated(n, reachable):
        return sd * _least_effect(n, round(reachable * 2 ** (n - 1)), power)
    return of_t.detectable(sd, n, reachable, power)


def reachable_level(n: int, alpha: float) -> float | None:
    """The largest p value of `n` pairs that is at most `alpha`; None where there is none."""
    if n < LEAST_PAIRS:
        return None
    steps = 2 ** (n - 1) if n <= ALL_SIGNS_UP_TO else DRAWS + 1
    reached = math.floor(alpha * steps + 1e-9)
    return reached / steps if reached else None


def _is_found(effect: float, sd: float, n: int, alpha: float, power: float) -> bool:
    reachable = reachable_level(n, alpha)
    if reachable is None or of_t.power_of(effect, sd, n, alpha) < power - 0.05:
        # it finds no more than the t test
        return False
    if _is_simulated(n, reachable):
        return sd * _least_effect(n, round(reachable * 2 ** (n - 1)), power) <= effect
    return of_t.power_of(effect, sd, n, reachable) >= power


def _is_simulated(n: int, reachable: float) -> bool:
    return n <= FEW_BLOCKS or (n <= ALL_SIGNS_UP_TO and reachable * 2 ** (n - 1) < FEW_ASSIGNMENTS)


@cache
def _least_effect(n: int, reached: int, power: float) -> float:
    """The effect, in standard deviations, at which a share `power` of simulated studies has at most
    `reached` assignments of signs with a mean as far from zero."""
    noise = np.random.default_rng(_SEED).standard_normal((_STUDIES, ALL_SIGNS_UP_TO))[:, :n]
    # the first sign stays, as in the test
    signs = np.array(
        [
            [1.0, *(1 - 2 * (number >> place & 1) for place in range(n - 1))]
            for number in range(2 ** (n - 1))
        ]
    )
    low, high = 0.0, _HIGHEST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if _share(noise + middle, signs, reached) >= power else (middle, high)
        )
    return high


def _share(pairs: Floats, signs: Floats, reached: int) -> float:
    far = np.abs(pairs.sum(axis=1)) - 1e-12 * np.abs(pairs).sum(axis=1)
    return float(np.mean((np.abs(pairs @ signs.T) >= far[:, None]).sum(axis=1) <= reached))
