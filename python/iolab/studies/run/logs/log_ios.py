# SPDX-License-Identifier: Apache-2.0
"""fio's log of every I/O: stored in the recording after a run, compared with fio's own counts,
summed per second, then deleted.

If a recorder writes the host's recording, it is the only writer: the study seals the events in a
separate recording next to the log, and the recorder moves the segments into its own. Otherwise the
study writes the host's recording and marks the run in it.

`run.json` is written after all events are sealed. A study that was killed before repeats the run in
another time span and removes the events of the killed attempt, so that none counts twice. The log
is deleted after its events were read back.
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

from iolab import _core
from iolab.base.errors import FormatError, IolabError, RunError
from iolab.base.files import map_regular, write_atomically
from iolab.formats.core.tables import FioDirection
from iolab.formats.fio.json_output import FioJson
from iolab.formats.fio.pool import pool_jobs

from ...results.evidence.files import IO_LOG_FILE
from ...results.gates.io_log import LATENCY_BITS, PERCENTILES, describe_difference
from ...workloads.base import Load
from ...workloads.fio.ios import FOLDER, IoLog, io_logs, span_ns
from ...workloads.fio.job import OUTPUT_FILE, SHORTEST_LOGGED, STEP_LOG_MSEC
from ...workloads.fio.sections import NAME
from .recording import RECORDINGS, StudyRecorder

if TYPE_CHECKING:
    from iolab.recordings.store.read.recording import Segment
    from iolab.recordings.store.write.writer import RecordingWriter


Wholes = NDArray[np.int64]
_DIRECTIONS = ("read", "write", "trim")


@dataclass
class Sums:
    """I/Os, bytes and latencies of one section in windows of `every_ms` from `origin_ms` on.

    A last window that `last_ms` cuts by more than a tenth is left out, as fio may leave it out:
    readers of such logs derive the window's length from the distance of lines.
    Times are milliseconds since the epoch, the finest that fio's logs have. An I/O on a border
    belongs to the window before it.
    """

    origin_ms: int
    last_ms: int
    every_ms: int
    of: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    def add(self, operation: int, time_ms: Wholes, latency_ns: Wholes, size_bytes: Wholes) -> None:
        """Add I/Os of an operation (its code in the native core)."""
        windows = self._windows()
        place = np.maximum((time_ms - self.origin_ms - 1) // self.every_ms, 0)
        sums = self.of.setdefault(operation, np.zeros((3, windows)))
        for row, weights in enumerate((None, size_bytes, latency_ns)):
            sums[row] += np.bincount(place, weights=weights, minlength=windows)[:windows]

    def ends_ms(self) -> Wholes:
        """End of each window."""
        ends = self.origin_ms + self.every_ms * np.arange(1, self._windows() + 1)
        return np.minimum(ends, max(self.last_ms, self.origin_ms + 1))

    def _windows(self) -> int:
        return max(1, (10 * (self.last_ms - self.origin_ms) // self.every_ms + 1) // 10)


def second_logs(sections: Mapping[str, Sums], operations: Sequence[str]) -> dict[str, str]:
    """Text of `<section>_iops.log`, `_bw.log` (KiB/s) and `_lat.log` (ns) for each section; a
    window without I/O has no row.

    Args:
        sections: prefix of the logs' names to sums. operations: names by the native core's codes.
    """
    texts = {}
    for prefix, sums in sections.items():
        ends = sums.ends_ms()
        seconds = np.diff(ends, prepend=sums.origin_ms) / 1000
        rows: dict[str, list[tuple[int, int, int]]] = {"iops": [], "bw": [], "lat": []}
        for operation, (ios, size, latency) in sums.of.items():
            if operations[operation] not in _DIRECTIONS:
                continue
            number = _DIRECTIONS.index(operations[operation])
            for place in np.flatnonzero(ios):
                end, length = int(ends[place]), max(float(seconds[place]), 1e-3)
                rows["iops"].append((end, number, round(ios[place] / length)))
                rows["bw"].append((end, number, round(size[place] / length / 1024)))
                rows["lat"].append((end, number, round(latency[place] / ios[place])))
        for kind, listed in rows.items():
            texts[f"{prefix}_{kind}.log"] = "".join(
                f"{end}, {value}, {number}, 0, 0\n" for end, number, value in sorted(listed)
            )
    return texts


_SEPARATE = "recording"
"""In the folder of the log: the recording that the recorder takes in."""

SCHEMA = 1
SECOND_MSEC = 1000

_OPERATIONS = tuple(_core.trace_ops())


@dataclass
class _Totals:
    """A run in the recording: I/Os and latency buckets by operation, sums over time by section."""

    events: dict[str, int] = field(default_factory=dict)
    buckets: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    sums: dict[str, Sums] = field(default_factory=dict)


@dataclass(frozen=True)
class _Place:
    """Where events go: the host of the I/Os, the recorder that may write its recording, and how far
    the recording's clock is ahead."""

    host: str
    recorder: StudyRecorder | None
    ahead_ns: int


