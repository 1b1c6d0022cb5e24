# SPDX-License-Identifier: Apache-2.0
"""Fetch a span of time of one recording from an archive into a recording of its own, which every
command reads: query, heatmap, view, keep."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab.base.errors import ResultsError, UsageError

from ..store.base.schema import EVENTS, SAMPLES
from ..store.write.writer import RecordingWriter
from . import tables
from .retention import read_deleted
from .scan import row_filter, to_recorded
from .store import Archive, ArchivedRecording, expressions
from .upload.push import DELETED_BEFORE

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1 << 20
"""Rows of a segment of the fetched recording."""
GAPS = ("gap", "behind", DELETED_BEFORE)
"""Kinds of coverage that are gaps in a fetched recording."""
_LAST_NS = 2**63 - 1

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Fetched:
    """What was fetched: of which recording, the span in ns, events (I/Os) and samples."""

    recording: ArchivedRecording
    from_ns: int
    until_ns: int
    events: int
    samples: int


def fetch(
    archive: Archive,
    directory: Path,
    archived: ArchivedRecording,
    *,
    from_ns: int | None = None,
    until_ns: int | None = None,
    sources: Sequence[str] = (),
    progress: Progress = lambda rows: None,
) -> Fetched:
    """Fetch into a new recording.

    Args:
        archived: see `choose`. from_ns, until_ns: the span; default: all. sources: default: all.
        progress: called with the rows so far.
    UsageError where the span is empty or a source is unknown. ResultsError where the
    archive can't be read or the recording can't be written: nothing of it stays.
    """
    first_ns = archived.first_ns if from_ns is None else from_ns
    end_ns = _LAST_NS if until_ns is None else until_ns
    if first_ns is None:
        raise ResultsError("holds no events and no samples of it", where=archive.url)
    if first_ns >= end_ns:
        raise UsageError("the span ends before it begins", where=archive.url)
    unknown = sorted(set(sources) - archived.sources.keys())
    if unknown:
        raise UsageError(
            f"it has no source {', '.join(unknown)}",
            where=archive.url,
            hint=f"its sources: {', '.join(sorted(archived.sources))}",
        )
    writer = RecordingWriter.create(
        directory,
        host=archived.host,
        clock=_clock(archived),
        origin={
            "kind": "import",
            "files": [],
            "archive": archive.url,
            "recording": archived.recording,
        },
        sources={
            name: about
            for name, about in archived.sources.items()
            if not sources or name in sources
        },
        live=False,
    )
    try:
        with writer:
            events, samples = _take_rows(
                archive, writer, archived.recording, first_ns, end_ns, sources, progress
            )
            _take_coverage(archive, writer, archived, first_ns, end_ns, sources)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return Fetched(archived, first_ns, end_ns, events, samples)


def choose(archive: Archive, host: str | None = None, key: str | None = None) -> ArchivedRecording:
    """The one recording of the archive that has this host and a key that begins so (None: any).
    UsageError where it is not one."""
    recordings = archive.recordings()
    matching = [
        item
        for item in recordings
        if host in (None, item.host) and (key is None or item.recording.startswith(key))
    ]
    if len(matching) == 1:
        return matching[0]
    choices = ", ".join(f"{item.recording} ({item.host})" for item in (matching or recordings)[:20])
    raise UsageError(
        "several recordings match" if matching else "no recording matches",
        where=archive.url,
        hint=f"choose one by --host or --recording: {choices}" if choices else "it is empty",
    )


def _clock(archived: ArchivedRecording) -> Any:
    if archived.clock not in ("realtime", "trace"):
        raise ResultsError(f"unknown clock {archived.clock!r}", where=archived.recording)
    return archived.clock


def _take_rows(
    archive: Archive,
    writer: RecordingWriter,
    key: str,
    from_ns: int,
    until_ns: int,
    sources: Sequence[str],
    progress: Progress,
) -> tuple[int, int]:
    import pyarrow.compute as pc

    events = samples = rows = 0
    for part in _segments(
        _batches(archive, tables.EVENTS, key, from_ns, until_ns, sources), EVENTS
    ):
        writer.append_segment(part.to_batches())
        events += int(pc.sum(part["count"]).as_py())
        rows += part.num_rows
        progress(rows)
    for part in _segments(
        _batches(archive, tables.SAMPLES, key, from_ns, until_ns, sources), SAMPLES
    ):
        for batch in part.to_batches():
            writer.append_samples(batch)
        writer.seal()
        samples += part.num_rows
        rows += part.num_rows
        progress(rows)
    return events, samples


def _batches(
    archive: Archive,
    table: tables.Table,
    key: str,
    from_ns: int,
    until_ns: int,
    sources: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    return archive.batches(table, row_filter([key], from_ns, until_ns, sources))


def _segments(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Tables of about `ROWS` rows with the columns of recordings."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    rows = 0

    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= ROWS:
            yield to_recorded(pa.Table.from_batches(waiting), schema)
            waiting, rows = [], 0
    if waiting:
        yield to_recorded(pa.Table.from_batches(waiting), schema)


def _take_coverage(
    archive: Archive,
    writer: RecordingWriter,
    archived: ArchivedRecording,
    from_ns: int,
    until_ns: int,
    sources: Sequence[str],
) -> None:
    """Sessions and losses within the span; what is not archived yet is a gap."""
    key = archived.recording
    deleted = read_deleted(archive, [key])["events"].get(key)
    if deleted is not None and from_ns < deleted.until_ns:
        end_ns = min(deleted.until_ns, until_ns)
        writer.loss("gap", "", from_ns, end_ns, None, "events were deleted from the archive by age")
    for row in archive.read(tables.COVERAGE, expressions().EqualTo("recording", key)).to_pylist():
        if row["kind"] == "session":
            _take_session(writer, row, from_ns, until_ns, archived.until_ns or 0)
            continue
        if sources and row["source"] not in ("", *sources):
            continue
        first, until = row["from_ns"], row["until_ns"]
        if first is not None:
            # a count can't be divided: a loss that is partly within is taken whole
            if first >= until_ns or (until is not None and until <= from_ns):
                continue
            if row["kind"] in GAPS:
                first = max(first, from_ns)
                until = min(until if until is not None else until_ns, until_ns)
                until = None if until == _LAST_NS else until
        kind = "gap" if row["kind"] in GAPS else row["kind"]
        words = row["words"] if row["kind"] != "behind" else "not archived at the last push"
        writer.loss(kind, row["source"], first, until, row["count"], words or None)
    for mark in archive.read(tables.MARKS, expressions().EqualTo("recording", key)).to_pylist():
        ends = mark["until_ns"] if mark["until_ns"] is not None else mark["from_ns"]
        if mark["from_ns"] < until_ns and ends >= from_ns:
            facts: Mapping[str, Any] = json.loads(mark["facts"])
            writer.mark(
                mark["label"],
                mark["from_ns"],
                mark["until_ns"],
                "run" if mark["kind"] == "run" else "user",
                mark["link"],
                facts,
            )


def _take_session(
    writer: RecordingWriter, row: Mapping[str, Any], from_ns: int, until_ns: int, archived_ns: int
) -> None:
    """A session that still lasted at the last push ends where the archive ends."""
    first = max(row["from_ns"] or 0, from_ns)
    until = min(row["until_ns"] if row["until_ns"] is not None else until_ns, until_ns)
    if until == _LAST_NS:
        until = max(archived_ns, first + 1)
    if first < until:
        writer.facts.sessions.append({"from_ns": first, "until_ns": until})
        writer.facts.write(writer.directory)
