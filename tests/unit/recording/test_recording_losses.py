# SPDX-License-Identifier: Apache-2.0
"""What was lost stays told by the second, in lines that are few however long it goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iolab.base.clock import FakeClock
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.query import query
from iolab.recordings.store import ledger
from iolab.recordings.store.base import layout, loss_log
from iolab.recordings.store.base.loss_log import HOUR_NS, MINUTE_NS, LossLog, noted_losses, parts_of
from iolab.recordings.store.ledger import objects
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events

WORDS = "I/Os on files whose name could not be found out"


def line(
    first: int,
    length: int,
    count: int | None,
    *,
    source: str = "syscall",
    kind: str = "unknown-name",
    words: str = WORDS,
) -> dict[str, Any]:
    return {
        "source": source,
        "kind": kind,
        "from_ns": first,
        "until_ns": first + length,
        "count": count,
        "words": words,
    }


def written(directory: Path, lines: Sequence[dict[str, Any]]) -> Path:
    path = directory / layout.LOSSES
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return directory


def told(directory: Path) -> list[tuple[object, ...]]:
    """Each loss that the lines tell, with its kind."""
    return sorted(
        (each["source"], each["kind"], each["words"], *part)
        for each in noted_losses(directory).lines
        for part in parts_of(each)
    )


notes = st.lists(
    st.tuples(
        st.sampled_from(["syscall", "block"]),
        st.sampled_from(["unpaired", "overrun", "gap"]),
        st.integers(-2 * SECOND, 90 * SECOND),
        st.integers(0, 70 * SECOND),
        st.none() | st.integers(0, 5),
    ),
    max_size=40,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(notes=notes, cut=st.integers(0, 40))
def test_each_loss_stays_told(
    tmp_path: Path, notes: list[tuple[str, str, int, int, int | None]], cut: int
) -> None:
    lines, now = [], START
    for source, kind, step, length, count in notes:
        now += step
        lines.append(line(now, length, count, source=source, kind=kind, words=""))
    expected = sorted(
        (each["source"], each["kind"], "", each["from_ns"], each["until_ns"], each["count"])
        for each in lines
    )
    kept = written(tmp_path, lines[:cut])
    noted_losses(kept)
    with (kept / layout.LOSSES).open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in lines[cut:])
    assert told(kept) == expected
    found = list(noted_losses(kept).lines)
    assert sum(each["notes"] for each in found) == len(lines)
    assert all(
        each["until_ns"] - each["from_ns"] <= MINUTE_NS for each in found if each["notes"] > 1
    )
    LossLog(kept)._join({})
    assert told(kept) == expected
    assert [{**each, "parts": ""} for each in noted_losses(kept).lines] == [
        {**each, "parts": ""} for each in found
    ]


def test_a_loss_that_comes_with_an_earlier_time_is_a_line_of_its_own(tmp_path: Path) -> None:
    """As after the clock was set back: what is joined follows each other."""
    lines = [line(START + second * SECOND, SECOND, 1) for second in (10, 11, 5, 12)]
    found = list(noted_losses(written(tmp_path, lines)).lines)
    assert [(each["from_ns"], each["until_ns"], each["notes"]) for each in found] == [
        (START + 10 * SECOND, START + 12 * SECOND, 2),
        (START + 5 * SECOND, START + 13 * SECOND, 2),
    ]
    assert all(first <= until for each in found for first, until, _ in parts_of(each))
    assert [first for first, *_ in parts_of(found[1])] == [START + 5 * SECOND, START + 12 * SECOND]


@pytest.mark.slow
def test_hours_are_few_lines_that_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each second, as system calls on files without names are noted."""
    parsed = 0

    def counted(data: bytes) -> Any:
        nonlocal parsed
        parsed += len(data)
        return objects(data)

    monkeypatch.setattr(ledger, "objects", counted)
    writer = RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}
    )
    counts = [second % 7 + 1 for second in range(20_000)]
    for second, count in enumerate(counts):
        writer.loss(
            "unknown-name",
            "syscall",
            START + second * SECOND,
            START + (second + 1) * SECOND,
            count,
            WORDS,
        )
    size = (tmp_path / "r" / layout.LOSSES).stat().st_size
    assert size < 1 << 20, "it stays far below what was written"
    recording = Recording(tmp_path / "r")
    found = recording.losses()
    assert len(found) <= 400
    assert (sum(each["count"] for each in found), sum(each["notes"] for each in found)) == (
        sum(counts),
        20_000,
    )
    assert parsed <= size
    before = parsed
    writer.loss(
        "unknown-name", "syscall", START + 20_000 * SECOND, START + 20_001 * SECOND, 3, WORDS
    )
    assert recording.summary().losses == {
        "unknown-name": {"notes": 20_001, "count": sum(counts) + 3, "unknown": 0}
    }
    assert recording.gaps() == []
    assert parsed - before < 1000, "only what is new"
    writer.close()


