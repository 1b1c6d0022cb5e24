# SPDX-License-Identifier: Apache-2.0
"""Sums of files of default maps, which the native core reads; those of whole blocks of segments are
remembered."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from iolab import _core
from iolab.base.errors import FormatError
from iolab.base.files import map_regular

from ...store.ledger import THREADS, DamagedError, check
from ...store.ledger import Part as File
from ..engine.engine import HALT, Halted

BLOCK = 8
"""Consecutive segments with one sum of a map in memory. Sums of each segment are too many rows."""
MOST_ROWS = 4_000_000
"""Rows of sums that are remembered, of all questions together."""

AT_ONCE = 512
"""Maps that are read before it is checked whether the question was given up."""

EVER = (-(2**63), 2**63 - 1)
"""A span that holds all times."""

COLUMNS = {"block": "<u4", "c": "<i8", "b": "<u4", "key": "<u4", "ios": "<i8", "spent": "<i8"}
"""Columns of rows as the native core gives them."""

MapRows: TypeAlias = "dict[str, npt.NDArray[Any]]"
"""Rows of sums that add up: c (column of time), b (bucket), key (of `KEYS`), ios, spent (ns)."""


@dataclass(frozen=True)
class _Remembered:
    """Sums of maps that were read. files: the maps by block of segments. rows: their sums, with the
    number of the block in `block`."""

    files: Mapping[int, tuple[File, ...]]
    rows: MapRows


_remembered: dict[MapQuestion, _Remembered] = {}
KEYS: dict[tuple[str | None, str | None], int] = {}
"""Operation and device of the keys of rows, in their order."""
_guard = threading.Lock()


class CutMap(NamedTuple):
    """Joined maps of which only some segments are summed, from `first` to `last`."""

    file: File
    first: int
    last: int


class MapQuestion(NamedTuple):
    """What is summed of maps.

    Attributes:
        folder: of the maps. width: of their equal buckets.
        size: segments of a block; one sum of each block is remembered.
        source: of the I/Os. interval_ns: of columns.
        by: what is distinguished of `index`, `op` and `device`. is_timed: whether time is summed.
    """

    folder: Path
    width: int
    size: int
    source: str
    interval_ns: int
    by: frozenset[str]
    is_timed: bool

    def sums(
        self,
        blocks: Mapping[int, tuple[File, ...]],
        edges: Sequence[File | CutMap],
        span: tuple[int, int],
    ) -> MapRows:
        """Sums of maps by absolute column. DamagedError, FormatError, Halted.

        Args:
            blocks: maps that are summed whole, by number of the block. Their sums are remembered.
            edges: other maps. span: of the starts of the seconds that are summed of them.
        """
        with _guard:
            before = _remembered.get(self, _Remembered({}, {}))
        unread = {block: maps for block, maps in blocks.items() if before.files.get(block) != maps}
        parts: list[MapRows] = []
        reused = blocks.keys() - unread.keys()
        if len(reused) == len(before.files):
            parts += [dict(before.rows)] if before.rows else []
        else:
            parts.append(_select_blocks(before.rows, reused))
        if unread:
            maps = [(file, block) for block, maps in unread.items() for file in maps]
            rows = self._read(maps, EVER)
            parts.append(rows)
            _remember(self, before, unread, rows)
        if edges:
            parts.append(self._read([(file, 0) for file in edges], span))
        return join_rows(parts)

    def _read(self, maps: Sequence[tuple[File | CutMap, int]], span: tuple[int, int]) -> MapRows:
        """Sums of maps, each with the number of its block, by block and absolute column. span: of
        the starts of seconds."""
        halt = HALT.get()
        parts = []
        for start in range(0, len(maps), AT_ONCE):
            if halt is not None and halt.over:
                raise Halted("the question was given up", where=self.folder)
            parts.append(self._read_some(maps[start : start + AT_ONCE], span))
        return join_rows(parts)

    def _read_some(
        self, maps: Sequence[tuple[File | CutMap, int]], span: tuple[int, int]
    ) -> MapRows:
        files = [part.file if isinstance(part, CutMap) else part for part, _ in maps]
        check(files)
        contents: list[tuple[Path | bytes, int]] = [
            (_rewrite(part.file.path, part) if isinstance(part, CutMap) else part.path, block)
            for part, block in maps
        ]
        while True:
            try:
                columns, names = _core.sum_maps(
                    contents,
                    self.source,
                    self.interval_ns,
                    span,
                    by=sorted(self.by),
                    is_timed=self.is_timed,
                    threads=THREADS,
                )
                break
            except ValueError as error:
                place, reason = error.args
                content, block = contents[place]
                if isinstance(content, bytes):
                    path = files[place].path
                    raise FormatError(f"can't be read: it {reason}", where=path) from None
                contents[place] = _rewrite(content), block
            except FileNotFoundError:
                deleted = next((file.path for file in files if not file.path.exists()), None)
                raise DamagedError("was deleted while it was read", where=deleted) from None
            except OSError as error:
                raise FormatError(f"can't be read: {error}", where=self.folder) from None
        rows = {
            name: np.frombuffer(column, dtype=kind)
            for (name, kind), column in zip(COLUMNS.items(), columns, strict=True)
        }
        rows["key"] = _places_of(names)[rows["key"]]
        return rows


def _places_of(keys: Sequence[tuple[str | None, str | None]]) -> npt.NDArray[np.int64]:
    with _guard:
        return np.array([KEYS.setdefault(key, len(KEYS)) for key in keys], dtype=np.int64)


def keys_of(ops: Any, devices: Any) -> npt.NDArray[np.int64]:
    """Keys of rows of operations and devices, masked where they are missing."""
    names_by_column, pair = [], np.zeros(len(ops), dtype=np.int64)
    for column in (ops, devices):
        is_missing = np.ma.getmaskarray(column)
        names, place = np.unique(np.where(is_missing, "", column).astype(str), return_inverse=True)
        names_by_column.append([*names.tolist(), None])
        pair = pair * len(names_by_column[-1]) + np.where(is_missing, len(names), place)
    pairs, places = np.unique(pair, return_inverse=True)
    op, device = names_by_column
    keys = [(op[pair // len(device)], device[pair % len(device)]) for pair in pairs.tolist()]
    return _places_of(keys)[places]


def _rewrite(path: Path, cut: CutMap | None = None) -> bytes:
    """The content of a map, of another writer or of some segments alone, in the form that the native
    core reads."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from ...store.segments.sealing import SCHEMA, write_map

    buffer = pa.BufferOutputStream()
    try:
        table = pq.read_table(pa.BufferReader(map_regular(path)))
        if cut is not None:
            segment = table.column("segment")
            is_within = pc.and_(
                pc.greater_equal(segment, cut.first), pc.less_equal(segment, cut.last)
            )
            table = table.filter(is_within)
        write_map(buffer, table.select(SCHEMA.names).cast(SCHEMA))
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise FormatError(f"can't be read: {error}", where=path) from None
    return bytes(buffer.getvalue())


def _remember(
    key: MapQuestion,
    before: _Remembered,
    read: Mapping[int, tuple[File, ...]],
    rows: MapRows,
) -> None:
    """Remember sums with those that were read after them; the latest questions, as far as there is
    room."""
    if before.rows:
        unchanged = _select_blocks(before.rows, before.files.keys() - read.keys())
        rows = join_rows([unchanged, rows])
    with _guard:
        _remembered.pop(key, None)
        _remembered[key] = _Remembered({**before.files, **read}, rows)
        lengths = {key: len(sums.rows["block"]) for key, sums in _remembered.items()}
        total = sum(lengths.values())
        for oldest in list(lengths):
            if total > MOST_ROWS:
                total -= lengths[oldest]
                del _remembered[oldest]


def _select_blocks(rows: MapRows, blocks: Collection[int]) -> MapRows:
    """The rows of some blocks of segments."""
    is_chosen = np.isin(rows["block"], np.fromiter(blocks, dtype=np.int64))
    return {name: column[is_chosen] for name, column in rows.items()}


def join_rows(parts: Sequence[MapRows]) -> MapRows:
    if len(parts) == 1:
        return dict(parts[0])
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
