# SPDX-License-Identifier: Apache-2.0
"""Sums of the default maps of sealed segments, where these are exact; they remain where events were
deleted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...store.base.counts import HeatCounts, Y
from ...store.base.grids import WITHOUT, Grid, LogLinear
from ...store.base.layout import MAPS
from ...store.ledger import DamagedError, damages, known_damage
from ...store.ledger import Part as File
from ...store.read.recording import Recording
from ...store.read.trace import BITS
from ...store.segments.segments import Segment, coarse_maps_of_line, first_of, part_of
from ..engine.cells import Asked, bucket_of, cells_of, lower_bounds
from ..engine.snapshot import deleted_segments
from ..engine.windows import Window, field_of
from ..plan import (
    Bounds,
    Cost,
    Frame,
    Numbers,
    Part,
    Reading,
    Span,
    Sums,
    TooCoarseError,
    files_part,
)
from ..question import SECOND, Filter, Question
from .events import frame_of
from .map_sums import BLOCK, EVER, KEYS, CutMap, MapQuestion, MapRows, join_rows

FIELDS = ("op", "device")
"""What default maps tell apart."""

NO_SEGMENT = "no sealed segment is in this time"
"""Why no map answers."""

_FINER = "events are scanned instead where finer buckets are needed than the maps have"

LONG_SCAN = 5_000_000
"""Events that take a noticeable time to scan: then columns of a second, which default maps have, do
instead of shorter ones."""


class Joined(NamedTuple):
    """Joined maps.

    Attributes:
        first: the first segment. step_s: length of the columns of the file that is read.
        fine: the file with columns of a second. cut: the segments (first, last) that are read of
        it; None for all.
    """

    first: int
    step_s: int
    fine: File
    cut: tuple[int, int] | None = None


class MapFile(NamedTuple):
    """The default map of a segment, or of several, of which it has the number of the last. width: of
    its equal buckets (offset maps; else 1)."""

    number: int
    file: File
    width: int
    joined: Joined | None = None

    @property
    def first(self) -> int:
        """The first segment."""
        return self.number if self.joined is None else self.joined.first

    @property
    def segments(self) -> tuple[int, int]:
        """The first and the last segment that are read."""
        if self.joined is None or self.joined.cut is None:
            return self.first, self.number
        return self.joined.cut

    def within(self, first: int, last: int) -> MapFile:
        """The map of those of its segments that are within others."""
        if self.joined is None or (first <= self.first and self.number <= last):
            return self
        cut = max(first, self.first), min(last, self.number)
        return self._replace(file=self.joined.fine, joined=self.joined._replace(step_s=1, cut=cut))


@dataclass(frozen=True)
class MapFiles:
    """Default maps of one kind of y, ascending: of segments in the window, and of older ones without
    events. unmapped: segments in the window with a missing or damaged map."""

    files: tuple[MapFile, ...]
    unmapped: tuple[Segment, ...] = ()

    @cached_property
    def numbers(self) -> list[int]:
        """Numbers of the segments with maps, ascending; of joined ones the last."""
        return [file.number for file in self.files]

    @cached_property
    def firsts(self) -> list[int]:
        """The first segments of the maps, ascending."""
        return [file.first for file in self.files]


def files_of(window: Window, y: Y) -> MapFiles:
    """The maps that a window needs. A missing or damaged map of a segment without events is left out;
    losses state it."""
    catalogue = window.snap.recording.catalogue()
    maps = catalogue.maps[f"io.{y}"]
    segments = {segment.number: segment for segment in window.segments()}
    older = deleted_segments(window.snap).within(window.span) if window.earlier else []
    files = []
    unmapped = []
    lines, single_maps = catalogue.segments.lines, _single_maps(window.snap.place, y)
    for number in (*segments, *older):
        line, latest = lines.get(number), single_maps.get(number)
        if number not in maps:
            file = None
        elif latest is not None and latest[0] is line:
            file = latest[1]
        else:
            file = _file_of(window, number, y)
            if file is not None and file.joined is None and line is not None:
                single_maps[number] = line, file
        if file is not None:
            files.append(file)
        elif number in segments:
            unmapped.append(segments[number])
    known_damaged = {file.file.path for file in files if known_damage(file.file.path)}
    wrong = {part.path for part, _ in damages([file.file for file in files])}
    if coarse := {file.number for file in files if file.file.path in wrong and _is_coarse(file)}:
        files = [_fine(file) if file.number in coarse else file for file in files]
        wrong |= {part.path for part, _ in damages([file.file for file in files])}
    for file in files:
        if file.file.path not in wrong:
            continue
        if file.number in segments:
            unmapped.append(segments[file.number])
        elif file.file.path not in known_damaged:
            # the window was made without knowing that this time is lost
            raise DamagedError(
                "is a damaged default map",
                where=file.file.path,
                hint="iolab verify says what is lost",
            )
    usable = [file for file in files if file.file.path not in wrong]
    return MapFiles(tuple(sorted(usable)), tuple(unmapped))


def _file_of(window: Window, number: int, y: Y) -> MapFile | None:
    """The map of a segment, or the joined one with that number in the longest columns that a window
    can use. None where it can't be used."""
    catalogue, place = window.snap.recording.catalogue(), window.snap.place
    line = catalogue.segments.lines.get(number, {})
    width = line.get("offset_width") if y == "offset" else 1
    if not isinstance(width, int):
        return None
    file, first = part_of(place, line, number, f"io.{y}"), first_of(line, number)
    if first == number:
        return MapFile(number, file, width)
    if known_damage(file.path):
        # its time is a loss
        return None
    step_s, map_part = 1, file
    for longer_s, coarse in coarse_maps_of_line(place, line, number, f"io.{y}"):
        is_whole = coarse.path in catalogue.coarse and not known_damage(coarse.path)
        if is_whole and _fits(window, line, longer_s):
            step_s, map_part = longer_s, coarse
    return MapFile(number, map_part, width, Joined(first, step_s, file))