@dataclass(frozen=True)
class _Sealed:
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
    notice: Callable[[str], None],
    *,
    recorder: StudyRecorder | None = None,
    ahead_ns: int = 0,
) -> None:
    """Store the logs of a finished run in the recording of its host, if the run has any.

    A problem does not affect the measurement: it is reported, written into `log_ios.json` for the
    gate, and the logs stay.

    Args:
        recorder: of the study, None without one.
        ahead_ns: how far its recording is ahead of the clock of log and window.
    """
    folder = run_dir / FOLDER
    if not folder.is_dir():
        return
    try:
        report = _record_logs(
            run_dir, io_logs(folder, NAME), load, window, _Place(host, recorder, ahead_ns)
        )
    except (IolabError, OSError, ValueError) as error:  # ValueError: damage, by pyarrow
        report = {"problem": str(error)}
    kept = report.get("problem") or report.get("differs")
    if kept:
        notice(f"run {run_dir.name}: {kept}; fio's log of every I/O stays in {FOLDER}/")
    write_atomically(
        run_dir / IO_LOG_FILE,
        json.dumps({"schema": SCHEMA, **report, "kept": FOLDER if kept else None}, indent=1) + "\n",
    )
    if not kept:
        shutil.rmtree(folder, ignore_errors=True)


def _record_logs(
    run_dir: Path, logs: Sequence[IoLog], load: Load, window: tuple[int, int] | None, at: _Place
) -> dict[str, Any]:
    """Ingest the logs, read them back and write the logs per second; returns `log_ios.json`."""
    logs = [log for log in logs if log.path.stat().st_size]
    if not logs:
        return {"problem": "fio logged no I/O"}
    kept = _ingest(run_dir, logs, window, at)
    totals = _read_back(
        kept,
        {log.job: log.prefix for log in logs},
        window,
        STEP_LOG_MSEC if "steps" in load.facts else SECOND_MSEC,
        at.ahead_ns,
    )
    if load.runtime >= SHORTEST_LOGGED:
        for name, text in second_logs(totals.sums, _OPERATIONS).items():
            write_atomically(run_dir / name, text, durable=False)
    report = {
        "recording": f"{RECORDINGS}/{kept.place.name}",
        "label": kept.label,
        "from_ns": kept.span[0],
        "until_ns": kept.span[1],
        "events": totals.events,
        "damaged": kept.damaged,
        "latency": {
            operation: _percentiles(buckets) for operation, buckets in totals.buckets.items()
        },
    }
    return {**report, **_compare(run_dir, totals, kept.damaged)}


