# SPDX-License-Identifier: Apache-2.0
"""What goes into a statistic: one-dimensional finite numbers, refused otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""A one-dimensional array of floating-point numbers."""

Values = Sequence[float] | NDArray[np.float64]
"""Numbers as callers have them."""


def finite(values: Values, what: str = "values") -> Floats:
    """The numbers as an array of shape (n,); raises ValueError for another shape, nan or infinity.

    A missing value is the caller's to leave out (and to count); an average over nan would hide it.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{what} must be one-dimensional, not of shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite; leave missing ones out")
    return array


def positive(values: Values, what: str = "values") -> Floats:
    """As `finite`, and every number above zero: what a logarithm can be taken of."""
    array = finite(values, what)
    if (array <= 0).any():
        raise ValueError(f"{what} must be above zero")
    return array
