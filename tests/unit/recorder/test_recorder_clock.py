# SPDX-License-Identifier: Apache-2.0
"""A machine whose clock is set, or that slept, while it is recorded: ahead, another probe goes on
by the new time; set back, times go on as if it had not been. Either is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from iolab.base.clock import FakeClock
from iolab.recordings.record.settings import Settings
from iolab.recordings.store.read.recording import Recording
from support.clocks import SetClock
from support.recorder import Bench, FakeCommand, FakeProbe, Listener

SECOND = 1_000_000_000


class Elsewhere(FakeClock):
    """A machine's clock as another one knows it: by how it stood when the connection was made."""

    def __init__(self, machine: SetClock) -> None:
        super().__init__(machine.realtime_ns() - 77 * SECOND)
        self._machine = machine

    def monotonic(self) -> float:
        return self._machine.monotonic() + 77

    def realtime_ns(self) -> int:
        return self._start_ns + round(self.monotonic() * SECOND)

    def sleep(self, seconds: float) -> None:
        self._machine.sleep(seconds)


def bench(
    directory: Path,
    clock: SetClock,
    steps: dict[float, float],
    duration: float = 40.0,
    *,
    far: bool = False,
    each: Callable[[], None] = lambda: None,
    requests: Sequence[tuple[float, dict[str, Any]]] = (),
) -> Bench:
    """A recorder of a machine whose clock is set by so much, at so many seconds; `far`: the
    recorder is elsewhere."""
    left = dict(steps)

    def passed() -> None:
        each()
        for at in [at for at in left if clock.monotonic() >= at]:
            clock.set_ahead(left.pop(at))

    known = Elsewhere(clock) if far else clock
    begun = known.monotonic()
    return Bench(
        directory,
        Settings(sources=("block",), duration=duration),
        clock=known,
        listener=Listener(each=passed),
        far=far,
        probes=lambda number, sources: FakeProbe(clock, sources),
        requests=[(begun + at, asked) for at, asked in requests],
    )


def times_of(one: Bench) -> list[int]:
    return [value for batch in one.sink.events for value in batch.column("time_ns").to_pylist()]


def test_another_probe_goes_on_by_the_new_time(tmp_path: Path) -> None:
    clock, step = SetClock(), 8 * 3600.0
    one = bench(tmp_path, clock, {20.0: step})
    outcome = one.run()
    assert outcome.failure is None
    assert (outcome.status.deaths, outcome.status.state) == (0, "ended")
    assert len(one.launcher.launched) == 2
    words = "the clock went ahead by 8.00 h: it was set, or the machine slept"
    assert one.listener.notes == [f"{words}; recording continues with the new time"]
    assert outcome.status.troubles == [words]
    assert abs(outcome.status.until_ns - clock.realtime_ns()) < 2 * SECOND
    assert one.sink.rows == outcome.status.events["block"] > 360
    times = times_of(one)
    assert times[-1] - times[0] == pytest.approx((40 + step) * SECOND, abs=3 * SECOND)
    [(first, until, words_of_gap)] = [
        (loss[2], loss[3], loss[5])
        for loss in one.sink.losses
        if loss[0] == "gap" and loss[3] is not None
    ]
    assert (until - first) / SECOND == pytest.approx(step, abs=3)
    assert words_of_gap == words


@pytest.mark.parametrize(("step", "length"), [(-61.0, "1.02 min"), (-8 * 3600.0, "8.00 h")])
def test_set_back_times_go_on_as_if_it_had_not_been(
    step: float, length: str, tmp_path: Path
) -> None:
    clock = SetClock()
    one = bench(tmp_path, clock, {20.0: step})
    outcome = one.run()
    assert outcome.failure is None
    assert len(one.launcher.launched) == 1
    words = f"the clock was set back by {length}; times continue by the old clock until a new recording begins"
    assert one.listener.notes == outcome.status.troubles == [words]
    assert abs(outcome.status.until_ns - clock.realtime_ns() + round(step * SECOND)) < 2 * SECOND
    assert one.sink.losses == []
    times = times_of(one)
    assert times == sorted(times)
    assert times[-1] - times[0] == pytest.approx(40 * SECOND, abs=3 * SECOND)


