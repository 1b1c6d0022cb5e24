# SPDX-License-Identifier: Apache-2.0
"""Push the sealed segments of a recording into an archive.

Every row arrives exactly once. Groups of segments are written as Parquet files, then added to the
table of their rows in one commit, then listed in `segments`. A push that was killed between these
steps is completed by the next one: rows that are in a table without a line in `segments` are
replaced. Each commit reads what it depends on, so that two processes that push copies of one
recording replace the rows of each other, and list each segment once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab.base.errors import IolabError, ResultsError

from ...store.base.layout import KINDS, Kind, telling
from ...store.base.metadata import Facts
from ...store.catalogue import Catalogue
from ...store.read.recording import Recording
from ...store.segments.segments import Segment
from .. import tables
from ..rollups import ArchivedStatistic, KeptStatistic, format_statistics, push_statistics
from ..store import Archive, expressions
from .batch import Batch
from .present import PresentSegments
from .rows import TABLES_OF_KINDS, coarsen_maps, read_maps, read_rows, segment_lines

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_BYTES = 8 << 20
"""Bytes of sealed files that become one data file of each table: about a million rows, which are in
memory at once with their names."""
GROUP_SEGMENTS = 256
COMMIT_GROUPS = 8
"""Groups that are added to the tables by the same commits. A killed push writes those again that it had
not committed."""
DELETED_BEFORE = "deleted"
"""In `coverage`: time of segments that were deleted before they were archived. It is a gap, except for
kept statistics."""

Progress = Callable[[int, int], None]
ReadKept = Callable[[Recording], Sequence[KeptStatistic]]
"""Kept statistics of a recording, as `statistics.kept.archiving` reads them."""


@dataclass(frozen=True)
class Pushed:
    """What a push did.

    Attributes:
        recording, host: key of the recording in the archive, and its host.
        files, present: sealed files pushed now, and archived before.
        events, samples: I/Os and readings pushed now.
        rollups: rows of kept statistics pushed now.
        bytes: written.
        behind: rows that are not sealed yet.
        through: all sealed segments up to this number are archived.
        deleted: segments that retention deleted before they were archived.
        refused: sealed files and statistics that can't be archived, with the reason.
    """

    recording: str
    files: int = 0
    present: int = 0
    events: int = 0
    samples: int = 0
    bytes: int = 0
    behind: int = 0
    through: int = 0
    deleted: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)
    host: str = ""
    rollups: int = 0


@dataclass(frozen=True)
class _Piece:
    """A sealed file of a segment that is not archived yet."""

    kind: Kind
    segment: Segment

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.segment.number:06}"


def key_of(facts: Facts) -> str:
    """The key of a recording: it remains the same while the recording grows, and wherever it is
    copied to."""
    began = dict(facts.sessions[0]) if facts.sessions else {}
    began.pop("until_ns", None)
    origin = {
        name: facts.origin[name]
        for name in ("kind", "files", "study", "run")
        if name in facts.origin
    }
    text = json.dumps([facts.host, facts.clock, began, origin], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def push(
    path: Path,
    archive: Archive,
    progress: Progress = lambda done, total: None,
    *,
    kept: ReadKept | None = None,
    wait_s: float = 0.0,
    present: PresentSegments | None = None,
) -> Pushed:
    """Push what is sealed of a recording and not archived yet.

    Args:
        progress: called with the segments that are done and all that are to be pushed.
        kept: reads the kept statistics, which are pushed too. None: they are not.
        wait_s: time to wait for another process that pushes the recording.
        present: what earlier pushes into this archive know of it; each push adds to it.
    ResultsError where the recording can't be read, is being pushed by another process, or the
    archive can't be written: what was archived before stays, and the next push continues.
    """
    with _alone(path, wait_s):
        recording = Recording(path).frozen()
        catalogue = recording.catalogue()
        key = key_of(catalogue.facts)
        host = catalogue.facts.host
        present = present or PresentSegments(archive)
        archived = present.read(tables.SEGMENTS, host, key)
        pieces = [_Piece(kind, segment) for kind in KINDS for segment in catalogue.sealed_of(kind)]
        waiting = [piece for piece in pieces if (piece.kind, piece.segment.number) not in archived]
        done = Pushed(key, present=len(pieces) - len(waiting))
        refused: dict[str, str] = {}
        progress(0, len(waiting))
        finished = 0
        for kind in KINDS:
            groups = _groups([piece for piece in waiting if piece.kind == kind])
            for groups_of_commit in _commits(groups):
                batch = Batch(archive, present, host, key)
                try:
                    for group in groups_of_commit:
                        _write_group(batch, catalogue, key, group, refused)
                        finished += len(group)
                        progress(finished, len(waiting))
                    if batch.lines:
                        done = _commit(batch, kind, done)
                except BaseException:
                    batch.discard()
                    raise
        behind = _behind(catalogue)
        refused_statistics: dict[str, str] = {}
        files: Sequence[KeptStatistic] = ()
        try:
            files = () if kept is None else kept(recording)
        except ResultsError as error:
            refused_statistics["kept statistics"] = str(error).splitlines()[0]
        statistics = push_statistics(archive, catalogue.facts.host, key, files, refused_statistics)
        _push_about(archive, recording, key, behind, refused, archived, statistics.statistics)
    return replace(
        done,
        rollups=statistics.rows,
        bytes=done.bytes + statistics.bytes,
        host=catalogue.facts.host,
        refused={**refused, **refused_statistics},
        behind=sum(rows for rows, _ in behind.values()),
        through=_through(catalogue, refused),
        deleted=len(_deleted_before(catalogue, archived)),
    )


@contextlib.contextmanager
def _alone(path: Path, wait_s: float) -> Iterator[None]:
    """Hold the lock of pushes of a recording; ResultsError where another process does."""
    Recording(path)
    with telling(path, "lock the recording for a push"):
        # the directory itself: a recording at rest may be of another user
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        end = time.monotonic() + wait_s
        while not _lock(descriptor):
            if time.monotonic() >= end:
                raise ResultsError(
                    "is being pushed by another process", where=path, hint="wait until it is done"
                )
            time.sleep(0.2)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _groups(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    group: list[_Piece] = []
    size = 0
    for piece in pieces:
        piece_bytes = int(piece.segment.facts.get("bytes") or 0)
        if group and (size + piece_bytes > GROUP_BYTES or len(group) >= GROUP_SEGMENTS):
            yield group
            group, size = [], 0
        group.append(piece)
        size += piece_bytes
    if group:
        yield group


def _commits(groups: Iterable[list[_Piece]]) -> Iterator[list[list[_Piece]]]:
    """Groups that are added to the tables by the same commits."""
    together: list[list[_Piece]] = []
    for group in groups:
        together.append(group)
        if len(together) == COMMIT_GROUPS:
            yield together
            together = []
    if together:
        yield together


def _write_group(
    batch: Batch,
    catalogue: Catalogue,
    key: str,
    group: Sequence[_Piece],
    refused: dict[str, str],
) -> None:
    """Write the rows and the maps of some segments as data files."""
    import pyarrow as pa

    host, kind = catalogue.facts.host, group[0].kind
    rows: list[pa.Table] = []
    maps: list[pa.Table] = []
    for piece in group:
        number = piece.segment.number
        try:
            part = read_rows(piece.segment, piece.kind, host, key)
            own_maps = read_maps(catalogue, number, host, key) if kind == "events" else []
        except (IolabError, OSError, pa.ArrowException, ValueError) as error:
            refused[piece.name] = str(error).splitlines()[0]
            continue
        rows.append(part)
        maps += own_maps
        batch.lines += segment_lines(part, kind)
    if not rows:
        return
    first = group[0].segment.number
    batch.write(TABLES_OF_KINDS[kind], rows, first)
    if maps:
        batch.write(tables.SEGMENT_MAPS, maps, first)
    if coarse := coarsen_maps(maps):
        batch.write(tables.COARSE_MAPS, coarse, first)


def _commit(batch: Batch, kind: Kind, done: Pushed) -> Pushed:
    """Commit what was written of segments of one kind; returns what the push did so far."""
    numbers = len(batch.numbers)
    listed = batch.commit()
    files = len({line["segment"] for line in listed})
    counts = sum(line["count"] for line in listed)
    return replace(
        done,
        files=done.files + files,
        present=done.present + numbers - files,
        events=done.events + (counts if kind == "events" else 0),
        samples=done.samples + (counts if kind == "samples" else 0),
        bytes=done.bytes + batch.size,
    )


def _behind(catalogue: Catalogue) -> dict[Kind, tuple[int, int]]:
    """(rows, earliest time in ns) of what is not sealed yet, by kind."""
    behind: dict[Kind, tuple[int, int]] = {}
    for kind in KINDS:
        hot = [segment for segment in catalogue.segments_of(kind) if segment.kind == "hot"]
        if hot:
            behind[kind] = (
                sum(int(segment.facts["rows"]) for segment in hot),
                min(segment.first_ns for segment in hot),
            )
    return behind


def _through(catalogue: Catalogue, refused: Mapping[str, str]) -> int:
    """The number up to which each segment is archived or deleted."""
    sealed = {segment.number for kind in KINDS for segment in catalogue.sealed_of(kind)}
    missing = {int(name.rpartition("/")[2]) for name in refused}
    for kind in KINDS:
        missing |= {file.number for file in catalogue.sealed[kind] if file.segment is None}
        missing |= {item.number for item in catalogue.segments_of(kind) if item.kind == "hot"}
    last = max(sealed, default=catalogue.facts.dropped_through)
    return min([last, *(number - 1 for number in missing)])


def _push_about(
    archive: Archive,
    recording: Recording,
    key: str,
    behind: Mapping[Kind, tuple[int, int]],
    refused: Mapping[str, str],
    archived: Collection[tuple[str, int]],
    kept: Sequence[ArchivedStatistic],
) -> None:
    """Replace what the archive says of the recording: coverage, marks, and its row. `archived`:
    kinds and numbers of segments that were archived before this push. `kept`: its archived
    statistics."""
    import pyarrow as pa

    from iolab import __version__

    catalogue = recording.catalogue()
    facts, span = catalogue.facts, catalogue.span()
    host = {"host": facts.host, "recording": key}
    told_ns = catalogue.told_ns() or (span[1] + 1 if span else None)
    until_ns = min((first for _, first in behind.values()), default=told_ns)
    coverage = [
        *(
            {
                **host,
                "source": "",
                "kind": "session",
                "from_ns": session["from_ns"],
                "until_ns": session["until_ns"],
                "count": None,
                "words": "",
            }
            for session in facts.sessions
        ),
        *(
            {
                **host,
                "source": loss["source"],
                "kind": loss["kind"],
                "from_ns": loss["from_ns"],
                "until_ns": loss["until_ns"],
                "count": loss["count"],
                "words": loss.get("words") or "",
                "parts": loss.get("parts"),
                "of": loss.get("of"),
            }
            for loss in recording.losses()
        ),
        *(
            {
                **host,
                "source": "",
                "kind": "behind",
                "from_ns": first,
                "until_ns": None,
                "count": rows,
                "words": f"{kind} that were not sealed at the last push",
            }
            for kind, (rows, first) in behind.items()
        ),
        *_coverage_of_refused(catalogue, refused, host),
        *_coverage_of_deleted(catalogue, archived, host),
    ]
    marks = [
        {
            **host,
            "label": mark["label"],
            "kind": mark["kind"],
            "from_ns": mark["from_ns"],
            "until_ns": mark["until_ns"],
            "link": mark["link"],
            "facts": json.dumps(mark["facts"]),
        }
        for mark in recording.marks()
    ]
    about = {
        **host,
        "clock": facts.clock,
        "first_ns": span[0] if span else None,
        "until_ns": until_ns,
        "pushed_ns": time.time_ns(),
        "iolab": __version__,
        "sources": json.dumps(facts.sources, default=str),
        "origin": json.dumps(facts.origin, default=str),
        "recorded_ns": catalogue.told_ns(),
        "kept": format_statistics(kept),
    }
    for table, rows in (
        (tables.COVERAGE, coverage),
        (tables.MARKS, marks),
        (tables.RECORDINGS, [about]),
    ):
        new = pa.Table.from_pylist(rows, schema=table.columns)
        archive.replace(table, expressions().EqualTo("recording", key), new)


def _coverage_of_refused(
    catalogue: Catalogue, refused: Mapping[str, str], host: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Coverage of segments that can't be archived."""
    for kind in KINDS:
        for segment in catalogue.sealed_of(kind):
            words = refused.get(f"{kind}/{segment.number:06}")
            if words is not None:
                for source, count in segment.sources.items():
                    yield {
                        **host,
                        "source": source,
                        "kind": "damaged",
                        "from_ns": segment.first_ns,
                        "until_ns": segment.last_ns + 1,
                        "count": count,
                        "words": words,
                        "of": kind,
                    }


