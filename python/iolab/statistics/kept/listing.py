# SPDX-License-Identifier: Apache-2.0
"""What is kept of a recording, as plain data: statistic, state, since when, size, cost, and what
each tier holds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...errors import FormatError, UsageError
from ...recording.base.layout import KINDS, sealed_numbers
from ...recording.base.metadata import read_facts
from ..language.fields import MAPPED
from ..language.names import Statistic, parse
from . import tables
from .definitions import Definition, Definitions, read_definitions
from .paths import TIERS, Tier, files, folder_name
from .state import Kept, read_state

SECOND = 10**9

ADDING = "what is still there is being added"
"""Why one waits whose backfill is under way."""


def listed(directory: Path) -> list[dict[str, Any]]:
    """A row for each statistic; none where nothing is kept. ResultsError where there is no
    recording.

    `state`: kept; pending (not taken up yet); waiting (nothing was recorded yet that it could be
    made of: `why`); paused; suspended by the budget (`why`). Of what pauses of itself, `why` says
    when. `since_ns`: from where on something is left of it. `gaps`: times between since and until
    in which it was paused or suspended, or of which segments could not be kept. Times are ns, sizes
    bytes.
    """
    read_facts(directory)
    definitions = read_definitions(directory)
    if definitions is None:
        return []
    state = read_state(directory)
    held = state.statistics if state is not None else {}
    return [
        _row(directory, wanted, held.get(name), definitions)
        for name, wanted in definitions.statistics.items()
    ]


def _row(
    directory: Path, wanted: Definition, kept: Kept | None, definitions: Definitions
) -> dict[str, Any]:
    if kept is not None and kept.added_ns != wanted.added_ns:
        kept = None
    tiers = [_tier(directory, tier, wanted.statistic, definitions) for tier in TIERS]
    state, why = _state(directory, wanted, kept)
    gaps = sorted(
        (*wanted.pauses, *((*kept.suspended, *kept.missed) if kept else ())),
        key=lambda each: each[0],
    )
    so_far = kept if kept is not None else Kept(wanted.added_ns, wanted.source)
    since = _since(so_far)
    return {
        "statistic": wanted.statistic,
        "state": state,
        "why": why,
        "source": so_far.source,
        "kind": _kind(wanted.statistic),
        "since_ns": since,
        "until_ns": so_far.until_ns,
        "bytes": sum(each["bytes"] for each in tiers),
        "cpu_ns": so_far.cpu_ns,
        "rows": sum(each["rows"] for each in tiers),
        "segments": so_far.segments,
        "tiers": tiers,
        "gaps": [
            list(each) for each in gaps if each[1] is None or each[1] > max(each[0], since or 0)
        ],
    }


def _since(kept: Kept) -> int | None:
    """Where what is left begins: the longest that any tier goes back."""
    if kept.first_ns is None:
        return None
    return max(kept.first_ns, min(kept.begins.get(tier.name, 0) for tier in TIERS) * SECOND)


def _state(directory: Path, wanted: Definition, kept: Kept | None) -> tuple[str, str]:
    if kept is None:
        return "pending", ""
    if _known(wanted.statistic) is None:
        return "waiting", "this iolab does not know the statistic; a newer version continues it"
    if wanted.paused:
        return "paused", ""
    if kept.is_suspended and kept.resumed_ns == wanted.resumed_ns:
        return "suspended", kept.why
    until = f"until {_when(wanted.until_ns)}" if wanted.until_ns is not None else ""
    if kept.source is not None:
        return "kept", until
    return "waiting", kept.why or (
        ADDING if _is_behind(directory, wanted, kept) else "nothing was sealed since it was added"
    )


def _is_behind(directory: Path, wanted: Definition, kept: Kept) -> bool:
    """Whether it is to be made of what was sealed before it was added, of which some is not in yet."""
    return wanted.since_ns is None and any(
        number > kept.through for kind in KINDS for number in sealed_numbers(directory / kind)
    )


def _when(ns: int) -> str:
    return f"{datetime.fromtimestamp(ns // SECOND, UTC):%Y-%m-%dT%H:%M:%S}Z"


def _known(name: str) -> Statistic | None:
    try:
        return parse(name)
    except UsageError:
        return None


def _kind(name: str) -> str:
    statistic = _known(name)
    if statistic is None:
        return "series"
    return "heat" if statistic.breakdown in MAPPED else "stack" if statistic.breakdown else "series"


def _tier(directory: Path, tier: Tier, name: str, definitions: Definitions) -> dict[str, Any]:
    """What a tier holds; a file that a merge replaces meanwhile, or a damaged one, counts for
    nothing."""
    sizes, rows, first, until = 0, 0, None, None
    found = files(directory, tier, folder_name(name))
    for each in found:
        try:
            told = tables.about(each.path)
            sizes += each.path.stat().st_size
        except (FileNotFoundError, FormatError):
            continue
        rows += told.rows
        first = told.first_s * SECOND if first is None else min(first, told.first_s * SECOND)
        end = (told.last_s + tier.seconds) * SECOND
        until = end if until is None else max(until, end)
    return {
        "tier": tier.name,
        "interval_s": tier.seconds,
        "keep_s": definitions.retention[tier.name],
        "first_ns": first,
        "until_ns": until,
        "files": len(found),
        "bytes": sizes,
        "rows": rows,
    }
