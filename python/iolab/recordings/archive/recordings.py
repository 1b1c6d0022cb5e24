# SPDX-License-Identifier: Apache-2.0
"""Archived recordings as recordings with their rows in the archive: all that a question needs to
know about sessions, segments and losses, without a file of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from iolab.base.errors import ResultsError

from ..store.base.layout import KINDS, LOSSES, SEGMENTS, Kind
from ..store.base.lock import Told
from ..store.base.loss_log import Noted
from ..store.base.metadata import ClockKind, Facts
from ..store.base.schema import SAMPLES
from ..store.catalogue import Catalogue
from ..store.ledger import Contents, Numbered
from ..store.read.recording import Recording
from ..store.segments.segments import MAP_NAMES, SealedFile, Segment, read_ledgers
from . import tables
from .retention import Deleted, Tier, read_deleted
from .rollups import ArchivedStatistic, Part, Parts, effective_parts, parse_statistics, read_parts
from .scan import DataFile, data_files, row_filter, to_recorded
from .store import Archive, ArchivedRecording, expressions
from .tables import Table
from .upload.push import DELETED_BEFORE

if TYPE_CHECKING:
    from ..store.segments.hot import UnsealedRows
    from .spark import Cluster

Span = tuple[int, int]
_NO_STATUS = (0, 0, 0)
"""The status of a map: its rows are no file of their own."""


class ArchivedEvents(Recording):
    """A recording of which the archive has the rows. It is frozen: what is pushed later is not in
    it.

    Attributes:
        archive, archived: where it is, and its key. cluster: what reads its events and maps; None:
        this process. deleted: what age deleted of it, by tier.
    """

    in_archive = True

    def __init__(
        self,
        archive: Archive,
        archived: ArchivedRecording,
        catalogue: Catalogue,
        cluster: Cluster | None = None,
        deleted: Mapping[Tier, Deleted] | None = None,
        parts: Parts | None = None,
    ) -> None:
        super().__init__(catalogue.path, catalogue)
        self.deleted = deleted or {}
        self._parts = parts or {}
        self.cluster = cluster
        self.archive = archive
        self.archived = archived
        self._data_files: dict[tuple[str, str, Span], list[DataFile]] = {}

    def opened_by(self, archive: Archive) -> ArchivedEvents:
        """The same, read by another handle of its archive."""
        return ArchivedEvents(
            archive, self.archived, self.catalogue(), self.cluster, self.deleted, self._parts
        )

    @property
    def key(self) -> str:
        """Its key in the archive."""
        return self.archived.recording

    @cached_property
    def statistics(self) -> list[ArchivedStatistic]:
        """Its kept statistics."""
        return parse_statistics(self.archived.kept, self.archive.url)

    def parts(self, statistic: ArchivedStatistic, tier: str) -> list[Part]:
        """Parts of the sums of a statistic that count, without those that age deleted."""
        kind = statistic.statistic, statistic.added_ns, tier
        deleted = self.deleted.get(cast("Tier", tier), Deleted())
        parts = effective_parts(self._parts.get(kind, ()), statistic.through)
        return [part for part in parts if part.number > deleted.through]

    def span(self) -> Span | None:
        """As `Recording.span`, with segments of which age deleted the events and not the maps, and
        with the time of kept statistics."""
        lines = self.catalogue().segments.lines
        mapped = self.catalogue().maps["io.latency"]
        through = self.catalogue().facts.dropped_through
        ends = [
            (line["first_ns"], line["last_ns"])
            for number, line in lines.items()
            if number > through or number in mapped
        ]
        remaining = super().span()
        ends += [] if remaining is None else [remaining]
        if through:
            ends += [
                (max(statistic.first_ns, begin_ns), statistic.until_ns - 1)
                for statistic in self.statistics
                if (begin_ns := self._begin_ns(statistic)) < statistic.until_ns
            ]
        return (min(end[0] for end in ends), max(end[1] for end in ends)) if ends else None

    def _begin_ns(self, statistic: ArchivedStatistic) -> int:
        """From when on a statistic has any sums."""
        begins = statistic.begins or {}
        return min(
            max(
                begins.get(tier, 0) * 10**9,
                self.deleted.get(cast("Tier", tier), Deleted()).until_ns,
            )
            for tier in tables.ROLLUPS
        )

    def files(self, table: Table, source: str, span: Span) -> list[DataFile]:
        """Data files that can hold rows of a source in a span."""
        return files_of([self], table, source, [span])[0]

    def known_files(self, table: Table, source: str, span: Span) -> list[DataFile] | None:
        """As `files`, None where they were not chosen before."""
        return self._data_files.get((table.name, source, span))

    def remember_files(
        self, table: Table, source: str, span: Span, files: list[DataFile]
    ) -> list[DataFile]:
        """Remember the answer of `files`."""
        return self._data_files.setdefault((table.name, source, span), files)

    def snapshot(self, kind: Kind = "events") -> tuple[list[Segment], UnsealedRows | None]:
        """As `Recording.snapshot`. Samples are read at once, as those that are not sealed."""
        if kind == "events":
            return super().snapshot(kind)
        return [], self._samples

    @cached_property
    def _samples(self) -> UnsealedRows | None:
        import pyarrow.compute as pc

        from ..store.segments.hot import UnsealedRows, split_by_source

        rows = self.archive.read(tables.SAMPLES, row_filter([self.key]))
        listed = self.archive.read(
            tables.SEGMENTS,
            expressions().And(
                expressions().EqualTo("recording", self.key),
                expressions().EqualTo("kind", "samples"),
            ),
            ("segment",),
        )
        # others are of a push that goes on, or was killed
        rows = rows.filter(pc.is_in(rows["segment"], listed["segment"].combine_chunks()))
        batches = [
            part
            for batch in to_recorded(rows, SAMPLES).to_batches()
            for part in split_by_source(batch)
        ]
        return UnsealedRows(batches, SAMPLES) if batches else None

    def marks(self) -> list[dict[str, Any]]:
        """As `Recording.marks`."""
        rows = self.archive.read(tables.MARKS, expressions().EqualTo("recording", self.key))
        return [
            {
                **{name: row[name] for name in ("label", "kind", "from_ns", "until_ns", "link")},
                "facts": json.loads(row["facts"]),
            }
            for row in rows.to_pylist()
        ]


def open_recordings(
    archive: Archive, recordings: Sequence[ArchivedRecording], cluster: Cluster | None = None
) -> list[ArchivedEvents]:
    """Archived recordings, to be asked as any other, by a cluster where one is given. ResultsError
    where their metadata can't be read."""
    where = expressions().In("recording", [item.recording for item in recordings])
    segments = _by_recording(archive, tables.SEGMENTS, where) if recordings else {}
    coverage = _by_recording(archive, tables.COVERAGE, where) if recordings else {}
    keys = [item.recording for item in recordings]
    deleted = read_deleted(archive, keys) if keys else {}
    kept = [item.recording for item in recordings if item.kept]
    parts = read_parts(archive, kept) if kept else {}
    opened = []
    for item in recordings:
        own = {tier: by_key.get(item.recording, Deleted()) for tier, by_key in deleted.items()}
        lines = segments.get(item.recording, []), coverage.get(item.recording, [])
        catalogue = _catalogue(archive, item, *lines, own)
        opened.append(
            ArchivedEvents(archive, item, catalogue, cluster, own, parts.get(item.recording))
        )
    return opened


