"""A machine whose clock is set, or that slept, while it is recorded: ahead, another probe goes on by the new time; set back, times go on
as if it had not been. Either is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from iolab.recorder.settings import Settings
from iolab.recording.recording import Recording
from support.clocks import SetClock
from support.recorder import Bench, FakeProbe, Listener

SECOND = 1_000_000_000


def bench(directory: Path, clock: SetClock, steps: dict[float, float], duration: float = 40.0) -> Bench:
    """A recorder on a machine whose clock is set by so much, at so many seconds."""
    left = dict(steps)

    def each() -> None:
        for at in [at for at in left if clock.monotonic() >= at]:
            clock.set_ahead(left.pop(at))

    return Bench(directory, Settings(sources=("block",), duration=duration), clock=clock, listener=Listener(each=each),
                 probes=lambda number, sources: FakeProbe(clock, sources))


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
    assert one.listener.notes == [f"{words}; recording goes on by the new time"]
    assert outcome.status.troubles == [words]
    assert abs(outcome.status.until_ns - clock.realtime_ns()) < 2 * SECOND
    assert one.sink.rows == outcome.status.events["block"] > 360
    times = times_of(one)
    assert times[-1] - times[0] == pytest.approx((40 + step) * SECOND, abs=3 * SECOND)
    [(first, until, words_of_gap)] = [(loss[2], loss[3], loss[5]) for loss in one.sink.losses if loss[0] == "gap"]
    assert (until - first) / SECOND == pytest.approx(step, abs=3)
    assert words_of_gap == words


@pytest.mark.parametrize(("step", "length"), [(-61.0, "1.02 min"), (-8 * 3600.0, "8.00 h")])
def test_set_back_times_go_on_as_if_it_had_not_been(step: float, length: str, tmp_path: Path) -> None:
    clock = SetClock()
    one = bench(tmp_path, clock, {20.0: step})
    outcome = one.run()
    assert outcome.failure is None
    assert len(one.launcher.launched) == 1
    words = f"the clock was set back by {length}; times go on by the old one until recording begins anew"
    assert one.listener.notes == outcome.status.troubles == [words]
    assert abs(outcome.status.until_ns - clock.realtime_ns() + round(step * SECOND)) < 2 * SECOND
    assert one.sink.losses == []
    times = times_of(one)
    assert times == sorted(times)
    assert times[-1] - times[0] == pytest.approx(40 * SECOND, abs=3 * SECOND)


def test_each_step_back_is_said_and_one_that_is_taken_back_is_not(tmp_path: Path) -> None:
    one = bench(tmp_path, SetClock(), {20.0: -60.0, 40.0: -60.0, 60.0: 120.0, 80.0: -60.0}, duration=100.0)
    troubles = one.run().status.troubles
    assert len(one.launcher.launched) == 1
    assert [words.partition(" by ")[2].partition(";")[0] for words in troubles] == ["1.00 min", "2.00 min", "1.00 min"]


@pytest.mark.parametrize("step", [0.9, -0.9])
def test_what_is_small_is_let_be(step: float, tmp_path: Path) -> None:
    one = bench(tmp_path, SetClock(), {20.0: step})
    assert one.run().status.troubles == []
    assert len(one.launcher.launched) == 1


def test_small_steps_add_up(tmp_path: Path) -> None:
    one = bench(tmp_path, SetClock(), {10.0: 0.6, 20.0: 0.6})
    one.run()
    assert len(one.launcher.launched) == 2


def test_a_clock_that_is_set_all_the_time_is_followed_now_and_then(tmp_path: Path) -> None:
    one = bench(tmp_path, SetClock(), {float(at): 100.0 * (-1) ** at for at in range(200)}, duration=200.0)
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
    [(first, until)] = [(loss[2], loss[3]) for loss in one.sink.losses if loss[0] == "gap"]
    assert 0 < until - first < 3 * SECOND
    lost = [(loss[2], loss[3]) for loss in one.sink.losses if loss[0] == "overrun"]
    assert lost == sorted(lost)
    assert one.sink.ticks == sorted(one.sink.ticks)
    assert abs(outcome.status.until_ns - clock.realtime_ns() - 500 * SECOND) < 2 * SECOND


def test_a_probe_that_begins_long_after_it_goes_by_the_new_time(tmp_path: Path) -> None:
    from iolab.recorder.moved import moved_by
    from iolab.recording.facts import Begun

    before = Begun(1000, 0, 1000)
    for step, passed, moved in ((-60, 0, 60), (-60, 59, 60), (-60, 60, 0), (0, 0, 0), (100, 0, 0)):
        now = (100 + passed) * SECOND
        after = Begun(1000 + now + step * SECOND, now, 1000 + now + step * SECOND)
        assert moved_by(before, after, 1000 + 100 * SECOND) == moved * SECOND
    # the machine was begun again meanwhile, with a clock that is behind
    assert moved_by(before, Begun(SECOND, 0, SECOND), 10 * SECOND) == 9 * SECOND


def test_the_first_words_tell_where_a_session_begins(tmp_path: Path) -> None:
    from iolab.recorder.begun import begun_by
    from iolab.recorder.session import open_writer
    from iolab.recorder.settings import Retention

    clock = SetClock()
    start = clock.realtime_ns()
    hello = {"hostname": "here", "sources": {}, "monotonic_ns": 7, "realtime_ns": start, "from_ns": start + SECOND}
    clock.sleep(30)
    writer = open_writer(tmp_path / "r", hello, Retention(), {"kind": "record"}, clock)
    writer.tick(start + 9 * SECOND)
    writer.renew(begun_by({**hello, "monotonic_ns": 7 + 20 * SECOND, "realtime_ns": start + 120 * SECOND, "from_ns": start + 121 * SECOND}))
    clock.sleep(30)
    writer.tick(start + 125 * SECOND)
    writer.close()
    open_writer(tmp_path / "r", {**hello, "realtime_ns": start + 200 * SECOND, "from_ns": 0}, Retention(), {}, clock).close()
    ends = [((each["from_ns"] or 0) - start, (each["until_ns"] or 0) - start) for each in Recording(tmp_path / "r").facts.sessions]
    assert [each / SECOND for each, _ in ends] == [1, 121, 200]
    assert [each / SECOND for _, each in ends][:2] == [9, 125]
