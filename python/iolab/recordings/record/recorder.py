# SPDX-License-Identifier: Apache-2.0
"""The recorder: one plain loop that reads the probe, writes the recording, and answers whoever
speaks to it."""

from __future__ import annotations

import contextlib
import math
import select
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from iolab.base.clock import Clock
from iolab.base.errors import IolabError, ResultsError, RunError

from ..store.base.metadata import STEP_NS
from ..store.write.writer import PutOffError
from .budget import BudgetKeeper, SizeWatch
from .command import Recorded
from .control import Client, Control, mark_of
from .probe.launch import Launcher
from .probe.supervisor import ProbeSupervisor
from .recording_clock import OwnTime, move_frame, words_of_step
from .settings import Settings
from .sinks.intake import Intake, Sink
from .status import Status, write_status


class Heard(Protocol):
    """Whoever watches."""

    def begin(self, hello: Mapping[str, Any]) -> None:
        """The first probe is at work; `hello` is what it said."""

    def second(self, status: Status, events_per_s: float) -> None:
        """A second passed."""

    def notice(self, text: str) -> None:
        """Something that a user should know."""


@dataclass(frozen=True)
class Outcome:
    """How a recording ended.

    Attributes:
        reason: `duration`, `command`, `stop` (asked by a user or a word), `failure`.
        failure: why it ended before its time, None where it did not. exit_code: the command's, None
        without one. seconds: how long was recorded.
    """

    status: Status
    reason: str
    failure: IolabError | None
    exit_code: int | None
    seconds: float


@dataclass
class Parts:
    """What a recorder works with.

    Attributes:
        launcher: starts probes. open_sink: called with the first hello; the writer is made then,
        when it is known that there is something to write.
        clock, wait: time; `wait(files, seconds)` returns once a file is readable, or the seconds
        passed.
        cpu_ns: CPU time of this process so far. control: makes the control socket; None for none.
        settled: called once the command was started. cpus: of this machine. cuts: requested and not
        done yet. far: whether the probe is on another machine. restarted: called with the hello of each
        probe after the first.
    """

    launcher: Launcher
    open_sink: Callable[[Mapping[str, Any]], Sink]
    clock: Clock
    heard: Heard
    directory: Path
    cpu_ns: Callable[[], int]
    wait: Callable[[Sequence[int], float], None]
    control: Callable[[], Control] | None = None
    command: Recorded | None = None
    settled: Callable[[], object] = lambda: None
    cpus: int = 1
    far: bool = False
    restarted: Callable[[Mapping[str, Any]], object] = lambda hello: None
    cuts: list[tuple[int, Client]] = field(default_factory=list)


def wait_readable(files: Sequence[int], seconds: float) -> None:
    """Until one of the files is readable, at most so long."""
    poller = select.poll()
    for number in files:
        poller.register(number, select.POLLIN)
    poller.poll(max(seconds, 0.0) * 1000)


LONGEST_WAIT = 0.25
"""Seconds between looks at signals and commands."""
_GRACE = 5.0
"""Seconds that a command has to end after a SIGTERM."""
_LAST_WORDS = 10.0
"""Seconds that a probe has to hand over what it has."""
_RENEW_AFTER = 10.0
"""Seconds between two looks at what the clock was set by; a clock that is set all the time is
followed that often."""
_SAY_AGAIN = 3600.0
"""Seconds until what is put off for the same reason as before is said again."""


