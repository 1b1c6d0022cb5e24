# SPDX-License-Identifier: Apache-2.0
"""Marks as they are requested at the control socket: whatever JSON comes, only what can be kept and
read again is let in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..untrusted_text import writable

_DEEPEST = 16
"""Lists and objects within each other that facts may have."""


@dataclass(frozen=True)
class Mark:
    """A named span of time; see `recording.writer.RecordingWriter.mark`. `own`: by the recording's
    own time, not by the machine's clock."""

    label: str
    from_ns: int
    until_ns: int | None
    kind: Literal["run", "user"] = "user"
    link: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    own: bool = False


def mark_of(request: Mapping[str, Any]) -> Mark:
    """The mark that a request asks for. ValueError says what of it is not what it should be."""
    facts, link, until = request.get("facts"), request.get("link"), request.get("until_ns")
    if not isinstance(facts, dict | None):
        raise ValueError("facts is not an object")
    return Mark(
        label=_text("label", request.get("label")),
        from_ns=_time("from_ns", request.get("from_ns")),
        until_ns=None if until is None else _time("until_ns", until),
        kind="run" if request.get("kind") == "run" else "user",
        link=None if link is None else _text("link", link),
        facts=_sound(facts or {}),
        own=request.get("own") is True,
    )


def _text(name: str, value: Any) -> str:
    """A text that every reader can take: what is no character, as a name of a file may hold, is
    escaped."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is not text")
    return writable(value)


def _time(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError(f"{name} is not a time in nanoseconds")
    return value


def _sound(value: Any, depth: int = 0) -> Any:
    """Plain data, its texts as by `_text`; ValueError where it is nested too deep or holds a number
    that JSON has not."""
    if depth > _DEEPEST:
        raise ValueError("facts are nested too deep")
    if isinstance(value, dict):
        return {_text("a name", name): _sound(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list):
        return [_sound(item, depth + 1) for item in value]
    if isinstance(value, str):
        return _text("facts", value)
    if isinstance(value, int | float) and not (
        math.isfinite(value) if isinstance(value, float) else -(2**63) <= value < 2**64
    ):
        raise ValueError("facts hold a number that is too large")
    return value
