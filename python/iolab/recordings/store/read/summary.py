# SPDX-License-Identifier: Apache-2.0
"""What a recording holds, from its segments' facts and default maps; only what is hot is read
itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from iolab import _core
from iolab.base.errors import FormatError
from iolab.base.files import map_regular

from ..base.schema import LATENCY_BITS
from ..ledger import DamagedError, check, damages
from ..segments.segments import noted_segments, part_of
from .damage import was_killed

if TYPE_CHECKING:
    import pyarrow as pa

    from ..base.intervals import Unrecorded
    from ..base.layout import Kind
    from ..base.metadata import Facts
    from ..segments.sealing import Maps
    from ..segments.segments import Segment

QUANTILES = {"50": 0.5, "90": 0.9, "99": 0.99, "99.9": 0.999, "99.99": 0.9999, "max": 1.0}
_KEYS = ["source", "op", "index"]
MAPPED = ("io.latency", "io.size")
"""Default maps that percentiles come of."""
SHOWN = 20
"""Names of a dimension that a summary gives."""


class Summarized(Protocol):
    """What a summary reads of a recording: the members of `Recording` of these names."""

    path: Path

    @property
    def facts(self) -> Facts: ...
    def snapshot(self, kind: Kind = ...) -> tuple[list[Segment], pa.Table | None]: ...
    def segments(self) -> list[Segment]: ...
    def sample_segments(self) -> list[Segment]: ...
    def damaged_files(self) -> list[tuple[Path, str]]: ...
    def losses(self) -> list[Mapping[str, Any]]: ...
    def unrecorded_spans(self) -> list[Unrecorded]: ...
    def told_ns(self) -> int | None: ...
    def gaps(self) -> list[tuple[int, int]]: ...
    def marks(self) -> list[dict[str, Any]]: ...
    def processes(self) -> list[dict[str, Any]]: ...


@dataclass(frozen=True)
class RecordingSummary:
    """What is in a recording now.

    Attributes:
        path, facts: where it is, and `recording.json`.
        events: I/Os; rows: lines they take (of a histogram log fewer than I/Os).
        samples: readings of counters. sources: of each source its events, first_ns, last_ns, largest_size, and
        largest_latency by operation. first_ns, last_ns: span of the events, of the samples where
        there are none, and of the sessions where there are neither. names: I/Os of the largest
        names of op, device, process, file, mount, client, job, error and flags. commands: command
        lines of the largest names of process, as first seen; none of the kernel's own threads.
        distinct: different names; where segments were too many to know, at least so many. partial:
        dimensions of which a segment
            had more names than it keeps count of, so that those shown may have a few I/Os more.
        percentiles: of latency and size by source: {"50": ..., "max": ...} in ns and bytes, upper
        bounds of 6-bit buckets,
            none beyond the largest value; max is exact.
        latency_by: the same of latency by source, then op. mean: of latency in ns by source, exact.
        lost: I/Os or records lost (overrun, missed); damaged, unpaired: likewise. unknown: losses
        of an unknown number. losses: number of notes and their sum by kind. gaps: (from,
        until) without any recording. unrecorded: times in which one source or all were not
        recorded, with reasons. marks: as noted. segments: number of sealed and hot ones. bytes: on
        disk, of events (sealed), hot, samples, maps and all. broken: (file, reason) of files that
        can't be read. is_killed: whether the last writer ended without closing the recording, and
        no other one continued it; complete_ns: until when the recording is complete then, in ns
        since 1970, None where it is not known.
    """

    path: Path
    facts: Facts
    events: int
    rows: int
    samples: int
    sources: Mapping[str, Mapping[str, Any]]
    first_ns: int | None
    last_ns: int | None
    names: Mapping[str, Mapping[str, int]]
    commands: Mapping[str, Sequence[str]]
    distinct: Mapping[str, int]
    partial: Sequence[str]
    percentiles: Mapping[str, Mapping[str, Mapping[str, int]]]
    latency_by: Mapping[str, Mapping[str, Mapping[str, int]]]
    mean: Mapping[str, float]
    lost: int
    damaged: int
    unpaired: int
    unknown: int
    losses: Mapping[str, Mapping[str, int]]
    gaps: Sequence[tuple[int, int]]
    unrecorded: Sequence[Unrecorded]
    marks: Sequence[Mapping[str, Any]]
    segments: Mapping[str, int]
    bytes: Mapping[str, int]
    broken: Sequence[tuple[Path, str]]
    is_killed: bool = False
    complete_ns: int | None = None

    @property
    def bytes_per_io(self) -> float | None:
        """Sealed bytes of events for each of their rows; None where nothing is sealed."""
        rows = self.segments["sealed_rows"]
        return self.bytes["events"] / rows if rows else None


def summary_of(recording: Summarized) -> RecordingSummary:
    """Look at everything once. Default maps that are damaged or missing are rebuilt from their
    events, not on disk."""
    # one whose map and events are damaged is known as such then
    for _ in range(2):
        summary = _summary_of(recording)
        if summary is not None:
            return summary
    raise FormatError("changes while it is read", where=recording.path)


def _summary_of(recording: Summarized) -> RecordingSummary | None:
    sealed, hot = recording.snapshot("events")
    facts = recording.facts
    totals = _Whole()
    for segment in sealed:
        totals.add_segment(segment.facts)
    if hot is not None:
        totals.hot(hot.table())
    maps = _read_maps(recording.path, sealed)
    if maps is None:
        return None
    percentiles, latency_by, mean = _distributions(maps, totals.hot_maps, totals.sources)
    samples = recording.sample_segments()
    spans = [(source["first_ns"], source["last_ns"]) for source in totals.sources.values()] or [
        (sample.first_ns, sample.last_ns) for sample in samples
    ]
    spans = spans or _sessions(recording)
    losses = _losses(recording.losses())
    names = {
        name: dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:SHOWN])
        for name, counts in totals.names.items()
    }
    is_killed = was_killed(recording.path, facts)
    return RecordingSummary(
        path=recording.path,
        facts=facts,
        events=sum(source["events"] for source in totals.sources.values()),
        rows=totals.rows,
        samples=sum(sum(sample.sources.values()) for sample in samples),
        sources=totals.sources,
        first_ns=min((first for first, _ in spans), default=None),
        last_ns=max((last for _, last in spans), default=None),
        names=names,
        commands=_commands(recording.processes(), names.get("process", {})),
        distinct={
            name: max(len(totals.names[name]), totals.distinct[name]) for name in totals.names
        },
        partial=sorted(totals.partial),
        percentiles=percentiles,
        latency_by=latency_by,
        mean=mean,
        lost=sum(losses.get(kind, {}).get("count", 0) for kind in ("overrun", "missed")),
        damaged=losses.get("damaged", {}).get("count", 0),
        unpaired=losses.get("unpaired", {}).get("count", 0),
        unknown=sum(loss["unknown"] for kind, loss in losses.items() if kind != "gap"),
        losses=losses,
        gaps=recording.gaps(),
        unrecorded=recording.unrecorded_spans(),
        marks=recording.marks(),
        segments={
            "sealed": len(sealed),
            "hot": sum(segment.kind == "hot" for segment in recording.segments()),
            "sealed_rows": sum(int(segment.facts["rows"]) for segment in sealed),
        },
        bytes=_sizes(recording.path),
        broken=recording.damaged_files(),
        is_killed=is_killed,
        complete_ns=recording.told_ns() if is_killed else None,
    )


def _sessions(recording: Summarized) -> list[tuple[int, int]]:
    """From when to when a recording in which nothing happened was recorded, as far as that is
    recorded; otherwise nothing."""
    sessions = recording.facts.sessions
    begun = [first for session in sessions if (first := session.get("from_ns")) is not None]
    if not begun:
        return []
    ended = sessions[-1].get("until_ns")
    until = recording.told_ns() if ended is None else ended
    return [(min(begun), max([*begun, (until or 0) - 1]))]


class _Whole:
    """Facts of segments, added up."""

    def __init__(self) -> None:
        self.rows = 0
        self.sources: dict[str, dict[str, Any]] = {}
        self.names: dict[str, dict[str, int]] = {}
        self.distinct: dict[str, int] = {}
        self.partial: set[str] = set()
        self.hot_maps: dict[str, pa.Table] = {}

    def add_segment(self, facts: Mapping[str, Any]) -> None:
        self.rows += int(facts["rows"])
        for source, own in facts["sources"].items():
            source_facts = self.sources.setdefault(
                source, {"events": 0, "first_ns": own["first_ns"], "last_ns": own["last_ns"]}
            )
            source_facts |= {
                "events": source_facts["events"] + own["events"],
                "first_ns": min(source_facts["first_ns"], own["first_ns"]),
                "last_ns": max(source_facts["last_ns"], own["last_ns"]),
            }
            if "largest_size" in own:
                source_facts["largest_size"] = max(
                    own["largest_size"], source_facts.get("largest_size", 0)
                )
            latencies = source_facts.setdefault("largest_latency", {})
            for op, largest in own.get("largest_latency", {}).items():
                latencies[op] = max(largest, latencies.get(op, 0))
        for name, counts in facts.get("names", {}).items():
            total = self.names.setdefault(name, {})
            for value, count in counts.items():
                total[value] = total.get(value, 0) + count
        for name, count in facts.get("distinct", {}).items():
            self.distinct[name] = max(self.distinct.get(name, 0), count)
        self.partial |= set(facts.get("other", {}))

    def hot(self, table: pa.Table) -> None:
        from ..segments.sealing import Maps, Tally, by_source, stretches

        tally, maps = Tally(), Maps(2**63)
        for stretch in stretches(table.to_batches()):
            for source, part in by_source(stretch):
                tally.take(source, part)
                maps.take(source, part)
        self.add_segment(tally.facts())
        self.hot_maps = {name: maps.table(name) for name in ("io.latency", "io.size")}


def _read_maps(directory: Path, sealed: Sequence[Segment]) -> dict[str, pa.Table] | None:
    """Rows of default maps of segments by name, without the second and device; None where events
    turned out to be damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ..segments.sealing import SCHEMA

    columns = [*_KEYS, "count", "time_ns_sum"]
    lines = noted_segments(directory)
    parts = {
        (segment.number, name): part_of(
            directory, lines.get(segment.number, {}), segment.number, name
        )
        for segment in sealed
        for name in MAPPED
    }
    wrong = {part.path for part, _ in damages(list(parts.values()))}
    tables = {name: [_sum_rows(SCHEMA.empty_table().select(columns))] for name in MAPPED}
    for segment in sealed:
        own = [parts[segment.number, name].path for name in MAPPED]
        try:
            if not wrong.isdisjoint(own):
                check([segment.part])
            of_events = None if wrong.isdisjoint(own) else maps_of_file(segment.path)
            for name, path in zip(MAPPED, own, strict=True):
                table = (
                    of_events.table(name)
                    if of_events is not None
                    else pq.read_table(
                        pa.BufferReader(map_regular(path)),
                        columns=columns,
                        use_threads=False,
                        page_checksum_verification=True,
                    )
                )
                tables[name].append(_sum_rows(table.select(columns)))
        except DamagedError:
            return None
        except FileNotFoundError:
            continue
        except (OSError, pa.ArrowException) as error:
            raise FormatError(
                f"can't be read: {str(error).splitlines()[0]}", where=segment.path
            ) from None
    return {name: pa.concat_tables(parts) for name, parts in tables.items()}


