# SPDX-License-Identifier: Apache-2.0
"""Which results of fio come from processes that ran at the same time.

They are parts of one run, and no repetitions: a repetition runs alone.
"""

from __future__ import annotations

from collections.abc import Sequence

_AT_ONCE = 0.5
"""Share of the shorter of two windows by which they must overlap: runs of a script that follow each
other overlap by milliseconds at most."""


def clusters(windows: Sequence[tuple[int, int] | None]) -> list[list[int]]:
    """Positions of windows that overlap, together, in the order of the first of each; an unknown
    window overlaps none."""
    order = sorted((window, place) for place, window in enumerate(windows) if window is not None)
    groups: list[list[int]] = [[place] for place, window in enumerate(windows) if window is None]
    open_: list[tuple[tuple[int, int], list[int]]] = []
    for window, place in order:
        open_ = [(other, group) for other, group in open_ if other[1] > window[0]]
        home = next((group for other, group in open_ if _overlap(other, window)), None)
        if home is None:
            home = []
            groups.append(home)
        home.append(place)
        open_.append((window, home))
    return sorted(sorted(group) for group in groups)


def _overlap(first: tuple[int, int], second: tuple[int, int]) -> bool:
    shorter = min(first[1] - first[0], second[1] - second[0])
    return min(first[1], second[1]) - max(first[0], second[0]) > _AT_ONCE * shorter
