"""Parameters of requests as data; several paths take the same ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...statistics.language.catalogue import CATALOGUE
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
    def most(self) -> int:
        """How often it may be there."""
        return int(self.schema["maxItems"]) if self.schema["type"] == "array" else 1


_DURATION = r"[0-9]+(\.[0-9]+)?\s*(ns|us|µs|ms|s|min|m|h|d)?"
STATISTICS = rf"^\s*({'|'.join(name.replace('.', '[.]') for name in CATALOGUE)})\s*(\[|$)"
"""Names of statistics as far as a pattern can say it; what may stand in the brackets depends on the name."""
MOMENT = rf"^\s*(-?\s*{_DURATION}|[0-9]{{1,2}}:[0-9]{{2}}.*|[0-9]{{4}}.*)\s*$"
INTERVAL = rf"^(\s*{_DURATION}\s*|{ALL})$"
QUANTITY = r"^\s*[0-9]+(\.[0-9]+)?\s*[^\s0-9.]*\s*$"


def text(longest: int = LONGEST_NAME, pattern: str = "") -> dict[str, Any]:
    """Words that are not empty. `pattern`: what all that is understood meets; not all that meets it is understood."""
    return {"type": "string", "minLength": 1, "maxLength": longest, **({"pattern": pattern} if pattern else {})}


def texts(most: int) -> dict[str, Any]:
    """Words that may be repeated."""
    return {"type": "array", "minItems": 1, "maxItems": most, "items": text()}


def count(most: int, default: int) -> dict[str, Any]:
    """A whole number from 1 on."""
    return {"type": "integer", "minimum": 1, "maximum": most, "default": default}


def one_of(*words: str) -> dict[str, Any]:
    """One of these words."""
    return {"type": "string", "enum": list(words)}


RECORDING = Parameter("recording", "Name of what is asked, as /recordings lists it; may be left out where there is only one.", text())
STATISTIC = Parameter("statistic", "group.name[filter=value]...[breakdown], such as io.ops[op=write][latency].", text(pattern=STATISTICS),
                      required=True)
SPAN = (
    Parameter("from", "30s (after the start), -10m (before the end), 2026-03-01T12:00:05 (UTC), or ns on its own clock.", text(64, MOMENT)),
    Parameter("to", "The same; this moment itself is left out.", text(64, MOMENT)))
OTHER_SPAN = tuple(Parameter(f"other_{each.name}", f"Of the other range: {each.about}", each.schema) for each in SPAN)
AROUND = tuple(Parameter(f"around_{each.name}", f"Of the time that is looked at as well, to compare with: {each.about}", each.schema)
               for each in SPAN)
SOURCE = Parameter("source", "Whose events: block, syscall, fio... Default: by the statistic.", text(64))
COLUMNS = (
    Parameter("interval", f"Length of a column: 1s, 10ms; {ALL}: one column. Default: what makes at most `columns`.", text(64, INTERVAL)),
    Parameter("columns", "Columns at most, where no interval is given.", count(MOST_COLUMNS, 400)))
TOPMOST = Parameter("top", "Keys that are named.", count(MOST_KEYS, TOP))
EVERY = Parameter("top", "Keys that are named. Default: all.", {"type": "integer", "minimum": 1, "maximum": MOST_KEYS})
DRAWN = Parameter("drawn", "true: a heat map comes ready for the page's canvas; percentiles: as lines over time.",
                  one_of("true", "false", "percentiles"))
LINES = Parameter("lines", "false: a map comes without percentiles and mean.", one_of("true", "false"))
LOW = Parameter("low", "Least value, such as 10ms or 8KiB.", text(64, QUANTITY))
HIGH = Parameter("high", "Where values end, itself left out.", text(64, QUANTITY))
