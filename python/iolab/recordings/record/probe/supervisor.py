# SPDX-License-Identifier: Apache-2.0
"""Supervision of the probe: its states, the restart of a dead probe, and the gaps in between."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from iolab._core import FrameReader
from iolab.base.clock import Clock
from iolab.base.errors import IolabError, RunError

from ...store.write.writer import LOSS_KINDS
from ..settings import Settings
from ..sinks.intake import Sink
from .launch import Launcher, Probe
from .program import failure

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0
_READS = 16
"""Megabytes taken in one go at most, so that others are heard in between."""


class ProbeState(Enum):
    """What the supervisor has and waits for.

    IDLE: no probe and none expected, before the first start or while every source is suspended.
    RUNNING: a probe records. WAITING: no probe, the next start has its time. STOPPING: recording
    ends, the probe hands over what it has. CLOSED: no probe any more, for good.
    """

    IDLE = auto()
    RUNNING = auto()
    WAITING = auto()
    STOPPING = auto()
    CLOSED = auto()


class ProbeEvent(Enum):
    """What changes the state.

    START: a probe was started. SUSPEND_ALL: it was time for a start, but every source is suspended.
    CHANGE_SOURCES: other sources were suspended or resumed. END: the probe ended as it was asked
    to. FAIL: it died, can't be reached or can't be started. STOP: recording ends. CLOSE: the probe
    is dropped at once.
    """

    START = auto()
    SUSPEND_ALL = auto()
    CHANGE_SOURCES = auto()
    END = auto()
    FAIL = auto()
    STOP = auto()
    CLOSE = auto()


TRANSITIONS: Mapping[ProbeState, Mapping[ProbeEvent, ProbeState]] = {
    ProbeState.IDLE: {
        ProbeEvent.START: ProbeState.RUNNING,
        ProbeEvent.CHANGE_SOURCES: ProbeState.WAITING,
        ProbeEvent.STOP: ProbeState.CLOSED,
        ProbeEvent.CLOSE: ProbeState.CLOSED,
    },
    ProbeState.RUNNING: {
        ProbeEvent.END: ProbeState.WAITING,
        ProbeEvent.FAIL: ProbeState.WAITING,
        ProbeEvent.STOP: ProbeState.STOPPING,
        ProbeEvent.CLOSE: ProbeState.CLOSED,
    },
    ProbeState.WAITING: {
        ProbeEvent.START: ProbeState.RUNNING,
        ProbeEvent.SUSPEND_ALL: ProbeState.IDLE,
        ProbeEvent.STOP: ProbeState.CLOSED,
        ProbeEvent.CLOSE: ProbeState.CLOSED,
    },
    ProbeState.STOPPING: {
        ProbeEvent.END: ProbeState.CLOSED,
        ProbeEvent.FAIL: ProbeState.CLOSED,
        ProbeEvent.CLOSE: ProbeState.CLOSED,
    },
    ProbeState.CLOSED: {},
}
"""The states that events lead to; an event that a state doesn't name leaves it as it is."""


