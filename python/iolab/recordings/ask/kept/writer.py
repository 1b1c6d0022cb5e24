# SPDX-License-Identifier: Apache-2.0
"""The keeper: whoever writes a recording makes what is to be kept of each segment once it is
sealed, and tidies up behind itself.

Only `keep.json` says what to keep; it is read again and again. State is written
after the files that it speaks of, so that a kill at any moment costs no more than making a
segment's sums again: they get the same file.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from iolab.base.errors import FormatError, IolabError, UsageError
from iolab.base.files import remove_tree
from iolab.base.units import format_number, format_quantity

from ...store.base.layout import KINDS, SEGMENTS, sealed_file, telling
from ...store.base.metadata import Facts
from ...store.read.recording import Recording
from ..engine.snapshot import quiet
from ..question import SECOND, Statistic, parse
from . import aggregate
from .aggregate import Sealed, sealed_after
from .compaction import Merger
from .coverage import is_counted, source_of
from .files import listed, tables
from .files.definitions import (
    Definition,
    Definitions,
    Kept,
    Spans,
    State,
    read_definitions,
    read_state,
)
from .files.paths import DEFINITIONS, TIERS, Content, files, folder, folder_name, path_of
from .recovery import change_definitions, state_of

WINDOW_S = 60.0
"""Seconds over which CPU time is taken at least."""


class Budget:
    """Compares what was spent with what may be."""

    def __init__(self, monotonic: Callable[[], float], cpus: int | None) -> None:
        self._monotonic, self._cpus = monotonic, cpus
        self._spent: deque[tuple[float, dict[str, int]]] = deque()

    def excess(
        self, definitions: Definitions, sizes: Mapping[str, int], cpu_ns: Mapping[str, int]
    ) -> tuple[str, str] | None:
        """(the statistic that has to pause, why), None while all is well.

        Args:
            sizes: bytes on disk of all statistics, those that pause included. cpu_ns: CPU time so
            far of those that are being kept now.
        """
        excess = self._too_large(definitions, sizes, cpu_ns) or self._too_costly(
            definitions, cpu_ns
        )
        if excess is not None:
            self._spent.clear()
        return excess

    def _too_large(
        self, definitions: Definitions, sizes: Mapping[str, int], going: Collection[str]
    ) -> tuple[str, str] | None:
        total = sum(sizes.values())
        if definitions.bytes is None or total <= definitions.bytes or not going:
            return None
        return max(going, key=lambda name: sizes.get(name, 0)), (
            f"kept statistics take {format_quantity(total, 'B', 3)}, the budget is {format_quantity(definitions.bytes, 'B', 3)}"
        )

    def _too_costly(
        self, definitions: Definitions, cpu_ns: Mapping[str, int]
    ) -> tuple[str, str] | None:
        if self._cpus is None:
            return None
        now = self._monotonic()
        self._spent.append((now, dict(cpu_ns)))
        while len(self._spent) > 2 and now - self._spent[1][0] >= WINDOW_S:
            self._spent.popleft()
        begin, before = self._spent[0]
        seconds = now - begin
        if definitions.cpu_share is None or seconds < WINDOW_S:
            return None
        spent = {name: cpu_ns[name] - before[name] for name in cpu_ns if name in before}
        share = sum(spent.values()) / 1e9 / seconds / self._cpus
        if share <= definitions.cpu_share or not spent:
            return None
        return max(spent, key=lambda name: spent[name]), (
            f"keeping statistics took {format_number(share * 100, 2)} % of all CPU time over {seconds:.0f} s, "
            f"the budget is {format_number(definitions.cpu_share * 100, 2)} %"
        )


class Keeper:
    """Keeps the statistics of one recording. Only its writer, or who holds its lock, may use one."""

    def __init__(
        self,
        directory: Path,
        *,
        noticed: Callable[[str], None] = lambda _: None,
        going: Callable[[], bool] = lambda: True,
        cpus: int | None = None,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        """`noticed` gets messages for the user. `going` is asked between segments: what is
        left then, another look makes.
        `cpus`: of the machine, None for no budget of CPU time. `now`: this machine's clock, ns.
        """
        self._directory, self._noticed, self._going = directory, noticed, going
        self._recording = Recording(directory)
        self._budget = Budget(time.monotonic, cpus)
        self._spent: dict[str, int] = {}
        self._mergers: dict[str, Merger] = {}
        self._now = now
        self._seen: tuple[object, ...] = ()
        self._due: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether the last look left nothing to make."""
        return self._seen != ()

    def look(self) -> bool:
        """See whether something is to be done, and do it. Returns whether something was. IolabError
        where it can't be."""
        identities = tuple(_identity(self._directory / name) for name in (DEFINITIONS, SEGMENTS))
        if identities == self._seen and not self._over(self._due):
            return False
        definitions = self._pausing(read_definitions(self._directory))
        if definitions is not None:
            state = read_state(self._directory)
            if state is None:
                state = state_of(self._directory, self._recording, definitions)
            self._take_up(definitions, state)
            if not self._seen:
                # only the first look: whoever writes keeps the list whole
                listed.rebuild_list(self._directory)
            if not self._make(definitions, state):
                return True
        self._seen = identities
        return definitions is not None

    def _over(self, until_ns: int | None) -> bool:
        return until_ns is not None and until_ns <= self._now() + ahead_ns(self._recording.facts)

    def _pausing(self, definitions: Definitions | None) -> Definitions | None:
        """What is to be kept, after what was to be kept until now has been paused."""
        if definitions is None:
            return None
        if any(self._over(statistic.until_ns) for statistic in definitions.statistics.values()):
            definitions = change_definitions(
                self._directory,
                lambda before: replace(
                    before,
                    statistics={
                        name: statistic.pausing(statistic.until_ns)
                        if statistic.until_ns is not None and self._over(statistic.until_ns)
                        else statistic
                        for name, statistic in before.statistics.items()
                    },
                ),
            )
        self._due = min(
            (
                statistic.until_ns
                for statistic in definitions.statistics.values()
                if statistic.until_ns is not None
            ),
            default=None,
        )
        return definitions

    def _take_up(self, definitions: Definitions, state: State) -> None:
        """What is no longer wanted goes; what is new begins."""
        for name in list(state.statistics):
            definition = definitions.statistics.get(name)
            if definition is None or definition.added_ns != state.statistics[name].added_ns:
                self._remove(name)
                del state.statistics[name]
        for name, definition in definitions.statistics.items():
            if name not in state.statistics:
                # one of that name was kept before
                self._remove(name)
            kept = state.statistics.setdefault(name, Kept(definition.added_ns))
            if kept.resumed_ns != definition.resumed_ns:
                kept.resumed_ns = definition.resumed_ns
                if kept.is_suspended:
                    first = kept.suspended[-1][0]
                    kept.suspended[-1] = (
                        first,
                        max(first, -(-definition.resumed_ns // SECOND) * SECOND),
                    )
                    kept.why = ""
        if state.revision != definitions.revision:
            for name in state.statistics:
                self._settle(name, definitions, state)
            state.revision = definitions.revision
            state.write(self._directory)

    def _remove(self, name: str) -> None:
        """Delete the files of a statistic that is no longer kept."""
        self._mergers.pop(name, None)
        for tier in TIERS:
            path = folder(self._directory, tier, folder_name(name))
            with telling(path, "remove what is no longer kept"):
                for file, _ in listed.listed_in(self._directory, tier, path.name):
                    listed.drop(file.path)
                if path.is_dir():
                    remove_tree(path)

    def _make(self, definitions: Definitions, state: State) -> bool:
        """Make what is missing, segment by segment. Returns whether nothing is left."""
        if not state.statistics:
            return True
        known_statistics = {
            name: kept for name, kept in state.statistics.items() if _is_known(name)
        }
        segments = sealed_after(
            self._recording,
            min((kept.through for kept in known_statistics.values()), default=2**62),
        )
        for place, (before, sealed) in enumerate(segments):
            if not self._going():
                return False
            so_far = {name: kept.cpu_ns for name, kept in state.statistics.items()}
            behind = [
                name for name, kept in known_statistics.items() if kept.through < sealed.number
            ]
            with ExitStack() as opened:
                events = (
                    None
                    if sealed.events is None
                    else opened.enter_context(aggregate.Making(self._recording, sealed.events))
                )
                for name in behind:
                    with _charge(state.statistics[name]):
                        self._one(
                            name,
                            definitions.statistics[name],
                            state.statistics[name],
                            before,
                            sealed,
                            events,
                        )
            if place == len(segments) - 1:
                # what catching up costs says nothing of what it costs to go on
                for name in behind:
                    self._spent[name] = (
                        self._spent.get(name, 0) + state.statistics[name].cpu_ns - so_far[name]
                    )
            self._suspend(definitions, state)
            state.write(self._directory)
            for name in behind:
                with _charge(state.statistics[name]):
                    self._settle(name, definitions, state)
        state.write(self._directory)
        return True

    def _one(
        self,
        name: str,
        wanted: Definition,
        kept: Kept,
        before: Sealed | None,
        sealed: Sealed,
        events: aggregate.Making | None,
    ) -> None:
        """What one segment adds to one statistic."""
        begins = next(
            begin_ns
            for begin_ns in (kept.first_ns, wanted.since_ns, self._begins(sealed))
            if begin_ns is not None
        )
        skipped, kept.through = range(kept.through + 1, sealed.number), sealed.number
        if sealed.until_ns <= begins or sealed.is_of_run:
            return
        statistic = parse(name)
        if kept.source is None:
            kept.source, why = source_of(
                statistic,
                wanted.source,
                {*sealed.event_sources, *quiet(self._recording)},
                sealed.sample_sources,
            )
            kept.why = kept.why if kept.is_suspended else why
        kept.first_ns = begins if kept.first_ns is None else kept.first_ns
        until = self._lost_until(skipped, sealed)
        if until is not None and until > (kept.until_ns or begins):
            kept.miss(kept.until_ns or begins, until)
        left_out = tuple(
            span
            for span in (*wanted.left_out, *kept.suspended)
            if span[0] < sealed.until_ns and (span[1] is None or span[1] > sealed.first_ns)
        )
        idle = any(
            first <= sealed.first_ns and (until is None or until >= sealed.until_ns)
            for first, until in left_out
        )
        sums = (
            None if idle else self._sums(statistic, kept, before, sealed, events, begins, left_out)
        )
        if sums is not None and kept.source is not None:
            path = path_of(
                self._directory, TIERS[0], folder_name(name), sealed.number, sealed.number
            )
            about = listed.write(path, [sums], name, kept.source)
            if about is not None:
                kept.segments += 1
                content = Content(sealed.number, sealed.number, about.first_s, about.last_s)
                kept.wrote(TIERS[0], content)
        kept.until_ns = max(kept.until_ns or 0, sealed.until_ns)

    def _lost_until(self, skipped: range, sealed: Sealed) -> int | None:
        """Until when segments before this one are missing, which are damaged or were dropped before
        they were kept; None for none."""
        if any(
            sealed_file(self._directory, number, kind).exists()
            for number in skipped
            for kind in KINDS
        ):
            return sealed.first_ns
        facts = self._recording.facts
        if not skipped or facts.dropped is None or skipped.start > facts.dropped_through:
            return None
        until = facts.dropped.get("until_ns")
        return sealed.first_ns if until is None else min(sealed.first_ns, until + 1)

    def _begins(self, sealed: Sealed) -> int:
        """From where on the recording has something: a whole second."""
        facts = self._recording.facts
        session = (
            facts.sessions[0].get("from_ns")
            if facts.sessions and not facts.dropped_through
            else None
        )
        return (
            min(sealed.first_ns, sealed.first_ns if session is None else session) // SECOND * SECOND
        )

    def _sums(
        self,
        statistic: Statistic,
        kept: Kept,
        before: Sealed | None,
        sealed: Sealed,
        events: aggregate.Making | None,
        begins: int,
        left_out: Spans,
    ) -> tables.Sums | None:
        if kept.source is None:
            return None
        try:
            if is_counted(statistic, kept.source):
                return aggregate.from_samples(
                    self._recording, before, sealed, statistic, kept, begins, left_out
                )
            if events is None or kept.source not in sealed.event_sources:
                return None
            return events.sums(
                statistic,
                kept.source,
                since_ns=begins if sealed.first_ns < begins else None,
                left_out=left_out,
            )
        except FormatError as error:
            # removed meanwhile, or damaged: the others go on
            kept.miss(sealed.first_ns, sealed.until_ns)
            self._noticed(f"{statistic}: segment {sealed.number:06} can't be kept: {error}")
            return None

    def _suspend(self, definitions: Definitions, state: State) -> None:
        """Suspend what exceeds the budget, from the end of what is in on."""
        going = {
            name: kept
            for name, kept in state.statistics.items()
            if not kept.is_suspended and not definitions.statistics[name].is_paused
        }
        sizes = {name: size_of(self._directory, name) for name in state.statistics}
        excess = self._budget.excess(
            definitions, sizes, {name: self._spent.get(name, 0) for name in going}
        )
        if excess is not None:
            name, why = excess
            kept = going[name]
            kept.suspended.append((-(-(kept.until_ns or 0) // SECOND) * SECOND, None))
            kept.why = why
            self._noticed(f"{name} is no longer kept: {why}; iolab keep resume continues it")

    def _settle(self, name: str, definitions: Definitions, state: State) -> None:
        """Merge what can be merged, and delete what is too old. A damaged file stays as it is."""
        kept, definition = state.statistics[name], definitions.statistics[name]
        if kept.source is None:
            return
        if name not in self._mergers:
            self._mergers[name] = Merger(self._directory, name, kept.source)
            self._mergers[name].tidy()
        try:
            self._mergers[name].merge(kept.through)
            begins = self._mergers[name].age(
                (kept.until_ns or 0) // SECOND,
                definitions.retention,
                {tier: floor // SECOND for tier, floor in definition.floors.items()},
            )
        except IolabError as error:
            self._noticed(f"{name}: {error}")
            return
        for name_of_tier, second in begins.items():
            kept.begins[name_of_tier] = max(second, kept.begins.get(name_of_tier, 0))
        for tier, content in self._mergers[name].latest().items():
            kept.wrote(tier, content)


def _is_known(name: str) -> bool:
    """Whether a name is a statistic's; a newer iolab may know more."""
    try:
        parse(name)
    except UsageError:
        return False
    return True


def ahead_ns(facts: Facts) -> int:
    """By how much the clock of the host that was recorded last is ahead of this machine's."""
    return (facts.sessions[-1].get("clock_offset_ns") if facts.sessions else None) or 0


def size_of(directory: Path, name: str) -> int:
    """Bytes on disk of a statistic."""
    return sum(
        _size(file.path) for tier in TIERS for file in files(directory, tier, folder_name(name))
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _identity(path: Path) -> object:
    """Another value when the file is another one, or has changed."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


@contextmanager
def _charge(kept: Kept) -> Iterator[None]:
    """The CPU time that passes is the statistic's."""
    begin = time.thread_time_ns()
    try:
        yield
    finally:
        kept.cpu_ns += time.thread_time_ns() - begin
