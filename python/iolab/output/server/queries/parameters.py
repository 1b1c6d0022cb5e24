# SPDX-License-Identifier: Apache-2.0
"""Parameters of requests as data, and a request's parameters as a question to a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field, StringConstraints

from iolab.base.errors import UsageError
from iolab.recordings.ask.answers.answers import Answer, Series, Stack
from iolab.recordings.ask.answers.json_form import is_averaged, largest
from iolab.recordings.ask.fleet import FleetStatistic, ask_fleet, labels_of
from iolab.recordings.ask.language.catalogue import CATALOGUE
from iolab.recordings.ask.language.quantities import parse_duration, parse_moment
from iolab.recordings.ask.query import answer, with_notes
from iolab.recordings.ask.question import COLUMNS as DEFAULT_COLUMNS
from iolab.recordings.ask.question import Question, Statistic, columns_of, parse
from iolab.recordings.ask.single_ios import LARGEST_PAGE, ORDERS, PAGE
from iolab.recordings.store.base.counts import HeatCounts, LostAt, sum_losses
from iolab.recordings.store.read.folder import Folder

from ..base.store import Asked, Store
from ..base.worksheet import Text


def single_column(answer: Answer) -> Answer:
    """The answer with one column, which is its span; of a map the columns from the first to the
    last that hold anything."""
    if isinstance(answer, HeatCounts):
        columns = max(1, answer.columns)
        return replace(answer.coarser(columns=columns), gaps=(), lost_at=_lost(answer))
    parts = {
        "t0_ns": answer.first_ns,
        "interval_ns": answer.until_ns - answer.first_ns,
        "lost_at": _lost(answer),
    }
    if isinstance(answer, Series):
        return replace(answer, values=np.array([answer.mean]), **parts)  # type: ignore[arg-type]
    rows, _ = largest(answer, None)
    means = np.array([row.mean for row in rows[: len(answer.keys)]], dtype=float).reshape(
        len(answer.keys), 1
    )
    return replace(answer, values=means, rest=_rest(answer), **parts)  # type: ignore[arg-type]


def _lost(answer: Answer) -> tuple[LostAt, ...]:
    return sum_losses((0, kind, count) for _, kind, count in answer.lost_at)


def _rest(answer: Stack) -> np.typing.NDArray[np.float64] | None:
    if answer.rest is None:
        return None
    assert not is_averaged(answer)
    return np.array(
        [answer.rest_total / (answer.covered_ns / 1e9) if answer.covered_ns else np.nan]
    )


LONGEST_NAME = 4096
"""Characters of a statistic's name, or of any other parameter."""
MOST_COLUMNS = 4000
MOST_KEYS = 1000
TOP = 50
SEPARATOR = "\0"

ALL = "whole"
"""The interval that is as long as the span."""

Words = Mapping[str, str]
"""Parameters of a request by name; the values of a repeatable one are joined by NUL, which
no value holds: see `several`."""


@dataclass(frozen=True)
class Request:
    """A question to one recording, as a client put it; times in ns on the recording's own clock.

    Attributes:
        recording: its name. opened: the recording. question: the question. top: keys that are named.
        is_single: whether all of the time is one column.
    """

    recording: str
    opened: Asked
    question: Question
    top: int
    is_single: bool = False

    @property
    def statistic(self) -> Statistic:
        """The question."""
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

    def with_parts(self, **parts: Any) -> Request:
        """The same with other parts of the question."""
        return replace(self, question=replace(self.question, **parts))

    @property
    def of_hosts(self) -> FleetStatistic:
        """The question with its conditions on hosts apart, where all hosts are asked."""
        assert isinstance(self.opened, Folder)
        return FleetStatistic.of(self.statistic, labels_of(self.opened.recordings))

    def of_host(self, what: str) -> Request:
        """The request to the recording of the host that it names. UsageError where several
        recordings remain, of which `what` can't be asked at once."""
        if not isinstance(self.opened, Folder):
            return self
        fleet_statistic = self.of_hosts
        recordings = fleet_statistic.select(self.opened.recordings)
        if len(recordings) > 1:
            raise UsageError(
                f"{what} of several hosts can't be asked at once",
                where=self.recording,
                hint="narrow it by [host=NAME], or open the worksheet of a host",
            )
        request = replace(self, opened=recordings[0])
        return replace(request, question=self.question.with_statistic(fleet_statistic.statistic))

    def answer(self, statistic: Statistic | None = None) -> Answer:
        """The answer to this statistic or another one over the same span."""
        question = self.question
        full_answer = answer_of(
            self.opened, question if statistic is None else question.with_statistic(statistic)
        )
        return single_column(full_answer) if self.is_single else full_answer


