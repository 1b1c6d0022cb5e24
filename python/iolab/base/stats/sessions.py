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
import scipy

from .arrays import Floats, Values, finite

LEAST_SESSIONS = 2
"""Sessions of each arm below which the noise between sessions is not known."""

ALL_UP_TO = 20_000
"""Up to here all assignments of sessions to arms are counted; above, a sample of them."""

DRAWS = 20_000
_SEED = 4045

MOST_DF = 1.5
"""Degrees of freedom of Welch's interval, as a multiple of those of the smaller arm, at most. The
variance of two or three sessions is at times far too small by chance. Satterthwaite's formula then
counts the sessions of the other arm: 2 against 10 sessions had 10 to 12 % false alarms."""


@dataclass(frozen=True)
class SessionInterval:
    """The difference of two arms, second minus first.

    Attributes:
        mean: difference of the means of session means.
        low, high: interval at the asked confidence; None where nothing estimates the noise.
        p: two-sided p value of the t test over session means; p_exact: of the permutation test over
        them. Both None where an arm has a single session, p_exact also where it is not valid: arms
        of unequal numbers of sessions may differ in noise.
        sessions: sessions of the first and the second arm.
        df: degrees of freedom of the interval. sd: standard deviation of a session mean, the root
        mean square of both arms; error: standard error of `mean`. None where they are not known.
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
    error: float | None = None


def session_interval(
    first: Sequence[Values],
    second: Sequence[Values],
    *,
    confidence: float = 0.95,
    is_stationary: bool = False,
) -> SessionInterval:
    """Compare two arms by their session means.

    From two sessions of each arm on, this is Welch's t interval over session means: each arm has a
    variance of its own, and the degrees of freedom are Satterthwaite's, at most `MOST_DF` times
    those of the smaller arm. With a single session of an arm, the interval contains the noise of
    runs within sessions only, and there is no p value.

    Args:
        first, second: the runs of each session of an arm: logarithms for a ratio, else plain
            values.
        confidence: of the interval, between 0 and 1.
        is_stationary: whether all sessions vary about the mean of their arm alike, whatever their
        order. Then both have one variance (Student's interval), and a single session of one arm is
        compared with the variation of the other's.

    Raises:
        ValueError: an arm has no session or a session no run, a value is nan or infinite, or the
        confidence is not between 0 and 1.

    Source: Student (1908), "The probable error of a mean"; Satterthwaite (1946), "An approximate
    distribution of estimates of variance components"; Welch (1947), "The generalization of
    'Student's' problem when several different population variances are involved".
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
    is_equal_noise = is_within or is_stationary
    if is_within:
        runs = [session for arm in arms for session in arm]
        df: float = sum(len(session) for session in runs) - len(runs)
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
    if not is_equal_noise:
        variances = [float(mean.var(ddof=1)) for mean in means]
        variance = sum(variances) / 2
        parts = [part / number for part, number in zip(variances, count, strict=True)]
        error = math.sqrt(sum(parts))
        df = _welch_df(parts, count)
    half = float(scipy.special.stdtrit(df, (1 + confidence) / 2)) * error
    interval = (difference - half, difference + half)
    if is_within:
        return SessionInterval(difference, *interval, None, None, count, df, None, True, error)
    size = max(float(np.abs(mean).max()) for mean in means)
    # means that differ by rounding alone have no spread: the permutation test decides
    equal = error <= 1e-10 * size
    is_exchangeable = equal or is_stationary or count[0] == count[1]
    exact = permutation_p(*means) if is_exchangeable else None
    t_p = 2 * float(scipy.special.stdtr(df, -abs(difference) / error)) if error else exact
    return SessionInterval(
        difference,
        *interval,
        exact if equal else t_p,
        exact,
        count,
        df,
        math.sqrt(variance),
        is_within=False,
        error=error,
    )


def _welch_df(parts: Sequence[float], count: tuple[int, int]) -> float:
    """Satterthwaite's degrees of freedom of a difference with these squared errors of its arms, at
    most `MOST_DF` times those of the smaller arm."""
    most = MOST_DF * (min(count) - 1)
    weight = sum(part**2 / (number - 1) for part, number in zip(parts, count, strict=True))
    return min(most, sum(parts) ** 2 / weight) if weight else most


def permutation_p(first: Values, second: Values) -> float:
    """Two-sided p value of "both arms have the same mean" by exchanging sessions between the arms.

    Under the null hypothesis every assignment of the sessions to the arms is equally likely, and p is
    the share of assignments in which the difference of means is at least as large as the observed
    one. Up to 20 000 assignments all are counted. Above, 20 000 are drawn with a fixed seed and p
    is (hits + 1) / (draws + 1); `least_permutation_p` is the smallest one. Where arms differ in
    noise it holds for equal numbers of sessions only.

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


def least_permutation_p(sessions: tuple[int, int]) -> float:
    """The smallest p value of `permutation_p`: the observed assignment, and with equal numbers of
    sessions also its mirror image."""
    sides = 2 if sessions[0] == sessions[1] else 1
    return sides / math.comb(sum(sessions), sessions[0])