def files_of(
    recordings: Sequence[ArchivedEvents], table: Table, source: str, spans: Sequence[Span]
) -> list[list[DataFile]]:
    """Data files that can hold rows of each recording of an archive, of a source, in its span. The
    metadata of the table is read once."""
    remembered = [
        recording.known_files(table, source, span)
        for recording, span in zip(recordings, spans, strict=True)
    ]
    unknown = [place for place, files in enumerate(remembered) if files is None]
    shared: list[DataFile] = []
    own: dict[str, list[DataFile]] = {}
    if unknown:
        keys = [recordings[place].key for place in unknown]
        ends = min(spans[place][0] for place in unknown), max(spans[place][1] for place in unknown)
        where = row_filter(keys, *ends, [source], table.order[-1])
        for file in data_files(recordings[0].archive, table, where):
            if file.recordings is None or file.recordings[0] != file.recordings[1]:
                shared.append(file)
            else:
                own.setdefault(file.recordings[0], []).append(file)

    def choose(recording: ArchivedEvents, span: Span) -> list[DataFile]:
        of_many = [file for file in shared if file.may_hold(recording.key)]
        files = [*own.get(recording.key, []), *of_many]
        overlapping = [file for file in files if file.may_overlap(*span)]
        return recording.remember_files(table, source, span, overlapping)

    return [
        choose(recording, span) if files is None else files
        for recording, span, files in zip(recordings, spans, remembered, strict=True)
    ]


def _by_recording(archive: Archive, table: Table, where: Any) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in archive.read(table, where).to_pylist():
        rows.setdefault(row["recording"], []).append(row)
    return rows


