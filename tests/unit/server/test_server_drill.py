# SPDX-License-Identifier: Apache-2.0
"""Whose the I/Os are, and the tree of paths, against sums by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iolab.output.server.base.store import Store
from iolab.output.server.queries.drill import hierarchy, who
from iolab.recordings.store.read.recording import Recording
from support.recordings import START, unsealed


@pytest.fixture(scope="module")
def rows(recording: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    held = Recording(recording)
    tables = [
        pq.read_table(segment.path) for segment in held.segments() if segment.kind == "sealed"
    ]
    return [row for table in [*tables, unsealed(held)] for row in pa.table(table).to_pylist()]


def test_shares_are_those_of_the_events(store: Store, rows: list[dict[str, Any]]) -> None:
    found = who(
        store,
        {
            "recording": "rec",
            "statistic": "io.ops[op=read,write][latency]",
            "from": "2s",
            "to": "6s",
            "low": "50us",
            "high": "1ms",
            "top": "1000",
        },
    )
    meant = [row for row in rows if row["op"] in ("read", "write")]
    inside: Counter[str] = Counter()
    outside: Counter[str] = Counter()
    for row in meant:
        within = (
            START + 2 * 10**9 <= row["time_ns"] < START + 6 * 10**9
            and 50_000 <= (row["latency_ns"] or -1) < 10**6
        )
        (inside if within else outside)[str(row["device"] or "unknown")] += row["count"]
    assert found.inside == inside.total() > 0
    assert found.outside == outside.total() > 0
    device = next(each for each in found.dimensions if each.field == "device")
    assert {share.value: (share.inside, share.outside) for share in device.values} == {
        name: (inside[name], outside[name]) for name in inside | outside
    }
    for dimension in found.dimensions:
        assert sum(share.share_inside or 0 for share in dimension.values) == pytest.approx(1)
        assert sum(share.share_outside or 0 for share in dimension.values) == pytest.approx(1)
        apart = [
            round(abs((share.share_inside or 0) - (share.share_outside or 0)), 9)
            for share in dimension.values
        ]
        assert apart == sorted(apart, reverse=True)


def test_who_is_behind_the_slow_ones(store: Store) -> None:
    found = who(store, {"recording": "t.csv", "statistic": "io.ops[latency]", "low": "1ms"})
    first = {each.field: each.values[0].value for each in found.dimensions}
    assert (first["process"], first["op"], first["file"]) == ("dd", "write", "/b")
    assert (found.inside, found.outside) == (500, 5000)


def test_an_empty_rectangle_has_no_shares(store: Store) -> None:
    found = who(store, {"recording": "t.csv", "statistic": "io.ops[latency]", "low": "1h"})
    assert found.inside == 0
    assert all(share.share_inside is None for each in found.dimensions for share in each.values)


def test_the_tree_of_paths_adds_up(store: Store, rows: list[dict[str, Any]]) -> None:
    found = hierarchy(store, {"recording": "rec", "statistic": "io.ops"})
    assert (
        found.total
        == sum(int(str(row["count"])) for row in rows)
        == found.root.total + found.unnamed
    )
    [data] = found.root.children
    assert data.name == "data"
    assert {child.name for child in data.children} == {
        str(row["file"]).rsplit("/", 1)[-1] for row in rows if row["file"]
    }
    assert (
        hierarchy(store, {"recording": "t.csv", "statistic": "io.bytes[op=write]"})
        .root.children[0]
        .name
        == "b"
    )
