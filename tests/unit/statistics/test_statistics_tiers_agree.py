# SPDX-License-Identifier: Apache-2.0
"""The straight road of traces, the executor's scan, and default maps: the same counts."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from iolab.base.errors import IolabError
from iolab.recordings.ask.engine.windows import filters_of
from iolab.recordings.ask.execute import execute
from iolab.recordings.ask.query import heat, query
from iolab.recordings.ask.question import Question
from iolab.recordings.ask.tiers.events import Events
from iolab.recordings.ask.tiers.segment_maps import SegmentMaps
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording
from support.statistics_data import Event, recording_of, trace_of

SECOND = 10**9
START = 1_700_000_000 * SECOND

events = some.lists(
    some.builds(
        Event,
        time=some.integers(-5 * SECOND, 60 * SECOND).map(lambda after: START + after),
        latency=some.none() | some.integers(1, 2**40) | some.sampled_from((100_000, 5_000_000)),
        offset=some.none()
        | some.integers(0, 2**42)
        | some.integers(0, 2**20).map(lambda block: block * 4096),
        size=some.none() | some.sampled_from((512, 4096, 8192, 131072)) | some.integers(0, 2**30),
        op=some.sampled_from(("read", "write", "flush")),
        device=some.sampled_from(("sda", "sdb", None)),
        process=some.sampled_from(("fio", "dd", "a,b", None)).map(
            lambda name: None if name == "a,b" else name
        ),
    ),
    min_size=1,
    max_size=60,
)

conditions = some.fixed_dictionaries(
    {},
    optional={
        "op": some.lists(some.sampled_from(("read", "write", "trim")), min_size=1, max_size=2),
        "device": some.just(["sda"]),
        "process": some.just(["dd"]),
        "latency": some.sampled_from((["50000..2000000"], ["..200000", "5000000.."])),
        "size": some.just(["4096.."]),
        "offset": some.just(["0..2000000000"]),
        "time": some.just([f"{START}..{START + 30 * SECOND}"]),
    },
)

FACTS = (
    "t0_ns",
    "interval_ns",
    "grid",
    "events",
    "without_y",
    "filtered",
    "outside",
    "weight",
    "y",
)
CELLS = ("column", "index", "count")


def same(one: HeatCounts, two: HeatCounts) -> None:
    """Whether two maps are equal, cell by cell; one without cells has no place in time and no
    buckets."""
    facts = FACTS if len(one.count) or len(two.count) else FACTS[3:]
    assert {name: getattr(one, name) for name in facts} == {
        name: getattr(two, name) for name in facts
    }
    for name in CELLS:
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


def scanned(
    recording: Recording,
    y: Any,
    where: Any,
    interval_ns: int | None,
    weight: Any = "count",
    columns: int = 400,
    **rest: Any,
) -> HeatCounts:
    """The map by a scan, default maps left alone."""
    span = rest.pop("from_ns", None), rest.pop("until_ns", None)
    question = Question(
        None,
        span,
        interval_ns,
        columns,
        None,
        y=y,
        filters=tuple(filters_of(where)),
        weight=weight,
        **rest,
    )
    counts = execute(question, [Events(recording.frozen())])
    assert isinstance(counts, HeatCounts)
    return counts


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    events,
    conditions,
    some.sampled_from(("latency", "offset", "size")),
    some.sampled_from((SECOND, 5 * SECOND, 300_000_000)),
    some.sampled_from(("count", "time")),
    some.sampled_from(((None, None), (0, 2**20), (100_000, None), (4096, 2**33))),
    some.sampled_from((None, 64)),
    some.integers(1, 3),
    some.booleans(),
)
def test_the_straight_road_and_the_executor_agree(
    held: list[Event],
    where: Any,
    y: Any,
    interval_ns: int,
    weight: Any,
    ends: tuple[int | None, int | None],
    buckets: int | None,
    parts: int,
    hot: bool,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trace = trace_of(held, Path(folder) / "t.csv")
        recording = recording_of(trace, Path(folder) / "r", parts=parts, hot=hot)
        asked = Question(
            interval_ns=interval_ns, weight=weight, low=ends[0], high=ends[1], buckets=buckets
        )
        straight = heat(trace, y, asked, where=where)
        same(straight, heat(recording, y, asked, where=where))
        same(
            straight,
            scanned(
                recording, y, where, interval_ns, weight, low=ends[0], high=ends[1], buckets=buckets
            ),
        )


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    events,
    conditions,
    some.integers(-SECOND, 30 * SECOND),
    some.integers(1, 40 * SECOND),
    some.sampled_from(("latency", "size")),
)
def test_windows_are_cut_to_the_nanosecond(
    held: list[Event], where: Any, start: int, length: int, y: Any
) -> None:
    from_ns, until_ns = START + start, START + start + length
    where.pop("time", None)
    with tempfile.TemporaryDirectory() as folder:
        recording = recording_of(
            trace_of(held, Path(folder) / "t.csv"), Path(folder) / "r", parts=2
        )
        inside = [event for event in held if from_ns <= event.time < until_ns]
        found = heat(
            recording, y, Question(span=(from_ns, until_ns), interval_ns=SECOND), where=where
        )
        if inside:
            expected = heat(
                trace_of(inside, Path(folder) / "inside.csv"),
                y,
                Question(interval_ns=SECOND),
                where=where,
            )
            same(found, expected)
        assert found.events + found.without_y + found.filtered == len(inside)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Two minutes of 20 thousand I/Os in segments, the last of them hot, offsets over a TiB."""
    chance = np.random.default_rng(5)
    held = [
        Event(
            START + place * 6_000_000 + int(chance.integers(0, 5_000_000)),
            int(chance.lognormal(11.5, 1)),
            int(chance.integers(0, 2**28)) * 4096,
            int(chance.choice([4096, 8192, 131072])),
            str(chance.choice(["read", "write"])),
            str(chance.choice(["sda", "sdb"])),
            str(chance.choice(["fio", "dd"])),
        )
        for place in range(20_000)
    ]
    folder = tmp_path_factory.mktemp("many")
    return recording_of(trace_of(held, folder / "t.csv"), folder / "r", parts=4, hot=True)


