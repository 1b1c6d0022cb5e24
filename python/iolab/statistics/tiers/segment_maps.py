# SPDX-License-Identifier: Apache-2.0
"""Heat maps and series from the default maps of sealed segments, where these answer exactly."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ...recording.base.checked_files import DamagedError, Part, damages, is_known_damaged
from ...recording.base.counts import HeatCounts, Integers, Y
from ...recording.base.grids import WITHOUT, Grid, Linear, LogLinear
from ...recording.segments.segments import Segment, part_of
from ..engine.cells import BUCKETS, Asked, bucket_of, cells_of, covering, lower_bounds, where
from ..engine.dropped_segments import gone
from ..engine.engine import Engine, whole
from ..engine.snapshot import Snapshot, Span
from ..engine.windows import Window
from ..language.conditions import sql_of
from ..language.intervals import SECOND
from ..language.names import Filter
from ..question import Question

FIELDS = ("op", "device")
"""What default maps tell apart."""


NO_SEGMENT = "no sealed segment lies in this time"
"""Why no map answers."""

MOST_ROWS = 4_000_000
"""Rows of sums that are remembered, of all questions together."""


class MapFile(NamedTuple):
    """The default map of a segment. width: of its equal buckets (offset maps; else 1)."""

    number: int
    part: Part
    width: int


@dataclass(frozen=True)
class MapFiles:
    """Default maps of one kind of y: those of segments in the window, and older ones whose events
    were removed. unmapped: segments in the window of which the map is missing or damaged."""

    files: tuple[MapFile, ...]
    unmapped: tuple[Segment, ...] = ()

    @property
    def widest(self) -> int:
        """Width of the widest equal buckets."""
        return max((file.width for file in self.files), default=1)

    def rest(self, window: Window) -> Window:
        """The window of the events that no map has."""
        snap = window.snap
        return replace(window, snap=Snapshot(snap.recording, self.unmapped, snap.hot, snap.kind))


def files_of(window: Window, y: Y) -> MapFiles:
    """The maps that a window needs. One of a segment whose events were removed is left out where it
    is missing or damaged; what is lost by that is told."""
    catalogue = window.snap.recording.catalogue()
    lines, maps = catalogue.segments.lines, catalogue.maps[f"io.{y}"]
    segments = {segment.number: segment for segment in window.segments()}
    older = gone(window.snap).within((window.first_ns, window.until_ns)) if window.earlier else []
    files = []
    unmapped = []
    for number in (*segments, *older):
        line = lines.get(number, {})
        width = line.get("offset_width") if y == "offset" else 1
        if isinstance(width, int) and number in maps:
            files.append(
                MapFile(number, part_of(window.snap.place, line, number, f"io.{y}"), width)
            )
        elif number in segments:
            unmapped.append(segments[number])
    known = {file.part.path for file in files if is_known_damaged(file.part.path)}
    wrong = {part.path for part, _ in damages([file.part for file in files])}
    for file in files:
        if file.part.path not in wrong:
            continue
        if file.number in segments:
            unmapped.append(segments[file.number])
        elif file.part.path not in known:
            # the window was made without knowing that this time is lost
            raise DamagedError(
                "is a damaged default map",
                where=file.part.path,
                hint="iolab verify says what is lost",
            )
    return MapFiles(tuple(file for file in files if file.part.path not in wrong), tuple(unmapped))


def find_counts(window: Window, question: Question) -> MapFiles | str:
    """The maps that count I/Os over time exactly; or why none does."""
    if question.weight != "count":
        return "segment maps count I/Os, not bytes"
    if question.breakdown not in (None, *FIELDS):
        return f"segment maps do not tell the {question.breakdown}"
    return find_maps(window, question.filters, "latency")


def find_maps(window: Window, filters: Sequence[Filter], y: Y) -> MapFiles | str:
    """The maps of y where they answer for a window under conditions; or why none does."""
    refused = refusal(window, filters)
    if refused:
        return refused
    files = files_of(window, y)
    if files.files:
        return files
    return "the maps of all segments are missing or damaged" if files.unmapped else NO_SEGMENT


def refusal(window: Window, filters: Sequence[Filter]) -> str:
    """Why maps can't answer for a window under conditions; empty where they can."""
    if window.interval_ns % SECOND:
        return "columns are not whole seconds"
    ends = ((window.cuts_first, window.first_ns), (window.cuts_until, window.until_ns))
    if any(is_cut and end_ns % SECOND for is_cut, end_ns in ends):
        return "the time begins or ends within a second"
    other = [each.field for each in filters if each.field not in FIELDS]
    return f"segment maps do not tell the {other[0]}" if other else ""


@dataclass(frozen=True)
class _Sums:
    """Sums of maps that were read. parts: the maps by the number of their segment. columns: rows of
    the answer, with the number of the segment in `number`."""

    parts: Mapping[int, Part]
    columns: Mapping[str, Any]


_remembered: dict[tuple[object, ...], _Sums] = {}
_guard = threading.Lock()


