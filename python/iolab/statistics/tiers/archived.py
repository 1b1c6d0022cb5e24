# SPDX-License-Identifier: Apache-2.0
"""Tiers of archived recordings: events and segment maps, from the data files of an archive."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from ...archive import tables
from ...archive.faults import explain, fault_of
from ...archive.recordings import ArchivedEvents
from ...archive.scan import dataset, row_filter
from ...archive.spark import Rows
from ...archive.tables import Table
from ...errors import FormatError, IolabError, ResultsError
from ...recording.base.checked_files import Part as File
from ...recording.base.counts import Y
from ..engine.cells import where
from ..engine.engine import Engine, int64s, single
from ..engine.snapshot import deleted_segments
from ..engine.windows import Window
from ..language.intervals import SECOND
from ..plan import Frame, Part, Span
from .events import Events, Scan
from .map_sums import EVER, MapRows, keys_of
from .segment_maps import FIELDS, MapFile, MapFiles, MapReading, SegmentMaps
from .spark_engine import SparkEngine


def archived_recording(window: Window) -> ArchivedEvents:
    """The archived recording of a window."""
    recording = window.snap.recording
    assert isinstance(recording, ArchivedEvents)
    return recording


def open_engine(window: Window) -> Engine:
    """The engine that reads the rows of a window: DuckDB here, or a cluster."""
    recording = archived_recording(window)
    place = window.snap.place
    if recording.cluster is not None:
        return SparkEngine(place, recording.cluster)
    return _ArchiveEngine(place, recording.archive.url)


class _ArchiveEngine(Engine):
    """DuckDB over data files of an archive. Its errors are those of the store."""

    def __init__(self, place: Path, url: str) -> None:
        super().__init__(place)
        self._url = url

    def _translate(self, error: Exception) -> IolabError:
        translated = super()._translate(error)
        # a damaged file costs its host, a store that fails costs the question
        if isinstance(translated, FormatError) and fault_of(error):
            return explain(error, self._url, "read a data file")
        return translated


def attach(engine: Engine, window: Window) -> None:
    """Make the events of the segments of a window `events` to an engine."""
    numbers = {segment.number for segment in window.snap.sealed}
    _view(engine, tables.EVENTS, "events", window, numbers)


class ArchiveEvents(Events):
    """Events of an archived recording."""

    def read(self, frame: Frame, spans: Sequence[Span]) -> ArchiveScan:
        return ArchiveScan(frame, self._windows(frame, spans))

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        return [_part(window, tables.EVENTS, self.name) for window in self._windows(frame, spans)]


class ArchiveScan(Scan):
    """Scans of the events of an archive."""

    def open_engine(self, window: Window) -> Engine:
        return open_engine(window)

    def attach(self, engine: Engine, window: Window) -> None:
        attach(engine, window)

    def count_all(self, engine: Engine, window: Window) -> int:
        conditions, bound = window.conditions([])
        sql = f"SELECT CAST(sum(count) AS BIGINT) AS n FROM events {where(conditions)}"
        return single(engine.ask(sql, bound)["n"]) or 0


class ArchiveMaps(SegmentMaps):
    """Segment maps of an archived recording."""

    def find_files(self, window: Window, y: Y) -> MapFiles:
        return _map_files(window, y)

    @property
    def reading(self) -> type[MapReading]:
        return ArchiveMapReading

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        return [_part(frame.window, tables.SEGMENT_MAPS, self.name)]


class ArchiveMapReading(MapReading):
    """Segment maps of an archive while they are read."""

    def _sums(
        self, window: Window, files: Sequence[MapFile], by: Collection[str], is_timed: bool
    ) -> MapRows:
        base = self._frame.window
        inside = [
            '"map" = $map',
            "source = $source",
            "second_ns >= $from_ns",
            "second_ns < $until_ns",
        ]
        bucket = "index" if "index" in by else "0"
        names = ", ".join(
            f"{name if name in by else 'CAST(NULL AS VARCHAR)'} AS {name}" for name in FIELDS
        )
        time = "CAST(sum(time_ns_sum) AS BIGINT)" if is_timed else "0"
        with open_engine(window) as engine:
            _view(engine, tables.SEGMENT_MAPS, "maps", window, {file.number for file in files})
            rows = engine.ask(
                f"SELECT (second_ns - $base) // $interval AS c, {bucket} AS b, {names}, "
                f"CAST(sum(count) AS BIGINT) AS ios, {time} AS spent "
                f"FROM maps {where(inside)} GROUP BY ALL",
                {
                    "map": files[0].file.path.name,
                    "source": window.source,
                    "from_ns": window.first_ns if window.cuts_first else EVER[0],
                    "until_ns": window.until_ns if window.cuts_until else EVER[1],
                    "base": base.base_ns,
                    "interval": base.interval_ns,
                },
            )
        return {
            **{name: int64s(rows[name]) for name in ("c", "ios", "spent")},
            "b": int64s(rows["b"]).astype(np.uint32),
            "key": keys_of(*(rows[name] for name in FIELDS)),
        }


def _map_files(window: Window, y: Y) -> MapFiles:
    """The maps of y of the segments in a window, and of segments of which age deleted the events.
    Their rows are no file each: the path is the name of the map."""
    name = f"io.{y}"
    segments = {segment.number: segment for segment in window.segments()}
    older = deleted_segments(window.snap).within(window.span) if window.earlier else []
    numbered = {*segments, *older}
    with open_engine(window) as engine:
        _view(engine, tables.SEGMENT_MAPS, "maps", window, numbered)
        rows = engine.ask(
            'SELECT segment, max(width_bytes) AS width FROM maps WHERE "map" = $map GROUP BY segment',
            {"map": name},
        )
    numbers, widths = int64s(rows["segment"]), int64s(rows["width"])
    files = [
        MapFile(number, File(Path(name)), width if y == "offset" else 1)
        for number, width in zip(numbers.tolist(), widths.tolist(), strict=True)
        if number in numbered and (width or y != "offset")
    ]
    mapped = {file.number for file in files}
    unmapped = [segment for number, segment in segments.items() if number not in mapped]
    return MapFiles(tuple(sorted(files, key=lambda file: file.number)), tuple(unmapped))


def _view(
    engine: Engine, table: Table, name: str, window: Window, numbers: Collection[int]
) -> None:
    """Make rows of segments known as `name` to an engine. Rows of other recordings, and those that
    a push left without listing their segment, are not in it."""
    recording = archived_recording(window)
    archive, key = recording.archive, recording.key
    # a row of a map has the time of the start of its second
    span = window.first_ns // SECOND * SECOND, window.until_ns
    files = recording.files(table, window.source, span)
    listed = ", ".join(map(str, sorted(numbers))) or "NULL"
    word = key.replace("'", "''")
    of_these = f"recording = '{word}' AND segment IN ({listed})"
    pure = [file for file in files if file.holds_only(key, numbers)]
    mixed = [file for file in files if not file.holds_only(key, numbers)]
    if isinstance(engine, SparkEngine):
        if any(file.has_deletes for file in files):
            raise ResultsError(
                "another engine deleted rows without new files, which Spark can't read here",
                where=archive.url,
                hint="iolab archive compact writes these files again",
            )
        parts = [Rows([file.address for file in pure])] if pure else []
        if mixed:
            parts.append(Rows([file.address for file in mixed], key, sorted(numbers)))
        engine.view(name, table, parts)
        return
    if not files or any(file.has_deletes for file in files):
        # PyIceberg applies the deletes of other engines
        rows = archive.read(
            table, row_filter([key], *span, [window.source], time_column=table.order[-1])
        )
        engine.register(f"{name}_rows", rows)
        engine.run(f"CREATE TEMP VIEW {name} AS SELECT * FROM {name}_rows WHERE {of_these}")
        return
    selects = []
    for kind, part, clause in (("pure", pure, ""), ("mixed", mixed, f"WHERE {of_these}")):
        if part:
            engine.register(f"{name}_{kind}", dataset(archive, table, part))
            selects.append(f"SELECT * FROM {name}_{kind} {clause}")
    engine.run(f"CREATE TEMP VIEW {name} AS {' UNION ALL BY NAME '.join(selects)}")


def _part(window: Window, table: Table, name: str) -> Part:
    span = window.first_ns // SECOND * SECOND, window.until_ns
    files = archived_recording(window).files(table, window.source, span)
    times = [file.times for file in files if file.times is not None]
    is_known = bool(times) and len(times) == len(files)
    return Part(
        f"{name} of the archive",
        min(first for first, _ in times) if is_known else None,
        max(last for _, last in times) + 1 if is_known else None,
        len(files),
        sum(file.rows for file in files),
        sum(file.bytes for file in files),
    )