def maps_of_file(path: Path) -> Maps:
    """The default maps of a sealed segment, rebuilt from its events."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ..base.schema import EVENTS
    from ..segments.sealing import Maps, by_source

    largest = 0
    with pq.ParquetFile(
        pa.BufferReader(map_regular(path)), page_checksum_verification=True
    ) as file:
        groups = range(file.num_row_groups)
        for number in groups:
            offsets = file.read_row_group(number, columns=["offset_bytes"], use_threads=False)[
                "offset_bytes"
            ]
            largest = max(largest, offsets.combine_chunks().fill_null(0).to_numpy().max(initial=0))
        maps = Maps(int(largest))
        for number in groups:
            rows = file.read_row_group(number, use_threads=False).cast(EVENTS)
            for source, part in by_source(rows.unify_dictionaries().combine_chunks()):
                maps.take(source, part)
    return maps


def _sum_rows(table: pa.Table) -> pa.Table:
    sums = table.group_by(_KEYS, use_threads=False).aggregate(
        [("count", "sum"), ("time_ns_sum", "sum")]
    )
    return sums.rename_columns([*_KEYS, "count", "time_ns_sum"])


def _distributions(
    maps: Mapping[str, pa.Table],
    hot: Mapping[str, pa.Table],
    sources: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, Any], dict[str, Any], dict[str, float]]:
    """(percentiles by source and kind, of latency by source and op, mean latency by source)."""
    import pyarrow as pa

    from ..base.grids import WITHOUT

    percentiles: dict[str, dict[str, Any]] = {}
    latency_by: dict[str, dict[str, Any]] = {}
    mean: dict[str, float] = {}
    for kind, name in (("latency", "io.latency"), ("size", "io.size")):
        columns = [*_KEYS, "count", "time_ns_sum"]
        table = _sum_rows(
            pa.concat_tables([maps[name], *([_sum_rows(hot[name])] if name in hot else [])])
        )
        rows = [
            row
            for row in zip(*(table.column(column).to_pylist() for column in columns), strict=True)
            if row[2] != WITHOUT
        ]
        for source in sorted({row[0] for row in rows}):
            own = [row for row in rows if row[0] == source]
            by_op = sources[source]["largest_latency"]
            largest = max(by_op.values()) if kind == "latency" else sources[source]["largest_size"]
            percentiles.setdefault(source, {})[kind] = _percentiles(
                ((row[2], row[3]) for row in own), largest
            )
            if kind == "latency":
                mean[source] = sum(row[4] for row in own) / sum(row[3] for row in own)
                latency_by[source] = {
                    op: {
                        "count": sum(row[3] for row in own if row[1] == op),
                        **_percentiles(
                            ((row[2], row[3]) for row in own if row[1] == op), by_op[op]
                        ),
                    }
                    for op in sorted({row[1] for row in own})
                }
    return percentiles, latency_by, mean


def _percentiles(pairs: Iterable[tuple[int, int]], largest: int) -> dict[str, int]:
    totals: dict[int, int] = {}
    for index, count in pairs:
        totals[index] = totals.get(index, 0) + count
    indices = sorted(totals)
    values = _core.quantiles(
        indices, [totals[index] for index in indices], list(QUANTILES.values()), LATENCY_BITS
    )
    return {
        name: min(value, largest)
        for name, value in zip(QUANTILES, values, strict=True)
        if value is not None
    }


def _commands(
    processes: Iterable[Mapping[str, Any]], wanted: Collection[str]
) -> dict[str, list[str]]:
    """Different command lines of each process that is wanted, at most SHOWN."""
    commands: dict[str, dict[str, None]] = {}
    for record in processes:
        if record["process"] in wanted and record["command"]:
            lines = commands.setdefault(record["process"], {})
            if len(lines) < SHOWN:
                lines[record["command"]] = None
    return {process: list(unique) for process, unique in commands.items()}


def _losses(lines: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Notes, the sum of their counts and the number of those without, by kind."""
    by_kind: dict[str, dict[str, int]] = {}
    for line in lines:
        sums = by_kind.setdefault(line["kind"], {"notes": 0, "count": 0, "unknown": 0})
        sums["notes"] += line["notes"]
        sums["count"] += line["count"] or 0
        sums["unknown"] += line["notes"] if line["count"] is None else 0
    return by_kind


def _sizes(directory: Path) -> dict[str, int]:
    """Bytes on disk by folder. Files may go meanwhile."""
    sizes = {"events": 0, "samples": 0, "hot": 0, "histograms": 0, "all": 0}
    for path in directory.rglob("*"):
        try:
            size = path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
        folder = path.relative_to(directory).parts[0]
        if folder in sizes:
            sizes[folder] += size
        sizes["all"] += size
    return sizes
