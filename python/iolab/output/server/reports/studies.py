# SPDX-License-Identifier: Apache-2.0
"""The facts and headlines of all results that are served, from an index.

A study is read once, in a thread of its own, the newest first; its facts stay until a file of it
changes. The index is a file of the user's, and may be deleted.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from iolab.base.documents import Model
from iolab.base.errors import IolabError
from iolab.base.files import DOCUMENT, read_regular, write_atomically
from iolab.studies.history.store import start_of
from iolab.studies.results.evidence.files import RUNS
from iolab.studies.results.evidence.journal import FILE as JOURNAL
from iolab.studies.results.evidence.lock import is_locked
from iolab.studies.results.evidence.manifest import FILE as MANIFEST
from iolab.studies.results.open.cache import code_key
from iolab.studies.results.open.multi_host import FILE as HOSTS

from ..base.start_models import StudyFacts, StudyMatrix
from ..base.store import Store

FILE = "studies.json"
MOST_SENTENCES = 3
"""Sentences of a study."""
MOST_ENTRIES = 50_000
"""Studies that the index file has at most, those of other folders among them."""

_CODE = ("base/stats", "formats", "studies/results", "studies/compare", "output/report")
"""Directories of the package with code that decides what the index says."""
_STAMPED = (MANIFEST, HOSTS, JOURNAL, RUNS)
"""Names in a results directory that change when its facts do. The directory itself also changes
when reading stores caches in it."""
_WRITE_SECONDS = 5.0
_REST = 0.5
"""Share of the time that reading took for which the thread then rests: questions go first."""


class _Entry(Model):
    stamp: str
    facts: StudyFacts


_ENTRIES = TypeAdapter(dict[str, _Entry])


class StudyIndex:
    """Facts of a store's results. Safe to use from several threads."""

    def __init__(self, store: Store, file: Path | None) -> None:
        """`file`: where the index is kept; None: nowhere."""
        self._store, self._file = store, file
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] | None = None
        self._queue: dict[str, Path] = {}
        self._thread: threading.Thread | None = None
        self._ends = threading.Event()

    def facts(self) -> tuple[list[StudyFacts], int]:
        """(facts of every study from the newest on, studies that are still to be read). Those are
        read in the background; what was known of a study before it changed stays until then."""
        results = self._store.results
        stamps = {name: stamp_of(path) for name, path in results.items()}
        with self._lock:
            entries = self._load_entries()
            studies, queue = [], {}
            for name, path in results.items():
                entry = entries.get(str(path.absolute()))
                if entry is None or entry.stamp != stamps[name]:
                    queue[name] = path
                facts = _blank_facts(path) if entry is None else entry.facts
                studies.append(facts.model_copy(update={"name": name}))
            studies.sort(key=_newest_first)
            self._queue = {
                study.name: queue[study.name] for study in studies if study.name in queue
            }
            if self._queue and self._thread is None and not self._ends.is_set():
                self._thread = threading.Thread(
                    target=self._work, name="iolab-studies", daemon=True
                )
                self._thread.start()
        return studies, len(queue)

    def close(self, timeout: float = 5.0) -> None:
        """End the thread that reads."""
        self._ends.set()
        thread = self._thread
        if thread is not None:
            thread.join(timeout)

    def read_next(self) -> bool:
        """Read one study; False where none waits."""
        with self._lock:
            if not self._queue:
                return False
            name = next(iter(self._queue))
            path = self._queue.pop(name)
        stamp = stamp_of(path)
        entry = _Entry(stamp=stamp, facts=study_facts(path))
        with self._lock:
            self._load_entries()[str(path.absolute())] = entry
        return True

    def _work(self) -> None:
        written = time.monotonic()
        while not self._ends.is_set():
            start = time.monotonic()
            if not self.read_next():
                break
            now = time.monotonic()
            if now - written > _WRITE_SECONDS:
                self._write()
                written = now
            self._ends.wait(_REST * (now - start))
        self._write()
        with self._lock:
            self._thread = None

    def _load_entries(self) -> dict[str, _Entry]:
        if self._entries is None:
            self._entries = {} if self._file is None else _read(self._file)
        return self._entries

    def _write(self) -> None:
        if self._file is None:
            return
        with self._lock:
            read_entries = [
                item for item in self._load_entries().items() if item[1].facts.state == "read"
            ]
        content = {path: entry.model_dump() for path, entry in read_entries[-MOST_ENTRIES:]}
        document = {"schema": 1, "code": code_key(_CODE), "studies": content}
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._file, json.dumps(document), durable=False)
        except OSError:
            return  # it is read again next time


