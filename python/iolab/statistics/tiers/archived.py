# SPDX-License-Identifier: Apache-2.0
"""Tiers of archived recordings: sums from the data files of an archive, from segment maps where
these are exact, otherwise from events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ...archive import tables
from ...archive.recordings import ArchivedEvents
from ...archive.scan import DataFile, dataset, row_filter
from ...archive.tables import Table
from ...recording.base.grids import WITHOUT, Grid
from ...recording.read.trace import BITS
from ...recording.segments.segments import MAP_NAMES
from ..engine.cells import cells_of, count
from ..engine.engine import Engine, single, whole
from ..engine.numbers import key_of
from ..engine.windows import Window
from ..language.conditions import sql_of
from ..language.intervals import SECOND
from ..plan import Cost, Frame, Part, Reading, Span
from ..question import Question
from ..sums import Bounds, Numbers, Sums
from .events import asked_of, bounds_of, frame_of, numbers_of
from .segment_maps import NO_SEGMENT, aligned, in_seconds, refusal

MAPS = ("latency", "size")
"""Maps that answer from segment maps. Offsets are scanned: their buckets differ by segment."""


class _Archived:
    """Sums of an archived recording, for one question. recording: of the archive."""

    table: Table
    name: str

    def __init__(self, recording: ArchivedEvents) -> None:
        self.recording = recording

    def cost(self, frame: Frame, span: Span) -> Cost | None:
        """As `Tier.cost`. Data files hold several segments, and those of maps all kinds of maps."""
        if not _numbers_in(self.recording, [span]):
            return Cost(0, 0)
        files = self.files(self.table, frame.window)
        kinds = len(MAP_NAMES) if self.table is tables.SEGMENT_MAPS else 1
        return Cost(len(files), sum(file.bytes for file in files) // kinds + 1)

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        """As `Tier.parts`."""
        files = self.files(self.table, frame.window)
        times = [file.times for file in files if file.times is not None]
        is_known = bool(times) and len(times) == len(files)
        return [
            Part(
                self.name,
                min(first for first, _ in times) if is_known else None,
                max(last for _, last in times) + 1 if is_known else None,
                len(files),
                sum(file.rows for file in files),
                sum(file.bytes for file in files),
            )
        ]

    def files(self, table: Table, window: Window) -> list[DataFile]:
        """Data files with rows of a window."""
        # a row of a map has the time of the begin of its second
        first_ns = window.first_ns // SECOND * SECOND
        return self.recording.files(table, window.source, (first_ns, window.until_ns))

    @contextmanager
    def engine(
        self, table: Table, name: str, window: Window, numbers: frozenset[int]
    ) -> Iterator[Engine]:
        """An engine with the rows of segments as `name`."""
        with Engine(window.snap.place) as engine:
            self._view(engine, table, name, window, numbers)
            yield engine

    def _view(
        self, engine: Engine, table: Table, name: str, window: Window, numbers: frozenset[int]
    ) -> None:
        """Make rows of segments known as `name` to an engine. Rows of other recordings, and those
        that a push left without listing their segment, are not in it."""
        archive, key = self.recording.archive, self.recording.key
        files = self.files(table, window)
        listed = ", ".join(map(str, sorted(numbers))) or "NULL"
        word = key.replace("'", "''")
        of_these = f"WHERE recording = '{word}' AND segment IN ({listed})"
        if not files or any(file.has_deletes for file in files):
            # PyIceberg applies the deletes of other engines
            rows = archive.read(
                table,
                row_filter(
                    [key],
                    window.first_ns // SECOND * SECOND,
                    window.until_ns,
                    [window.source],
                    table.order[-1],
                ),
            )
            engine.register(f"{name}_rows", rows)
            engine.run(f"CREATE TEMP VIEW {name} AS SELECT * FROM {name}_rows {of_these}")
            return
        parts = []
        for kind, clause in (("pure", ""), ("mixed", of_these)):
            chosen = [file for file in files if file.holds_only(key, numbers) == (kind == "pure")]
            if chosen:
                engine.register(f"{name}_{kind}", dataset(archive, table, chosen))
                parts.append(f"SELECT * FROM {name}_{kind} {clause}")
        engine.run(f"CREATE TEMP VIEW {name} AS {' UNION ALL BY NAME '.join(parts)}")


class ArchiveEvents(_Archived):
    """Events in the tables of an archive."""

    name = "events of the archive"
    table = tables.EVENTS

    def frame(self, question: Question) -> Frame | str:
        """As `Tier.frame`."""
        return frame_of(self.recording, question, with_deleted=True)

    def covers(self, frame: Frame) -> Sequence[Span] | str:
        """As `Tier.covers`."""
        return [frame.whole] if frame.window.snap.kind == "events" else "counters are asked"

    def read(self, frame: Frame, spans: Sequence[Span]) -> Reading:
        """As `Tier.read`."""
        return _EventReading(self, frame, spans)

    def attach(self, engine: Engine, window: Window) -> None:
        """Make the events of a window `events` to an engine."""
        self._view(engine, tables.EVENTS, "events", window, self.recording.numbers)


class ArchiveMaps(_Archived):
    """Segment maps in the tables of an archive."""

    name = "segment maps of the archive"
    table = tables.SEGMENT_MAPS

    def __init__(self, recording: ArchivedEvents) -> None:
        super().__init__(recording)
        self._unmapped: dict[int, tuple[Window, frozenset[int]]] = {}

    def frame(self, question: Question) -> Frame | str:
        """As `Tier.frame`."""
        frame = in_seconds(frame_of(self.recording, question, with_deleted=True))
        spans = self.covers(frame)
        return spans if isinstance(spans, str) else frame

    def covers(self, frame: Frame) -> Sequence[Span] | str:
        """As `Tier.covers`: runs of segments with maps."""
        question = frame.question
        if question.y is not None and (question.y not in MAPS or question.buckets is not None):
            return f"segment maps of an archive have no such buckets of {question.y}"
        if question.y is not None and question.weight == "time" and question.y != "latency":
            return f"segment maps do not tell the {question.weight} of this"
        if reason := refusal(frame):
            return reason
        unmapped = self._find_unmapped(frame)
        mapped = [
            segment.number for segment in frame.window.segments() if segment.number not in unmapped
        ]
        spans: list[Span] = []
        for number in sorted(mapped):
            if spans and spans[-1].last + 1 == number:
                spans[-1] = spans[-1]._replace(last=number)
            else:
                spans.append(Span(number, number, *frame.whole[2:]))
        return spans or NO_SEGMENT

    def read(self, frame: Frame, spans: Sequence[Span]) -> Reading:
        """As `Tier.read`."""
        return _MapReading(self, frame, spans)

    def _find_unmapped(self, frame: Frame) -> frozenset[int]:
        """Numbers of the segments in a window that have no map."""
        window = frame.window
        if id(window) not in self._unmapped:
            with self.engine(tables.SEGMENT_MAPS, "maps", window, self.recording.numbers) as engine:
                segments = engine.ask(
                    "SELECT DISTINCT segment FROM maps WHERE map = $map",
                    {"map": _map_of(frame.question)},
                )
            mapped = set(whole(segments["segment"]).tolist())
            numbers = frozenset(segment.number for segment in window.segments())
            self._unmapped[id(window)] = (window, numbers - mapped)
        return self._unmapped[id(window)][1]


def _numbers_in(recording: ArchivedEvents, spans: Sequence[Span]) -> frozenset[int]:
    """Numbers of the segments of spans."""
    return frozenset(
        number
        for number in recording.numbers
        if any(first <= number <= last for first, last, *_ in spans)
    )


class _EventReading(Reading):
    """Events of spans, of one time."""

    def __init__(self, tier: ArchiveEvents, frame: Frame, spans: Sequence[Span]) -> None:
        self._frame, self._stack = frame, ExitStack()
        self._window = frame.window.between(*spans[0][2:])
        self._numbers = _numbers_in(tier.recording, spans)
        self._tier = tier

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @cached_property
    def _engine(self) -> Engine:
        return self._stack.enter_context(
            self._tier.engine(tables.EVENTS, "events", self._window, self._numbers)
        )

    def bounds(self) -> Sequence[Bounds]:
        return bounds_of(self._engine, self._frame, self._window)

    def sums(self, grid: Grid | None) -> Sequence[Sums]:
        question = self._frame.question
        if question.y is None:
            return [numbers_of(self._engine, self._frame, self._window)]
        counts = count(self._engine, asked_of(self._frame, self._window, grid))
        if not question.filters:
            return [counts]
        conditions, bound = self._window.conditions([])
        sql = f"SELECT CAST(sum(count) AS BIGINT) AS n FROM events WHERE {' AND '.join(conditions)}"
        total = single(self._engine.ask(sql, bound)["n"]) or 0
        seen = counts.events + counts.without_y + counts.outside
        return [replace(counts, filtered=total - seen)]


class _MapReading(Reading):
    """Maps of spans, of one time."""

    def __init__(self, tier: ArchiveMaps, frame: Frame, spans: Sequence[Span]) -> None:
        self._tier, self._frame = tier, frame
        self._window = frame.window.between(*spans[0][2:])
        self._numbers = _numbers_in(tier.recording, spans)

    def sums(self, grid: Grid | None) -> Sequence[Sums]:
        question, base_ns = self._frame.question, self._frame.window.base_ns
        texts, bound = sql_of(question.filters)
        bound = {**bound, "map": _map_of(question), "base": base_ns}
        with self._tier.engine(tables.SEGMENT_MAPS, "maps", self._window, self._numbers) as engine:
            if question.y is None:
                key = key_of(question.breakdown) or "NULL"
                select = f"{key} AS k, CAST(sum(count) AS BIGINT) AS n, 0 AS lacking"
                return [Numbers(_map_sums(engine, self._window, select, texts, bound))]
            meets = f"coalesce({' AND '.join(texts)}, false)" if texts else "true"
            select = (
                f"index AS b, {meets} AS meets, CAST(sum(count) AS BIGINT) AS ios, "
                "CAST(sum(time_ns_sum) AS BIGINT) AS spent"
            )
            sums = _map_sums(engine, self._window, select, [], bound)
        buckets = aligned(BITS, question.low, question.high)
        assert buckets is not None  # such maps are refused
        is_met = np.ma.filled(sums["meets"], False).astype(bool)
        column, bucket, ios, spent = (
            whole(sums[name])[is_met] for name in ("c", "b", "ios", "spent")
        )
        is_missing = bucket == WITHOUT
        is_inside = ~is_missing & (bucket >= buckets[0]) & (bucket < buckets[1])
        amount = spent if question.weight == "time" else ios
        counts = cells_of(
            asked_of(self._frame, self._window, grid),
            column[is_inside],
            bucket[is_inside],
            amount[is_inside],
            events=int(ios[is_inside].sum()),
            without_y=int(ios[is_missing].sum()),
            outside=int(ios[~is_missing & ~is_inside].sum()),
        )
        return [replace(counts, filtered=int(whole(sums["ios"])[~is_met].sum()))]


def _map_of(question: Question) -> str:
    return f"io.{question.y or 'latency'}"


def _map_sums(
    engine: Engine, window: Window, select: str, conditions: Sequence[str], bound: dict[str, Any]
) -> dict[str, Any]:
    """Sums of `maps` by column c of a window."""
    ends = {
        "from_ns": window.first_ns if window.cuts_first else -(2**63),
        "until_ns": window.until_ns if window.cuts_until else 2**63 - 1,
    }
    inside = ["map = $map", "source = $source", "second_ns >= $from_ns", "second_ns < $until_ns"]
    return engine.ask(
        f"SELECT (second_ns - $base) // $interval AS c, {select} FROM maps "
        f"WHERE {' AND '.join([*inside, *conditions])} GROUP BY ALL",
        {
            **bound,
            **ends,
            "source": window.source,
            "interval": window.interval_ns,
        },
    )
