# SPDX-License-Identifier: Apache-2.0
"""A history of 20 nights in which one of six series declines steadily."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from iolab.base.metrics import of
from iolab.studies.history.changes import find_changes
from iolab.studies.history.check import _trend_notes
from iolab.studies.history.render import history_data, render
from iolab.studies.history.store import Entry, History, SeriesValues
from support.narrow import present

DAY = 86_400 * 10**9
NIGHTS, DECLINING = 20, 4
METRIC = of("write.iops", "1/s")


class DecliningHistory(History):
    """Noise of 0.5 %, and -9.5 % over all nights with 4 jobs."""

    def __init__(self, path: Path) -> None:
        self.path, self.notes = path, []
        self.entries = [
            Entry(number, f"n{number}", "nightly", number * DAY, number * DAY, "", f"r{number}")
            for number in range(NIGHTS)
        ]
        self._by_number = {entry.number: entry for entry in self.entries}

    def series(self, metric: str) -> list[SeriesValues]:
        random = np.random.default_rng(2)
        every = []
        for jobs in range(6):
            values = random.normal(0, 0.005, NIGHTS)
            if jobs == DECLINING:
                values += np.linspace(0, np.log(0.905), NIGHTS)
            every.append(
                SeriesValues("", {"jobs": jobs}, range(NIGHTS), 4000 * np.exp(values), [3] * NIGHTS)
            )
        return every


def test_every_format_has_the_trend(tmp_path: Path) -> None:
    history = DecliningHistory(tmp_path)
    courses = find_changes(history, [METRIC])
    assert [course.trend is not None for course in courses] == [
        jobs == DECLINING for jobs in range(6)
    ]
    trend = present(courses[DECLINING].trend)
    assert trend.low < -0.095 < trend.high
    assert trend.change == pytest.approx(-0.095, abs=0.01)
    assert (trend.improves, trend.first.number, trend.last.number) == (False, 0, NIGHTS - 1)
    assert trend.p <= trend.q <= 1e-6
    text = render(history, courses, "text")
    assert "6 series, 0 with a significant change, 1 with a significant trend (q" in text
    first_cell = text.splitlines()[2]
    assert first_cell.startswith("jobs=4")
    assert "trend -" in first_cell
    assert first_cell.endswith(f"from {trend.first.label} to {trend.last.label}")
    data = json.loads(render(history, courses, "json"))
    assert data["series"][0]["trend"] is None
    assert data["series"][DECLINING]["trend"]["change"] == pytest.approx(100 * trend.change)
    rows = list(csv.DictReader(io.StringIO(render(history, courses, "csv"))))
    assert {row["jobs"] for row in rows if row["trend"]} == {str(DECLINING)}
    # and again from the cache
    assert history_data(history, find_changes(history, [METRIC])) == data


def test_a_check_against_a_history_with_a_trend_says_so(tmp_path: Path) -> None:
    courses = find_changes(DecliningHistory(tmp_path), [METRIC])
    [note] = [note for course in courses for note in _trend_notes(course)]
    assert note.code == "trend"
    assert note.text.startswith("write.iops at jobs=4: trend -")
