"""The paths that answer a question: their parameters, what they answer, and the pure function that answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from . import difference, drill, extremes, layers, listing, queries
from .asking import Words
from .models import (
    Difference,
    DrawnMap,
    Extremes,
    HeatAnswer,
    Hierarchy,
    Layers,
    Losses,
    Marks,
    Model,
    Recordings,
    SeriesAnswer,
    StackAnswer,
    Statistics,
    Who,
)
from .parameters import (
    COLUMNS,
    DRAWN,
    EVERY,
    HIGH,
    LOW,
    OTHER_SPAN,
    RECORDING,
    SOURCE,
    SPAN,
    STATISTIC,
    TOPMOST,
    Parameter,
    count,
    one_of,
    text,
    texts,
)
from .store import Store

PREFIX = "/api/v1"


@dataclass(frozen=True)
class Route:
    """A path.

    Attributes:
        path: below `PREFIX`. about: in one line. parameters: that it takes; others are refused.
        models: of its answer, one of them; none where it answers `kind`, a media type.
        answer: a pure function of what is served and the parameters.
        binary: the same answer in binary where it is a heat map, None where the path has none.
    """

    path: str
    about: str
    parameters: tuple[Parameter, ...]
    models: tuple[type[Model], ...]
    answer: Callable[[Store, Words], Model | bytes]
    binary: Callable[[Store, Words], bytes | Model] | None = None
    kind: str = "application/json"


ROUTES = (
    Route("/recordings", "What is served.", (), (Recordings,), listing.recordings),
    Route("/statistics", "The catalogue, and what the recording can answer.", (RECORDING,), (Statistics,), listing.statistics),
    Route("/query", "The answer to a statistic: a series, a stack, or a heat map.",
          (RECORDING, STATISTIC, *SPAN, *COLUMNS, SOURCE, TOPMOST, DRAWN), (SeriesAnswer, StackAnswer, HeatAnswer, DrawnMap),
          queries.ask, queries.ask_binary),
    Route("/export", "The same as CSV, byte for byte what iolab query --format csv writes.",
          (RECORDING, STATISTIC, *SPAN, *COLUMNS, SOURCE, EVERY), (), queries.export, kind="text/csv"),
    Route("/layers", "A heat map told apart by a field: the map of each key, and of all others.",
          (RECORDING, STATISTIC, Parameter("by", "The field, such as process.", text(64), required=True),
           Parameter("key", "A value of it; repeatable.", texts(layers.MOST), required=True),
           Parameter("rest", "false: all others are left out of the answer.", one_of("true", "false")), *SPAN, *COLUMNS, SOURCE),
          (Layers,), layers.layers, layers.layers_binary),
    Route("/extremes", "The moments with the largest or smallest values.",
          (RECORDING, STATISTIC, Parameter("kind", "Which of them. Default: max.", one_of("max", "min")), *SPAN,
           Parameter("interval", "Length of a column: 1s, 10s. Default: a second, of long spans more.", text(64)),
           Parameter("count", "Moments at most.", count(extremes.MOST, extremes.COUNT)), SOURCE), (Extremes,), extremes.extremes),
    Route("/difference", "A heat map's range of time less another one of the same length.",
          (RECORDING, STATISTIC, *(replace(each, required=True) for each in (*SPAN, *OTHER_SPAN)), *COLUMNS, SOURCE), (Difference,),
          difference.difference),
    Route("/who", "Whose the I/Os inside a rectangle of time and value are.",
          (RECORDING, STATISTIC, *SPAN, LOW, HIGH, SOURCE, TOPMOST), (Who,), drill.who),
    Route("/hierarchy", "I/Os or bytes of files, by directory.", (RECORDING, STATISTIC, *SPAN, SOURCE), (Hierarchy,), drill.hierarchy),
    Route("/marks", "Named spans of time, such as runs.", (RECORDING,), (Marks,), listing.marks),
    Route("/losses", "What was lost, and when nothing was recorded.", (RECORDING,), (Losses,), listing.losses),
)
"""Every path that answers a question, once."""
