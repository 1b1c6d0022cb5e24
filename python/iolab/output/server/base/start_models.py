# SPDX-License-Identifier: Apache-2.0
"""What the start page shows, as data: studies, histories, and the runs on both sides of a change."""

from __future__ import annotations

from typing import Any, Literal

from iolab.base.documents import Model

from ...report.model.statements import Sentence
from .models import RecordingFacts, Value, VersionedModel


class StudyMatrix(Model):
    """A matrix of a report's cover. cells: rows of classes of the page, which give cells their
    colours; "" where nothing was measured."""

    title: str
    cells: list[list[str]]


class StudyFacts(Model):
    """A results directory.

    name: as served; title: of the study. levels: runs by verdict.
    measured_ns: realtime of its first run, or of the last change of its directory until the study
    is read; null where unknown.
    sentences, matrices: the first ones of its report's cover. missing: what is missing of the study.
    recordings: those in it. histories: the histories that it is an entry of. `state`: "read",
    "waiting" until it is read, or "unreadable" with the reason in `problem`.
    """

    name: str
    title: str
    state: Literal["read", "waiting", "unreadable"]
    origin: str
    measured_ns: int | None
    variants: list[str]
    baseline: str
    runs: int
    levels: dict[str, int]
    sentences: list[Sentence]
    matrices: list[StudyMatrix]
    missing: list[str]
    recordings: list[str]
    histories: list[str]
    problem: str


class HistoryFacts(Model):
    """A history; `problem`: why it can't be read, else empty."""

    name: str
    entries: int
    first_ns: int | None
    last_ns: int | None
    problem: str


class FolderProblem(Model):
    """A folder of which not everything could be searched, and why."""

    path: str
    problem: str


class Start(VersionedModel):
    """Everything that is served: studies from the newest on, histories, and recordings that belong
    to no results. waiting: studies that are not read yet."""

    studies: list[StudyFacts]
    waiting: int
    histories: list[HistoryFacts]
    recordings: list[RecordingFacts]
    problems: list[FolderProblem]


class HistoryEntry(Model):
    """An entry of a history. label: its revision, else the name of its directory. served: the name
    of its results where they are served, else null."""

    number: int
    label: str
    results: str
    study: str
    revision: str
    tags: dict[str, str]
    measured_ns: int
    served: str | None


class HistoryMetric(Model):
    """A metric of a history."""

    name: str
    title: str
    unit: str
    headline: bool


class FactChange(Model):
    """A fact of the environment that differs; empty where it is not known."""

    name: str
    before: str
    after: str


class ChangePlace(Model):
    """Where a series changed: the entries before and after, a 95 % range for the first entry after
    it, and what else changed between the two entries."""

    p: float
    q: float
    before: int
    after: int
    revisions: list[str]
    earliest: int
    latest: int
    environment: list[FactChange]


class MeanChange(ChangePlace):
    """A change of the mean with its 95 % interval, in `unit`."""

    change: float
    low: float
    high: float
    unit: str
    improves: bool | None


class NoiseRatio(ChangePlace):
    """A change of the noise: standard deviation after divided by before, with its 95 % interval."""

    ratio: float
    low: float
    high: float


class SeriesTrend(Model):
    """A steady trend of a series: its change from entry `first` to entry `last` with its 95 %
    interval, in `unit`. Changes of the mean are then of what it leaves."""

    change: float
    low: float
    high: float
    unit: str
    improves: bool | None
    p: float
    q: float
    first: int
    last: int


class HistorySeries(Model):
    """The values of a cell of a variant, in `unit`, by the numbers of their entries. cell: its name
    in questions about it."""

    metric: str
    unit: str
    better: str | None
    variant: str
    factors: dict[str, Any]
    cell: str
    entries: list[int]
    values: list[float]
    runs: list[int]
    changes: list[MeanChange]
    trend: SeriesTrend | None
    noise_changes: list[NoiseRatio]


class HistoryAnswer(VersionedModel):
    """Series with their significant changes, by metric, those with changes first. shown: the
    metrics that were searched, over which q is; metrics: all that the history has. of: how many
    series were searched; left: those that are not listed."""

    kind: Literal["history"] = "history"
    name: str
    shown: list[str]
    metrics: list[HistoryMetric]
    entries: list[HistoryEntry]
    series: list[HistorySeries]
    of: int
    left: int


class CellRun(Model):
    """A run of a cell, and where it was recorded: from_ns and until_ns are of the recording, `graph`
    the statistic that shows most of it; null where it was not recorded."""

    run: str
    verdict: Literal["OK", "UNJUDGED", "SUSPECT", "INVALID"]
    value: Value
    recording: str | None
    from_ns: int | None
    until_ns: int | None
    graph: str | None


class CellRuns(VersionedModel):
    """The runs of a cell in an entry of a history. study: its name where it is served, null where
    it is not; `problem`: why its runs can't be read, else empty."""

    entry: int
    metric: str
    unit: str
    study: str | None
    runs: list[CellRun]
    problem: str
