# SPDX-License-Identifier: Apache-2.0
"""A picture that a run drew, read back from its recording: how much of it can be seen."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

from iolab.base.errors import IolabError
from iolab.base.files import write_atomically

from ...results.evidence.files import PICTURE_READ_FILE, read_io_log
from ...workloads.picture.plan import PICTURE_FILE

_STEP_NS = 10_000_000
_OFFSETS = 4096
"""Equal buckets of an offset map, many to a row of the picture."""


def read_picture(run_dir: Path, notice: Callable[[str], None]) -> None:
    """Report and store which share of the I/Os is within the picture; nothing without a picture.

    The file has share, area, contrast, correlation (None if undefined), number of I/Os and the rows
    of the recorded picture.
    """
    io_log = read_io_log(run_dir)
    if not (run_dir / PICTURE_FILE).is_file() or "label" not in io_log:
        return
    from iolab.recordings.ask.query import heat
    from iolab.recordings.ask.question import Question
    from iolab.recordings.store.read.recording import Recording

    from ...workloads.picture.reading import drawn_in, read_back

    try:
        canvas = drawn_in(run_dir)
        recording = Recording(run_dir.parent.parent / io_log["recording"])
        counts = heat(
            recording,
            canvas.map,
            Question(
                span=(io_log["from_ns"], io_log["until_ns"] + 1),
                interval_ns=_STEP_NS,
                source="fio",
                buckets=_OFFSETS if canvas.map == "offset" else None,
            ),
        )
        picture = read_back(counts, canvas)
    except IolabError as error:
        notice(f"run {run_dir.name}: the picture can't be read back: {error}")
        return
    notice(f"run {run_dir.name}: {canvas.map} picture: {picture.words()}")
    numbers = {
        "share": picture.share,
        "area": picture.area,
        "contrast": picture.contrast,
        "correlation": picture.correlation,
    }
    finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    document = {
        "schema": 1,
        "map": canvas.map,
        **finite,
        "ios": picture.total,
        "seen": picture.rows(),
    }
    write_atomically(run_dir / PICTURE_READ_FILE, json.dumps(document, indent=1) + "\n")
