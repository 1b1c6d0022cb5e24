# SPDX-License-Identifier: Apache-2.0
"""Following a recording: every column once, whole, and with the numbers that the same question has
afterwards."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iolab.base.clock import FakeClock
from iolab.base.errors import UsageError
from iolab.cli.query.follow import format_answers
from iolab.recordings.ask import follow
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.answers.json_form import largest, moment_as_data, moments
from iolab.recordings.ask.follow import Follower
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import parse
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.metadata import Begun
from iolab.recordings.store.base.schema import SAMPLES
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events


def readings(at: int, value: int) -> pa.RecordBatch:
    row = ("diskstats", START + at * SECOND, "sda", "reads", value)
    return pa.RecordBatch.from_arrays(
        [pa.array([cell], field.type) for cell, field in zip(row, SAMPLES, strict=True)],
        schema=SAMPLES,
    )


class Growing(FakeClock):
    """A clock during whose sleep a recording grows: a second of events and a reading, then the
    writer's word that it lives."""

    def __init__(
        self,
        place: Path,
        seconds: int,
        *,
        quiet: tuple[int, ...] = (),
        ends: str = "close",
        before: Callable[[int], None] = lambda _: None,
    ) -> None:
        super().__init__(START)
        self.writer = RecordingWriter.create(
            place,
            host="here",
            clock="realtime",
            origin={"kind": "record"},
            system=self,
            sources={"block": {}, "counters": {}, "syscall": {}},
        )
        self.writer.tick(START)
        self._made, self._seconds, self._quiet, self._ends, self._before = (
            0,
            seconds,
            quiet,
            ends,
            before,
        )

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        while self._made < min(self._seconds, int(self.monotonic())):
            at = self._made
            self._before(at)
            if at not in self._quiet:
                self.writer.append_events(
                    events(100 + 10 * at, at, start_ns=START + at * SECOND, per_s=100 + 10 * at)
                )
            self.writer.append_samples(readings(at, 7 * at * at))
            if at % 3 == 2:
                self.writer.seal()
            self._made += 1
            self.writer.tick(START + self._made * SECOND)
        if self._made == self._seconds:
            if self._ends == "close slowly":
                super().sleep(1.5)
            if self._ends.startswith("close"):
                self.writer.close()
            elif self._ends == "kill":
                self.writer._lock.close()


class BegunAgain(Growing):
    """Once it was closed it is recorded into again, by a clock that was set back by a minute,
    before anybody has looked."""

    again = 0

    def sleep(self, seconds: float) -> None:
        if self.again == 0:
            super().sleep(seconds)
            if self._made < self._seconds:
                return
            begin = START - 60 * SECOND
            self.writer = RecordingWriter.reopen(
                self.writer.directory, system=self, begun=Begun(begin, 0, begin)
            )
        else:
            FakeClock.sleep(self, seconds)
            at = START - 60 * SECOND + (self.again - 1) * SECOND
            self.writer.append_events(events(7, self.again, start_ns=at, per_s=7))
        self.writer.tick(START - 60 * SECOND + self.again * SECOND)
        self.again += 1
        if self.again == 5:
            self.writer.close()


def followed(clock: Growing, name: str, **asked: Any) -> tuple[list[Any], list[str]]:
    """(what came, in plain words; what was said)."""
    said: list[str] = []
    statistic = parse(name)
    asked.setdefault("interval_ns", SECOND)
    follower = Follower(
        Recording(clock.writer.directory), statistic, clock=clock, said=said.append, **asked
    )
    found = [
        moment_as_data(statistic, piece.answer, moment)
        for piece in follower.pieces()
        for moment in moments(piece.answer, piece.first_ns, piece.until_ns, None)
    ]
    return found, said


