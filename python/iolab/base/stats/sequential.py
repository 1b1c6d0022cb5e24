# SPDX-License-Identifier: Apache-2.0
"""Group sequential tests: the same test at several looks, with one stated error for all of them.

A test that is repeated at alpha after every few blocks rejects far too often. An alpha spending
function says how much of the error may be used up to each share of the blocks, and from that
follows the level of each look. The looks are planned before the first run, so that no result moves
them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import scipy

from .arrays import Floats

Spending = Literal["pocock", "obrien-fleming"]
SPENDINGS: tuple[Spending, ...] = get_args(Spending)

LEAST_BLOCKS = 3
"""Blocks at the first look of a t test: two leave a single degree of freedom."""

LOOKS = 5
"""Looks of a study, if it has blocks enough."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(128)
"""Of the integration over paths that continue."""
_WIDTH = 8.0
"""Standard deviations below zero at which the integration begins."""
_LOWEST, _STEPS = 1e-9, 96
"""Smallest repeated p value that is distinguished, and steps of the table from it up to 1/2."""


@dataclass(frozen=True)
class Design:
    """The looks of a study that ends once it is decided.

    Attributes:
        looks: number of blocks at each look, rising; the last one is the largest possible number.
        alpha: one-sided error over all looks. spending: how it is used up.
    """

    looks: tuple[int, ...]
    alpha: float = 0.05
    spending: Spending = "pocock"

    def __post_init__(self) -> None:
        if not self.looks or list(self.looks) != sorted({*self.looks}) or self.looks[0] < 1:
            raise ValueError("looks are rising numbers of blocks")
        if not 0 < self.alpha < 0.5:
            raise ValueError("alpha is between 0 and 0.5")
        if self.spending not in SPENDINGS:
            raise ValueError(f"no spending function is called {self.spending}")

    def levels(self) -> tuple[float, ...]:
        """The one-sided level of the test at each look."""
        return _levels(self.looks, self.alpha, self.spending)

    def repeated_p(self, look: int, p: float) -> float:
        """The smallest alpha at which the test of a look (from 1) rejects, for its p value.

        It is at most alpha exactly where p is at most the level of the look. It may be corrected
        for
        several tests as any p value: the chance that it ever falls to x is at most x, over all
            looks.

        Source: Jennison & Turnbull (2000), "Group Sequential Methods", section 9.4.
        """
        alphas, levels = _table(self.looks, self.alpha, self.spending, look)
        if p >= levels[-1]:
            return 1.0
        if p <= levels[0]:
            return float(alphas[0])
        return float(math.exp(np.interp(math.log(p), np.log(levels), np.log(alphas))))


@dataclass(frozen=True)
class Look:
    """One look of a design, from 1; 0 is before the first."""

    design: Design
    number: int

    @property
    def blocks(self) -> int:
        """Blocks that count at this look."""
        return self.design.looks[self.number - 1] if self.number else 0

    @property
    def is_last(self) -> bool:
        """Whether the study ends here, decided or not."""
        return self.number == len(self.design.looks)

    @property
    def level(self) -> float:
        """One-sided level of the test at this look; alpha before the first."""
        return self.design.levels()[self.number - 1] if self.number else self.design.alpha

    def repeated_p(self, p: float) -> float:
        """See `Design.repeated_p`."""
        return self.design.repeated_p(self.number, p)


def spent(share: float, alpha: float, spending: Spending) -> float:
    """The error that may be used up to a share (above 0, up to 1) of the blocks.

    Source: Lan & DeMets (1983), "Discrete sequential boundaries for clinical trials".
    """
    if spending == "pocock":
        return alpha * math.log1p((math.e - 1) * share)
    return 2 * float(scipy.special.ndtr(scipy.special.ndtri(alpha / 2) / math.sqrt(share)))


def plan_looks(
    most: int, alpha: float, spending: Spending, *, is_exact: bool, count: int = LOOKS
) -> tuple[int, ...] | None:
    """Numbers of blocks at which a study of at most `most` blocks is looked at; None where no
    number up to `most` can decide.

    An exact test of n pairs has no p value below 2^-n. Its first look is at the smallest number of
    blocks at which the level can be reached: earlier looks would spend error for nothing. The
    others follow in about equal steps.
    """
    first = next(
        (
            blocks
            for blocks in range(min(LEAST_BLOCKS, most), most + 1)
            if blocks >= 2
            and (not is_exact or 2.0**-blocks <= spent(blocks / most, alpha, spending))
        ),
        None,
    )
    if first is None:
        return None
    return tuple(sorted({round(value) for value in np.linspace(first, most, count)}))


@lru_cache(maxsize=4096)
def _levels(looks: tuple[int, ...], alpha: float, spending: Spending) -> tuple[float, ...]:
    return tuple(
        float(scipy.special.ndtr(-bound))
        for bound in boundaries(
            [look / looks[-1] for look in looks],
            [spent(look / looks[-1], alpha, spending) for look in looks],
        )
    )


@lru_cache(maxsize=64)
def _table(
    looks: tuple[int, ...], alpha: float, spending: Spending, look: int
) -> tuple[Floats, Floats]:
    """Alphas in rising order, `alpha` among them, and the level of the look under each."""
    alphas = np.unique([*np.geomspace(_LOWEST, 0.499, _STEPS), alpha])
    shares = [blocks / looks[-1] for blocks in looks[:look]]
    bounds = [
        boundaries(shares, [spent(share, float(x), spending) for share in shares])[-1]
        for x in alphas
    ]
    levels = scipy.special.ndtr(-np.array(bounds))
    return alphas, np.maximum.accumulate(np.maximum(levels, np.finfo(float).tiny))


def boundaries(shares: Sequence[float], errors: Sequence[float]) -> list[float]:
    """Upper bounds of a standardised sum at each look; inf where nothing may be spent.

    Args:
        shares: of the information, rising up to 1. errors: one-sided error used up to each look.

    The density of the sum of a path that has crossed no bound is integrated from look to look, and
    the bound of each look is where the share of crossing paths is the error that the look may
    spend.

    Source: Armitage, McPherson & Rowe (1969), "Repeated significance tests on accumulating data";
    Lan & DeMets (1983).
    """
    bounds: list[float] = []
    places, masses = np.zeros(1), np.ones(1)
    before = used = 0.0
    for share, error in zip(shares, errors, strict=True):
        step = math.sqrt(share - before)
        budget = error - used

        def excess(
            bound: float, places: Floats = places, masses: Floats = masses, step: float = step
        ) -> float:
            return float(masses @ scipy.special.ndtr((places - bound) / step))

        top = 40.0 * math.sqrt(share)
        lowest = -_WIDTH * math.sqrt(share)
        bound = top
        if excess(top) < budget:
            bound = float(
                scipy.optimize.brentq(
                    lambda x, budget=budget: excess(x) - budget, lowest, top, xtol=1e-10
                )
            )
        bounds.append(math.inf if bound == top else bound / math.sqrt(share))
        upper = min(bound, _WIDTH * math.sqrt(share))
        following = (upper - lowest) / 2 * _NODES + (upper + lowest) / 2
        density = (
            np.exp(-(((following[:, None] - places) / step) ** 2) / 2)
            / (step * math.sqrt(2 * math.pi))
        ) @ masses
        places, masses = following, density * _WEIGHTS * (upper - lowest) / 2
        before, used = share, error
    return bounds
