"""What happened inside runs: the windows before and after an action, compared; the steps of a load, as curves."""

from __future__ import annotations

from collections.abc import Mapping

from ..compare.compare import compare
from ..errors import IolabError, UsageError
from ..metrics import of
from ..results.windows import FIRST
from .datasets import Datasets
from .payload import Section
from .sections import metric_section
from .source import Source

MOST_METRICS = 4


def window_sections(results: Source, run_places: Mapping[str, int], datasets: Datasets) -> list[Section]:
    """A section per headline rate of the windows between marks; none where no run was marked."""
    try:
        runs = results.window_runs()
    except IolabError:
        return []
    names = dict.fromkeys(name for run in runs for name in run.observations if of(name).headline)
    found = []
    for name in list(names)[:MOST_METRICS]:
        try:
            comparison = compare(runs, name, baseline=FIRST)
        except UsageError:
            continue
        section = metric_section(comparison, run_places, datasets, charts=True)
        found.append(section.model_copy(update={
            "name": f"windows.{name}", "title": f"Windows: {section.title}",
            "lead": f"Each run is cut where an action or mark fell; windows are compared within their run. {section.lead}"}))
    return found