def _deleted_before(catalogue: Catalogue, archived: Collection[tuple[str, int]]) -> list[int]:
    """Numbers of segments that retention deleted before they were archived."""
    numbers = {number for _, number in archived}
    through = catalogue.facts.dropped_through
    return [number for number in range(1, through + 1) if number not in numbers]


def _coverage_of_deleted(
    catalogue: Catalogue, archived: Collection[tuple[str, int]], host: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """The time of segments that retention deleted before they were archived; where the time of one
    is unknown, all time before the oldest remaining segment."""
    missing = _deleted_before(catalogue, archived)
    if not missing:
        return
    lines = catalogue.segments.lines
    begun_ns = min((session["from_ns"] or 0 for session in catalogue.facts.sessions), default=None)
    remaining_ns = min(
        (segment.first_ns for kind in KINDS for segment in catalogue.segments_of(kind)),
        default=(catalogue.facts.dropped or {}).get("until_ns"),
    )
    for number in missing:
        line = lines.get(number, {})
        first, last = line.get("first_ns"), line.get("last_ns")
        from_ns = first if isinstance(first, int) else begun_ns
        until_ns = last + 1 if isinstance(last, int) else remaining_ns
        if from_ns is not None and until_ns is not None and from_ns < until_ns:
            yield {
                **host,
                "source": "",
                "kind": DELETED_BEFORE,
                "from_ns": from_ns,
                "until_ns": until_ns,
                "count": None,
                "words": f"segment {number} was deleted before it was archived",
            }
