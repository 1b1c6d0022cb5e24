# SPDX-License-Identifier: Apache-2.0
"""Rows of sealed segments and of their maps as tables of an archive have them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iolab.base.errors import IolabError
from iolab.base.files import map_regular

from ...store.base.layout import Kind, map_file
from ...store.catalogue import Catalogue
from ...store.ledger import check
from ...store.segments.segments import MAP_NAMES, Segment, part_of
from .. import tables
from ..tables import Table

if TYPE_CHECKING:
    import pyarrow as pa

TABLES_OF_KINDS: Mapping[Kind, Table] = {"events": tables.EVENTS, "samples": tables.SAMPLES}
_DAY_NS = 86_400 * 10**9


def read_rows(segment: Segment, kind: Kind, host: str, key: str) -> pa.Table:
    """The rows of a sealed file as the archive has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check([segment.part])
    table = pq.read_table(pa.BufferReader(map_regular(segment.path)))
    return _with_key(table, TABLES_OF_KINDS[kind], host, key, segment.number, "time_ns")


def read_maps(catalogue: Catalogue, number: int, host: str, key: str) -> list[pa.Table]:
    """The default maps of a segment; those that are damaged are left out, as they can be made of
    the events."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables_of_maps = []
    line = catalogue.segments.lines.get(number, {})
    for name in MAP_NAMES:
        path = map_file(catalogue.path, number, name)
        try:
            check([part_of(catalogue.path, line, number, name)])
            table = pq.read_table(pa.BufferReader(map_regular(path)))
        except (IolabError, OSError, pa.ArrowException, ValueError):
            continue
        facts = json.loads((table.schema.metadata or {}).get(b"iolab", b"{}"))
        rows = table.num_rows
        table = table.append_column("map", pa.repeat(pa.scalar(name), rows))
        width = pa.scalar(facts.get("width"), pa.int64())
        table = table.append_column("width_bytes", pa.repeat(width, rows))
        tables_of_maps.append(_with_key(table, tables.SEGMENT_MAPS, host, key, number, "second_ns"))
    return tables_of_maps


def coarsen_maps(maps: Sequence[pa.Table]) -> list[pa.Table]:
    """Sums of segment maps by 100 s. A map of which a sum might not fit is left out: its seconds
    are read."""
    import pyarrow as pa
    import pyarrow.compute as pc

    block_ns = tables.COARSE_S * 10**9
    names = tables.COARSE_MAPS.columns.names
    added = ("count", "time_ns_sum")
    keys = [name for name in names if name not in added]
    coarse = []
    for rows in maps:
        if any((pc.sum(rows[name].cast("double")).as_py() or 0) >= 2**62 for name in added):
            continue
        start_ns = rows["second_ns"].to_numpy() // block_ns * block_ns
        rows = rows.set_column(names.index("second_ns"), "second_ns", pa.array(start_ns))
        sums = rows.group_by(keys).aggregate([(name, "sum") for name in added])
        coarse.append(sums.rename_columns([*keys, *added]).cast(tables.COARSE_MAPS.columns))
    return coarse


def _with_key(
    table: pa.Table, target: Table, host: str, key: str, number: int, time_column: str
) -> pa.Table:
    """A table with the columns of `target`. ValueError where a value does not fit."""
    import numpy as np
    import pyarrow as pa

    rows = table.num_rows
    days = np.floor_divide(table.column(time_column).to_numpy(), _DAY_NS).astype(np.int32)
    own: dict[str, pa.Array] = {
        "host": pa.repeat(pa.scalar(host), rows),
        "recording": pa.repeat(pa.scalar(key), rows),
        "segment": pa.repeat(pa.scalar(number, pa.int64()), rows),
        "day": pa.array(days).cast(pa.date32()),
    }
    columns = []
    for column in target.columns:
        values = own[column.name] if column.name in own else table.column(column.name)
        try:
            columns.append(values.cast(column.type))
        except pa.ArrowInvalid as error:
            raise ValueError(f"column {column.name}: {error}") from None
    return pa.Table.from_arrays(columns, schema=target.columns)


def segment_lines(rows: pa.Table, kind: Kind) -> list[dict[str, Any]]:
    """Lines of `segments` for the rows of one segment."""
    if kind == "samples":
        import pyarrow as pa

        rows = rows.append_column("count", pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))
    grouped = rows.group_by(["host", "recording", "segment", "source"]).aggregate(
        [("time_ns", "min"), ("time_ns", "max"), ("count", "count"), ("count", "sum")]
    )
    return [
        {
            "host": line["host"],
            "recording": line["recording"],
            "segment": line["segment"],
            "kind": kind,
            "source": line["source"],
            "first_ns": line["time_ns_min"],
            "last_ns": line["time_ns_max"],
            "rows": line["count_count"],
            "count": line["count_sum"],
        }
        for line in grouped.to_pylist()
    ]


def is_sorted(rows: pa.Table, order: Sequence[str]) -> bool:
    """Whether rows ascend by these columns: to sort them copies all texts."""
    import numpy as np
    import pyarrow.compute as pc

    ties = np.ones(max(0, rows.num_rows - 1), dtype=bool)
    for name in order:
        values = rows[name]
        before, after = values.slice(0, len(ties)), values.slice(1)
        if (ties & pc.greater(before, after).to_numpy()).any():
            return False
        ties &= pc.equal(before, after).to_numpy()
    return True


def partition(rows: pa.Table) -> Iterator[tuple[tuple[Any, str], pa.Table]]:
    """Rows by day and source: a file holds one of each."""
    import pyarrow.compute as pc

    keys = rows.select(["day", "source"]).group_by(["day", "source"]).aggregate([]).to_pylist()
    for key in sorted(keys, key=lambda key: (key["day"], key["source"])):
        mask = pc.and_(pc.equal(rows["day"], key["day"]), pc.equal(rows["source"], key["source"]))
        yield (key["day"], key["source"]), rows if len(keys) == 1 else rows.filter(mask)


def file_word(name: str) -> str:
    """A part of a file's name."""
    return "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name)[:40]
