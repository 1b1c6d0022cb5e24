# SPDX-License-Identifier: Apache-2.0
"""`iolab query --follow`: a line for each column of time as it comes; of a map a row, so that it
grows downwards."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from iolab.base.untrusted_text import json_text

from ..base.output import say, tell_as
from ..base.spans import span_of

if TYPE_CHECKING:
    from iolab.recordings.ask.answers.answers import Answer
    from iolab.recordings.ask.answers.json_form import Moment
    from iolab.recordings.ask.follow import Piece
    from iolab.recordings.ask.question import Statistic
    from iolab.recordings.store.read.recording import Recording
    from iolab.recordings.store.read.trace import Trace

    from ..base.archives import QueryOptions

_DENSITY = ".:-=+*#%@"
_NOTHING = "╱"
_CLOCK = 14
_REPEAT = 30
"""Rows of a map after which its axis is written again."""
_MARK = 12
"""Characters between marks on the axis of a map."""
_BITS = 2
"""Two to so many characters an octave."""


def follow(opened: Trace | Recording, asked: Statistic, options: QueryOptions) -> None:
    """Print what comes until the recording ends, or Ctrl-C."""
    from iolab.base.clock import SystemClock
    from iolab.base.errors import UsageError
    from iolab.recordings.ask.follow import Follower
    from iolab.recordings.ask.kept.recorded import span_of as recorded
    from iolab.recordings.ask.language.quantities import parse_moment
    from iolab.recordings.store.read.recording import Recording

    if not isinstance(opened, Recording):
        raise UsageError(
            "a trace does not grow",
            where="--follow",
            hint="name a recording: iolab live and iolab record make them",
        )
    begin, _ = span_of([opened], options.start, None)
    # the end may lie ahead
    until = (
        None if options.end is None else parse_moment(options.end, *(recorded(opened) or (0, 0)))
    )
    follower = Follower(
        opened,
        asked,
        interval_ns=options.interval_ns() or 10**9,
        clock=SystemClock(),
        from_ns=begin,
        until_ns=until,
        source=options.source,
        said=lambda words: say(f"waiting: the recording {words}"),
    )
    try:
        for line in format_answers(follower.pieces(), asked, options.style, options.top):
            tell_as(options.style, f"{line}\n")
    except KeyboardInterrupt:
        # that is how it ends
        return


def format_answers(
    pieces: Iterator[Piece], asked: Statistic, style: str, top: int | None
) -> Iterator[str]:
    """The lines of answers."""
    from iolab.recordings.ask.answers.answers import Stack
    from iolab.recordings.ask.answers.json_form import moment_as_data, moments
    from iolab.recordings.store.base.counts import HeatCounts

    head, scale, rows = (
        True,
        _Scale(),
        _Map(shutil.get_terminal_size((100, 40)).columns - _CLOCK - 1),
    )
    for piece in pieces:
        answer = piece.answer
        for moment in moments(
            answer, piece.first_ns, piece.until_ns, top or (10 if style == "text" else None)
        ):
            if style == "json":
                yield json_text(moment_as_data(asked, answer, moment))
            elif style == "csv":
                yield from _csv(asked, answer, moment, head)
            elif isinstance(answer, HeatCounts):
                yield from rows.lines(answer, moment)
            elif isinstance(answer, Stack):
                yield f"{clock(moment, answer.interval_ns)}{_keys(moment, answer.unit)}{_lost(moment)}"
            else:
                yield f"{clock(moment, answer.interval_ns)}{scale.line(moment.value, answer.unit)}{_lost(moment)}"
            head = False


def clock(moment: Moment, interval_ns: int) -> str:
    """The time of a column's start, UTC; of times that count from a start of their own the seconds
    since."""
    digits = 0 if interval_ns % 10**9 == 0 else 3
    seconds = moment.t0_ns // 10**9
    part = f".{moment.t0_ns % 10**9 // 10**6:03d}" if digits else ""
    text = f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S}" if seconds > 10**8 else f"{seconds} s"
    return f"{text}{part}".ljust(_CLOCK)


def _csv(asked: Statistic, answer: Answer, moment: Moment, head: bool) -> Iterator[str]:
    """The columns of `query --format csv`, without cells of the time in which nothing was."""
    import csv
    import io

    from iolab.recordings.ask.answers.answers import Stack
    from iolab.recordings.ask.answers.json_form import OTHERS, number, seconds
    from iolab.recordings.store.base.counts import UNITS, HeatCounts

    def format_value(value: float) -> str | float | int:
        formatted = number(value)
        return "" if formatted is None else formatted

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    time = seconds(moment.t0_ns)
    if isinstance(answer, HeatCounts):
        edge = seconds if UNITS[answer.y] == "ns" else str
        titles = ["time_s", "low", "high", answer.weight]
        rows: list[list[object]] = [
            [time, edge(low), edge(high), count] for low, high, count in moment.cells
        ]
    elif isinstance(answer, Stack):
        titles = ["time_s", str(asked.breakdown), "value"]
        rows = [
            [time, OTHERS if key is None else key, format_value(value)]
            for key, value in moment.keys
        ]
    else:
        titles, rows = ["time_s", "value"], [[time, format_value(moment.value)]]
    writer.writerows([titles, *rows] if head else rows)
    yield from text.getvalue().split("\n")[:-1]


def _lost(moment: Moment) -> str:
    from iolab.recordings.heatmap.words import lost

    return (
        f"  ! {', '.join(lost(kind, count) for kind, count in moment.lost.items())}"
        if moment.lost
        else ""
    )


def _keys(moment: Moment, unit: str) -> str:
    from iolab.base.units import format_quantity

    if not moment.recorded:
        return _NOTHING
    return (
        "   ".join(
            f"{'others' if key is None else key} {format_quantity(value, unit)}"
            for key, value in moment.keys
        )
        or "-"
    )


class _Scale:
    """A bar next to each number, in proportion to the largest number so far."""

    def __init__(self) -> None:
        self._most = 0.0
        self._room = max(10, shutil.get_terminal_size((100, 40)).columns - _CLOCK - 16)

    def line(self, value: float, unit: str) -> str:
        from iolab.base.units import format_quantity

        if math.isnan(value):
            return _NOTHING
        self._most = max(self._most, value)
        return f"{format_quantity(value, unit):>14} {'█' * round(self._room * value / self._most if self._most else 0)}".rstrip()


class _Map:
    """Rows of a map that grows downwards: its values from left to right, on an axis that widens as
    they come."""

    def __init__(self, room: int) -> None:
        self._room = max(20, room)
        self._first: int | None = None
        self._last = 0
        self._step = 0
        self._most = 1
        self._since = 0

    def lines(self, answer: Answer, moment: Moment) -> Iterator[str]:
        """The row of a column, with the axis above it where that is new, or long ago."""
        from iolab.recordings.store.base.counts import UNITS, HeatCounts

        assert isinstance(answer, HeatCounts)
        log = answer.y in ("latency", "queue", "size")
        if self._widen(moment, log) or self._since >= _REPEAT:
            self._since = 0
            yield from self._axis(UNITS[answer.y], log)
        if not moment.recorded:
            row = _NOTHING * ((self._last - (self._first or 0) >> self._step) + 1)
        else:
            row = self._row(moment, log)
        self._since += 1
        yield f"{clock(moment, answer.interval_ns)}{row}".rstrip() + _lost(moment)

    def _place(self, value: int, log: bool) -> int:
        from iolab import _core

        return _core.grid_index(max(value, 0), _BITS) if log else value

    def _widen(self, moment: Moment, log: bool) -> bool:
        """Whether the axis had to be made wider for this column."""
        places = [self._place(end, log) for low, high, _ in moment.cells for end in (low, high - 1)]
        if not places:
            return False
        # from mark to mark, so that it seldom widens
        first, last = min(places) // _MARK * _MARK, max(places) // _MARK * _MARK + _MARK - 1
        if self._first is None:
            self._first, self._last = first, last
        elif first >= self._first and last <= self._last:
            return False
        self._first, self._last = min(self._first, first), max(self._last, last)
        while (self._last - self._first >> self._step) >= self._room:
            self._step += 1
        return True

    def _row(self, moment: Moment, log: bool) -> str:
        counts: dict[int, int] = {}
        for low, _, count in moment.cells:
            place = self._place(low, log) - (self._first or 0) >> self._step
            counts[place] = counts.get(place, 0) + count
        self._most = max(self._most, *counts.values()) if counts else self._most
        # by logarithm: a few among many are what is looked for
        steps = math.log2(self._most + 1)
        most = len(_DENSITY) - 1
        signs = {
            place: _DENSITY[min(most, int(len(_DENSITY) * math.log2(count + 1) / steps))]
            for place, count in counts.items()
        }
        return "".join(signs.get(place, " ") for place in range(max(counts, default=-1) + 1))

    def _axis(self, unit: str, log: bool) -> Iterator[str]:
        """A line with the values at marks, and one with the marks."""
        from iolab import _core
        from iolab.recordings.heatmap.ticks import quantity

        if self._first is None:
            return
        words, marks = "", ""
        length = (self._last - self._first >> self._step) + 1
        for place in range(0, length, _MARK):
            index = self._first + (place << self._step)
            value = _core.grid_bounds(index, _BITS)[0] if log else index
            words += " " * (place - len(words)) + (
                quantity(value, unit, 3) if unit in ("ns", "B") else f"{value} {unit}".strip()
            )
            marks += "│".ljust(_MARK)
        yield f"{'':{_CLOCK}}{words}"
        yield f"{'':{_CLOCK}}{marks[:length].rstrip()}"