class ProbeSupervisor:
    """Starts one probe after the other and yields their frames.

    Attributes:
        state: see `ProbeState`; changed by `TRANSITIONS` alone.
    """

    def __init__(self, settings: Settings, launcher: Launcher, clock: Clock) -> None:
        self._settings, self._launcher, self._clock = settings, launcher, clock
        self._probe: Probe | None = None
        self._reader = FrameReader()
        self.state = ProbeState.IDLE
        self._ended = False
        self._ahead: list[Mapping[str, Any]] = []
        self._suspended: dict[str, str] = {}
        self._renewed = ""
        self._gaps: dict[str, tuple[int, str]] = {}
        self._new_gaps: set[str] = set()
        self._heard_at = 0.0
        self._retry_at = math.inf
        self._deaths: deque[float] = deque()
        self._wrong = ""
        self._away = 0
        self._last_words: deque[str] = deque(maxlen=5)
        self._new_words: list[str] = []

    @property
    def running(self) -> bool:
        """Whether there is a probe."""
        return self._probe is not None

    def files(self) -> list[int]:
        """Descriptors to wait for."""
        return [] if self._probe is None else self._probe.files()

    def due(self) -> float:
        """Monotonic second of the probe's next start; infinite without one."""
        return self._retry_at if self.state is ProbeState.WAITING else math.inf

    def wait_for_hello(self, wait: Callable[[Sequence[int], float], None]) -> Mapping[str, Any]:
        """Begin the first probe and wait for its hello. Raises what it says where it can't
        begin."""
        self._launch()
        limit = self._clock.monotonic() + self._settings.begin_s
        while self._clock.monotonic() < limit:
            wait(self.files(), min(0.25, limit - self._clock.monotonic()))
            try:
                frames = list(self._frames(most=1))
            except ValueError as error:
                self.close()
                raise RunError(
                    f"what the probe says is not understood: {error}",
                    hint="run 'make setup', it builds both",
                ) from None
            for frame in frames:
                if frame["kind"] == "hello":
                    if missing := [
                        name for name in self._settings.sources if name not in frame["sources"]
                    ]:
                        raise RunError(f"the probe can't record {' and '.join(missing)}")
                    self._ahead = [other for other in frames if other is not frame]
                    return frame
            if self._wrong:
                probe = self._probe
                assert probe is not None
                self.close()
                self._collect(probe)
                if away := probe.away():
                    raise RunError(away)
                raise failure(probe.exit_code(), list(self._last_words))
        self.close()
        raise RunError(f"the probe says nothing within {self._settings.begin_s:.0f} s")

    def read_frames(self) -> Iterator[Mapping[str, Any]]:
        """Frames that came; none without a probe. Starts a probe at its time."""
        if self._clock.monotonic() >= self.due():
            self._retry_at = math.inf
            try:
                self._launch()
            except IolabError as error:
                self._wrong = str(error)
        ahead, self._ahead = self._ahead, []
        yield from ahead
        try:
            yield from self._frames(most=_READS)
        except ValueError as error:
            self._wrong = f"its frames are damaged: {error}"

    def reject(self, reason: str) -> None:
        """What the probe said made no sense: it is given up."""
        self._wrong = self._wrong or reason

    def take_messages(self) -> list[str]:
        """The probe's words since the last call."""
        words, self._new_words = self._new_words, []
        return words

    def handle_end(self, until_ns: int) -> Iterator[str]:
        """See to a probe that ended. Yields what befell it, in words; RunError once it is given up
        for good.

        Args:
            until_ns: up to where everything is there: gaps begin here.
        """
        probe = self._probe
        if probe is None and not self._wrong:
            return
        if probe is not None and not self._wrong and not self._ended:
            if self._clock.monotonic() - self._heard_at <= self._settings.patience_s:
                return
            self._wrong = f"it said nothing for {self._settings.patience_s:.0f} s"
        self._release()
        reason, self._wrong = self._wrong, ""
        if self._ended and not reason:
            self._after_its_end(until_ns)
            return
        yield from self._after_a_death(probe, reason, until_ns)

    def set_suspended(self, suspended: Mapping[str, str]) -> None:
        """Leave these sources out from now on, each for a reason in words: the probe is ended and
        begun again."""
        self._suspended = dict(suspended)
        if self._probe is not None:
            self._probe.ask_to_stop()
        else:
            self._change(ProbeEvent.CHANGE_SOURCES, self._clock.monotonic())

    def restart(self, words: str) -> None:
        """Have the probe end and another begun in its place, for a reason in words."""
        self._renewed = words
        if self._probe is not None:
            self._probe.ask_to_stop()

    def record_gap_ends(
        self,
        sink: Sink,
        now_ns: int,
        covered_ns: Mapping[str, int] | None = None,
        *,
        ended: bool = False,
    ) -> None:
        """Note the gaps that are over: those of all sources but the suspended ones, or of all where
        recording `ended`.

        Args:
            now_ns: where they end, in ns since 1970. covered_ns: where the new probe covers a
            source from an earlier moment on, by its name.
        """
        for name, (from_ns, words) in list(self._gaps.items()):
            if ended or name not in self._suspended:
                del self._gaps[name]
                until_ns = min(now_ns, (covered_ns or {}).get(name, now_ns))
                if until_ns > from_ns or name not in self._new_gaps:
                    sink.loss("gap", name, from_ns, max(from_ns, until_ns), None, words)
                self._new_gaps.discard(name)

    def record_gap_starts(self, sink: Sink) -> None:
        """Note the gaps that began: whatever happens until they are over, nothing is known from
        there on."""
        for name in sorted(self._new_gaps):
            from_ns, words = self._gaps[name]
            sink.loss("gap", name, from_ns, None, None, words)
        self._new_gaps.clear()

    def stop(self) -> None:
        """No probe is begun again; the running probe hands over its data."""
        self._change(ProbeEvent.STOP)
        if self._probe is not None:
            self._probe.ask_to_stop()

    def close(self) -> None:
        """No probe any more. Safe to call twice."""
        self._release()
        self._change(ProbeEvent.CLOSE)

    def _change(self, event: ProbeEvent, retry_at: float = math.inf) -> None:
        """Take the transition of an event. `retry_at`: when the next probe is started, where the
        new state waits for one."""
        self.state = TRANSITIONS[self.state].get(event, self.state)
        if self.state is ProbeState.WAITING:
            self._retry_at = retry_at

    def _release(self) -> None:
        probe, self._probe = self._probe, None
        if probe is not None:
            self._collect(probe)
            probe.let_go()

    def _launch(self) -> None:
        self._reader = FrameReader()
        self._ahead = []
        self._ended = False
        self._wrong = ""
        self._heard_at = self._clock.monotonic()
        if set(self._settings.sources) <= self._suspended.keys():
            self._change(ProbeEvent.SUSPEND_ALL)
            return  # nothing is left to record until a pause is over
        self._probe = self._launcher.launch(self._suspended)
        self._change(ProbeEvent.START)

    def _frames(self, most: int) -> Iterator[Mapping[str, Any]]:
        probe = self._probe
        if probe is None:
            return
        for _ in range(most):
            data = probe.read()
            if data is None:
                break
            if not data:
                if not self._ended:
                    self._wrong = self._wrong or "it ended"
                break
            self._heard_at = self._clock.monotonic()
            for frame in self._reader.feed(data):
                self._ended = self._ended or frame["kind"] == "end"
                self._away = 0
                yield check_frame(frame)
        self._new_words += self._collect(probe)

    def _collect(self, probe: Probe) -> list[str]:
        words = probe.words()
        self._last_words.extend(words)
        return words

    def _begin_gap(self, name: str, from_ns: int, words: str) -> None:
        if name not in self._gaps:
            self._gaps[name] = from_ns, words
            self._new_gaps.add(name)

    def _after_its_end(self, until_ns: int) -> None:
        """It ended as it was asked to: because recording ends, or to be begun again with other
        sources."""
        self._change(ProbeEvent.END, self._clock.monotonic())
        if self.state is not ProbeState.WAITING:
            return
        reasons, self._renewed = self._renewed or "another source was suspended or resumed", ""
        for name in self._settings.sources:
            why = self._suspended.get(name)
            self._begin_gap(name, until_ns, f"suspended: {why}" if why else reasons)

    def _after_a_death(self, probe: Probe | None, reason: str, until_ns: int) -> Iterator[str]:
        now = self._clock.monotonic()
        if away := "" if probe is None else probe.away():
            yield from self._after_a_loss(away, until_ns)
            return
        code = None if probe is None else probe.exit_code()
        how = f" (exit code {code})" if code is not None else ""
        said = f": {self._last_words[-1]}" if self._last_words else ""
        words = f"the probe died: {reason}{how}{said}"
        self._new_words = [line for line in self._new_words if line not in said]
        for name in self._settings.sources:
            self._begin_gap(name, until_ns, words)
        self._deaths.append(now)
        while now - self._deaths[0] > self._settings.calm_s:
            self._deaths.popleft()
        self._change(
            ProbeEvent.FAIL,
            now + min(_FIRST_PAUSE * 2.0 ** (len(self._deaths) - 1), _LONGEST_PAUSE),
        )
        if self.state is not ProbeState.WAITING:
            yield words
            return
        if len(self._deaths) > self._settings.tries:
            self._change(ProbeEvent.CLOSE)
            raise RunError(
                f"{words}; it was begun {self._settings.tries} times again within {self._settings.calm_s:.0f} s",
                hint="what was recorded is kept",
            )
        yield f"{words}; it is begun again"

    def _after_a_loss(self, away: str, until_ns: int) -> Iterator[str]:
        """The machine that the probe is on is out of reach: tried again until it is reached, and
        said once."""
        for name in self._settings.sources:
            self._begin_gap(name, until_ns, away)
        self._away += 1
        self._change(
            ProbeEvent.FAIL,
            self._clock.monotonic() + min(_FIRST_PAUSE * 2.0 ** (self._away - 1), _LONGEST_PAUSE),
        )
        if self.state is ProbeState.WAITING and self._away == 1:
            yield f"{away}; it is tried again until it is there"


