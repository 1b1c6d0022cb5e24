# SPDX-License-Identifier: Apache-2.0
"""A trace file through the native readers: counts that equal its events, whose they are, and words
for what is wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.base.errors import FormatError, UsageError
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.counts import HeatCounts, Weight, Y, alike, merge
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.trace import Trace, counts_alike, dimensions
from iolab.recordings.store.write.ingest import ingest

IO = st.tuples(
    st.integers(0, 3_000_000),
    st.integers(1, 10**6),
    st.integers(0, 2**44),
    st.sampled_from("abcdefghijkl"),
)
"""Time (us), latency (us), offset and device of an I/O."""

HEAD = "time:us,latency:us,offset:bytes,size:bytes,op,device\n"


def trace(folder: Path, lines: list[str], name: str = "t.csv") -> Trace:
    path = folder / name
    path.write_text(HEAD + "".join(f"{line}\n" for line in lines))
    return Trace(path)


@pytest.fixture
def made(tmp_path: Path) -> Trace:
    """Reads of sda, fast; writes of sdb, slow; a few of many other devices."""
    lines = [
        f"{1000 * i},{100 if i % 2 else 9000},{4096 * i},{8192 if i % 2 else 131072},{'read,sda' if i % 2 else 'write,sdb'}"
        for i in range(1000)
    ]
    lines += [f"{1000000 + i},50,{4096 * i},512,read,nvme{i}" for i in range(20)]
    return trace(tmp_path, lines)


@pytest.mark.parametrize("y", ["latency", "offset", "size"])
def test_counts_equal_the_events(made: Trace, y: str) -> None:
    found = made.counts(y)  # type: ignore[arg-type]
    assert found.total == found.events == 1020
    assert made.summary().events == 1020
    assert made.detect() == "csv"


def test_conditions_leave_out_and_count(made: Trace) -> None:
    found = Trace(made.path, where={"op": ["write"]}).counts("latency")
    assert (found.total, found.filtered, found.conditional) == (500, 520, True)
    slow = Trace(made.path, where={"latency": ["1000000.."]}).counts("size")
    assert slow.total == 500


def test_time_weighs_by_latency(made: Trace) -> None:
    assert made.counts("latency", weight="time").total == 1000 * (500 * 100 + 500 * 9000 + 20 * 50)


def test_whose_they_are_adds_up(made: Trace) -> None:
    whole = made.counts("latency")

    def read(one: Trace, more: object) -> HeatCounts:
        return one.counts("latency", interval_ns=whole.interval_ns, more=more)  # type: ignore[arg-type]

    found, left = dimensions([made], whole, read)
    assert left == []
    assert [dimension.name for dimension in found] == ["op", "device"]
    for dimension in found:
        assert sum(part.total for _, part in dimension.parts) == whole.total
    devices = dict(found[1].parts)
    assert list(devices)[-1] == "other"
    assert len(devices) == 9
    assert devices["other"].total == 20 - 6

    written = Trace(made.path, where={"op": ["write"]})
    whole = written.counts("latency")
    found, _ = dimensions([written], whole, read, written.where)
    assert all(sum(part.total for _, part in item.parts) == 500 for item in found)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(IO, min_size=1, max_size=60), min_size=1, max_size=3),
    st.sampled_from(["latency", "offset", "size"]),
    st.sampled_from(["count", "time"]),
)
def test_parts_of_random_traces_are_the_map(
    made: list[list[tuple[int, int, int, str]]], y: Y, weight: Weight
) -> None:
    """Devices begin later than the map and end earlier, and lie in other ranges of offsets."""
    with TemporaryDirectory() as folder:
        traces = [
            trace(
                Path(folder),
                [
                    f"{time},{latency},{offset},512,read,{device}"
                    for time, latency, offset, device in sorted(events)
                ],
                f"{number}.csv",
            )
            for number, events in enumerate(made)
        ]
        every = counts_alike(
            traces, lambda each, interval: each.counts(y, interval_ns=interval, weight=weight)
        )
        whole = merge(every)
        found, _ = dimensions(
            traces,
            whole,
            lambda each, more: each.counts(
                y, interval_ns=whole.interval_ns, weight=weight, more=more
            ),
        )
        assert len(found) == (len({each[3] for events in made for each in events}) > 1)
        for dimension in found:
            parts = [part for _, part in dimension.parts]
            assert all((part.count > 0).all() and part.events >= 0 for part in parts)
            assert sum(part.events for part in parts) == whole.events
            assert placed(merge(alike(parts))) == placed(alike([*parts, whole])[-1])


def placed(counts: HeatCounts) -> dict[tuple[int, int], int]:
    """(start of the column in ns, bucket) to count."""
    times = (counts.t0_ns + counts.column * counts.interval_ns).tolist()
    return dict(
        zip(zip(times, counts.index.tolist(), strict=True), counts.count.tolist(), strict=True)
    )


def counted_by(y: Y, each: Trace, interval: int) -> HeatCounts:
    return each.counts(y, interval_ns=interval)


def test_traces_of_different_length_get_the_same_columns(tmp_path: Path) -> None:
    short = trace(tmp_path, [f"{10 * i},5,0,512,read,a" for i in range(100)], "short.csv")
    long = trace(
        tmp_path, [f"{70_000 * i},5,{2**33 + i},512,read,a" for i in range(100)], "long.csv"
    )
    ys: tuple[Y, ...] = ("latency", "offset")
    for y in ys:
        one, two = counts_alike([short, long], partial(counted_by, y))
        assert (one.interval_ns, one.grid) == (two.interval_ns, two.grid)
        assert merge([one, two]).total == 200


def test_damaged_lines_are_counted(tmp_path: Path) -> None:
    found = trace(tmp_path, ["1,2,3,4,read,a", "rubbish", "5,6,7,8,read,a", "9,1"]).counts(
        "latency"
    )
    assert (found.total, found.damaged) == (2, 2)


def test_what_holds_no_line_that_can_be_read_is_an_error_everywhere(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("1 2\n3 4\n")
    whole = Trace(tmp_path / "x.txt", columns="time:us,latency:us,op")
    for ask in (
        whole.summary,
        whole.check,
        lambda: whole.counts("latency"),
        lambda: ingest(whole, tmp_path / "made"),
        lambda: query(whole, "io.ops[op]"),
    ):
        with pytest.raises(
            FormatError,
            match=r"none of 2 lines could be read; line 1: too few columns.*'1000 250 read'",
        ) as caught:
            ask()
        assert str(caught.value).count(str(whole.path)) == 1
    # a condition that nothing meets is no damage
    some = replace(whole, columns="time:us,latency:us", where={"op": ["read"]})
    assert (some.counts("latency").total, some.summary().events) == (0, 0)
    some.check()


def test_columns_apart_by_blanks_with_their_client(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(
        "TIMEus DELTAus WHO\n1000 7 host1\n2000 8 host2\n3000 9 host1\nthe end\n"
    )
    found = Trace(tmp_path / "x.txt", columns="start:us,latency:us,client")
    assert (found.summary().events, found.summary().facts["damaged"]) == (3, 1)
    assert found.summary().names("client") == [("host1", 2), ("host2", 1)]
    assert replace(found, where={"client": ["host1"]}).counts("latency").total == 2
    by = query(found, "io.ops[client]")
    assert isinstance(by, Stack)
    assert (by.keys, by.totals) == (["host1", "host2"], [2, 1])
    ingest(found, tmp_path / "made")
    kept = query(Recording(tmp_path / "made"), "io.ops[client=host2]")
    assert kept.total == 1


def test_columns_that_are_not_known_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("time_us,latency_us,weather,Moon\n1,2,rain,full\n")
    found = Trace(tmp_path / "x.csv")
    said = "skipped unknown columns: weather, Moon"
    assert found.counts("latency").assumptions == (said,)
    answer = query(found, "io.ops")
    assert isinstance(answer, Series)
    assert said in answer.notes


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02" * 100, "format|recognise|known"),
        (b"a poem\nof two lines\n", "format|recognise|known"),
    ],
)
def test_what_is_no_trace(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(FormatError, match=words) as caught:
        Trace(tmp_path / "x").counts("latency")
    assert "\n" not in str(caught.value)
    assert str(caught.value).count(str(tmp_path / "x")) == 1


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        Trace(tmp_path / "absent")
    with pytest.raises(FormatError, match="is a directory"):
        Trace(tmp_path)
    (tmp_path / "x").write_text("1,2\n")
    with pytest.raises(UsageError, match="there is no trace format 'tape'"):
        Trace(tmp_path / "x", format="tape")


def test_columns_with_a_wrong_unit(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1,2\n")
    with pytest.raises(UsageError, match="parsec"):
        Trace(tmp_path / "x.csv", columns="time:parsec,latency:us").counts("latency")
