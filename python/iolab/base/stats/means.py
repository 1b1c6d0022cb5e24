# SPDX-License-Identifier: Apache-2.0
"""The mean of one arm in one cell, with an interval of its own.

These intervals tell how well one arm is known. Whether two arms differ is not read from their
overlap: the paired interval of the change (`blocks`) is narrower, for it is free of what the blocks
have between them.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from .arrays import Floats, Values, finite, positive


def geometric_mean(values: Values) -> float:
    """exp of the mean logarithm; nan without values. Raises ValueError unless all are finite and
    above zero.

    It is the mean for which "twice as fast" and "half as fast" cancel (Fleming & Wallace 1986, "How
    not to lie with statistics").
    """
    positives = positive(values)
    if len(positives) < 2:
        # A single value is its own mean, to the last digit.
        return float(positives[0]) if len(positives) else math.nan
    return math.exp(float(np.log(positives).mean()))


def _half_width(values: Floats, confidence: float) -> float | None:
    if not 0 < confidence < 1:
        raise ValueError("confidence must be between 0 and 1")
    n = len(values)
    if n < 2:
        return None
    return float(
        scipy.special.stdtrit(n - 1, (1 + confidence) / 2) * values.std(ddof=1) / math.sqrt(n)
    )


def log_mean_interval(
    values: Values, confidence: float = 0.95
) -> tuple[float, float | None, float | None]:
    """Geometric mean with its t interval on logarithms: (mean, low, high); low and high None below
    two values.

    Raises:
        ValueError: a value is not finite or not above zero, or the confidence is not between 0 and
        1.
    """
    logs = np.log(positive(values))
    half = _half_width(logs, confidence)
    if half is None:
        return geometric_mean(values), None, None
    middle = float(logs.mean())
    # An interval of two scattered values can leave the range of floats: "nothing is known" is then
    # infinity.
    with np.errstate(over="ignore"):
        return math.exp(middle), float(np.exp(middle - half)), float(np.exp(middle + half))


def mean_interval(
    values: Values, confidence: float = 0.95
) -> tuple[float, float | None, float | None]:
    """Arithmetic mean with its t interval: (mean, low, high); low and high None below two values.

    Raises:
        ValueError: a value is not finite, or the confidence is not between 0 and 1.
    """
    numbers = finite(values)
    half = _half_width(numbers, confidence)
    if not len(numbers):
        return math.nan, None, None
    middle = float(numbers.mean())
    return (middle, None, None) if half is None else (middle, middle - half, middle + half)