def _sums(
    engine: Engine,
    window: Window,
    files: MapFiles,
    select: str,
    conditions: Sequence[str],
    bound: Mapping[str, Any],
) -> dict[str, Any]:
    """What SQL selects of maps under conditions, by segment `number` and column `c` (from the
    window's base). Rows of one column may be several; they add up.

    A map takes far longer to open than to add up: the sums of maps that the window holds whole are
    remembered, and only those of other maps are read.
    """
    lines = window.snap.recording.catalogue().segments.lines
    inner: dict[int, Part] = {}
    edges: dict[int, Part] = {}
    for number, part, _ in files.files:
        line = lines.get(number, {})
        first, last = line.get("first_ns"), line.get("last_ns")
        is_whole = (
            first is not None
            and last is not None
            and part.crc32 is not None
            and not (window.cuts_first and first < window.first_ns)
            and not (window.cuts_until and last >= window.until_ns)
        )
        (inner if is_whole else edges)[number] = part
    bound = {**bound, "source": window.source}
    folder = files.files[0].part.path.parent
    key = (folder, window.interval_ns, select, tuple(conditions), repr(bound))
    with _guard:
        sums = _remembered.get(key, _Sums({}, {}))
    unread = {number: part for number, part in inner.items() if sums.parts.get(number) != part}
    parts: list[Mapping[str, Any]] = []
    known = inner.keys() - unread.keys()
    if len(known) == len(sums.parts):
        parts += [sums.columns] if sums.columns else []
    else:
        shown = np.isin(sums.columns["number"], np.fromiter(known, dtype=np.int64))
        parts.append({name: column[shown] for name, column in sums.columns.items()})
    if unread:
        columns = _read(engine, window, "maps", unread, select, conditions, bound)
        parts.append(columns)
        _remember(key, sums, unread, columns)
    if edges:
        ends = {
            "from_ns": window.first_ns if window.cuts_first else -(2**63),
            "until_ns": window.until_ns if window.cuts_until else 2**63 - 1,
        }
        inside = [*conditions, "second_ns >= $from_ns", "second_ns < $until_ns"]
        parts.append(_read(engine, window, "edges", edges, select, inside, {**bound, **ends}))
    found = _join_facts(parts)
    found["c"] = found["c"] - window.base_ns // window.interval_ns
    return found


def _read(
    engine: Engine,
    window: Window,
    view: str,
    parts: Mapping[int, Part],
    select: str,
    conditions: Sequence[str],
    bound: Mapping[str, Any],
) -> dict[str, Any]:
    """Sums of maps as `_sums`, with absolute columns."""
    engine.files(view, list(parts.values()), is_named=True)
    # `//` rounds towards zero
    start = "second_ns - (second_ns % $interval + $interval) % $interval"
    return engine.ask(
        "SELECT CAST(parse_filename(filename, true) AS BIGINT) AS number, "
        f"({start}) // $interval AS c, {select} FROM {view} "
        f"{where(['source = $source', *conditions])} GROUP BY ALL",
        {**bound, "interval": window.interval_ns},
    )


def _remember(
    key: tuple[object, ...], before: _Sums, read: Mapping[int, Part], columns: dict[str, Any]
) -> None:
    """Remember sums with those that were read after them; the latest questions, as far as there is
    room."""
    if before.columns:
        stays = ~np.isin(before.columns["number"], np.fromiter(read, dtype=np.int64))
        columns = _join_facts(
            [{name: column[stays] for name, column in before.columns.items()}, columns]
        )
    with _guard:
        _remembered.pop(key, None)
        _remembered[key] = _Sums({**before.parts, **read}, columns)
        rows = {key: len(sums.columns["number"]) for key, sums in _remembered.items()}
        total = sum(rows.values())
        for oldest in list(rows):
            if total > MOST_ROWS:
                total -= rows[oldest]
                del _remembered[oldest]


