# SPDX-License-Identifier: Apache-2.0
"""The recorder's loop, without a kernel and without time passing: what is taken in, how it ends,
what a death or a budget does."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from iolab.base.clock import FakeClock
from iolab.base.errors import RunError, UsageError
from iolab.recordings.record.settings import Budget, Settings
from iolab.recordings.store.write.writer import PutOffError
from support import frames
from support.recorder import Bench, FakeCommand, FakeProbe, FakeSink, Listener

SECOND = 1_000_000_000
Probes = Callable[[int, Sequence[str]], FakeProbe]


def probes(clock: FakeClock, **first: Any) -> Probes:
    """The first probe is as given, those after it are sound."""
    return lambda number, sources: FakeProbe(clock, sources, **(first if number == 0 else {}))


def test_a_duration_is_recorded_whole(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Settings(sources=("block", "counters"), duration=10.0))
    outcome = bench.run()
    assert (outcome.reason, outcome.failure, outcome.exit_code) == ("duration", None, None)
    assert bench.sink.rows == outcome.status.events["block"] == 100
    assert sum(batch.num_rows for batch in bench.sink.samples) == 10
    assert bench.sink.closed
    assert bench.sink.losses == []
    assert bench.launcher.launched[0].asked
    assert bench.launcher.launched[0].gone
    assert bench.launcher.closed
    assert sum(bench.listener.rates[1:-1]) == pytest.approx(80, rel=0.2)
    times = [value for batch in bench.sink.events for value in batch.column("time_ns").to_pylist()]
    assert times == sorted(times)
    assert len(set(times)) == 100


def test_the_columns_arrive_as_they_were_sent(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Settings(sources=("block",), duration=1.0))
    bench.run()
    rows = bench.sink.events[0].to_pylist()
    assert [row["op"] for row in rows[:2]] == ["read", "write"]
    assert [row["process"] for row in rows[:2]] == ["fio", "dd"]
    assert [row["offset_bytes"] for row in rows[:3]] == [0, None, 8192]
    assert {row["device"] for row in rows} == {"sda"}
    assert {row["source"] for row in rows} == {"block"}


def test_losses_are_kept_and_counted(tmp_path: Path) -> None:
    clock = FakeClock()
    bench = Bench(
        tmp_path, clock=clock, probes=lambda number, sources: FakeProbe(clock, sources, lose=3)
    )
    outcome = bench.run()
    assert outcome.status.lost == {"block": 30}
    assert [loss[0] for loss in bench.sink.losses] == ["overrun"] * 10
    assert sum(loss[4] or 0 for loss in bench.sink.losses) == 30


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ({"dies": 4.5}, "it ended (exit code 137): a fault of its own"),
        ({"damages": 4.5}, "its frames are damaged"),
        ({"mutes": 4.5}, "it said nothing for 15 s"),
    ],
)
def test_a_probe_that_dies_is_begun_again_and_the_gap_is_shown(
    first: dict[str, float], words: str, tmp_path: Path
) -> None:
    clock = FakeClock()
    bench = Bench(
        tmp_path,
        Settings(sources=("block",), duration=40.0),
        clock=clock,
        probes=probes(clock, **first),
    )
    outcome = bench.run()
    assert outcome.failure is None
    assert outcome.status.deaths == 1
    assert len(bench.launcher.launched) == 2
    assert bench.launcher.launched[0].gone
    [begun, (kind, source, from_ns, until_ns, count, said)] = bench.sink.losses
    assert begun == ("gap", "block", from_ns, None, None, said), "it is noted as soon as it begins"
    assert (kind, source, count) == ("gap", "block", None)
    assert until_ns is not None
    assert words in (said or "")
    assert [words in note for note in bench.listener.notes] == [True]
    last_before = outcome.status.from_ns + 4 * SECOND
    assert last_before - SECOND <= from_ns <= last_before + SECOND
    between = [
        value
        for batch in bench.sink.events
        for value in batch.column("time_ns").to_pylist()
        if from_ns < value < until_ns
    ]
    assert between == []
    # counts go on from those of the probe before
    assert outcome.status.events["block"] == bench.sink.rows > 200


def test_a_gap_ends_where_the_new_probe_covers_a_source(tmp_path: Path) -> None:
    """Its setup takes longer; what it recorded meanwhile lies in no gap."""
    clock = FakeClock()
    bench = Bench(
        tmp_path,
        Settings(sources=("block", "counters"), duration=20.0),
        clock=clock,
        probes=lambda number, sources: FakeProbe(
            clock, sources, dies=1e9 if number else 4.5, set_up_ns=200_000_000
        ),
    )
    bench.run()
    ends = {loss[1]: loss[3] for loss in bench.sink.losses if loss[3] is not None}
    assert ends["counters"] - ends["block"] == 200_000_000
    gap = next(loss for loss in bench.sink.losses if loss[1] == "block")
    times = [at for batch in bench.sink.events for at in batch.column("time_ns").to_pylist()]
    assert not [at for at in times if gap[2] < at < ends["block"]]
    assert min(at for at in times if at > gap[2]) == ends["block"]


def test_losses_of_a_dead_probe_stay_counted(tmp_path: Path) -> None:
    clock = FakeClock()
    bench = Bench(
        tmp_path,
        Settings(sources=("block",), duration=10.0),
        clock=clock,
        probes=probes(clock, dies=4.5, lose=5),
    )
    assert bench.run().status.lost == {"block": 20}


def test_a_probe_that_dies_at_once_again_and_again_is_given_up(tmp_path: Path) -> None:
    clock = FakeClock()
    bench = Bench(
        tmp_path,
        Settings(sources=("block",), duration=None),
        clock=clock,
        probes=lambda number, sources: FakeProbe(clock, sources, dies=1.5),
    )
    outcome = bench.run()
    assert outcome.reason == "failure"
    assert isinstance(outcome.failure, RunError)
    assert "begun 5 times again" in str(outcome.failure)
    assert len(bench.launcher.launched) == 6
    assert all(probe.gone for probe in bench.launcher.launched)
    assert bench.sink.closed
    assert clock.monotonic() < 60


def test_a_machine_out_of_reach_is_waited_for_however_long_and_said_once(tmp_path: Path) -> None:
    clock = FakeClock()
    bench = Bench(
        tmp_path,
        Settings(sources=("block",), duration=600.0),
        clock=clock,
        probes=lambda number, sources: FakeProbe(
            clock, sources, leaves=4.5 if number == 0 else 0.0 if number < 80 else 1e9
        ),
    )
    outcome = bench.run()
    assert outcome.failure is None
    assert outcome.status.deaths == 1
    assert len(bench.launcher.launched) == 81
    assert [note for note in bench.listener.notes if "out of reach" in note] == bench.listener.notes
    assert len(bench.listener.notes) == 1
    [_, (kind, source, from_ns, until_ns, _, said)] = bench.sink.losses
    assert until_ns is not None
    assert (kind, source, said) == ("gap", "block", "the machine is out of reach")
    assert until_ns - from_ns > 300 * SECOND
    assert outcome.status.events["block"] == bench.sink.rows > 200


def test_deaths_far_apart_do_not_add_up(tmp_path: Path) -> None:
    clock = FakeClock()
    bench = Bench(
        tmp_path,
        Settings(sources=("block",), duration=300.0),
        clock=clock,
        probes=lambda number, sources: FakeProbe(clock, sources, dies=30.0),
    )
    outcome = bench.run()
    assert outcome.failure is None
    assert outcome.status.deaths > Settings().tries


@pytest.mark.parametrize(
    ("code", "words", "kind", "hint"),
    [
        (3, "iolab-probe: not permitted: tracefs", RunError, "record as root: sudo "),
        (
            4,
            "iolab-probe: no tracefs is mounted: mount -t tracefs nodev /sys/kernel/tracing",
            RunError,
            "",
        ),
        (2, "iolab-probe: no source 'x'", UsageError, ""),
        (1, "panicked", RunError, ""),
    ],
)
def test_a_probe_that_refuses_is_one_error_and_leaves_no_recording(
    code: int, words: str, kind: type, hint: str, tmp_path: Path
) -> None:
    clock = FakeClock()
    bench = Bench(
        tmp_path / "rec",
        clock=clock,
        probes=lambda number, sources: FakeProbe(clock, sources, refuses=(code, words)),
    )
    error = bench.error()
    assert type(error) is kind
    assert words.removeprefix("iolab-probe: ") in str(error)
    assert hint in str(error)
    assert not (tmp_path / "rec").exists()
    assert not bench.sink.closed
    assert bench.launcher.closed


def test_a_probe_without_a_source_that_is_asked_for_is_refused(tmp_path: Path) -> None:
    clock = FakeClock()
    bench = Bench(
        tmp_path,
        Settings(sources=("block", "syscall")),
        clock=clock,
        probes=lambda number, sources: FakeProbe(clock, ("block",)),
    )
    assert "the probe can't record syscall" in str(bench.error())
    assert bench.launcher.launched[0].gone


def test_a_command_gives_the_length_the_exit_code_and_a_mark(tmp_path: Path) -> None:
    clock = FakeClock()
    bench = Bench(
        tmp_path, Settings(sources=("block",)), clock=clock, command=FakeCommand(clock, 4.0, code=3)
    )
    outcome = bench.run()
    assert (outcome.reason, outcome.exit_code) == ("command", 3)
    [mark] = bench.sink.marks
    assert (mark["label"], mark["kind"], mark["facts"]) == ("load", "user", {"exit_code": 3})
    assert mark["until_ns"] - mark["from_ns"] == pytest.approx(4 * SECOND, abs=SECOND / 2)


def test_a_second_request_to_stop_ends_the_command_by_force_where_it_must(tmp_path: Path) -> None:
    clock = FakeClock()
    command = FakeCommand(clock, 1000.0, stubborn=True)
    bench = Bench(tmp_path, Settings(sources=("block",)), clock=clock, command=command)
    bench.listener.each = lambda: bench.recorder.stop() if clock.monotonic() > 3 else None
    outcome = bench.run()
    assert outcome.reason == "stop"
    assert outcome.exit_code == 137
    assert command.signals[0] == 15
    assert command.signals[-1] == 9
    assert bench.sink.marks[0]["facts"] == {"exit_code": 137}


def test_a_full_disk_ends_the_recording_but_not_the_command(tmp_path: Path) -> None:
    clock = FakeClock()
    bench = Bench(
        tmp_path,
        Settings(sources=("block",)),
        clock=clock,
        sink=FakeSink(full_at=3),
        command=FakeCommand(clock, 20.0),
    )
    outcome = bench.run()
    assert outcome.exit_code == 0
    assert "No space left" in str(outcome.failure)
    assert clock.monotonic() >= 20
    assert bench.launcher.launched[0].gone
    assert len(bench.launcher.launched) == 1
    assert any(note.endswith("' continues") for note in bench.listener.notes)


def test_a_full_disk_without_a_command_ends_it_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Settings(sources=("block",)), sink=FakeSink(full_at=3))
    outcome = bench.run()
    assert outcome.reason == "failure"
    assert bench.clock.monotonic() < 6


def test_what_exceeds_the_budget_is_suspended_told_and_tried_again_later(tmp_path: Path) -> None:
    clock = FakeClock()
    made: list[tuple[float, Sequence[str]]] = []

    def probe(number: int, sources: Sequence[str]) -> FakeProbe:
        made.append((clock.monotonic(), tuple(sources)))
        return FakeProbe(clock, sources, cpu=0.8 if number == 0 else 0.01)

    settings = Settings(
        sources=("block", "syscall", "counters"), duration=100.0, budget=Budget(cpu_share=0.2)
    )
    bench = Bench(tmp_path, settings, clock=clock, probes=probe)
    outcome = bench.run()
    assert [sources for _, sources in made] == [
        ("block", "syscall", "counters"),
        ("syscall", "counters"),
        ("block", "syscall", "counters"),
    ]
    assert made[1][0] == pytest.approx(10, abs=2)
    assert made[2][0] - made[1][0] == pytest.approx(60, abs=3)
    gaps = [
        loss
        for loss in bench.sink.losses
        if loss[0] == "gap" and loss[1] == "block" and loss[3] is not None
    ]
    assert (gaps[0][3] or 0) - gaps[0][2] == pytest.approx(60 * SECOND, abs=4 * SECOND)
    assert "budget is 20 %" in (gaps[0][5] or "")
    assert outcome.status.suspended == {}
    assert outcome.failure is None
    assert any("suspended for 60 s" in note for note in bench.listener.notes)
    assert any("recorded again" in note for note in bench.listener.notes)


def test_a_source_alone_can_be_suspended_and_the_open_gap_is_shown_at_the_end(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    bench = Bench(
        tmp_path,
        Settings(sources=("block",), duration=30.0, budget=Budget(cpu_share=0.1)),
        clock=clock,
        probes=lambda number, sources: FakeProbe(clock, sources, cpu=0.9),
    )
    outcome = bench.run()
    assert outcome.status.suspended.keys() == {"block"}
    assert [(*loss[:2], loss[3] is None) for loss in bench.sink.losses] == [
        ("gap", "block", True),
        ("gap", "block", False),
    ]
    assert len(bench.launcher.launched) == 1


def test_the_recorders_own_cpu_counts_for_the_budget(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path,
        Settings(sources=("block",), duration=30.0, budget=Budget(cpu_share=0.2)),
        cpu_share=0.6,
    )
    assert bench.run().status.suspended.keys() == {"block"}


def test_status_is_published_every_second(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    bench = Bench(
        tmp_path,
        listener=Listener(
            each=lambda: seen.append(json.loads((tmp_path / "status.json").read_text()))
        ),
    )
    bench.run()
    assert len(seen) >= 9
    assert seen[5]["state"] == "recording"
    assert seen[8]["events"]["block"] > seen[2]["events"]["block"]
    last = json.loads((tmp_path / "status.json").read_text())
    assert last["state"] == "ended"
    assert last["events"] == {"block": 100}


def test_words_of_the_probe_are_passed_on(tmp_path: Path) -> None:
    clock = FakeClock()
    probe = FakeProbe(clock)
    probe._said = ["block_io_start is not there: no queue latency"]
    bench = Bench(tmp_path, clock=clock, probes=lambda number, sources: probe)
    bench.run()
    assert bench.listener.notes == ["block_io_start is not there: no queue latency"]


def test_what_the_disk_refuses_for_a_moment_is_put_off_and_said_once(tmp_path: Path) -> None:
    class Refusing(FakeSink):
        def tick(self, now_ns: int) -> None:
            super().tick(now_ns)
            if len(self.ticks) > 3:
                raise PutOffError("can't apply its limits: Too many open files", where="rec")

    bench = Bench(tmp_path, sink=Refusing())
    outcome = bench.run()
    assert (outcome.reason, outcome.failure) == ("duration", None)
    assert bench.sink.rows == 100
    assert outcome.status.troubles == ["rec: can't apply its limits: Too many open files"]
    assert bench.listener.notes == [
        "rec: can't apply its limits: Too many open files; it is tried again"
    ]


@pytest.mark.parametrize(
    "damage",
    [
        {"lost": []},
        {"lost": {"block": None}},
        {"now_ns": "soon"},
        {"now_ns": 1e400},
        {"cpu_ns": {}},
    ],
)
def test_a_frame_that_holds_what_it_should_not_is_a_death_of_the_probe(
    damage: dict[str, Any], tmp_path: Path
) -> None:
    clock = FakeClock()

    class Odd(FakeProbe):
        def _second(self) -> None:
            super()._second()
            if self._told == 3:
                self._out += frames.words(
                    "tick", **{"now_ns": 1, "monotonic_ns": 1, "realtime_ns": 1, **damage}
                )

    bench = Bench(
        tmp_path,
        clock=clock,
        probes=lambda number, sources: (Odd if number == 0 else FakeProbe)(clock, sources),
    )
    outcome = bench.run()
    assert outcome.failure is None
    assert outcome.status.deaths == 1
    assert len(bench.launcher.launched) == 2


def test_the_first_status_tells_how_large_it_is(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    bench = Bench(tmp_path / "rec")

    def opened(hello: Any) -> FakeSink:
        (tmp_path / "rec").mkdir()
        (tmp_path / "rec/recording.json").write_bytes(b"x" * 300)
        return bench.sink

    def settled() -> None:
        seen.append(json.loads((tmp_path / "rec/status.json").read_text()))

    bench.recorder._parts.open_sink, bench.recorder._parts.settled = opened, settled
    bench.run()
    assert seen[0]["bytes"] == 300