@pytest.mark.parametrize("y", ["latency", "offset", "size"])
@pytest.mark.parametrize(
    "where", [{}, {"op": ["write"]}, {"op": ["read"], "device": ["sdb"]}], ids=str
)
@pytest.mark.parametrize("weight", ["count", "time"])
def test_default_maps_say_what_a_scan_says(
    many: Recording, y: Any, where: Any, weight: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = scanned(many, y, where, 2 * SECOND, weight)
    monkeypatch.setattr(Events, "frame", None)  # default maps must have the frame
    found = heat(many, y, Question(interval_ns=2 * SECOND, weight=weight), where=where)
    same(found, expected)
    middle = heat(
        many,
        y,
        Question(
            span=(START + 20 * SECOND, START + 70 * SECOND), interval_ns=SECOND, weight=weight
        ),
        where=where,
    )
    monkeypatch.undo()
    same(
        middle,
        scanned(
            many,
            y,
            where,
            SECOND,
            weight,
            from_ns=START + 20 * SECOND,
            until_ns=START + 70 * SECOND,
        ),
    )


@pytest.mark.parametrize(
    ("change", "where", "why"),
    [
        ({"interval_ns": 1_500_000_000}, {}, "a column ends within a second"),
        ({}, {"process": ["dd"]}, "maps know no process"),
        ({}, {"latency": ["1000000.."]}, "nor ranges"),
        ({"span": (START + SECOND // 2, START + 9 * SECOND)}, {}, "the window cuts a second"),
        ({"low": 100_001}, {}, "the range cuts a bucket"),
        ({"buckets": 100}, {}, "equal buckets of latency"),
    ],
)
def test_default_maps_leave_to_a_scan_what_they_can_not_say(
    many: Recording,
    change: dict[str, Any],
    where: dict[str, list[str]],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class ScannedError(Exception):
        pass

    def scan(*_: object) -> None:
        raise ScannedError

    monkeypatch.setattr(Events, "frame", scan)
    with pytest.raises(ScannedError):
        heat(many, "latency", Question(**{"interval_ns": SECOND, **change}), where=where)


def test_an_offset_map_of_a_small_part_is_not_made_of_wide_buckets(
    many: Recording, tmp_path: Path
) -> None:
    held = [
        Event(START + place * SECOND // 10, offset=2**40 + 4096 * place) for place in range(600)
    ]
    near = recording_of(trace_of(held, tmp_path / "t.csv"), tmp_path / "r")
    found = heat(near, "offset", Question(interval_ns=SECOND))
    same(found, scanned(near, "offset", {}, SECOND))
    assert found.grid.width == 8192, "default maps have buckets of 2 GiB here"  # type: ignore[union-attr]


def test_a_missing_map_is_no_hindrance(many: Recording, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(many.path, copy)
    (copy / "histograms/1s/io.latency/000002.parquet").unlink()
    same(
        heat(Recording(copy), "latency", Question(interval_ns=SECOND)),
        scanned(many, "latency", {}, SECOND),
    )


@pytest.mark.parametrize(
    "name", ["io.ops", "io.ops[op]", "io.ops[device]", "io.ops[op=write][device]"]
)
def test_series_of_default_maps_are_those_of_a_scan(
    many: Recording, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = query(many, name, interval_ns=SECOND)
    monkeypatch.setattr(SegmentMaps, "frame", lambda *_: "not asked")
    expected = query(many, name, interval_ns=SECOND)
    assert found.total == expected.total
    assert getattr(found, "keys", None) == getattr(expected, "keys", None)
    np.testing.assert_array_equal(found.values, expected.values)  # type: ignore[union-attr]


def test_columns_are_chosen_as_the_native_readers_do(tmp_path: Path) -> None:
    for spacing in (1, 7, 1000, 33_333, 10**6, 10**8):
        held = [Event(START + place * spacing) for place in range(1000)]
        trace = trace_of(held, tmp_path / "t.csv")
        recording = recording_of(trace, tmp_path / f"r{spacing}")
        for columns in (10, 100, 400):
            one, two = (
                heat(trace, "latency", Question(columns=columns)),
                heat(recording, "latency", Question(columns=columns)),
            )
            assert (one.interval_ns, one.t0_ns) == (two.interval_ns, two.t0_ns), (spacing, columns)
            same(one, replace(two, assumptions=()))


def test_too_many_columns_are_refused_on_every_road(tmp_path: Path) -> None:
    trace = trace_of([Event(0), Event(3600 * 10**9)], tmp_path / "t.csv")
    for opened in (trace, recording_of(trace, tmp_path / "r")):
        for name in (
            "io.ops[latency]",
            "io.ops[op=read][latency>=1us][latency]",
            "io.ops[process]",
        ):
            with pytest.raises(IolabError, match="columns"):
                query(opened, name, interval_ns=1)
