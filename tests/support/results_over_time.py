# SPDX-License-Identifier: Apache-2.0
"""Results of two arms that were measured in turn, a week each."""

from __future__ import annotations

import itertools
from pathlib import Path

from iolab.cli.main import run

from .fio_files import job, output

WEEK = 7 * 1440
"""Minutes."""


def imported_weeks(base: Path) -> Path:
    """Trees of one variant that were imported: A1, B1, A2, B2, A3 and B3, each of another week, with
    three repetitions of two loads; B has a third load, and another version of fio."""
    for week, name in enumerate(("A1", "B1", "A2", "B2", "A3", "B3")):
        minutes = itertools.count(week * WEEK)
        for repetition in (1, 2, 3):
            for jobs in (1, 4, 8) if name[0] == "B" else (1, 4):
                place = base / "trees" / name / f"rep{repetition}" / f"fio-{jobs}-jobs"
                place.mkdir(parents=True)
                rate = 1000.0 * jobs * (0.7 if name[0] == "B" else 1.0)
                text = output(
                    job(jobs=jobs, iops=rate * (1 + repetition / 200 + week / 300)),
                    minute=next(minutes),
                    ioengine="psync",
                    numjobs=str(jobs),
                )
                if name[0] == "B":
                    text = text.replace("fio-3.33", "fio-3.36")
                (place / "fio.json").write_text(text)
        layout = "rep{repetition:int}/fio-{numjobs:int}-jobs"
        words = ["import", str(base / "trees" / name), "--layout", layout, "-o", str(base / name)]
        assert run(words) == 0
    return base
