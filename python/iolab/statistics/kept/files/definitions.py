# SPDX-License-Identifier: Apache-2.0
"""What is to be kept: `histograms/keep.json`, changed by whoever asks, under a lock; the keeper
reads it and alone does the work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ....errors import ResultsError
from ....files import read_regular
from ....recording.ledger import holds
from ...question import SECOND
from .paths import DAY, DEFINITIONS, STATE, TIERS

SCHEMA = 1

MOST_BYTES = 1 << 30
"""Size on disk of all kept statistics of a recording together, paused ones included, beyond which
the largest that is being kept is suspended."""
MOST_CPU = 0.05
"""Share of all CPU time beyond which the costliest is suspended."""
LONGEST_S = 100 * 365 * DAY
"""For so many seconds sums are kept at most."""

Spans = tuple[tuple[int, int | None], ...]


@dataclass(frozen=True)
class Definition:
    """A statistic that is to be kept.

    Attributes:
        statistic: its canonical name. source: what it is to be made of, None for what the catalogue
        prefers. added_ns: when it was added, which identifies it among those of the same
        name. since_ns: from where on, a whole second; None for all that there is.
        pauses: (from, until) ns, whole seconds; until is None while it lasts. resumed_ns: when it
        was last resumed, 0 for never. floors: by tier, ns before which it was pruned.
        until_ns: when it pauses of itself; None for never. The keeper makes a pause of it once that
        is over.
    """

    statistic: str
    added_ns: int
    source: str | None = None
    since_ns: int | None = None
    pauses: Spans = ()
    resumed_ns: int = 0
    floors: Mapping[str, int] = field(default_factory=dict)
    until_ns: int | None = None

    @property
    def is_paused(self) -> bool:
        """Whether it is paused now."""
        return bool(self.pauses) and self.pauses[-1][1] is None

    @property
    def left_out(self) -> Spans:
        """Pauses, and what comes after `until_ns`."""
        return (
            self.pauses
            if self.until_ns is None or self.is_paused
            else (*self.pauses, (next_second(self.until_ns), None))
        )

    def pausing(self, at_ns: int) -> Definition:
        """Paused from a moment on, or from `until_ns` where that is earlier."""
        if self.is_paused:
            return replace(self, until_ns=None)
        at = at_ns if self.until_ns is None else min(at_ns, self.until_ns)
        return replace(self, pauses=(*self.pauses, (next_second(at), None)), until_ns=None)


@dataclass(frozen=True)
class Definitions:
    """All that is to be kept of a recording.

    Attributes:
        revision: grows with each change. statistics: by name. retention: by tier, seconds that are
        kept. bytes, cpu_share: the budget; None for no limit.
    """

    revision: int = 0
    statistics: Mapping[str, Definition] = field(default_factory=dict)
    retention: Mapping[str, int] = field(
        default_factory=lambda: {tier.name: tier.keep_s for tier in TIERS}
    )
    bytes: int | None = MOST_BYTES
    cpu_share: float | None = MOST_CPU

    def with_(self, each: Definition) -> Definitions:
        """With one more, or one replaced."""
        return replace(self, statistics={**self.statistics, each.statistic: each})

    def without(self, name: str) -> Definitions:
        """Without one."""
        return replace(
            self,
            statistics={
                other: statistic for other, statistic in self.statistics.items() if other != name
            },
        )

    @property
    def wrong(self) -> str:
        """What is wrong with the limits, in words; empty where nothing is."""
        kept = [self.retention[tier.name] for tier in TIERS]
        if kept[0] < 1 or kept[-1] > LONGEST_S:
            return (
                f"sums are kept for a second at least, and {LONGEST_S // DAY // 365} years at most"
            )
        if kept != sorted(kept):
            return "longer sums are kept at least as long as shorter ones"
        if self.bytes is not None and not 0 < self.bytes < 1 << 63:
            return "a size is more than nothing"
        if self.cpu_share is not None and not 0 < self.cpu_share <= 1:
            return "a share of all CPU time is more than nothing, and all of it at most"
        return ""

    def as_json(self) -> dict[str, Any]:
        """As it is written."""
        return {
            "schema": SCHEMA,
            "kind": "keep",
            "revision": self.revision,
            "statistics": [asdict(statistic) for statistic in self.statistics.values()],
            "retention": dict(self.retention),
            "budget": {"bytes": self.bytes, "cpu_share": self.cpu_share},
        }


def read_definitions(directory: Path) -> Definitions | None:
    """None where nothing was ever to be kept. ResultsError where the file is damaged, or of a newer
    schema."""
    path = directory / DEFINITIONS
    hint = f"remove it and change anything (iolab keep resume {directory}): it is made again of {STATE}, without pauses and limits"
    data = read_object(path, "keep", SCHEMA, hint)
    if data is None:
        return None
    try:
        definitions = [_definition(statistic) for statistic in data["statistics"]]
        kept = {tier.name: int(data["retention"][tier.name]) for tier in TIERS}
        size, share = data["budget"]["bytes"], data["budget"]["cpu_share"]
        limited = Definitions(
            int(data["revision"]),
            {definition.statistic: definition for definition in definitions},
            kept,
            None if size is None else int(size),
            None if share is None else float(share),
        )
        wrong = limited.wrong
        if wrong:
            raise ValueError(wrong)
        return limited
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ResultsError(f"is damaged: {error!r}", where=path, hint=hint) from None


def _definition(data: Mapping[str, Any]) -> Definition:
    since, source, until = data["since_ns"], data["source"], data.get("until_ns")
    return Definition(
        str(data["statistic"]),
        int(data["added_ns"]),
        None if source is None else str(source),
        None if since is None else int(since),
        spans(data["pauses"]),
        int(data["resumed_ns"]),
        {str(tier): int(ns) for tier, ns in data["floors"].items()},
        None if until is None else int(until),
    )


def next_second(ns: int) -> int:
    """The whole second at a moment, or after it."""
    return -(-ns // SECOND) * SECOND


def spans(data: Any) -> Spans:
    """Pairs of (from, until or None); ValueError or TypeError where they are none."""
    return tuple((int(first), None if until is None else int(until)) for first, until in data)


def read_object(path: Path, kind: str, schema: int, hint: str) -> dict[str, Any] | None:
    """A JSON object that says its kind and schema; None without a file.

    ResultsError for anything else; `hint`: what to do about a damaged one.
    """
    try:
        data = json.loads(read_regular(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ResultsError(f"can't be read: {error.strerror or error}", where=path) from None
    except (ValueError, RecursionError):
        raise ResultsError("is damaged: not JSON", where=path, hint=hint) from None
    if (
        not isinstance(data, dict)
        or data.get("kind") != kind
        or not isinstance(data.get("schema"), int)
    ):
        raise ResultsError(
            f"is damaged: doesn't say that it is of kind '{kind}', and of which schema",
            where=path,
            hint=hint,
        )
    if not holds(data):
        raise ResultsError(
            "is damaged: its checksum is not that of what was written", where=path, hint=hint
        )
    if data["schema"] > schema:
        raise ResultsError(
            f"has schema {data['schema']}, this iolab knows up to {schema}",
            where=path,
            hint="use a newer iolab",
        )
    return data
