# SPDX-License-Identifier: Apache-2.0
"""I/Os of OpenZFS's disks from zpool's counts: growth of disks alone, on buckets of powers of two,
whatever befalls the shell that asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as some

from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.query import query
from iolab.recordings.record.sinks.intake import Sink
from iolab.recordings.record.sinks.zpool import LATE_NS, SCRIPT, Growth, PoolCounts, PoolSink, read
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.waiting import PATIENCE

START = 1_700_000_000 * 10**9
SECOND = 10**9
DATA = Path(__file__).parent.parent.parent / "data/formats"
Rows = dict[str, dict[int, list[int]]]
"""Vdev to label to counts."""

EMPTY: list[int] = [0] * 10


def section(rows: Rows) -> str:
    return "".join(
        f"\n{name}\n"
        + "".join(
            f"{label}\t" + "\t".join(map(str, counts)) + "\n" for label, counts in held.items()
        )
        for name, held in rows.items()
    )


UP = 5000 * SECOND


def reading(
    at: float,
    latency: Rows,
    sizes: Rows | None = None,
    pools: Sequence[str] = ("tank",),
    ahead: float = 0.0,
) -> bytes:
    """What the shell writes; `ahead`: seconds by which the machine's clock is."""
    text = f"@ {START + round((at + ahead) * SECOND)} {UP + round(at * SECOND)}\n" + "".join(
        f"pool\t{pool}\n" for pool in pools
    )
    return f"{text}-w\n{section(latency)}-r\n{section(sizes or {})}end\n".encode()


def tank(reads: int, writes: int = 0) -> Rows:
    """A mirror of two disks, of which the first did something: reads of 1 to 2 ms, writes of 16 to
    33 ms."""
    counted = {
        1048575 * 2 + 1: [reads, 0, reads, 0, 0, 0, 0, 0, 0, 0],
        33554431: [0, writes, 0, writes, 0, 0, 0, 0, 0, 0],
    }
    return {"tank": counted, "mirror-0": counted, "vda": counted, "vdb": {1: EMPTY}}


def growth(*readings: bytes) -> list[Growth]:
    return list(PoolCounts().feed(b"".join(readings)))


def rows_of(found: Sequence[Growth]) -> list[dict[str, object]]:
    kept = (
        "source",
        "time_ns",
        "latency_ns",
        "size_bytes",
        "op",
        "device",
        "mount",
        "flags",
        "count",
    )
    return [
        {name: row[name] for name in kept if row[name] is not None}
        for each in found
        for batch in each.batches
        for row in batch.to_pylist()
    ]


