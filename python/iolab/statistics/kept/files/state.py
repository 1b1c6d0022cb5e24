# SPDX-License-Identifier: Apache-2.0
"""What was kept so far: `histograms/kept.json`, written by the keeper alone, after the files that
it speaks of."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ....errors import ResultsError
from ....recording.base.intervals import join
from ....recording.base.layout import telling, write_json
from ....recording.ledger import CRC, sign
from .definitions import read_object, spans
from .paths import STATE, TIERS, Content, Tier

SCHEMA = 1


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
                        "schema": SCHEMA,
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
    data = read_object(path, "kept", SCHEMA, hint)
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
