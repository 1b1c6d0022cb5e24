# SPDX-License-Identifier: Apache-2.0
"""A statistic of a recording that grows: each column of time is reported once, as soon as it is
complete."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from iolab.base.clock import Clock
from iolab.base.errors import FormatError, UsageError
from iolab.base.files import open_for_reading

from ..store.base.lock import LOCK
from ..store.read.recording import Recording
from .answers.answers import Answer
from .engine.windows import Window, end_of
from .plan import plan
from .query import query, tiers_of
from .question import MOST, Question, Statistic

PATIENCE = 10.0
"""Seconds without progress after which a writer without a lock, or a reading, is no longer waited
for."""
AT_ONCE = 600
"""Columns of an answer, so that the past is reported in parts."""


@dataclass(frozen=True)
class Piece:
    """An answer to columns that became ready: those from `first_ns` up to `until_ns`."""

    answer: Answer
    first_ns: int
    until_ns: int


@dataclass(frozen=True)
class _State:
    """Until when everything is there; whether nothing more will come."""

    ready_ns: int
    over: bool


class Follower:
    """Asks a recording again and again while it grows."""

    def __init__(
        self,
        recording: Recording,
        asked: Statistic,
        *,
        interval_ns: int,
        clock: Clock,
        said: Callable[[str], object],
        from_ns: int | None = None,
        until_ns: int | None = None,
        source: str | None = None,
    ) -> None:
        """`said` hears why there is no answer yet. `from_ns`: where to begin; left open, now, or at
        the start of a recording that grows no more. `until_ns`: where to end."""
        self._recording, self._asked, self._interval, self._clock, self._source = (
            recording,
            asked,
            interval_ns,
            clock,
            source,
        )
        self._from_ns, self._until_ns, self._said = from_ns, until_ns, said
        self._seen = (0, clock.monotonic())
        self._until_words = math.inf
        self._waits = ""
        self._sessions = len(recording.facts.sessions)
        self._back = False

    def pieces(self) -> Iterator[Piece]:
        """Columns that follow each other, until the recording ends or `until_ns` is reached. Where
        it is begun again after the clock was set back, they go back with it, which is said. Errors
        as `query.query`."""
        state = self._state()
        at = self._begin(state)
        self._until_words = self._clock.monotonic() + PATIENCE
        while True:
            end = (
                state.ready_ns if state.over else state.ready_ns // self._interval * self._interval
            )
            if self._until_ns is not None:
                end = min(end, self._until_ns)
            end = min(end, at + AT_ONCE * self._interval)
            if at < end and (answer := self._answer(at, end, state)) is not None:
                yield Piece(answer, at, end)
                at = end
            elif state.over or (self._until_ns is not None and at >= self._until_ns):
                return
            else:
                self._clock.sleep(min(1.0, max(0.1, self._interval / 2e9)))
            if (newest := self._newest(at)) is not None:
                rest, at = (at, newest[0]), newest[1]
                if rest[0] < rest[1] and (answer := self._answer(*rest, state)) is not None:
                    yield Piece(answer, *rest)
            state = self._state()

    def _begin(self, state: _State) -> int:
        sessions = self._recording.facts.sessions
        span = self._recording.span()
        begun = [session.get("from_ns") for session in sessions] + [span[0] if span else None]
        starts = [start for start in begun if start is not None]
        first = min(starts, default=state.ready_ns)
        begin = (
            self._from_ns if self._from_ns is not None else first if state.over else state.ready_ns
        )
        # a moment before the recording has no columns
        begin = max(begin, first, state.ready_ns - MOST * self._interval)
        return begin // self._interval * self._interval

    def _newest(self, at: int) -> tuple[int, int] | None:
        """Of a new session that began before the time that was already reported: the end of the
        session before it, and where to continue."""
        sessions = self._recording.facts.sessions
        before, self._sessions = self._sessions, len(sessions)
        first = sessions[-1].get("from_ns") if len(sessions) > before > 0 else None
        if first is None or first >= at - self._interval:
            return None
        self._back = True
        ended = sessions[before - 1].get("until_ns") or at
        self._said(
            f"was begun again after the clock was set back by {(max(ended, at) - first) / 1e9:.0f} s: its times go back by that"
        )
        return ended if self._until_ns is None else min(
            ended, self._until_ns
        ), first // self._interval * self._interval

    def _answer(self, first_ns: int, until_ns: int, state: _State) -> Answer | None:
        try:
            answer = query(
                self._recording,
                self._asked,
                from_ns=first_ns,
                until_ns=until_ns,
                interval_ns=self._interval,
                source=self._source,
            )
        except (FormatError, UsageError) as error:
            late = self._clock.monotonic() > self._until_words
            if (state.over and not self._waits) or (
                late and isinstance(error, UsageError) and not self._is_recorded()
            ):
                raise
            if error.message != self._waits:
                self._said(error.message)
            self._waits = error.message
            return None
        self._waits = ""
        return answer

    def _is_recorded(self) -> bool:
        """Whether events that would answer are being recorded: of a quiet source there may be none
        for long."""
        return any(name in self._recording.facts.sources for name in self._asked.entry.sources)

    def _state(self) -> _State:
        facts = self._recording.facts
        last = facts.sessions[-1] if facts.sessions else {}
        span = self._recording.span()
        ended = last.get("until_ns") if last else (span[1] + 1 if span else 0)
        if isinstance(ended, int):
            return _State(ended if self._back else self._end(ended), True)
        written_ns = self._recording.told_ns() or last.get("from_ns") or 0
        now = self._clock.monotonic()
        if written_ns != self._seen[0]:
            self._seen = (written_ns, now)
        late = now - self._seen[1] > PATIENCE
        if late and not _has_writer(self._recording):
            return _State(
                written_ns
                if self._back
                else self._end(max(written_ns, span[1] + 1 if span else 0)),
                True,
            )
        return _State(written_ns if late else self._counted_until(written_ns), False)

    def _end(self, otherwise: int) -> int:
        """Where the answer to all of a recording that is over ends: before it was closed, which
        takes a while of which nothing is recorded.
        `otherwise`: where nothing answers."""
        try:
            window = self._window()
            return end_of(window.snap, window.source)
        except (FormatError, UsageError):
            return otherwise

    def _counted_until(self, told: int) -> int:
        """Of counters a column is ready once there is a reading after it; a missing reading is
        not waited for."""
        if self._asked.entry.counter is None:
            return told
        with contextlib.suppress(FormatError, UsageError):
            if (window := self._window()).snap.kind != "samples":
                return told
            ends = window.snap.bounds(window.source)
            if ends is not None:
                return max(min(told, ends[1]), told - round(PATIENCE * 1e9))
        return told

    def _window(self) -> Window:
        """The window of all that can be answered now."""
        question = Question.of(self._asked, (None, None), self._interval, 1, self._source)
        tiers = tiers_of(self._recording.frozen(), kept=False)
        return plan(question, tiers).frame.window


def _has_writer(recording: Recording) -> bool:
    """Whether a writer has the recording."""
    with (
        contextlib.suppress(OSError),
        os.fdopen(open_for_reading(recording.path / LOCK), "rb") as file,
    ):
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