def _join_facts(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    concatenate: Any = np.ma.concatenate
    if len(parts) == 1:
        return dict(parts[0])
    return {name: concatenate([part[name] for part in parts]) for name in parts[0]}


def _cells(
    engine: Engine, window: Window, files: MapFiles, filters: Sequence[Filter], *, spent: bool
) -> dict[str, Any]:
    """Sums of I/Os and time by column (from the window's base) and bucket (of the widest width),
    and whether they meet the conditions."""
    texts, bound = sql_of(filters)
    meets = f"coalesce({' AND '.join(texts)}, false)" if texts else "true"
    # columns that are not asked for are not read
    time = "CAST(sum(time_ns_sum) AS BIGINT)" if spent else "0"
    select = f"index AS b, {meets} AS meets, CAST(sum(count) AS BIGINT) AS ios, {time} AS spent"
    found = _sums(engine, window, files, select, (), bound)
    widest = files.widest
    widths = {file.width for file in files.files}
    for width in widths - {widest}:
        narrow = np.isin(
            found["number"], [file.number for file in files.files if file.width == width]
        )
        narrow &= found["b"] != WITHOUT
        shift = (widest // width).bit_length() - 1
        found["b"] = np.where(narrow, found["b"] >> np.uint32(shift), found["b"])
    return found


def heat(
    engine: Engine,
    window: Window,
    files: MapFiles,
    filters: Sequence[Filter],
    asked: Asked,
    buckets: int | None,
    others: Span | None,
) -> HeatCounts | None:
    """The map of the sealed segments, None where their maps are too coarse to say exactly what
    events would.

    `asked.grid` is given for latency and size; for equal buckets it is found here. `others` is
    the least and largest value of y among the events that no map has, so that the buckets have room
    for them.
    """
    found = _cells(engine, window, files, filters, spent=asked.weight == "time")
    meets = np.ma.filled(found["meets"], False).astype(bool)
    column, bucket, ios, spent = (whole(found[name])[meets] for name in ("c", "b", "ios", "spent"))
    missing = bucket == WITHOUT
    if asked.weight == "time" and asked.y != "latency" and not _all_timed(engine, window, filters):
        return None
    grid: Grid = asked.grid
    inside = ~missing
    if isinstance(asked.grid, LogLinear) and buckets is None:
        bounds = _aligned(asked)
        if bounds is None:
            return None
        inside &= (bucket >= bounds[0]) & (bucket < bounds[1])
        index = bucket[inside]
    else:
        fitted = _fitted(asked, bucket[~missing], files.widest, buckets or BUCKETS, others)
        if fitted is None:
            return None
        grid, low, past = fitted
        inside &= (bucket >= low) & (bucket < past)
        index = bucket_of(
            bucket[inside].astype(np.uint64)
            >> np.uint64((grid.width // files.widest).bit_length() - 1),
            grid,
            shifted=True,
        )
    amount = spent if asked.weight == "time" else ios
    made = Asked(
        asked.y, window.base_ns, window.interval_ns, (), {}, None, None, grid, asked.weight
    )
    counts = cells_of(
        made,
        column[inside],
        index,
        amount[inside],
        events=int(ios[inside].sum()),
        without_y=int(ios[missing].sum()),
        outside=int(ios[~missing & ~inside].sum()),
    )
    return replace(counts, filtered=int(whole(found["ios"])[~meets].sum()))


def _aligned(asked: Asked) -> tuple[int, int] | None:
    """Buckets (first, one past the last) of the range asked for, None where it cuts one."""
    assert isinstance(asked.grid, LogLinear)
    lower = lower_bounds(asked.grid.bits)
    ends = []
    for value, default in ((asked.low or 0, 0), (asked.high, len(lower))):
        if value is None:
            ends.append(default)
            continue
        place = int(np.searchsorted(lower, np.uint64(min(value, 2**64 - 1))))
        if place == len(lower) or int(lower[place]) != value:
            return None
        ends.append(place)
    return ends[0], ends[1]


def _fitted(
    asked: Asked, bucket: Integers, width: int, buckets: int, others: Span | None
) -> tuple[Linear, int, int] | None:
    """(equal buckets as a scan would choose them, first and one past the last stored bucket of the
    range), None where finer ones are due.

    Which power of two is due is told by stored buckets alone as long as it is no finer than theirs.
    """
    if (asked.low or 0) % width or (asked.high or 0) % width:
        return None
    first = asked.low // width if asked.low is not None else None
    past = asked.high // width if asked.high is not None else None
    shown = first or 0, past if past is not None else 2**63 - 1
    if asked.low is not None and asked.high is not None:
        exact = covering(asked.low, asked.high - 1, buckets)
        return (exact, *shown) if exact.width >= width else None
    ends = [int(bucket.min()), int(bucket.max())] if len(bucket) else []
    ends += [end // width for end in others] if others else []
    held = [end for end in ends if shown[0] <= end < shown[1]]
    if not held:
        return Linear(0, width), *shown
    low = first if first is not None else min(held)
    high = past - 1 if past is not None else max(held)
    grid = covering(low, high, buckets)
    if grid.width == 1 and width > 1 and 2 * (high - low) - 1 < buckets:
        return None
    return Linear(grid.low * width, grid.width * width), *shown


def _all_timed(engine: Engine, window: Window, filters: Sequence[Filter]) -> bool:
    """Whether every I/O that meets the conditions has a latency: otherwise those without one can't
    be told apart in other maps."""
    files = files_of(window, "latency")
    if files.unmapped or not files.files:
        return False
    found = _cells(engine, window, files, filters, spent=False)
    return not bool(
        (np.ma.filled(found["meets"], False).astype(bool) & (whole(found["b"]) == WITHOUT)).any()
    )


def series(
    engine: Engine, window: Window, files: MapFiles, filters: Sequence[Filter], key: str | None
) -> dict[str, Any]:
    """I/Os by column c and key k, of the sealed segments."""
    texts, bound = sql_of(filters)
    select = f"{key or 'NULL'} AS k, CAST(sum(count) AS BIGINT) AS n, 0 AS lacking"
    return _sums(engine, window, files, select, texts, bound)
