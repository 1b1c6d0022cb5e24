# SPDX-License-Identifier: Apache-2.0
"""What is done about kept statistics: list, add, pause, resume, prune, drop. For the command line
and the service.

Whoever records takes a change up within a second or so; of a recording at rest it is done here,
under the writer's lock: all of it, or for `work_s` seconds and a segment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from ...errors import ResultsError, UsageError
from ...recording.base.lock import take_lock
from ...recording.base.metadata import read_facts
from ..language.fields import near
from ..language.intervals import SECOND
from ..language.names import Statistic, parse, same
from .definitions import Definition, Definitions, next_second, read_definitions
from .listing import listed
from .paths import TIERS
from .recovery import change_definitions
from .state import read_state
from .writer import Keeper, ahead_ns

__all__ = ["add", "drop", "listed", "pause", "prune", "resume", "to_prune"]

LONGEST = 1000
"""Characters of a statistic's name."""
MOST = 100
"""Statistics of a recording."""
WAIT_S = 3.0
"""Seconds that a recorder has to take a change up before it is told as pending."""
UNFINISHED = "not all segments are included yet: iolab keep resume, another iolab keep command or the next recording continues"
"""Why one is pending though nobody records."""


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

    `until_ns`: when they pause of themselves, None for never.
    UsageError where one has no such name or is kept already, or the recording was imported.
    """
    must_age(directory)
    now = now_of(directory) if now_ns is None else now_ns
    wanted = [checked(name) for name in names]

    def how(before: Definitions) -> Definitions:
        after = before
        for asked in wanted:
            if any(means(held, asked) for held in after.statistics):
                raise UsageError(
                    f"{asked} is kept already", where=directory, hint="iolab keep list shows it"
                )
            if len(after.statistics) >= MOST:
                raise UsageError(
                    f"{MOST} statistics are the most that are kept",
                    where=directory,
                    hint="drop one first",
                )
            after = after.with_(
                Definition(
                    str(asked),
                    now,
                    source,
                    None if backfill else now // SECOND * SECOND,
                    until_ns=until_ns,
                )
            )
        return after

    return changed(directory, how, wait_s, work_s)


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
    """Go on with what was paused, or suspended by the budget.

    `until_ns`: when it pauses of itself; None for never. What is kept for longer than that already
    stays so.
    """
    now = now_of(directory) if now_ns is None else now_ns
    at = next_second(now)

    def how(held: Definition) -> Definition:
        if held.until_ns is not None and held.until_ns <= now:
            held = held.pausing(now)
        until = until_ns
        if held.paused:
            first = held.pauses[-1][0]
            held = replace(held, pauses=(*held.pauses[:-1], (first, max(at, first))))
        elif until is not None:
            until = None if held.until_ns is None else max(until, held.until_ns)
        return replace(held, resumed_ns=now, until_ns=until)

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
    held, tiers = _found(directory, names, definitions), _and_finer(tier)
    return [
        (
            row["statistic"],
            each["tier"],
            each["first_ns"],
            min(each["until_ns"], before_ns // SECOND * SECOND),
        )
        for row in listed(directory)
        if row["statistic"] in held
        for each in row["tiers"]
        if each["tier"] in tiers
        and each["first_ns"] is not None
        and each["first_ns"] < before_ns // SECOND * SECOND
    ]


def must_be_past(directory: Path, before_ns: int) -> None:
    """UsageError for a moment that is yet to come on the recording's clock."""
    if before_ns > now_of(directory) + SECOND:
        raise UsageError(
            "the moment lies in the future: nothing would be kept until then",
            where=directory,
            hint="-30d is 30 days before the end; a moment is written 2026-03-01T12:00:05",
        )


def _and_finer(tier: str) -> list[str]:
    places = [each.name for each in TIERS]
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
        for name in _found(directory, names, before):
            after = after.without(name)
        return after

    return changed(directory, how, wait_s, work_s)


def must_age(directory: Path) -> None:
    """UsageError where nothing can be kept of a recording: it was imported."""
    if read_facts(directory).origin.get("kind") == "import":
        raise UsageError(
            "was imported: its events do not age, so that nothing need be kept of them",
            where=directory,
            hint="ask it with iolab query",
        )


def checked(name: str) -> Statistic:
    """The statistic of a name that can be kept. UsageError where it can't."""
    if len(name) > LONGEST:
        raise UsageError(
            f"the statistic's name has {len(name)} characters, and {LONGEST} are the most that is kept"
        )
    asked = parse(name)
    if len(str(asked)) > LONGEST:
        raise UsageError(
            f"the statistic's name has {len(str(asked))} characters, and {LONGEST} are the most that is kept"
        )
    return asked


def means(name: str, asked: Statistic) -> bool:
    """Whether the name of what is kept asks the same; that of a newer iolab may not be known."""
    try:
        return same(asked, parse(name))
    except UsageError:
        return False


def _found(directory: Path, names: Sequence[str], definitions: Definitions) -> list[str]:
    held = list(definitions.statistics)
    found = []
    for name in names:
        if name in held:
            # of a newer iolab perhaps, of which this one knows nothing
            found.append(name)
            continue
        asked = checked(name)
        match = next((each for each in held if means(each, asked)), None)
        if match is None:
            raise UsageError(f"{asked} is not kept", where=directory, hint=near(str(asked), held))
        found.append(match)
    return found if names else held


def _each(
    directory: Path,
    names: Sequence[str],
    limits: tuple[float, float | None],
    how: Callable[[Definition], Definition],
) -> list[dict[str, Any]]:
    def all_of_them(before: Definitions) -> Definitions:
        after = before
        for name in _found(directory, names, before):
            after = after.with_(how(before.statistics[name]))
        return after

    return changed(directory, all_of_them, *limits)


def changed(
    directory: Path, how: Callable[[Definitions], Definitions], wait_s: float, work_s: float | None
) -> list[dict[str, Any]]:
    """Change what is to be kept, and have it taken up: by whoever records, else here. What is kept
    then, as `listed` has it."""
    read_facts(directory)
    revision = change_definitions(directory, how).revision
    with _at_rest(directory) as free:
        if free:
            end = float("inf") if work_s is None else time.monotonic() + work_s
            keeper = Keeper(directory, going=lambda: time.monotonic() < end)
            keeper.look()
            return [_unfinished(row) if not keeper.is_done else row for row in listed(directory)]
    limit = time.monotonic() + wait_s
    while time.monotonic() < limit:
        state = read_state(directory)
        if state is not None and state.revision >= revision:
            break
        time.sleep(0.1)
    return listed(directory)


def _unfinished(row: dict[str, Any]) -> dict[str, Any]:
    return (
        {**row, "state": "pending", "why": UNFINISHED}
        if row["state"] in ("kept", "waiting")
        else row
    )


@contextmanager
def _at_rest(directory: Path) -> Iterator[bool]:
    """Whether nobody writes the recording; then its lock is held meanwhile."""
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
