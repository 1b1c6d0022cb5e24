# SPDX-License-Identifier: Apache-2.0
"""The paths that answer a question: their parameters, what they answer, and the pure function that
answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from iolab.base.documents import Model
from iolab.recordings.ask.language.fields import MAPPED, QUANTIZED

from ..base.models import (
    DrawnMap,
    Extremes,
    HeatAnswer,
    Hierarchy,
    IoLayers,
    IoList,
    Layers,
    Losses,
    Marks,
    Odd,
    PercentilesAnswer,
    Recordings,
    SeriesAnswer,
    StackAnswer,
    Statistics,
    Who,
)
from ..base.store import Store
from . import answers, comparison, drill, fleet, listing
from .comparison import Changes, Difference
from .fleet import FleetAnswer
from .parameters import (
    AGAINST,
    AROUND,
    COLUMNS,
    DRAWN,
    EVERY,
    HIGH,
    INTERVAL,
    IO,
    LINES,
    LOW,
    OTHER_SPAN,
    RECORDING,
    SORTED,
    SOURCE,
    SPAN,
    STATISTIC,
    TOPMOST,
    Parameter,
    Words,
    count,
    map_of,
    one_of,
    text,
    texts,
)

PREFIX = "/api/v1"


@dataclass(frozen=True)
class Route:
    """A path.

    Attributes:
        path: below `PREFIX`. about: in one line. parameters: that it takes; others are refused.
        models: of its answer, one of them; none where it answers `kind`, a media type.
        answer: a pure function of what is served and the parameters.
        binary: the same answer in binary where it is a heat map, None where the path has none.
        is_cached: whether responses are remembered.
    """

    path: str
    about: str
    parameters: tuple[Parameter, ...]
    models: tuple[type[Model], ...]
    answer: Callable[[Store, Words], Model | bytes]
    binary: Callable[[Store, Words], bytes | Model] | None = None
    kind: str = "application/json"
    is_cached: bool = False


ROUTES = (
    Route("/recordings", "What is served.", (), (Recordings,), listing.recordings),
    Route(
        "/statistics",
        "The catalogue, and what the recording can answer.",
        (RECORDING,),
        (Statistics,),
        listing.statistics,
    ),
    Route(
        "/query",
        "The answer to a statistic: a series, a stack, or a heat map.",
        (RECORDING, STATISTIC, *SPAN, *COLUMNS, SOURCE, TOPMOST, DRAWN, LINES),
        (SeriesAnswer, StackAnswer, HeatAnswer, DrawnMap, PercentilesAnswer),
        answers.ask,
        answers.ask_binary,
        is_cached=True,
    ),
    Route(
        "/export",
        "The same as CSV, byte for byte what iolab query --format csv writes.",
        (RECORDING, STATISTIC, *SPAN, *COLUMNS, SOURCE, EVERY),
        (),
        answers.export,
        kind="text/csv",
    ),
    Route(
        "/layers",
        "A heat map by the keys of a field: one map per key, and one of all others.",
        (
            RECORDING,
            map_of(MAPPED),
            Parameter("by", "The field, such as process.", text(64), required=True),
            Parameter("key", "A value of it; repeatable.", texts(answers.MOST), required=True),
            Parameter(
                "rest", "false: all others are left out of the answer.", one_of("true", "false")
            ),
            *SPAN,
            *COLUMNS,
            SOURCE,
            LINES,
        ),
        (Layers,),
        answers.layers,
        answers.layers_binary,
        is_cached=True,
    ),
    Route(
        "/extremes",
        "The moments with the largest or smallest values.",
        (
            RECORDING,
            STATISTIC,
            Parameter("kind", "Which of them. Default: max.", one_of("max", "min")),
            *SPAN,
            Parameter(
                "interval",
                "Length of a column: 1s, 10s. Default: a second, of long spans more.",
                text(64, INTERVAL),
            ),
            Parameter("count", "Moments at most.", count(drill.MOST, drill.COUNT)),
            SOURCE,
        ),
        (Extremes,),
        drill.extremes,
        is_cached=True,
    ),
    Route(
        "/difference",
        "The difference of two time ranges of the same length: counts of a heat map, changes of numbers.",
        (
            RECORDING,
            STATISTIC,
            *(replace(parameter, required=True) for parameter in (*SPAN, *OTHER_SPAN)),
            *COLUMNS,
            SOURCE,
            TOPMOST,
        ),
        (Difference, Changes),
        comparison.compare,
        is_cached=True,
    ),
    Route(
        "/who",
        "Who made the I/Os inside a rectangle of time and value.",
        (RECORDING, map_of(QUANTIZED), *SPAN, *AROUND, LOW, HIGH, SOURCE, TOPMOST),
        (Who,),
        drill.who,
        is_cached=True,
    ),
    Route(
        "/ios",
        "The single I/Os inside a rectangle of time and value, a page of them.",
        (RECORDING, STATISTIC, *SPAN, LOW, HIGH, SOURCE, *SORTED),
        (IoList,),
        drill.ios,
        is_cached=True,
    ),
    Route(
        "/io-layers",
        "One I/O with the call above it and the I/Os below it.",
        (RECORDING, IO),
        (IoLayers,),
        drill.io_layers,
    ),
    Route(
        "/odd",
        "What differs most from the minutes before, or from a quiet time.",
        (RECORDING, *SPAN, *AGAINST),
        (Odd,),
        drill.odd,
        is_cached=True,
    ),
    Route(
        "/hierarchy",
        "I/Os or bytes of files, by directory.",
        (RECORDING, STATISTIC, *SPAN, SOURCE),
        (Hierarchy,),
        drill.hierarchy,
        is_cached=True,
    ),
    Route("/marks", "Named spans of time, such as runs.", (RECORDING,), (Marks,), listing.marks),
    Route(
        "/losses",
        "What was lost, and when nothing was recorded.",
        (RECORDING,),
        (Losses,),
        listing.losses,
    ),
    Route(
        "/fleet",
        "A measure of all hosts of an archive over time.",
        (fleet.ARCHIVE, fleet.MEASURE, fleet.BY, *SPAN, fleet.FLEET_COLUMNS),
        (FleetAnswer,),
        fleet.fleet,
    ),
)
"""Every path that answers a question, once."""