# What the probe may say in words (frames of JSON): a frame that is whole may still hold nonsense,
# which goes no further than here.

_MOST_CPUS = 1 << 20
_MOST_PID = 1 << 32
_LONGEST = 60
"""Characters of a value that an error repeats."""

_Test = tuple[str, Callable[[object], bool]]


def _is_whole_below(most: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and 0 <= value < most


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _counts(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_whole_below(2**63), value.values()))


_TIME: _Test = (
    "a time in ns",
    _is_whole_below(2**62),
)  # moved by whatever a clock was set by, it is still one
_COUNT: _Test = ("a whole number", _is_whole_below(2**63))
_TIMES: _Test = (
    "times in ns by source",
    lambda value: isinstance(value, dict) and all(map(_is_whole_below(2**62), value.values())),
)
_TEXT: _Test = ("a text", lambda value: isinstance(value, str))
_TEXTS: _Test = ("a list of texts", _texts)
_COUNTS: _Test = ("whole numbers by source", _counts)

_NEEDED: Mapping[str, Mapping[str, _Test]] = {
    "hello": {
        "monotonic_ns": _TIME,
        "realtime_ns": _TIME,
        "sources": (
            "facts by source",
            lambda value: (
                isinstance(value, dict) and all(isinstance(facts, dict) for facts in value.values())
            ),
        ),
    },
    "tick": {"now_ns": _TIME, "monotonic_ns": _TIME, "realtime_ns": _TIME},
    "loss": {
        "source": _TEXT,
        "loss_kind": (
            f"one of {', '.join(LOSS_KINDS)}",
            lambda value: isinstance(value, str) and value in LOSS_KINDS,
        ),
        "from_ns": _TIME,
        "until_ns": _TIME,
    },
    "process": {
        "pid": ("a process number", _is_whole_below(_MOST_PID)),
        "process": _TEXT,
        "command": _TEXT,
        "first_ns": _TIME,
    },
    "note": {"words": _TEXT},
}
_PERHAPS: Mapping[str, Mapping[str, _Test]] = {
    "hello": {
        "from_ns": _TIME,
        "covered_ns": _TIMES,
        "hostname": _TEXT,
        "words": _TEXTS,
        "cpus": ("a number of processors", _is_whole_below(_MOST_CPUS)),
    },
    "tick": {"cpu_ns": _COUNT, "rss_bytes": _COUNT, "events": _COUNTS, "lost": _COUNTS},
    "loss": {"count": _COUNT, "words": _TEXT},
    "end": {
        "cpu_ns": _COUNT,
        "rss_bytes": _COUNT,
        "now_ns": _TIME,
        "events": _COUNTS,
        "lost": _COUNTS,
    },
}


