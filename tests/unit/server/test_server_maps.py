# SPDX-License-Identifier: Apache-2.0
"""Maps told apart, their difference, and moments to jump to: each against sums by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from iolab.base.clock import FakeClock
from iolab.base.errors import UsageError
from iolab.output.server.base.store import Store
from iolab.output.server.queries.answers import ask, layers
from iolab.output.server.queries.comparison import difference
from iolab.output.server.queries.drill import extremes
from iolab.recordings.heatmap.wire import SparseCounts
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events

MAP = {"recording": "rec", "statistic": "io.ops[latency]", "interval": "1s"}


def summed(cells: SparseCounts) -> Counter[tuple[int, int]]:
    """Counts by (column, row)."""
    found: Counter[tuple[int, int]] = Counter()
    for column in range(len(cells.starts) - 1):
        for k in range(cells.starts[column], cells.starts[column + 1]):
            found[column, cells.rows[k]] += cells.counts[k]
    return found


def asked(store: Store, **words: str) -> Any:
    return ask(store, words)


@pytest.mark.parametrize(
    "statistic",
    [
        "io.ops[latency]",
        "io.ops[offset]",
        "io.ops[size]",
        "io.ops[queue]",
        "io.ops[latency>=100us][latency]",
    ],
)
@pytest.mark.parametrize(
    ("by", "keys"), [("device", ["sda"]), ("op", ["write", "read"]), ("process", ["nobody's"])]
)
def test_layers_add_up_to_the_map(statistic: str, by: str, keys: list[str], store: Store) -> None:
    words = {**MAP, "statistic": statistic, "from": "1s", "to": "6s"}
    found = layers(store, {**words, "by": by, "key": "\0".join(keys)})
    whole = asked(store, **words, drawn="true")
    assert found.map.group is not None
    [one] = found.map.group.maps
    [dimension] = one.dimensions
    assert (dimension.name, [part.name for part in dimension.parts]) == (by, [*keys, "(others)"])
    parts = [summed(part.cells) for part in dimension.parts]
    assert sum(parts, Counter()) == summed(one.cells)
    assert one.cells == whole.group.maps[0].cells
    assert found.map.group.bounds == whole.group.bounds
    for key, part in zip(keys, parts, strict=False):
        head, _, tail = statistic.rpartition("[")
        assert (
            part.total()
            == asked(store, **{**words, "statistic": f"{head}[{by}={key}][{tail}"}).events
        )


def test_a_layer_is_the_map_of_its_key_alone(store: Store) -> None:
    found = layers(store, {**MAP, "by": "op", "key": "write"})
    alone = asked(store, **{**MAP, "statistic": "io.ops[op=write][latency]"})
    group = found.map.group
    assert group is not None
    first = (alone.t0_ns - found.map.t0_ns) // SECOND
    rows = {bound: row for row, bound in enumerate(group.bounds)}
    assert summed(group.maps[0].dimensions[0].parts[0].cells) == {
        (column + first, rows[low]): count
        for column, low, count in zip(alone.column, alone.low, alone.count, strict=True)
    }


def test_without_the_rest_the_layers_are_the_map(store: Store) -> None:
    found = layers(store, {**MAP, "by": "op", "key": "write\0read", "rest": "false"})
    assert found.map.group is not None
    assert found.rest is False
    assert [part.name for part in found.map.group.maps[0].dimensions[0].parts] == ["write", "read"]
    assert (
        found.map.events
        == asked(store, **{**MAP, "statistic": "io.ops[op=write,read][latency]"}).events
    )
    nothing = layers(store, {**MAP, "by": "process", "key": "nobody's", "rest": "false"})
    assert nothing.map.group is None


def test_layers_of_a_trace_and_of_numbers(store: Store) -> None:
    found = layers(
        store,
        {"recording": "t.csv", "statistic": "io.ops[latency]", "by": "process", "key": "fio\0dd"},
    )
    assert found.map.group is not None
    assert [summed(part.cells).total() for part in found.map.group.maps[0].dimensions[0].parts] == [
        5000,
        500,
        0,
    ]
    by_pid = asked(store, recording="rec", statistic="io.ops[pid]", top="2")
    key = next(layer.key for layer in by_pid.keys if layer.key != "unknown")
    numbered = layers(store, {**MAP, "by": "pid", "key": key})
    assert numbered.map.group is not None
    assert summed(numbered.map.group.maps[0].dimensions[0].parts[0].cells).total() > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"by": "op"}, "'key' is missing"),
        ({"key": "read"}, "'by' is missing"),
        ({"by": "latency", "key": "1"}, "cannot be broken down by"),
        ({"by": "../x", "key": "1"}, "cannot be broken down by"),
        ({"by": "op", "key": "raed"}, "no op 'raed'"),
        ({"by": "pid", "key": "x" * 3000}, "no"),
        ({"by": "op", "key": "read", "statistic": "io.ops[op]"}, "those of a map"),
        ({"by": "op", "key": "read", "interval": "whole"}, "no interval"),
    ],
)
def test_layers_that_can_not_be_asked(words: dict[str, str], said: str, store: Store) -> None:
    with pytest.raises(UsageError, match=said):
        layers(store, {**MAP, **words})


@pytest.mark.parametrize(("kind", "order"), [("max", -1), ("min", 1)])
def test_extremes_are_the_columns_in_order(kind: str, order: int, store: Store) -> None:
    words = {"recording": "t.csv", "statistic": "io.ops[latency>=103us][latency]"}
    found = extremes(store, {**words, "kind": kind, "count": "3", "interval": "7ms"})
    series = asked(store, recording="t.csv", statistic="io.ops[latency>=103us]", interval="7ms")
    # the first and the last column are cut by the trace's ends
    inside = [
        (series.t0_ns + place * 7_000_000, value)
        for place, value in enumerate(series.values)
        if series.first_ns <= series.t0_ns + place * 7_000_000
        and series.t0_ns + (place + 1) * 7_000_000 <= series.until_ns
    ]
    expected = sorted(inside, key=lambda each: (order * each[1], each[0]))[:3]
    assert [(each.from_ns, each.value) for each in found.moments] == expected
    assert all(each.until_ns - each.from_ns == 7_000_000 for each in found.moments)
    assert (found.statistic, found.columns) == ("io.ops[latency>=103us]", len(inside))


@pytest.fixture(scope="module")
def torn(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Ten seconds, twenty of nothing, ten seconds again; the third has most I/Os."""
    path = tmp_path_factory.mktemp("torn") / "r"
    clock = FakeClock(START)
    with RecordingWriter.create(
        path, host="h", clock="realtime", origin={"kind": "record"}, system=clock
    ) as writer:
        for second in range(10):
            many = 300 if second == 2 else 100
            writer.append_events(events(many, second, start_ns=START + second * SECOND, per_s=many))
        clock.sleep(10)
    clock.sleep(20)
    with RecordingWriter.reopen(path, system=clock) as writer:
        for second in range(30, 40):
            writer.append_events(events(100, second, start_ns=START + second * SECOND, per_s=100))
        clock.sleep(10)
    return Store([path])


