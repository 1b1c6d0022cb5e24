# SPDX-License-Identifier: Apache-2.0
"""Two arms that were measured in different sessions: the session is the unit of repetition.

The runs of one session share the state of the machine on that day, so that the noise between
sessions is part of the difference between arms. It is estimated from the means of the sessions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import special

from .arrays import Floats, Values, finite

LEAST_SESSIONS = 2
"""Sessions of each arm below which the noise between sessions is not known."""

ALL_UP_TO = 20_000
"""Up to here all assignments of sessions to arms are counted; above, a sample of them."""

DRAWS = 20_000
_SEED = 4045


@dataclass(frozen=True)
class SessionInterval:
    """The difference of two arms, second minus first.

    Attributes:
        mean: difference of the means of session means.
        low, high: interval at the asked confidence; None where nothing estimates the noise.
        p: two-sided p value of the t test over session means; p_exact: of the permutation test over
        them. Both None where an arm has a single session.
        sessions: sessions of the first and the second arm.
        df: degrees of freedom of the interval. sd: standard deviation of a session mean; None where
        it is not known.
        is_within: whether the interval contains the noise within sessions only.
    """

    mean: float
    low: float | None
    high: float | None
    p: float | None
    p_exact: float | None
    sessions: tuple[int, int]
    df: float | None
    sd: float | None
    is_within: bool


def session_interval(
    first: Sequence[Values],
    second: Sequence[Values],
    *,
    confidence: float = 0.95,
    is_stationary: bool = False,
) -> SessionInterval:
    """Compare two arms by their session means.

    From two sessions of each arm on, this is Student's two-sample t interval over session means,
    with one variance for both arms. With a single session of an arm, the interval contains the
    noise of runs within sessions only, and there is no p value.

    Args:
        first, second: the runs of each session of an arm: logarithms for a ratio, else plain
            values.
        confidence: of the interval, between 0 and 1.
        is_stationary: whether all sessions vary about the mean of their arm alike, whatever their
        order. Then a single session of one arm is compared with the variation of the other's.

    Raises:
        ValueError: an arm has no session or a session no run, a value is nan or infinite, or the
        confidence is not between 0 and 1.

    Source: Student (1908), "The probable error of a mean"; Fisher (1935), "The Design of
    Experiments".
    """
    if not 0 < confidence < 1:
        raise ValueError("confidence must be between 0 and 1")
    arms = [[finite(session, "runs") for session in arm] for arm in (first, second)]
    if not all(arms) or any(not len(session) for arm in arms for session in arm):
        raise ValueError("each arm needs a session, and each session a run")
    means = [np.array([session.mean() for session in arm]) for arm in arms]
    count = (len(means[0]), len(means[1]))
    difference = float(means[1].mean() - means[0].mean())
    is_within = (max(count) if is_stationary else min(count)) < LEAST_SESSIONS
    if is_within:
        runs = [session for arm in arms for session in arm]
        df = sum(len(session) for session in runs) - len(runs)
        squares = sum(float(((session - session.mean()) ** 2).sum()) for session in runs)
        share = sum(1 / len(session) / len(arm) ** 2 for arm in arms for session in arm)
    else:
        df = sum(count) - 2
        squares = sum(float(((mean - mean.mean()) ** 2).sum()) for mean in means)
        share = 1 / count[0] + 1 / count[1]
    if df < 1:
        return SessionInterval(difference, None, None, None, None, count, None, None, is_within)
    variance = squares / df
    error = math.sqrt(variance * share)
    half = float(special.stdtrit(df, (1 + confidence) / 2)) * error
    interval = (difference - half, difference + half)
    if is_within:
        return SessionInterval(difference, *interval, None, None, count, df, None, True)
    exact = permutation_p(*means)
    size = max(float(np.abs(mean).max()) for mean in means)
    # means that differ by rounding alone have no spread: the permutation test decides
    equal = error <= 1e-10 * size
    p = exact if equal else 2 * float(special.stdtr(df, -abs(difference) / error))
    return SessionInterval(
        difference, *interval, p, exact, count, df, math.sqrt(variance), is_within=False
    )


def permutation_p(first: Values, second: Values) -> float:
    """Two-sided p value of "both arms have the same mean" by exchanging sessions between the arms.

    Under the null hypothesis every assignment of the sessions to the arms is equally likely; p is
    the share of assignments in which the difference of means is at least as large as the observed
    one. Up to 20 000 assignments all are counted. Above, 20 000 are drawn with a fixed seed and p
    is (hits + 1) / (draws + 1). Three sessions of each arm cannot reach less than 0.1, four 0.029.

    Raises:
        ValueError: an arm is empty, or a value is nan or infinite.

    Source: Fisher (1935); Phipson & Smyth (2010).
    """
    first_sessions, other = finite(first, "sessions"), finite(second, "sessions")
    if not len(first_sessions) or not len(other):
        raise ValueError("each arm needs a session")
    every = np.concatenate([first_sessions, other])
    every = every - every.mean()
    # With the mean at zero, the difference of means is the sum of one arm times a constant. Sums
    # that differ by rounding alone are ties, and ties count.
    far = abs(float(every[: len(first_sessions)].sum())) - 1e-12 * float(np.abs(every).sum())
    if math.comb(len(every), len(first_sessions)) <= ALL_UP_TO:
        places = np.array(list(combinations(range(len(every)), len(first_sessions))))
        return float(np.mean(np.abs(every[places].sum(axis=1)) >= far))
    random = np.random.default_rng(_SEED)
    sums: Floats = np.array(
        [random.permutation(every)[: len(first_sessions)].sum() for _ in range(DRAWS)], np.float64
    )
    return (int(np.sum(np.abs(sums) >= far)) + 1) / (DRAWS + 1)