_SingleMaps = dict[int, tuple[Mapping[str, Any], MapFile]]
_latest_maps: dict[tuple[Path, Y], _SingleMaps] = {}
_MOST_LATEST = 12
"""Recordings and values of which single maps are remembered."""


def _single_maps(place: Path, y: Y) -> _SingleMaps:
    """Maps of single segments by number, with the line that each was made of: to make ten thousand
    takes a tenth of a second."""
    maps = _latest_maps.setdefault((place, y), {})
    while len(_latest_maps) > _MOST_LATEST:
        _latest_maps.pop(next(iter(_latest_maps)), None)
    return maps


def _is_coarse(file: MapFile) -> bool:
    return file.joined is not None and file.joined.step_s > 1


def _fine(file: MapFile) -> MapFile:
    """A joined map in columns of a second."""
    assert file.joined is not None
    return file._replace(file=file.joined.fine, joined=file.joined._replace(step_s=1))


def _fits(window: Window, line: Mapping[str, Any], step_s: int) -> bool:
    """Whether columns and ends of a window do not cut the columns of a joined map."""
    step_ns = step_s * SECOND
    is_first_within = window.cuts_first and line["first_ns"] < window.first_ns
    is_until_within = window.cuts_until and line["last_ns"] >= window.until_ns
    return not (
        window.interval_ns % step_ns
        or (is_first_within and window.first_ns % step_ns)
        or (is_until_within and window.until_ns % step_ns)
    )


