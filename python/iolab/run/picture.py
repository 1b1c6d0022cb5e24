# SPDX-License-Identifier: Apache-2.0
"""A picture that a run drew, read back from its recording: how much of it can be seen."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

from ..errors import IolabError
from ..files import write_atomically
from ..results.evidence.files import PICTURE_READ_FILE, read_io_log
from ..workloads.picture_plan import PICTURE_FILE

_STEP_NS = 10_000_000
_OFFSETS = 4096
"""Equal buckets of an offset map, many to a row of the picture."""


def read_picture(run_dir: Path, noticed: Callable[[str], None]) -> None:
    """Say, and write down, which share of the I/Os lies where the picture is lit; nothing where
    none was drawn.

    The file holds share, area, contrast, correlation (None where there is no such number), I/Os and
    the rows as they were seen.
    """
    found = read_io_log(run_dir)
    if not (run_dir / PICTURE_FILE).is_file() or "label" not in found:
        return
    from ..recording.read.recording import Recording
    from ..statistics.ask.query import heat
    from ..workloads.picture_read import drawn_in, read_back

    try:
        canvas = drawn_in(run_dir)
        recording = Recording(run_dir.parent.parent / found["recording"])
        counts = heat(
            recording,
            canvas.map,
            from_ns=found["from_ns"],
            until_ns=found["until_ns"] + 1,
            interval_ns=_STEP_NS,
            source="fio",
            buckets=_OFFSETS if canvas.map == "offset" else None,
        )
        seen = read_back(counts, canvas)
    except IolabError as error:
        noticed(f"run {run_dir.name}: the picture can't be read back: {error}")
        return
    noticed(f"run {run_dir.name}: {canvas.map} picture: {seen.words()}")
    numbers = {
        "share": seen.share,
        "area": seen.area,
        "contrast": seen.contrast,
        "correlation": seen.correlation,
    }
    known = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    told = {"schema": 1, "map": canvas.map, **known, "ios": seen.total, "seen": seen.rows()}
    write_atomically(run_dir / PICTURE_READ_FILE, json.dumps(told, indent=1) + "\n")