def _catalogue(
    archive: Archive,
    archived: ArchivedRecording,
    segments: Sequence[Mapping[str, Any]],
    coverage: Sequence[Mapping[str, Any]],
    deleted: Mapping[Tier, Deleted],
) -> Catalogue:
    # no file has such a path: '#' is not in the path of an archive
    path = Path(f"{archive.url.removesuffix('/')}#{archived.recording}")
    if archived.clock not in ("realtime", "trace"):
        raise ResultsError(f"unknown clock {archived.clock!r}", where=path)
    before = _dropped_before(segments) if archived.kept else None
    before_ns = 0 if before is None else before["until_ns"]
    facts = Facts(
        host=archived.host,
        clock=cast("ClockKind", archived.clock),
        origin=archived.origin,
        sources=archived.sources,
        sessions=[
            {"from_ns": row["from_ns"], "until_ns": row["until_ns"]}
            for row in coverage
            if row["kind"] == "session"
        ],
        dropped=_retention_facts(segments, deleted) or before,
        is_signed=False,
    )
    events, maps = deleted["events"], deleted["maps"]
    lines = _lines([row for row in segments if row["kind"] == "events"])
    losses = [
        *(
            _loss(row)
            for row in coverage
            if row["kind"] != "session"
            and not (row["kind"] == DELETED_BEFORE and row["until_ns"] <= before_ns)
        ),
        *(_gap(lines[number]) for number in sorted(events.unmapped & lines.keys())),
    ]
    mapped = {
        number: _NO_STATUS
        for number in lines
        if maps.through < number <= events.through and number not in events.unmapped
    }
    ledgers = {
        **read_ledgers(path),
        LOSSES: Contents(Noted(lines=losses, single=losses)),
        SEGMENTS: Contents(Numbered(lines)),
    }
    sealed = {
        "events": [
            SealedFile(number, path, line, line)
            for number, line in lines.items()
            if number > events.through
        ],
        "samples": [],
    }
    return Catalogue(
        path,
        facts,
        Told(archived.recorded_ns),
        None,
        ledgers,
        {kind: sealed[kind] for kind in KINDS},
        dict.fromkeys(MAP_NAMES, mapped),
        {kind: {} for kind in KINDS},
    )


def _retention_facts(
    segments: Sequence[Mapping[str, Any]], deleted: Mapping[Tier, Deleted]
) -> dict[str, Any] | None:
    """What age deleted, as `recording.json` has it; None for nothing."""
    events, maps = deleted["events"], deleted["maps"]
    if not events.through:
        return None
    counts: dict[str, int] = {}
    for row in segments:
        if row["kind"] == "events" and row["segment"] <= events.through:
            counts[row["source"]] = counts.get(row["source"], 0) + row["count"]
    return {
        "through": events.through,
        "until_ns": events.until_ns,
        "segments": len({row["segment"] for row in segments if row["segment"] <= events.through}),
        "events": counts,
        "bytes": 0,
        "maps_until_ns": maps.until_ns,
    }


def _dropped_before(segments: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What the recording deleted before its first push, as `recording.json` has it: kept statistics
    answer for it. None for nothing."""
    first = min((row["segment"] for row in segments), default=1)
    if first <= 1:
        return None
    return {
        "through": first - 1,
        "until_ns": min(row["first_ns"] for row in segments if row["segment"] == first),
        "segments": first - 1,
        "events": {},
        "bytes": 0,
        "maps_until_ns": 0,
    }


def _gap(line: Mapping[str, Any]) -> dict[str, Any]:
    """The time of a segment without events and maps, as a loss."""
    return {
        "source": "",
        "kind": "gap",
        "from_ns": line["first_ns"],
        "until_ns": line["last_ns"] + 1,
        "count": None,
        "words": "events were deleted by age, and there is no map of them",
        "notes": 1,
    }


def _loss(row: Mapping[str, Any]) -> dict[str, Any]:
    """A loss as a recording notes it; what was not archived yet is a gap."""
    is_behind = row["kind"] == "behind"
    loss = {
        "source": row["source"],
        "kind": "gap" if row["kind"] in ("behind", DELETED_BEFORE) else row["kind"],
        "from_ns": row["from_ns"],
        "until_ns": row["until_ns"],
        "count": row["count"],
        "words": "not archived at the last push" if is_behind else row["words"],
        "notes": 1,
    }
    return loss | {name: row[name] for name in ("parts", "of") if row.get(name) is not None}


def _lines(rows: Sequence[Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Facts of segments of events by number, ascending."""
    lines: dict[int, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["segment"]):
        line = lines.setdefault(
            row["segment"],
            {
                "number": row["segment"],
                "first_ns": row["first_ns"],
                "last_ns": row["last_ns"],
                "rows": 0,
                "sources": {},
            },
        )
        line["first_ns"] = min(line["first_ns"], row["first_ns"])
        line["last_ns"] = max(line["last_ns"], row["last_ns"])
        line["rows"] += row["rows"]
        line["sources"][row["source"]] = {"events": row["count"]}
    return lines
