"""The longest run of consecutive small values: a stall."""

from __future__ import annotations

import numpy as np

from .arrays import Values


def longest_streak(values: Values, at_most: float = 0.0) -> tuple[int, int]:
    """Length and start of the longest run of consecutive values not above `at_most`; the first of equally long ones.

    Args:
        values: samples in order of time, shape (n,); nan (nothing known) breaks a run, it is no proof of a stall.

    Returns:
        (0, 0) where no value is that small.
    """
    small = np.asarray(values, dtype=np.float64) <= at_most
    edges = np.diff(np.concatenate([[False], small, [False]]).astype(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if not len(starts):
        return 0, 0
    longest = int(np.argmax(ends - starts))
    return int(ends[longest] - starts[longest]), int(starts[longest])
