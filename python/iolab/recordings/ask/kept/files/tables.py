# SPDX-License-Identifier: Apache-2.0
"""The files of kept statistics: Parquet, sorted so that alike numbers lie together, with what they
are in the key `iolab`.

Four forms. `map`: `time_s`, `index` (of the bucket), `count`. `weighed`: the same, and their bytes
as `amount`. `numbers`: `time_s`, `key`, `amount`. `growth`, of counters: `time_s`, `object`,
`part`, `amount` (in the statistic's unit times seconds), `over` (what to divide it by), `covered`
and `broken` (seconds).
`time_s` is the start of the second, minute or hour. Rows of one time and place may be in several
files, or twice in one: they add up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from iolab.base.errors import FormatError
from iolab.base.files import map_regular

from ....store.base.grids import WITHOUT
from ....store.base.layout import replacing, telling
from .paths import Content, Form

KEY = "iolab"
SCHEMA = 1
LEVEL, PAGE = 19, 65_536
"""Of zstd, and bytes of a page: it has rows of few places with similar numbers, so that
one code fits them. Written seldom, and kept for months."""

_TIME = pa.field("time_s", pa.int64(), nullable=False)
_WORD = pa.dictionary(pa.int32(), pa.string())
_AMOUNT = pa.field("amount", pa.int64(), nullable=False)
_MAP = (
    _TIME,
    pa.field("index", pa.uint32(), nullable=False),
    pa.field("count", pa.uint64(), nullable=False),
)
SCHEMAS: Mapping[str, pa.Schema] = {
    "map": pa.schema(_MAP),
    "weighed": pa.schema([*_MAP, _AMOUNT]),
    "numbers": pa.schema([_TIME, pa.field("key", _WORD), _AMOUNT]),
    "growth": pa.schema(
        [
            _TIME,
            pa.field("object", _WORD, nullable=False),
            pa.field("part", _WORD, nullable=False),
            *(
                pa.field(name, pa.float64(), nullable=False)
                for name in ("amount", "over", "covered", "broken")
            ),
        ]
    ),
}
"""A key that is null: the rest, beyond the largest names of a segment."""

_PLACES = {
    "map": ("index",),
    "weighed": ("index",),
    "numbers": ("key",),
    "growth": ("object", "part"),
}
_ENCODINGS = {
    "time_s": "DELTA_BINARY_PACKED",
    "count": "BYTE_STREAM_SPLIT",
    "amount": "BYTE_STREAM_SPLIT",
}


@dataclass(frozen=True)
class About:
    """What a file says of itself.

    Attributes:
        statistic, source, form: what it holds. first_s, last_s: of its rows. rows: how many.
        width: of equal buckets (a power of two), 1 for those of the grid of `bits`. previous: the
        file before it in its folder when it was written, None for the first one and in files of an
        older version.
    """

    statistic: str
    source: str
    form: Form
    first_s: int
    last_s: int
    rows: int
    width: int = 1
    bits: int | None = None
    previous: Content | None = None

    def as_json(self) -> dict[str, Any]:
        """As it is written."""
        data = {"schema": SCHEMA, **asdict(self)}
        if self.previous is None:
            del data["previous"]
        return data


@dataclass(frozen=True)
class Sums:
    """A table of one of the forms and the width of its buckets."""

    table: pa.Table
    form: Form
    width: int = 1
    bits: int | None = None

    def wider(self, width: int) -> Sums:
        """With equal buckets of another width, at least as wide: exact, because a wide bucket holds
        whole ones."""
        shift = (width // self.width).bit_length() - 1
        if not shift:
            return self
        index = np.asarray(self.table["index"])
        index = np.where(index == WITHOUT, index, index >> np.uint32(shift)).astype(np.uint32)
        return Sums(
            self.table.set_column(1, SCHEMAS["map"].field("index"), pa.array(index)),
            self.form,
            width,
            self.bits,
        )

    def longer(self, seconds: int) -> Sums:
        """By a longer time: sums of whole ones. Sorted."""
        times = np.asarray(self.table["time_s"])
        table = self.table.set_column(0, _TIME, pa.array(times // seconds * seconds))
        return Sums(sum_rows([table], self.form), self.form, self.width, self.bits)


def add(parts: Sequence[Sums]) -> Sums:
    """The sum of some of one form, with the widest of their buckets."""
    width, first = max(part.width for part in parts), parts[0]
    table = sum_rows([part.wider(width).table for part in parts], first.form)
    return Sums(table, first.form, width, first.bits)


def sum_rows(tables: Sequence[pa.Table], form: Form) -> pa.Table:
    """Rows of one time and place as one, sorted by place, then time."""
    schema = SCHEMAS[form]
    places = _PLACES[form]
    amounts = [name for name in schema.names if name not in ("time_s", *places)]
    plain = pa.concat_tables([table.cast(_plain(schema)) for table in tables])
    if not plain.num_rows:
        return schema.empty_table()
    summed = plain.group_by([*places, "time_s"], use_threads=False).aggregate(
        [(name, "sum") for name in amounts]
    )
    summed = summed.rename_columns([*places, "time_s", *amounts]).select(schema.names)
    ordered = summed.sort_by([(name, "ascending") for name in (*places, "time_s")])
    return ordered.cast(_plain(schema)).cast(schema)


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema with words instead of dictionaries."""
    return pa.schema(
        [field.with_type(pa.string()) if field.type == _WORD else field for field in schema]
    )