def test_each_step_back_is_said_and_one_that_is_taken_back_is_not(tmp_path: Path) -> None:
    one = bench(
        tmp_path, SetClock(), {20.0: -60.0, 40.0: -60.0, 60.0: 120.0, 80.0: -60.0}, duration=100.0
    )
    troubles = one.run().status.troubles
    assert len(one.launcher.launched) == 1
    assert [words.partition(" by ")[2].partition(";")[0] for words in troubles] == [
        "1.00 min",
        "2.00 min",
        "1.00 min",
    ]


@pytest.mark.parametrize("step", [0.9, -0.9])
def test_what_is_small_is_let_be(step: float, tmp_path: Path) -> None:
    one = bench(tmp_path, SetClock(), {20.0: step})
    assert one.run().status.troubles == []
    assert len(one.launcher.launched) == 1


def test_small_steps_add_up(tmp_path: Path) -> None:
    one = bench(tmp_path, SetClock(), {10.0: 0.6, 20.0: 0.6})
    one.run()
    assert len(one.launcher.launched) == 2


@pytest.mark.parametrize("back", [1, -1])
def test_a_clock_that_is_set_all_the_time_is_followed_now_and_then(
    back: int, tmp_path: Path
) -> None:
    one = bench(
        tmp_path, SetClock(), {float(at): 100.0 * back**at for at in range(200)}, duration=200.0
    )
    assert one.run().failure is None
    assert 2 <= len(one.launcher.launched) <= 21


def test_a_probe_that_begins_after_it_goes_on_where_the_one_before_was(tmp_path: Path) -> None:
    clock = SetClock()

    def probe(number: int, sources: Sequence[str]) -> FakeProbe:
        return FakeProbe(clock, sources, dies=25.5 if number == 0 else 1e9, lose=1)

    one = bench(tmp_path, clock, {20.0: -500.0})
    one.launcher.probes = probe
    outcome = one.run()
    assert len(one.launcher.launched) == 2
    assert len(outcome.status.troubles) == 2
    times = times_of(one)
    assert times == sorted(times)
    assert times[-1] - times[0] == pytest.approx(40 * SECOND, abs=3 * SECOND)
    [(first, until)] = [
        (loss[2], loss[3]) for loss in one.sink.losses if loss[0] == "gap" and loss[3] is not None
    ]
    assert 0 < until - first < 3 * SECOND
    lost = [(loss[2], loss[3]) for loss in one.sink.losses if loss[0] == "overrun"]
    assert lost == sorted(lost)
    assert one.sink.ticks == sorted(one.sink.ticks)
    assert abs(outcome.status.until_ns - clock.realtime_ns() - 500 * SECOND) < 2 * SECOND


def test_a_probe_that_begins_long_after_it_goes_by_the_new_time(tmp_path: Path) -> None:
    from iolab.recordings.record.recording_clock import moved_by
    from iolab.recordings.store.base.metadata import Begun

    before = Begun(1000, 0, 1000)
    for step, passed, moved in ((-60, 0, 60), (-60, 59, 60), (-60, 60, 0), (0, 0, 0), (100, 0, 0)):
        now = (100 + passed) * SECOND
        after = Begun(1000 + now + step * SECOND, now, 1000 + now + step * SECOND)
        assert moved_by(before, after, 1000 + 100 * SECOND) == moved * SECOND
    # the machine was begun again meanwhile, with a clock that is behind
    assert moved_by(before, Begun(SECOND, 0, SECOND), 10 * SECOND) == 9 * SECOND


def test_the_commands_mark_lies_where_its_events_do(tmp_path: Path) -> None:
    clock = SetClock()
    one = bench(tmp_path, clock, {20.0: -3600.0})
    one.recorder._parts.command = FakeCommand(clock, 35.0)
    outcome = one.run()
    [mark] = one.sink.marks
    assert (mark["from_ns"] - outcome.status.from_ns) / SECOND == pytest.approx(0, abs=0.5)
    assert (mark["until_ns"] - mark["from_ns"]) / SECOND == pytest.approx(35, abs=0.5)


