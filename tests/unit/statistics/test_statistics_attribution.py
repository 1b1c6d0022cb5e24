# SPDX-License-Identifier: Apache-2.0
"""Whose the I/Os of a rectangle are: shares add up, and are those of a count by hand, on both
roads."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from iolab.base.errors import UsageError
from iolab.cli.query.who import Selection, text
from iolab.recordings.ask.attribution import (
    Dimension,
    Rectangle,
    Share,
    Who,
    as_data,
    joined_who,
    who,
)
from iolab.recordings.ask.question import Filter, parse
from support.statistics_data import Event, recording_of, trace_of

MS = 10**6

events = some.builds(
    Event,
    time=some.integers(0, 100).map(lambda at: at * MS),
    latency=some.none() | some.integers(0, 10).map(lambda value: value * MS),
    offset=some.just(0),
    size=some.none()
    | some.sampled_from([0, 1, 512, 4095, 4096, 4097, 2**30 - 1, 2**30, 2**31 - 1]),
    op=some.sampled_from(["read", "write", "trim"]),
    device=some.none() | some.sampled_from(["sda", "sdb"]),
    process=some.none() | some.sampled_from(["fio", "dd", "unknown"]),
    file=some.none() | some.sampled_from(["/a", "/b/c"]),
)
end = some.none() | some.integers(0, 100)


@some.composite
def rectangles(draw: some.DrawFn) -> Rectangle:
    times, values = (
        sorted([draw(some.integers(0, 100)), draw(some.integers(0, 100))]),
        sorted([draw(some.integers(0, 11)), draw(some.integers(0, 11))]),
    )
    whole = [times[0] * MS, (times[1] + 1) * MS, values[0] * MS, (values[1] + 1) * MS]
    return Rectangle(*(draw(some.none() | some.just(each)) for each in whole))


def by_hand(held: list[Event], box: Rectangle, field: str) -> dict[str, tuple[int, int]]:
    inside: Counter[str] = Counter()
    outside: Counter[str] = Counter()
    for each in held:
        within = (
            each.latency is not None
            and (box.from_ns or 0) <= each.time
            and (box.until_ns is None or each.time < box.until_ns)
            and (box.low or 0) <= each.latency
            and (box.high is None or each.latency < box.high)
        )
        value: Any = getattr(each, field)
        if field == "size" and value is not None:
            least = 1 << value.bit_length() - 1 if value else 0
            value = {
                0: "0",
                1: "1B..2B",
                512: "512B..1KiB",
                2048: "2KiB..4KiB",
                4096: "4KiB..8KiB",
                2**29: "512MiB..1GiB",
                2**30: "1GiB..2GiB",
            }[least]
        (inside if within else outside)["unknown" if value is None else value] += 1
    return {value: (inside[value], outside[value]) for value in {**inside, **outside}}


@pytest.mark.slow
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None
)
@given(some.lists(events, min_size=1, max_size=60), rectangles())
def test_it_is_a_count_by_hand(
    tmp_path_factory: pytest.TempPathFactory, held: list[Event], box: Rectangle
) -> None:
    folder = tmp_path_factory.mktemp("who")
    trace = trace_of(held, folder / "t.csv")
    for opened in (trace, recording_of(trace, folder / "r", parts=2, hot=True)):
        found = who(opened, "latency", box)
        assert found.inside + found.outside == len(held)
        assert found.without == sum(each.latency is None for each in held)
        for dimension in found.dimensions:
            assert (
                sum(each.inside for each in dimension.values) + dimension.left_inside
                == found.inside
            )
            assert (
                sum(each.outside for each in dimension.values) + dimension.left_outside
                == found.outside
            )
            if found.inside:
                assert sum(each.share_inside for each in dimension.values) == pytest.approx(1)
            if found.outside:
                assert sum(each.share_outside for each in dimension.values) == pytest.approx(1)
            assert 0 <= dimension.telling <= 1 + 1e-9
            if dimension.field in ("op", "device", "process", "file", "size"):
                assert {
                    each.value: (each.inside, each.outside) for each in dimension.values
                } == by_hand(held, box, dimension.field)
        json.dumps(as_data(found), allow_nan=False)


def slow(tmp_path: Path) -> Any:
    """A hundred reads; those that are slow are of one process and one of the devices."""
    return trace_of(
        [
            Event(
                at * MS,
                (20 if at % 10 == 0 else 1) * MS,
                process="backup" if at % 10 == 0 else f"p{at % 7}",
                device="sdb" if at % 5 == 0 else "sda",
                op="read",
            )
            for at in range(100)
        ],
        tmp_path / "t.csv",
    )


def test_the_telling_comes_first(tmp_path: Path) -> None:
    found = who(slow(tmp_path), "latency", Rectangle(low=10 * MS))
    assert [each.field for each in found.dimensions[:2]] == ["process", "device"]
    process = found.dimensions[0]
    assert process.telling == pytest.approx(1)
    assert (process.values[0].value, process.values[0].inside, process.values[0].share_inside) == (
        "backup",
        10,
        1,
    )
    assert found.dimensions[-1].telling == 0


def test_a_process_comes_before_its_parts(tmp_path: Path) -> None:
    counts = {
        "process": {"fio": (20, 60), "dd": (0, 20)},
        "pid": {"11": (20, 0), "12": (0, 60), "13": (0, 20)},
        "op": {"read": (20, 80)},
    }
    dimensions = tuple(
        Dimension(
            field, 0.0, tuple(Share(key, *sums, 0.0, 0.0) for key, sums in keys.items()), 0, 0, 0
        )
        for field, keys in counts.items()
    )
    one = who(slow(tmp_path), "latency", Rectangle(low=10 * MS))
    both = joined_who([("a", replace(one, inside=20, outside=80, dimensions=dimensions))])
    assert [(part.field, round(part.telling, 9)) for part in both.dimensions] == [
        ("process", 0.25),
        ("pid", 1),
        ("host", 0),
        ("op", 0),
    ]


def test_bytes_conditions_and_surroundings(tmp_path: Path) -> None:
    trace = slow(tmp_path)
    found = who(
        trace,
        "latency",
        Rectangle(low=10 * MS),
        entry="io.bytes",
        filters=(Filter("device", "=", ("sdb",)),),
        around=(0, 50 * MS),
    )
    assert (found.inside, found.outside, found.unit) == (5 * 8192, 5 * 8192, "B")
    recording = recording_of(trace, tmp_path / "r")
    same = who(
        recording,
        "latency",
        Rectangle(low=10 * MS),
        entry="io.bytes",
        filters=(Filter("device", "=", ("sdb",)),),
        around=(0, 50 * MS),
    )
    assert [(each.field, each.values) for each in same.dimensions] == [
        (each.field, each.values) for each in found.dimensions
    ]


def test_few_are_named_and_the_rest_is_summed(tmp_path: Path) -> None:
    found = who(slow(tmp_path), "latency", Rectangle(low=10 * MS), top=1)
    process = next(each for each in found.dimensions if each.field == "process")
    assert (len(process.values), process.left, process.left_inside, process.left_outside) == (
        1,
        7,
        0,
        90,
    )


def test_what_is_far_more_outside_is_named_as_well(tmp_path: Path) -> None:
    # inside 20 of a and 10 of b, outside 10 of a and 60 of b, and one each of ten more
    held = [
        ("a", 20, 20),
        ("b", 20, 10),
        ("a", 1, 10),
        ("b", 1, 60),
        *((f"c{place}", 1, 1) for place in range(10)),
    ]
    times = iter(range(1000))
    trace = trace_of(
        [
            Event(next(times) * MS, latency * MS, process=name)
            for name, latency, many in held
            for _ in range(many)
        ],
        tmp_path / "t.csv",
    )
    found = who(trace, "latency", Rectangle(low=10 * MS))
    process = next(each for each in found.dimensions if each.field == "process")
    assert [each.value for each in process.values[:2]] == ["a", "b"]
    shown = text(found, parse("io.ops[latency]"), "t.csv", Selection(Rectangle(), "10ms..1s"), None)
    assert any(
        line.startswith("b ") and line.split()[1:] == ["33.3", "%", "75.0", "%"] for line in shown
    ), shown
    cut = next(
        each
        for each in who(trace, "latency", Rectangle(low=10 * MS), top=2).dimensions
        if each.field == "process"
    )
    assert ([each.value for each in cut.values], cut.left, cut.left_inside) == (["a", "b"], 10, 0)


def test_values_that_would_print_as_zero_are_counted(tmp_path: Path) -> None:
    held = [Event(time=n * MS, latency=10_000, process="b") for n in range(3000)]
    held += [Event(time=n * MS, latency=50 * MS, process="a") for n in range(1000)]
    held.append(Event(time=0, latency=10_000, process="rare"))
    found = who(trace_of(held, tmp_path / "t.csv"), "latency", Rectangle(low=10 * MS))
    for top, names in ((None, ["b", "a"]), (3, ["b", "a", "rare"])):
        lines = text(
            found, parse("io.ops[latency]"), "t.csv", Selection(Rectangle(), "10ms..1s"), top
        )
        table = lines[[line.startswith("process") for line in lines].index(True) + 1 :]
        assert sorted(line.split()[0] for line in table if "%" in line) == sorted(names)
        assert ("and 1 more" in table) == (top is None)


def test_nothing_inside_is_said_without_shares(tmp_path: Path) -> None:
    found: Who = who(slow(tmp_path), "latency", Rectangle(low=10**12))
    assert (found.inside, found.outside) == (0, 100)
    assert all(
        math.isnan(each.share_inside) for dimension in found.dimensions for each in dimension.values
    )
    assert '"share_inside": null' in json.dumps(as_data(found), allow_nan=False)


@pytest.mark.parametrize(
    ("y", "entry", "says"),
    [
        ("device", "io.ops", "there is no map of 'device'"),
        ("latency", "cpu.utilization", "comes of counters"),
        ("queue", "file.ops", "file.ops has no field 'queue'"),
        ("latency", "net.bytes", "comes of counters"),
    ],
)
def test_what_cannot_be_asked(tmp_path: Path, y: str, entry: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        who(slow(tmp_path), y, Rectangle(), entry=entry)
    assert says in error.value.message
    assert error.value.hint
