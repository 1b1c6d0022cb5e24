# SPDX-License-Identifier: Apache-2.0
"""A history: a directory with a list of results directories, and an index of their values.

The results stay the truth. `history.json` lists them with revision, tags and environment.
`index.parquet` has a value per cell, variant, metric and entry; it may be deleted, and is rebuilt
from the results. Values of results that are missing are taken over from the index before.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from iolab.base.errors import IolabError, ResultsError, UsageError
from iolab.base.files import EVIDENCE, read_regular, write_atomically
from iolab.base.integrity import FileDigest, has_own_digest, with_own_digest
from iolab.base.metrics import Metric, of, sort_key
from iolab.base.stats.arrays import Floats
from iolab.base.untrusted_text import parse_json
from iolab.base.verdict import Level

from ..results.evidence.lock import lock
from ..results.evidence.manifest import FILE as MANIFEST_FILE
from ..results.evidence.model import Run

if TYPE_CHECKING:
    from ..results.open.results import Results

FILE = "history.json"
INDEX_FILE = "index.parquet"
SCHEMA = 1
_FACTS = b"iolab.studies.history"

Progress = Callable[[int, int], None]
"""Called with (entries read, entries in all) while the index is rebuilt."""


@dataclass(frozen=True)
class Entry:
    """A results directory of a history.

    Attributes:
        number: unique in the history. results: its path, relative to the history's directory.
        name: of the study. revision: of what was measured, such as a commit; empty without one.
        measured_ns: realtime of its first run, or of its creation where runs have no times.
        manifest: digest of its manifest, by which a results directory is recognized.
        environment: facts of its runs; those in which runs differ have all values.
    """

    number: int
    results: str
    name: str
    measured_ns: int
    added_ns: int
    manifest: str
    revision: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The revision, else the last part of the path."""
        return self.revision or Path(self.results).name


@dataclass(frozen=True)
class Row:
    """One value of the index: the mean over the valid runs of a cell (geometric for ratios)."""

    entry: int
    series: str
    metric: str
    unit: str
    value: float
    runs: int


@dataclass(frozen=True)
class SeriesValues:
    """The values of one cell of one variant over time.

    Attributes:
        variant, factors: the cell. entries: numbers of the entries that have it, in order of time.
        values: base units, shape (entries,). runs: how many runs each is of, shape (entries,).
    """

    variant: str
    factors: dict[str, object]
    entries: Sequence[int]
    values: Floats
    runs: Sequence[int]


