# SPDX-License-Identifier: Apache-2.0
"""Parameters of a request as a question to a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...errors import UsageError
from ...statistics.answers.answers import Answer
from ...statistics.ask.query import COLUMNS, answer
from ...statistics.language.intervals import columns_of
from ...statistics.language.names import Statistic, parse
from ...statistics.language.quantities import parse_duration, parse_moment
from ...statistics.question import Question
from ..base.store import Opened, Store
from .single_column import whole

LONGEST_NAME = 4096
"""Characters of a statistic's name, or of any other parameter."""
MOST_COLUMNS = 4000
MOST_KEYS = 1000
TOP = 50
SEPARATOR = "\0"

ALL = "whole"
"""The interval that is as long as the span."""

Words = Mapping[str, str]
"""Parameters of a request by name; of one that may be repeated the values are joined by NUL, which
no value holds: see `several`."""


@dataclass(frozen=True)
class Request:
    """A question to one recording, as a client put it; times in ns on the recording's own clock.

    Attributes:
        recording: its name. opened: the recording. question: the question. top: keys that are named.
        is_single: whether all of the time is one column.
    """

    recording: str
    opened: Opened
    question: Question
    top: int
    is_single: bool = False

    @property
    def statistic(self) -> Statistic:
        """What is asked."""
        assert self.question.statistic is not None
        return self.question.statistic

    @property
    def from_ns(self) -> int | None:
        """Begin of the time, None where left open."""
        return self.question.span[0]

    @property
    def until_ns(self) -> int | None:
        """End of the time, None where left open."""
        return self.question.span[1]

    def changed(self, **parts: Any) -> Request:
        """The same with other parts of the question."""
        return replace(self, question=replace(self.question, **parts))

    def answer(self, statistic: Statistic | None = None) -> Answer:
        """The answer to this statistic or another one over the same span."""
        question = self.question
        answered = answer(
            self.opened, question if statistic is None else question.with_statistic(statistic)
        )
        return whole(answered) if self.is_single else answered


def parameters(
    given: Iterable[tuple[str, str]], known: Mapping[str, tuple[int, int]]
) -> dict[str, str]:
    """Parameters of a request. `known`: how often each may be there, and how many characters it
    has, at most. UsageError for an unknown, too long or too frequent one."""
    found: dict[str, str] = {}
    times: Counter[str] = Counter()
    for name, value in given:
        if name not in known:
            raise UsageError(
                f"there is no parameter '{name[:40]}'",
                hint=f"there are {', '.join(sorted(known)) or 'none'}",
            )
        most, longest = known[name]
        if len(value) > longest:
            raise UsageError(
                f"'{name}' has {len(value)} characters, and {longest} are the most", where=name
            )
        times[name] += 1
        if times[name] > most:
            raise UsageError(
                f"'{name}' is there {'twice' if most == 1 else f'more than {most} times'}",
                where=name,
            )
        if SEPARATOR in value:
            raise UsageError(f"'{name}' holds a NUL", where=name)
        found[name] = f"{found[name]}{SEPARATOR}{value}" if name in found else value
    return found


def several(words: Words, name: str) -> list[str]:
    """The values of a parameter that may be repeated, each once, in order."""
    return list(dict.fromkeys(words[name].split(SEPARATOR))) if name in words else []


def request_of(store: Store, words: Words) -> Request:
    """The request of some parameters. UsageError for what can't be asked, NotServed for a recording that
    isn't there."""
    name = recording_of(store, words)
    statistic = parse(needed(words, "statistic"))
    opened = store.open(name)
    first, last = store.ends(name)
    from_ns, until_ns = span_of(words, (first, last))
    interval = None
    single = words.get("interval") == ALL
    if "interval" in words and not single:
        interval = parse_duration(words["interval"])
        if interval < 1:
            raise UsageError(
                "an interval is longer than nothing", where="interval", hint="such as 1s"
            )
        columns_of(
            first if from_ns is None else from_ns,
            (last if until_ns is None else until_ns - 1),
            interval,
        )
    columns = number(words, "columns", COLUMNS, 1, MOST_COLUMNS)
    question = Question.of(statistic, (from_ns, until_ns), interval, columns, words.get("source"))
    return Request(name, opened, question, number(words, "top", TOP, 1, MOST_KEYS), single)


def columned(request: Request) -> Request:
    """The request, where it asks for columns of time; UsageError where all is to be one."""
    if request.is_single:
        raise UsageError(f"'{ALL}' is no interval of this", where="interval", hint="such as 1s")
    return request


def recording_of(store: Store, words: Words) -> str:
    """The name of the recording that is meant: it may be left out where there is only one."""
    if "recording" in words:
        store.open(words["recording"])
        return words["recording"]
    if len(store.names) != 1:
        raise UsageError(
            "which recording is not said",
            where="recording",
            hint=f"there are {', '.join(store.names)}",
        )
    return store.names[0]


def needed(words: Words, name: str) -> str:
    """A parameter that can't be left out."""
    if name not in words:
        raise UsageError(f"'{name}' is missing", where=name)
    return words[name]


def with_lines(words: Words) -> bool:
    """Whether a map is to come with percentiles and mean."""
    return words.get("lines") != "false"


def number(words: Words, name: str, default: int, least: int, most: int) -> int:
    """A parameter that is a whole number within bounds."""
    text = words.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and least <= int(text) <= most):
        raise UsageError(f"'{text[:40]}' is not a whole number from {least} to {most}", where=name)
    return int(text)


def moment(text: str, first: int, last: int) -> int:
    """A moment as commands take it, or in plain ns on the recording's clock."""
    bare = text.strip()
    if bare.isascii() and bare.isdecimal() and len(bare) < 20:
        return int(bare)
    try:
        return parse_moment(bare, first, last)
    except (OverflowError, OSError):
        raise UsageError(
            f"'{text}' is not a moment", hint="write 30s, -10m or 2026-03-01T12:00:05"
        ) from None


def span_of(words: Words, ends: tuple[int, int], which: str = "") -> tuple[int | None, int | None]:
    """From and until, cut to what was recorded, as commands cut them; None where left open.
    `which`: before the parameters' names.

    A span that does not meet what was recorded stays as it is: a graph that is moved there shows
    that nothing was recorded.
    """
    first, last = ends
    begin, end = (
        moment(words[name], first, last) if (name := f"{which}{each}") in words else None
        for each in ("from", "to")
    )
    if begin is not None and end is not None and begin < end and (begin > last or end <= first):
        return begin, end
    return None if begin is None else max(first, begin), None if end is None else min(last + 1, end)
