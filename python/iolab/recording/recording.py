"""A recording, opened read-only; it may be growing meanwhile. Never writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ResultsError
from ..files import open_for_reading
from .facts import Facts, read_facts
from .layout import KINDS, MAPS, MARKS, PROCESSES, Kind, hot_file, hot_numbers, is_recording, sealed_file, sealed_numbers, telling
from .lines import read_lines
from .lock import LOCK, changed, told
from .losses import damage, is_time, noted
from .segments import MAP_NAMES, Segment, sealed_facts
from .spans import in_common, joined, without
from .unrecorded import Unrecorded, in_all, unrecorded

if TYPE_CHECKING:
    import pyarrow as pa

    from .hot import HotRead
    from .summary import RecordingSummary

BELIEVED_NS = 3600 * 10**9
"""So long after the last event may a lock of an older iolab have been changed that its time is its writer's word, and no copy's."""

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
        """(first, last) time of an event in ns; of a sample where there are no events; None where there is neither."""
        for kind in KINDS:
            found = self._segments(kind)
            if found:
                return min(each.first_ns for each in found), max(each.last_ns for each in found)
        return None

    def segments(self) -> list[Segment]:
        """Files of events, ascending; the hot ones, of which what is readable now is told, come with the others in order.

        A damaged sealed file is left out; `damaged` names it.
        """
        return self._segments("events")

    def sample_segments(self) -> list[Segment]:
        """Files of samples, as `segments`; sources have their number of samples."""
        return self._segments("samples")

    def damaged(self) -> list[tuple[Path, str]]:
        """Files that can't be read, with the reason: sealed ones, and hot ones that can be read in part."""
        hot = [(hot_file(self.path, number, kind), f"{read.dropped} bytes of it are damaged") for kind in KINDS
               for number, read in self._damaged_hot(kind).items()]
        return [(path, facts["damaged"]) for kind in KINDS
                for _, path, facts in sealed_facts(self.path, kind, self._facts.dropped_through) if "damaged" in facts] + hot

    def snapshot(self, kind: Kind = "events") -> tuple[list[Segment], pa.Table | None]:
        """(sealed segments, table of what is hot, None where nothing is) of one moment: no row is missing or there twice, though a
        writer seals meanwhile."""
        hot = self._hot_batches(kind)
        sealed = self._sealed(kind)
        numbers = {each.number for each in sealed}
        batches = [batch for number, found in hot.items() if number not in numbers for batch in found.batches]
        if not batches:
            return sealed, None
        import pyarrow as pa

        return sealed, pa.Table.from_batches(batches)

    def maps(self, name: str) -> list[MapFile]:
        """Default maps `name` (io.latency, io.offset, io.size) of sealed segments and of those that retention dropped, ascending.

        What is hot has none; nor may a damaged one: compare their numbers with `segments`.
        """
        if name not in MAP_NAMES:
            raise ValueError(f"no default map is called {name}")
        folder = self.path / MAPS / name
        through = self.facts.dropped_through
        return [MapFile(number, folder / f"{number:06}.parquet") for number in sealed_numbers(folder)
                if number <= through or sealed_file(self.path, number, "events").exists()]

    def losses(self) -> list[Mapping[str, Any]]:
        """What was lost, in the order it was noted: source ("" of all), kind (see `writer.LOSS_KINDS`), from_ns, until_ns (None where the
        time is not known; of a gap, where it lasts, or lasted until its session ended), count (None where nobody knows), words ("" for
        none), notes (how many were joined to this line). What hot files don't tell any more, being damaged, stands last.
        `losses.parts_of` tells the parts of a line."""
        return [*noted(self.path).lines, *(loss for kind in KINDS for loss in self.unreadable(kind))]

    def unreadable(self, kind: Kind) -> list[Mapping[str, Any]]:
        """Losses of what hot files of events or samples don't tell, being damaged: from their last good row on."""
        damaged = self._damaged_hot(kind)
        if not damaged:
            return []
        found: list[Mapping[str, Any]] = []
        spans, told = self._segments(kind), self.told_ns()
        for number, read in damaged.items():
            first = max((each.last_ns for each in spans if each.number <= number), default=None)
            until = min((each.first_ns for each in spans if each.number > number), default=told)
            found.append({**damage(kind, first, until, None, f"{read.dropped} bytes of hot {kind} {number:06} are damaged"), "notes": 1})
        return found

    def unrecorded(self) -> list[Unrecorded]:
        """Times in which a source was not recorded, or of which what was recorded is lost, each with its reason, ascending."""
        return unrecorded(self.facts.sessions, [*noted(self.path).single, *(loss for kind in KINDS for loss in self.unreadable(kind))])

    def holes(self, kind: Kind, source: str | None = None) -> list[tuple[int, int]]:
        """(from, until) in ns of times of which nothing is known: of a source of events or samples, or of all of them."""
        found = self.unrecorded()
        if source is None:
            return in_all(found, kind, self._recorded_sources())
        return joined(each.span for each in found if each.concerns(kind, source))

    def told_ns(self) -> int | None:
        """Until when everything was in it, as its writer last said, about once a second; None where nobody said."""
        try:
            with os.fdopen(open_for_reading(self.path / LOCK), "rb") as lock:
                found, older = told(lock.fileno()), changed(lock.fileno())
        except OSError:
            return None
        # a copy's time of change is its own
        return older if older is not None and older <= self._latest() + BELIEVED_NS else found

    def _latest(self) -> int:
        return max((each.last_ns for kind in KINDS for each in self._segments(kind)), default=0)

    def gaps(self) -> list[tuple[int, int]]:
        """(from, until) in ns of times in which nothing was recorded at all, ascending: between sessions, after kills, and where each
        source has a gap. `unrecorded` tells those of one source as well."""
        found = self.unrecorded()
        whole = [each.span for each in found if each.of is None and not each.source]
        return sorted({*whole, *without(in_all(found, None, self._recorded_sources()), joined(whole))})

    def breaks(self, source: str) -> list[tuple[int, int]]:
        """(from, until) in ns of times in which readings of a source that follow each other don't belong together: gaps, and what two
        sessions have in common, where the clock was set back between them, with the readings at its ends."""
        gaps = (each.span for each in self.unrecorded() if each.of is None and each.concerns("samples", source))
        return sorted([*gaps, *((first - 1, until + 1) for first, until in in_common(self.facts.sessions))])

    def _recorded_sources(self) -> list[str]:
        """Sources that something records while time passes."""
        return [name for name, about in self._facts.sources.items() if "format" not in about]

    def marks(self) -> list[dict[str, Any]]:
        """Named spans, in the order they were made: label, from_ns, until_ns (None: no end yet), kind ("run" or "user"), link (or None),
        facts."""
        lines = _lines(self.path / MARKS, texts=("label", "kind"), wholes=("from_ns",), perhaps=("until_ns",))
        return [{**line, "link": line.get("link"), "facts": line.get("facts") or {}} for line in lines]

    def processes(self) -> list[dict[str, Any]]:
        """Processes that were seen: pid, process (the name that events bear), command (the whole line), first_ns."""
        return _lines(self.path / PROCESSES, texts=("process", "command"), wholes=("pid", "first_ns"), perhaps=())

    def summary(self) -> RecordingSummary:
        """What is in it: counts, span, names, percentiles, losses, size."""
        from .summary import summary_of

        return summary_of(self)

    def _segments(self, kind: Kind) -> list[Segment]:
        # hot before sealed: what is sealed in between is then seen in both, never in none
        hot = self._hot_batches(kind)
        sealed = self._sealed(kind)
        numbers = {each.number for each in sealed}
        found = [_hot_segment(number, hot_file(self.path, number, kind), read) for number, read in hot.items() if number not in numbers]
        return sorted([*sealed, *(each for each in found if each is not None)], key=lambda each: each.number)

    def _sealed(self, kind: Kind) -> list[Segment]:
        return [Segment(number, path, "sealed", each["first_ns"], each["last_ns"],
                        {source: int(counts["events"]) for source, counts in each["sources"].items()}, each)
                for number, path, each in sealed_facts(self.path, kind, self.facts.dropped_through) if each["first_ns"] is not None]

    def _damaged_hot(self, kind: Kind) -> dict[int, HotRead]:
        """Hot files that are damaged and not sealed, by number, as they were last read: damage stays."""
        numbers = hot_numbers(self.path, kind)
        held = {number: self._hot.get(hot_file(self.path, number, kind)) for number in numbers}
        reads = self._hot_batches(kind) if None in held.values() else {number: each[1] for number, each in held.items() if each}
        damaged = {number: read for number, read in reads.items() if read.damaged}
        return damaged and {number: damaged[number] for number in damaged.keys() - {each.number for each in self._sealed(kind)}}

    def _hot_batches(self, kind: Kind) -> dict[int, HotRead]:
        """What hot files hold, by number. One that vanishes meanwhile has been sealed, and is found there."""
        found = {}
        for number in hot_numbers(self.path, kind):
            # not before there is a hot file: pyarrow takes its time to load
            from .hot import read_hot
            from .schema import schema_of

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
        part = part.select(["source", "count"]) if "count" in part.column_names else part.select(["source"]).append_column(
            "count", pa.array([1] * part.num_rows, pa.uint64()))
        for row in part.group_by("source").aggregate([("count", "sum")]).to_pylist():
            sources[row["source"]] = sources.get(row["source"], 0) + row["count_sum"]
    return Segment(number, path, "hot", int(times.min()), int(times.max()), sources, {"rows": table.num_rows, "bytes": read.good})


def _lines(path: Path, *, texts: tuple[str, ...], wholes: tuple[str, ...], perhaps: tuple[str, ...]) -> list[dict[str, Any]]:
    """Lines whose fields are what they should be; those of `perhaps` may be None."""
    return [{**dict.fromkeys(perhaps), **line} for line in read_lines(path)
            if all(isinstance(line.get(name), str) for name in texts) and all(is_time(line.get(name)) for name in wholes)
            and all(line.get(name) is None or is_time(line[name]) for name in perhaps)]
