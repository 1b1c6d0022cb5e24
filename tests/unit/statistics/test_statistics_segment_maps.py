# SPDX-License-Identifier: Apache-2.0
"""Sums of segment maps that are remembered equal sums of all events, though the recording grows,
its old events are deleted, and each question is of another time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iolab.recordings.ask.answers.answers import Answer, Series, Stack
from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.plan import Frame, Numbers
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import Question, parse
from iolab.recordings.ask.tiers import map_sums, segment_maps
from iolab.recordings.store import ledger
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.grids import LogLinear
from iolab.recordings.store.base.metadata import Begun, Facts, read_facts
from iolab.recordings.store.ledger import Part
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.trace import BITS
from iolab.recordings.store.write import retention
from iolab.recordings.store.write.writer import RecordingWriter
from support.depth import depth
from support.joined import shorten_joins
from support.plans import explain
from support.recordings import SECOND, START, events

ROWS, LENGTH = 200, 4 * SECOND
"""Rows and time of a segment."""
BEGUN = Begun(START, 0, START)


def grown(path: Path, batches: list[pa.RecordBatch], more: int) -> None:
    """Append segments to a recording, and to what they consist of."""
    with RecordingWriter.reopen(path, live=False) as writer:
        for _ in range(more):
            number = len(batches)
            batches.append(
                events(
                    ROWS, number, start_ns=START + number * LENGTH, per_s=ROWS * SECOND // LENGTH
                )
            )
            writer.append_segment([batches[-1]])


def dropped(path: Path, batches: list[pa.RecordBatch], through: int) -> None:
    """Delete the events of the first segments; their maps remain."""
    facts = read_facts(path)
    facts.dropped = {
        **(facts.dropped or {}),
        "through": through,
        "until_ns": START + through * LENGTH - 1,
        "segments": through,
        "events": {"block": sum(sum(batch["count"].to_pylist()) for batch in batches[:through])},
        "bytes": 1,
    }
    facts.write(path)
    retention.finish_dropping(path, facts)


def lose_maps(path: Path, number: int) -> None:
    """Delete the maps of a segment whose events were deleted, as retention does."""
    facts = read_facts(path)
    assert facts.dropped is not None
    facts.dropped["maps_until_ns"] = START + number * LENGTH - 1
    facts.write(path)
    for file in path.glob(f"histograms/1s/io.*/{number:06}.parquet"):
        file.unlink()


def expected(
    batches: list[pa.RecordBatch], operation: str | None, window: tuple[int, int], interval_ns: int
) -> dict[int, int]:
    """I/Os by start of a column, from all events."""
    table = pa.Table.from_batches(batches)
    time, count = table["time_ns"].to_numpy(), table["count"].to_numpy()
    shown = (time >= window[0]) & (time < window[1])
    if operation is not None:
        shown &= np.array(table["op"].to_pylist()) == operation
    sums: dict[int, int] = {}
    for start, amount in zip(time[shown] // interval_ns * interval_ns, count[shown], strict=True):
        sums[int(start)] = sums.get(int(start), 0) + int(amount)
    return sums


@pytest.mark.parametrize("seed", range(4))
def test_remembered_sums_equal_those_of_all_events(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_maps, "BLOCK", 1 + 2 * (seed % 2))
    chance = random.Random(seed)
    path, through = tmp_path / "r", 0
    batches: list[pa.RecordBatch] = []
    RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "import"}, live=False
    ).close()
    grown(path, batches, 4)
    recording = Recording(path)
    for _ in range(25):
        if chance.random() < 0.25:
            grown(path, batches, chance.randint(1, 2))
        if chance.random() < 0.15 and through < len(batches) - 2:
            through += 1
            dropped(path, batches, through)
        end = START + len(batches) * LENGTH
        ends = sorted(chance.sample(range(START, end + 1, SECOND), 2))
        from_ns = ends[0] if chance.random() < 0.7 else None
        until_ns = ends[1] if chance.random() < 0.7 else None
        interval_ns = chance.choice((SECOND, 3 * SECOND, 10 * SECOND))
        operation = chance.choice((None, "read", "write"))
        condition = f"[op={operation}]" if operation else ""
        breakdown = chance.choice(("", "[device]", "[latency]", "[size]"))
        answer = query(
            recording,
            f"io.ops{condition}{breakdown}",
            from_ns=from_ns,
            until_ns=until_ns,
            interval_ns=interval_ns,
        )
        window = (START if from_ns is None else from_ns, end if until_ns is None else until_ns)
        sums = expected(batches, operation, window, interval_ns)
        if isinstance(answer, HeatCounts):
            assert answer.events + answer.without_y == sum(sums.values())
            continue
        values = answer.values if isinstance(answer, Series) else answer.values.sum(axis=0)
        counts = np.rint(np.nan_to_num(values) * interval_ns / SECOND).astype(int)
        found = {
            answer.t0_ns + column * interval_ns: int(count)
            for column, count in enumerate(counts)
            if count
        }
        assert isinstance(answer, Series | Stack)
        assert found == sums


def scan(path: Path, statistic: str, monkeypatch: pytest.MonkeyPatch, **asked: Any) -> Answer:
    """The executor's answer from events alone."""
    with monkeypatch.context() as patch:
        patch.setattr(segment_maps.SegmentMaps, "frame", lambda *_: "not asked")
        return query(Recording(path), statistic, kept=False, **asked)


