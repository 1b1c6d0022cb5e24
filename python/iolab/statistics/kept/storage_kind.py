# SPDX-License-Identifier: Apache-2.0
"""The form that a statistic is kept in, and how fine."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..language.fields import QUANTIZED
from ..language.names import Statistic

Form: TypeAlias = Literal["map", "weighed", "numbers", "growth"]

BITS = 3
"""Resolution of what is kept: 8 buckets an octave."""
COARSER = 3
"""Bits fewer than events are asked with."""
MOST_KEYS = 1000
"""Names of a segment that are kept apart, the largest; the rest is one sum."""


def form_of(statistic: Statistic, *, counted: bool) -> Form:
    """The form that a statistic is kept in; `counted`: it comes from counters."""
    if counted:
        return "growth"
    if statistic.breakdown not in QUANTIZED:
        return "numbers"
    return "map" if statistic.entry.weight == "count" else "weighed"
