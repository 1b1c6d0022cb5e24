# SPDX-License-Identifier: Apache-2.0
"""What is to be kept, and what was kept so far.

`histograms/keep.json` says what is to be kept: it is changed by whoever asks, under a lock; the keeper
reads it and alone does the work.

`histograms/kept.json` says what was kept so far: it is written by the keeper alone, after the files that
it speaks of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from iolab.base.errors import ResultsError
from iolab.base.files import read_regular

from ....store.base.intervals import join
from ....store.base.layout import telling, write_json
from ....store.ledger import CRC, holds, sign
from ...question import SECOND
from .paths import DAY, DEFINITIONS, STATE, TIERS, Content, Tier

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


STATE_SCHEMA = 1


@dataclass
class Kept:
    """A statistic so far.

    Attributes:
        added_ns: of its definition. source: what it is made of; None as long as nothing was there
        that it could be made of. through: number of the last segment that is in. segments: how many
        of them had rows. first_ns: from where on it was kept, None before its first segment;
        until_ns: end of the last segment. read_ns: time of the last reading of counters that is in.
        cpu_ns: CPU time spent on it. suspended: (from, until or None) ns: whole seconds in which
        the budget left it out. missed: (from, until) ns of segments that could not be kept:
        damaged, or deleted before. why: of the latest suspension, or what it waits for.
        resumed_ns: of its definition, when it was last looked at. begins: by tier, the second
        before which nothing is left: it was pruned or too old. latest: by tier, the last file that
        was written.
    """

    added_ns: int
    source: str | None = None
    through: int = 0
    segments: int = 0
    first_ns: int | None = None
    until_ns: int | None = None
    read_ns: int | None = None
    cpu_ns: int = 0
    suspended: list[tuple[int, int | None]] = field(default_factory=list)
    why: str = ""
    resumed_ns: int = 0
    begins: dict[str, int] = field(default_factory=dict)
    missed: list[tuple[int, int]] = field(default_factory=list)
    latest: dict[str, Content] = field(default_factory=dict)

    def wrote(self, tier: Tier, content: Content) -> None:
        """Note the last file of a tier."""
        before = self.latest.get(tier.name)
        if before is None or before.last <= content.last:
            self.latest[tier.name] = content

    def miss(self, first_ns: int, until_ns: int) -> None:
        """Take down a time of which nothing could be kept."""
        self.missed = join([*self.missed, (first_ns, until_ns)])

    @property
    def is_suspended(self) -> bool:
        """Whether it is suspended now."""
        return bool(self.suspended) and self.suspended[-1][1] is None


@dataclass
class State:
    """All statistics, by name. revision: of the definitions that were accepted. is_signed: whether
    its file has a checksum."""

    revision: int = 0
    statistics: dict[str, Kept] = field(default_factory=dict)
    is_signed: bool = True

    def write(self, directory: Path) -> None:
        """Write it as a whole, on disk on return."""
        with telling(directory / STATE, "say what is kept"):
            write_json(
                directory / STATE,
                sign(
                    {
                        "schema": STATE_SCHEMA,
                        "kind": "kept",
                        "revision": self.revision,
                        "statistics": {
                            name: asdict(statistic) for name, statistic in self.statistics.items()
                        },
                    }
                ),
            )


def read_state(directory: Path) -> State | None:
    """None where nothing was kept yet. ResultsError where the file is damaged, or of a newer
    schema."""
    path = directory / STATE
    hint = "remove it: what it says is made again of the files that were kept, but for the times that the budget left out"
    data = read_object(path, "kept", STATE_SCHEMA, hint)
    if data is None:
        return None
    try:
        return State(
            int(data["revision"]),
            {
                str(name): _statistic_state(statistic)
                for name, statistic in data["statistics"].items()
            },
            CRC in data,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(f"is damaged: {error!r}", where=path, hint=hint) from None


def _statistic_state(data: dict[str, Any]) -> Kept:
    source = data["source"]
    first, until, last = (
        None if data[name] is None else int(data[name])
        for name in ("first_ns", "until_ns", "read_ns")
    )
    counts = {
        name: int(data[name])
        for name in ("added_ns", "through", "segments", "cpu_ns", "resumed_ns")
    }
    tier_names = {tier.name for tier in TIERS}
    return Kept(
        **counts,
        first_ns=first,
        until_ns=until,
        read_ns=last,
        source=None if source is None else str(source),
        missed=[(int(begin), int(end)) for begin, end in data.get("missed", ())],
        suspended=list(spans(data["suspended"])),
        why=str(data["why"]),
        begins={
            str(tier): int(second) for tier, second in data["begins"].items() if tier in tier_names
        },
        latest={
            str(tier): content
            for tier, numbers in data.get("latest", {}).items()
            if tier in tier_names and (content := Content.of_json(numbers)) is not None
        },
    )
