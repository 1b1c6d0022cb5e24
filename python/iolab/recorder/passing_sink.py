# SPDX-License-Identifier: Apache-2.0
"""A sink in front of another sink: passes everything on, for subclasses that change a part of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from .intake import Sink


class PassingSink:
    """Passes every call on to the next sink."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def append_events(self, batch: pa.RecordBatch) -> None:
        """See `Sink`."""
        self._sink.append_events(batch)

    def append_samples(self, batch: pa.RecordBatch) -> None:
        """See `Sink`."""
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
        """See `Sink`."""
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
        """See `Sink`."""
        self._sink.mark(label, from_ns, until_ns, kind, link, facts)

    def process(self, pid: int, process: str, command: str, first_ns: int) -> None:
        """See `Sink`."""
        self._sink.process(pid, process, command, first_ns)

    def take_in(self, origin: Path, label: str, from_ns: int, until_ns: int) -> int:
        """See `Sink`."""
        return self._sink.take_in(origin, label, from_ns, until_ns)

    def seal(self) -> None:
        """See `Sink`."""
        self._sink.seal()

    def tick(self, now_ns: int) -> None:
        """See `Sink`."""
        self._sink.tick(now_ns)

    def close(self) -> None:
        """See `Sink`."""
        self._sink.close()