def _read(file: Path) -> dict[str, _Entry]:
    """The index file; empty where there is none of this code that can be read."""
    try:
        document = json.loads(read_regular(file, limit=DOCUMENT))
        if document["schema"] != 1 or document["code"] != code_key(_CODE):
            return {}
        return _ENTRIES.validate_python(document["studies"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, ValidationError):
        return {}


def _newest_first(study: StudyFacts) -> tuple[bool, int, str]:
    """Those that can't be read are last."""
    return study.state == "unreadable", -(study.measured_ns or 0), study.name


def stamp_of(path: Path) -> str:
    """What changes when the facts of results do: size and time of some of their files, those of
    each host where there are several."""
    stamps = _stamps(str(path), _STAMPED)
    if stamps[_STAMPED.index(HOSTS)]:
        try:
            with os.scandir(path) as entries:
                hosts = sorted(entry.path for entry in entries if entry.is_dir())
        except OSError:
            hosts = []
        stamps += [stamp for host in hosts for stamp in _stamps(host, _STAMPED)]
    # a study that is killed stops without a change of its files
    return " ".join((*stamps, "running" if is_locked(path) else ""))


def _stamps(place: str, names: Iterable[str]) -> list[str]:
    stamps = []
    for name in names:
        try:
            status = os.stat(f"{place}/{name}")  # noqa: PTH116 - thousands, and Path is slow
            stamps.append(f"{status.st_size}.{status.st_mtime_ns}")
        except OSError:
            stamps.append("")
    return stamps


def study_facts(path: Path) -> StudyFacts:
    """Facts and headline of results, whatever is wrong with them."""
    from iolab.studies.results.open.results import Results

    from ...report.headline import headline  # slow to load

    try:
        results = Results(path)
        manifest = results.manifest
        levels = Counter(run.verdict.level.value for run in results.runs)
        variants = dict.fromkeys(run.variant for run in results.runs)
        summary = headline(results, MOST_SENTENCES)
        return _blank_facts(path).model_copy(
            update={
                "title": manifest.name,
                "state": "read",
                "origin": manifest.origin,
                "measured_ns": start_of(results),
                "variants": list(variants),
                "baseline": results.baseline or "",
                "runs": len(results.runs),
                "levels": dict(levels),
                "sentences": summary.sentences,
                "matrices": [
                    StudyMatrix(title=title, cells=cells) for title, cells in summary.matrices
                ],
                "missing": [] if results.standing is None else results.standing.words(),
            }
        )
    except IolabError as error:
        problem = error.message
    except Exception as error:  # one study must not end the others
        problem = f"can't be read: {type(error).__name__}: {str(error)[:200]}"
    return _blank_facts(path).model_copy(update={"state": "unreadable", "problem": problem})


def _blank_facts(path: Path) -> StudyFacts:
    """What is known of results that were not read."""
    try:
        changed: int | None = path.stat().st_mtime_ns
    except OSError:
        changed = None
    return StudyFacts(
        name="",
        title=path.name,
        state="waiting",
        origin="",
        measured_ns=changed,
        variants=[],
        baseline="",
        runs=0,
        levels={},
        sentences=[],
        matrices=[],
        missing=[],
        recordings=[],
        histories=[],
        problem="",
    )


def by_results(store: Store) -> Mapping[str, list[str]]:
    """The recordings of each results directory, by their names."""
    recordings: dict[str, list[str]] = {}
    for name in store.names:
        home = store.results_of(name)
        if home is not None:
            recordings.setdefault(home, []).append(name)
    return recordings