def lines_of(answer: Answer) -> dict[Any, int]:
    """What an answer says: I/Os by column and key, or by column and bucket, in nanoseconds of the
    column's start."""
    if isinstance(answer, HeatCounts):
        starts = answer.t0_ns + answer.column * answer.interval_ns
        cells = zip(starts.tolist(), answer.index.tolist(), answer.count.tolist(), strict=True)
        return {(start, index): count for start, index, count in cells}
    assert isinstance(answer, Series | Stack)
    rows = (
        {"": answer.values}
        if isinstance(answer, Series)
        else dict(zip(answer.keys, answer.values, strict=True))
    )
    return {
        (answer.t0_ns + column * answer.interval_ns, key): count
        for key, values in rows.items()
        for column, value in enumerate(np.nan_to_num(values))
        if (count := round(value * answer.interval_ns / SECOND))
    }


KEPT = ("io.ops[op]", "io.ops[op=read][latency]")


@pytest.mark.parametrize("seed", range(depth(2, 8)))
def test_any_mix_of_tiers_equals_a_scan_of_all_events(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Roll-ups, segment maps, events of segments without a map and unsealed events, while the
    recording grows, old events and their maps are deleted, and maps get lost."""
    chance = random.Random(seed)
    path, complete = tmp_path / "r", tmp_path / "complete"
    batches: list[pa.RecordBatch] = []
    for each in (path, complete):
        RecordingWriter.create(
            each, host="", clock="realtime", origin={"kind": "record"}, live=False
        ).close()
    grown(path, batches, 4)
    grown(complete, [], 4)
    manage.add(path, list(KEPT), backfill=True)
    through, mapless, kept = 0, 0, len(batches)
    without_map: set[int] = set()
    used: set[str] = set()
    for _ in range(20):
        recording = Recording(path)
        step = chance.random()
        if step < 0.3:
            grown(complete, list(batches), 1)
            grown(path, batches, 1)
        elif step < 0.5 and through < len(batches) - 2 and through + 1 not in without_map:
            through += 1
            dropped(path, batches, through)
        elif step < 0.6 and min(through, kept) > mapless:
            mapless += 1
            lose_maps(path, mapless)
        elif step < 0.7:
            number = chance.randint(max(kept, through + 1), len(batches))
            without_map.add(number)
            maps = path / f"histograms/1s/io.latency/{number:06}.parquet"
            maps.unlink(missing_ok=True)
        end = START + len(batches) * LENGTH
        statistics = KEPT if mapless else (*KEPT, "io.ops", "io.ops[device]", "io.ops[size]")
        statistic = chance.choice(statistics)
        ends = sorted(chance.sample(range(START, end + 1, SECOND), 2))
        asked: dict[str, Any] = {
            "from_ns": ends[0] if chance.random() < 0.6 else None,
            "until_ns": ends[1] if chance.random() < 0.6 else None,
            "interval_ns": chance.choice((SECOND, 3 * SECOND, 10 * SECOND)),
        }
        answer = query(recording, statistic, **asked)
        used.update(part.name for part in explain(recording, statistic, **asked).parts())
        executed = scan(complete, statistic, monkeypatch, **asked)
        if isinstance(answer, HeatCounts) and isinstance(executed, HeatCounts):
            assert isinstance(answer.grid, LogLinear)
            executed = executed.coarser(steps=BITS - answer.grid.bits)
            assert (answer.events, answer.without_y) == (executed.events, executed.without_y)
        assert lines_of(answer) == lines_of(executed), (statistic, asked)
    assert {"roll-ups of 1s", "segment maps"} <= used


def test_deleted_time_without_sums_is_a_gap(tmp_path: Path) -> None:
    """Events are deleted that no roll-up has; segment maps have no bytes."""
    path = tmp_path / "r"
    batches: list[pa.RecordBatch] = []
    facts = Facts("", "realtime", {"kind": "record"})
    RecordingWriter.begin(path, facts, live=True, begun=BEGUN).close()
    grown(path, batches, 4)
    manage.add(path, ["io.bytes[op]"], backfill=True)
    grown(path, batches, 4)
    dropped(path, batches, 6)
    answer = query(
        Recording(path),
        "io.bytes[op]",
        interval_ns=LENGTH,
        from_ns=START,
        until_ns=START + len(batches) * LENGTH,
    )
    assert isinstance(answer, Stack)
    gaps = np.isnan(answer.values).all(axis=0).tolist()
    assert gaps == [False, False, False, False, True, True, False, False]


@pytest.mark.parametrize("statistic", ["io.ops[op]", "io.ops[op=read][latency]"])
def test_a_part_of_the_segments_of_a_joined_map(
    statistic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another tier may have the other segments: a span cuts the joined map, in whole columns or not."""
    shorten_joins(monkeypatch)
    path = tmp_path / "r"
    batches: list[pa.RecordBatch] = []
    RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "record"}, live=False
    ).close()
    grown(path, batches, 14)
    dropped(path, batches, 12)

    def sums_of(first: int, last: int, interval_ns: int) -> int:
        question = Question.of(parse(statistic), (None, None), interval_ns, 100, None)
        tier = segment_maps.SegmentMaps(Recording(path))
        frame = tier.frame(question)
        assert isinstance(frame, Frame)
        span = frame.full_span._replace(first=first, last=last)
        cost = tier.cost(frame, span)
        assert cost is not None
        assert cost.files > 0
        with tier.read(frame, [span]) as reading:
            [sums] = reading.sums(LogLinear(BITS))
        if isinstance(sums, HeatCounts):
            return sums.events + sums.without_y
        assert isinstance(sums, Numbers)
        return int(sums.rows["n"].sum())

    spans = [(1, 14), (0, 5), (6, 20), (4, 7), (10, 11), (3, 3)]
    asked = [(*span, seconds * SECOND) for span in spans for seconds in (1, 20)]
    before = [sums_of(*case) for case in asked]
    with RecordingWriter.reopen(path, live=False) as writer:
        assert writer.map_joiner.join() > 0
    assert [sums_of(*case) for case in asked] == before


