# SPDX-License-Identifier: Apache-2.0
"""Histories as the start page shows them: series with their changes, and the runs on both sides of
one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from iolab.base.errors import IolabError, ResultsError
from iolab.base.metrics import find
from iolab.studies.history.changes import find_changes, selected_metrics
from iolab.studies.history.render import history_data
from iolab.studies.history.store import Entry, History, series_name
from iolab.studies.results.evidence.model import Run

from ..base.start_models import (
    CellRun,
    CellRuns,
    HistoryAnswer,
    HistoryFacts,
    HistoryMetric,
    HistorySeries,
)
from ..base.store import NotServed, Store
from .reports import find_recorded_runs

MOST_SERIES = 48
"""Series in one answer, those with changes first."""
MOST_RUNS = 50
"""Runs of a cell in one answer."""


def history_facts(name: str, path: Path) -> tuple[HistoryFacts, list[Path]]:
    """A history in short, and the results that are its entries; its problem where it can't be
    read."""
    try:
        history = History(path)
    except ResultsError as error:
        facts = HistoryFacts(
            name=name, entries=0, first_ns=None, last_ns=None, problem=error.message
        )
        return facts, []
    times = [entry.measured_ns for entry in history.entries]
    facts = HistoryFacts(
        name=name,
        entries=len(times),
        first_ns=min(times, default=None),
        last_ns=max(times, default=None),
        problem="",
    )
    return facts, [history.directory(entry) for entry in history.entries]


def history_answer(store: Store, name: str, metrics: list[str]) -> HistoryAnswer:
    """The series of some metrics, by default of the first headline ones.

    NotServed where there is no such history, UsageError for a metric that it lacks, ResultsError
    where it is damaged or empty.
    """
    history = _history(store, name)
    if not history.entries:
        raise ResultsError("has no results", where=name, hint="iolab history add RESULTS")
    selected = selected_metrics(history, metrics)
    courses = find_changes(history, selected)
    courses.sort(key=lambda course: not course.has_change)
    listed = sorted(courses[:MOST_SERIES], key=lambda course: selected.index(course.metric))
    data = history_data(history, listed)
    names = names_by_path(store)
    places = {entry.number: history.directory(entry) for entry in history.entries}
    return HistoryAnswer.model_validate(
        {
            "name": name,
            "shown": [metric.name for metric in selected],
            "metrics": [
                HistoryMetric(
                    name=metric.name, title=metric.title, unit=metric.unit, headline=metric.headline
                )
                for metric in history.metrics()
            ],
            "entries": [
                {
                    **item,
                    "label": history.entry(item["number"]).label,
                    "served": names.get(os.path.realpath(places[item["number"]])),
                }
                for item in data["entries"]
            ],
            "series": [
                HistorySeries.model_validate(
                    {**item, "cell": series_name(item["variant"], item["factors"])}
                )
                for item in data["series"]
            ],
            "of": len(courses),
            "left": len(courses) - len(listed),
        }
    )


def cell_runs(store: Store, name: str, number: int, metric: str, cell: str) -> CellRuns:
    """The runs of a cell in an entry. NotServed where there is no such history or entry."""
    history = _history(store, name)
    entry = next((entry for entry in history.entries if entry.number == number), None)
    if entry is None:
        raise NotServed(f"the history has no entry {number}")
    study = names_by_path(store).get(os.path.realpath(history.directory(entry)))
    known_metric = find(metric)
    answer = CellRuns(
        entry=number,
        metric=metric,
        unit="" if known_metric is None else known_metric.unit,
        study=study,
        runs=[],
        problem="",
    )
    try:
        answer.runs = _runs(store, history, entry, study, metric, cell)
    except IolabError as error:
        answer.problem = error.message
    return answer


def _runs(
    store: Store, history: History, entry: Entry, study: str | None, metric: str, cell: str
) -> list[CellRun]:
    from iolab.studies.results.open.results import Results  # slow to load

    results = Results(history.directory(entry))
    has_hosts = len({run.plan.host for run in results.runs}) > 1
    members = [run for run in results.runs if _is_of_cell(run, cell, has_hosts)]
    recorded = {} if study is None else find_recorded_runs(store, study)
    runs = []
    for run in members[:MOST_RUNS]:
        place = next(iter(recorded.get(run.id, [])), None)
        runs.append(
            CellRun(
                run=run.id,
                verdict=run.verdict.level.value,
                value=run.value(metric),
                recording=None if place is None else place.recording,
                from_ns=None if place is None else place.from_ns,
                until_ns=None if place is None else place.until_ns,
                graph=None if place is None else place.graph or None,
            )
        )
    return runs


def _is_of_cell(run: Run, cell: str, has_hosts: bool) -> bool:
    """Whether a run is of a series by its name. Series of imports of a single variant have no
    variant."""
    factors = {**run.factors, **({"host": run.plan.host} if has_hosts else {})}
    return cell in (series_name(run.variant, factors), series_name("", factors))


def names_by_path(store: Store) -> Mapping[str, str]:
    """Names of the results that are served, by their real paths."""
    return {os.path.realpath(path): name for name, path in store.results.items()}


def _history(store: Store, name: str) -> History:
    path = store.histories.get(name)
    if path is None:
        raise NotServed(
            f"there is no history '{name[:80]}'",
            hint=f"there are {', '.join(store.histories) or 'none'}",
        )
    return History(path)