def check_frame(frame: Mapping[str, Any]) -> Mapping[str, Any]:
    """A frame as it came. ValueError in words where one of JSON lacks a field, or has something
    else in it than it should.

    What may be missing may be null as well, and is missing then. Fields without a meaning here are
    let through.
    """
    kind = frame["kind"]
    for name, (what, holds) in _NEEDED.get(kind, {}).items():
        if name not in frame:
            raise ValueError(f"{kind} without '{_plain(name)}'")
        _check(kind, name, frame[name], what, holds)
    optional_fields = _PERHAPS.get(kind, {})
    for name, (what, holds) in optional_fields.items():
        if frame.get(name) is not None:
            _check(kind, name, frame[name], what, holds)
    return (
        {
            name: value
            for name, value in frame.items()
            if value is not None or name not in optional_fields
        }
        if optional_fields
        else frame
    )


def _check(kind: str, name: str, value: object, what: str, holds: Callable[[object], bool]) -> None:
    if not holds(value):
        # a number of thousands of digits can't even be printed
        said = (
            f"a number of {value.bit_length()} bits"
            if isinstance(value, int) and value.bit_length() > 128
            else repr(value)
        )
        said = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}..."
        raise ValueError(f"{kind} with '{_plain(name)}' that is not {what}: {said}")


def _plain(name: str) -> str:
    return name.removeprefix("loss_")