def test_what_is_old_is_told_by_the_hour_and_then_at_once(tmp_path: Path) -> None:
    seconds = 6 * 3600
    kept = written(
        tmp_path, [line(START + second * SECOND, SECOND, 1) for second in range(seconds)]
    )
    LossLog(kept)._join({"until_ns": START + 4 * HOUR_NS, "maps_until_ns": START + 2 * HOUR_NS})
    found = noted_losses(kept).lines
    lengths = [(each["until_ns"] - each["from_ns"]) // SECOND for each in found]
    assert lengths == [7200, 3600, 3600, *[60] * 120]
    assert [each["count"] for each in found] == lengths
    assert [len(parts_of(each)) for each in found[:5]] == [1, 1, 1, 60, 60]
    assert sum(each["notes"] for each in found) == seconds
    # later, those before are older
    LossLog(kept)._join({"until_ns": START + 6 * HOUR_NS, "maps_until_ns": START + 5 * HOUR_NS})
    assert [(each["count"], each["notes"]) for each in noted_losses(kept).lines] == [
        (18_000, 18_000),
        (3600, 3600),
    ]


@pytest.mark.slow
def test_a_writer_joins_by_what_retention_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_log, "LEAST_BYTES", 20_000)
    clock = FakeClock(START)
    writer = RecordingWriter.create(
        tmp_path / "r",
        host="",
        clock="realtime",
        origin={"kind": "record"},
        system=clock,
        retention={"age_s": 600, "maps_age_s": 1200, "bytes": None},
    )
    for second in range(3600):
        begin = START + second * SECOND
        writer.loss("unpaired", "block", begin, begin + SECOND, 2, "calls")
        if second % 60 == 0:
            writer.append_events(events(5, second, start_ns=begin))
        clock.sleep(1)
        writer.tick(clock.realtime_ns())
    writer.close()
    recording = Recording(tmp_path / "r")
    found = recording.losses()
    assert sum(each["count"] for each in found) == 7200
    assert len(found) < 60
    assert (tmp_path / "r" / layout.LOSSES).stat().st_size < 100_000
    assert recording.summary().unpaired == 7200


def test_a_disk_that_refuses_to_join_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_log, "LEAST_BYTES", 1000)

    def full(*_args: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    with RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}
    ) as writer:
        with monkeypatch.context() as patch:
            patch.setattr(ledger, "replacing", full)
            for second in range(100):
                writer.loss(
                    "unpaired", "block", START + second * SECOND, START + (second + 1) * SECOND, 2
                )
        assert Recording(tmp_path / "r").summary().unpaired == 200


@pytest.mark.slow
def test_columns_show_them_by_the_second_as_before(tmp_path: Path) -> None:
    clock = FakeClock(START)
    with RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}, system=clock
    ) as writer:
        for second in range(200):
            writer.append_events(events(10, second, start_ns=START + second * SECOND))
            writer.loss(
                "overrun", "block", START + second * SECOND, START + (second + 1) * SECOND, second
            )
            clock.sleep(1)
            writer.tick(clock.realtime_ns())
    recording = Recording(tmp_path / "r")
    assert len(recording.losses()) == 4
    for _ in range(2):
        found = query(recording, "io.ops", interval_ns=SECOND)
        assert isinstance(found, Series)
        assert found.lost == tuple((second, second) for second in range(1, 200))
        part = query(
            recording,
            "io.ops",
            from_ns=START + 30 * SECOND,
            until_ns=START + 100 * SECOND,
            interval_ns=10 * SECOND,
        )
        assert part.lost == tuple(
            (ten, sum(range(30 + 10 * ten, 40 + 10 * ten))) for ten in range(7)
        )
        LossLog(tmp_path / "r")._join({})
    # where only the hour is told, its share lies in each column
    LossLog(tmp_path / "r")._join({"until_ns": START + HOUR_NS})
    assert len(recording.losses()) == 1
    part = query(
        recording,
        "io.ops",
        from_ns=START + 50 * SECOND,
        until_ns=START + 150 * SECOND,
        interval_ns=50 * SECOND,
    )
    assert [count for _, count in part.lost] == [4975, 4975]  # type: ignore[union-attr]


@pytest.mark.parametrize("parts", ["0 5", "x y z", "0 1 99", "0 -1 3", 7, "0 1 3 " * 2, "9" * 5000])
def test_parts_that_are_none(tmp_path: Path, parts: object) -> None:
    kept = written(tmp_path, [{**line(START, SECOND, 3), "notes": 2, "parts": parts}])
    [found] = noted_losses(kept).lines
    assert parts_of(found) == [(START, START + SECOND, 3)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"from_ns": 10**25},
        {"until_ns": 1.5},
        {"count": -1},
        {"count": True},
        {"notes": 0},
        {"source": None},
        {"kind": 3},
    ],
)
def test_lines_that_are_none_are_left_out(tmp_path: Path, wrong: dict[str, Any]) -> None:
    kept = written(tmp_path, [{**line(START, SECOND, 3), **wrong}, line(START, SECOND, 4)])
    assert [each["count"] for each in noted_losses(kept).lines] == [4]
