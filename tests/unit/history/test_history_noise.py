# SPDX-License-Identifier: Apache-2.0
"""A history in which one of twenty series becomes noisier and another one slower."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from iolab.base.metrics import of
from iolab.studies.history.changes import CACHE_FILE, find_changes
from iolab.studies.history.render import render
from iolab.studies.history.store import Entry, History, SeriesValues

DAY = 86_400 * 10**9
ENTRIES, CHANGED = 60, 30
METRIC = of("write.iops", "1/s")
NOISY, SLOWER = 3, 7
"""Series that change at entry `CHANGED`: three times the noise, and a fifth slower."""


class SimulatedHistory(History):
    """Twenty series with 1 % noise, one for each number of jobs."""

    def __init__(self, path: Path) -> None:
        self.path, self.notes = path, []
        self.entries = [
            Entry(number, f"n{number}", "nightly", number * DAY, number * DAY, "", f"r{number}")
            for number in range(ENTRIES)
        ]
        self._by_number = {entry.number: entry for entry in self.entries}
        random = np.random.default_rng(11)
        self._values = [random.normal(0, 0.01, ENTRIES) for _ in range(20)]
        self._values[NOISY][CHANGED:] *= 3
        self._values[SLOWER][CHANGED:] += np.log(0.8)

    def series(self, metric: str) -> list[SeriesValues]:
        numbers = range(ENTRIES)
        return [
            SeriesValues("", {"numjobs": jobs}, numbers, 1000 * np.exp(values), [3] * ENTRIES)
            for jobs, values in enumerate(self._values)
        ]


@pytest.fixture
def history(tmp_path: Path) -> SimulatedHistory:
    return SimulatedHistory(tmp_path)


def test_the_noisier_series_is_found_and_nothing_else(history: SimulatedHistory) -> None:
    courses = find_changes(history, [METRIC])
    assert [bool(course.noise) for course in courses] == [jobs == NOISY for jobs in range(20)]
    assert [bool(course.findings) for course in courses] == [jobs == SLOWER for jobs in range(20)]
    [finding] = courses[NOISY].noise
    assert finding.earliest.number <= CHANGED <= finding.latest.number
    assert finding.low < 3 < finding.high
    assert finding.q <= 0.05


def test_every_format_has_the_change_of_the_noise(history: SimulatedHistory) -> None:
    courses = find_changes(history, [METRIC])
    [finding] = courses[NOISY].noise
    text = render(history, courses, "text")
    assert (
        "20 series, 1 with a significant change, 1 with a significant change of the noise" in text
    )
    assert f"] at {finding.after.label}" in text
    assert "1 noisier" in text
    document = json.loads(render(history, courses, "json"))
    [change] = document["series"][NOISY]["noise_changes"]
    assert change["ratio"] == pytest.approx(finding.ratio)
    assert change["revisions"] == [finding.before.revision, finding.after.revision]
    rows = list(csv.DictReader(io.StringIO(render(history, courses, "csv"))))
    [row] = [row for row in rows if row["noise_ratio"]]
    assert (row["numjobs"], row["entry"]) == (str(NOISY), str(finding.after.number))


@pytest.mark.parametrize("damage", ["", "{}", '{"version": 1, "series": {"a": []}}'])
def test_changes_are_remembered_and_a_damaged_or_older_cache_is_not_used(
    history: SimulatedHistory, damage: str
) -> None:
    before = find_changes(history, [METRIC])
    assert json.loads((history.path / CACHE_FILE).read_text())["version"] == 3
    if damage:
        (history.path / CACHE_FILE).write_text(damage)
    assert [course.noise for course in find_changes(history, [METRIC])] == [
        course.noise for course in before
    ]
