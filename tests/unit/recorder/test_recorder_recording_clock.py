# SPDX-License-Identifier: Apache-2.0
"""The recording's own time and what the machine's clock showed: after steps back and ahead, with
several probes, of another machine."""

from __future__ import annotations

from typing import Any

import pytest

from iolab.recordings.record.recording_clock import OwnTime
from support.clocks import SetClock

SECOND = 1_000_000_000
HOUR = 3600.0


def hello(clock: SetClock) -> dict[str, Any]:
    return {
        "kind": "hello",
        "monotonic_ns": round(clock.monotonic() * 1e9),
        "realtime_ns": clock.realtime_ns(),
    }


class Machine:
    """A machine with a probe on it, which tells its clocks each second; all in seconds since the
    recording's begin."""

    def __init__(self, far: bool = False, late: float = 0.0, drift: float = 0.0) -> None:
        """`late`: seconds that a word takes; `drift`: by how much this clock is faster than the
        recorder's."""
        self.clock, self.here = SetClock(), SetClock(0)
        self.clock.sleep(50.0)
        self.start = self.clock.realtime_ns()
        self.time = OwnTime(self.here if far else self.clock, far)
        self._late, self._faster = late, 1 + drift
        self._told: list[tuple[float, int, int]] = []
        self.time.begin(hello(self.clock))

    def wait(self, seconds: float, *, told: bool = True) -> None:
        for _ in range(round(seconds * 4)):
            self.here.sleep(0.25)
            self.clock.sleep(0.25 * self._faster)
            if told and self.clock.monotonic() % 1 < 0.25:
                self._told.append(
                    (
                        self.here.monotonic() + self._late,
                        round(self.clock.monotonic() * 1e9),
                        self.clock.realtime_ns(),
                    )
                )
            while self._told and self._told[0][0] <= self.here.monotonic():
                self.time.tick(*self._told.pop(0)[1:])

    def of(self, seconds: float, before: float | None = None) -> float:
        """What the clock showed, as seconds since it showed the begin."""
        limit = None if before is None else self.start + round(before * SECOND)
        return (self.time.of(self.start + round(seconds * SECOND), limit) - self.start) / SECOND

    @property
    def now(self) -> float:
        return (self.time.now_ns() - self.start) / SECOND


def test_a_time_that_was_shown_twice_is_the_later_one_that_is_over() -> None:
    machine = Machine()
    machine.wait(600)
    machine.clock.set_ahead(-400)
    machine.wait(100)
    assert machine.now == 700
    # it shows 300 now, as 400 seconds ago
    assert [machine.of(at) for at in (0, 199, 200.5, 299, 350, 590)] == [
        0,
        199,
        600.5,
        699,
        350,
        590,
    ]
    # what ended before it was set began before as well
    assert [machine.of(at, before) for at, before in ((250, 650), (250, 649), (250, 300))] == [
        650,
        250,
        250,
    ]
    machine.clock.set_ahead(-50)
    machine.wait(20)
    assert machine.now == 720
    assert [machine.of(at) for at in (248, 252, 269, 280, 299, 302)] == [
        648,
        702,
        719,
        680,
        699,
        302,
    ]
    assert machine.time.ahead_ns == 450 * SECOND


def test_a_step_that_is_taken_back_is_none_any_more() -> None:
    machine = Machine()
    machine.wait(10)
    machine.clock.set_ahead(-HOUR)
    machine.wait(10)
    machine.clock.set_ahead(HOUR)
    machine.wait(10)
    assert machine.time.ahead_ns == 0
    assert [machine.of(at) for at in (5, 15 - HOUR, 25)] == [5, 15, 25]


def test_what_is_small_is_let_be() -> None:
    machine = Machine()
    for step in (-0.6, -0.3, -0.4, 0.5, 0.8):
        machine.clock.set_ahead(step)
        machine.wait(10)
    # only where they were more than a second together
    assert [machine.of(at) for at in (10, 25, 35, 50)] == [10, pytest.approx(26.3), 35, 50]
    assert machine.now == 50


@pytest.mark.parametrize("away", [20.0, 900.0])
def test_set_back_while_there_was_no_probe(away: float) -> None:
    machine = Machine()
    machine.wait(100)
    machine.clock.set_ahead(-500)
    machine.wait(away, told=False)
    until_ns = machine.start + 100 * SECOND
    own = machine.time.begin_again(hello(machine.clock), until_ns)
    assert own["realtime_ns"] >= until_ns
    assert machine.time.ahead_ns == (500 * SECOND if away < 500 else 0)
    machine.wait(10)
    if away < 500:
        assert (machine.now, machine.of(-400 + away + 5)) == (110 + away, 105 + away)
        assert machine.of(50) == 50
    else:
        # long after it the new time is as good
        assert machine.now == 100 + away - 500 + 10
        assert machine.of(machine.now - 2) == machine.now - 2


def test_ahead_it_follows_with_the_next_probe() -> None:
    machine = Machine()
    machine.wait(10)
    machine.clock.set_ahead(HOUR)
    machine.wait(5)
    assert (machine.now, machine.time.ahead_ns) == (15, 0)
    machine.time.begin_again(hello(machine.clock), machine.start + 15 * SECOND)
    assert machine.now == HOUR + 15
    assert machine.of(HOUR + 12) == HOUR + 12


@pytest.mark.parametrize("drift", [0.0, 1e-4, -1e-4])
def test_another_machines_time_is_known_by_the_word_that_took_least(drift: float) -> None:
    machine = Machine(far=True, late=0.5, drift=drift)
    machine.wait(4000)
    passed = machine.clock.monotonic() - 50.0
    assert machine.now == pytest.approx(passed, abs=0.51)
    assert machine.now <= passed + 0.1
    assert machine.time.machine_ns() == pytest.approx(
        machine.clock.realtime_ns(), abs=0.51 * SECOND
    )
    machine.clock.set_ahead(-HOUR)
    machine.wait(10)
    assert machine.now == pytest.approx(passed + 10, abs=0.51)
    assert machine.time.machine_ns() == pytest.approx(
        machine.clock.realtime_ns(), abs=0.51 * SECOND
    )
    assert machine.time.ahead_ns == HOUR * SECOND
