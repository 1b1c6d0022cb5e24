# SPDX-License-Identifier: Apache-2.0
"""Frames by the recording's own time: a probe that begins after the clock was set back continues
where the one before it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..recording.base.metadata import Begun

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