def test_a_map_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a recording that grows only maps of new blocks are read, of one that does not none."""
    monkeypatch.setattr(segment_maps, "BLOCK", 2)
    path = tmp_path / "r"
    batches: list[pa.RecordBatch] = []
    RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "import"}, live=False
    ).close()
    grown(path, batches, 5)
    read: list[int] = []

    def count(parts: Sequence[Part]) -> None:
        read.append(len(parts))
        ledger.check(parts)

    monkeypatch.setattr(map_sums, "check", count)
    recording = Recording(path)
    totals = []
    for more in (0, 0, 2):
        grown(path, batches, more)
        totals.append(query(recording, "io.ops[latency]", interval_ns=SECOND).total)
    assert read == [5, 2]
    assert totals[0] == totals[1] < totals[2]


def rewritten(path: Path, **options: Any) -> None:
    """Write a map as another version of the library may."""
    table = pq.read_table(path)
    path.write_bytes(b"")
    pq.write_table(table, path, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "none", "use_dictionary": False},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "snappy", "use_dictionary": ["index", "time_ns_sum"]},
        {"compression": "zstd", "row_group_size": 7, "data_page_size": 64},
    ],
    ids=str,
)
def test_maps_of_other_writers_have_the_same_sums(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r"
    RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "import"}, live=False
    ).close()
    grown(path, [], 2)
    asked = ("io.ops[op=read][latency]", "io.ops[device]", "io.ops[size]")
    expected = [lines_of(query(Recording(path), name, interval_ns=SECOND)) for name in asked]
    for file in path.glob("histograms/1s/*/*.parquet"):
        rewritten(file, **options)
    # without a size and a checksum a map is whole where its pages are
    monkeypatch.setattr(
        segment_maps,
        "part_of",
        lambda place, _, number, name: Part(
            place / "histograms/1s" / name / f"{number:06}.parquet"
        ),
    )
    monkeypatch.setattr(map_sums, "_remembered", {})
    assert [
        lines_of(query(Recording(path), name, interval_ns=SECOND)) for name in asked
    ] == expected


def test_no_more_rows_are_remembered_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_sums, "MOST_ROWS", 100)
    monkeypatch.setattr(map_sums, "_remembered", {})
    path = tmp_path / "r"
    batches: list[pa.RecordBatch] = []
    RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "import"}, live=False
    ).close()
    grown(path, batches, 5)
    for question in ("io.ops", "io.ops[latency]", "io.ops[op]"):
        query(Recording(path), question, interval_ns=SECOND)
        rows = [len(sums.rows["block"]) for sums in map_sums._remembered.values()]
        assert sum(rows) <= 100