def _ingest(
    run_dir: Path, logs: Sequence[IoLog], window: tuple[int, int] | None, at: _Place
) -> _Sealed:
    """Seal the logs' events in the host's recording. RunError or ResultsError where it can't be
    written."""
    from iolab.recordings.store.base.layout import is_recording
    from iolab.recordings.store.read.trace import Trace
    from iolab.recordings.store.write.ingest import ingest_run
    from iolab.recordings.store.write.writer import RecordingWriter

    place = run_dir.parent.parent / RECORDINGS / at.host

    def ingest(writer: RecordingWriter, label: str) -> _Sealed:
        first, until = _around(span_ns(logs), window) or (None, None)
        first, until = (
            None if time_ns is None else time_ns + at.ahead_ns for time_ns in (first, until)
        )
        done = ingest_run(
            writer,
            label,
            [(Trace(log.path, "fio-lat"), log.job) for log in logs],
            source="fio",
            shift_ns=at.ahead_ns,
            link=f"runs/{run_dir.name}",
            facts={"run": run_dir.name},
            span=(first, until),
        )
        begin, end = done.span or (0, 0)
        return _Sealed(
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
        separate = run_dir / FOLDER / _SEPARATE
        shutil.rmtree(separate, ignore_errors=True)
        with create(separate) as writer:
            kept = ingest(writer, run_dir.name)
        try:
            at.recorder.take_in(separate, kept.label, kept.span)
            return kept
        except RunError:
            if at.recorder.is_recording:
                raise
        # the recorder died: the recording has no writer now, and the log still exists
        shutil.rmtree(separate, ignore_errors=True)
    with (
        RecordingWriter.reopen(place, live=False)
        if is_recording(place)
        else create(place) as writer
    ):
        return ingest(writer, _label(writer, run_dir.name))


def _around(*parts: tuple[int, int] | None) -> tuple[int, int] | None:
    spans = [span for span in parts if span is not None]
    return (min(span[0] for span in spans), max(span[1] for span in spans)) if spans else None


def _label(writer: RecordingWriter, run: str) -> str:
    """The run's name, with a number if killed attempts were marked with it; their events are
    dropped."""
    from iolab.recordings.store.read.recording import Recording

    labels = {
        mark["label"] for mark in Recording(writer.directory).marks() if mark["kind"] == "run"
    }
    label, number = run, 1
    while label in labels:
        writer.drop(label)
        number += 1
        label = f"{run} ({number})"
    return label


def _read_back(
    kept: _Sealed,
    prefixes: Mapping[str, str],
    window: tuple[int, int] | None,
    every_ms: int,
    ahead_ns: int,
) -> _Totals:
    """Read back the segments of a label. Sums are by the clock of the log."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from iolab.recordings.store.read.recording import Recording

    totals = _Totals()
    segments = [
        segment
        for segment in Recording(kept.place).segments()
        if segment.facts.get("label") == kept.label
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
                totals.events[operation] = totals.events.get(operation, 0) + int(inside.sum())
                counts = np.bincount(bucket[inside])
                totals.buckets[operation] = _add(totals.buckets.get(operation), counts)
                for section, is_section in _sections(job, prefixes):
                    rows = inside & is_section
                    sums = totals.sums.setdefault(section, Sums(origin, last, every_ms))
                    sums.add(_OPERATIONS.index(operation), time_ms[rows], latency[rows], size[rows])
    return totals


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
    """Span of all I/Os and the window in milliseconds since the epoch, as in fio's logs."""
    first = (
        min((segment.first_ns for segment in segments), default=ahead_ns) - ahead_ns
    ) // 1_000_000 - 1
    last = (
        max((segment.last_ns for segment in segments), default=ahead_ns) - ahead_ns
    ) // 1_000_000
    if window is None:
        return first, last
    return min(first, window[0] // 1_000_000), max(last, window[1] // 1_000_000)


def _compare(run_dir: Path, totals: _Totals, damaged: int) -> dict[str, str]:
    """`differs`: how the recording differs from fio's counts; empty if they agree."""
    try:
        fio = FioJson().read((run_dir / OUTPUT_FILE).read_bytes(), OUTPUT_FILE)
    except (OSError, FormatError) as error:
        return {"differs": f"{OUTPUT_FILE} can't be read for the comparison: {error}"}
    directions: Mapping[str, FioDirection] = pool_jobs(fio.jobs).directions if fio.jobs else {}
    differences = [
        text
        for operation in ("read", "write", "trim")
        if (text := describe_difference(operation, totals.events.get(operation, 0), directions))
    ]
    if damaged:
        differences.append(f"{damaged} lines of the log are damaged")
    return {"differs": "; ".join(differences)} if differences else {}


def _percentiles(buckets: NDArray[np.int64]) -> dict[str, int | None]:
    index = np.flatnonzero(buckets)
    values = _core.quantiles(
        index.tolist(),
        buckets[index].tolist(),
        [float(percentile) / 100 for percentile in PERCENTILES],
        LATENCY_BITS,
    )
    return dict(zip(PERCENTILES, values, strict=True))


def _add(total: NDArray[np.int64] | None, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    if total is None:
        return counts.astype(np.int64)
    result = np.zeros(max(len(total), len(counts)), dtype=np.int64)
    result[: len(total)] += total
    result[: len(counts)] += counts
    return result
