# SPDX-License-Identifier: Apache-2.0
"""The meaning of levels of colour, in words."""

from __future__ import annotations

import math

from . import ticks, words
from .figure import Panel


def legend_text(panel: Panel, level: float) -> str:
    """The count at a level between 0 and 1, or -1 and 1 for a difference; empty where the map
    is."""
    count = 0.0 if panel.signed and level == 0 else panel.scale.count_at(abs(level))
    if math.isnan(count):
        return ""
    text = (
        words.number(round(count))
        if panel.weight == "count"
        else ticks.quantity(count, words.WEIGHED[panel.weight], 3)
    )
    sign = "" if not panel.signed or not count else ("+" if level > 0 else "-")
    return sign + text
