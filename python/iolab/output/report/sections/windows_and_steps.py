# SPDX-License-Identifier: Apache-2.0
"""What happened inside runs: the windows before and after an action, compared; the steps of a load,
as curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iolab.base.errors import IolabError, UsageError
from iolab.base.metrics import of
from iolab.studies.compare.compare import compare
from iolab.studies.compare.load.curves import curves
from iolab.studies.results.derive.windows import FIRST

from ...charts.hockey_stick import hockey_stick
from ...charts.reference import Reference
from ..model.datasets import Datasets
from ..model.payload import Section
from ..model.source import Source
from .curve_tables import equal_tables, knee_table
from .metric_sections import metric_section

MOST_METRICS = 4


def window_sections(
    results: Source, run_places: Mapping[str, int], datasets: Datasets
) -> list[Section]:
    """A section per headline rate of the windows between marks; none where no run was marked."""
    try:
        runs = results.window_runs()
    except IolabError:
        return []
    names = dict.fromkeys(name for run in runs for name in run.observations if of(name).headline)
    sections = []
    for name in list(names)[:MOST_METRICS]:
        try:
            comparison = compare(runs, name, baseline=FIRST)
        except UsageError:
            continue
        section = metric_section(comparison, run_places, datasets, charts=True)
        sections.append(
            section.model_copy(
                update={
                    "name": f"windows.{name}",
                    "title": f"Windows: {section.title}",
                    "lead": f"Each run is cut where an action or mark fell; windows are compared within their run. {section.lead}",
                }
            )
        )
    return sections


def step_sections(
    results: Source, baseline: str | None, datasets: Datasets, references: Sequence[Reference]
) -> list[Section]:
    """Throughput against latency over the steps of each run, with the knee found in time; none
    where no load rises."""
    try:
        curve_set = curves(results.step_runs(), baseline=baseline)
    except IolabError:
        return []
    tables = [knee_table(curve_set), *equal_tables(curve_set)]
    return [
        Section(
            name="steps",
            title=f"Steps: throughput against latency as {curve_set.load} rises within each run",
            kind="view",
            headline=True,
            unit="",
            better=None,
            lead="Each step of a run is a point; a step lasts too short for a verdict of its own on steadiness.",
            notes=[],
            footnotes=[],
            tables=[table for table in tables if table.rows],
            charts=[datasets.chart(hockey_stick(curve_set, references))],
        )
    ]