class History:
    """A history, opened.

    Attributes:
        path: its directory. entries: in order of time. notes: what was wrong with the index since
        it was opened, as lines.
    """

    def __init__(self, path: Path, *, is_new: bool = False) -> None:
        """Open; ResultsError where it is damaged or, unless `is_new`, where there is none."""
        self.path = path
        self.entries = _read_entries(path, is_new=is_new)
        self._by_number = {entry.number: entry for entry in self.entries}
        self.notes: list[str] = []

    def entry(self, number: int) -> Entry:
        """The entry with that number."""
        return self._by_number[number]

    def directory(self, entry: Entry) -> Path:
        """The results directory of an entry."""
        return self.path / entry.results

    def add(
        self, path: Path, *, revision: str = "", tags: Mapping[str, str] | None = None
    ) -> Entry:
        """Add a results directory, and its values to the index.

        Raises UsageError for results that are an entry already, ResultsError for a path that is
        none, or without a valid run.
        """
        from ..results.open.results import Results  # slow to load, and answers need none of it

        results = Results(path.parent if path.name == MANIFEST_FILE else path)
        digest = manifest_digest(results)
        if not any(_is_valid(run) for run in results.runs):
            raise ResultsError(
                "has no valid run", where=path, hint="iolab show says why, run by run"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        with lock(self.path):
            self.entries = _read_entries(self.path, is_new=True)
            for entry in self.entries:
                if entry.manifest == digest:
                    raise UsageError(
                        f"is in the history already, as {entry.label}", where=results.path
                    )
            entry = Entry(
                number=max((entry.number for entry in self.entries), default=0) + 1,
                results=os.path.relpath(results.path.resolve(), self.path.resolve()),
                name=results.manifest.name,
                measured_ns=start_of(results),
                added_ns=time.time_ns(),
                manifest=digest,
                revision=revision,
                tags=dict(tags or {}),
                environment=_environment(results),
            )
            index = _read_index(self.path) if self.entries else _Index()
            self.entries = sorted([*self.entries, entry], key=_time)
            self._by_number = {entry.number: entry for entry in self.entries}
            # the list first: an entry that the index lacks is read from its results again
            _write_entries(self.path, self.entries)
            if index is not None:
                index.add(entry.number, rows_of(entry.number, results))
                index.write(self.path)
        return entry

    def rebuild(self, progress: Progress | None = None) -> list[str]:
        """Rebuild the index from the results. Returns messages about those that can't be read, of
        which the values of the index before are kept."""
        from ..results.open.results import Results

        problems = []
        with lock(self.path):
            before, index = _read_index(self.path), _Index()
            for count, entry in enumerate(self.entries, 1):
                try:
                    index.add(entry.number, rows_of(entry.number, Results(self.directory(entry))))
                except IolabError as error:
                    has_values = before is not None and index.take(entry.number, before)
                    problems.append(
                        f"{error}; its values of the index before "
                        + ("stay" if has_values else "are missing too")
                    )
                if progress is not None:
                    progress(count, len(self.entries))
            index.write(self.path)
        return problems

    def _complete_index(self) -> None:
        """Rebuild the index where it is damaged or lacks an entry, and note it."""
        indexed = _known_entries(self.path)
        if indexed is not None and {entry.number for entry in self.entries} <= indexed:
            return
        self._renew_index(is_damaged=indexed is None)

    def _renew_index(self, *, is_damaged: bool) -> None:
        if is_damaged and os.path.lexists(self.path / INDEX_FILE):
            self.notes.append(f"{INDEX_FILE} was damaged and is rebuilt from the results")
        self.notes += [line for line in self.rebuild() if line not in self.notes]

    def metrics(self) -> list[Metric]:
        """Metrics of the index, in the order of reports."""
        self._complete_index()
        facts = _facts(self.path)
        return [of(name, unit) for name, unit in facts["metrics"]]

    def series(self, metric: str) -> list[SeriesValues]:
        """The values of every cell and variant; UsageError for a metric that the index lacks."""
        self._complete_index()
        names = [name for name, _ in _facts(self.path)["metrics"]]
        if metric not in names:
            raise UsageError(
                f"no results of the history have the metric '{metric}'",
                where=self.path,
                hint="; ".join(self.notes) or f"there are {', '.join(names[:8])}",
            )
        try:
            return self._read_series(names.index(metric))
        except (OSError, ValueError):
            self._renew_index(is_damaged=True)
            return self.series(metric)

    def _read_series(self, group: int) -> list[SeriesValues]:
        table = _read_group(self.path, group)
        names = table["series"].combine_chunks().dictionary_encode()
        codes = np.asarray(names.indices)
        order = {entry.number: place for place, entry in enumerate(self.entries)}
        numbers = table["entry"].to_numpy()
        places = np.array([order.get(number, -1) for number in range(int(numbers.max()) + 1)])
        sequence = np.lexsort((places[numbers], codes))
        sequence = sequence[places[numbers[sequence]] >= 0]
        values, runs = table["value"].to_numpy(), table["runs"].to_numpy()
        cells = [json.loads(name) for name in names.dictionary.to_pylist()]
        ends = np.flatnonzero(np.diff(codes[sequence])) + 1
        return [
            SeriesValues(
                cells[codes[part[0]]]["variant"],
                cells[codes[part[0]]]["factors"],
                numbers[part].tolist(),
                values[part],
                runs[part].tolist(),
            )
            for part in np.split(sequence, ends)
            if len(part)
        ]


def manifest_digest(results: Results) -> str:
    """What a results directory is recognized by."""
    return str(FileDigest.of(read_regular(results.path / MANIFEST_FILE)))


def start_of(results: Results) -> int:
    """Realtime of the first run, else of the creation, nanoseconds."""
    starts = [run.window[0] for run in results.runs if run.window is not None]
    return min(starts, default=results.manifest.created_ns)


def rows_of(number: int, results: Results) -> list[Row]:
    """The values of a results directory: of every cell, variant and metric the mean of its valid
    runs. Metrics of single devices (`device.util[sda]`) are left out. The variant of an import of a
    single variant is empty."""
    has_hosts = len({run.plan.host for run in results.runs}) > 1
    variants = {run.variant for run in results.runs if run.variant != "?"}
    # an import of a single variant has the name of its directory, another one each time
    is_named = results.manifest.origin == "run" or len(variants) > 1
    values: dict[tuple[str, str, str], list[float]] = {}
    for run in results.runs:
        if not _is_valid(run):
            continue
        factors = {**run.factors, **({"host": run.plan.host} if has_hosts else {})}
        name = series_name(run.variant if is_named else "", factors)
        for observation in run.observations.values():
            if "[" not in observation.metric and math.isfinite(observation.value):
                key = (name, observation.metric, observation.unit)
                values.setdefault(key, []).append(observation.value)
    return [
        Row(number, name, metric, unit, _mean(numbers, of(metric, unit)), len(numbers))
        for (name, metric, unit), numbers in values.items()
    ]


def series_name(variant: str, factors: Mapping[str, Any]) -> str:
    """A cell of a variant as text, equal for equal levels."""
    return json.dumps(
        {"variant": variant, "factors": dict(sorted(factors.items()))},
        ensure_ascii=False,
        default=str,
    )


def _mean(values: Sequence[float], metric: Metric) -> float:
    if metric.change == "ratio" and min(values) > 0:
        return float(np.exp(np.mean(np.log(values))))
    return float(np.mean(values))


def _is_valid(run: Run) -> bool:
    return run.verdict.level is not Level.INVALID and bool(run.observations) and run.variant != "?"


def _environment(results: Results) -> dict[str, str]:
    facts: dict[str, dict[str, None]] = {}
    for run in results.runs:
        for name, value in run.environment.items():
            facts.setdefault(name, {})[value] = None
    own = {"iolab": results.manifest.iolab} if results.manifest.origin == "run" else {}
    return {**own, **{name: "; ".join(values) for name, values in facts.items()}}


def _time(entry: Entry) -> tuple[int, int]:
    return entry.measured_ns, entry.number


def _read_entries(path: Path, *, is_new: bool) -> list[Entry]:
    file = path / FILE
    try:
        content = read_regular(file, limit=EVIDENCE)
    except FileNotFoundError:
        if is_new:
            return []
        raise ResultsError(
            "not a history (it has no history.json)",
            where=path,
            hint="iolab history add RESULTS makes one",
        ) from None
    except OSError as error:
        raise ResultsError(f"can't be read: {error.strerror or error}", where=file) from None
    try:
        data = parse_json(content)
    except ValueError as error:
        raise ResultsError(f"is damaged: {error}", where=file, hint="restore a copy") from None
    version = data.get("schema") if isinstance(data, dict) else None
    if isinstance(version, int) and version > SCHEMA:
        raise ResultsError(
            f"written by a newer iolab (schema {version}, this one reads {SCHEMA})", where=file
        )
    if version != SCHEMA or not has_own_digest(content):
        raise ResultsError(
            "is damaged: its content does not match its digest", where=file, hint="restore a copy"
        )
    try:
        entries = TypeAdapter(list[Entry]).validate_python(data.get("entries"))
    except ValidationError as error:
        raise ResultsError(f"is damaged: {error.errors()[0]['msg']}", where=file) from None
    return sorted(entries, key=_time)


def _write_entries(path: Path, entries: Sequence[Entry]) -> None:
    document = {
        "schema": SCHEMA,
        "kind": "history",
        "entries": [asdict(entry) for entry in entries],
    }
    write_atomically(
        path / FILE, with_own_digest(json.dumps(document, indent=1, ensure_ascii=False))
    )


def _facts(path: Path) -> dict[str, Any]:
    """What the index says of itself: the entries that it has, and the metric of each row group."""
    import pyarrow.parquet as pq

    schema = pq.read_schema(io.BytesIO(read_regular(path / INDEX_FILE, limit=EVIDENCE)))
    text = (schema.metadata or {})[_FACTS]
    if not has_own_digest(text):
        raise ValueError("its content does not match its digest")
    facts: dict[str, Any] = json.loads(text)
    return facts


def _read_group(path: Path, group: int) -> Any:
    """The table of a metric; OSError or ValueError where it is not what was written."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(read_regular(path / INDEX_FILE, limit=EVIDENCE)))
    table = file.read_row_group(group, use_threads=False).replace_schema_metadata(None)
    if _digest(table) != _facts(path)["digests"][group]:
        raise ValueError("its content does not match its digest")
    return table


def _digest(table: Any) -> str:
    """Of the values of a table of the index, however they are encoded."""
    names = table["series"].combine_chunks().cast("string").dictionary_encode()
    digest = hashlib.sha256(json.dumps(names.dictionary.to_pylist()).encode())
    digest.update(names.indices.to_numpy().tobytes())
    for name in ("entry", "value", "runs"):
        digest.update(table[name].to_numpy().tobytes())
    return digest.hexdigest()


def _known_entries(path: Path) -> set[int] | None:
    """Entries that the index has; None where there is none that can be read."""
    try:
        facts = _facts(path)
        return set(facts["entries"]) if facts["schema"] == SCHEMA else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


class _Index:
    """The index in memory: a table of each metric, and the entries that it has."""

    def __init__(self) -> None:
        self.entries: set[int] = set()
        self.tables: dict[tuple[str, str], list[Any]] = {}

    def add(self, number: int, rows: Iterable[Row]) -> None:
        """Add the values of an entry."""
        import pyarrow as pa

        by_metric: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            by_metric.setdefault((row.metric, row.unit), []).append(row)
        for metric, members in by_metric.items():
            columns = {name: [getattr(row, name) for row in members] for name in _schema().names}
            self.tables.setdefault(metric, []).append(pa.table(columns, schema=_schema()))
        self.entries.add(number)

    def take(self, number: int, other: _Index) -> bool:
        """Take over the values of an entry from another index; False where it has none."""
        import pyarrow.compute as pc

        if number not in other.entries:
            return False
        for metric, tables in other.tables.items():
            for table in tables:
                rows = table.filter(pc.equal(table["entry"], number))
                if len(rows):
                    self.tables.setdefault(metric, []).append(rows)
        self.entries.add(number)
        return True

    def write(self, path: Path) -> None:
        """Replace the file: a row group per metric, so that a question reads its metric alone."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        metrics = sorted(self.tables, key=lambda metric: sort_key(metric[0]))
        tables = [
            pa.concat_tables(self.tables[metric]).unify_dictionaries().combine_chunks()
            for metric in metrics
        ]
        facts = {
            "schema": SCHEMA,
            "entries": sorted(self.entries),
            "metrics": metrics,
            "digests": [_digest(table) for table in tables],
        }
        schema = _schema().with_metadata({_FACTS: with_own_digest(json.dumps(facts)).encode()})
        buffer = io.BytesIO()
        with pq.ParquetWriter(buffer, schema, compression="zstd") as writer:
            for table in tables:
                writer.write_table(table, row_group_size=len(table))
        write_atomically(path / INDEX_FILE, buffer.getvalue())


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        {
            "entry": pa.int32(),
            "series": pa.dictionary(pa.int32(), pa.string()),
            "value": pa.float64(),
            "runs": pa.int32(),
        }
    )


def _read_index(path: Path) -> _Index | None:
    """The index; None where there is none that can be read."""
    indexed = _known_entries(path)
    if indexed is None:
        return None
    index = _Index()
    try:
        facts = _facts(path)
        for group, (metric, unit) in enumerate(facts["metrics"]):
            index.tables[metric, unit] = [_read_group(path, group)]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    index.entries = indexed
    return index
