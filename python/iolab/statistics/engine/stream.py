# SPDX-License-Identifier: Apache-2.0
"""The events of a text trace as a stream for the engine: native batches, in flat memory, read once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ... import _core
from ...errors import FormatError
from ...recording.read.trace import STDIN, Trace

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1 << 17


@dataclass
class Stream:
    """Events of a trace that meet conditions which the native readers know; the trace's own are
    left to `where`.

    Attributes:
        events: I/Os that met them so far; damaged, losses, unpaired, skipped: what was left out.
        averaged: whether each is the mean of a window; assumptions: what the trace leaves open.
        failed: the reader's words, where it gave up.
    """

    trace: Trace
    source: str
    where: dict[str, list[str]]
    events: int = 0
    damaged: int = 0
    losses: int = 0
    unpaired: int = 0
    skipped: int = 0
    averaged: bool = False
    assumptions: tuple[str, ...] = ()
    failed: str | None = field(default=None)

    def reader(self) -> pa.RecordBatchReader:
        """The stream. What is wrong with the trace comes out of `raised`, for the engine would wrap
        it."""
        import pyarrow as pa

        from ...recording.base.schema import EVENTS

        return pa.RecordBatchReader.from_batches(EVENTS, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        from ...recording.segments.columns import NameTables, events_of

        names = NameTables()
        trace = self.trace
        try:
            for raw in _core.trace_events(
                str(trace.path), trace.format, trace.columns, self.where or None, BATCH
            ):
                self.damaged, self.losses, self.unpaired = (
                    raw["damaged"],
                    raw["losses"],
                    raw["unpaired"],
                )
                self.skipped, self.averaged, self.assumptions = (
                    raw["skipped_by_filter"],
                    raw["averaged"],
                    tuple(raw["assumptions"]),
                )
                self.events += int(np.frombuffer(raw["count"], dtype="<u8").sum())
                yield events_of(raw, names, self.source)
        except ValueError as error:
            self.failed = str(error)
            raise

    def raised(self) -> FormatError | None:
        """The reader's words as an error, None where it did not fail."""
        if self.failed is None:
            return None
        place = (
            None
            if str(self.trace.path) in self.failed
            else "standard input"
            if self.trace.path == STDIN
            else str(self.trace.path)
        )
        return FormatError(self.failed.removeprefix("-: "), where=place)
