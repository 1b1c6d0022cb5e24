# SPDX-License-Identifier: Apache-2.0
"""How many blocks would decide a change, and which change the existing blocks can find, by the
test that decides the metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iolab.base.stats import exact_power, power
from iolab.base.stats.blocks import MeanInterval
from iolab.base.stats.sessions import SessionInterval


@dataclass(frozen=True)
class Basis:
    """The basis of one decision: the interval, the pairs, and whether the exact test decides, which
    pools nothing over cells."""

    interval: MeanInterval
    differences: Sequence[float] | NDArray[np.float64]
    exact: bool

    @property
    def sd(self) -> float | None:
        """Standard deviation of a pair that the test uses; None where it is not known."""
        if self.interval.equal:
            return 0.0
        sd = self.interval.sd
        if self.exact and sd is not None:
            sd = float(np.std(self.differences, ddof=1))
        return sd if sd is not None and math.isfinite(sd) else None

    @property
    def cells(self) -> float:
        """Cells of that many pairs with pooled variance, by the degrees of freedom."""
        return (
            1.0
            if self.interval.df is None or self.interval.n < 2
            else self.interval.df / (self.interval.n - 1)
        )


def basis_of_sessions(interval: SessionInterval) -> Basis | None:
    """The basis of a comparison of session means, in terms of a paired test with as many pairs as
    an
    arm has sessions: the noise of a pair is that of both sessions, and the degrees of freedom are
    those of both arms. None where no test was made."""
    if interval.p is None or interval.sd is None:
        return None
    paired = MeanInterval(
        interval.mean,
        interval.low,
        interval.high,
        interval.p,
        min(interval.sessions),
        interval.df,
        interval.sd * math.sqrt(2),
        pooled=False,
        equal=interval.sd == 0,
    )
    return Basis(paired, (), exact=False)


def blocks_needed(basis: Basis, level: float) -> int | None:
    """Blocks at which a change as large as the estimate would be found with 80 % power, where the
    test must reach `level`.

    The number depends on the estimate, its noise and the level. It does not depend on the number of
    existing blocks, except that more are needed than those that did not decide. None where 1000 do
    not suffice, or where the noise is not known.
    """
    if basis.sd is None or basis.interval.mean == 0:
        return None
    if basis.interval.equal:
        # the sign test decides
        needed: int | None = math.ceil(1 - math.log2(level) - 1e-9)
    elif basis.exact:
        needed = exact_power.blocks_needed(basis.interval.mean, basis.sd, alpha=level)
    else:
        needed = power.blocks_needed(basis.interval.mean, basis.sd, alpha=level, cells=basis.cells)
    return None if needed is None else max(needed, basis.interval.n + 1)


def detectable(bases: Sequence[Basis], level: float) -> float | None:
    """The smallest effect that a cell of median noise and blocks finds with 80 % power; None where
    it has too few blocks for its test."""
    repeated = [
        (basis.sd, basis.interval.n, basis.cells)
        for basis in bases
        if basis.sd is not None and basis.interval.n >= 2
    ]
    if not repeated:
        return None
    sd, blocks, cells = (float(value) for value in np.median(np.array(repeated), axis=0))
    if bases[0].exact:
        return exact_power.detectable(sd, int(blocks), level)
    return power.detectable(sd, int(blocks), level, cells=cells)
