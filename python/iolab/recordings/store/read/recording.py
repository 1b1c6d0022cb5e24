# SPDX-License-Identifier: Apache-2.0
"""A recording, opened read-only; it may be growing meanwhile. Never writes. A path to events is opened
whatever holds them: a trace file, standard input, or a recording."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab.base.errors import FormatError, UsageError

from ..base.conditions import Where
from ..base.intervals import Unrecorded, in_all, in_common, join, unrecorded_times, without
from ..base.layout import KINDS, MARKS, PROCESSES, Kind, hot_file, is_recording, telling
from ..base.loss_log import is_time, lacking_words
from ..base.metadata import Facts, read_facts
from ..catalogue import Catalogue, FileCache, LostFile
from ..ledger import ORDERED
from ..segments.segments import MAP_NAMES, Segment, part_of
from .trace import STDIN, Trace

if TYPE_CHECKING:
    from ..segments.hot import UnsealedRows
    from .summary import RecordingSummary

SHOWN = 5
"""Damaged files that a note names."""

__all__ = ["MapFile", "Recording", "Segment", "is_recording"]


@dataclass(frozen=True)
class MapFile:
    """A default map of one segment, or of several up to `number`, as Parquet; its buckets and columns
    are in `maps`."""

    number: int
    path: Path


class Recording:
    """The recording in a directory.

    Each method reads what the recording holds now; those of `frozen()` all tell of one moment. Safe
    to use from several threads.

    Attributes:
        path: the directory. facts: the content of `recording.json`. in_archive: whether its rows
        are in an archive.
    ResultsError where there is none, or one of a newer schema.
    """

    in_archive = False

    def __init__(self, path: Path, catalogue: Catalogue | None = None) -> None:
        """`catalogue`: what it holds; left open, it is read for each call."""
        self.path = path
        self._frozen = catalogue
        self._files = FileCache()
        self._reading = threading.Lock()
        if catalogue is None:
            read_facts(path)

    def frozen(self) -> Recording:
        """The recording at this moment: its metadata is read once, for all that one question
        asks."""
        return self if self._frozen is not None else Recording(self.path, self.catalogue())

    def catalogue(self) -> Catalogue:
        """What the recording holds: now, or when it was frozen."""
        if self._frozen is not None:
            return self._frozen
        with self._reading:
            return Catalogue.read(self.path, self._files)

    @property
    def facts(self) -> Facts:
        """The content of `recording.json`."""
        if self._frozen is not None:
            return self._frozen.facts
        with telling(self.path, "read the recording"):
            return read_facts(self.path)

    def span(self) -> tuple[int, int] | None:
        """See `Catalogue.span`."""
        return self.catalogue().span()

    def segments(self) -> list[Segment]:
        """Files of events, ascending by number: sealed ones, and hot ones with what can be read of
        them.

        A damaged sealed file is left out; `damaged` names it.
        """
        return self.catalogue().segments_of("events")

    def sample_segments(self) -> list[Segment]:
        """Files of samples, as `segments`; sources have their number of samples."""
        return self.catalogue().segments_of("samples")

    def damaged_files(self) -> list[tuple[Path, str]]:
        """Files that can't be read, with the reason: sealed ones, and hot ones that can be read in
        part."""
        catalogue = self.catalogue()
        return [
            *(
                (path, words)
                for kind in KINDS
                for _, path, words, _ in catalogue.lost_segments(kind)
            ),
            *(
                (hot_file(self.path, number, kind), words)
                for kind in KINDS
                for number, words in catalogue.damaged_hot(kind).items()
            ),
            *catalogue.damaged_maps(),
            *((self.path / damage.path, damage.words) for damage in catalogue.damaged_lists()),
        ]

    def trouble(self) -> tuple[str, ...]:
        """What to know about any answer: which files are damaged, missing or unexpected, and the
        I/Os or samples of which time are missing for that reason."""
        catalogue = self.catalogue()
        losses = {kind: catalogue.unreadable(kind) for kind in KINDS}
        lost = {line["words"] for lines in losses.values() for line in lines}
        maps = [
            f"{path.relative_to(self.path)}: {words}" for path, words in catalogue.damaged_maps()
        ]
        troubles = [
            *(words for kind, lines in losses.items() for words in lacking_words(kind, lines)),
            *(f"{words} (other files have the same I/Os)" for words in maps if words not in lost),
            *(f"{damage.path}: {damage.words}" for damage in catalogue.damaged_lists()),
        ]
        named = (
            troubles
            if len(troubles) <= SHOWN
            else [*troubles[:SHOWN], f"and {len(troubles) - SHOWN} more"]
        )
        return (
            (f"damaged or missing files (iolab verify lists them): {'; '.join(named)}",)
            if troubles
            else ()
        )

    def snapshot(self, kind: Kind = "events") -> tuple[list[Segment], UnsealedRows | None]:
        """(sealed segments, rows that are not sealed, None without any) of one moment: no row is
        missing or there twice, though a writer seals meanwhile."""
        catalogue = self.catalogue()
        return catalogue.sealed_of(kind), catalogue.unsealed_rows(kind)

    def maps(self, name: str) -> list[MapFile]:
        """Default maps `name` (io.latency, io.offset, io.size) of sealed segments and of those that
        retention dropped, ascending.

        What is hot has none; nor may a damaged one: compare their numbers with `segments`.
        """
        if name not in MAP_NAMES:
            raise ValueError(f"no default map is called {name}")
        catalogue = self.catalogue()
        through = catalogue.facts.dropped_through
        sealed = {file.number for file in catalogue.sealed["events"]}
        lines = catalogue.segments.lines
        return [
            MapFile(number, part_of(self.path, lines.get(number, {}), number, name).path)
            for number in sorted(catalogue.maps[name])
            if number <= through or number in sealed
        ]

    def losses(self) -> list[Mapping[str, Any]]:
        """What was lost, in the order it was noted: source ("" of all), kind (see
        `writer.LOSS_KINDS`), from_ns, until_ns (None where the time is not known; of a gap, where
        it lasts, or lasted until its session ended), count (None where unknown), words ("" for
        none), notes (how many were joined to this line). What hot files don't tell any more, being
        damaged, is last. `losses.parts_of` lists the parts of a line."""
        catalogue = self.catalogue()
        return [
            *catalogue.losses.lines,
            *(loss for kind in KINDS for loss in catalogue.unreadable(kind)),
        ]

    def unreadable(self, kind: Kind) -> list[Mapping[str, Any]]:
        """See `Catalogue.unreadable`."""
        return self.catalogue().unreadable(kind)

    def lost_segments(self, kind: Kind) -> list[LostFile]:
        """See `Catalogue.lost_segments`."""
        return self.catalogue().lost_segments(kind)

    def damaged_hot(self, kind: Kind) -> list[tuple[Path, str, Mapping[str, Any]]]:
        """(file, what is wrong, the loss) of hot files that are damaged, cut or missing."""
        catalogue = self.catalogue()
        losses = {loss["words"]: loss for loss in catalogue.unreadable(kind)}
        return [
            (
                hot_file(self.path, number, kind),
                words,
                losses.get(f"{hot_file(Path(), number, kind)}: {words}", {}),
            )
            for number, words in catalogue.damaged_hot(kind).items()
        ]

    def damaged_maps(self) -> list[tuple[Path, str]]:
        """See `Catalogue.damaged_maps`."""
        return self.catalogue().damaged_maps()

    def unrecorded_spans(self) -> list[Unrecorded]:
        """Times in which a source was not recorded, or of which what was recorded is lost, each
        with its reason, ascending."""
        catalogue = self.catalogue()
        return unrecorded_times(
            catalogue.facts.sessions,
            [
                *catalogue.losses.single,
                *(loss for kind in KINDS for loss in catalogue.unreadable(kind)),
            ],
        )

    def holes(self, kind: Kind, source: str | None = None) -> list[tuple[int, int]]:
        """(from, until) in ns of times of which nothing is known: of a source of events or samples,
        or of all of them."""
        times = self.unrecorded_spans()
        if source is None:
            return in_all(times, kind, self._recorded_sources())
        return join(time.span for time in times if time.concerns(kind, source))

    def told_ns(self) -> int | None:
        """See `Catalogue.told_ns`."""
        return self.catalogue().told_ns()

    def gaps(self) -> list[tuple[int, int]]:
        """(from, until) in ns of times in which nothing was recorded at all, ascending: between
        sessions, after kills, and where each source has a gap. `unrecorded` lists those of one
        source as well."""
        times = self.unrecorded_spans()
        of_all = [time.span for time in times if time.of is None and not time.source]
        return sorted(
            {*of_all, *without(in_all(times, None, self._recorded_sources()), join(of_all))}
        )

    def breaks(self, source: str) -> list[tuple[int, int]]:
        """(from, until) in ns of times in which readings of a source that follow each other don't
        belong together: gaps, and what two sessions have in common, where the clock was set back
        between them, with the readings at its ends."""
        gaps = (
            time.span
            for time in self.unrecorded_spans()
            if time.of is None and time.concerns("samples", source)
        )
        return sorted(
            [*gaps, *((first - 1, until + 1) for first, until in in_common(self.facts.sessions))]
        )

    def _recorded_sources(self) -> list[str]:
        """Sources that something records while time passes."""
        return [name for name, about in self.facts.sources.items() if "format" not in about]

    def marks(self) -> list[dict[str, Any]]:
        """Named spans, in the order they were made: label, from_ns, until_ns (None: no end yet),
        kind ("run" or "user"), link (or None), facts. Without marks that their users removed."""
        lines: list[dict[str, Any]] = []
        for line in _lines(
            self.path / MARKS, texts=("label", "kind"), wholes=("from_ns",), perhaps=("until_ns",)
        ):
            if line["kind"] != REMOVED:
                lines.append(line)
                continue
            lines = [
                mark for mark in lines if mark["kind"] != "user" or not is_same_mark(mark, line)
            ]
        return [
            {**line, "link": line.get("link"), "facts": line.get("facts") or {}} for line in lines
        ]

    def processes(self) -> list[dict[str, Any]]:
        """Processes that were seen: pid, process (the name that events bear), command (the whole
        line), first_ns."""
        return _lines(
            self.path / PROCESSES,
            texts=("process", "command"),
            wholes=("pid", "first_ns"),
            perhaps=(),
        )

    def summary(self) -> RecordingSummary:
        """What is in it: counts, span, names, percentiles, losses, size."""
        from .summary import summary_of

        return summary_of(self)


REMOVED = "removed"
"""The kind of a line that removes a user's mark."""
_INEXACT_NS = 512
"""A client that has numbers of 53 bits is so far off at most, in times since 1970."""


