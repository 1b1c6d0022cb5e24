# SPDX-License-Identifier: Apache-2.0
"""What is done about kept statistics: list, add, pause, resume, prune, drop. For the command line
and the service.

Whoever records takes a change up within a second or so; of a recording at rest it is done here,
under the writer's lock: all of it, or for `work_s` seconds and a segment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TypedDict

from iolab.base.errors import FormatError, ResultsError, UsageError

from ...store.base.layout import KINDS, sealed_numbers
from ...store.base.lock import take_lock
from ...store.base.metadata import read_facts
from ..language.fields import MAPPED, near
from ..question import SECOND, Statistic, parse, places_asked, same
from .files import tables
from .files.definitions import (
    Definition,
    Definitions,
    Kept,
    State,
    next_second,
    read_definitions,
    read_state,
)
from .files.paths import TIERS, Tier, files, folder_name
from .recovery import change_definitions
from .writer import Keeper, ahead_ns, size_of

__all__ = ["add", "drop", "list_kept", "pause", "prune", "resume", "to_prune"]

LONGEST = 1000
"""Characters of a statistic's name."""
MOST = 100
"""Statistics of a recording."""
WAIT_S = 3.0
"""Seconds that a recorder has to accept a change before it is reported as pending."""
UNFINISHED = "not all segments are included yet: iolab keep resume, another iolab keep command or the next recording continues"
"""Why a statistic is pending though nothing is recorded."""


def add(
    directory: Path,
    names: Sequence[str],
    *,
    source: str | None = None,
    backfill: bool = False,
    wait_s: float = WAIT_S,
    now_ns: int | None = None,
    until_ns: int | None = None,
    work_s: float | None = None,
) -> list[dict[str, Any]]:
    """Keep statistics from now on, and with `backfill` of all that the recording still has. Times
    are on the recording's clock.

    `until_ns`: when they pause of themselves, None for never. A statistic is continued if it was
    added in the same way and the command ended early (killed, full disk).
    UsageError where one has no such name or is kept already, or the recording was imported.
    """
    must_age(directory)
    now = now_of(directory) if now_ns is None else now_ns
    statistics = [parse_name(name) for name in names]

    def how(before: Definitions) -> Definitions:
        after, state = before, read_state(directory)
        for statistic in statistics:
            match = next((name for name in after.statistics if means(name, statistic)), None)
            present = None if match is None else before.statistics.get(match)
            if (
                present is not None
                and (present.since_ns is None) == backfill
                and present.source == source
                and _is_unfinished(directory, present, state)
            ):
                continue  # was ended before it was done, and is continued
            if match is not None:
                raise UsageError(
                    f"{statistic} is kept already", where=directory, hint="iolab keep list shows it"
                )
            if len(after.statistics) >= MOST:
                raise UsageError(
                    f"{MOST} statistics are the most that are kept",
                    where=directory,
                    hint="drop one first",
                )
            after = after.with_(
                Definition(
                    str(statistic),
                    now,
                    source,
                    None if backfill else now // SECOND * SECOND,
                    until_ns=until_ns,
                )
            )
        return after

    return change(directory, how, wait_s, work_s)


def pause(
    directory: Path,
    names: Sequence[str] = (),
    *,
    wait_s: float = WAIT_S,
    now_ns: int | None = None,
    work_s: float | None = None,
) -> list[dict[str, Any]]:
    """Keep no more of them (of all, where none is named) until they are resumed."""
    now = now_of(directory) if now_ns is None else now_ns
    return _each(directory, names, (wait_s, work_s), lambda held: held.pausing(now))


def resume(
    directory: Path,
    names: Sequence[str] = (),
    *,
    wait_s: float = WAIT_S,
    now_ns: int | None = None,
    until_ns: int | None = None,
    work_s: float | None = None,
) -> list[dict[str, Any]]:
    """Continue what was paused, or suspended by the budget.

    `until_ns`: when it pauses of itself; None for never. What is kept for longer than that already
    stays so.
    """
    now = now_of(directory) if now_ns is None else now_ns
    at = next_second(now)

    def how(definition: Definition) -> Definition:
        if definition.until_ns is not None and definition.until_ns <= now:
            definition = definition.pausing(now)
        until = until_ns
        if definition.is_paused:
            first = definition.pauses[-1][0]
            definition = replace(
                definition, pauses=(*definition.pauses[:-1], (first, max(at, first)))
            )
        elif until is not None:
            until = None if definition.until_ns is None else max(until, definition.until_ns)
        return replace(definition, resumed_ns=now, until_ns=until)

    return _each(directory, names, (wait_s, work_s), how)


