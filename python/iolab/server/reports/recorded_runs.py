# SPDX-License-Identifier: Apache-2.0
"""Where runs were recorded, and which statistic shows most of them."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import IolabError
from ...recording.read.recording import Recording
from ...statistics.ask.available import available
from ..base.store import Store
from ..queries.listing import run_of


@dataclass(frozen=True)
class RecordedRun:
    """A run's time in a recording, ns on its clock. graph: the statistic that shows most of it,
    empty where none has an answer."""

    recording: str
    from_ns: int
    until_ns: int
    graph: str


def find_recorded_runs(store: Store, results: str) -> dict[str, list[RecordedRun]]:
    """By run, where it was recorded. A recording that can't be read is left out: its problem is
    stated where it is listed."""
    runs: dict[str, list[RecordedRun]] = {}
    for name in store.of_results(results):
        try:
            recording = Recording(store.path(name))
            marks, graph = recording.marks(), _first_look(recording)
        except IolabError:
            continue
        for mark in marks:
            run, until = run_of(mark), mark["until_ns"]
            if run is not None and until is not None:
                runs.setdefault(run, []).append(RecordedRun(name, mark["from_ns"], until, graph))
    return runs


def _first_look(recording: Recording) -> str:
    """A map of latency, else the first statistic that has an answer; empty where none has."""
    usable = [statistic for statistic in available(recording) if not statistic.why_not]
    mapped = next((item for item in usable if "latency" in item.breakdowns), None)
    return f"{mapped.entry.name}[latency]" if mapped else usable[0].entry.name if usable else ""
