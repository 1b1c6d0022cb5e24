# SPDX-License-Identifier: Apache-2.0
"""The Universal Scalability Law: throughput X(N) = λN / (1 + σ(N - 1) + κN(N - 1)).

λ is the throughput of one, σ the share of work that contends for something (Amdahl's serial share),
κ the cost per pair of keeping each other coherent, which makes throughput fall beyond a peak.
Source: Gunther (2007), "Guerrilla Capacity Planning", chapters 4-6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy

from ..arrays import Floats, Values, positive

LEAST_LEVELS = 4
"""Three parameters, and one level more to measure how well they fit."""

PEAK_ALPHA = 0.05
"""A peak is reported only where an F test at this level rejects a law without one (κ = 0)."""

FALL = 2.0
"""A peak within the measured loads is reported only where throughput then falls by more than this
many relative errors of the fit."""

_INVISIBLE = 1e-6
"""A term that changes throughput by less than this share at the highest concurrency measured is
none."""

_LOW, _HIGH = np.array([-np.inf, 0.0, 0.0]), np.array([np.inf, 1.0, np.inf])
"""Bounds of log λ, σ and κ."""

_MOST_STEPS = 300
_STILL = 1e-12
"""A step by less than this share of every parameter ends the search."""
_LEAST_DAMPING = 1e-12
"""Keeps the equations solvable where two terms are all but the same."""


@dataclass(frozen=True)
class NoFit:
    """No fit, and why."""

    reason: str


@dataclass(frozen=True)
class UslFit:
    """A fitted law.

    Attributes:
        lam: λ, throughput at concurrency 1 (unit of the throughput).
        sigma: σ, 0 to 1; kappa: κ, 0 or more.
        lam_error, sigma_error, kappa_error: standard errors; None for a parameter that ended at the
            edge of its range (no contention, no coherency cost), where a standard error has no
            meaning, and with as many parameters as levels.
        peak_concurrency: where throughput is largest, None where it grows (or levels out) for ever,
            or where the runs do not distinguish a peak from that: κ is then 0.
        peak_throughput: throughput there, or the limit λ/σ; None without limit.
        relative_error: root mean square of (measured / fitted - 1).
        levels: distinct concurrencies; highest: the largest measured. A peak beyond it is
        extrapolated.
    """

    lam: float
    sigma: float
    kappa: float
    lam_error: float | None
    sigma_error: float | None
    kappa_error: float | None
    peak_concurrency: float | None
    peak_throughput: float | None
    relative_error: float
    levels: int
    highest: float

    def throughput(self, concurrency: float) -> float:
        """Throughput of the fitted law at a concurrency."""
        return (
            self.lam
            * concurrency
            / (1 + self.sigma * (concurrency - 1) + self.kappa * concurrency * (concurrency - 1))
        )


def fit_usl(concurrency: Values, throughput: Values) -> UslFit | NoFit:
    """Fit the law by least squares on logarithms, so that every level weighs by its relative error.

    Args:
        concurrency: jobs (or I/Os in flight), at least 1, in any order; a level may appear several
            times, shape (n,).
        throughput: rate at each, above zero, shape (n,).

    κ is fitted where the runs show a peak (`PEAK_ALPHA`, `FALL`), and is 0 otherwise: a curve that
    levels out at once, as a queue in front of one resource does, bends more than contention alone
    does, without ever falling.

    Returns:
        NoFit with fewer than four distinct concurrencies, or one below 1.

    Raises:
        ValueError: lengths differ, or a value is not finite or not above zero.
    """
    n, x = positive(concurrency, "concurrency"), positive(throughput, "throughput")
    if len(n) != len(x):
        raise ValueError("as many throughputs as concurrencies are needed")
    levels = len(np.unique(n))
    if levels < LEAST_LEVELS:
        return NoFit(f"{levels} levels of concurrency; at least {LEAST_LEVELS} are needed")
    if n.min() < 1:
        return NoFit("a concurrency below 1 is not one")
    curve = _Curve(n, x)
    starts = curve.starts()
    best = curve.nearest(starts)
    fit = _fit(curve, best)
    if fit.peak_concurrency is None:
        return fit
    flat = curve.nearest([start[:2] for start in starts])
    if _is_peak(curve, fit, curve.cost(best), curve.cost(flat)):
        return fit
    return _fit(curve, flat)


def _fit(curve: _Curve, parameters: Floats) -> UslFit:
    """The law of a curve's parameters: log λ and σ, and κ where it was fitted."""
    n, pairs = curve.n, curve.pairs
    scale, sigma, kappa = [*parameters.tolist(), 0.0][:3]
    if sigma * (n.max() - 1) < _INVISIBLE:
        sigma = 0.0
    elif 1 - sigma < _INVISIBLE:
        sigma = 1.0
    kappa = 0.0 if kappa < _INVISIBLE * (1 + sigma * (n.max() - 1)) else kappa / pairs
    is_free = [True, 0 < sigma < 1, kappa > 0][: len(parameters)]
    errors = _standard_errors(curve.slopes(parameters), curve.cost(parameters), is_free)
    errors = [*errors, None][:3]
    relative = float(np.sqrt(np.mean(np.expm1(-curve.residuals(parameters)) ** 2)))
    lam = math.exp(scale)
    peak = max(math.sqrt((1 - sigma) / kappa), 1.0) if kappa > 0 else None
    fit = UslFit(
        lam,
        sigma,
        kappa,
        None if errors[0] is None else errors[0] * lam,
        errors[1],
        None if errors[2] is None else errors[2] / pairs,
        peak,
        None,
        relative,
        len(np.unique(n)),
        float(n.max()),
    )
    top = fit.throughput(peak) if peak is not None else (lam / sigma if sigma > 0 else None)
    return UslFit(**{**fit.__dict__, "peak_throughput": top})


