"""A machine whose clock is set, or that slept, while it is recorded: another probe goes on by the new time, and that is said."""

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


@pytest.mark.parametrize(("step", "words"), [
    (8 * 3600.0, "the clock went ahead by 8.00 h: it was set, or the machine slept"),
    (-61.0, "the clock was set back by 1.02 min;"),
    (-8 * 3600.0, "the clock was set back by 8.00 h;"),
])
def test_another_probe_goes_on_by_the_new_time(step: float, words: str, tmp_path: Path) -> None:
    clock = SetClock()
    one = bench(tmp_path, clock, {20.0: step})
    outcome = one.run()
    assert outcome.failure is None
    assert (outcome.status.deaths, outcome.status.state) == (0, "ended")
    assert len(one.launcher.launched) == 2
    [note] = one.listener.notes
    assert note.startswith(words)
    assert "recording goes on by the new time" in note
    assert outcome.status.troubles == [note.partition("; recording")[0]]
    assert abs(outcome.status.until_ns - clock.realtime_ns()) < 2 * SECOND
    assert one.sink.rows == outcome.status.events["block"] > 360
    times = [value for batch in one.sink.events for value in batch.column("time_ns").to_pylist()]
    assert times[-1] - times[0] == pytest.approx((40 + step) * SECOND, abs=3 * SECOND)
    # only time that is skipped is a gap
    gaps = [(loss[2], loss[3]) for loss in one.sink.losses if loss[0] == "gap"]
    assert [(until - first) / SECOND for first, until in gaps] == ([pytest.approx(step, abs=3)] if step > 0 else [])
    assert all(loss[5] == outcome.status.troubles[0] for loss in one.sink.losses)


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


def test_a_death_after_it_is_a_gap_by_the_new_time(tmp_path: Path) -> None:
    clock = SetClock()

    def probe(number: int, sources: Sequence[str]) -> FakeProbe:
        return FakeProbe(clock, sources, dies=5.5 if number == 1 else 1e9)

    one = bench(tmp_path, clock, {20.0: -500.0})
    one.launcher.probes = probe
    one.run()
    assert len(one.launcher.launched) == 3
    [(first, until)] = [(loss[2], loss[3]) for loss in one.sink.losses if loss[0] == "gap"]
    assert 0 < until - first < 3 * SECOND
    assert until < clock.realtime_ns()


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