def test_it_goes_back_with_a_recording_that_is_begun_again(tmp_path: Path) -> None:
    found, said = followed(BegunAgain(tmp_path / "r", 5), "io.ops")
    seconds = [(each["t0_ns"] - START) // SECOND for each in found]
    assert seconds == [*range(5), *range(-60, -56)]
    assert [each["value"] > 0 for each in found] == [True] * 9
    assert said == [
        "was begun again after the clock was set back by 65 s: its times go back by that"
    ]


def test_what_was_lost_is_told_by_kind(tmp_path: Path) -> None:
    clock = Growing(tmp_path / "r", 4)
    for kind, count, second in [
        ("overrun", 1200, 1),
        ("missed", 4, 1),
        ("damaged", None, 1),
        ("unpaired", 1, 2),
    ]:
        clock.writer.loss(
            kind, "block", START + second * SECOND, START + second * SECOND + SECOND // 2, count
        )
    follower = Follower(
        Recording(tmp_path / "r"), parse("io.ops"), interval_ns=SECOND, clock=clock, said=print
    )
    pieces = list(follower.pieces())
    lines = [
        line.partition("  ! ")[2]
        for line in format_answers(iter(pieces), parse("io.ops"), "text", None)
    ]
    assert lines == [
        "",
        "1 204 records were lost, an unknown number of records could not be read",
        "1 unmatched issue or completion event",
        "",
    ]
    told = [
        json.loads(line) for line in format_answers(iter(pieces), parse("io.ops"), "json", None)
    ]
    assert [each["lost"] for each in told] == [0, 1204, 1, 0]
    assert [each["losses"] for each in told] == [
        {},
        {"lost": 1204, "damaged": 0},
        {"unpaired": 1},
        {},
    ]


def test_a_series_has_each_second_once_and_as_it_is_afterwards(tmp_path: Path) -> None:
    clock = Growing(tmp_path / "r", 8)
    found, said = followed(clock, "io.ops")
    assert [each["t0_ns"] for each in found] == [START + at * SECOND for at in range(8)]
    after = query(Recording(tmp_path / "r"), "io.ops", interval_ns=SECOND)
    assert isinstance(after, Series)
    assert [each["value"] for each in found] == after.values.tolist()
    assert said == []


@pytest.mark.parametrize("name", ["io.ops", "io.ops[op]", "io.utilization[device]"])
def test_the_while_that_closing_takes_has_no_columns(tmp_path: Path, name: str) -> None:
    found, _ = followed(Growing(tmp_path / "r", 5, ends="close slowly"), name)
    after = query(Recording(tmp_path / "r"), name, interval_ns=SECOND)
    assert isinstance(after, Series | Stack)
    assert (
        [each["t0_ns"] for each in found]
        == list(range(after.t0_ns, after.until_ns, SECOND))
        == [START + at * SECOND for at in range(5)]
    )
    assert Recording(tmp_path / "r").facts.sessions[-1]["until_ns"] == START + 5 * SECOND


@pytest.mark.parametrize(
    "name",
    [
        "io.ops[op]",
        "io.bytes[process]",
        "io.ops[latency]",
        "io.ops[op=write][size]",
        "io.bytes[latency]",
    ],
)
def test_stacks_and_maps_add_up_to_what_they_are_afterwards(tmp_path: Path, name: str) -> None:
    found, _ = followed(Growing(tmp_path / "r", 5), name)
    after = query(Recording(tmp_path / "r"), name, interval_ns=SECOND)
    if isinstance(after, HeatCounts):
        assert sum(sum(each["count"]) for each in found) == int(after.count.sum())
        assert {each["kind"] for each in found} == {"heat"}
    else:
        assert isinstance(after, Stack)
        for place, key in enumerate(after.keys):
            assert [each["keys"].get(key, 0) for each in found] == after.values[place].tolist()


def test_a_quiet_second_is_zero_and_not_left_out(tmp_path: Path) -> None:
    found, _ = followed(Growing(tmp_path / "r", 6, quiet=(2, 3, 5)), "io.ops")
    assert [each["value"] == 0 for each in found] == [False, False, True, True, False, True]


def test_counters_are_told_once_the_next_reading_is_there(tmp_path: Path) -> None:
    found, _ = followed(Growing(tmp_path / "r", 6), "io.ops", source="diskstats")
    assert [each["value"] for each in found[:5]] == [7 * (2 * at + 1) for at in range(5)]
    # after the last reading nothing is known
    assert [each["value"] for each in found[5:]] == [None]


def test_the_past_comes_first_and_the_end_may_be_named(tmp_path: Path) -> None:
    clock = Growing(tmp_path / "r", 9)
    clock.sleep(4)
    found, _ = followed(
        clock, "io.ops", from_ns=START + 2 * SECOND + 5, until_ns=START + 7 * SECOND
    )
    assert [each["t0_ns"] for each in found] == [START + at * SECOND for at in range(2, 7)]
    whole, _ = followed(clock, "io.ops", from_ns=0)
    assert len(whole) == 9


def test_without_a_beginning_it_is_now(tmp_path: Path) -> None:
    clock = Growing(tmp_path / "r", 9)
    clock.sleep(4)
    found, _ = followed(clock, "io.ops")
    assert [each["t0_ns"] for each in found] == [START + at * SECOND for at in range(4, 9)]


def test_without_a_beginning_it_is_now_as_well_before_the_writer_says_anything(
    tmp_path: Path,
) -> None:
    with RecordingWriter.create(
        tmp_path / "r",
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        system=FakeClock(START),
    ) as writer:
        writer.append_events(events(100, 1, start_ns=START, per_s=100))
        writer.tick(START + SECOND)
    later = FakeClock(START + 7200 * SECOND)
    with RecordingWriter.reopen(tmp_path / "r", system=later) as writer:
        sleep = later.sleep

        def ticking(seconds: float) -> None:
            sleep(seconds)
            writer.tick(later.realtime_ns())

        later.sleep = ticking  # type: ignore[method-assign]
        told = Follower(
            Recording(tmp_path / "r"), parse("io.ops"), interval_ns=SECOND, clock=later, said=print
        )
        assert next(told.pieces()).first_ns >= START + 7199 * SECOND


def test_a_recording_that_ended_is_told_whole_and_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Growing(tmp_path / "r", 5)
    clock.sleep(5)
    monkeypatch.setattr(follow, "AT_ONCE", 2)
    found, said = followed(clock, "io.ops")
    assert (len(found), said) == (5, [])


def test_a_killed_writer_ends_it(tmp_path: Path) -> None:
    clock = Growing(tmp_path / "r", 3, ends="kill")
    found, _ = followed(clock, "io.ops")
    assert len(found) == 3
    assert clock.monotonic() > follow.PATIENCE


def test_a_writer_that_lives_and_says_nothing_is_waited_for(tmp_path: Path) -> None:
    clock = Growing(tmp_path / "r", 3, ends="")
    told = iter(
        Follower(
            Recording(tmp_path / "r"), parse("io.ops"), interval_ns=SECOND, clock=clock, said=print
        ).pieces()
    )
    assert [next(told).first_ns for _ in range(3)] == [START + at * SECOND for at in range(3)]

    def close(_: float) -> None:
        clock.writer.close()

    clock.sleep = close  # type: ignore[method-assign, assignment]
    assert list(told) == []


def test_what_is_not_recorded_is_told_after_a_while(tmp_path: Path) -> None:
    clock = Growing(tmp_path / "r", 30)
    with pytest.raises(UsageError, match="holds no counters of zil"):
        followed(clock, "zil.commits")
    assert follow.PATIENCE <= clock.monotonic() < 2 * follow.PATIENCE


@pytest.mark.slow
def test_a_source_that_is_quiet_is_zero(tmp_path: Path) -> None:
    found, said = followed(Growing(tmp_path / "r", 15), "file.ops")
    assert [each["value"] for each in found] == [0] * 15
    assert said == []


@pytest.mark.slow
def test_lines_in_every_style(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    def lines(name: str, style: str, top: int | None = None) -> list[str]:
        clock = Growing(tmp_path / f"{len(list(tmp_path.iterdir()))}", 4)
        asked = parse(name)
        follower = Follower(
            Recording(clock.writer.directory),
            asked,
            interval_ns=SECOND,
            clock=clock,
            said=lambda _: None,
        )
        return list(format_answers(follower.pieces(), asked, style, top))

    series = lines("io.ops", "text")
    assert len(series) == 4
    assert all(line.startswith("22:13:2") and "█" in line for line in series)
    assert lines("io.ops", "csv")[0] == "time_s,value"
    assert len(lines("io.ops", "csv")) == 5
    assert [json.loads(line)["kind"] for line in lines("io.ops[op]", "json")] == ["stack"] * 4
    assert all("others" in line for line in lines("io.ops[op]", "text", 2))
    assert lines("io.ops[op]", "csv", 1)[0] == "time_s,op,value"
    drawn = lines("io.ops[latency]", "text")
    assert "│" in drawn[1]
    assert len([line for line in drawn if line.startswith("22:13:2")]) == 4
    assert all(len(line) <= 80 for line in drawn)
    assert lines("io.ops[offset]", "text")
    assert lines("io.ops[latency]", "csv")[0] == "time_s,low,high,count"


def test_a_gap_has_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Growing(tmp_path / "r", 6)
    lost = clock.writer.loss
    clock._before = lambda at: (
        lost("gap", "", START + 2 * SECOND, START + 4 * SECOND, None, "away") if at == 4 else None
    )
    clock._quiet = (2, 3)
    clock.sleep(6)
    found, _ = followed(clock, "io.ops")
    assert [each["value"] is None for each in found] == [False, False, True, True, False, False]
    monkeypatch.setattr(follow, "AT_ONCE", 1)
    stacks, _ = followed(clock, "io.ops[op]")
    assert [each["keys"] is None for each in stacks] == [False, False, True, True, False, False]
    heat, _ = followed(clock, "io.ops[latency]")
    assert [each["recorded"] for each in heat] == [True, True, False, False, True, True]
    assert not math.isnan(sum(sum(each["count"]) for each in heat))


@pytest.mark.parametrize("top", [1, 2, 3])
def test_others_are_what_they_are_in_an_answer_at_once(tmp_path: Path, top: int) -> None:
    rows = [
        ("diskstats", START + at * SECOND, disk, "io_ms", at * 10 * busy)
        for at in range(3)
        for disk, busy in (("sda", 9), ("sdb", 5), ("sdc", 2), ("sdd", 0))
    ]
    with RecordingWriter.create(
        tmp_path / "r",
        host="h",
        clock="realtime",
        origin={"kind": "record"},
        system=FakeClock(START),
    ) as writer:
        writer.append_samples(
            pa.RecordBatch.from_arrays(
                [
                    pa.array(cells, field.type)
                    for cells, field in zip(zip(*rows, strict=True), SAMPLES, strict=True)
                ],
                schema=SAMPLES,
            )
        )
    shares = query(
        Recording(tmp_path / "r"),
        "io.utilization[device]",
        from_ns=START,
        until_ns=START + SECOND,
        interval_ns=SECOND,
    )
    assert isinstance(shares, Stack)
    assert len(shares.keys) == 4
    for answer in (
        shares,
        replace(shares, averages=None),
        replace(shares, averages=None, adds_up=True),
    ):
        _, rest = largest(answer, top)
        assert rest is not None
        (moment,) = moments(answer, START, START + SECOND, top)
        found = dict(moment.keys)
        if top == 3:
            # who did nothing is not told
            assert None not in found
        else:
            assert found[None] == pytest.approx(float(rest.values[0]), nan_ok=True)
    last = replace(
        shares,
        averages=None,
        keys=shares.keys[:2],
        values=shares.values[:2],
        totals=shares.totals[:2],
    )
    (moment,) = moments(last, START, START + SECOND, 1)
    assert dict(moment.keys)[None] == pytest.approx(float(shares.values[1, 0]))
