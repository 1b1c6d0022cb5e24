# SPDX-License-Identifier: Apache-2.0
"""Unsealed rows by source and time: no row is missing, none is there twice."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.segments.hot import UnsealedRows, split_by_source
from support.recordings import events

SOURCES = ["block", "nfs", "syscall"]
ROWS = {(source, seed): events(12, seed, source=source) for source in SOURCES for seed in range(3)}
MIXED = pa.Table.from_batches(ROWS.values()).unify_dictionaries()
FIRST, LAST = min(MIXED["time_ns"].to_pylist()), max(MIXED["time_ns"].to_pylist())


def rows_of(table: pa.Table | None) -> list[str]:
    """All values of each row, sorted."""
    return [] if table is None else sorted(map(str, table.to_pylist()))


@settings(max_examples=30, deadline=None)
@given(
    order=st.lists(st.integers(0, MIXED.num_rows - 1), max_size=60),
    ends=st.lists(st.integers(0, 60), max_size=4),
    source=st.sampled_from([*SOURCES, "file"]),
    span=st.tuples(st.integers(FIRST - 2, LAST + 2), st.integers(FIRST - 2, LAST + 2)),
)
def test_rows_of_a_source_in_a_span(
    order: list[int], ends: list[int], source: str, span: tuple[int, int]
) -> None:
    table = MIXED.take(pa.array(order, pa.int64())).combine_chunks()
    pieces, begin = [], 0
    for end in [*sorted(ends), table.num_rows]:
        pieces += table.slice(begin, max(0, end - begin)).to_batches()
        begin = max(begin, end)
    unsealed = UnsealedRows([part for piece in pieces for part in split_by_source(piece)], EVENTS)
    assert rows_of(unsealed.table()) == rows_of(table)
    assert set(unsealed.sources) == set(table["source"].to_pylist())
    own = [row for row in table.to_pylist() if row["source"] == source]
    assert rows_of(unsealed.of(source)) == sorted(map(str, own))
    times = [row["time_ns"] for row in own]
    assert unsealed.bounds(source) == ((min(times), max(times)) if times else None)
    chosen = unsealed.of(source, span)
    inside = [] if chosen is None else chosen.to_pylist()
    assert sorted(map(str, (row for row in inside if span[0] <= row["time_ns"] < span[1]))) == (
        sorted(map(str, (row for row in own if span[0] <= row["time_ns"] < span[1])))
    )


def test_rows_of_one_source_are_not_copied() -> None:
    batches = [ROWS["block", 0], ROWS["block", 1], ROWS["nfs", 0]]
    unsealed = UnsealedRows([part for batch in batches for part in split_by_source(batch)], EVENTS)
    address = batches[0].column("time_ns").buffers()[1].address
    table = unsealed.of("block")
    assert table is not None
    assert table["time_ns"].chunk(0).buffers()[1].address == address
    last_ns = max(batches[0].column("time_ns").to_pylist())
    assert unsealed.of("nfs", (last_ns + 10**15, last_ns + 10**16)) is None


def test_no_rows() -> None:
    assert list(split_by_source(ROWS["block", 0].slice(0, 0))) == []
    assert UnsealedRows([], EVENTS).table().num_rows == 0