class Recorder:
    """Records until its time is over, its command ended, it receives a stop request, or it can't
    continue."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self._settings, self._parts, self._clock = settings, parts, parts.clock
        self.status = Status()
        self._budget = BudgetKeeper(settings.budget, parts.cpus)
        self._probe = ProbeSupervisor(settings, parts.launcher, parts.clock)
        self._time = OwnTime(parts.clock, parts.far)
        self._control: Control | None = None
        self._sink: Sink | None = None
        self._intake: Intake | None = None
        self._size = SizeWatch(parts.directory, parts.clock)
        self._stops = 0
        self._failure: IolabError | None = None
        self._begun = self._second_at = 0.0
        self._events_before = 0
        self._cpu_before = parts.cpu_ns()
        self._probe_cpus = 1
        self._stepped_at = -math.inf
        self._said_ns = 0
        self._command_ns: tuple[int, int | None] = (0, None)
        self._put_off: dict[str, float] = {}

    def stop(self, *, now: bool = False) -> None:
        """Ask it to stop: once ends it as soon as its command, where there is one, has ended;
        twice, or `now`, ends the command too.

        Safe in a signal handler.
        """
        self._stops += 2 if now else 1

    def own_ns(self, machine_ns: int) -> int:
        """The recording's time of a time by the machine's clock; see `OwnTime.of`."""
        return self._time.of(machine_ns)

    def run(self) -> Outcome:
        """Record. Raises where it can't even begin; what befalls it later is in the outcome."""
        try:
            hello = self._probe.wait_for_hello(self._parts.wait)
            self._open(hello)
            while (reason := self._over()) is None:
                self._round(LONGEST_WAIT)
            self._end_command()
            self._drain()
            return self._finish(reason)
        finally:
            self._close()

    def _open(self, hello: Mapping[str, Any]) -> None:
        self._sink = self._parts.open_sink(hello)
        self._time.begin(hello)
        self.status.from_ns = self.status.until_ns = self._time.begun.from_ns
        self._probe_cpus = max(1, int(hello.get("cpus") or 1))
        self._intake = Intake(self._sink, self.status, self._notice)
        if self._parts.control is not None:
            try:
                self._control = self._parts.control()
            except RunError as error:
                self._notice(str(error))
        self._begun = self._second_at = self._clock.monotonic()
        self._parts.heard.begin(hello)
        for words in hello.get("words", ()):
            self._notice(str(words))
        self.status.bytes = self._size.bytes()
        self._publish()
        if self._parts.command is not None:
            self._command_ns = self._time.now_ns(), None
            self._parts.command.start()
        self._parts.settled()

    def _over(self) -> str | None:
        """Why it is over, None while it isn't."""
        command = self._parts.command
        if self._command_code() is not None:
            return "command"
        if self._failure is not None:
            return None if command is not None and self._stops == 0 else "failure"
        # at a terminal the command got the first Ctrl-C as well, and ends as it sees fit
        if self._stops > (1 if command is not None else 0):
            return "stop"
        passed = self._clock.monotonic() - self._begun
        if self._settings.duration is not None and passed >= self._settings.duration:
            return "duration"
        return None

    def _round(self, longest: float) -> None:
        now = self._clock.monotonic()
        files = [
            *self._probe.files(),
            *(self._control.files() if self._control is not None else ()),
        ]
        ends = [self._second_at + 1.0, self._probe.due()]
        if self._settings.duration is not None:
            ends.append(self._begun + self._settings.duration)
        self._parts.wait(files, max(0.0, min(longest, *(end - now for end in ends))))
        if self._failure is None:
            try:
                self._take()
            except IolabError as error:
                self._fail(error)
        if self._control is not None:
            self._control.serve(self._obey)
        if self._clock.monotonic() >= self._second_at + 1.0:
            self._each_second()

    def _take(self) -> None:
        assert self._sink is not None
        assert self._intake is not None
        for frame in self._probe.read_frames():
            try:
                if frame["kind"] == "hello":
                    frame = self._begin_again(frame)
                else:
                    frame = move_frame(frame, self._time.moved_ns)
                self._intake.take(frame)
                if frame["kind"] == "tick":
                    self._look_at_clock(frame)
                    self._tend()
                    self._settle_cuts()
            except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
                self._probe.reject(f"its frames are damaged: {error}")
        for words in self._probe.handle_end(self._intake.until_ns):
            self.status.deaths += 1
            self.status.state = "waiting"
            self.status.troubles.append(words)
            self._notice(words)
        self._probe.record_gap_starts(self._sink)
        for words in self._probe.take_messages():
            self._notice(words)

    def _begin_again(self, hello: Mapping[str, Any]) -> Mapping[str, Any]:
        """Another probe is at work. Returns its words by the recording's time."""
        assert self._sink is not None
        assert self._intake is not None
        before = self._time.begun
        hello = self._time.begin_again(hello, self._intake.until_ns)
        begun = self._time.begun
        self._parts.restarted(hello)
        self._intake.begin()
        self._probe.record_gap_ends(self._sink, begun.from_ns, hello.get("covered_ns", {}))
        is_set = before.set_by(begun.monotonic_ns, begun.realtime_ns) != 0
        self.status.until_ns = begun.from_ns if is_set else max(self.status.until_ns, begun.from_ns)
        self.status.state = "recording"
        return hello

    def _look_at_clock(self, tick: Mapping[str, Any]) -> None:
        """The probe's times continue as if the clock had not been set. Where it went ahead, another
        probe's are right again; where it was set back they would come twice."""
        step, now = (
            self._time.tick(int(tick["monotonic_ns"]), int(tick["realtime_ns"])),
            self._clock.monotonic(),
        )
        if not step:
            self._said_ns = 0
            return
        said = step < 0 and abs(step - self._said_ns) <= STEP_NS
        if said or now - self._stepped_at < _RENEW_AFTER:
            return
        self._stepped_at, self._said_ns = now, step
        words = words_of_step(step)
        self.status.troubles.append(words)
        if step < 0:
            self._notice(words)
            return
        self._notice(f"{words}; recording continues with the new time")
        self._probe.restart(words)

    def _tend(self) -> None:
        """Seal and drop segments at their time. What the disk refuses is tried again later: what
        comes is kept meanwhile."""
        assert self._sink is not None
        try:
            self._sink.tick(self.status.until_ns)
        except PutOffError as error:
            self._say_put_off(error)

    def _say_put_off(self, error: ResultsError) -> None:
        words, now = str(error), self._clock.monotonic()
        if now - self._put_off.get(words, -math.inf) >= _SAY_AGAIN:
            self._put_off[words] = now
            self.status.troubles.append(words)
            self._notice(f"{words}; it is tried again")

    def _fail(self, error: IolabError) -> None:
        self._failure = error
        self.status.state = "ended"
        self.status.troubles.append(str(error))
        self._probe.close()
        if self._parts.command is not None:
            self._notice(f"recording ended: {error}; '{self._parts.command.text}' continues")

    def _each_second(self) -> None:
        now = self._clock.monotonic()
        events = sum(self.status.events.values())
        rate = (events - self._events_before) / (now - self._second_at)
        self._events_before, self._second_at = events, now
        self.status.seconds = now - self._begun
        self.status.bytes = self._size.bytes()
        self.status.recorder_cpu_ns = self._parts.cpu_ns() - self._cpu_before
        self._publish()
        if self._failure is None:
            self._keep_budget(now)
            self._parts.heard.second(self.status, rate)

    def _keep_budget(self, now: float) -> None:
        self._budget.spent(now, self._cost_ns(), self.status.bytes, self.status.events)
        running = [
            name for name in self._settings.sources if name not in self._budget.suspended_sources
        ]
        resumed = self._budget.due(now)
        excess = None if resumed else self._budget.excess(running)
        if resumed:
            self._notice(f"{', '.join(resumed)}: recorded again")
            for name in resumed:
                self.status.suspended.pop(name, None)
        elif excess is not None:
            pause = self._budget.suspend(excess.source, now)
            self.status.suspended[excess.source] = excess.words
            self.status.troubles.append(f"{excess.source} was suspended: {excess.words}")
            self._notice(
                f"{excess.source} is suspended for {pause:.0f} s: {excess.words} (--budget)"
            )
        else:
            return
        self._budget.forget()
        self._probe.set_suspended(dict(self.status.suspended))

    def _cost_ns(self) -> int:
        """CPU time of probe and recorder, as of this machine's CPUs; of two machines, that of the
        one which bears more."""
        probe, own = self.status.probe_cpu_ns, self.status.recorder_cpu_ns
        return (
            max(probe * self._parts.cpus // self._probe_cpus, own)
            if self._parts.far
            else probe + own
        )

    def _obey(self, request: dict[str, Any], client: Client) -> None:
        word = request.get("word")
        try:
            if word == "status":
                client.answer(self._answer_status())
            elif word == "stop":
                self.stop(now=True)
                client.answer({"ok": True})
            elif self._failure is not None:
                client.answer({"ok": False, "error": f"recording ended: {self._failure}"})
            elif word == "mark":
                client.answer({"ok": True, **self._mark(request)})
            elif word == "take":
                client.answer({"ok": True, "segments": self._take_in(request)})
            elif word == "cut":
                now = self._time.now_ns()
                if request.get("label"):
                    self._mark(
                        {"label": request["label"], "from_ns": now, "until_ns": now, "own": True}
                    )
                self._parts.cuts.append((now, client))
            else:
                client.answer(
                    {
                        "ok": False,
                        "error": f"unknown word {word!r}; there are: status, cut, mark, take, stop",
                    }
                )
        except ValueError as error:
            client.answer({"ok": False, "error": f"not understood: {error}"})
        except IolabError as error:
            # what can't be noted now costs whoever asked, not the recording
            client.answer({"ok": False, "error": str(error)})

    def _answer_status(self) -> dict[str, Any]:
        return {
            "ok": True,
            **self.status.as_data(),
            "now_ns": self._time.now_ns(),
            "ahead_ns": self._time.ahead_ns,
            "cost_ns": self._cost_ns(),
            "cpus": self._parts.cpus,
        }

    def _mark(self, request: Mapping[str, Any]) -> dict[str, int | None]:
        """Note a mark; returns its ends by the recording's time."""
        assert self._sink is not None
        mark = mark_of(request)
        ends = mark.from_ns, mark.until_ns
        if not mark.own:
            until = None if mark.until_ns is None else self._time.of(mark.until_ns)
            ends = self._time.of(mark.from_ns, until), until
        self._sink.mark(mark.label, *ends, mark.kind, mark.link, mark.facts)
        return dict(zip(("from_ns", "until_ns"), ends, strict=True))

    def _take_in(self, request: Mapping[str, Any]) -> int:
        """Take in what another recording holds of a span of time; how many segments that were."""
        assert self._sink is not None
        span = mark_of(request)
        path = request.get("path")
        if (
            not isinstance(path, str)
            or not path.startswith("/")
            or "\0" in path
            or span.until_ns is None
        ):
            raise ValueError("path is not an absolute path, or until_ns is missing")
        return self._sink.take_in(Path(path), span.label, span.from_ns, span.until_ns)

    def _settle_cuts(self, *, all_of_them: bool = False) -> None:
        """Seal once everything up to the cut is there."""
        cuts = [cut for cut in self._parts.cuts if all_of_them or cut[0] <= self.status.until_ns]
        if not cuts:
            return
        assert self._sink is not None
        self._parts.cuts = [cut for cut in self._parts.cuts if cut not in cuts]
        try:
            self._sink.seal()
            answer = self._answer_status()
        except ResultsError as error:
            self._say_put_off(error)
            answer = {"ok": False, "error": str(error)}
        for _, client in cuts:
            client.answer(answer)

    def _command_code(self) -> int | None:
        """How the command ended, None while it runs or where there is none."""
        code = None if self._parts.command is None else self._parts.command.exit_code()
        from_ns, until_ns = self._command_ns
        if code is not None and until_ns is None:
            self._command_ns = from_ns, self._time.now_ns()
        return code

    def _end_command(self) -> None:
        """A command that still runs is ended while its I/O is recorded."""
        command = self._parts.command
        for number in (signal.SIGTERM, signal.SIGKILL):
            limit = self._clock.monotonic() + _GRACE
            while (
                command is not None
                and self._command_code() is None
                and self._clock.monotonic() < limit
            ):
                command.end(number)
                self._round(0.1)

    def _drain(self) -> None:
        """Take what the probe still has."""
        self._probe.stop()
        limit = self._clock.monotonic() + _LAST_WORDS
        while self._failure is None and self._probe.running and self._clock.monotonic() < limit:
            self._round(0.1)

    def _finish(self, reason: str) -> Outcome:
        command = self._parts.command
        code = self._command_code()
        seconds = self._clock.monotonic() - self._begun
        try:
            assert self._sink is not None
            if self._failure is None:
                self._probe.record_gap_ends(self._sink, self._time.now_ns(), ended=True)
                if command is not None and code is not None:
                    self._sink.mark(
                        command.text, *self._command_ns, "user", None, {"exit_code": code}
                    )
            sink, self._sink = self._sink, None
            self._settle_cuts_before_close(sink)
            sink.close()
        except IolabError as error:
            self._failure = self._failure or error
        self.status.state = "ended"
        self.status.bytes = self._size.bytes(at_once=True)
        self.status.recorder_cpu_ns = self._parts.cpu_ns() - self._cpu_before
        self._publish()
        return Outcome(self.status, reason, self._failure, code, seconds)

    def _settle_cuts_before_close(self, sink: Sink) -> None:
        if self._parts.cuts:
            self._sink = sink
            self._settle_cuts(all_of_them=True)
            self._sink = None

    def _close(self) -> None:
        """Whatever happened: no probe, no socket, no lock is left, and no command without a process
        that waits for it."""
        command = self._parts.command
        if command is not None and command.exit_code() is None:
            command.end()
        self._probe.close()
        self._parts.launcher.close()
        if self._control is not None:
            self._control.close()
        if self._sink is not None:
            with contextlib.suppress(IolabError):
                self._sink.close()

    def _publish(self) -> None:
        write_status(self._parts.directory, self.status, self._time.machine_ns())

    def _notice(self, text: str) -> None:
        self._parts.heard.notice(text)
