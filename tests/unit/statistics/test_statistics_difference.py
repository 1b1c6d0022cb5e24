# SPDX-License-Identifier: Apache-2.0
"""Two recordings or traces compared: rates, quantiles and shares are those of a count by hand."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from iolab import _core
from iolab.base.errors import UsageError
from iolab.recordings.ask.difference import (
    ALL_OPS,
    LEAST_BEYOND,
    Difference,
    Measure,
    Value,
    as_data,
    differences,
)
from iolab.recordings.ask.question import Filter
from support.statistics_data import Event, recording_of, trace_of

MS = 10**6

events = some.builds(
    Event,
    time=some.integers(0, 3000).map(lambda at: at * MS),
    latency=some.integers(0, 50).map(lambda value: value * MS // 7),
    offset=some.just(0),
    size=some.sampled_from([512, 4096]),
    op=some.sampled_from(["read", "write"]),
    process=some.none() | some.sampled_from(["fio", "dd"]),
)
lists = some.lists(events, min_size=2, max_size=30)


def measure(difference: Difference, op: str, name: str) -> Measure:
    return next(part for part in difference.measures if (part.op, part.name) == (op, name))


def upper_bound(latency: int) -> int:
    (value,) = _core.quantiles([_core.grid_index(latency, 6)], [1], [1.0], 6)
    assert value is not None
    return value


@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lists, lists)
def test_numbers_are_those_of_a_count_by_hand(
    tmp_path_factory: pytest.TempPathFactory, first: list[Event], second: list[Event]
) -> None:
    both = (first, second)
    places = [tmp_path_factory.mktemp("d") for _ in both]
    opened = [
        recording_of(trace_of(held, place / "t.csv"), place / "rec", parts=2)
        for place, held in zip(places, both, strict=True)
    ]
    (difference,) = differences(*opened, top=1000)
    assert difference.events == (len(first), len(second))
    ops = {event.op for held in both for event in held}
    for op in ops:
        values = (measure(difference, op, "p50").first, measure(difference, op, "p50").second)
        for held, value in zip(both, values, strict=True):
            latencies = sorted(event.latency or 0 for event in held if event.op == op)
            if not latencies:
                assert value is None
                continue
            assert value is not None
            middle = latencies[math.ceil(len(latencies) / 2) - 1]
            assert value.value == upper_bound(middle)
        rates = measure(difference, op, "rate")
        for held, covered_ns, value in zip(
            both, difference.covered_ns, (rates.first, rates.second), strict=True
        ):
            count = sum(event.op == op for event in held)
            assert (value is None) == (not count or not covered_ns)
            if value is not None:
                assert value.value == pytest.approx(count / (covered_ns / 1e9))
    shares = next((part for part in difference.dimensions if part.field == "process"), None)
    counts = [Counter(event.process or "unknown" for event in held) for held in both]
    names = set(counts[0]) | set(counts[1])
    if names == {"unknown"}:
        assert shares is None
    else:
        assert shares is not None
        assert {value.value: (value.inside, value.outside) for value in shares.values} == {
            name: (counts[0][name], counts[1][name]) for name in names
        }


def steady(latency_ms: int, seconds: int = 20, rate: int = 50, op: str = "read") -> list[Event]:
    step = 1000 // rate
    return [
        Event(time=at * MS, latency=latency_ms * MS, offset=0, size=4096, op=op, process="fio")
        for at in range(0, seconds * 1000, step)
    ]


def test_ranges_that_do_not_overlap_are_apart(tmp_path: Path) -> None:
    slow, fast = (trace_of(steady(ms), tmp_path / name) for name, ms in (("s", 9), ("f", 2)))
    (difference,) = differences(fast, slow)
    median = measure(difference, "read", "p50")
    assert median.is_apart
    assert median.change == pytest.approx(3.5, rel=0.03)
    assert not measure(difference, "read", "rate").is_apart
    assert measure(difference, "read", "rate").change == pytest.approx(0)
    # 50 I/Os of a part have no ten above the 99th percentile
    tail = measure(difference, "read", "p99")
    assert tail.first is not None
    assert tail.first.low is None
    assert LEAST_BEYOND > 50 * 0.01


def test_an_operation_of_one_recording_is_none_in_the_other(tmp_path: Path) -> None:
    reads = trace_of(steady(1), tmp_path / "r")
    mixed = trace_of([*steady(1), *steady(3, op="write")], tmp_path / "m")
    (difference,) = differences(reads, mixed)
    writes = measure(difference, "write", "rate")
    assert writes.first is None
    assert writes.change is None
    assert writes.second is not None
    assert measure(difference, ALL_OPS, "rate").change == pytest.approx(1)


def test_conditions_hold_for_both(tmp_path: Path) -> None:
    mixed = trace_of([*steady(1), *steady(3, op="write")], tmp_path / "m")
    (difference,) = differences(mixed, mixed, filters=(Filter("op", "=", ("write",)),))
    assert {part.op for part in difference.measures} == {"write"}


def test_a_source_that_one_lacks(tmp_path: Path) -> None:
    trace = trace_of(steady(1), tmp_path / "t")
    recording = recording_of(trace_of(steady(2), tmp_path / "r.csv"), tmp_path / "rec")
    (difference,) = differences(recording, trace)
    assert len(set(difference.sources)) == 2
    with pytest.raises(UsageError, match="no events of 'nfs'"):
        differences(recording, trace, source="nfs")


def test_data_are_json(tmp_path: Path) -> None:
    first, second = (
        recording_of(trace_of(steady(ms), tmp_path / f"{name}.csv"), tmp_path / name)
        for name, ms in (("a", 1), ("b", 2))
    )
    (difference,) = differences(first, second)
    data = json.loads(json.dumps(as_data(difference), allow_nan=False))
    assert data["events"] == [1000, 1000]
    assert {part["name"] for part in data["measures"]} == {
        "rate",
        "throughput",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "p99.99",
    }


@pytest.mark.parametrize(
    ("first", "second", "is_apart"),
    [
        (Value(1, 1, 2), Value(5, 4, 6), True),
        (Value(5, 4, 6), Value(1, 1, 2), True),
        (Value(1, 1, 4), Value(5, 4, 6), False),
        (Value(1), Value(5, 4, 6), False),
        (None, Value(5, 4, 6), False),
    ],
)
def test_apart(first: Value | None, second: Value | None, is_apart: bool) -> None:
    assert Measure("read", "rate", "1/s", first, second).is_apart is is_apart
