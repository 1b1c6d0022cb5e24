# SPDX-License-Identifier: Apache-2.0
"""Short joins of default maps, so that few segments make several."""

from __future__ import annotations

import pytest

from iolab.recordings.store.segments import segments
from iolab.recordings.store.write import joining
from support.recordings import SECOND

STEPS_S = (2, 10)
LEVELS_NS = (10 * SECOND, 40 * SECOND)


def shorten_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Join maps of segments within 10 s, then within 40 s; coarser files have columns of 2 and 10 s,
    row groups few rows."""
    for module in (joining, segments):
        monkeypatch.setattr(module, "STEPS_S", STEPS_S)
    monkeypatch.setattr(joining, "LEVELS_NS", LEVELS_NS)
    monkeypatch.setattr(joining, "ROWS", 64)
