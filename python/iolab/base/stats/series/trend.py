# SPDX-License-Identifier: Apache-2.0
"""A steady trend of a series: a slope that lasts over all of its values, apart from its steps.

Steps alone do not describe it. A slow decline appears as one or more of them, and a steep one as
autocorrelation, which widens the noise until no step is significant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from ..arrays import Floats

LEAST_VALUES = 8
"""Values of a series at least: two for the line, and six for its noise and autocorrelation."""

_MOST_RHO = 0.9
"""Autocorrelation up to which the noise of a slope is widened."""

_CAUTION = 0.5
"""Standard errors that are added to the autocorrelation: 20 values estimate it badly, and a slope
with too little of it raises false alarms."""


@dataclass(frozen=True)
class Trend:
    """A slope over a whole series.

    Attributes:
        change: of the line from the first value to the last; low, high: its 95 % interval.
        p: p value of "no slope", with autocorrelation of the first order.
    """

    change: float
    low: float
    high: float
    p: float


def slope_of(series: Floats) -> float:
    """The median of the slopes between all pairs of values at least a third of the series apart,
    per value: outliers and short steps hardly affect it.

    Source: Theil (1950), "A rank-invariant method of linear and polynomial regression analysis";
    Sen (1968).
    """
    n = len(series)
    places = np.arange(n)
    if n > 400:  # all pairs of more would take long
        places = np.unique(np.linspace(0, n - 1, 400).astype(int))
    distance = places[None, :] - places[:, None]
    first, second = np.nonzero(distance >= max(1, n // 3))
    steps = series[places[second]] - series[places[first]]
    return float(np.median(steps / distance[first, second]))


def fit_trend(series: Floats, places: list[int]) -> Trend:
    """The slope of a line with steps at some places.

    Generalised least squares with noise of the first order (Prais & Winsten 1954). Its
    autocorrelation is that of the residuals of line and steps, corrected for the bias that fitting
    them causes, and half of its standard error. A negative one counts as zero.

    Args:
        series: in order of time, without outliers, shape (n,) with n of `LEAST_VALUES` or more.

    Source: Prais & Winsten (1954), "Trend estimators and serial correlation"; for the bias Kendall
    (1954), "Note on bias in the estimation of autocorrelation".
    """
    n = len(series)
    x = np.arange(n) - (n - 1) / 2
    design = np.stack([np.ones(n), x, *(np.arange(n) >= place for place in places)], axis=1)
    residuals = series - design @ np.linalg.lstsq(design, series, rcond=None)[0]
    squares = float(residuals @ residuals)
    tiny = 1e-12 * float(np.max(np.abs(series))) ** 2
    rho = 0.0
    if squares > tiny:
        parameters = design.shape[1]
        lagged = float(residuals[1:] @ residuals[:-1]) / squares
        rho = (lagged + parameters / n) / (1 - 2 * parameters / n) if n > 2 * parameters else 0.9
        rho += _CAUTION * math.sqrt(max(0.0, 1 - rho**2) / n)
        rho = min(max(rho, 0.0), _MOST_RHO)
    white_design, white = _whiten(design, rho), _whiten(series, rho)
    inverse = np.linalg.pinv(white_design.T @ white_design)
    fitted = inverse @ white_design.T @ white
    rest = white - white_design @ fitted
    df = n - design.shape[1]
    change = float(fitted[1]) * (n - 1)
    error = math.sqrt(float(rest @ rest) / df * float(inverse[1, 1])) * (n - 1)
    if error <= 1e-12 * abs(change):
        return Trend(change, change, change, 0.0 if change else 1.0)
    half = float(scipy.special.stdtrit(df, 0.975)) * error
    p = 2 * float(scipy.special.stdtr(df, -abs(change) / error))
    return Trend(change, change - half, change + half, p)


def _whiten(values: NDArray[np.float64], rho: float) -> NDArray[np.float64]:
    """Values without autocorrelation of the first order, along the first axis."""
    white: NDArray[np.float64] = values.astype(np.float64)
    white[1:] -= rho * values[:-1]
    white[0] *= math.sqrt(1 - rho**2)
    return white