def test_growth_of_disks_and_not_of_what_is_made_of_them() -> None:
    found = rows_of(
        growth(reading(0, tank(10, 5)), reading(1, tank(17, 5)), reading(2, tank(17, 6)))
    )
    common = {"source": "zpool", "device": "vda", "mount": "tank"}
    assert found == [
        {**common, "time_ns": START + SECOND // 2, "latency_ns": 1 << 20, "op": "read", "count": 7},
        {
            **common,
            "time_ns": START + 3 * SECOND // 2,
            "latency_ns": 1 << 24,
            "op": "write",
            "count": 1,
        },
    ]


def test_sizes_by_queue_alone_and_put_together() -> None:
    first = {"vda": {512: [0] * 14}}
    # sync_read alone 3, async_write merged 2, scrub alone 1, trim alone 4
    later = {
        "vda": {
            8192: [3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 4, 0, 0, 0],
            131072: [0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0],
        }
    }
    found = rows_of(growth(reading(0, {}, first), reading(1, {}, later)))
    assert [(row["size_bytes"], row["op"], row["flags"], row["count"]) for row in found] == [
        (8192, "read", "sync", 3),
        (131072, "write", "async", 2),
        (8192, "read", "scrub", 1),
        (8192, "trim", "trim", 4),
    ]


def test_what_is_new_or_began_anew_tells_nothing_yet() -> None:
    more = {**tank(5), "vdc": {2097151: [9, 0, 9, 0, 0, 0, 0, 0, 0, 0]}}
    assert [row["device"] for row in rows_of(growth(reading(0, tank(4)), reading(1, more)))] == [
        "vda"
    ]
    # imported anew: less than before
    found = rows_of(growth(reading(0, tank(100)), reading(1, tank(3)), reading(2, tank(4))))
    assert [row["count"] for row in found] == [1]
    # exported in between
    assert (
        rows_of(growth(reading(0, tank(100)), reading(1, {}, pools=()), reading(2, tank(200))))
        == []
    )


def test_readings_that_come_late_are_a_loss() -> None:
    late = growth(
        reading(0, tank(1)),
        reading(LATE_NS / SECOND + 1, tank(50)),
        reading(LATE_NS / SECOND + 2, tank(51)),
    )
    assert late[0] == Growth((), (START, START + LATE_NS + SECOND))
    assert [row["count"] for row in rows_of(late)] == [1]


HOUR = 3600.0


@pytest.mark.parametrize("ahead", [-HOUR, HOUR])
def test_growth_goes_by_the_recordings_time_whenever_it_learns_of_a_clock_that_was_set(
    ahead: float,
) -> None:
    learnt: list[float] = []

    def own_ns(machine_ns: int) -> int:
        return machine_ns - round(sum(learnt) * SECOND)

    counts = PoolCounts(own_ns)
    found = [*counts.feed(reading(0, tank(0)) + reading(1, tank(10)))]
    # the recording doesn't know of it yet
    assert [*counts.feed(reading(2, tank(1010), ahead=ahead))] == []
    learnt.append(ahead)
    found += [
        *counts.feed(reading(3, tank(1020), ahead=ahead) + reading(4, tank(1021), ahead=ahead))
    ]
    assert [each.missed for each in found] == [None] * 3
    assert [
        ((int(str(row["time_ns"])) - START) / SECOND, row["count"]) for row in rows_of(found)
    ] == [(0.5, 10), (2.0, 1010), (3.5, 1)]


def test_growth_goes_by_the_new_time_where_the_recording_does() -> None:
    found = growth(
        reading(0, tank(0)),
        reading(1, tank(10)),
        reading(2, tank(1010), ahead=HOUR),
        reading(3, tank(1020), ahead=HOUR),
        reading(4, tank(1021), ahead=HOUR),
    )
    assert [
        ((int(str(row["time_ns"])) - START) / SECOND, row["count"]) for row in rows_of(found)
    ] == [(0.5, 10), (HOUR + 2, 1010), (HOUR + 3.5, 1)]


def test_readings_that_come_late_after_the_clock_was_set_are_a_loss_of_that_time() -> None:
    late = LATE_NS / SECOND + 1
    found = growth(
        reading(0, tank(1)),
        reading(late, tank(50), ahead=-HOUR),
        reading(late + 1, tank(51), ahead=-HOUR),
    )
    assert found == [Growth((), tuple(START + round((at - HOUR) * SECOND) for at in (0, late + 1)))]  # type: ignore[arg-type]


@pytest.mark.parametrize("release", ["2.1", "2.3"])
def test_what_zpool_itself_wrote(release: str) -> None:
    logs = [
        (DATA / f"zpool-{kind}-{release}.log").read_text().partition("\n")[2].split("end\n")
        for kind in ("latency", "sizes")
    ]

    def joined(place: int) -> bytes:
        latency, sizes = (log[place] for log in logs)
        head, pool, rows = latency.split("\n", 2)
        return f"{head}\n{pool}\n-w\n{rows}-r\n{sizes.split(chr(10), 2)[2]}end\n".encode()

    found = rows_of(growth(joined(0), joined(1)))
    # its own rows of the pool count the mirror's disks too, which are left out of this file
    assert {row["device"] for row in found} == {"vdd"}
    assert {row["mount"] for row in found} == {"tp"}
    for source, log, columns in (
        ("zpool", logs[0], (1, 2)),
        ("zpool-sizes", logs[1], range(1, 15)),
    ):
        # of the first reading there are zeros alone
        rows = [line.split("\t") for line in log[1].partition("\nvdd\n")[2].splitlines()]
        expected = sum(int(row[column]) for row in rows for column in columns if column < len(row))
        assert (
            sum(int(str(row["count"])) for row in found if row["source"] == source)
            == expected
            > 100
        )


@given(some.lists(some.integers(1, 400), max_size=8))
def test_pieces_of_any_length_make_the_same(cuts: list[int]) -> None:
    text = reading(0, tank(10, 5)) + reading(1, tank(17, 5)) + reading(2, tank(17, 6))
    ends = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    counts = PoolCounts()
    found = [each for first, until in pairwise(ends) for each in counts.feed(text[first:until])]
    assert rows_of(found) == rows_of(growth(text))


@given(some.integers(0, 200), some.binary(min_size=1, max_size=6))
def test_damage_is_left_out(place: int, with_: bytes) -> None:
    text = reading(0, tank(10, 5)) + reading(1, tank(17, 5))
    place %= len(text)
    for batch in (
        batch
        for each in growth(text[:place] + with_ + text[place + len(with_) :])
        for batch in each.batches
    ):
        batch.validate(full=True)
    assert read("") is None
    assert read("@ x\n") is None
    assert read("@ 1\n") is None


def kept(
    tmp_path: Path,
    begin: Callable[[], Sequence[str]],
    met: Callable[[Recording], bool],
    seconds: float = PATIENCE,
) -> Recording:
    """What is recorded until something holds."""
    writer = RecordingWriter.create(
        tmp_path / "r", host="here", clock="realtime", origin={"kind": "record"}
    )
    sink, limit = (
        PoolSink(Sink(writer), begin, writer.describe, lambda machine_ns: machine_ns),
        time.monotonic() + seconds,
    )
    while not met(Recording(tmp_path / "r")) and time.monotonic() < limit:
        sink.tick(time.time_ns())
        time.sleep(0.05)
    sink.close()
    return Recording(tmp_path / "r")


def shell(*readings: bytes, then: str = "exec sleep 1000") -> Callable[[], Sequence[str]]:
    text = b"".join(readings).decode().replace("\\", "\\\\").replace("%", "%%")
    return lambda: ["sh", "-c", f"printf '{text}'; {then}"]


def test_statistics_of_disks(tmp_path: Path) -> None:
    sizes = [{"vda": {8192: [count] + [0] * 9}} for count in (0, 30, 50)]
    begin = shell(
        *(
            reading(at, tank(reads, writes), sizes[at])
            for at, (reads, writes) in enumerate([(0, 0), (30, 4), (50, 8)])
        )
    )
    recording = kept(tmp_path, begin, lambda recording: bool(recording.segments()))
    assert {"zpool", "zpool-sizes"} <= recording.facts.sources.keys()
    span = {"from_ns": START, "until_ns": START + 2 * SECOND, "interval_ns": SECOND}
    heat = query(recording, "zpool.ops[latency]", **span)  # type: ignore[arg-type]
    assert isinstance(heat, HeatCounts)
    bounds = heat.grid.bounds(int(heat.index.min()), int(heat.index.max()))
    # whole powers of two, as they were counted
    assert (bounds[0], bounds[1], bounds[-1]) == (2**20, 2**21, 2**25)
    assert heat.events == 58
    by_op = query(recording, "zpool.ops[pool=tank][vdev=vda][op]", **span)  # type: ignore[arg-type]
    assert isinstance(by_op, Stack)
    assert dict(zip(by_op.keys, by_op.totals, strict=True)) == {"read": 50, "write": 8}
    slow = query(recording, "zpool.ops[latency>=10ms]", **span)  # type: ignore[arg-type]
    assert isinstance(slow, Series)
    assert slow.total == 8
    for name, keys in (
        ("zpool.ops[vdev]", ["vda"]),
        ("zpool.ops[pool]", ["tank"]),
        ("zpool.sizes[flags]", ["sync"]),
    ):
        found = query(recording, name, **span)  # type: ignore[arg-type]
        assert isinstance(found, Stack)
        assert found.keys == keys
    sized = query(recording, "zpool.sizes[size]", **span)  # type: ignore[arg-type]
    assert isinstance(sized, HeatCounts)
    assert sized.events == 50


@pytest.mark.slow
def test_the_script_asks_zpool_every_second(tmp_path: Path) -> None:
    place, programs = tmp_path / "kstat", tmp_path / "bin"
    (place / "tank").mkdir(parents=True)
    programs.mkdir()
    # one read more each time
    (programs / "zpool").write_text(f"""#!/bin/sh
case "$*" in
*-w) echo x >> {tmp_path}/asked; printf '\ntank\nvda\n2047\t%s\t0\t0\t0\t0\t0\t0\t0\t0\t0\n' $(wc -l < {tmp_path}/asked);;
*) printf '\ntank\nvda\n';;
esac
""")
    (programs / "zpool").chmod(0o755)
    script = f"export PATH={programs}:$PATH\n{SCRIPT.replace('/proc/spl/kstat/zfs', str(place))}"
    begun = time.time_ns()
    recording = kept(
        tmp_path,
        lambda: ["sh", "-c", script],
        lambda recording: sum(each.sources.get("zpool", 0) for each in recording.segments()) >= 3,
    )
    passed, asked = time.time_ns() - begun, len((tmp_path / "asked").read_text().split())
    found = query(recording, "zpool.ops[pool]", interval_ns=SECOND)
    assert isinstance(found, Stack)
    assert (found.keys, found.source) == (["tank"], "zpool")
    assert 3 <= found.total < asked <= passed / SECOND + 2
    # each reading tells what grew since the one before
    times = [
        time_ns
        for segment in recording.segments()
        for time_ns in pq.read_table(segment.path)["time_ns"].to_pylist()
    ]
    assert begun - SECOND < min(times) <= max(times) < begun + passed
    assert all(after - before > 0.4 * SECOND for before, after in pairwise(sorted(times)))


@pytest.mark.slow
def test_a_machine_without_it_is_asked_once(tmp_path: Path) -> None:
    asked: list[int] = []

    def begin() -> Sequence[str]:
        asked.append(1)
        return ["sh", "-c", SCRIPT.replace("/proc/spl", "/nowhere")]

    recording = kept(tmp_path, begin, lambda _: False, seconds=1.0)
    assert (len(asked), recording.segments(), recording.losses()) == (1, [], [])


def test_a_shell_that_fails_is_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolab.recordings.record.sinks.zpool._AGAIN", 0.1)
    asked: list[int] = []

    def begin() -> Sequence[str]:
        asked.append(1)
        if len(asked) == 1:
            raise FileNotFoundError
        return (
            shell(reading(0, tank(1)), then="exit 255")()
            if len(asked) == 2
            else shell(reading(5, tank(7)), reading(6, tank(9)))()
        )

    recording = kept(tmp_path, begin, lambda recording: bool(recording.segments()))
    # what lies between two shells is not known
    assert [segment.sources for segment in recording.segments()] == [{"zpool": 2}]
    assert len(asked) == 3


def test_no_shell_is_left(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    kept(
        tmp_path,
        lambda: ["sh", "-c", f"echo $$ > {mark}; sleep 1000"],
        lambda _: mark.exists() and mark.read_text() != "",
    )
    assert not Path(f"/proc/{mark.read_text().strip()}").exists()
