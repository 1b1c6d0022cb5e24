# SPDX-License-Identifier: Apache-2.0
"""Lists of single I/Os against a selection by hand, and one I/O through the layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iolab.base.errors import FormatError, UsageError
from iolab.recordings.ask.attribution import Rectangle, who
from iolab.recordings.ask.io_layers import IoLayers, layers_of
from iolab.recordings.ask.question import parse
from iolab.recordings.ask.single_ios import ORDERS, SingleIo, list_ios
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events, unsealed
from support.statistics_data import Event, recording_of, trace_of

MS = 10**6
STATISTIC = parse("io.ops[op=read,write][latency]")
BOX = Rectangle(START + SECOND, START + 3 * SECOND, 20_000, MS)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Four seconds with every column, the last of them unsealed."""
    path = tmp_path_factory.mktemp("single") / "rec"
    writer = RecordingWriter.create(
        path, host="there", clock="realtime", origin={"kind": "import"}, live=False
    )
    for second in range(4):
        writer.append_events(events(200, second, start_ns=START + second * SECOND, per_s=200))
        if second == 2:
            writer.seal()
    return Recording(path)


@pytest.fixture(scope="module")
def inside(recording: Recording) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    tables = [
        pq.read_table(segment.path) for segment in recording.segments() if segment.kind == "sealed"
    ]
    rows = [row for table in [*tables, unsealed(recording)] for row in pa.table(table).to_pylist()]
    return [
        row
        for row in rows
        if row["op"] in ("read", "write")
        and START + SECOND <= row["time_ns"] < START + 3 * SECOND
        and 20_000 <= (row["latency_ns"] or 0) < MS
    ]


def plain(io: SingleIo) -> tuple[Any, ...]:
    return tuple(io.values[name] for name in sorted(io.values))


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_pages_hold_each_io_once(
    recording: Recording, inside: list[dict[str, Any]], order: str
) -> None:
    for descending in (False, True):
        found: list[SingleIo] = []
        while True:
            page = list_ios(
                recording,
                STATISTIC,
                BOX,
                order=order,
                descending=descending,
                skip=len(found),
                limit=37,
            )
            assert page.rows == len(inside) > 50
            assert page.total == sum(row["count"] for row in inside)
            if not page.ios:
                break
            found += page.ios
        meant = [tuple(row[name] for name in sorted(found[0].values)) for row in inside]
        assert sorted(map(plain, found), key=repr) == sorted(meant, key=repr)
        values = [io.values[ORDERS[order]] for io in found]
        known = [value for value in values if value is not None]
        assert values[: len(known)] == known == sorted(known, reverse=descending)


def test_the_total_is_that_of_who(recording: Recording) -> None:
    page = list_ios(recording, STATISTIC, BOX, limit=1)
    whose = who(recording, "latency", BOX, filters=STATISTIC.filters)
    assert page.total == whose.inside > 0


def test_a_trace_is_listed_like_its_recording(tmp_path: Path) -> None:
    trace = trace_of(
        [
            Event(place * MS, latency=(place * 7919) % 100 * 1000, process=("a", "b")[place % 2])
            for place in range(100)
        ],
        tmp_path / "t.csv",
    )
    recording = recording_of(trace, tmp_path / "rec", source="csv")
    box = Rectangle(10 * MS, 90 * MS, 20_000, None)
    for order in ("time", "latency"):
        pages = [
            list_ios(opened, parse("io.ops[process=a][latency]"), box, order=order, skip=5, limit=9)
            for opened in (trace, recording)
        ]
        assert pages[0].total == pages[1].total > 14
        assert list(map(plain, pages[0].ios)) == list(map(plain, pages[1].ios))


@pytest.mark.parametrize(
    ("statistic", "order", "low"),
    [("disk.util", "time", None), ("io.ops", "colour", None), ("io.ops[process]", "time", 1)],
)
def test_what_can_not_be_listed(
    recording: Recording, statistic: str, order: str, low: int | None
) -> None:
    with pytest.raises(UsageError):
        list_ios(recording, parse(statistic), Rectangle(low=low), order=order)