def write(
    path: Path,
    parts: Iterable[Sums],
    statistic: str,
    source: str,
    previous: Content | None = None,
) -> About | None:
    """Write sums of one form and width, a row group each, as a whole or not at all. `previous`: the
    file before it. None, and no file, where there are no rows."""
    with telling(path, "keep a statistic"):
        filled = (part for part in parts if part.table.num_rows)
        first = next(filled, None)
        if first is None:
            return None
        schema = SCHEMAS[first.form]
        encodings = {name: _ENCODINGS[name] for name in schema.names if name in _ENCODINGS}
        with (
            replacing(path) as temporary,
            pq.ParquetWriter(
                temporary,
                schema,
                compression="zstd",
                compression_level=LEVEL,
                data_page_size=PAGE,
                column_encoding=encodings,
                write_page_checksum=True,
                write_statistics=["time_s"],
                use_dictionary=[name for name in schema.names if name not in encodings],
            ) as writer,
        ):
            first_s, last_s, rows = [], [], 0
            for sums in chain([first], filled):
                times = np.asarray(sums.table["time_s"])
                first_s.append(int(times.min()))
                last_s.append(int(times.max()))
                rows += len(times)
                writer.write_table(sums.table, row_group_size=max(1, sums.table.num_rows))
            span = min(first_s), max(last_s)
            grid = first.width, first.bits
            about = About(statistic, source, first.form, *span, rows, *grid, previous)
            writer.add_key_value_metadata({KEY: json.dumps(about.as_json())})
    return about


def about(path: Path) -> About:
    """What a file says of itself. FormatError where it is damaged, FileNotFoundError where a merge
    has replaced it."""
    try:
        metadata = pq.read_metadata(pa.BufferReader(map_regular(path))).metadata or {}
        data = json.loads(metadata.get(KEY.encode(), b""))
        bits = data["bits"]
        about = About(
            str(data["statistic"]),
            str(data["source"]),
            data["form"],
            int(data["first_s"]),
            int(data["last_s"]),
            int(data["rows"]),
            int(data["width"]),
            None if bits is None else int(bits),
            Content.of_json(data.get("previous")),
        )
        if about.form not in SCHEMAS or about.width < 1 or about.width & (about.width - 1):
            raise ValueError("it is of no known form")
        return about
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise _damage_error(path, error) from None


def read(path: Path) -> Sums:
    """A file with its pages' checksums. FormatError where it is damaged, FileNotFoundError where a
    merge has replaced it."""
    content = about(path)
    try:
        table = pq.read_table(
            pa.BufferReader(map_regular(path)),
            use_threads=False,
            page_checksum_verification=True,
            read_dictionary=list(_PLACES[content.form]),
        )
        table = table.select(SCHEMAS[content.form].names).cast(SCHEMAS[content.form])
        return Sums(table, content.form, content.width, content.bits)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, KeyError) as error:
        raise _damage_error(path, error) from None


def _damage_error(path: Path, error: Exception) -> FormatError:
    words = (str(error) or type(error).__name__).splitlines()[0]
    return FormatError(
        f"is a damaged file of a kept statistic: {words}",
        where=path,
        hint="remove it: what it kept is lost, all else can be asked",
    )
