# SPDX-License-Identifier: Apache-2.0
"""What the start page asks: everything that is served, a history, the runs of a cell."""

from __future__ import annotations

import os
import threading
import time

from ..base.start_models import CellRuns, FolderProblem, HistoryAnswer, Start
from ..base.store import Store
from ..queries.listing import facts_of
from ..queries.parameters import Parameter, Words, number, require, several, text, texts
from ..reports.histories import cell_runs, history_answer, history_facts, names_by_path
from ..reports.studies import StudyIndex, by_results

REFRESH_SECONDS = 5.0
"""Folders are searched again at most so often."""
LONGEST_CELL = 4000
MOST_METRICS = 8
MOST_ENTRY = 10**9 - 1

HISTORY = Parameter("history", "Name of a history, as /start lists it.", text(), required=True)
METRICS = Parameter(
    "metric",
    "A metric; repeatable. Default: the first headline ones.",
    texts(MOST_METRICS),
)
CELL = (
    HISTORY,
    Parameter(
        "entry",
        "Number of an entry.",
        {"type": "integer", "minimum": 1, "maximum": MOST_ENTRY},
        required=True,
    ),
    Parameter("metric", "The metric to show.", text(), required=True),
    Parameter("cell", "A cell, as a series names it.", text(LONGEST_CELL), required=True),
)


class StartPage:
    """Answers for the start page of a store."""

    def __init__(self, store: Store, studies: StudyIndex) -> None:
        self._store, self.studies = store, studies
        self._searching = threading.Lock()
        self._searched = float("-inf")

    def start(self) -> Start:
        """Everything that is served."""
        self._refresh()
        store = self._store
        studies, waiting = self.studies.facts()
        recordings = by_results(store)
        names = names_by_path(store) if store.histories else {}
        of_study: dict[str, list[str]] = {}
        histories = []
        for name, path in store.histories.items():
            facts, entries = history_facts(name, path)
            histories.append(facts)
            for entry in entries:
                title = names.get(os.path.realpath(entry))
                if title is not None:
                    of_study.setdefault(title, []).append(name)
        for study in studies:
            study.recordings = recordings.get(study.name, [])
            study.histories = of_study.get(study.name, [])
        return Start(
            studies=studies,
            waiting=waiting,
            histories=histories,
            recordings=[
                facts_of(store, name) for name in store.names if store.results_of(name) is None
            ],
            problems=[
                FolderProblem(path=str(path), problem=problem) for path, problem in store.problems
            ],
        )

    def history(self, words: Words) -> HistoryAnswer:
        """The series of a history."""
        name = require(words, "history")
        return history_answer(self._store, name, several(words, "metric"))

    def runs(self, words: Words) -> CellRuns:
        """The runs of a cell in an entry of a history."""
        return cell_runs(
            self._store,
            require(words, "history"),
            number(words, "entry", 0, 1, MOST_ENTRY),
            require(words, "metric"),
            require(words, "cell"),
        )

    def _refresh(self) -> None:
        """Search folders for what is new; one request at a time, and others do not wait."""
        if not self._searching.acquire(blocking=False):
            return
        try:
            if time.monotonic() - self._searched > REFRESH_SECONDS:
                self._store.refresh()
                self._searched = time.monotonic()
        finally:
            self._searching.release()