class SegmentMaps:
    """Default maps of a recording."""

    name = "segment maps"

    @property
    def reading(self) -> type[MapReading]:
        """The class that reads its maps."""
        return MapReading

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._found: dict[tuple[int, Y], tuple[Window, MapFiles | str]] = {}

    def frame(self, question: Question) -> Frame | str:
        """As `Tier.frame`. Columns become a second if their length is open, and events were deleted
        or a map of them takes long."""
        frame = frame_of(self._recording, question, with_deleted=True)
        window = frame.window
        is_open = question.interval_ns is None and window.interval_ns < SECOND
        if is_open and (_has_deleted(window) or (question.y is not None and _is_long(window))):
            window = replace(window, interval_ns=SECOND)
            notes = (*frame.notes, "columns of a second, as the recording's own maps have them")
            frame = replace(frame, recorded=window, notes=notes)
        if question.y == "offset":
            frame = replace(frame, undecided=(_FINER,))
        files = self.files(frame)
        return files if isinstance(files, str) else frame

    def covers(self, frame: Frame) -> Sequence[Span] | str:
        files = self.files(frame)
        if isinstance(files, str):
            return files
        unmapped, last = sorted(segment.number for segment in files.unmapped), files.numbers[-1]
        # of deleted segments it has those from the first map on
        deleted = frame.window.snap.recording.facts.dropped_through
        starts = [min(deleted + 1, files.files[0].first), *(number + 1 for number in unmapped)]
        ends = [*(min(number - 1, last) for number in unmapped), last]
        times = frame.full_span[2:]
        spans = (Span(first, end, *times) for first, end in zip(starts, ends, strict=True))
        return [span for span in spans if span.first <= span.last]

    def cost(self, frame: Frame, span: Span) -> Cost | None:
        files = self.files(frame)
        if isinstance(files, str) or _cut_reason(frame.window.between(*span[2:])):
            return None
        read = _within(files, [span])
        return Cost(len(read), sum(file.file.bytes or 0 for file in read))

    def read(self, frame: Frame, spans: Sequence[Span]) -> MapReading:
        files = self.files(frame)
        assert isinstance(files, MapFiles)
        return self.reading(frame, files, spans, self.find_files)

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        files = self.files(frame)
        assert isinstance(files, MapFiles)
        lines = frame.window.snap.recording.catalogue().segments.lines
        read = _within(files, spans)
        times = [
            (lines[file.number]["first_ns"], lines[file.number]["last_ns"] + 1) for file in read
        ]
        return [files_part(self.name, [file.file.path for file in read], times)]

    def find_files(self, window: Window, y: Y) -> MapFiles:
        """The maps of y that a window needs."""
        return files_of(window, y)

    def files(self, frame: Frame) -> MapFiles | str:
        """The maps that have the sums of a frame, or why they have none."""
        y = _y_of(frame.question)
        key = (id(frame.window), y)
        if key not in self._found:
            reason = _refusal(frame)
            map_files = reason or _usable(self.find_files(frame.window, y))
            self._found[key] = (frame.window, map_files)
        return self._found[key][1]


def _y_of(question: Question) -> Y:
    return "latency" if question.y is None else question.y


def _has_deleted(window: Window) -> bool:
    """Whether events of the window were deleted and their maps remain."""
    if not window.snap.recording.facts.dropped_through:
        return False
    deleted = deleted_segments(window.snap).span(window.source)
    return deleted is not None and window.first_ns <= deleted[1]


def _is_long(window: Window) -> bool:
    """Whether a scan takes long, and enough columns of a second remain."""
    if window.until_ns - window.first_ns < 60 * SECOND:
        return False
    return sum(segment.sources[window.source] for segment in window.segments()) > LONG_SCAN


def _usable(files: MapFiles) -> MapFiles | str:
    if files.files:
        return files
    return "the maps of all segments are missing or damaged" if files.unmapped else NO_SEGMENT


def _refusal(frame: Frame) -> str:
    """Why maps have no sums of a frame; empty if they may have them."""
    question, window = frame.question, frame.window
    if window.snap.kind != "events":
        return "counters are asked"
    if question.y is None:
        if question.weight != "count":
            return "segment maps count I/Os, not bytes"
        if question.breakdown not in (None, *FIELDS):
            return f"segment maps do not tell the {question.breakdown}"
    elif question.y == "queue":
        return "segment maps have no time in the queue"
    elif question.weight == "bytes":
        return "segment maps count I/Os, not bytes"
    elif question.buckets is not None and question.y != "offset":
        return "segment maps have no equal buckets of this"
    elif question.y == "offset" and frame.is_coarse:
        return "segment maps have other equal buckets than roll-ups"
    elif question.y != "offset" and _align_buckets(BITS, question.low, question.high) is None:
        return "the range of values cuts a bucket of segment maps"
    if window.interval_ns % SECOND:
        return "columns are not whole seconds"
    other = [condition.field for condition in question.filters if condition.field not in FIELDS]
    return _cut_reason(window) or (f"segment maps do not tell the {other[0]}" if other else "")


def _cut_reason(window: Window) -> str:
    ends = ((window.cuts_first, window.first_ns), (window.cuts_until, window.until_ns))
    is_within = any(is_cut and end_ns % SECOND for is_cut, end_ns in ends)
    return "the time begins or ends within a second" if is_within else ""


def _within(files: MapFiles, spans: Sequence[Span]) -> list[MapFile]:
    """The maps of the segments of spans."""
    return [
        file.within(first, last)
        for first, last, *_ in spans
        for file in files.files[
            bisect_left(files.numbers, first) : bisect_right(files.firsts, last)
        ]
    ]


class _Cells(NamedTuple):
    """Sums of the I/Os that meet the conditions, by column (from the base of the window) and bucket.
    width: of buckets. spent: time in I/Os. filtered: I/Os that do not meet the conditions."""

    width: int
    column: Any
    bucket: Any
    ios: Any
    spent: Any
    filtered: int


