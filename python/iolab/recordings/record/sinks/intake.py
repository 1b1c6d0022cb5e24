# SPDX-License-Identifier: Apache-2.0
"""From the probe's frames to the recording, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from ...store.segments.columns import NameTables, events_of, samples_of
from ..status import Status

if TYPE_CHECKING:
    from ...store.write.writer import RecordingWriter


class Sink:
    """What takes a recording: its writer, as is; subclasses change a part of what they pass on."""

    def __init__(self, sink: RecordingWriter | Sink) -> None:
        """`sink`: what every call is passed on to."""
        self._sink = sink

    def append_events(self, batch: pa.RecordBatch) -> None:
        """See `RecordingWriter`."""
        self._sink.append_events(batch)

    def append_samples(self, batch: pa.RecordBatch) -> None:
        """See `RecordingWriter`."""
        self._sink.append_samples(batch)

    def loss(
        self,
        kind: str,
        source: str,
        from_ns: int,
        until_ns: int | None,
        count: int | None,
        words: str | None = None,
    ) -> None:
        """See `RecordingWriter`."""
        self._sink.loss(kind, source, from_ns, until_ns, count, words)

    def mark(
        self,
        label: str,
        from_ns: int,
        until_ns: int | None,
        kind: Literal["run", "user"] = "user",
        link: str | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """See `RecordingWriter`."""
        self._sink.mark(label, from_ns, until_ns, kind, link, facts)

    def process(self, pid: int, process: str, command: str, first_ns: int) -> None:
        """See `RecordingWriter`."""
        self._sink.process(pid, process, command, first_ns)

    def take_in(self, origin: Path, label: str, from_ns: int, until_ns: int) -> int:
        """See `RecordingWriter`."""
        return self._sink.take_in(origin, label, from_ns, until_ns)

    def seal(self) -> None:
        """See `RecordingWriter`."""
        self._sink.seal()

    def tick(self, now_ns: int) -> None:
        """See `RecordingWriter`."""
        self._sink.tick(now_ns)

    def close(self) -> None:
        """See `RecordingWriter`."""
        self._sink.close()


class Intake:
    """Takes the frames of one probe after the other; adds up what they say in a `Status`."""

    def __init__(self, sink: Sink, status: Status, notice: Callable[[str], None]) -> None:
        self._sink, self._status, self._notice = sink, status, notice
        self._names: dict[tuple[str, str], NameTables] = {}
        self._lost_before: dict[str, int] = {}
        self._lost: dict[str, int] = {}
        self._cpu_before = self._cpu = 0
        self._last_ns = 0

    @property
    def until_ns(self) -> int:
        """Up to where there is something: the last second that is whole, or the last event after
        it."""
        return max(self._status.until_ns, self._last_ns)

    def begin(self) -> None:
        """Another probe's frames follow: its names and counts begin again, what the one before
        counted stays."""
        self._names, self._last_ns = {}, 0
        self._lost_before = {
            name: self._lost_before.get(name, 0) + self._lost.get(name, 0)
            for name in self._lost_before | self._lost
        }
        self._lost = {}
        self._cpu_before, self._cpu = self._cpu_before + self._cpu, 0

    def take(self, frame: Mapping[str, Any]) -> None:
        """One frame. ValueError, KeyError or TypeError where it is not what its kind should be; the
        sink's errors where it can't write."""
        kind = frame["kind"]
        if kind == "events":
            source = str(frame["source"])
            self._sink.append_events(
                events_of(frame, self._names.setdefault((kind, source), NameTables()), source)
            )
            self._status.events[source] = self._status.events.get(source, 0) + int(frame["rows"])
            if frame["rows"]:
                self._last_ns = int.from_bytes(frame["time_ns"][-8:], "little", signed=True)
        elif kind == "samples":
            source = str(frame["source"])
            self._sink.append_samples(
                samples_of(frame, self._names.setdefault((kind, source), NameTables()), source)
            )
            self._status.samples += int(frame["rows"])
        elif kind == "loss":
            count = frame.get("count")
            words = frame.get("words")
            self._sink.loss(
                str(frame["loss_kind"]),
                str(frame["source"]),
                int(frame["from_ns"]),
                int(frame["until_ns"]),
                None if count is None else int(count),
                None if words is None else str(words),
            )
        elif kind == "process":
            self._sink.process(
                int(frame["pid"]),
                str(frame["process"]),
                str(frame["command"]),
                int(frame["first_ns"]),
            )
        elif kind == "note":
            self._notice(str(frame["words"]))
        elif kind in ("tick", "end"):
            self._count(frame)

    def _count(self, frame: Mapping[str, Any]) -> None:
        if "lost" in frame:
            self._lost = {str(name): int(count) for name, count in frame["lost"].items()}
        for name in self._lost_before | self._lost:
            self._status.lost[name] = self._lost_before.get(name, 0) + self._lost.get(name, 0)
        self._cpu = int(frame.get("cpu_ns", self._cpu))
        self._status.probe_cpu_ns = self._cpu_before + self._cpu
        self._status.probe_rss_bytes = int(frame.get("rss_bytes", self._status.probe_rss_bytes))
        if "now_ns" in frame:
            self._status.until_ns = int(frame["now_ns"])
