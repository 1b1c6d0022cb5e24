"""A recording, opened read-only; it may be growing meanwhile. Never writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ResultsError
from ...files import open_for_reading
from ..base.checked_files import known_damage
from ..base.intervals import in_common, joined, without
from ..base.layout import (
    KINDS,
    MAPS,
    MARKS,
    PROCESSES,
    Kind,
    hot_file,
    hot_numbers,
    is_recording,
    sealed_file,
    sealed_numbers,
    telling,
)
from ..base.lines import read_lines
from ..base.lock import LOCK, changed, told
from ..base.loss_log import damage, is_time, noted
from ..base.metadata import Facts, read_facts
from ..base.unrecorded import Unrecorded, in_all, unrecorded
from ..segments.segments import (
    MAP_NAMES,
    Segment,
    missing_segments,
    noted_segments,
    part_of,
    sealed_facts,
)
from .damage import damaged_lists, is_written, told_by_lock

if TYPE_CHECKING:
    import pyarrow as pa

    from ..segments.hot import HotRead
    from .summary import RecordingSummary

SHOWN = 5
"""Damaged files that a note names."""

BELIEVED_NS = 3600 * 10**9
"""So long after the last event may a lock of an older iolab have been changed that its time is its
writer's word, and no copy's."""

__all__ = ["MapFile", "Recording", "Segment", "is_recording"]


@dataclass(frozen=True)
class MapFile:
    """A default map of one segment, as Parquet; its buckets and columns are told in `maps`."""

    number: int
    path: Path


class Recording:
    """The recording in a directory.

    Attributes:
        path: the directory. facts: what `recording.json` said when it was opened.
    ResultsError where there is none, or one of a newer schema.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._facts = read_facts(path)
        self._hot: dict[Path, tuple[int, HotRead]] = {}

    @property
    def facts(self) -> Facts:
        """What `recording.json` says now."""
        with telling(self.path, "read the recording"):
            self._facts = read_facts(self.path)
        return self._facts

    def span(self) -> tuple[int, int] | None:
        """(first, last) time of an event in ns; of a sample where there are no events; None where
        there is neither."""
        for kind in KINDS:
            found = self._segments(kind)
            lost = [
                (each["from_ns"], each["until_ns"] - 1)
                for each in self.unreadable(kind)
                if is_time(each["from_ns"]) and is_time(each["until_ns"])
            ]
            ends = [*((each.first_ns, each.last_ns) for each in found), *lost]
            if ends:
                return min(first for first, _ in ends), max(last for _, last in ends)
        return None

    def segments(self) -> list[Segment]:
        """Files of events, ascending; the hot ones, of which what is readable now is told, come
        with the others in order.

        A damaged sealed file is left out; `damaged` names it.
        """
        return self._segments("events")

    def sample_segments(self) -> list[Segment]:
        """Files of samples, as `segments`; sources have their number of samples."""
        return self._segments("samples")

    def damaged(self) -> list[tuple[Path, str]]:
        """Files that can't be read, with the reason: sealed ones, and hot ones that can be read in
        part."""
        hot = [
            (hot_file(self.path, number, kind), words)
            for kind in KINDS
            for number, (_, words) in self._damaged_hot(kind).items()
        ]
        sealed = [(path, words) for kind in KINDS for _, path, words, _ in self.lost_segments(kind)]
        maps = [(path, words) for path, words in self.damaged_maps()]
        lists = [
            (self.path / each.path, each.words) for each in damaged_lists(self.path, self.facts)
        ]
        return sealed + hot + maps + lists

    def trouble(self) -> tuple[str, ...]:
        """What to know about any answer: which files are damaged, missing or unexpected, and what
        they say or keep is lost."""
        found = [f"{path.relative_to(self.path)}: {words}" for path, words in self.damaged()]
        shown = found if len(found) <= SHOWN else [*found[:SHOWN], f"and {len(found) - SHOWN} more"]
        return (
            (
                f"damaged or missing files, whose time is lost where they are of events or samples (iolab verify tells more): "
                f"{'; '.join(shown)}",
            )
            if found
            else ()
        )

    def snapshot(self, kind: Kind = "events") -> tuple[list[Segment], pa.Table | None]:
        """(sealed segments, table of what is hot, None where nothing is) of one moment: no row is
        missing or there twice, though a writer seals meanwhile."""
        hot = self._hot_batches(kind)
        sealed = self._sealed(kind)
        numbers = {each.number for each in sealed}
        batches = [
            batch
            for number, found in hot.items()
            if number not in numbers
            for batch in found.batches
        ]
        if not batches:
            return sealed, None
        import pyarrow as pa

        return sealed, pa.Table.from_batches(batches)

    def maps(self, name: str) -> list[MapFile]:
        """Default maps `name` (io.latency, io.offset, io.size) of sealed segments and of those that
        retention dropped, ascending.

        What is hot has none; nor may a damaged one: compare their numbers with `segments`.
        """
        if name not in MAP_NAMES:
            raise ValueError(f"no default map is called {name}")
        folder = self.path / MAPS / name
        through = self.facts.dropped_through
        return [
            MapFile(number, folder / f"{number:06}.parquet")
            for number in sealed_numbers(folder)
            if number <= through or sealed_file(self.path, number, "events").exists()
        ]

    def losses(self) -> list[Mapping[str, Any]]:
        """What was lost, in the order it was noted: source ("" of all), kind (see
        `writer.LOSS_KINDS`), from_ns, until_ns (None where the time is not known; of a gap, where
        it lasts, or lasted until its session ended), count (None where nobody knows), words ("" for
        none), notes (how many were joined to this line). What hot files don't tell any more, being
        damaged, stands last. `losses.parts_of` tells the parts of a line."""
        return [
            *noted(self.path).lines,
            *(loss for kind in KINDS for loss in self.unreadable(kind)),
        ]

    def unreadable(self, kind: Kind) -> list[Mapping[str, Any]]:
        """Losses of what hot files of events or samples don't tell, being damaged: from their last
        good row on."""
        found: list[Mapping[str, Any]] = []
        unknown: dict[int, str] = {
            number: f"hot {kind} {number:06}: {words}"
            for number, (_, words) in self._damaged_hot(kind).items()
        }
        for number, path, words, facts in (
            *self.lost_segments(kind),
            *(self._lost_maps() if kind == "events" else ()),
        ):
            words = f"{path.relative_to(self.path)}: {words}"
            if facts.get("first_ns") is None or facts.get("last_ns") is None:
                unknown[number] = words
                continue
            for source, each in facts["sources"].items():
                found.append(
                    {
                        "source": source,
                        "kind": "damaged",
                        "from_ns": each.get("first_ns", facts["first_ns"]),
                        "until_ns": each.get("last_ns", facts["last_ns"]) + 1,
                        "count": each.get("events"),
                        "words": words,
                        "of": kind,
                        "notes": 1,
                    }
                )
        if unknown:
            spans, told = self._segments(kind), self.told_ns()
            for number, words in unknown.items():
                first = max((each.last_ns for each in spans if each.number <= number), default=None)
                until = min((each.first_ns for each in spans if each.number > number), default=told)
                found.append({**damage(kind, first, until, None, words), "notes": 1})
        return found

    def lost_segments(self, kind: Kind) -> list[tuple[int, Path, str, Mapping[str, Any]]]:
        """(number, file, what is wrong, what it held as far as its line says) of sealed files that
        are damaged or missing."""
        through = self.facts.dropped_through
        damaged = [
            (number, path, str(facts["damaged"]), facts.get("lost") or {})
            for number, path, facts in sealed_facts(self.path, kind, through)
            if "damaged" in facts
        ]
        return [
            *damaged,
            *(
                (number, path, "it is missing", facts)
                for number, path, facts in missing_segments(
                    self.path, kind, lambda: self.facts.dropped_through
                )
            ),
        ]

    def _lost_maps(self) -> list[tuple[int, Path, str, Mapping[str, Any]]]:
        """The same of default maps of segments that retention removed."""
        facts, noticed = self.facts, noted_segments(self.path)
        through, until = (
            facts.dropped_through,
            (facts.dropped or {}).get("maps_until_ns") or -(2**62),
        )
        found: list[tuple[int, Path, str, Mapping[str, Any]]] = []
        there: dict[str, set[int]] = {}
        for number, line in noticed.items():
            if (
                number > through
                or not isinstance(line.get("digests"), dict)
                or not line["digests"].get("io.latency")
            ):
                continue
            there = there or {
                name: set(sealed_numbers(self.path / MAPS / name)) for name in MAP_NAMES
            }
            if isinstance(line.get("last_ns"), int) and line["last_ns"] > until:
                for name in MAP_NAMES:
                    words = self._wrong_map(number, line, name, number in there[name])
                    if words and number <= self.facts.dropped_through:
                        found.append(
                            (number, part_of(self.path, line, number, name).path, words, line)
                        )
        return found

    def damaged_hot(self, kind: Kind) -> list[tuple[Path, str, Mapping[str, Any]]]:
        """(file, what is wrong, the loss) of hot files that are damaged, cut or missing."""
        losses = {each["words"]: each for each in self.unreadable(kind)}
        return [
            (
                hot_file(self.path, number, kind),
                words,
                losses.get(f"hot {kind} {number:06}: {words}", {}),
            )
            for number, (_, words) in self._damaged_hot(kind).items()
        ]

    def _wrong_map(self, number: int, line: Mapping[str, Any], name: str, is_there: bool) -> str:
        part = part_of(self.path, line, number, name)
        if part.crc32 is None:
            return ""
        if not is_there:
            return "" if part.path.exists() else "it is missing"
        try:
            status = part.path.stat()
        except FileNotFoundError:
            return "it is missing"
        return known_damage(part.path, status) or (
            ""
            if part.bytes == status.st_size
            else f"it has {status.st_size} bytes, {part.bytes} were written"
        )

    def damaged_maps(self) -> list[tuple[Path, str]]:
        """Default maps that are damaged or missing, with what is wrong: of segments that are there
        what they say is asked of the events."""
        through, noticed = self.facts.dropped_through, noted_segments(self.path)
        found = [(path, words) for _, path, words, _ in self._lost_maps()]
        there: dict[str, set[int]] = {
            name: set(sealed_numbers(self.path / MAPS / name)) for name in MAP_NAMES
        }
        for number in sealed_numbers(self.path / "events"):
            line = noticed.get(number)
            if number > through and line is not None:
                found += [
                    (part_of(self.path, line, number, name).path, words)
                    for name in MAP_NAMES
                    if (words := self._wrong_map(number, line, name, number in there[name]))
                    and sealed_file(self.path, number, "events").exists()
                ]
        return found

    def unrecorded(self) -> list[Unrecorded]:
        """Times in which a source was not recorded, or of which what was recorded is lost, each
        with its reason, ascending."""
        return unrecorded(
            self.facts.sessions,
            [*noted(self.path).single, *(loss for kind in KINDS for loss in self.unreadable(kind))],
        )

    def holes(self, kind: Kind, source: str | None = None) -> list[tuple[int, int]]:
        """(from, until) in ns of times of which nothing is known: of a source of events or samples,
        or of all of them."""
        found = self.unrecorded()
        if source is None:
            return in_all(found, kind, self._recorded_sources())
        return joined(each.span for each in found if each.concerns(kind, source))

    def told_ns(self) -> int | None:
        """Until when everything was in it, as its writer last said, about once a second; None where
        nobody said."""
        try:
            with os.fdopen(open_for_reading(self.path / LOCK), "rb") as lock:
                found, older = (
                    said(lock.fileno(), self._facts.is_signed) for said in (told, changed)
                )
        except OSError:
            return None
        # a copy's time of change is its own
        return older if older is not None and older <= self._latest() + BELIEVED_NS else found

    def _latest(self) -> int:
        return max((each.last_ns for kind in KINDS for each in self._segments(kind)), default=0)

    def gaps(self) -> list[tuple[int, int]]:
        """(from, until) in ns of times in which nothing was recorded at all, ascending: between
        sessions, after kills, and where each source has a gap. `unrecorded` tells those of one
        source as well."""
        found = self.unrecorded()
        whole = [each.span for each in found if each.of is None and not each.source]
        return sorted(
            {*whole, *without(in_all(found, None, self._recorded_sources()), joined(whole))}
        )

    def breaks(self, source: str) -> list[tuple[int, int]]:
        """(from, until) in ns of times in which readings of a source that follow each other don't
        belong together: gaps, and what two sessions have in common, where the clock was set back
        between them, with the readings at its ends."""
        gaps = (
            each.span
            for each in self.unrecorded()
            if each.of is None and each.concerns("samples", source)
        )
        return sorted(
            [*gaps, *((first - 1, until + 1) for first, until in in_common(self.facts.sessions))]
        )

    def _recorded_sources(self) -> list[str]:
        """Sources that something records while time passes."""
        return [name for name, about in self._facts.sources.items() if "format" not in about]

    def marks(self) -> list[dict[str, Any]]:
        """Named spans, in the order they were made: label, from_ns, until_ns (None: no end yet),
        kind ("run" or "user"), link (or None), facts."""
        lines = _lines(
            self.path / MARKS, texts=("label", "kind"), wholes=("from_ns",), perhaps=("until_ns",)
        )
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

    def _segments(self, kind: Kind) -> list[Segment]:
        # hot before sealed: what is sealed in between is then seen in both, never in none
        hot = self._hot_batches(kind)
        sealed = self._sealed(kind)
        numbers = {each.number for each in sealed}
        found = [
            _hot_segment(number, hot_file(self.path, number, kind), read)
            for number, read in hot.items()
            if number not in numbers
        ]
        return sorted(
            [*sealed, *(each for each in found if each is not None)], key=lambda each: each.number
        )

    def _sealed(self, kind: Kind) -> list[Segment]:
        return [
            Segment(
                number,
                path,
                "sealed",
                each["first_ns"],
                each["last_ns"],
                {source: int(counts["events"]) for source, counts in each["sources"].items()},
                each,
            )
            for number, path, each in sealed_facts(self.path, kind, self.facts.dropped_through)
            if each["first_ns"] is not None
        ]

    def _damaged_hot(self, kind: Kind) -> dict[int, tuple[HotRead | None, str]]:
        """Hot files that are damaged, cut or missing, and not sealed, by number, with what is
        wrong."""
        told = told_by_lock(self.path, self._facts)
        numbers = hot_numbers(self.path, kind)
        if not numbers and not any(name.endswith(f".{kind}.arrows") for name in told.sizes):
            return {}
        reads = self._hot_batches(kind)
        found: dict[int, tuple[HotRead | None, str]] = {}
        for number, read in reads.items():
            least = told.sizes.get(str(hot_file(self.path, number, kind).relative_to(self.path)), 0)
            if read.damaged or (read.dropped and not is_written(told)):
                found[number] = read, f"{read.dropped} bytes of it are damaged"
            elif read.good < least:
                found[number] = read, f"{read.good} bytes of it are whole, {least} were written"
        missing = [
            name
            for name in told.sizes
            if name.endswith(f".{kind}.arrows") and not (self.path / name).exists()
        ]
        if missing:
            # sealed meanwhile, it is told no more
            sizes, through = told_by_lock(self.path, self._facts).sizes, self.facts.dropped_through
            for name in missing:
                number = int(Path(name).name.split(".")[0])
                if (
                    name in sizes
                    and number > through
                    and not sealed_file(self.path, number, kind).exists()
                ):
                    found[number] = None, "it is missing"
        return {
            number: each
            for number, each in found.items()
            if not sealed_file(self.path, number, kind).exists()
        }

    def _hot_batches(self, kind: Kind) -> dict[int, HotRead]:
        """What hot files hold, by number. One that vanishes meanwhile has been sealed, and is found
        there."""
        found = {}
        for number in hot_numbers(self.path, kind):
            # not before there is a hot file: pyarrow takes its time to load
            from ..base.schema import schema_of
            from ..segments.hot import read_hot

            path = hot_file(self.path, number, kind)
            try:
                with telling(path, "read what is hot"):
                    size = path.stat().st_size
                    held = self._hot.get(path)
                    if held is None or held[0] != size:
                        held = self._hot[path] = (size, read_hot(path, schema_of(kind)))
                    found[number] = held[1]
            except ResultsError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
        self._hot = {path: held for path, held in self._hot.items() if path.exists()}
        return found


