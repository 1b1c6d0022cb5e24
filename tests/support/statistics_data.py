# SPDX-License-Identifier: Apache-2.0
"""Events as traces and as recordings: the same I/Os on both roads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from iolab import _core
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.trace import Trace
from iolab.recordings.store.segments.columns import NameTables, events_of
from iolab.recordings.store.write.writer import RecordingWriter

HEAD = "time:ns,latency:ns,offset:bytes,size:bytes,op,device,process,file,job\n"


@dataclass(frozen=True)
class Event:
    """One I/O; None where the trace does not tell."""

    time: int
    latency: int | None = 100_000
    offset: int | None = 0
    size: int | None = 8192
    op: str = "read"
    device: str | None = "sda"
    process: str | None = "fio"
    file: str | None = None
    job: str | None = None

    def line(self) -> str:
        """As a line of CSV."""
        values = (
            self.time,
            self.latency,
            self.offset,
            self.size,
            self.op,
            self.device,
            self.process,
            self.file,
            self.job,
        )
        return ",".join("" if value is None else str(value) for value in values) + "\n"


def trace_of(events: Sequence[Event], path: Path) -> Trace:
    """A CSV file of the events."""
    path.write_text(HEAD + "".join(event.line() for event in events))
    return Trace(path, format="csv")


def recording_of(
    trace: Trace, directory: Path, *, parts: int = 1, hot: bool = False, source: str = "block"
) -> Recording:
    """A recording of a trace's events in `parts` sealed segments, or the last of them not sealed
    yet."""
    names = NameTables()
    batches = [
        events_of(raw, names, source) for raw in _core.trace_events(str(trace.path), trace.format)
    ]
    table = pa.Table.from_batches(batches, EVENTS).combine_chunks()
    size = -(-len(table) // parts) if len(table) else 1
    with RecordingWriter.create(
        directory, host="here", clock="trace", origin={"kind": "import"}, live=False
    ) as writer:
        for start in range(0, len(table), size):
            batch = table.slice(start, size).combine_chunks().to_batches()[0]
            writer.append_events(batch)
            if not hot or start + size < len(table):
                writer.seal()
        if hot:
            # leave what is hot as a kill would
            writer.close = lambda: None  # type: ignore[method-assign]
            writer._lock.close()
    return Recording(directory)
