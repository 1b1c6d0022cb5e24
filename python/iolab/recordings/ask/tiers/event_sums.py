# SPDX-License-Identifier: Apache-2.0
"""Sums of the events of a recording that grows, for a question that is asked again and again.

Sealed segments, and batches of rows that are not sealed, never change. The sums of each of these
blocks are remembered, and a question reads only blocks that came since. Nothing is assumed about
times: an event that comes late is in a later block, and adds up. A block counts as long as the
recording has it: damaged, deleted and sealed blocks are forgotten.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...store.ledger import Part as File
from ...store.ledger import check
from ...store.read.recording import Segment
from ..engine.snapshot import Snapshot
from ..engine.windows import Window

if TYPE_CHECKING:
    # pyarrow is not needed for traces
    from ...store.segments.hot import SourceBatch

Rows: TypeAlias = "dict[str, npt.NDArray[Any]]"
"""Sums of events. c: column of time, from time 0 on. bucket: of equal buckets, from value 0 on. Other
columns are keys, or add up."""

Read: TypeAlias = Callable[[Window], Rows]
"""Reads the sums of the events of a window."""

ANY_WIDTH = 2**64

MOST_QUESTIONS = 64
"""Questions that are remembered."""
MOST_ROWS = 1_000_000
"""Rows of sums that are remembered, of all questions together."""
MOST_BLOCKS = 8
"""Blocks of rows that are not sealed; more become one."""
UNUSED = 64
"""Answers after which a block that none of them needed is forgotten."""

_LEAST, _MOST = "low", "high"
"""Columns that do not add up: of two rows the least and the largest value counts."""


@dataclass(eq=False)
class _Block:
    """Sums of rows that do not change.

    Attributes:
        width: of equal buckets. first_ns, last_ns: the first and last time of the rows. used: number
        of the last answer that needed them. batches: of rows that are not sealed.
    """

    rows: Rows
    width: int
    first_ns: int
    last_ns: int
    used: int
    batches: tuple[weakref.ref[Any], ...] = ()

    def is_of(self, batches: Mapping[int, SourceBatch]) -> bool:
        """Whether all of its batches are among some, by identity of their rows."""
        return all((rows := batch()) is not None and id(rows) in batches for batch in self.batches)

    def is_stale(self, read_again: Mapping[int, SourceBatch]) -> bool:
        """Whether a batch of it exists no more, or is in another block."""
        return any((rows := batch()) is None or id(rows) in read_again for batch in self.batches)

    def meets(self, window: Window) -> bool:
        """Whether it may have rows in a window."""
        return self.first_ns < window.until_ns and self.last_ns >= window.first_ns

    def rows_at(self, width: int) -> Rows:
        """Its rows with buckets of at least a width."""
        if width <= self.width:
            return self.rows
        shift = np.uint64((width // self.width).bit_length() - 1)
        return {**self.rows, "bucket": self.rows["bucket"] >> shift}


@dataclass(frozen=True)
class _Division:
    """The rows of a window.

    Attributes:
        blocks: those that were read. segments, batches: those to read as blocks.
        cut_segments, cut_batches: those that an end of the window divides within a column, and files
        of which no checksum is known.
    """

    blocks: list[_Block]
    segments: list[Segment]
    batches: list[SourceBatch]
    cut_segments: list[Segment]
    cut_batches: list[SourceBatch]


@dataclass(eq=False)
class EventSums:
    """Sums of the blocks of one question.

    Attributes:
        keys: columns that tell rows apart.
        version: of the catalogue at the first question.
        answers: how many were given.
        width: of the equal buckets of the last answer.
        is_refused: whether there are too many sums to remember.
        names: keys of a breakdown, with their number in rows.
        lock: of the blocks and names.
    """

    keys: tuple[str, ...]
    version: int
    answers: int = 0
    width: int | None = None
    is_refused: bool = False
    names: dict[str, int] = field(default_factory=dict)
    _sealed: dict[File, _Block] = field(default_factory=dict)
    _unsealed: list[_Block] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def codes_of(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """The number of each name."""
        with self.lock:
            codes = [self.names.setdefault(name, len(self.names)) for name in names]
        return np.array(codes, dtype=np.int64)

    @property
    def row_count(self) -> int:
        """Rows and names that are remembered."""
        with self.lock:
            blocks = [*self._sealed.values(), *self._unsealed]
            return len(self.names) + sum(len(block.rows["c"]) for block in blocks)

    def read(
        self, window: Window, read: Read, *, width: int = 1, widest: int | None = None
    ) -> list[Rows]:
        """Rows that add up to the sums of a window. DamagedError, errors of `read`.

        Args:
            width: of the equal buckets that `read` gives. widest: buckets that rows may have; left
            open, that width. A remembered block with wider ones is read again.
        """
        check([segment.part for segment in window.segments()])
        with self.lock:
            self.answers += 1
            division = self._divide(window, width if widest is None else widest)
            blocks = [*division.blocks]
            for segment in division.segments:
                rows = read(_part(window, [segment], [], is_cut=False))
                block = _Block(rows, width, segment.first_ns, segment.last_ns, self.answers)
                self._sealed[segment.part] = block
                blocks.append(block)
            if batches := division.batches:
                rows = read(_part(window, [], batches, is_cut=False))
                first_ns = min(batch.first_ns for batch in batches)
                last_ns = max(batch.last_ns for batch in batches)
                references = tuple(weakref.ref(batch.rows) for batch in batches)
                block = _Block(rows, width, first_ns, last_ns, self.answers, references)
                self._unsealed.append(block)
                blocks.append(block)
            parts = [_within(block.rows_at(width), window) for block in blocks]
            self._tidy()
        if division.cut_segments or division.cut_batches:
            cut = (division.cut_segments, division.cut_batches)
            parts.append(read(_part(window, *cut, is_cut=True)))
        return parts

    def _divide(self, window: Window, widest: int) -> _Division:
        division = _Division([], [], [], [], [])
        for segment in window.segments():
            sealed = self._sealed.get(segment.part)
            is_signed = segment.part.crc32 is not None
            if not is_signed or _cuts(window, segment.first_ns, segment.last_ns):
                division.cut_segments.append(segment)
            elif sealed is not None and sealed.width <= widest:
                division.blocks.append(sealed)
            else:
                division.segments.append(segment)
        hot = window.snap.hot
        unread = (
            {} if hot is None else {id(batch.rows): batch for batch in hot.batches(window.source)}
        )
        for block in self._unsealed:
            is_usable = block.is_of(unread) and not _cuts(window, block.first_ns, block.last_ns)
            if not is_usable or block.width > widest:
                continue
            if block.meets(window):
                division.blocks.append(block)
            for reference in block.batches:
                del unread[id(reference())]
        for batch in unread.values():
            if batch.first_ns < window.until_ns and batch.last_ns >= window.first_ns:
                is_cut = _cuts(window, batch.first_ns, batch.last_ns)
                (division.cut_batches if is_cut else division.batches).append(batch)
        for block in division.blocks:
            block.used = self.answers
        read_again = {id(batch.rows): batch for batch in division.batches}
        self._unsealed = [block for block in self._unsealed if not block.is_stale(read_again)]
        return division

    def _tidy(self) -> None:
        """Forget blocks that no answer needs, and join those of rows that are not sealed."""
        oldest = self.answers - UNUSED
        for file in [file for file, block in self._sealed.items() if block.used < oldest]:
            del self._sealed[file]
        self._unsealed = [block for block in self._unsealed if block.used >= oldest]
        if len(self._unsealed) > MOST_BLOCKS:
            *first_blocks, last = self._unsealed
            self._unsealed = [self._join(first_blocks), last]

    def _join(self, blocks: Sequence[_Block]) -> _Block:
        width = max(block.width for block in blocks)
        return _Block(
            sum_rows([block.rows_at(width) for block in blocks], self.keys),
            width,
            min(block.first_ns for block in blocks),
            max(block.last_ns for block in blocks),
            max(block.used for block in blocks),
            tuple(batch for block in blocks for batch in block.batches),
        )


def _cuts(window: Window, first_ns: int, last_ns: int) -> bool:
    """Whether an end of a window that is within a column has rows on both of its sides."""
    return any(
        is_cut and end_ns % window.interval_ns and first_ns < end_ns <= last_ns
        for is_cut, end_ns in (
            (window.cuts_first, window.first_ns),
            (window.cuts_until, window.until_ns),
        )
    )


def _within(rows: Rows, window: Window) -> Rows:
    """The rows of the columns of a window."""
    first = window.first_ns // window.interval_ns
    last = (window.until_ns - 1) // window.interval_ns
    column = rows["c"]
    is_within = (column >= first) & (column <= last)
    return rows if is_within.all() else {name: part[is_within] for name, part in rows.items()}


def _part(
    window: Window, segments: Sequence[Segment], batches: Sequence[SourceBatch], *, is_cut: bool
) -> Window:
    """A window with some of its rows. is_cut: whether its ends cut them."""
    snap = window.snap
    hot = snap.hot.only(batches) if snap.hot is not None and batches else None
    return replace(
        window,
        snap=Snapshot(snap.recording, tuple(segments), hot, snap.kind),
        cuts_first=window.cuts_first and is_cut,
        cuts_until=window.cuts_until and is_cut,
    )


def sum_rows(parts: Sequence[Rows], keys: Sequence[str]) -> Rows:
    """Rows with equal keys as one."""
    if not parts:
        return {}
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    names = ("c", *keys)
    order = np.lexsort([rows[name] for name in names])
    rows = {name: column[order] for name, column in rows.items()}
    if not len(order):
        return rows
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = np.any([rows[name][1:] != rows[name][:-1] for name in names], axis=0)
    starts = np.flatnonzero(is_new)
    ways: dict[str, Any] = {_LEAST: np.minimum, _MOST: np.maximum}
    return {
        name: column[starts] if name in names else ways.get(name, np.add).reduceat(column, starts)
        for name, column in rows.items()
    }


_remembered: dict[Hashable, EventSums] = {}
_guard = threading.Lock()


def sums_of(window: Window, question: Hashable, keys: tuple[str, ...]) -> EventSums | None:
    """The sums to remember of a question about the events of a window. None at the first question,
    and as long as nothing is appended: a scan of all events is faster then.

    Args:
        question: all that sums depend on besides recording, source and length of columns. keys: columns
        that tell rows of sums apart.
    """
    recording = window.snap.recording
    key = (recording.path, window.source, window.interval_ns, question)
    version = recording.catalogue().version
    with _guard:
        sums = _remembered.pop(key, None)
        if sums is None:
            if window.unsealed_rows() is None:
                return None
            sums = EventSums(keys, version)
        _remembered[key] = sums
        while len(_remembered) > MOST_QUESTIONS:
            del _remembered[next(iter(_remembered))]
        if sums.is_refused or sums.version == version:
            return None
    return sums


def limit_rows(used: EventSums) -> None:
    """Forget sums beyond the bound, first those of the oldest questions. used: sums of the current
    question; if they are too many, they are not remembered again."""
    with _guard:
        count = used.row_count
        is_refused = count > MOST_ROWS
        for key, sums in reversed(list(_remembered.items())):
            if sums is used:
                if is_refused:
                    _remembered[key] = EventSums(used.keys, used.version, is_refused=True)
                continue
            count += 0 if is_refused else sums.row_count
            if count > MOST_ROWS and not is_refused:
                del _remembered[key]
