# SPDX-License-Identifier: Apache-2.0
"""fio's log of every I/O, after a run: into the recording, held against what fio counted, summed
per second, then removed.

Where a recorder writes the host's recording, it is the only writer: the study seals the events in a
recording beside the log, whose segments the recorder moves into its own. Otherwise the study writes
the host's recording itself, and marks the run in it.

`run.json` is written once all events are sealed there. A study killed before does the run again, in
another span of time: what the killed attempt left is removed, never counted twice. The log stays
until its events were read back.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import FormatError, IolabError, RunError
from ..files import map_regular, write_atomically
from ..formats.core.tables import FioDirection
from ..formats.fio.json_output import FioJson
from ..formats.fio.pool import pool_jobs
from ..results.evidence.files import IO_LOG_FILE
from ..results.gates.io_log import LATENCY_BITS, PERCENTILES, describe_difference
from ..workloads.base import Load
from ..workloads.fio_ios import FOLDER, IoLog, io_logs, span_ns
from ..workloads.fio_job import OUTPUT_FILE, SHORTEST_LOGGED, STEP_LOG_MSEC
from ..workloads.fio_sections import NAME
from .per_second import Sums, second_logs
from .recording import RECORDINGS, StudyRecorder

if TYPE_CHECKING:
    from ..recording.read.recording import Segment
    from ..recording.write.writer import RecordingWriter

_BESIDE = "recording"
"""In the folder of the log: what the recorder is to take in."""

SCHEMA = 1
SECOND_MSEC = 1000

_OPERATIONS = tuple(_core.trace_ops())


@dataclass
class _Held:
    """What the recording holds of a run: I/Os and latency buckets by operation, and sums over time
    by section."""

    events: dict[str, int] = field(default_factory=dict)
    buckets: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    sums: dict[str, Sums] = field(default_factory=dict)


@dataclass(frozen=True)
class _Place:
    """Where events go: the host whose I/Os they are, the recorder that may write its recording, and
    by how much that is ahead."""

    host: str
    recorder: StudyRecorder | None
    ahead_ns: int


@dataclass(frozen=True)
class _Kept:
    """Where a run's events are: the recording, their label there, the run's span by the recording's
    time; and damaged lines."""

    place: Path
    label: str
    span: tuple[int, int]
    damaged: int


def keep_ios(
    run_dir: Path,
    load: Load,
    window: tuple[int, int] | None,
    host: str,
    noticed: Callable[[str], None],
    *,
    recorder: StudyRecorder | None = None,
    ahead_ns: int = 0,
) -> None:
    """Take the logs of a run that finished into the recording of its host; nothing to do where it
    has none.

    `recorder`: of the study, None without one; `ahead_ns`: by how much its recording is ahead of
    the clock that told log and window.

    What goes wrong is no harm to what was measured: it is said, written into `log_ios.json` for the
    gate, and the logs stay.
    """
    folder = run_dir / FOLDER
    if not folder.is_dir():
        return
    try:
        found = _taken(
            run_dir, io_logs(folder, NAME), load, window, _Place(host, recorder, ahead_ns)
        )
    except (
        IolabError,
        OSError,
        ValueError,
    ) as error:  # pyarrow's words about damage are a ValueError
        found = {"problem": str(error)}
    kept = found.get("problem") or found.get("differs")
    if kept:
        noticed(f"run {run_dir.name}: {kept}; fio's log of every I/O stays in {FOLDER}/")
    write_atomically(
        run_dir / IO_LOG_FILE,
        json.dumps({"schema": SCHEMA, **found, "kept": FOLDER if kept else None}, indent=1) + "\n",
    )
    if not kept:
        shutil.rmtree(folder, ignore_errors=True)


def _taken(
    run_dir: Path, logs: Sequence[IoLog], load: Load, window: tuple[int, int] | None, at: _Place
) -> dict[str, Any]:
    """Ingest, look at what the recording holds, and write the logs per second; what `log_ios.json`
    says of it."""
    logs = [log for log in logs if log.path.stat().st_size]
    if not logs:
        return {"problem": "fio logged no I/O"}
    kept = _ingested(run_dir, logs, window, at)
    held = _held(
        kept,
        {log.job: log.prefix for log in logs},
        window,
        STEP_LOG_MSEC if "steps" in load.facts else SECOND_MSEC,
        at.ahead_ns,
    )
    if load.runtime >= SHORTEST_LOGGED:
        for name, text in second_logs(held.sums, _OPERATIONS).items():
            (run_dir / name).write_text(text, "utf-8")
    found = {
        "recording": f"{RECORDINGS}/{kept.place.name}",
        "label": kept.label,
        "from_ns": kept.span[0],
        "until_ns": kept.span[1],
        "events": held.events,
        "damaged": kept.damaged,
        "latency": {
            operation: _percentiles(buckets) for operation, buckets in held.buckets.items()
        },
    }
    return {**found, **_checked(run_dir, held, kept.damaged)}


def _ingested(
    run_dir: Path, logs: Sequence[IoLog], window: tuple[int, int] | None, at: _Place
) -> _Kept:
    """Seal the logs' events in the host's recording. RunError or ResultsError where it can't be
    written."""
    from ..recording.base.layout import is_recording
    from ..recording.read.trace import Trace
    from ..recording.write.ingest import ingest_run
    from ..recording.write.writer import RecordingWriter

    place = run_dir.parent.parent / RECORDINGS / at.host

    def ingest(writer: RecordingWriter, label: str) -> _Kept:
        first, until = _around(span_ns(logs), window) or (None, None)
        first, until = (None if each is None else each + at.ahead_ns for each in (first, until))
        done = ingest_run(
            writer,
            label,
            [(Trace(log.path, "fio-lat"), log.job) for log in logs],
            source="fio",
            shift_ns=at.ahead_ns,
            link=f"runs/{run_dir.name}",
            facts={"run": run_dir.name},
            from_ns=first,
            until_ns=until,
        )
        begin, end = done.span or (0, 0)
        return _Kept(
            place,
            label,
            (begin if first is None else first, end if until is None else until),
            done.damaged,
        )

    def create(path: Path) -> RecordingWriter:
        return RecordingWriter.create(
            path, host=at.host, clock="realtime", origin={"kind": "run"}, live=False
        )

    if at.recorder is not None and at.recorder.is_recording:
        beside = run_dir / FOLDER / _BESIDE
        shutil.rmtree(beside, ignore_errors=True)
        with create(beside) as writer:
            kept = ingest(writer, run_dir.name)
        try:
            at.recorder.take_in(beside, kept.label, kept.span)
            return kept
        except RunError:
            if at.recorder.is_recording:
                raise
        # it died: nobody writes there now, and the log is still there
        shutil.rmtree(beside, ignore_errors=True)
    with (
        RecordingWriter.reopen(place, live=False)
        if is_recording(place)
        else create(place) as writer
    ):
        return ingest(writer, _label(writer, run_dir.name))


def _around(*spans: tuple[int, int] | None) -> tuple[int, int] | None:
    known = [span for span in spans if span is not None]
    return (min(span[0] for span in known), max(span[1] for span in known)) if known else None


def _label(writer: RecordingWriter, run: str) -> str:
    """The run's name; where a killed attempt was marked with it, that with a number, and what the
    attempt left is removed."""
    from ..recording.read.recording import Recording

    taken = {mark["label"] for mark in Recording(writer.directory).marks() if mark["kind"] == "run"}
    label, number = run, 1
    while label in taken:
        writer.drop(label)
        number += 1
        label = f"{run} ({number})"
    return label


def _held(
    kept: _Kept,
    prefixes: Mapping[str, str],
    window: tuple[int, int] | None,
    every_ms: int,
    ahead_ns: int,
) -> _Held:
    """Read back what was sealed under a label: what is there counts, not what was sent. Sums are by
    the clock of the log."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from ..recording.read.recording import Recording

    found = _Held()
    segments = [
        each for each in Recording(kept.place).segments() if each.facts.get("label") == kept.label
    ]
    origin, last = _span_ms(segments, window, ahead_ns)
    for segment in segments:
        file = pq.ParquetFile(pa.BufferReader(map_regular(segment.path)))
        for group in range(file.num_row_groups):
            table = file.read_row_group(
                group,
                columns=["time_ns", "latency_ns", "latency_bucket", "size_bytes", "op", "job"],
            )
            op, job = (
                table.column(name).unify_dictionaries().combine_chunks() for name in ("op", "job")
            )
            time_ms = pc.divide(
                pc.subtract(table.column("time_ns"), ahead_ns), 1_000_000
            ).to_numpy()
            latency, bucket, size = (
                pc.fill_null(table.column(name), 0).to_numpy()
                for name in ("latency_ns", "latency_bucket", "size_bytes")
            )
            operations = op.indices.to_numpy()
            for number, operation in enumerate(op.dictionary.to_pylist()):
                inside = operations == number
                if not inside.any():
                    continue
                found.events[operation] = found.events.get(operation, 0) + int(inside.sum())
                counts = np.bincount(bucket[inside])
                found.buckets[operation] = _added(found.buckets.get(operation), counts)
                for section, chosen in _sections(job, prefixes):
                    rows = inside & chosen
                    sums = found.sums.setdefault(section, Sums(origin, last, every_ms))
                    sums.add(_OPERATIONS.index(operation), time_ms[rows], latency[rows], size[rows])
    return found