def row(source: str, start: int, end: int, **values: Any) -> dict[str, Any]:
    """An event; times in us since `START`."""
    return {
        **dict.fromkeys(EVENTS.names),
        "source": source,
        "time_ns": START + end * 1000,
        "latency_ns": (end - start) * 1000,
        "op": "write",
        "count": 1,
        **values,
    }


OWN = {"process": "app", "pid": 10, "thread": 11}
ROWS = [
    row("syscall", 1000, 2000, op="sync", file="/a", **OWN),
    row("syscall", 1500, 1900, file="/b", process="other", pid=20, thread=20),
    row("syscall", 5000, 6000, file="/a", **OWN),
    row("block", 1100, 1200, device="sda", **OWN),
    row("block", 1300, 1350, device="sda", process="app", pid=10, thread=12),
    row("block", 900, 1250, device="sda", process="jbd2", pid=30, thread=30),
    row("block", 1400, 2500, device="sda", op="flush"),
    row("block", 1600, 1700, device="sda", process="other", pid=20, thread=20),
    row("block", 2001, 2100, device="sda", **OWN),
    row("block", 3000, 3100, device="sda", process="kworker", pid=40, thread=40),
]


@pytest.fixture(scope="module")
def layered(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Calls of two processes, with I/Os of theirs, of a journal and of nobody known."""
    path = tmp_path_factory.mktemp("layers") / "rec"
    writer = RecordingWriter.create(
        path, host="there", clock="realtime", origin={"kind": "import"}, live=False
    )
    for source in ("syscall", "block"):
        held = sorted((r for r in ROWS if r["source"] == source), key=lambda r: r["time_ns"])
        writer.append_events(pa.RecordBatch.from_pylist(held, schema=EVENTS))
    writer.seal()
    return Recording(path)


def through(recording: Recording, source: str, start: int) -> IoLayers:
    """The I/O of a source that starts then."""
    statistic = parse("file.ops[latency]" if source == "syscall" else "io.ops[latency]")
    page = list_ios(recording, statistic, Rectangle(), source=source)
    io = next(io for io in page.ios if io.start_ns == START + start * 1000)
    return layers_of(recording, io.id)


def related(items: Any) -> list[tuple[int, str]]:
    return [((item.io.start_ns - START) // 1000, item.match) for item in items]


def test_a_call_has_its_own_io_and_that_of_the_same_time(layered: Recording) -> None:
    found = through(layered, "syscall", 1000)
    assert found.layers == ("syscall", "block")
    assert related(found.below) == [
        (900, "time"),
        (1100, "thread"),
        (1300, "process"),
        (1400, "time"),
    ]
    assert (found.elsewhere, found.below_left, found.above) == (1, 0, ())
    assert found.io.values["file"] == "/a"


@pytest.mark.parametrize(
    ("start", "above"),
    [
        (1100, [(1000, "thread")]),
        (1300, [(1000, "process")]),
        (1600, [(1500, "thread")]),
        (1400, [(1000, "time"), (1500, "time")]),
        (2001, []),
        (3000, []),
    ],
)
def test_an_io_has_its_call(layered: Recording, start: int, above: list[tuple[int, str]]) -> None:
    found = through(layered, "block", start)
    assert related(found.above) == above
    assert found.below == ()


def test_one_layer_alone(recording: Recording) -> None:
    io = list_ios(recording, STATISTIC, BOX, limit=1).ios[0]
    found = layers_of(recording, io.id)
    assert (found.io.id, found.layers, found.above, found.below) == (io.id, ("block",), (), ())


@pytest.mark.parametrize(
    "key",
    [
        "",
        "block",
        "block|1|2|3|4|5|write|7",
        "block|x|||||write",
        "block||||||write",
        "block|-1|||||write",
        f"block|{2**63}|||||write",
        f"block|1|{2**64}||||write",
        "block|1|||||",
        "block|1|||||" + "w" * 5000,
        "block|1|||||wr' OR '1'='1",
        "nothing|1|||||write",
    ],
)
def test_text_that_is_no_id(layered: Recording, key: str) -> None:
    with pytest.raises((UsageError, FormatError)):
        layers_of(layered, key)
