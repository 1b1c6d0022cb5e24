"""The paths of the service as data: their parameters, what they answer, and the pure function that answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..recording.counts import HeatCounts
from . import binary, drill, listing
from .asking import LONGEST_NAME, MOST_COLUMNS, MOST_KEYS, TOP, Words, question_of
from .drawn import drawn
from .models import DrawnMap, HeatAnswer, Hierarchy, Losses, Marks, Model, Recordings, SeriesAnswer, StackAnswer, Statistics, Who
from .plain import plain
from .store import Store

PREFIX = "/api/v1"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a request; `schema` is its JSON Schema."""

    name: str
    about: str
    schema: dict[str, Any]
    required: bool = False


@dataclass(frozen=True)
class Route:
    """A path.

    Attributes:
        path: below `PREFIX`. about: in one line. parameters: that it takes; others are refused.
        models: of its answer, one of them. answer: a pure function of what is served and the parameters.
        binary: the same answer in binary where it is a heat map, None where the path has none.
    """

    path: str
    about: str
    parameters: tuple[Parameter, ...]
    models: tuple[type[Model], ...]
    answer: Callable[[Store, Words], Model]
    binary: Callable[[Store, Words], bytes | Model] | None = None


def _text(longest: int = LONGEST_NAME) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": longest}


def _whole(most: int, default: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most, "default": default}


RECORDING = Parameter("recording", "Name of what is asked, as /recordings lists it; may be left out where there is only one.", _text())
STATISTIC = Parameter("statistic", "group.name[filter=value]...[breakdown], such as io.ops[op=write][latency].", _text(), required=True)
SPAN = (
    Parameter("from", "30s (after the start), -10m (before the end), 2026-03-01T12:00:05 (UTC), or ns on its own clock.", _text(64)),
    Parameter("to", "The same; this moment itself is left out.", _text(64)))
SOURCE = Parameter("source", "Whose events: block, syscall, fio... Default: by the statistic.", _text(64))
COLUMNS = (
    Parameter("interval", "Length of a column: 1s, 10ms. Default: what makes at most `columns`.", _text(64)),
    Parameter("columns", "Columns at most, where no interval is given.", _whole(MOST_COLUMNS, 400)))
TOPMOST = Parameter("top", "Keys that are named.", _whole(MOST_KEYS, TOP))
DRAWN = Parameter("drawn", "true: a heat map comes ready for the page's canvas.", {"type": "string", "enum": ["true", "false"]})


def ask(store: Store, words: Words) -> Model:
    """The answer to a statistic."""
    question = question_of(store, words)
    answer = question.answer()
    if isinstance(answer, HeatCounts) and words.get("drawn") == "true":
        return drawn(question.statistic, answer, question.recording)
    return plain(question.statistic, answer, question.top)


def ask_binary(store: Store, words: Words) -> bytes | Model:
    """The same, a heat map in binary."""
    question = question_of(store, words)
    answer = question.answer()
    return binary.encode(question.statistic, answer) if isinstance(answer, HeatCounts) else plain(question.statistic, answer, question.top)


ROUTES = (
    Route("/recordings", "What is served.", (), (Recordings,), listing.recordings),
    Route("/statistics", "The catalogue, and what the recording can answer.", (RECORDING,), (Statistics,), listing.statistics),
    Route("/query", "The answer to a statistic: a series, a stack, or a heat map.",
          (RECORDING, STATISTIC, *SPAN, *COLUMNS, SOURCE, TOPMOST, DRAWN), (SeriesAnswer, StackAnswer, HeatAnswer, DrawnMap), ask,
          ask_binary),
    Route("/who", "Whose the I/Os inside a rectangle of time and value are.",
          (RECORDING, STATISTIC, *SPAN, Parameter("low", "Least value, such as 10ms or 8KiB.", _text(64)),
           Parameter("high", "Where values end, itself left out.", _text(64)), SOURCE, TOPMOST), (Who,), drill.who),
    Route("/hierarchy", "I/Os or bytes of files, by directory.", (RECORDING, STATISTIC, *SPAN, SOURCE), (Hierarchy,), drill.hierarchy),
    Route("/marks", "Named spans of time, such as runs.", (RECORDING,), (Marks,), listing.marks),
    Route("/losses", "What was lost, and when nothing was recorded.", (RECORDING,), (Losses,), listing.losses),
)
"""Every path that answers once."""