def _is_peak(curve: _Curve, fit: UslFit, cost: float, flat: float) -> bool:
    """Whether the runs distinguish the peak from a throughput that levels out.

    `cost`, `flat` are half the sums of squares with κ and without.
    """
    n, x = curve.n, curve.x
    freedom = len(n) - 3
    if freedom < 1 or flat <= cost:
        return False
    if (
        cost > 0
        and float(scipy.special.fdtrc(1, freedom, (flat - cost) / cost * freedom)) > PEAK_ALPHA
    ):
        return False
    if fit.peak_concurrency is None or fit.peak_concurrency >= n.max():
        return True
    at = {level: float(np.mean(np.log(x[n == level]))) for level in np.unique(n).tolist()}
    return max(at.values()) - at[float(n.max())] > FALL * fit.relative_error


class _Curve:
    """A measured curve and the law, in logarithms. The parameters are log λ, σ and κ times `pairs`,
    or log λ and σ alone, for a law without κ.

    κ multiplies N(N-1), up to a million: in units of the largest of them, all three parameters are
    of one size.
    """

    def __init__(self, n: Floats, x: Floats) -> None:
        self.pairs = float((n * (n - 1)).max())
        self.n, self.x, self._logs = n, x, np.log(x) - np.log(n)
        self._terms = np.stack([n - 1, n * (n - 1) / self.pairs])

    def residuals(self, parameters: Floats) -> Floats:
        """Logarithm of fitted over measured, shape (n,)."""
        terms = self._terms[: len(parameters) - 1]
        return np.asarray(parameters[0] - np.log1p(parameters[1:] @ terms) - self._logs)

    def slopes(self, parameters: Floats) -> Floats:
        """Derivatives of the residuals by each parameter, shape (n, parameters)."""
        terms = self._terms[: len(parameters) - 1]
        below = 1 + parameters[1:] @ terms
        return np.stack([np.ones_like(below), *(-terms / below)], axis=1)

    def cost(self, parameters: Floats) -> float:
        """Half the sum of squared residuals."""
        residuals = self.residuals(parameters)
        return 0.5 * float(residuals @ residuals)

    def nearest(self, starts: Sequence[Floats]) -> Floats:
        """The parameters of the least cost that a search from these starts finds."""
        return min((self.search(start) for start in starts), key=self.cost)

    def search(self, start: Floats) -> Floats:
        """The parameters of a local minimum (Levenberg-Marquardt, steps cut at the bounds;
        Marquardt 1963).

        Written out because loading `scipy.optimize` takes longer than all fits of a report.
        """
        low, high = _LOW[: len(start)], _HIGH[: len(start)]
        position, cost, damping = start, self.cost(start), 1e-3
        for _ in range(_MOST_STEPS):
            slopes = self.slopes(position)
            downhill = -(self.residuals(position) @ slopes)
            free = np.flatnonzero(
                ~(((position <= low) & (downhill < 0)) | ((position >= high) & (downhill > 0)))
            )
            curvature = (slopes.T @ slopes)[np.ix_(free, free)]
            step = np.zeros_like(position)
            step[free] = np.linalg.solve(
                curvature + damping * np.diag(np.diag(curvature)), downhill[free]
            )
            candidate = np.minimum(np.maximum(position + step, low), high)
            reached = self.cost(candidate)
            is_still = bool(
                (np.abs(candidate - position) <= _STILL * (_STILL + np.abs(position))).all()
            )
            if reached <= cost:
                position, cost, damping = candidate, reached, max(damping / 10, _LEAST_DAMPING)
            else:
                damping *= 10
            if is_still:
                break
        return position

    def starts(self) -> list[Floats]:
        """The law made linear, N/X = a + b(N - 1) + cN(N - 1) with non-negative terms, and two
        plain guesses."""
        n, x = self.n, self.x
        a, b, c = _without_negatives(
            np.stack([np.ones_like(n), *self._terms], axis=1) * (x / n)[:, None]
        )
        first = math.log(float(x[np.argmin(n)] / n.min()))
        starts = [np.array([first, 0.1, 0.1]), np.array([first, 0.9, 1.0])]
        if a > 0:
            starts.insert(
                0, np.array([-math.log(a), min(max(b / a, 1e-6), 1 - 1e-6), max(c / a, 1e-6)])
            )
        return starts


def _without_negatives(columns: Floats) -> list[float]:
    """Factors of the columns, none negative, with a sum nearest to one everywhere: of all sets of
    columns the best that needs none."""
    nearest, best = math.inf, [0.0] * columns.shape[1]
    for many in range(1, columns.shape[1] + 1):
        for columns_in_use in combinations(range(columns.shape[1]), many):
            part = columns[:, columns_in_use]
            factors = np.linalg.lstsq(part, np.ones(len(part)))[0]
            distance = float(np.square(part @ factors - 1).sum())
            if (factors >= 0).all() and distance < nearest:
                nearest, best = distance, [0.0] * columns.shape[1]
                for place, factor in zip(columns_in_use, factors.tolist(), strict=True):
                    best[place] = factor
    return best


def _standard_errors(jacobian: Floats, cost: float, is_free: list[bool]) -> list[float | None]:
    """Gauss-Newton standard errors of the parameters that are free; None for one at its bound."""
    free = np.flatnonzero(is_free).tolist()
    degrees = jacobian.shape[0] - len(free)
    errors: list[float | None] = [None] * len(is_free)
    if degrees < 1:
        return errors
    part = jacobian[:, free]
    variances = np.diag(np.linalg.pinv(part.T @ part)) * 2 * cost / degrees
    for place, variance in zip(free, variances.tolist(), strict=True):
        errors[place] = math.sqrt(max(variance, 0.0))
    return errors
