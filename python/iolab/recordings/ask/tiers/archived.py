# SPDX-License-Identifier: Apache-2.0
"""Tiers of archived recordings: events and segment maps, from the data files of an archive."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iolab.base.errors import ResultsError

from ...archive import tables
from ...archive.recordings import ArchivedEvents
from ...archive.scan import DataFile, Rows, join_rows, row_filter
from ...archive.tables import Table
from ...store.base.counts import Y
from ...store.ledger import Part as File
from ..engine.cells import where
from ..engine.engine import BY, REQUEST, Engine, int64s, single
from ..engine.snapshot import deleted_segments
from ..engine.windows import Window, sql_of
from ..plan import Frame, Part, Span
from ..question import SECOND
from .archive_engines import ArchiveEngine, FilesRequest, open_engine
from .events import Events, Scan
from .map_sums import MapRows, keys_of
from .segment_maps import FIELDS, MapFile, MapFiles, MapReading, SegmentMaps


def archived_recording(window: Window) -> ArchivedEvents:
    """The archived recording of a window."""
    recording = window.snap.recording
    assert isinstance(recording, ArchivedEvents)
    return recording


class ArchiveEvents(Events):
    """Events of an archived recording."""

    def read(self, frame: Frame, spans: Sequence[Span]) -> ArchiveScan:
        return ArchiveScan(frame, self._windows(frame, spans))

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        return [
            part_of_table(window, tables.EVENTS, self.name)
            for window in self._windows(frame, spans)
        ]


class ArchiveScan(Scan):
    """Scans of the events of an archive."""

    def open_engine(self, window: Window) -> Engine:
        return open_engine(archived_recording(window))

    def attach(self, engine: Engine, window: Window) -> None:
        assert isinstance(engine, ArchiveEngine)
        numbers = {segment.number for segment in window.snap.sealed}
        engine.view("events", tables.EVENTS, rows_of(tables.EVENTS, window, numbers))

    def count_all(self, engine: Engine, window: Window) -> int:
        conditions, bound = window.conditions([])
        sql = f"SELECT {BY} CAST(sum(count) AS BIGINT) AS n FROM events {where(conditions)} GROUP BY ALL"
        return single(engine.ask(sql, bound)["n"]) or 0


class ArchiveMaps(SegmentMaps):
    """Segment maps of an archived recording."""

    def find_files(self, window: Window, y: Y) -> MapFiles:
        return _map_files(window, y)

    @property
    def reading(self) -> type[MapReading]:
        return ArchiveMapReading

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        files = self.files(frame)
        assert isinstance(files, MapFiles)
        return [part_of_table(frame.window, _table_of(files.files), self.name)]


class ArchiveMapReading(MapReading):
    """Segment maps of an archive while they are read."""

    def _sums(
        self, window: Window, files: Sequence[MapFile], by: Collection[str], is_timed: bool
    ) -> MapRows:
        base = self._frame.window
        inside = ['"map" = $map', "source = $source"]
        bound: dict[str, Any] = {"map": files[0].file.path.name, "source": window.source}
        if window.cuts_first:
            inside.append("second_ns >= $from_ns")
            bound["from_ns"] = window.first_ns
        if window.cuts_until:
            inside.append("second_ns < $until_ns")
            bound["until_ns"] = window.until_ns
        conditions, values = sql_of(self._frame.question.filters)
        meets = f"coalesce({' AND '.join(conditions) or 'true'}, false)"
        # other I/Os are counted alone
        keys = {
            "c": "(second_ns - $base) // $interval",
            "b": '"index"' if "index" in by else "0",
            **{name: name if name in by else "CAST(NULL AS VARCHAR)" for name in FIELDS},
        }
        names = ", ".join(f"CASE WHEN {meets} THEN {sql} END AS {key}" for key, sql in keys.items())
        time = "CAST(sum(time_ns_sum) AS BIGINT)" if is_timed else "0"
        with open_engine(archived_recording(window)) as engine:
            numbers = {file.number for file in files}
            # a part of the question may end within a sum of 100 s
            table = _table_of(files) if _fit_coarse(window) else tables.SEGMENT_MAPS
            engine.view("maps", table, rows_of(table, window, numbers))
            rows = engine.ask(
                f"SELECT {BY} {meets} AS meets, {names}, "
                f"CAST(sum(count) AS BIGINT) AS ios, {time} AS spent "
                f"FROM maps {where(inside)} GROUP BY ALL",
                {**bound, **values, "base": base.base_ns, "interval": base.interval_ns},
            )
        return {
            **{name: int64s(rows[name]) for name in ("c", "ios", "spent")},
            "b": int64s(rows["b"]).astype(np.uint32),
            "key": keys_of(*(rows[name] for name in FIELDS)),
            "meets": np.ma.filled(rows["meets"], False).astype(bool),
        }


def _map_files(window: Window, y: Y) -> MapFiles:
    """The maps of y of the segments in a window, and of segments of which age deleted the events.
    Their rows are no file each: the path is the table and the name of the map.

    Sums of 100 s are read where they fit the columns and all segments have them."""
    segments = {segment.number: segment for segment in window.segments()}
    older = deleted_segments(window.snap).within(window.span) if window.earlier else []
    numbered = {*segments, *older}
    files: list[MapFile] = []
    if _fit_coarse(window) and archived_recording(window).archive.has(tables.COARSE_MAPS):
        files = _read_maps(window, y, tables.COARSE_MAPS, numbered)
    if len(files) < len(numbered):
        files = _read_maps(window, y, tables.SEGMENT_MAPS, numbered)
    mapped = {file.number for file in files}
    unmapped = [segment for number, segment in segments.items() if number not in mapped]
    return MapFiles(tuple(sorted(files, key=lambda file: file.number)), tuple(unmapped))


def _fit_coarse(window: Window) -> bool:
    """Whether columns and ends of a window do not cut sums of 100 s."""
    block_ns = tables.COARSE_S * SECOND
    return not (
        window.interval_ns % block_ns
        or window.base_ns % block_ns
        or (window.cuts_first and window.first_ns % block_ns)
        or (window.cuts_until and window.until_ns % block_ns)
    )


def _read_maps(window: Window, y: Y, table: Table, numbered: Collection[int]) -> list[MapFile]:
    """The maps of y of segments that a table has."""
    name = f"io.{y}"
    with open_engine(archived_recording(window)) as engine:
        engine.view("maps", table, rows_of(table, window, numbered))
        rows = engine.ask(
            f"SELECT {BY} segment, max(width_bytes) AS width FROM maps "
            'WHERE "map" = $map GROUP BY ALL',
            {"map": name},
        )
    numbers, widths = int64s(rows["segment"]), int64s(rows["width"])
    file = File(Path(table.name, name))
    return [
        MapFile(number, file, width if y == "offset" else 1)
        for number, width in zip(numbers.tolist(), widths.tolist(), strict=True)
        if number in numbered and (width or y != "offset")
    ]


def _table_of(files: Sequence[MapFile]) -> Table:
    """The table that has the rows of maps."""
    is_coarse = files[0].file.path.parent.name == tables.COARSE_MAPS.name
    return tables.COARSE_MAPS if is_coarse else tables.SEGMENT_MAPS


def rows_of(table: Table, window: Window, numbers: Collection[int]) -> list[Rows]:
    """Rows of segments. Rows of other recordings, and those that a push left without listing their
    segment, are not in it."""
    recording = archived_recording(window)
    key, files = recording.key, files_in(table, window)
    if any(file.has_deletes for file in files):
        if recording.cluster is not None:
            raise ResultsError(
                "another engine deleted rows without new files, which Spark can't read here",
                where=recording.archive.url,
                hint="iolab archive compact writes these files again",
            )
        # PyIceberg applies the deletes of other engines
        ends = _span(table, window)
        where = row_filter([key], *ends, [window.source], time_column=table.order[-1])
        rows = recording.archive.read(table, where)
        is_listed = pc.and_(
            pc.equal(rows["recording"], key),
            pc.is_in(rows["segment"], pa.array(sorted(numbers), pa.int64())),
        )
        return [Rows(table=rows.filter(is_listed))]
    whole_files = [file for file in files if file.holds_only(key, numbers)]
    divided_files = [file for file in files if not file.holds_only(key, numbers)]
    return join_rows([Rows(whole_files), Rows(divided_files, segments={key: numbers})])


def _span(table: Table, window: Window) -> tuple[int, int]:
    # a row of a map has the time of the start of its second, or of its 100 s
    step_ns = tables.COARSE_S * SECOND if table is tables.COARSE_MAPS else SECOND
    return window.first_ns // step_ns * step_ns, window.until_ns


def files_in(table: Table, window: Window) -> list[DataFile]:
    """Data files that can hold rows of a window."""
    recording, request = archived_recording(window), REQUEST.get()
    file_request = FilesRequest(recording, table, window.source, _span(table, window))
    files = recording.known_files(*file_request[1:])
    if files is None:
        files = recording.files(*file_request[1:]) if request is None else request(file_request)
    return files


def part_of_table(window: Window, table: Table, name: str) -> Part:
    """What is read of a table for a window."""
    files = files_in(table, window)
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