def _hot_segment(number: int, path: Path, read: HotRead) -> Segment | None:
    import pyarrow as pa

    if not read.batches:
        return None
    table = pa.Table.from_batches(read.batches)
    times = table.column("time_ns").to_numpy()
    sources: dict[str, int] = {}
    for batch in read.batches:
        part = pa.Table.from_batches([batch])
        part = (
            part.select(["source", "count"])
            if "count" in part.column_names
            else part.select(["source"]).append_column(
                "count", pa.array([1] * part.num_rows, pa.uint64())
            )
        )
        for row in part.group_by("source").aggregate([("count", "sum")]).to_pylist():
            sources[row["source"]] = sources.get(row["source"], 0) + row["count_sum"]
    return Segment(
        number,
        path,
        "hot",
        int(times.min()),
        int(times.max()),
        sources,
        {"rows": table.num_rows, "bytes": read.good},
    )


def _lines(
    path: Path, *, texts: tuple[str, ...], wholes: tuple[str, ...], perhaps: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Lines whose fields are what they should be; those of `perhaps` may be None."""
    return [
        {**dict.fromkeys(perhaps), **line}
        for line in read_lines(path)[0]
        if all(isinstance(line.get(name), str) for name in texts)
        and all(is_time(line.get(name)) for name in wholes)
        and all(line.get(name) is None or is_time(line[name]) for name in perhaps)
    ]
