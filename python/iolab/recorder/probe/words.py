# SPDX-License-Identifier: Apache-2.0
"""What the probe may say in words (frames of JSON): a frame that is whole may still hold nonsense,
which goes no further than here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...recording.write.writer import LOSS_KINDS

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
