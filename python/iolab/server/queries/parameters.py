# SPDX-License-Identifier: Apache-2.0
"""Parameters of requests as data; several paths take the same ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from ...statistics.ask.single_ios import LARGEST_PAGE, ORDERS, PAGE
from ...statistics.language.catalogue import CATALOGUE
from ..base.worksheet import Text
from .query_params import ALL, LONGEST_NAME, MOST_COLUMNS, MOST_KEYS, TOP


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
        each = self.schema.get("items", self.schema)
        return int(self.schema.get("maxItems", 1)), int(each.get("maxLength", LONGEST_NAME))


LAST_SKIP = 999_999_999
"""I/Os that may be skipped."""

_DURATION = (
    "((?=[0-9])"
    + "".join(
        rf"([0-9]+(\.[0-9]+)?\s*({each})\s*)?"
        for each in ("d", "h", "min|m", "s", "ms", "us|µs", "ns")
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
"""Names of statistics as far as a pattern can say it; what may stand in the brackets depends on the
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
    "Name of what is asked, as /recordings lists it; may be left out where there is only one.",
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
    Parameter(f"other_{each.name}", f"Of the other range: {each.about}", each.schema)
    for each in SPAN
)
AROUND = tuple(
    Parameter(
        f"around_{each.name}",
        f"Of the time that is looked at as well, to compare with: {each.about}",
        each.schema,
    )
    for each in SPAN
)
AGAINST = tuple(
    Parameter(f"against_{each.name}", f"Of the quiet time: {each.about}", each.schema)
    for each in SPAN
)
SOURCE = Parameter(
    "source", "Whose events: block, syscall, fio... Default: by the statistic.", text(64)
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