@pytest.mark.parametrize("step", [-3600.0, -500.0])
@pytest.mark.parametrize("far", [False, True])
def test_what_is_asked_for_after_it_lies_where_its_events_do(
    far: bool, step: float, tmp_path: Path
) -> None:
    clock = SetClock()
    start = clock.realtime_ns()

    def at(seconds: float) -> int:
        """As the machine's clock showed it."""
        return start + round((seconds + (step if seconds > 20 else 0)) * SECOND)

    def mark(label: str, first: float, until: float | None) -> tuple[float, dict[str, Any]]:
        ends = {"from_ns": at(first), "until_ns": None if until is None else at(until)}
        return 31.5, {"word": "mark", "label": label, **ends}

    spans = {
        "before": (3.0, 9.0),
        "across": (15.0, 28.0),
        "after": (25.0, 30.0),
        "open": (24.0, None),
    }
    own = {
        "word": "mark",
        "label": "own",
        "own": True,
        "from_ns": start + 5 * SECOND,
        "until_ns": start + 25 * SECOND,
    }
    one = bench(
        tmp_path,
        clock,
        {20.0: step},
        far=far,
        requests=[
            *(mark(label, *span) for label, span in spans.items()),
            (31.5, own),
            (31.5, {"word": "status"}),
            (31.5, {"word": "cut", "label": "cut"}),
        ],
    )
    one.run()
    *asked, status, cut = one.control.answers
    noted = {
        mark["label"]: tuple(
            None if mark[end] is None else (mark[end] - start) / SECOND
            for end in ("from_ns", "until_ns")
        )
        for mark in one.sink.marks
    }
    spent = (status["now_ns"] - start) / SECOND
    assert spent == pytest.approx(31.5, abs=0.5)
    assert noted == {**spans, "own": (5.0, 25.0), "cut": (spent, spent)}
    answered, kept = (
        [(each["from_ns"], each["until_ns"]) for each in them]
        for them in (asked, one.sink.marks[:-1])
    )
    assert answered == kept
    assert status["ahead_ns"] == -step * SECOND
    # once everything up to it is there, and not when the clock is there again
    assert status["at"] < cut["at"] < status["at"] + 2
    assert cut["until_ns"] >= one.sink.marks[-1]["from_ns"]


def test_a_mark_by_the_recordings_time_is_kept_as_given(tmp_path: Path) -> None:
    clock = SetClock()
    ends = {
        "from_ns": clock.realtime_ns() + 12 * SECOND,
        "until_ns": clock.realtime_ns() + 14 * SECOND,
    }
    given = [
        (31.5, {"word": "mark", "label": str(own), "own": own, **ends}) for own in (True, False)
    ]
    one = bench(tmp_path, clock, {20.0: -10.0}, requests=given)
    one.run()
    assert [mark["from_ns"] - ends["from_ns"] for mark in one.sink.marks] == [0, 10 * SECOND]


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
@pytest.mark.parametrize("far", [False, True])
def test_a_status_is_of_the_machines_time(far: bool, step: float, tmp_path: Path) -> None:
    """Of another machine as well, of whose clock this one knows by the probe alone."""
    clock, apart = SetClock(), list[float]()

    def look() -> None:
        apart.append(
            (json.loads((tmp_path / "status.json").read_text())["written_ns"] - clock.realtime_ns())
            / SECOND
        )

    one = bench(tmp_path, clock, {20.0: step}, far=far, each=look)
    one.run()
    assert len(apart) >= 38
    # a moment after it is set nobody here knows
    assert sum(abs(each) > 0.5 for each in apart) <= 1


def test_the_first_words_tell_where_a_session_begins(tmp_path: Path) -> None:
    from iolab.recordings.record.recording_clock import begun_by
    from iolab.recordings.record.session import open_writer
    from iolab.recordings.record.settings import Retention

    clock = SetClock()
    start = clock.realtime_ns()
    hello = {
        "hostname": "here",
        "sources": {},
        "monotonic_ns": 7,
        "realtime_ns": start,
        "from_ns": start + SECOND,
    }
    clock.sleep(30)
    writer = open_writer(tmp_path / "r", hello, Retention(), {"kind": "record"}, clock)
    writer.tick(start + 9 * SECOND)
    writer.renew(
        begun_by(
            {
                **hello,
                "monotonic_ns": 7 + 20 * SECOND,
                "realtime_ns": start + 120 * SECOND,
                "from_ns": start + 121 * SECOND,
            }
        )
    )
    clock.sleep(30)
    writer.tick(start + 125 * SECOND)
    writer.close()
    open_writer(
        tmp_path / "r",
        {**hello, "realtime_ns": start + 200 * SECOND, "from_ns": 0},
        Retention(),
        {},
        clock,
    ).close()
    ends = [
        ((each["from_ns"] or 0) - start, (each["until_ns"] or 0) - start)
        for each in Recording(tmp_path / "r").facts.sessions
    ]
    assert [each / SECOND for each, _ in ends] == [1, 121, 200]
    assert [each / SECOND for _, each in ends][:2] == [9, 125]
