# SPDX-License-Identifier: Apache-2.0
"""A question as a request puts it: parameters in words to a recording, a statistic, a span of time
and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...errors import UsageError
from ...statistics.answers.answers import Answer
from ...statistics.ask.query import COLUMNS, query
from ...statistics.language.intervals import columns_of
from ...statistics.language.names import Statistic, parse
from ...statistics.language.times import parse_duration, parse_moment
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
class Question:
    """What is asked of one recording; times in ns on its own clock, None where left open.

    `single`: whether all of the time is one column.
    """

    recording: str
    opened: Opened
    statistic: Statistic
    from_ns: int | None
    until_ns: int | None
    interval_ns: int | None
    columns: int
    source: str | None
    top: int
    single: bool = False

    def answer(self, statistic: Statistic | None = None) -> Answer:
        """The answer of the one executor, to this statistic or another one over the same span."""
        found = query(
            self.opened,
            statistic or self.statistic,
            from_ns=self.from_ns,
            until_ns=self.until_ns,
            interval_ns=self.interval_ns,
            columns=self.columns,
            source=self.source,
        )
        return whole(found) if self.single else found


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


def question_of(store: Store, words: Words) -> Question:
    """The question of a request. UsageError for what can't be asked, NotServed for a recording that
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
    return Question(
        name,
        opened,
        statistic,
        from_ns,
        until_ns,
        interval,
        number(words, "columns", COLUMNS, 1, MOST_COLUMNS),
        words.get("source"),
        number(words, "top", TOP, 1, MOST_KEYS),
        single,
    )


def columned(question: Question) -> Question:
    """The question, where it asks for columns of time; UsageError where all is to be one."""
    if question.single:
        raise UsageError(f"'{ALL}' is no interval of this", where="interval", hint="such as 1s")
    return question


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