def answer_of(opened: Asked, question: Question) -> Answer:
    """The answer to a question; of several recordings the sum, or a key for each host."""
    if not isinstance(opened, Folder):
        return answer(opened, question)
    statistic = question.statistic
    assert statistic is not None
    answer_of_all = ask_fleet(
        opened.recordings,
        FleetStatistic.of(statistic, labels_of(opened.recordings)),
        from_ns=question.span[0],
        until_ns=question.span[1],
        interval_ns=question.interval_ns,
        columns=question.columns,
        source=question.source,
    )
    # a statistic has one breakdown: see `parse_of`
    assert not isinstance(answer_of_all, dict)
    answer_of_all = with_notes(answer_of_all, opened.notes)
    return (
        answer_of_all
        if isinstance(answer_of_all, HeatCounts)
        else replace(answer_of_all, statistic=statistic)
    )


def parse_of(opened: Asked, text: str) -> Statistic:
    """A statistic of what was opened: of all hosts, `host` and labels are fields too. UsageError as
    `names.parse`."""
    if not isinstance(opened, Folder):
        return parse(text)
    return FleetStatistic.parse(text, labels_of(opened.recordings)).as_one()


def parameters(
    given: Iterable[tuple[str, str]], known: Mapping[str, tuple[int, int]]
) -> dict[str, str]:
    """Parameters of a request. `known`: how often each may be there, and how many characters it
    has, at most. UsageError for an unknown, too long or too frequent one."""
    values: dict[str, str] = {}
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
        values[name] = f"{values[name]}{SEPARATOR}{value}" if name in values else value
    return values


def several(words: Words, name: str) -> list[str]:
    """The values of a parameter that may be repeated, each once, in order."""
    return list(dict.fromkeys(words[name].split(SEPARATOR))) if name in words else []


def request_of(store: Store, words: Words) -> Request:
    """The request of some parameters. UsageError for what can't be asked, NotServed for a recording that
    isn't there."""
    name = recording_of(store, words)
    opened = store.open_asked(name)
    statistic = parse_of(opened, require(words, "statistic"))
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
    columns = number(words, "columns", DEFAULT_COLUMNS, 1, MOST_COLUMNS)
    question = Question.of(statistic, (from_ns, until_ns), interval, columns, words.get("source"))
    return Request(name, opened, question, number(words, "top", TOP, 1, MOST_KEYS), single)


def require_columns(request: Request) -> Request:
    """The request, where it asks for columns of time; UsageError where all is to be one."""
    if request.is_single:
        raise UsageError(f"'{ALL}' is no interval of this", where="interval", hint="such as 1s")
    return request


def recording_of(store: Store, words: Words) -> str:
    """The name of the recording that is meant: it may be left out where there is only one."""
    if "recording" in words:
        store.open_asked(words["recording"])
        return words["recording"]
    if len(store.names) != 1:
        raise UsageError(
            "which recording is not said",
            where="recording",
            hint=f"there are {', '.join(store.names)}",
        )
    return store.names[0]


