# SPDX-License-Identifier: Apache-2.0
"""A mean against a bound that is not zero: one-sided tests, and the correction for many of them.

"No regression" is a finding that a test supports, and not the absence of a significant change. The
null hypothesis is that the mean is at the bound or beyond it; a small p says that it is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy

from .arrays import Floats, Values, finite
from .exact import ALL_SIGNS_UP_TO, signed_sums

ALL_SESSIONS_UP_TO = 20_000
"""Up to here all assignments of sessions to arms are counted; above, a sample of them."""

_SEED = 4045


@dataclass(frozen=True)
class MarginTest:
    """Two one-sided tests of a mean against a bound.

    Attributes:
        above: p value of "the mean is at most the bound": small where the mean is above it.
        below: p value of "the mean is at least the bound": small where the mean is below it.
    """

    above: float
    below: float


def t_margin(mean: float, error: float, df: float, bound: float) -> MarginTest:
    """One-sided t tests of a mean with a standard error above zero.

    Source: Schuirmann (1987), "A comparison of the two one-sided tests procedure and the power
    approach for assessing the equivalence of average bioavailability".
    """
    t = (mean - bound) / error
    return MarginTest(float(scipy.special.stdtr(df, -t)), float(scipy.special.stdtr(df, t)))


def sign_margin(mean: float, count: int, bound: float) -> MarginTest:
    """One-sided sign tests of `count` pairs that are all equal to `mean`."""
    if mean == bound:
        return MarginTest(1.0, 1.0)
    p = 2.0**-count
    return MarginTest(p, 1.0) if mean > bound else MarginTest(1.0, p)


def sign_flip_margin(values: Values, bound: float) -> MarginTest:
    """Exact one-sided tests of the mean of pairs, without a distribution but symmetry about the
    bound.

    Args:
        values: paired differences, shape (pairs,), at least one.

    Raises:
        ValueError: a value is nan or infinite.

    Source: Fisher (1935), "The Design of Experiments", section 21; above 16 pairs with drawn signs,
    Phipson & Smyth (2010).
    """
    pairs = finite(values, "pairs") - bound
    size, total = np.abs(pairs), float(pairs.sum())
    slack = 1e-12 * float(size.sum())
    return _shares(signed_sums(size), total, slack, drawn=len(pairs) > ALL_SIGNS_UP_TO)


def share_margin(broken: int, count: int, share: float) -> MarginTest:
    """Exact tests of the share of blocks that break a bound, of which `broken` of `count` do.

    A quantile keeps a bound where at most that share of blocks breaks it, so that no distribution of
    their values is assumed: `above` is the p value of "more than the share break it", `below` that
    of "at most the share does".

    Source: Clopper & Pearson (1934), "The use of confidence or fiducial limits illustrated in the
    case of the binomial".
    """
    fewer = float(scipy.special.bdtr(broken, count, share))
    more = 1.0 if broken == 0 else float(scipy.special.bdtrc(broken - 1, count, share))
    return MarginTest(fewer, more)


def unseen_share(count: int, confidence: float = 0.95) -> float:
    """The largest share of blocks with a trouble that none of `count` blocks shows, at the
    confidence: about 3 / count.

    Source: Hanley & Lippman-Hand (1983), "If nothing goes wrong, is everything all right?".
    """
    return 1 - (1 - confidence) ** (1 / count) if count else 1.0


def blocks_for_share(broken: int, share: float, level: float, most: int = 1000) -> int | None:
    """Blocks at which `share_margin` with that many broken ones says that the bound is kept; None
    above `most`."""
    return next(
        (n for n in range(broken + 1, most + 1) if scipy.special.bdtr(broken, n, share) <= level),
        None,
    )


def permutation_margin(first: Values, second: Values, bound: float) -> MarginTest:
    """Exact one-sided tests of the difference of two arms (second minus first) over session means.

    Args:
        first, second: session means of each arm.

    Raises:
        ValueError: an arm is empty, or a value is nan or infinite.

    Source: Fisher (1935); Phipson & Smyth (2010).
    """
    before, after = finite(first, "sessions"), finite(second, "sessions") - bound
    if not len(before) or not len(after):
        raise ValueError("each arm needs a session")
    every = np.concatenate([before, after])
    every = every - every.mean()
    total = float(every[len(before) :].sum())
    slack = 1e-12 * float(np.abs(every).sum())
    if math.comb(len(every), len(after)) <= ALL_SESSIONS_UP_TO:
        places = np.array(list(combinations(range(len(every)), len(after))))
        return _shares(every[places].sum(axis=1), total, slack, drawn=False)
    random = np.random.default_rng(_SEED)
    sums: Floats = np.array(
        [random.permutation(every)[: len(after)].sum() for _ in range(ALL_SESSIONS_UP_TO)],
        np.float64,
    )
    return _shares(sums, total, slack, drawn=True)


def _shares(sums: Floats, total: float, slack: float, *, drawn: bool) -> MarginTest:
    """Shares of the sums that are at least as large, and at most as large, as the observed one.
    Ties count."""
    larger, smaller = int(np.sum(sums >= total - slack)), int(np.sum(sums <= total + slack))
    if drawn:
        return MarginTest((larger + 1) / (len(sums) + 1), (smaller + 1) / (len(sums) + 1))
    return MarginTest(larger / len(sums), smaller / len(sums))


def sessions_needed(
    distance: float, sd: float, first: int, level: float, *, power: float = 0.8, most: int = 1000
) -> int | None:
    """Sessions of the second arm at which a one-sided t test at `level` finds a distance from the
    bound with probability `power`. The first arm has `first` sessions. None: `most` do not suffice.

    Args:
        sd: standard deviation of a session mean, above zero.
    """
    for second in range(1, most + 1):
        df = first + second - 2
        if df < 1:
            continue
        shift = distance / (sd * math.sqrt(1 / first + 1 / second))
        limit = float(scipy.special.stdtrit(df, 1 - level))
        if 1 - float(scipy.special.nctdtr(df, shift, limit)) >= power:
            return second
    return None


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p values: with those up to alpha rejected, the chance of a single false rejection
    among all tests is at most alpha, whatever the dependence between tests.

    None stays None and does not count.

    Raises:
        ValueError: a p value is not between 0 and 1.

    Source: Holm (1979), "A simple sequentially rejective multiple test procedure".
    """
    tests = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    if any(math.isnan(p) or not 0 <= p <= 1 for p, _ in tests):
        raise ValueError("a p value is between 0 and 1")
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(tests):
        highest = max(highest, min(1.0, p * (len(tests) - rank)))
        adjusted[place] = highest
    return adjusted
