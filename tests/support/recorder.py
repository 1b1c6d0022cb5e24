# SPDX-License-Identifier: Apache-2.0
"""A recorder's surroundings in memory: a probe that says what a test wants by the clock, a writer
that remembers, a listener."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from iolab.base.clock import FakeClock
from iolab.base.errors import IolabError, RunError
from iolab.recordings.record.control import Client
from iolab.recordings.record.recorder import Outcome, Parts, Recorder
from iolab.recordings.record.settings import Settings
from iolab.recordings.record.sinks.intake import Sink
from iolab.recordings.record.status import Status
from support import frames


@dataclass
class FakeProbe:
    """Says hello at once, then events and a tick each second, as long as it lives.

    Attributes:
        rate: events a second and source. dies, damages, mutes, leaves: seconds after its start at
        which it does so; one that leaves is
            out of reach then.
        set_up_ns: how long it works after its sources are covered, before it says hello.
        lose: events lost each second. cpu: share of one CPU that it takes. refuses: (exit code,
        words) in place of beginning.
    """

    clock: FakeClock
    sources: Sequence[str] = ("block",)
    rate: int = 10
    dies: float = 1e9
    damages: float = 1e9
    mutes: float = 1e9
    leaves: float = 1e9
    set_up_ns: int = 0
    lose: int = 0
    cpu: float = 0.01
    refuses: tuple[int, str] | None = None
    pid: int = 77
    asked: bool = False
    gone: bool = False
    _out: bytes = b""
    _ended: bool = False
    _told: int = 0
    _said: list[str] = field(default_factory=list)
    _so_far: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._begun = self.clock.monotonic()
        if self.refuses is not None:
            self._ended, self._said = True, [self.refuses[1]]
            return
        if self.leaves <= 0:
            self._ended = True
            return
        self._so_far = dict.fromkeys(self.sources, 0)
        self._anchor_ns = self.clock.realtime_ns()
        self._out = frames.hello(
            self._anchor_ns,
            self.sources,
            monotonic_ns=round(self._begun * 1e9),
            set_up_ns=self.set_up_ns,
        )

    def files(self) -> list[int]:
        return []

    def read(self) -> bytes | None:
        self._live()
        data, self._out = self._out, b""
        return data or (b"" if self._ended else None)

    def words(self) -> list[str]:
        said, self._said = self._said, []
        return said

    def ask_to_stop(self) -> None:
        self.asked = True

    def exit_code(self) -> int | None:
        return (
            self.refuses[0]
            if self.refuses is not None
            else 137
            if self._ended and not self.asked
            else 0
        )

    def away(self) -> str:
        return (
            "the machine is out of reach"
            if self.clock.monotonic() - self._begun >= self.leaves
            else ""
        )

    def let_go(self) -> None:
        self.gone = True

    def _live(self) -> None:
        passed = self.clock.monotonic() - self._begun
        if self._ended or passed >= self.mutes:
            return
        while self._told + 1 <= min(passed, self.dies, self.leaves):
            self._second()
        if passed >= self.leaves:
            self._ended = True
        elif passed >= self.dies:
            self._ended, self._said = True, ["a fault of its own"]
        elif passed >= self.damages:
            self._out += b"noise" * 10
            self._ended = True
        elif self.asked:
            self._out += frames.words(
                "end",
                reason="asked",
                events=self._so_far,
                lost=dict.fromkeys(self.sources, self.lose * self._told),
            )
            self._ended = True

    def _second(self) -> None:
        self._told += 1
        # as told by the clocks at its start, whatever the time of day is set to
        start = self._anchor_ns + (self._told - 1) * 10**9
        clocks = round(self.clock.monotonic() * 1e9), self.clock.realtime_ns()
        for name in self.sources:
            if name == "counters":
                new = (["sda"], ["reads"]) if self._told == 1 else ([], [])
                self._out += frames.samples("diskstats", [(start, 0, 0, self._told)], *new)
                continue
            self._out += frames.some_events(name, start, self.rate, first=self._told == 1)
            self._so_far[name] += self.rate
            if self.lose:
                self._out += frames.words(
                    "loss",
                    source=name,
                    loss_kind="overrun",
                    from_ns=start,
                    until_ns=start + 10**9,
                    count=self.lose,
                )
        lost = dict.fromkeys(self.sources, self.lose * self._told)
        self._out += frames.tick(
            start + 10**9, self._so_far, lost, round(self.cpu * self._told * 1e9), clocks
        )


@dataclass
class FakeLauncher:
    """Launches what `probes` makes of the number of the launch (from 0) and the sources asked for."""

    probes: Callable[[int, Sequence[str]], FakeProbe]
    sources: Sequence[str] = ("block",)
    launched: list[FakeProbe] = field(default_factory=list)
    left_out: list[set[str]] = field(default_factory=list)
    closed: bool = False

    def launch(self, without: Collection[str] = ()) -> FakeProbe:
        self.left_out.append(set(without))
        self.launched.append(
            self.probes(len(self.launched), [name for name in self.sources if name not in without])
        )
        return self.launched[-1]

    def close(self) -> None:
        self.closed = True


class FakeSink(Sink):
    """Remembers what it was given; `full_at`: the number of the batch that no longer fits."""

    def __init__(self, full_at: int | None = None) -> None:
        self.events: list[pa.RecordBatch] = []
        self.samples: list[pa.RecordBatch] = []
        self.losses: list[tuple[str, str, int, int | None, int | None, str | None]] = []
        self.marks: list[dict[str, Any]] = []
        self.processes: list[tuple[int, str, str, int]] = []
        self.taken: list[tuple[Path, str, int, int]] = []
        self.seals = 0
        self.ticks: list[int] = []
        self.closed = False
        self._full_at = full_at

    def append_events(self, batch: pa.RecordBatch) -> None:
        if self._full_at is not None and len(self.events) >= self._full_at:
            raise RunError("can't keep events: No space left on device")
        self.events.append(batch)

    def append_samples(self, batch: pa.RecordBatch) -> None:
        self.samples.append(batch)

    def loss(
        self,
        kind: str,
        source: str,
        from_ns: int,
        until_ns: int | None,
        count: int | None,
        words: str | None = None,
    ) -> None:
        self.losses.append((kind, source, from_ns, until_ns, count, words))

    def mark(
        self,
        label: str,
        from_ns: int,
        until_ns: int | None,
        kind: str = "user",
        link: str | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.marks.append(
            {
                "label": label,
                "from_ns": from_ns,
                "until_ns": until_ns,
                "kind": kind,
                "link": link,
                "facts": facts,
            }
        )

    def process(self, pid: int, process: str, command: str, first_ns: int) -> None:
        self.processes.append((pid, process, command, first_ns))

    def take_in(self, origin: Path, label: str, from_ns: int, until_ns: int) -> int:
        self.taken.append((origin, label, from_ns, until_ns))
        return 1

    def seal(self) -> None:
        self.seals += 1

    def tick(self, now_ns: int) -> None:
        self.ticks.append(now_ns)

    def close(self) -> None:
        self.closed = True

    @property
    def rows(self) -> int:
        return sum(batch.num_rows for batch in self.events)


@dataclass
class FakeCommand:
    """Runs for so many seconds of the clock."""

    clock: FakeClock
    seconds: float
    code: int = 0
    stubborn: bool = False
    text: str = "load"
    signals: list[int] = field(default_factory=list)
    _end: float | None = None

    def start(self) -> None:
        self._end = self.clock.monotonic() + self.seconds

    def exit_code(self) -> int | None:
        if self._end is None or self.clock.monotonic() < self._end:
            return None
        return self.code

    def end(self, number: int = 15) -> None:
        self.signals.append(int(number))
        if not self.stubborn or number == 9:
            self._end, self.code = self.clock.monotonic(), 128 + int(number)


class FakeControl:
    """Asks each request once so many seconds passed; `answers` has when each was answered, after
    how many seals, and what it says."""

    def __init__(
        self, clock: FakeClock, sink: FakeSink, requests: Sequence[tuple[float, dict[str, Any]]]
    ) -> None:
        self.answers: list[dict[str, Any]] = []
        self._clock, self._sink, self._waiting = clock, sink, list(requests)

    def files(self) -> list[int]:
        return []

    def serve(self, obey: Callable[[dict[str, Any], Client], None]) -> None:
        while self._waiting and self._clock.monotonic() >= self._waiting[0][0]:
            obey(self._waiting.pop(0)[1], _Peer(self))

    def told(self, words: Mapping[str, Any]) -> None:
        self.answers.append({"at": self._clock.monotonic(), "sealed": self._sink.seals, **words})

    def close(self) -> None:
        pass


class _Peer(Client):
    def __init__(self, control: FakeControl) -> None:
        self.gone, self._control = False, control

    def answer(self, words: Mapping[str, Any]) -> None:
        self._control.told(words)


@dataclass
class Listener:
    """Remembers what it heard; `each` is called every second."""

    notes: list[str] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    hello: Mapping[str, Any] | None = None
    each: Callable[[], None] = lambda: None

    def begin(self, hello: Mapping[str, Any]) -> None:
        self.hello = hello

    def second(self, status: Status, events_per_s: float) -> None:
        self.rates.append(events_per_s)
        self.each()

    def notice(self, text: str) -> None:
        self.notes.append(text)


@dataclass
class Bench:
    """A recorder with everything around it fake."""

    directory: Path
    settings: Settings = field(default_factory=lambda: Settings(sources=("block",), duration=10.0))
    probes: Callable[[int, Sequence[str]], FakeProbe] | None = None
    sink: FakeSink = field(default_factory=FakeSink)
    command: FakeCommand | None = None
    listener: Listener = field(default_factory=Listener)
    clock: FakeClock = field(default_factory=FakeClock)
    cpu_share: float = 0.0
    requests: Sequence[tuple[float, dict[str, Any]]] = ()
    far: bool = False

    def __post_init__(self) -> None:
        self.control = FakeControl(self.clock, self.sink, self.requests)
        made = self.probes or (lambda number, sources: FakeProbe(self.clock, sources))
        self.launcher = FakeLauncher(made, self.settings.sources)
        self.recorder = Recorder(
            self.settings,
            Parts(
                launcher=self.launcher,
                open_sink=lambda hello: self.sink,
                clock=self.clock,
                heard=self.listener,
                directory=self.directory,
                cpu_ns=lambda: round(self.clock.monotonic() * self.cpu_share * 1e9),
                command=self.command,
                cpus=2,
                far=self.far,
                control=lambda: self.control,  # type: ignore[arg-type, return-value]
                wait=lambda files, seconds: self.clock.sleep(max(seconds, 0.001)),
            ),
        )

    def run(self) -> Outcome:
        return self.recorder.run()

    def error(self) -> IolabError:
        try:
            self.run()
        except IolabError as error:
            return error
        raise AssertionError("nothing went wrong")