def require(words: Words, name: str) -> str:
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
        moment(words[name], first, last) if (name := f"{which}{end}") in words else None
        for end in ("from", "to")
    )
    if begin is not None and end is not None and begin < end and (begin > last or end <= first):
        return begin, end
    return None if begin is None else max(first, begin), None if end is None else min(last + 1, end)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a request; `schema` is its JSON Schema. `place`: "query" or "path"."""

    name: str
    about: str
    schema: dict[str, Any]
    required: bool = False
    place: str = "query"

    @property
    def bounds(self) -> tuple[int, int]:
        """(how often it may be there, characters that it has at most)."""
        items = self.schema.get("items", self.schema)
        return int(self.schema.get("maxItems", 1)), int(items.get("maxLength", LONGEST_NAME))


LAST_SKIP = 999_999_999
"""I/Os that may be skipped."""

_DURATION = (
    "((?=[0-9])"
    + "".join(
        rf"([0-9]+(\.[0-9]+)?\s*({unit})\s*)?"
        for unit in ("d", "h", "min|m", "s", "ms", "us|µs", "ns")
    )
    + "|0)"
)
"""One or several numbers with units that come down, as `parse_duration` takes them."""
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?"
_DATE = (
    r"[0-9]{4}-?((0[1-9]|1[0-2])-?(0[1-9]|[12][0-9]|3[01])|W[0-5][0-9](-?[1-7])?)"
    r"(.[0-2][0-9][0-9:.,]*(Z|[+-][0-9:.]+)?)?"
)
_NAME = rf"^\s*({'|'.join(name.replace('.', '[.]') for name in CATALOGUE)})\s*"
_ANY = r"^[^\u0000]*$"
STATISTICS = rf"{_NAME}(\[[^\u0000]*\]\s*)?$"
"""Names of statistics as far as a pattern can say it; what is valid in the brackets depends on the
name."""
StatisticText = Annotated[
    Text, StringConstraints(pattern=r"^[^\x00]*$"), Field(json_schema_extra={"pattern": STATISTICS})
]
"""A statistic in a document. The schema's pattern is not used to refuse one: what parses statistics
says why."""
MOMENT = rf"^\s*(-?\s*{_DURATION}|[0-9]{{1,19}}|{_CLOCK}|{_DATE})\s*$"
INTERVAL = rf"^(\s*(?=[^1-9]*[1-9]){_DURATION}\s*|{ALL})$"
QUANTITY = r"^\s*[0-9]+(\.[0-9]+)?\s*[A-Za-zµ]*\s*$"


def text(longest: int = LONGEST_NAME, pattern: str = "") -> dict[str, Any]:
    """Words that are not empty. `pattern`: what all that is understood meets; not all that meets it
    is understood."""
    return {"type": "string", "minLength": 1, "maxLength": longest, "pattern": pattern or _ANY}


def map_of(fields: Iterable[str]) -> Parameter:
    """The statistic, where it has to be a map: broken down by one of these fields."""
    pattern = rf"{_NAME}\[([^\u0000]*\[)?\s*({'|'.join(fields)})\s*\]\s*$"
    return Parameter(
        STATISTIC.name,
        f"A map, such as io.ops[latency]: {STATISTIC.about}",
        text(pattern=pattern),
        required=True,
    )


def texts(most: int) -> dict[str, Any]:
    """Words that may be repeated."""
    return {"type": "array", "minItems": 1, "maxItems": most, "items": text()}


def count(most: int, default: int) -> dict[str, Any]:
    """A whole number from 1 on."""
    return {"type": "integer", "minimum": 1, "maximum": most, "default": default}


def one_of(*words: str) -> dict[str, Any]:
    """One of these words."""
    return {"type": "string", "enum": list(words)}


RECORDING = Parameter(
    "recording",
    "Name of the recording, as /recordings lists it; may be left out where there is only one.",
    text(),
)
STATISTIC = Parameter(
    "statistic",
    "group.name[filter=value]...[breakdown], such as io.ops[op=write][latency].",
    text(pattern=STATISTICS),
    required=True,
)
SPAN = (
    Parameter(
        "from",
        "30s (after the start), -10m (before the end), 2026-03-01T12:00:05 (UTC), or ns on its own clock.",
        text(64, MOMENT),
    ),
    Parameter("to", "The same; this moment itself is left out.", text(64, MOMENT)),
)
OTHER_SPAN = tuple(
    Parameter(f"other_{parameter.name}", f"Of the other range: {parameter.about}", parameter.schema)
    for parameter in SPAN
)
AROUND = tuple(
    Parameter(
        f"around_{parameter.name}",
        f"Of the time that is looked at as well, to compare with: {parameter.about}",
        parameter.schema,
    )
    for parameter in SPAN
)
AGAINST = tuple(
    Parameter(
        f"against_{parameter.name}", f"Of the quiet time: {parameter.about}", parameter.schema
    )
    for parameter in SPAN
)
SOURCE = Parameter(
    "source", "Source of the events: block, syscall, fio... Default: by the statistic.", text(64)
)
COLUMNS = (
    Parameter(
        "interval",
        f"Length of a column: 1s, 10ms; {ALL}: one column. Default: what makes at most `columns`.",
        text(64, INTERVAL),
    ),
    Parameter("columns", "Columns at most, where no interval is given.", count(MOST_COLUMNS, 400)),
)
TOPMOST = Parameter("top", "Keys that are named.", count(MOST_KEYS, TOP))
EVERY = Parameter(
    "top",
    "Keys that are named. Default: all.",
    {"type": "integer", "minimum": 1, "maximum": MOST_KEYS},
)
DRAWN = Parameter(
    "drawn",
    "true: a heat map comes ready for the page's canvas; percentiles: as lines over time.",
    one_of("true", "false", "percentiles"),
)
LINES = Parameter(
    "lines", "false: a map comes without percentiles and mean.", one_of("true", "false")
)
LOW = Parameter("low", "Least value, such as 10ms or 8KiB.", text(64, QUANTITY))
HIGH = Parameter("high", "Where values end, itself left out.", text(64, QUANTITY))
SORTED = (
    Parameter("order", "What to sort by. Default: time.", one_of(*ORDERS)),
    Parameter("descending", "true: the largest first.", one_of("true", "false")),
    Parameter(
        "skip",
        "I/Os before the page. Default: 0.",
        {"type": "integer", "minimum": 0, "maximum": LAST_SKIP, "default": 0},
    ),
    Parameter("limit", "I/Os of a page.", count(LARGEST_PAGE, PAGE)),
)
IO = Parameter("id", "The id of an I/O, as /ios lists it.", text(256), required=True)