def prune(
    directory: Path,
    names: Sequence[str],
    *,
    before_ns: int,
    tier: str = TIERS[-1].name,
    wait_s: float = WAIT_S,
    work_s: float | None = None,
) -> list[dict[str, Any]]:
    """Delete what was kept before a moment, in a tier and those finer than it: "1s", "1m" or "1h"
    (everything).

    UsageError for a moment in the future: what is kept until then would be deleted as well.
    """
    must_be_past(directory, before_ns)
    floor = before_ns // SECOND * SECOND
    floors = dict.fromkeys(_and_finer(tier), floor)

    def how(held: Definition) -> Definition:
        return replace(
            held,
            floors={
                **held.floors,
                **{name: max(at, held.floors.get(name, 0)) for name, at in floors.items()},
            },
        )

    return _each(directory, names, (wait_s, work_s), how)


def to_prune(
    directory: Path, names: Sequence[str], *, before_ns: int, tier: str = TIERS[-1].name
) -> list[tuple[str, str, int, int]]:
    """What `prune` would delete: (statistic, tier, from, until) in ns, without what is empty."""
    must_be_past(directory, before_ns)
    definitions = read_definitions(directory) or Definitions()
    kept_names, tiers = _find_names(directory, names, definitions), _and_finer(tier)
    return [
        (
            row["statistic"],
            tier["tier"],
            tier["first_ns"],
            min(tier["until_ns"], before_ns // SECOND * SECOND),
        )
        for row in list_kept(directory)
        if row["statistic"] in kept_names
        for tier in row["tiers"]
        if tier["tier"] in tiers
        and tier["first_ns"] is not None
        and tier["first_ns"] < before_ns // SECOND * SECOND
    ]


def must_be_past(directory: Path, before_ns: int) -> None:
    """UsageError for a moment that is yet to come on the recording's clock."""
    if before_ns > now_of(directory) + SECOND:
        raise UsageError(
            "the moment is in the future: nothing would be kept until then",
            where=directory,
            hint="-30d is 30 days before the end; a moment is written 2026-03-01T12:00:05",
        )


def _and_finer(tier: str) -> list[str]:
    places = [tier.name for tier in TIERS]
    if tier not in places:
        raise UsageError(f"there is no tier '{tier}'", hint=near(tier, places))
    return places[: places.index(tier) + 1]


def drop(
    directory: Path, names: Sequence[str], *, wait_s: float = WAIT_S, work_s: float | None = None
) -> list[dict[str, Any]]:
    """Keep them no more, and remove what was kept of them."""
    if not names:
        raise UsageError(
            "names no statistic to drop",
            where=directory,
            hint="iolab keep list shows those that are kept",
        )

    def how(before: Definitions) -> Definitions:
        after = before
        for name in _find_names(directory, names, before):
            after = after.without(name)
        return after

    return change(directory, how, wait_s, work_s)


def must_age(directory: Path) -> None:
    """UsageError where nothing can be kept of a recording: it was imported."""
    if read_facts(directory).origin.get("kind") == "import":
        raise UsageError(
            "was imported: its events do not age, so that nothing need be kept of them",
            where=directory,
            hint="ask it with iolab query",
        )


def parse_name(name: str) -> Statistic:
    """The statistic of a name that can be kept. UsageError where it can't."""
    if len(name) > LONGEST:
        raise UsageError(
            f"the statistic's name has {len(name)} characters, and {LONGEST} are the most that is kept"
        )
    statistic = parse(name)
    if places := places_asked(statistic):
        raise UsageError(
            f"{statistic} cannot be kept: no event has the {places[0]}",
            hint=f"keep {statistic.group}.{statistic.name}[device]",
        )
    if len(str(statistic)) > LONGEST:
        raise UsageError(
            f"the statistic's name has {len(str(statistic))} characters, and {LONGEST} are the most that is kept"
        )
    return statistic


def means(name: str, asked: Statistic) -> bool:
    """Whether the name of what is kept asks the same; that of a newer iolab may not be known."""
    try:
        return same(asked, parse(name))
    except UsageError:
        return False


def _find_names(directory: Path, names: Sequence[str], definitions: Definitions) -> list[str]:
    kept_names = list(definitions.statistics)
    matches = []
    for name in names:
        if name in kept_names:
            # of a newer iolab perhaps, of which this one knows nothing
            matches.append(name)
            continue
        statistic = parse_name(name)
        match = next((kept_name for kept_name in kept_names if means(kept_name, statistic)), None)
        if match is None:
            raise UsageError(
                f"{statistic} is not kept", where=directory, hint=near(str(statistic), kept_names)
            )
        matches.append(match)
    return matches if names else kept_names


def _each(
    directory: Path,
    names: Sequence[str],
    limits: tuple[float, float | None],
    how: Callable[[Definition], Definition],
) -> list[dict[str, Any]]:
    def all_of_them(before: Definitions) -> Definitions:
        after = before
        for name in _find_names(directory, names, before):
            after = after.with_(how(before.statistics[name]))
        return after

    return change(directory, all_of_them, *limits)


def change(
    directory: Path, how: Callable[[Definitions], Definitions], wait_s: float, work_s: float | None
) -> list[dict[str, Any]]:
    """Change what is to be kept, and apply it: by the recorder, else here. What is kept
    then, as `listed` has it."""
    read_facts(directory)
    revision = change_definitions(directory, how).revision
    with _at_rest(directory) as free:
        if free:
            end = float("inf") if work_s is None else time.monotonic() + work_s
            keeper = Keeper(directory, going=lambda: time.monotonic() < end)
            keeper.look()
            return [
                _mark_unfinished(row) if not keeper.is_done else row for row in list_kept(directory)
            ]
    limit = time.monotonic() + wait_s
    while time.monotonic() < limit:
        state = read_state(directory)
        if state is not None and state.revision >= revision:
            break
        time.sleep(0.1)
    return list_kept(directory)


def _mark_unfinished(row: dict[str, Any]) -> dict[str, Any]:
    return (
        {**row, "state": "pending", "why": UNFINISHED}
        if row["state"] in ("kept", "waiting")
        else row
    )


@contextmanager
def _at_rest(directory: Path) -> Iterator[bool]:
    """Whether nothing writes the recording; then its lock is held meanwhile."""
    lock: IO[str] | None
    try:
        lock = take_lock(directory)
    except ResultsError as error:
        if error.__cause__ is not None:
            raise
        lock = None
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.close()


def now_of(directory: Path) -> int:
    """What the clock of a recording's host says now, ns: of another machine's, as far as it was
    ahead when that was last reached."""
    return time.time_ns() + ahead_ns(read_facts(directory))


ADDING = "what is still there is being added"
"""Why a statistic waits during its backfill."""


def list_kept(directory: Path) -> list[dict[str, Any]]:
    """A row for each statistic; none where nothing is kept. ResultsError where there is no
    recording.

    `state`: kept; pending (not accepted yet); waiting (nothing was recorded yet that it could be
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
    kept_statistics = state.statistics if state is not None else {}
    return [
        _row(directory, definition, kept_statistics.get(name), definitions)
        for name, definition in definitions.statistics.items()
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
        "bytes": sum(tier["bytes"] for tier in tiers),
        "cpu_ns": so_far.cpu_ns,
        "rows": sum(tier["rows"] for tier in tiers),
        "segments": so_far.segments,
        "tiers": tiers,
        "gaps": [list(gap) for gap in gaps if gap[1] is None or gap[1] > max(gap[0], since or 0)],
    }


def _since(kept: Kept) -> int | None:
    """The earliest time of which a tier still has sums."""
    if kept.first_ns is None:
        return None
    return max(kept.first_ns, min(kept.begins.get(tier.name, 0) for tier in TIERS) * SECOND)


def _state(directory: Path, wanted: Definition, kept: Kept | None) -> tuple[str, str]:
    if kept is None:
        return "pending", ""
    if _parse_known(wanted.statistic) is None:
        return "waiting", "this iolab does not know the statistic; a newer version continues it"
    if wanted.is_paused:
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


def _is_unfinished(directory: Path, wanted: Definition, state: State | None) -> bool:
    """Whether a statistic was not accepted yet, or sealed segments of its backfill are missing."""
    kept = None if state is None else state.statistics.get(wanted.statistic)
    if kept is None or kept.added_ns != wanted.added_ns:
        return True
    return _is_behind(directory, wanted, kept)


def _when(ns: int) -> str:
    return f"{datetime.fromtimestamp(ns // SECOND, UTC):%Y-%m-%dT%H:%M:%S}Z"


def _parse_known(name: str) -> Statistic | None:
    try:
        return parse(name)
    except UsageError:
        return None


def _kind(name: str) -> str:
    statistic = _parse_known(name)
    if statistic is None:
        return "series"
    return "heat" if statistic.breakdown in MAPPED else "stack" if statistic.breakdown else "series"


def _tier(directory: Path, tier: Tier, name: str, definitions: Definitions) -> dict[str, Any]:
    """What a tier holds; a file that a merge replaces meanwhile, or a damaged one, counts for
    nothing."""
    sizes, rows, first, until = 0, 0, None, None
    tier_files = files(directory, tier, folder_name(name))
    for tier_file in tier_files:
        try:
            about = tables.about(tier_file.path)
            sizes += tier_file.path.stat().st_size
        except (FileNotFoundError, FormatError):
            continue
        rows += about.rows
        first = about.first_s * SECOND if first is None else min(first, about.first_s * SECOND)
        end = (about.last_s + tier.seconds) * SECOND
        until = end if until is None else max(until, end)
    return {
        "tier": tier.name,
        "interval_s": tier.seconds,
        "keep_s": definitions.retention[tier.name],
        "first_ns": first,
        "until_ns": until,
        "files": len(tier_files),
        "bytes": sizes,
        "rows": rows,
    }


def limits(directory: Path) -> dict[str, Any]:
    """`bytes` and `cpu_share` (None: any), `retention` (by tier, seconds), `used_bytes` on disk
    now, and `pending`: whether whoever records has not taken them up yet. Those that hold unless
    chosen where nothing was ever kept.

    ResultsError where there is no recording, or `keep.json` is damaged.
    """
    read_facts(directory)
    definitions = read_definitions(directory) or Definitions()
    state = read_state(directory)
    return {
        "bytes": definitions.bytes,
        "cpu_share": definitions.cpu_share,
        "retention": dict(definitions.retention),
        "used_bytes": sum(size_of(directory, name) for name in definitions.statistics),
        "pending": definitions.revision > (state.revision if state is not None else 0),
    }


class Wanted(TypedDict, total=False):
    """Limits to change; those that are not named stay as they are.

    `bytes`: size on disk of all kept statistics together; `cpu_share`: of all CPU time, 0.05 for 5
    %; None for any. `retention`: by tier ("1s", "1m", "1h") the seconds for which its sums stay.
    """

    bytes: int | None
    cpu_share: float | None
    retention: Mapping[str, int]


def limit(
    directory: Path, wanted: Wanted, *, wait_s: float = WAIT_S, work_s: float | None = None
) -> dict[str, Any]:
    """Change some limits; what holds then, as `limits` has it. A statistic that is suspended stays
    so until it is resumed.

    UsageError for limits that can't be, and of a recording that was imported.
    """
    must_age(directory)
    places = [tier.name for tier in TIERS]
    for tier in wanted.get("retention", {}):
        if tier not in places:
            raise UsageError(f"there is no tier '{tier}'", hint=near(tier, places))

    def how(before: Definitions) -> Definitions:
        after = replace(
            before,
            bytes=wanted.get("bytes", before.bytes),
            cpu_share=wanted.get("cpu_share", before.cpu_share),
            retention={**before.retention, **wanted.get("retention", {})},
        )
        if after.wrong:
            kept = ", ".join(f"{tier}={seconds} s" for tier, seconds in after.retention.items())
            raise UsageError(
                after.wrong,
                where=directory,
                hint=f"requested: {kept}" if "retention" in wanted else None,
            )
        return after

    change(directory, how, wait_s, work_s)
    return limits(directory)


OF_SOURCE = {
    "block": ("io.ops[op]", "io.bytes[op]", "io.ops[latency]"),
    "syscall": ("file.ops[op]", "file.bytes[op]", "file.ops[latency]"),
    "nfs": ("nfs.ops[op]", "nfs.bytes[op]", "nfs.ops[latency]"),
    "counters": ("io.utilization[device]", "cpu.utilization[mode]"),
}
"""By the source that is recorded."""
COUNTED = ("io.ops[op]", "io.bytes[op]")
"""Of counters where no events of devices are recorded."""


def defaults(sources: Collection[str]) -> list[str]:
    """Statistics for what is recorded, by name."""
    names = [name for source in sources for name in OF_SOURCE.get(source, ())]
    if "counters" in sources and "block" not in sources:
        names += COUNTED
    return names


def begin(
    directory: Path, sources: Collection[str], asked: Sequence[str] | None, now_ns: int
) -> Definitions | None:
    """What is kept from now on: `asked`, and what was kept there before; the defaults where that
    is None and nothing was ever kept.

    None where nothing is. ResultsError where it can't be written.
    """
    if asked is None and read_definitions(directory) is not None:
        return read_definitions(directory)
    names = defaults(sources) if asked is None else list(asked)
    if not names:
        return read_definitions(directory)

    def how(before: Definitions) -> Definitions:
        after = before
        for name in names:
            statistic = parse_name(name)
            if not any(means(kept_name, statistic) for kept_name in after.statistics):
                after = after.with_(
                    Definition(str(statistic), now_ns, since_ns=now_ns // SECOND * SECOND)
                )
        return after

    return change_definitions(directory, how)
