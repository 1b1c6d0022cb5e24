# SPDX-License-Identifier: Apache-2.0
"""The tier of archived recordings: sums of a window from the data files of an archive, from segment
maps where these answer exactly, otherwise from events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...archive import tables
from ...archive.recordings import ArchivedEvents
from ...archive.scan import DataFile, dataset, row_filter
from ...archive.tables import Table
from ...recording.base.counts import HeatCounts, merge
from ...recording.base.grids import WITHOUT, Linear
from ..engine.cells import Asked, cells_of, count, fitting, grid_of
from ..engine.engine import Engine, single, whole
from ..engine.snapshot import Span
from ..engine.windows import Window
from ..language.conditions import sql_of
from ..language.intervals import SECOND, columns_of
from ..question import Question
from . import over_time, segment_maps
from .heat import in_seconds, with_facts

MAPS = ("latency", "size")
"""Maps that answer from segment maps. Offsets are scanned: their buckets differ by segment."""


@dataclass(frozen=True)
class ArchiveTier:
    """Sums of an archived recording.

    Attributes:
        recording: of the archive. A tier answers one question.
    """

    recording: ArchivedEvents
    _unmapped: dict[tuple[str, Span], frozenset[int]] = field(default_factory=dict, compare=False)

    def refusal(self, window: Window, question: Question) -> str:
        """Why segment maps can't answer; empty where they can."""
        if question.y is None:
            if question.weight != "count":
                return "segment maps count I/Os, not bytes"
            if question.breakdown not in (None, *segment_maps.FIELDS):
                return f"segment maps do not tell the {question.breakdown}"
        elif question.y not in MAPS or question.buckets is not None:
            return f"segment maps of an archive have no such buckets of {question.y}"
        elif question.weight == "bytes" or (question.weight == "time" and question.y != "latency"):
            return f"segment maps do not tell the {question.weight} of this"
        elif segment_maps.aligned(_asked(window, question)) is None:
            return "the range begins or ends within a bucket"
        refused = segment_maps.refusal(window, question.filters)
        if not refused and len(self.unmapped(window, question)) == len(window.segments()):
            return segment_maps.NO_SEGMENT
        return refused

    def mapped_window(self, window: Window, question: Question) -> Window:
        """The window in columns that maps have, where a scan would take long."""
        return in_seconds(window) if question.interval_ns is None and question.y else window

    def files(self, table: Table, window: Window) -> list[DataFile]:
        """Data files with rows of a window."""
        # a row of a map has the time of the begin of its second
        first_ns = window.first_ns // SECOND * SECOND
        return self.recording.files(table, window.source, (first_ns, window.until_ns))

    def unmapped(self, window: Window, question: Question) -> frozenset[int]:
        """Numbers of the segments in a window that have no map."""
        asked = window.source, window.span
        if asked not in self._unmapped:
            self._unmapped[asked] = self._find_unmapped(window, question)
        return self._unmapped[asked]

    def _find_unmapped(self, window: Window, question: Question) -> frozenset[int]:
        with self._engine(tables.SEGMENT_MAPS, "maps", window, self.recording.numbers) as engine:
            segments = engine.ask(
                "SELECT DISTINCT segment FROM maps WHERE map = $map", {"map": _map_of(question)}
            )
        mapped = set(whole(segments["segment"]).tolist())
        return frozenset(segment.number for segment in window.segments()) - mapped

    def series(self, window: Window, question: Question, *, maps: bool) -> list[dict[str, Any]]:
        """Sums over time, as `over_time.sums_of`."""
        statistic = question.statistic
        assert statistic is not None
        key = over_time.key_of(statistic.breakdown)
        numbers, parts = self.recording.numbers, []
        if maps:
            numbers = self.unmapped(window, question)
            texts, bound = sql_of(question.filters)
            with self._engine(
                tables.SEGMENT_MAPS, "maps", window, self.recording.numbers
            ) as engine:
                parts.append(
                    _map_sums(
                        engine,
                        window,
                        f"{key or 'NULL'} AS k, CAST(sum(count) AS BIGINT) AS n, 0 AS lacking",
                        texts,
                        {**bound, "map": _map_of(question)},
                    )
                )
        if numbers or not maps:
            conditions, bound = window.conditions(question.filters)
            with self._engine(tables.EVENTS, "events", window, numbers) as engine:
                parts.append(
                    over_time.sums(
                        engine,
                        statistic,
                        conditions,
                        bound,
                        window.base_ns,
                        window.interval_ns,
                        window.columns,
                    )
                )
        return parts

    def heat(self, window: Window, question: Question, *, maps: bool) -> HeatCounts:
        """Counts by time and y, as `heat.heat_of`."""
        columns_of(window.first_ns, window.until_ns - 1, window.interval_ns)
        if not maps:
            counts = self._scanned(window, question, self.recording.numbers)
            return with_facts(counts, window, question.filters, [])
        seconds = self.mapped_window(window, question)
        unmapped = self.unmapped(seconds, question)
        counts = self._mapped(seconds, question)
        if unmapped:
            counts = merge([counts, self._scanned(seconds, question, unmapped)])
        is_longer = seconds.interval_ns != window.interval_ns
        notes = ["columns of a second, as the recording's own maps have them"] if is_longer else []
        return with_facts(counts, seconds, question.filters, notes)

    def attach(self, engine: Engine, window: Window) -> None:
        """Make the events of a window `events` to an engine."""
        self._view(engine, tables.EVENTS, "events", window, self.recording.numbers)

    def _scanned(self, window: Window, question: Question, numbers: frozenset[int]) -> HeatCounts:
        """Counts of events of segments."""
        asked = _asked(window, question)
        grid, most = grid_of(asked.y, question.buckets)
        with self._engine(tables.EVENTS, "events", window, numbers) as engine:
            if grid is None:
                asked = replace(asked, grid=fitting(engine, asked, most))
            counts = count(engine, asked)
            if not question.filters:
                return counts
            conditions, bound = window.conditions([])
            total = single(
                engine.ask(
                    "SELECT CAST(sum(count) AS BIGINT) AS n FROM events "
                    f"WHERE {' AND '.join(conditions)}",
                    bound,
                )["n"]
            )
        return replace(
            counts, filtered=(total or 0) - counts.events - counts.without_y - counts.outside
        )

    def _mapped(self, window: Window, question: Question) -> HeatCounts:
        """Counts of segment maps."""
        asked = _asked(window, question)
        bounds = segment_maps.aligned(asked)
        assert bounds is not None
        texts, bound = sql_of(question.filters)
        meets = f"coalesce({' AND '.join(texts)}, false)" if texts else "true"
        with self._engine(tables.SEGMENT_MAPS, "maps", window, self.recording.numbers) as engine:
            sums = _map_sums(
                engine,
                window,
                f"index AS b, {meets} AS meets, CAST(sum(count) AS BIGINT) AS ios, "
                "CAST(sum(time_ns_sum) AS BIGINT) AS spent",
                [],
                {**bound, "map": _map_of(question)},
            )
        is_met = np.ma.filled(sums["meets"], False).astype(bool)
        column, bucket, ios, spent = (
            whole(sums[name])[is_met] for name in ("c", "b", "ios", "spent")
        )
        is_missing = bucket == WITHOUT
        is_inside = ~is_missing & (bucket >= bounds[0]) & (bucket < bounds[1])
        amount = spent if question.weight == "time" else ios
        counts = cells_of(
            asked,
            column[is_inside],
            bucket[is_inside],
            amount[is_inside],
            events=int(ios[is_inside].sum()),
            without_y=int(ios[is_missing].sum()),
            outside=int(ios[~is_missing & ~is_inside].sum()),
        )
        return replace(counts, filtered=int(whole(sums["ios"])[~is_met].sum()))

    @contextmanager
    def _engine(
        self, table: Table, name: str, window: Window, numbers: frozenset[int]
    ) -> Iterator[Engine]:
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


def _map_of(question: Question) -> str:
    return f"io.{question.y or 'latency'}"


def _asked(window: Window, question: Question) -> Asked:
    assert question.y is not None
    conditions, bound = window.conditions(question.filters)
    grid, _ = grid_of(question.y, question.buckets)
    return Asked(
        question.y,
        window.base_ns,
        window.interval_ns,
        conditions,
        bound,
        question.low,
        question.high,
        grid or Linear(0, 1),
        question.weight,
    )


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
            "base": window.base_ns,
            "interval": window.interval_ns,
        },
    )
