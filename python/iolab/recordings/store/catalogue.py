# SPDX-License-Identifier: Apache-2.0
"""What a recording's directory holds at one moment, read once for each question.

The only place where a reader opens the metadata of a recording. If a writer appends, seals, joins
or deletes meanwhile, it is read again. So no segment is listed twice, or wrongly called missing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab.base.errors import ResultsError

from .base.layout import (
    KINDS,
    LOSSES,
    MAPS,
    SEGMENTS,
    FileStatus,
    Kind,
    hot_file,
    hot_numbers,
    sealed_file,
    sealed_statuses,
    telling,
)
from .base.lock import Told, is_written, read_lock
from .base.loss_log import Noted, damage, is_time, loss_of
from .base.metadata import Facts, FactsIdentity, facts_identity, read_facts
from .ledger import MISSING, Numbered, Part, damages_found, wrong_size
from .read.damage import Damage, damaged_lists
from .segments.segment_list import find_lost_files, find_unlisted_maps, is_list_whole
from .segments.segments import (
    MAP_NAMES,
    Ledgers,
    SealedFile,
    Segment,
    find_wrong_files,
    maps_of_line,
    put_joined,
    read_ledgers,
    sealed_files,
)

if TYPE_CHECKING:
    from .segments.hot import HotRead, HotReader, UnsealedRows

TRIES = 5
"""Readings of a recording that changes during each of them; the last one counts."""

BELIEVED_NS = 3600 * 10**9
"""An older iolab shows by the time of change of its lock until when it recorded. Later than this
after the last event it is the time of a copy."""


@dataclass
class HotFile:
    """A hot file as it was read last. size: of the file then, None before it was read."""

    reader: HotReader
    size: int | None = None
    read: HotRead | None = None


@dataclass
class FileCache:
    """Files of a recording as earlier catalogues read them, for one thread at a time. hot: by path.
    sealed: by kind and number. facts: with the identity of their file. latest: the catalogue that
    was read last, with what it depends on."""

    hot: dict[Path, HotFile] = field(default_factory=dict)
    sealed: dict[Kind, dict[int, SealedFile]] = field(
        default_factory=lambda: {kind: {} for kind in KINDS}
    )
    facts: tuple[FactsIdentity, Facts] | None = None
    latest: tuple[tuple[Any, ...], Catalogue] | None = None


LostFile = tuple[int, Path, str, Mapping[str, Any]]
"""Number of the segment, file, what is wrong with it, and what its line says it holds."""


@dataclass(frozen=True)
class Catalogue:
    """The metadata of a recording at one moment.

    Attributes:
        path: the recording. facts: of `recording.json`. lock: what the lock says. lock_changed_ns:
        when an older iolab changed its lock last, None for any other. ledgers: files of lines by
        name. sealed: sealed files by kind, ascending, without those that retention deleted. maps:
        files of default maps by name and number, with their status where it was read; of joined ones
        by the number of the last segment. coarse: status of each coarser file of joined maps. hot:
        hot files by kind and number. answers: what was computed from this catalogue, for others to
        keep: a change of the recording makes another catalogue. version: of this catalogue alone in
        this process.
    """

    path: Path
    facts: Facts
    lock: Told
    lock_changed_ns: int | None
    ledgers: Ledgers
    sealed: Mapping[Kind, Sequence[SealedFile]]
    maps: Mapping[str, Mapping[int, FileStatus]]
    hot: Mapping[Kind, Mapping[int, HotRead]]
    coarse: Mapping[Path, FileStatus] = field(default_factory=dict)
    answers: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    version: int = field(default_factory=count().__next__, compare=False, repr=False)

    @classmethod
    def read(cls, path: Path, cache: FileCache | None = None) -> Catalogue:
        """Read the catalogue of a recording. `cache`: files that were read before; it is updated.
        The catalogue is the same object as long as the recording is whole and does not change.

        ResultsError where there is no recording, or its metadata can't be read.
        """
        cache = FileCache() if cache is None else cache
        before: frozenset[Path] | None = None
        for _ in range(TRIES):
            identity = facts_identity(path)
            if cache.facts is None or cache.facts[0] is None or cache.facts[0] != identity:
                with telling(path, "read the recording"):
                    cache.facts = identity, read_facts(path)
            catalogue, vanished = cls._read(path, cache.facts[1], cache)
            absent = catalogue._absent()
            if (
                not vanished
                and identity == facts_identity(path)
                and absent in (frozenset(), before)
            ):
                break
            before = absent
        return catalogue

    @classmethod
    def _read(cls, path: Path, facts: Facts, cache: FileCache) -> tuple[Catalogue, bool]:
        """The catalogue, and whether a sealed file vanished while it was read."""
        lock, changed_ns = read_lock(path, is_signed=facts.is_signed)
        # hot before sealed: what is sealed meanwhile is in both lists, not in neither
        hot = {kind: _hot_files(path, kind, cache.hot) for kind in KINDS}
        current = {hot_file(path, number, kind) for kind in KINDS for number in hot[kind]}
        for file in [file for file in cache.hot if file not in current]:
            del cache.hot[file]
        vanished = False
        statuses: dict[str, dict[int, FileStatus]] = {}
        for name in (*KINDS, *MAP_NAMES):
            after = facts.dropped_through if name in KINDS else 0
            folder = path / (name if name in KINDS else f"{MAPS}/{name}")
            statuses[name], missed = sealed_statuses(folder, after)
            vanished |= missed and name in KINDS
        ledgers = read_ledgers(path)
        coarse = put_joined(path, ledgers[SEGMENTS].content, statuses)
        state = (
            *(facts, lock, changed_ns, ledgers, damages_found()),
            {kind: {number: id(read) for number, read in hot[kind].items()} for kind in KINDS},
            statuses,
            coarse,
        )
        latest = cache.latest
        if latest is not None and latest[0] == state and latest[1]._is_settled:
            return latest[1], False
        sealed = {
            kind: list(
                sealed_files(
                    path, kind, statuses[kind], ledgers[SEGMENTS].content.lines, cache.sealed[kind]
                )
            )
            for kind in KINDS
        }
        maps = {name: statuses[name] for name in MAP_NAMES}
        catalogue = cls(path, facts, lock, changed_ns, ledgers, sealed, maps, hot, coarse)
        cache.latest = None if vanished else (state, catalogue)
        return catalogue, vanished

    @cached_property
    def _is_settled(self) -> bool:
        """Whether nothing is damaged or missing: else other files and processes decide as well what
        is lost."""
        return not (
            self._absent()
            or any(ledger.refusal for ledger in self.ledgers.values())
            or any(
                read.dropped or read.damaged for kind in KINDS for read in self.hot[kind].values()
            )
            or not self._is_list_whole
            or any(self.lost_segments(kind) for kind in KINDS)
            or self._lost_maps
            or self.damaged_maps()
            or self.damaged_lists()
        )

    @property
    def segments(self) -> Numbered:
        """Lines of `segments.jsonl`."""
        content: Numbered = self.ledgers[SEGMENTS].content
        return content

    @property
    def losses(self) -> Noted:
        """What is noted as lost."""
        content: Noted = self.ledgers[LOSSES].content
        return content

    def _absent(self) -> frozenset[Path]:
        """Files that something lists and that were not found: of a recording that changes they may
        have been deleted in order."""
        return frozenset(
            [path for kind in KINDS for _, path, _ in self._missing[kind]]
            + [path for path, _ in self._missing_hot]
            + [path for path, words in self._wrong_joined if words == MISSING]
        )

    @cached_property
    def _wrong_joined(self) -> list[tuple[Path, str]]:
        """See `find_wrong_files`."""
        statuses = (self.maps, self.coarse)
        return find_wrong_files(self.path, self.segments, *statuses, self._maps_deleted_ns)

    @cached_property
    def _maps_deleted_ns(self) -> int:
        """Default maps that end up to this time were deleted."""
        until_ns: int = (self.facts.dropped or {}).get("maps_until_ns") or -(2**62)
        return until_ns

    def segments_of(self, kind: Kind) -> list[Segment]:
        """Sealed and hot segments of events or samples, ascending by number; without damaged sealed
        files."""
        return self._segments[kind]

    def sealed_of(self, kind: Kind) -> list[Segment]:
        """The sealed ones of `segments_of`."""
        return [segment for segment in self._segments[kind] if segment.kind == "sealed"]

    @cached_property
    def _segments(self) -> Mapping[Kind, list[Segment]]:
        return {kind: self._all_segments(kind) for kind in KINDS}

    def _all_segments(self, kind: Kind) -> list[Segment]:
        sealed = [file.segment for file in self.sealed[kind] if file.segment is not None]
        unsealed = self._unsealed_reads(kind)
        if not unsealed:
            return sealed
        # not without a hot file: pyarrow takes its time to load
        from .segments.hot import segment_of

        hot = [
            segment_of(number, hot_file(self.path, number, kind), read)
            for number, read in unsealed.items()
        ]
        segments = [*sealed, *(segment for segment in hot if segment is not None)]
        return sorted(segments, key=lambda segment: segment.number)

    def unsealed_rows(self, kind: Kind) -> UnsealedRows | None:
        """Rows of hot segments that are not sealed yet; None where there are none."""
        return self._rows_by_kind[kind]

    def _unsealed_reads(self, kind: Kind) -> Mapping[int, HotRead]:
        sealed = {file.number for file in self.sealed[kind] if file.segment is not None}
        return {number: read for number, read in self.hot[kind].items() if number not in sealed}

    @cached_property
    def _rows_by_kind(self) -> Mapping[Kind, UnsealedRows | None]:
        return {kind: self._unsealed_of(kind) for kind in KINDS}

    def _unsealed_of(self, kind: Kind) -> UnsealedRows | None:
        batches = [
            batch for read in self._unsealed_reads(kind).values() for batch in read.by_source
        ]
        if not batches:
            return None
        # not without rows: pyarrow takes its time to load
        from .base.schema import schema_of
        from .segments.hot import UnsealedRows

        return UnsealedRows(batches, schema_of(kind))

    def told_ns(self) -> int | None:
        """Until when (ns) everything was in the recording, as its writer last said; None where it
        did not."""
        older = self.lock_changed_ns
        if older is not None and older <= self._last_ns() + BELIEVED_NS:
            return older
        return self.lock.until_ns

    def _last_ns(self) -> int:
        return max(
            (segment.last_ns for kind in KINDS for segment in self._segments[kind]), default=0
        )

    def lost_segments(self, kind: Kind) -> list[LostFile]:
        """Sealed files that are damaged or missing."""
        return self._lost_segments[kind]

    @cached_property
    def _lost_segments(self) -> Mapping[Kind, list[LostFile]]:
        return {
            kind: [
                *(
                    (
                        file.number,
                        file.path,
                        str(file.facts["damaged"]),
                        file.facts.get("lost") or {},
                    )
                    for file in self.sealed[kind]
                    if "damaged" in file.facts
                ),
                *(
                    (number, path, "it is missing", facts)
                    for number, path, facts in self._missing[kind]
                ),
                *(
                    (number, sealed_file(self.path, number, kind), "it is missing", facts[kind])
                    for number, facts in self._unlisted_losses.items()
                    if kind in facts
                ),
            ]
            for kind in KINDS
        }

    @cached_property
    def _unlisted_losses(self) -> Mapping[int, Mapping[Kind, Mapping[str, Any]]]:
        """Sealed files that are missing, where the list of segments is damaged and has no line of
        them, by number and kind, with what is known of their content."""
        if self._is_list_whole:
            return {}
        return find_lost_files(self.path, self.facts.dropped_through)

    @cached_property
    def _is_list_whole(self) -> bool:
        segments, facts = self.ledgers[SEGMENTS], self.facts
        through, is_signed = facts.dropped_through, facts.is_signed
        return is_list_whole(self.path, segments, self.lock, through, is_signed=is_signed)

    @cached_property
    def _missing(self) -> Mapping[Kind, list[tuple[int, Path, Mapping[str, Any]]]]:
        return {kind: self._missing_of(kind) for kind in KINDS}

    def _missing_of(self, kind: Kind) -> list[tuple[int, Path, Mapping[str, Any]]]:
        """Sealed files that a line lists and that were not there, ascending, with their line."""
        existing = {file.number for file in self.sealed[kind]}
        through = self.facts.dropped_through
        lines = self.segments.lines
        unmatched = lines.keys() - existing
        if kind == "samples":
            unmatched = {number for number in unmatched if "samples" in lines[number]}
        missing = []
        for number in sorted(unmatched):
            line = lines[number]
            facts = line if kind == "events" else line.get("samples", {})
            if number <= through or line.get("dropped"):
                continue
            holds_rows = (
                isinstance(facts, dict)
                and isinstance(facts.get("sources"), dict)
                and "first_ns" in facts
            )
            # an older iolab deleted what has a label without a line that says so
            is_told = "digests" in line or line.get("label") is None
            path = sealed_file(self.path, number, kind)
            # one that was sealed since the folder was listed is still in the list of hot files
            if holds_rows and is_told and not path.exists():
                missing.append((number, path, facts))
        return missing

    @cached_property
    def _lost_maps(self) -> list[LostFile]:
        """Default maps of deleted segments that are damaged or missing, or that a damaged list of
        segments does not have: no answer uses these."""
        lost_files: list[LostFile] = []
        for number, line in self.segments.lines.items():
            digests, last_ns = line.get("digests"), line.get("last_ns")
            if (
                number <= self.facts.dropped_through
                and isinstance(digests, dict)
                and (digests.get("io.latency") or line.get("lost"))
                and isinstance(last_ns, int)
                and last_ns > self._maps_deleted_ns
            ):
                parts = maps_of_line(self.path, line, number)
                lost_files += [
                    (number, path, words, line) for path, words in self._wrong_sizes(parts, number)
                ]
        if not self._is_list_whole:
            lost_files += [
                (number, path, "no line lists it", facts)
                for number, path, facts in find_unlisted_maps(self.path, self.facts.dropped_through)
            ]
            # lines that such a joined map replaced count again, as its own line is lost
            joined = [
                range(lost[3]["joined"], lost[0]) for lost in lost_files if "joined" in lost[3]
            ]
            lost_files = [
                lost for lost in lost_files if not any(lost[0] in numbers for numbers in joined)
            ]
        if not lost_files:
            return []
        # retention may have deleted them since
        until = (read_facts(self.path).dropped or {}).get("maps_until_ns") or -(2**62)
        return [
            lost for lost in lost_files if lost[3]["last_ns"] is None or lost[3]["last_ns"] > until
        ]

    def damaged_maps(self) -> list[tuple[Path, str]]:
        """Default maps that are damaged or missing, with what is wrong. Where the events of such a
        segment exist, these are read instead."""
        return self._damaged_maps

    @cached_property
    def _damaged_maps(self) -> list[tuple[Path, str]]:
        damaged = [
            (file.number, path, words)
            for file in self.sealed["events"]
            for path, words in self._wrong_sizes(file.maps, file.number)
        ]
        if damaged:
            # retention may have deleted them since
            through = read_facts(self.path).dropped_through
            damaged = [
                map_
                for map_ in damaged
                if map_[0] > through and sealed_file(self.path, map_[0], "events").exists()
            ]
        return [
            *((path, words) for _, path, words, _ in self._lost_maps),
            *((path, words) for _, path, words in damaged),
            *(
                (path, words)
                for path, words in self._wrong_joined
                if path.parent.parent.name != "1s"
            ),
        ]

    def damaged_hot(self, kind: Kind) -> Mapping[int, str]:
        """Hot files that are damaged, cut or missing, and not sealed, by number, with what is
        wrong."""
        return self._damaged_hot[kind]

    @cached_property
    def _damaged_hot(self) -> Mapping[Kind, Mapping[int, str]]:
        damaged: dict[Kind, dict[int, str]] = {kind: {} for kind in KINDS}
        for kind in KINDS:
            for number, read in self.hot[kind].items():
                least = self.lock.sizes.get(str(hot_file(Path(), number, kind)), 0)
                if read.damaged or (read.dropped and not is_written(self.lock)):
                    damaged[kind][number] = f"{read.dropped} bytes of it are damaged"
                elif read.good < least:
                    damaged[kind][number] = (
                        f"{read.good} bytes of it are whole, {least} were written"
                    )
        if self._missing_hot:
            # one that was sealed since is in the lock no more
            sizes = read_lock(self.path, is_signed=self.facts.is_signed)[0].sizes
            for path, (number, kind) in self._missing_hot:
                if str(hot_file(Path(), number, kind)) in sizes and not path.exists():
                    damaged[kind][number] = "it is missing"
        return {
            kind: {
                number: words
                for number, words in damaged[kind].items()
                if not sealed_file(self.path, number, kind).exists()
            }
            for kind in KINDS
        }

    @cached_property
    def _missing_hot(self) -> list[tuple[Path, tuple[int, Kind]]]:
        """Hot files that the lock lists and that were neither there nor sealed."""
        missing: list[tuple[Path, tuple[int, Kind]]] = []
        for kind in KINDS:
            sealed = {file.number for file in self.sealed[kind]}
            for name in self.lock.sizes:
                if not name.endswith(f".{kind}.arrows"):
                    continue
                number = int(Path(name).name.split(".")[0])
                if (
                    number > self.facts.dropped_through
                    and number not in sealed
                    and number not in self.hot[kind]
                ):
                    missing.append((self.path / name, (number, kind)))
        return missing

    def damaged_lists(self) -> list[Damage]:
        """What is wrong with `recording.json`, the lock, and the files of lines."""
        return self._damaged_lists

    @cached_property
    def _damaged_lists(self) -> list[Damage]:
        numbers = {kind: [file.number for file in self.sealed[kind]] for kind in KINDS}
        return list(
            damaged_lists(
                self.path, self.facts, lock=self.lock, ledgers=self.ledgers, numbers=numbers
            )
        )

    def unreadable(self, kind: Kind) -> list[Mapping[str, Any]]:
        """Losses by damaged or missing files of events or samples; of a hot file from its last good
        row on."""
        return self._unreadable[kind]

    @cached_property
    def _unreadable(self) -> Mapping[Kind, list[Mapping[str, Any]]]:
        return {kind: self._all_unreadable(kind) for kind in KINDS}

    def _all_unreadable(self, kind: Kind) -> list[Mapping[str, Any]]:
        losses: list[Mapping[str, Any]] = []
        unknown: dict[int, str] = {
            number: f"{hot_file(Path(), number, kind)}: {words}"
            for number, words in self.damaged_hot(kind).items()
        }
        lost = [*self.lost_segments(kind), *(self._lost_maps if kind == "events" else ())]
        for number, path, wrong, facts in lost:
            words = f"{path.relative_to(self.path)}: {wrong}"
            if facts.get("first_ns") is None or facts.get("last_ns") is None:
                unknown[number] = words
                continue
            losses += [
                loss_of(
                    "damaged",
                    source,
                    counts.get("first_ns", facts["first_ns"]),
                    counts.get("last_ns", facts["last_ns"]) + 1,
                    counts.get("events"),
                    words,
                    of=kind,
                    notes=1,
                )
                for source, counts in facts["sources"].items()
            ]
        if unknown:
            segments, end_ns = self.segments_of(kind), self.told_ns() or self._last_ns() + 1
            for number, words in unknown.items():
                first = max(
                    (segment.last_ns for segment in segments if segment.number <= number),
                    default=None,
                )
                until = min(
                    (segment.first_ns for segment in segments if segment.number > number),
                    default=end_ns,
                )
                losses.append({**damage(kind, first, until, None, words), "notes": 1})
        return losses

    def _wrong_sizes(self, parts: Sequence[Part], number: int) -> Iterator[tuple[Path, str]]:
        """Default maps of a segment that are missing, of another size than was written, or known to
        be damaged."""
        for part in parts:
            status = self.maps[part.path.parent.name].get(number)
            words = wrong_size(part, None if status is None else status[1])
            if words:
                yield part.path, words

    def span(self) -> tuple[int, int] | None:
        """(first, last) time of an event in ns; of a sample where there are no events; None where
        there is neither."""
        for kind in KINDS:
            lost = [
                (loss["from_ns"], loss["until_ns"] - 1)
                for loss in self.unreadable(kind)
                if is_time(loss["from_ns"]) and is_time(loss["until_ns"])
            ]
            ends = [
                *((segment.first_ns, segment.last_ns) for segment in self.segments_of(kind)),
                *lost,
            ]
            if ends:
                return min(first for first, _ in ends), max(last for _, last in ends)
        return None


def _hot_files(path: Path, kind: Kind, cache: dict[Path, HotFile]) -> dict[int, HotRead]:
    """Hot files by number. A file that vanishes meanwhile is sealed."""
    hot_files = {}
    for number in hot_numbers(path, kind):
        # not without a hot file: pyarrow takes its time to load
        from .base.schema import schema_of
        from .segments.hot import HotReader

        file = hot_file(path, number, kind)
        try:
            with telling(file, "read what is hot"):
                size = file.stat().st_size
                if file not in cache:
                    cache[file] = HotFile(HotReader(file, schema_of(kind)))
                cached = cache[file]
                if cached.size != size:
                    cached.read, cached.size = cached.reader.read(), size
                assert cached.read is not None
                hot_files[number] = cached.read
        except ResultsError as error:
            cache.pop(file, None)
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
    return hot_files