def is_same_mark(mark: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two marks have the same label and begin."""
    is_near = abs(mark["from_ns"] - other["from_ns"]) <= _INEXACT_NS
    return bool(is_near and mark["label"] == other["label"])


def _lines(
    path: Path, *, texts: tuple[str, ...], wholes: tuple[str, ...], perhaps: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Lines with valid fields; those of `perhaps` may be None."""
    return [
        {**dict.fromkeys(perhaps), **line}
        for line in ORDERED.content(path).lines
        if all(isinstance(line.get(name), str) for name in texts)
        and all(is_time(line.get(name)) for name in wholes)
        and all(line.get(name) is None or is_time(line[name]) for name in perhaps)
    ]


def open_events(
    path: Path, *, format: str | None = None, columns: str | None = None, where: Where | None = None
) -> Trace | Recording:
    """A recording where `path` is the directory of one, else a trace; nothing is read of it yet.

    `format` and `columns` say how to read a trace, `where` is of a trace only: conditions on a
    recording are given with each question. UsageError where there is nothing, or these are given
    for a recording; FormatError for a directory of something else.
    """
    if path != STDIN and path.is_dir():
        if not is_recording(path):
            raise FormatError(
                "is a directory, but not a recording",
                where=path,
                hint="name a trace file, or a directory that was recorded or imported into",
            )
        if format or columns:
            raise UsageError("is a recording: it needs no format and no columns", where=path)
        return Recording(path)
    return Trace(path, format, columns, where or {})