def _sections(job: Any, prefixes: Mapping[str, str]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Which rows are of which section."""
    numbers, names = job.indices.to_numpy(), job.dictionary.to_pylist()
    for section in dict.fromkeys(prefixes.values()):
        own = [number for number, name in enumerate(names) if prefixes.get(name) == section]
        if own:
            yield section, np.isin(numbers, own)


def _span_ms(
    segments: Sequence[Segment], window: tuple[int, int] | None, ahead_ns: int
) -> tuple[int, int]:
    """From before the first I/O to the last, and the window: milliseconds since the epoch, as fio
    stamps its logs."""
    first = (
        min((each.first_ns for each in segments), default=ahead_ns) - ahead_ns
    ) // 1_000_000 - 1
    last = (max((each.last_ns for each in segments), default=ahead_ns) - ahead_ns) // 1_000_000
    if window is None:
        return first, last
    return min(first, window[0] // 1_000_000), max(last, window[1] // 1_000_000)


def _checked(run_dir: Path, held: _Held, damaged: int) -> dict[str, str]:
    """`differs`: how the recording differs from what fio counted; nothing where it doesn't."""
    try:
        fio = FioJson().read((run_dir / OUTPUT_FILE).read_bytes(), OUTPUT_FILE)
    except (OSError, FormatError) as error:
        return {"differs": f"{OUTPUT_FILE} can't be read to hold the recording against: {error}"}
    directions: Mapping[str, FioDirection] = pool_jobs(fio.jobs).directions if fio.jobs else {}
    wrong = [
        words
        for operation in ("read", "write", "trim")
        if (words := describe_difference(operation, held.events.get(operation, 0), directions))
    ]
    if damaged:
        wrong.append(f"{damaged} lines of the log are damaged")
    return {"differs": "; ".join(wrong)} if wrong else {}


def _percentiles(buckets: NDArray[np.int64]) -> dict[str, int | None]:
    index = np.flatnonzero(buckets)
    values = _core.quantiles(
        index.tolist(),
        buckets[index].tolist(),
        [float(each) / 100 for each in PERCENTILES],
        LATENCY_BITS,
    )
    return dict(zip(PERCENTILES, values, strict=True))


def _added(one: NDArray[np.int64] | None, other: NDArray[np.int64]) -> NDArray[np.int64]:
    if one is None:
        return other.astype(np.int64)
    total = np.zeros(max(len(one), len(other)), dtype=np.int64)
    total[: len(one)] += one
    total[: len(other)] += other
    return total
