# SPDX-License-Identifier: Apache-2.0
"""Traces into recordings: every event, as it is, with what the trace lost or could not be read
noted as losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab import _core
from iolab.base.clock import Clock
from iolab.base.errors import FormatError, UsageError
from iolab.base.files import remove, remove_tree

from ..base.layout import is_recording
from ..read.recording import Recording
from ..read.trace import STDIN, Trace

if TYPE_CHECKING:
    import pyarrow as pa

    from ..base.metadata import ClockKind
    from .writer import RecordingWriter

ROWS = 2**20
"""Rows of a segment that is sealed during ingestion."""


@dataclass(frozen=True)
class Ingested:
    """What came of one trace: events (I/Os), rows, damaged lines, records lost, starts or
    completions unpaired, its span in ns (None: it had no events), and what its reader assumed."""

    events: int = 0
    rows: int = 0
    damaged: int = 0
    lost: int = 0
    unpaired: int = 0
    span: tuple[int, int] | None = None
    assumptions: tuple[str, ...] = ()

    def __add__(self, other: Ingested) -> Ingested:
        spans = [span for span in (self.span, other.span) if span is not None]
        return Ingested(
            self.events + other.events,
            self.rows + other.rows,
            self.damaged + other.damaged,
            self.lost + other.lost,
            self.unpaired + other.unpaired,
            (min(span[0] for span in spans), max(span[1] for span in spans)) if spans else None,
            tuple(dict.fromkeys((*self.assumptions, *other.assumptions))),
        )


def source_of(format: str) -> str:
    """The name of the source that traces of a format become."""
    return "fio" if format.startswith("fio-") else format


def ingest(
    traces: Trace | Sequence[Trace],
    directory: Path,
    *,
    host: str = "",
    clock: ClockKind = "trace",
    jobs: Sequence[str | None] | None = None,
    system: Clock | None = None,
) -> Ingested:
    """Import traces into a recording, a new or an imported one.

    Args:
        host: of the I/O. clock: what the traces' times mean. jobs: a job's name for each
        trace, where its lines tell none.
    FormatError where a trace can't be read: nothing of it stays. ResultsError where the recording
    can't be written.
    """
    from .writer import RecordingWriter

    traces = [traces] if isinstance(traces, Trace) else list(traces)
    names = list(jobs) if jobs is not None else [None] * len(traces)
    if len(names) != len(traces):
        raise UsageError(f"{len(traces)} traces need as many jobs, not {len(names)}")
    # what can't be read is said before a directory is made; of standard input nothing is read twice
    streams = [
        stream if trace.path == STDIN else None
        for trace, stream in zip(traces, [_open_stream(trace) for trace in traces], strict=True)
    ]
    if is_recording(directory):
        _check_same(Recording(directory), clock, directory)
        writer = RecordingWriter.reopen(directory, live=False, system=system)
    else:
        origin = {"kind": "import", "files": []}
        writer = RecordingWriter.create(
            directory, host=host, clock=clock, origin=origin, live=False, system=system
        )
    done, files = Ingested(), writer.facts.origin.setdefault("files", [])
    try:
        with writer:
            for trace, job, stream in zip(traces, names, streams, strict=True):
                label = f"import {len(files) + 1}"
                # what an import that was killed left
                writer.drop(label)
                ingested = ingest_into(writer, trace, job=job, label=label, stream=stream)
                files.append(
                    {**_origin(trace), "events": ingested.events, **({"job": job} if job else {})}
                )
                writer.facts.write(directory)
                done += ingested
    except BaseException:
        if not files:
            _remove_made(directory)
        raise
    return done


def ingest_into(
    writer: RecordingWriter,
    trace: Trace,
    *,
    source: str | None = None,
    job: str | None = None,
    shift_ns: int = 0,
    label: str | None = None,
    stream: Iterator[Mapping[str, Any]] | None = None,
    pieces: _Pieces | None = None,
) -> Ingested:
    """Write a trace's events into an open recording, sealed at once in segments of about a million
    rows.

    Args:
        source: name of the source; default: by the trace's format. job: the job of events in
        lines without a job. shift_ns: added to each time. label: of the segments, for
        `RecordingWriter.drop`. stream: its batches, where they are open already. pieces: takes the
        events instead of segments of their own, and is flushed by the caller.
    FormatError where it can't be read; what was sealed of it under a label is removed again.
    """
    segments = pieces or _Pieces(writer, label)
    reading = _Reading(segments, source, job, shift_ns)
    try:
        for raw in _read(trace, stream if stream is not None else _open_stream(trace)):
            reading.take(raw)
        if pieces is None:
            segments.flush()
    except BaseException:
        if label is not None:
            writer.drop(label)
        raise
    done = reading.done
    first, last = done.span or (None, None)
    about = trace.path.name if trace.path != STDIN else "standard input"
    for kind, count, words in (
        ("damaged", done.damaged, "lines or records could not be read"),
        ("overrun", done.lost, "records lost, says the tracer"),
        ("unpaired", done.unpaired, "unmatched issue or completion events"),
    ):
        if count:
            writer.loss(kind, reading.source or "", first, last, count, f"{about}: {words}")
    if reading.source is not None:
        before = writer.facts.sources.get(reading.source, {})
        # what was taken in without being looked at so is not known to lack a column
        columns = (
            {}
            if before and "columns" not in before
            else {"columns": sorted(reading.columns | set(before.get("columns", ())))}
        )
        writer.describe(reading.source, {**reading.about, **columns})
    return done


def ingest_run(
    writer: RecordingWriter,
    label: str,
    traces: Sequence[tuple[Trace, str | None]],
    *,
    source: str = "fio",
    shift_ns: int = 0,
    span: tuple[int | None, int | None] = (None, None),
    link: str | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Ingested:
    """Write what a run logged into an open recording: (trace, job) pairs, cut from what else is
    there, then mark the run.

    The mark is made last, so that a run without one was not taken in whole; what such an attempt
    left under this label is removed first. The mark has the `span` (from, until), or that of the events. A
    run that is marked is not taken in again.
    """
    marks = Recording(writer.directory).marks()
    if any(
        mark["label"] == label and mark["kind"] == "run" and "ingested" in mark["facts"]
        for mark in marks
    ):
        raise UsageError(f"the recording holds run {label} already", where=writer.directory)
    writer.drop(label)
    writer.seal()
    done, pieces = Ingested(), _Pieces(writer, label)
    for trace, job in traces:
        done += ingest_into(
            writer, trace, source=source, job=job, shift_ns=shift_ns, label=label, pieces=pieces
        )
    pieces.flush()
    first, last = done.span or (None, None)
    from_ns, until_ns = span
    begin = from_ns if from_ns is not None else first
    if begin is not None:
        writer.mark(
            label,
            begin,
            until_ns if until_ns is not None else last,
            "run",
            link,
            {**(facts or {}), "ingested": {"source": source, "events": done.events}},
        )
    return done


class _Pieces:
    """Collects batches, of one trace or of several, and seals them about a million rows at a time."""

    def __init__(self, writer: RecordingWriter, label: str | None) -> None:
        self._writer, self._label = writer, label
        self._held: list[pa.RecordBatch] = []
        self._rows = 0

    def take(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._rows += batch.num_rows
        if self._rows >= ROWS:
            self.flush()

    def flush(self) -> None:
        if self._held:
            self._writer.append_segment(self._held, label=self._label)
        self._held, self._rows = [], 0


class _Reading:
    """Makes columns of one trace's batches and counts what is in them."""

    def __init__(self, pieces: _Pieces, source: str | None, job: str | None, shift_ns: int) -> None:
        from ..segments.columns import NameTables

        self.done = Ingested()
        self.source = source
        self.about: dict[str, Any] = {}
        self.columns: set[str] = set()
        self._pieces, self._job, self._shift = pieces, job, shift_ns
        self._names = NameTables()

    def take(self, raw: Mapping[str, Any]) -> None:
        from ..base.schema import NAMED, NUMBERS
        from ..segments.columns import events_of, overridden

        if self.source is None:
            self.source = source_of(raw["format"])
        self.about = {
            "format": raw["format"],
            "averaged": raw["averaged"],
            "assumptions": list(raw["assumptions"]),
        }
        batch = overridden(events_of(raw, self._names, self.source), self._job, self._shift)
        self.done = replace(
            self.done,
            damaged=int(raw["damaged"]),
            lost=int(raw["losses"]),
            unpaired=int(raw["unpaired"]),
            assumptions=tuple(raw["assumptions"]),
        )
        if batch.num_rows:
            times, counts = batch.column("time_ns").to_numpy(), batch.column("count").to_numpy()
            self.columns |= {
                name
                for name in (*NAMED, *NUMBERS)
                if batch.column(name).null_count < batch.num_rows
            }
            self.done += Ingested(
                int(counts.sum()), batch.num_rows, span=(int(times.min()), int(times.max()))
            )
            self._pieces.take(batch)