class MapReading(Reading):
    """Maps of spans while they are read."""

    def __init__(
        self,
        frame: Frame,
        files: MapFiles,
        spans: Sequence[Span],
        find_files: Callable[[Window, Y], MapFiles],
    ) -> None:
        self._frame, self._find_files = frame, find_files
        # maps of one time at once
        times = dict.fromkeys(span[2:] for span in spans)
        self._reads = [
            (frame.window.between(*group[0][2:]), _within(files, group))
            for group in ([span for span in spans if span[2:] == time] for time in times)
        ]
        self._reads = [(window, read) for window, read in self._reads if read]
        self._read_cells: list[_Cells] | None = None

    @property
    def _cells(self) -> list[_Cells]:
        # the lock of a cached property would stop other questions that are answered together
        if self._read_cells is None:
            spent = self._frame.question.weight == "time"
            self._read_cells = [
                self._cells_of(window, files, spent) for window, files in self._reads
            ]
        return self._read_cells

    def _cells_of(self, window: Window, files: Sequence[MapFile], spent: bool) -> _Cells:
        width = max(file.width for file in files)
        parts = []
        for narrow in {file.width for file in files}:
            same_width = [file for file in files if file.width == narrow]
            sums = self._sums(window, same_width, {"index"}, spent)
            shift = np.uint32((width // narrow).bit_length() - 1)
            sums["b"] = np.where(sums["b"] == WITHOUT, WITHOUT, sums["b"] >> shift)
            parts.append(sums)
        rows = join_rows(parts)
        meets = rows["meets"]
        return _Cells(
            width,
            rows["c"][meets],
            rows["b"][meets].astype(np.int64),
            rows["ios"][meets],
            rows["spent"][meets],
            int(rows["ios"][~meets].sum()),
        )

    def _meets_filters(self, key: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether keys meet the conditions."""
        filters = self._frame.question.filters
        meets = [_meets(filters, *names) for names in list(KEYS)]
        return np.array(meets, dtype=bool)[key] if meets else np.ones(len(key), dtype=bool)

    def bounds(self) -> Sequence[Bounds]:
        bounds = []
        for cells in self._cells:
            bucket = cells.bucket[cells.bucket != WITHOUT]
            ends = (int(bucket.min()), int(bucket.max())) if len(bucket) else None
            values = None if ends is None else (ends[0] * cells.width, ends[1] * cells.width)
            bounds.append(Bounds(values, cells.width))
        return bounds

    def sums(self, grid: Grid | None) -> Sequence[Sums]:
        question = self._frame.question
        if question.y is None:
            return [self._numbers(window, files) for window, files in self._reads]
        assert grid is not None
        if question.weight == "time" and question.y != "latency" and not self._are_all_timed():
            raise TooCoarseError(SegmentMaps.name)
        return [self._counts(cells, grid) for cells in self._cells]

    def _numbers(self, window: Window, files: Sequence[MapFile]) -> Numbers:
        question = self._frame.question
        breakdown = question.breakdown
        rows = self._sums(window, files, {breakdown} if breakdown else set(), False)
        meets = rows["meets"]
        if breakdown is None:
            keys: Any = np.ma.array(np.zeros(int(meets.sum()), dtype=object), mask=True)
        else:
            missing, place = field_of(breakdown).missing, FIELDS.index(breakdown)
            names = [key[place] if key[place] is not None else missing for key in list(KEYS)]
            keys = np.array(names, dtype=object)[rows["key"][meets]]
        ios = rows["ios"][meets]
        return Numbers({"c": rows["c"][meets], "k": keys, "n": ios, "lacking": np.zeros_like(ios)})

    def _counts(self, cells: _Cells, grid: Grid) -> HeatCounts:
        question, window = self._frame.question, self._frame.window
        assert question.y is not None
        is_missing = cells.bucket == WITHOUT
        if isinstance(grid, LogLinear):
            buckets = _align_buckets(grid.bits, question.low, question.high)
            assert buckets is not None  # such maps are refused
            low, past = buckets
        else:
            low = (question.low or 0) // cells.width
            past = 2**63 - 1 if question.high is None else question.high // cells.width
        inside = ~is_missing & (cells.bucket >= low) & (cells.bucket < past)
        index = cells.bucket[inside]
        if not isinstance(grid, LogLinear):
            shift = (grid.width // cells.width).bit_length() - 1
            index = bucket_of(index.astype(np.uint64) >> np.uint64(shift), grid, shifted=True)
        amount = cells.spent if question.weight == "time" else cells.ios
        columns = (window.base_ns, window.interval_ns)
        counts = cells_of(
            Asked(question.y, *columns, (), {}, None, None, grid, question.weight),
            cells.column[inside],
            index,
            amount[inside],
            events=int(cells.ios[inside].sum()),
            without_y=int(cells.ios[is_missing].sum()),
            outside=int(cells.ios[~is_missing & ~inside].sum()),
        )
        return replace(counts, filtered=cells.filtered)

    def _are_all_timed(self) -> bool:
        """Whether every I/O that meets the conditions has a latency: other maps do not tell those
        without one apart."""
        for window, files in self._reads:
            read_of = {file.number: file for file in files}
            timed = self._find_files(window, "latency")
            read = [
                file.within(*read_of[file.number].segments)
                for file in timed.files
                if file.number in read_of
            ]
            if len(read) < len(read_of):
                return False
            cells = self._cells_of(window, read, spent=False)
            if (cells.bucket == WITHOUT).any():
                return False
        return True

    def _sums(
        self, window: Window, files: Sequence[MapFile], by: Collection[str], is_timed: bool
    ) -> MapRows:
        """Rows of maps of one width, by column from the base of the frame. by: what is distinguished
        of `index`, `op` and `device`, next to the column `meets`: whether I/Os meet the conditions.
        is_timed: whether time is summed.

        The sums of maps that the window holds whole are remembered, and only other maps are read.
        """
        by = {*by, *(condition.field for condition in self._frame.question.filters)}
        size = 1 if self._frame.question.y is None else BLOCK
        blocks, edges = _divide(window, files, size)
        folder = window.snap.place / MAPS / files[0].file.path.parent.name
        width = files[0].width
        question = MapQuestion(
            folder, width, size, window.source, window.interval_ns, frozenset(by), is_timed
        )
        span = (
            window.first_ns if window.cuts_first else EVER[0],
            window.until_ns if window.cuts_until else EVER[1],
        )
        rows = question.sums(blocks, edges, span)
        rows["c"] = rows["c"] - self._frame.window.base_ns // window.interval_ns
        rows["meets"] = self._meets_filters(rows["key"])
        return rows


def _meets(filters: Sequence[Filter], op: str | None, device: str | None) -> bool:
    """Whether I/Os with these names meet all conditions."""
    names = {"op": op, "device": device}
    return all(
        (condition.sign == "!=")
        != (
            field_of(condition.field).missing in condition.values
            if names[condition.field] is None
            else names[condition.field] in condition.values
        )
        for condition in filters
    )


def _divide(
    window: Window, files: Sequence[MapFile], size: int
) -> tuple[dict[int, tuple[File, ...]], list[File | CutMap]]:
    """Maps that the window holds whole, by block of so many segments, and maps that it cuts."""
    lines = window.snap.recording.catalogue().segments.lines
    blocks: dict[int, tuple[File, ...]] = {}
    edges: list[File | CutMap] = []
    for map_file in files:
        number, file, _, joined = map_file
        line = lines.get(number, {})
        first, last = line.get("first_ns"), line.get("last_ns")
        if joined is not None and not _fits(window, line, joined.step_s):
            file = joined.fine
        is_whole = (
            first is not None
            and last is not None
            and file.crc32 is not None
            and not (window.cuts_first and first < window.first_ns)
            and not (window.cuts_until and last >= window.until_ns)
        )
        if joined is not None and joined.cut is not None:
            edges.append(CutMap(file, *joined.cut))
        elif is_whole:
            blocks[number // size] = (*blocks.get(number // size, ()), file)
        else:
            edges.append(file)
    return blocks, edges


def _align_buckets(bits: int, low: int | None, high: int | None) -> tuple[int, int] | None:
    """Logarithmic buckets (first, one past the last) of a range, None where it cuts one."""
    lower = lower_bounds(bits)
    ends = []
    for value, default in ((low or 0, 0), (high, len(lower))):
        if value is None:
            ends.append(default)
            continue
        place = int(np.searchsorted(lower, np.uint64(min(value, 2**64 - 1))))
        if place == len(lower) or int(lower[place]) != value:
            return None
        ends.append(place)
    return ends[0], ends[1]