def test_extremes_leave_gaps_out(torn: Store) -> None:
    found = extremes(torn, {"statistic": "io.ops", "count": "1000"})
    assert found.columns == len(found.moments) == 20
    assert found.moments[0].from_ns == START + 2 * SECOND
    least = extremes(torn, {"statistic": "io.ops", "kind": "min", "count": "1000"})
    assert {each.from_ns for each in least.moments} == {each.from_ns for each in found.moments}
    assert least.moments[0].value == found.moments[-1].value > 0
    # a span within a column has but a cut one
    assert (
        len(extremes(torn, {"statistic": "io.ops[op]", "from": "2.2s", "to": "2.4s"}).moments) == 1
    )


def test_a_difference_is_cell_by_cell(store: Store) -> None:
    words = {
        **MAP,
        "from": "4s",
        "to": "7s",
        "other_from": "1s",
        "other_to": "4s",
        "interval": "500ms",
    }
    found = difference(store, words)
    group = found.group
    assert group is not None
    assert (found.columns, found.from_ns - found.other_from_ns) == (6, 3 * SECOND)
    assert (
        found.until_ns - found.from_ns == found.other_until_ns - found.other_from_ns == 3 * SECOND
    )
    other, this = (summed(each.cells) for each in group.maps)
    assert (
        this.total()
        == asked(store, **{**MAP, "from": str(found.from_ns), "to": str(found.until_ns)}).events
        > 0
    )
    assert (
        other.total()
        == asked(
            store, **{**MAP, "from": str(found.other_from_ns), "to": str(found.other_until_ns)}
        ).events
        > 0
    )
    values = {}
    for column in range(found.columns):
        for k in range(found.cells.starts[column], found.cells.starts[column + 1]):
            values[column, found.cells.rows[k]] = found.cells.values[k]
    assert values == {
        cell: (this[cell] - other[cell]) / 0.5 for cell in this | other if this[cell] != other[cell]
    }
    assert found.gaps == []