def _open_stream(trace: Trace) -> Iterator[Mapping[str, Any]]:
    """The trace's batches; what is no trace is found here, before the first batch."""
    where = {name: list(values) for name, values in trace.where.items()} or None
    with _telling(trace):
        return _core.trace_events(str(trace.path), trace.format, trace.columns, where)


def _read(trace: Trace, stream: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    with _telling(trace):
        yield from stream


@contextmanager
def _telling(trace: Trace) -> Iterator[None]:
    """The native core's words about the file become an error with its place."""
    place = "standard input" if trace.path == STDIN else str(trace.path)
    try:
        yield
    except ValueError as error:
        raise FormatError(str(error).removeprefix(f"{trace.path}: "), where=place) from None
    except OSError as error:
        raise FormatError(f"can't be read: {error.strerror or error}", where=place) from None


def _origin(trace: Trace) -> dict[str, Any]:
    if trace.path == STDIN:
        return {"file": "-"}
    status = trace.path.stat()
    return {
        "file": str(trace.path.resolve()),
        "bytes": status.st_size,
        "modified_ns": status.st_mtime_ns,
    }


def _remove_made(directory: Path) -> None:
    """Remove a recording that was made for an import of which nothing came; its directory was empty
    before, and stays."""
    for path in directory.iterdir():
        if path.is_dir():
            with suppress(OSError):
                remove_tree(path)
        else:
            remove(path)


def _check_same(recording: Recording, clock: str, directory: Path) -> None:
    facts = recording.facts
    if facts.origin.get("kind") != "import" or facts.clock != clock:
        raise UsageError(
            "holds a recording of another kind, made live or with another clock",
            where=directory,
            hint="import into a directory of its own",
        )
