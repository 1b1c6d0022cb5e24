# SPDX-License-Identifier: Apache-2.0
"""Moments as users write them: from the start, before the end, or by the clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from ...errors import UsageError
from ...units import parse_fio_time, split_duration
from .quantities import parse_whole

_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?")
_EPOCH = 10**17
"""Later than this (March 1973) times count from 1970; earlier ones count from a trace's own start.
"""

_RELATIVE = "30s (after the start), -10m (before the end)"


def parse_duration(text: str) -> int:
    """`10ms`, `1.5s`, `10m` or `10min`, `2h`, `1h30m`, `1d` in ns. UsageError for anything else."""
    parts = split_duration(text.strip())
    if len(parts) > 1:
        parse_fio_time(text)  # refuses units that do not come down
    return sum(_single(part.strip()) for part in parts)


def _single(words: str) -> int:
    if re.fullmatch(r"[\d.]+\s*d", words):
        return 24 * parse_whole(words[:-1] + "h", "time")
    return parse_whole(re.sub(r"(?<=[\d\s])m$", "min", words), "time")


def is_after_start(text: str) -> bool:
    """Whether a moment is written as a time after the start, such as `30s`."""
    return re.fullmatch(r"[\d.]+\s*(?:[a-zµ]+\s*[\d.]+\s*)*[a-zµ]*", text.strip()) is not None


def parse_moment(text: str, first_ns: int, last_ns: int) -> int:
    """A moment in ns on the clock of events that lie from `first_ns` to `last_ns`.

    `30s` is after the first, `-10m` before the end, `2026-03-01T12:00:05` and `12:00:05` (of the
    first event's day) are UTC unless a zone is given. UsageError for what is none of these, or a
    clock's time where the events have no clock but their own.
    """
    words = text.strip()
    try:
        if words.startswith("-"):
            return last_ns + 1 - parse_duration(words[1:])
        if is_after_start(words):
            return first_ns + parse_duration(words)
        day = datetime.fromtimestamp(first_ns // 10**9, UTC)
        if _CLOCK.fullmatch(words):
            words = f"{day:%Y-%m-%d}T{words.zfill(len(words) + (words.find(':') == 1))}"
        found = datetime.fromisoformat(words)
    except ValueError:
        raise UsageError(
            f"'{text}' is not a moment", hint=f"write {_RELATIVE} or 2026-03-01T12:00:05"
        ) from None
    except UsageError as error:
        raise UsageError(f"'{text}' is not a moment: {error.message}", hint=error.hint) from None
    if last_ns < _EPOCH:
        raise UsageError(
            f"'{text}' is a clock's time, but these events count from a start of their own",
            hint=f"write {_RELATIVE}",
        )
    zoned = found if found.tzinfo else found.replace(tzinfo=UTC)
    since = zoned - datetime(1970, 1, 1, tzinfo=UTC)
    return (since // timedelta(microseconds=1)) * 1000
