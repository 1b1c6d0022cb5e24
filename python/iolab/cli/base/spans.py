# SPDX-License-Identifier: Apache-2.0
"""Spans of time that `--from` and `--to` name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iolab.recordings.store.read.recording import Recording
    from iolab.recordings.store.read.trace import Trace


def span_of(
    opened: Sequence[Trace | Recording], start: str | None, end: str | None
) -> tuple[int | None, int | None]:
    """(from, until) in ns of `--from` and `--to`, on the clock of what was opened, all of it
    together."""
    from iolab.base.errors import UsageError
    from iolab.recordings.ask.language.quantities import is_after_start, parse_moment

    from ..record.words import lasting

    if start is None and end is None:
        return None, None
    spans = [_span(opened_path) for opened_path in opened]
    first, last = min(span[0] for span in spans), max(span[1] for span in spans)
    # ten minutes before the end of five minutes is all of them
    begin = None if start is None else max(first, parse_moment(start, first, last))
    until = None if end is None else min(last + 1, parse_moment(end, first, last))
    for flag, text, beyond in (
        ("--from", start, begin is not None and begin > last),
        ("--to", end, until is not None and until <= first),
    ):
        if text is not None and beyond and first < last:
            before = f"; -{text.strip()} is before the end" if is_after_start(text) else ""
            raise UsageError(
                f"'{text}' is {'after the end' if flag == '--from' else 'before the start'} of what was recorded",
                where=flag,
                hint=f"it lasts {lasting((last - first) // 10**9)}{before}",
            )
    return begin, until


def _span(events: Trace | Recording) -> tuple[int, int]:
    """First and last moment; of a recording that of what is kept of it too."""
    from iolab.recordings.store.read.trace import Trace

    if isinstance(events, Trace):
        from iolab.recordings.ask.tiers.trace_tier import bounds

        return bounds(events)
    from iolab.recordings.ask.kept.recorded import span_of as recorded

    return recorded(events) or (0, 0)