def test_what_was_not_recorded_is_not_compared(torn: Store) -> None:
    found = difference(
        torn,
        {
            "statistic": "io.ops[offset]",
            "from": "25s",
            "to": "40s",
            "interval": "1s",
            "other_from": "1s",
            "other_to": "16s",
        },
    )
    assert found.gaps == [(0, 5), (9, 15)]
    assert (found.covered_ns, found.other_covered_ns) == (10 * SECOND, 9 * SECOND)
    found = difference(
        torn,
        {
            "statistic": "io.ops[offset]",
            "from": "0s",
            "to": "15s",
            "interval": "1s",
            "other_from": str(START - 2 * SECOND),
            "other_to": str(START + 13 * SECOND),
        },
    )
    assert found.gaps == [(0, 2), (10, 15)]
    compared = np.repeat(np.arange(found.columns), np.diff(found.cells.starts))
    assert set(compared.tolist()) <= set(range(2, 10))
    far = difference(
        torn,
        {
            "statistic": "io.ops[latency]",
            "from": str(START - 9 * SECOND),
            "to": str(START - 8 * SECOND),
            "other_from": str(START - 5 * SECOND),
            "other_to": str(START - 4 * SECOND),
        },
    )
    assert far.group is None
    assert (far.covered_ns, far.cells.rows) == (0, [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"other_to": "9s"}, "differ in length"),
        ({"from": "3s"}, "empty"),
        ({"interval": "1ns"}, "columns"),
        ({"interval": "whole"}, "no interval"),
        ({"other_from": "yesterday"}, "not a moment"),
    ],
)
def test_differences_that_can_not_be_asked(words: dict[str, str], said: str, store: Store) -> None:
    asks = {**MAP, "from": "1s", "to": "3s", "other_from": "4s", "other_to": "6s", **words}
    with pytest.raises(UsageError, match=said):
        difference(store, asks)
    for name in ("from", "to", "other_from", "other_to"):
        with pytest.raises(UsageError):
            difference(store, {key: value for key, value in asks.items() if key != name})


def test_all_time_as_one_column(store: Store) -> None:
    words = {"recording": "rec", "from": "1s", "to": "4s"}
    for statistic in ("io.ops", "io.bytes[op=write]"):
        one, many = (
            asked(store, **words, statistic=statistic, interval="whole"),
            asked(store, **words, statistic=statistic),
        )
        assert (one.t0_ns, one.interval_ns, one.values) == (
            many.first_ns,
            many.until_ns - many.first_ns,
            [many.mean],
        )
        assert (one.total, one.mean) == (many.total, many.mean)
    stack = asked(store, **words, statistic="io.ops[process]", interval="whole", top="2")
    assert [each.values for each in stack.keys] == [[each.mean] for each in stack.keys]
    assert stack.others is None or stack.others.values == [stack.others.mean]
    heat = asked(store, **words, statistic="io.ops[latency]", interval="whole")
    assert set(heat.column) == {0}
    assert (
        sum(heat.count) == heat.events == asked(store, **words, statistic="io.ops[latency]").events
    )


def test_where_nothing_is_left_there_is_no_column(store: Store) -> None:
    assert (
        asked(
            store, recording="rec", statistic="io.ops[latency>=1h][latency]", interval="whole"
        ).column
        == []
    )
    assert (
        asked(store, recording="rec", statistic="io.ops[latency>=1h][op]", interval="whole").keys
        == []
    )
