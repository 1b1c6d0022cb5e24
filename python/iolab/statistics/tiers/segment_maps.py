"""Heat maps and series from the default maps of sealed segments, where these answer exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...recording.base.checked_files import DamagedError, Part, damages, is_known_damaged
from ...recording.base.counts import HeatCounts, Integers, Y
from ...recording.base.grids import Grid, Linear, LogLinear
from ...recording.segments.segments import part_of
from ..engine.cells import BUCKETS, Asked, bucket_of, cells_of, covering, lower_bounds, where
from ..engine.dropped_segments import gone
from ..engine.engine import Engine, whole
from ..engine.snapshot import Span
from ..engine.windows import Window
from ..language.conditions import sql_of
from ..language.intervals import SECOND
from ..language.names import Filter

WITHOUT = 2**32 - 1
"""The bucket of I/Os that lack the value."""

FIELDS = ("op", "device")
"""What default maps tell apart."""


@dataclass(frozen=True)
class MapFiles:
    """Default maps of one kind of y: those of segments in the window, and older ones whose events
    were removed.

    Attributes:
        paths: files with the width of their equal buckets (offset maps; else 1).
    """

    paths: tuple[tuple[Part, int], ...]

    @property
    def widest(self) -> int:
        """Width of the widest equal buckets."""
        return max((width for _, width in self.paths), default=1)


def files_of(window: Window, y: Y) -> MapFiles | None:
    """The maps that a window needs, None where one of a segment that is there is missing or
    damaged: its events can be asked. One of a segment that is gone is left out then; what is lost
    by that is told."""
    catalogue = window.snap.recording.catalogue()
    lines, maps = catalogue.segments.lines, catalogue.maps[f"io.{y}"]
    found = []
    there = [segment.number for segment in window.segments()]
    older = gone(window.snap).within((window.first_ns, window.until_ns)) if window.earlier else []
    for number in (*there, *older):
        part = part_of(window.snap.place, lines.get(number, {}), number, f"io.{y}")
        width = lines.get(number, {}).get("offset_width") if y == "offset" else 1
        if not isinstance(width, int) or number not in maps:
            if number in older and part.crc32 is not None:
                continue
            return None
        found.append((part, width))
    known = {part.path for part, _ in found if is_known_damaged(part.path)}
    wrong = {part.path for part, _ in damages([part for part, _ in found])}
    if any(part.path in wrong for part, _ in found[: len(there)]):
        return None
    for path in wrong - known:
        # the window was made without knowing that this time is lost
        raise DamagedError(
            "is a damaged default map", where=path, hint="iolab verify says what is lost"
        )
    return MapFiles(tuple(each for each in found if each[0].path not in wrong))


def suits(window: Window, filters: Sequence[Filter]) -> bool:
    """Whether columns are whole seconds, the window cuts none, and conditions are on what maps tell
    apart."""
    return not refusal(window, filters)


def refusal(window: Window, filters: Sequence[Filter]) -> str:
    """Why maps can't answer for a window under conditions; empty where they can."""
    if window.interval_ns % SECOND:
        return "columns are not whole seconds"
    if window.cut and (window.first_ns % SECOND or window.until_ns % SECOND):
        return "the time begins or ends within a second"
    other = [each.field for each in filters if each.field not in FIELDS]
    return f"segment maps do not tell the {other[0]}" if other else ""


def _cells(
    engine: Engine, window: Window, files: MapFiles, filters: Sequence[Filter], *, spent: bool
) -> dict[str, Any]:
    """Sums of I/Os and time by column (from the window's base) and bucket (of the widest width),
    and whether they meet the conditions."""
    texts, bound = sql_of(filters)
    cut = ["second_ns >= $from_ns", "second_ns < $until_ns"] if window.cut else []
    ends = {"from_ns": window.first_ns, "until_ns": window.until_ns} if window.cut else {}
    # columns that are not asked for are not read
    held = f"coalesce({' AND '.join(texts)}, false)" if texts else "true"
    time = "CAST(sum(time_ns_sum) AS BIGINT)" if spent else "0"
    parts = []
    for number, width in enumerate(sorted({width for _, width in files.paths})):
        engine.files(f"maps{number}", [part for part, each in files.paths if each == width])
        wider = (files.widest // width).bit_length() - 1
        index = (
            f"CASE WHEN index = {WITHOUT} THEN index ELSE index >> {wider} END"
            if wider
            else "index"
        )
        parts.append(
            f"SELECT second_ns, source, op, device, {index} AS i, count, time_ns_sum FROM maps{number}"
        )
    return engine.ask(
        f"SELECT (second_ns - $base) // $interval AS c, i AS b, {held} AS meets, CAST(sum(count) AS BIGINT) AS ios, {time} AS spent "
        f"FROM ({' UNION ALL '.join(parts)}) {where(['source = $source', *cut])} GROUP BY ALL",
        {
            **bound,
            **ends,
            "source": window.source,
            "base": window.base_ns,
            "interval": window.interval_ns,
        },
    )


def heat(
    engine: Engine,
    window: Window,
    files: MapFiles,
    filters: Sequence[Filter],
    asked: Asked,
    buckets: int | None,
    hot: Span | None,
) -> HeatCounts | None:
    """The map of the sealed segments, None where their maps are too coarse to say exactly what
    events would.

    `asked.grid` is given for latency and size; for equal buckets it is found here. `hot` is the
    least and largest value of y among the events that are not sealed yet, so that the buckets have
    room for them.
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
        fitted = _fitted(asked, bucket[~missing], files.widest, buckets or BUCKETS, hot)
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
    asked: Asked, bucket: Integers, width: int, buckets: int, hot: Span | None
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
    ends += [end // width for end in hot] if hot else []
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
    if files is None:
        return False
    engine.run("DROP VIEW IF EXISTS maps0")
    found = _cells(engine, window, files, filters, spent=False)
    return not bool(
        (np.ma.filled(found["meets"], False).astype(bool) & (whole(found["b"]) == WITHOUT)).any()
    )


def series(
    engine: Engine, window: Window, files: MapFiles, filters: Sequence[Filter], key: str | None
) -> dict[str, Any]:
    """I/Os by column c and key k, of the sealed segments."""
    texts, bound = sql_of(filters)
    cut = ["second_ns >= $from_ns", "second_ns < $until_ns"] if window.cut else []
    ends = {"from_ns": window.first_ns, "until_ns": window.until_ns} if window.cut else {}
    engine.files("maps0", [part for part, _ in files.paths])
    return engine.ask(
        f"SELECT (second_ns - $base) // $interval AS c, {key or 'NULL'} AS k, CAST(sum(count) AS BIGINT) AS n, 0 AS lacking FROM maps0 "
        f"WHERE {' AND '.join(['source = $source', *cut, *texts])} GROUP BY ALL",
        {
            **bound,
            **ends,
            "source": window.source,
            "base": window.base_ns,
            "interval": window.interval_ns,
        },
    )
