# SPDX-License-Identifier: Apache-2.0
"""The recording's own time, which continues where the machine's clock is set back. The times of a later
probe, and of marks that are given by that clock, are moved to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from iolab.base.clock import Clock
from iolab.base.units import UNITS, format_number

from ..store.base.metadata import STEP_NS, Begun

_TIMES = {
    "hello": ("realtime_ns", "from_ns"),
    "tick": ("now_ns",),
    "end": ("now_ns",),
    "loss": ("from_ns", "until_ns"),
    "process": ("first_ns",),
}
_TIMES_BY_SOURCE = {"hello": ("covered_ns",)}
"""Fields of a frame that are times. A tick's clocks stay as they are: they tell how the machine's
is set."""


def moved_by(before: Begun, begun: Begun, until_ns: int) -> int:
    """By how many ns the times of a probe are to be moved ahead, so that none is before
    `until_ns`, up to where there is something.

    Args:
        before: how the probe before it began, by the recording's time. begun: how this one did, by
        the machine's.
    """
    step, early = before.set_by(begun.monotonic_ns, begun.realtime_ns), until_ns - begun.from_ns
    return max(early, -step) if early > 0 else 0


def move_frame(frame: Mapping[str, Any], by_ns: int) -> Mapping[str, Any]:
    """The frame with its times moved ahead by `by_ns`."""
    if not by_ns:
        return frame
    if frame["kind"] in ("events", "samples"):
        return {
            **frame,
            "time_ns": (np.frombuffer(frame["time_ns"], dtype="<i8") + by_ns).tobytes(),
        }
    times = {
        name: int(frame[name]) + by_ns for name in _TIMES.get(frame["kind"], ()) if name in frame
    }
    by_source = {
        name: {source: int(at) + by_ns for source, at in frame[name].items()}
        for name in _TIMES_BY_SOURCE.get(frame["kind"], ())
        if name in frame
    }
    return {**frame, **times, **by_source}


def begun_by(hello: Mapping[str, Any]) -> Begun:
    """When everything was set up, and the clocks of the probe's times. KeyError,
    ValueError or TypeError where it says neither."""
    realtime_ns = int(hello["realtime_ns"])
    return Begun(
        max(realtime_ns, int(hello.get("from_ns", realtime_ns))),
        int(hello["monotonic_ns"]),
        realtime_ns,
    )


def words_of_step(step_ns: int) -> str:
    """What befell the clock: `step_ns` as by `Begun.set_by`."""
    seconds = abs(step_ns) / 1e9
    unit = next((name for name in ("d", "h", "min") if seconds >= UNITS[name].scale), "s")
    length = f"{format_number(seconds / UNITS[unit].scale, 3)} {unit}"
    if step_ns < 0:
        return f"the clock was set back by {length}; times continue by the old clock until a new recording begins"
    return f"the clock went ahead by {length}: it was set, or the machine slept"


_DRIFT_NS = 200_000
"""By so much may the clocks of two machines drift apart between two ticks."""
_MOST_STEPS = 1000


class OwnTime:
    """The time that a recording's events bear, and the offset of the machine's clock from it.

    Attributes:
        begun: how the probe began, by the recording's time. moved_ns: what is added to that probe's
        own times. ahead_ns: how far the recording is ahead of the machine's clock after that was
        set back; 0 where it was not.
    """

    def __init__(self, clock: Clock, far: bool) -> None:
        """`far`: whether the probe is on another machine with its own monotonic clock."""
        self._clock, self._far = clock, far
        self.begun = Begun(0, 0, 0)
        self.moved_ns = self.ahead_ns = 0
        self._base_ns = self._step_ns = self._looked_ns = 0
        self._steps: deque[tuple[int, int, int]] = deque(maxlen=_MOST_STEPS)

    def begin(self, hello: Mapping[str, Any]) -> None:
        """The first probe is at work."""
        self._begin(begun_by(hello))
        self._looked_ns = self.begun.monotonic_ns

    def begin_again(self, hello: Mapping[str, Any], until_ns: int) -> Mapping[str, Any]:
        """Another probe is at work; `until_ns`: up to where there is something. Returns its words
        by the recording's time."""
        self.moved_ns = moved_by(self.begun, begun_by(hello), until_ns)
        own = move_frame(hello, self.moved_ns)
        self._begin(begun_by(own))
        self._look(int(hello["monotonic_ns"]), int(hello["realtime_ns"]))
        return own

    def tick(self, monotonic_ns: int, realtime_ns: int) -> int:
        """Look at the machine's clocks, of one moment. Returns by how much the time of day was set
        ahead since the probe began, as by `Begun.set_by`."""
        if self._far:
            # a word takes its time: the one that took the least tells best
            self._base_ns = max(
                self._base_ns - _DRIFT_NS, self._at(monotonic_ns) - self._monotonic_ns()
            )
        self._look(monotonic_ns, realtime_ns)
        return self._step_ns

    def now_ns(self) -> int:
        """Now."""
        return self._base_ns + self._monotonic_ns()

    def machine_ns(self) -> int:
        """Now by the clock of the machine that is recorded."""
        return self.now_ns() + self._step_ns if self._far else self._clock.realtime_ns()

    def of(self, machine_ns: int, before_ns: int | None = None) -> int:
        """A time that the machine's clock showed. Where it showed it twice, the later one is meant,
        but none that is yet to come.

        Args:
            before_ns: the requested time is before this time of the recording.
        """
        until_ns = self.now_ns() + STEP_NS
        if before_ns is not None:
            until_ns = min(until_ns, before_ns)
        for since_ns, seen_ns, ahead_ns in reversed(self._steps):
            if since_ns <= machine_ns <= until_ns - ahead_ns:
                return machine_ns + ahead_ns
            until_ns = min(until_ns, seen_ns)
        return machine_ns

    def _begin(self, begun: Begun) -> None:
        self.begun = begun
        self._base_ns = (
            begun.from_ns - self._monotonic_ns()
            if self._far
            else begun.realtime_ns - begun.monotonic_ns
        )

    def _look(self, monotonic_ns: int, realtime_ns: int) -> None:
        self._step_ns = self.begun.set_by(monotonic_ns, realtime_ns)
        ahead_ns = max(-self._step_ns, 0)
        if abs(ahead_ns - self.ahead_ns) > STEP_NS or (ahead_ns == 0) != (self.ahead_ns == 0):
            # it was set at some time since the last look
            since_ns = realtime_ns - max(0, monotonic_ns - self._looked_ns)
            self._steps.append((since_ns, self._at(monotonic_ns), ahead_ns))
            self.ahead_ns = ahead_ns
        self._looked_ns = monotonic_ns

    def _at(self, monotonic_ns: int) -> int:
        return self.begun.realtime_ns + monotonic_ns - self.begun.monotonic_ns

    def _monotonic_ns(self) -> int:
        return round(self._clock.monotonic() * 1e9)
