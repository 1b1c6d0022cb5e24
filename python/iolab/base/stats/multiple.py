# SPDX-License-Identifier: Apache-2.0
"""Many tests at once: what a p value is worth when a sweep asks forty times."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """q values: the smallest false discovery rate at which each test would be called a discovery.

    With alpha as the limit of q, at most a share alpha of what is called different is expected not
    to be; where nothing differs at all, the chance of a single false alarm in the whole sweep is at
    most alpha.

    Args:
        p_values: one per test; None where no test was made, which neither counts nor gets a q
        value.

    Raises:
        ValueError: a p value is not between 0 and 1.

    Source: Benjamini & Hochberg (1995), "Controlling the False Discovery Rate"; holds for
    independent and for positively dependent tests (Benjamini & Yekutieli 2001).
    """
    ranked = [(p, place) for place, p in enumerate(p_values) if p is not None]
    if any(math.isnan(p) or not 0 <= p <= 1 for p, _ in ranked):
        raise ValueError("a p value must be between 0 and 1")
    adjusted: list[float | None] = [None] * len(p_values)
    if not ranked:
        return adjusted
    values = np.array([p for p, _ in ranked])
    order = np.argsort(values, kind="stable")
    raw = values[order] * len(values) / np.arange(1, len(values) + 1)
    steps = np.minimum(np.minimum.accumulate(raw[::-1])[::-1], 1.0)
    for place, q in zip(order.tolist(), steps.tolist(), strict=True):
        adjusted[ranked[place][1]] = q
    return adjusted
