# SPDX-License-Identifier: Apache-2.0
"""Heat maps of bytes as the service gives them: told apart, compared, marked, and never as counts
of I/Os."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from starlette.testclient import TestClient

from iolab.base.errors import UsageError
from iolab.output.server.base.store import Store
from iolab.output.server.queries.answers import ask, export, layers
from iolab.output.server.queries.comparison import difference
from iolab.output.server.queries.drill import extremes, who
from iolab.recordings.heatmap.wire import SparseCounts
from support.recordings import SECOND

BYTES = {"recording": "rec", "statistic": "io.bytes[latency]", "interval": "1s"}
KNOWN = "[latency>=0ns][size>=0B]"
"""Conditions that leave I/Os with a latency and a size."""


def asked(store: Store, **words: str) -> Any:
    return ask(store, words)


def summed(cells: SparseCounts) -> Counter[tuple[int, int]]:
    """Bytes by (column, row)."""
    found: Counter[tuple[int, int]] = Counter()
    for column in range(len(cells.starts) - 1):
        for k in range(cells.starts[column], cells.starts[column + 1]):
            found[column, cells.rows[k]] += cells.counts[k]
    return found


@pytest.mark.parametrize("name", ["rec", "t.csv"])
@pytest.mark.parametrize("ends", [{}, {"from": "1s", "to": "3s"}])
def test_a_map_adds_up_to_the_bytes_of_its_ios(
    name: str, ends: dict[str, str], store: Store
) -> None:
    words = {**BYTES, "recording": name, **ends}
    found, drawn = asked(store, **words), asked(store, **words, drawn="true")
    moved = asked(store, **{**words, "statistic": f"io.bytes{KNOWN}"})
    counted = asked(store, **{**words, "statistic": f"io.ops{KNOWN}"})
    assert (found.weight, sum(found.count), found.events) == ("bytes", moved.total, counted.total)
    assert (drawn.group.weight, summed(drawn.group.maps[0].cells).total(), drawn.events) == (
        "bytes",
        moved.total,
        counted.total,
    )
    assert drawn.group.lines == []
    table = export(store, words).decode().splitlines()
    assert table[0] == "time_s,low,high,bytes"
    assert sum(int(line.rpartition(",")[2]) for line in table[1:]) == moved.total


def test_layers_add_up_to_the_map(store: Store) -> None:
    found = layers(store, {**BYTES, "by": "op", "key": "write\0read"})
    assert found.map.group is not None
    [one] = found.map.group.maps
    parts = [summed(part.cells) for part in one.dimensions[0].parts]
    assert sum(parts, Counter()) == summed(one.cells)
    for key, part in zip(["write", "read"], parts, strict=False):
        assert (
            part.total()
            == asked(store, **{**BYTES, "statistic": f"io.bytes[op={key}]{KNOWN}"}).total
        )
    assert found.map.events == asked(store, **BYTES).events, "I/Os stay I/Os"


def test_layers_without_the_rest_are_of_the_ios_that_they_show(store: Store) -> None:
    found = layers(store, {**BYTES, "by": "op", "key": "write", "rest": "false"})
    assert (
        found.map.events
        == asked(store, **{**BYTES, "statistic": "io.bytes[op=write][latency]"}).events
    )
    assert 0 < found.map.events < asked(store, **BYTES).events
    trimmed = layers(store, {**BYTES, "by": "op", "key": "trim", "rest": "false"})
    assert (
        trimmed.map.events
        == asked(store, **{**BYTES, "statistic": "io.bytes[op=trim][latency]"}).events
    )


def test_two_times_are_compared_in_bytes_a_second(store: Store) -> None:
    found = difference(
        store, {**BYTES, "from": "4s", "to": "6s", "other_from": "1s", "other_to": "3s"}
    )
    assert found.group is not None
    assert found.group.weight == "bytes"
    totals = [
        asked(store, **{**BYTES, "statistic": f"io.bytes{KNOWN}", "from": begin, "to": end}).total
        for begin, end in (("4s", "6s"), ("1s", "3s"))
    ]
    assert sum(found.cells.values) * found.interval_ns / SECOND == pytest.approx(
        totals[0] - totals[1]
    )


def test_whose_the_bytes_are(store: Store) -> None:
    found = who(store, {**BYTES, "low": "100us", "high": "1s"})
    inside, every = (
        asked(store, **{**BYTES, "statistic": name}).total
        for name in ("io.bytes[latency=100us..1s]", "io.bytes")
    )
    assert (found.unit, found.inside, found.inside + found.outside) == ("B", inside, every)


def test_the_largest_moments_are_those_of_its_number(store: Store) -> None:
    found, plain = (
        extremes(store, {**BYTES, "statistic": name, "kind": "max", "count": "3"})
        for name in ("io.bytes[size]", "io.bytes")
    )
    assert found.moments == plain.moments


def test_percentiles_are_refused(store: Store, client: TestClient) -> None:
    with pytest.raises(UsageError, match="percentiles are of I/Os, not of bytes"):
        asked(store, **BYTES, drawn="percentiles")
    answer = client.get("/api/v1/query", params={**BYTES, "drawn": "percentiles"})
    assert answer.status_code == 400
    assert "io.ops" in answer.text
