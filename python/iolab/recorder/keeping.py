# SPDX-License-Identifier: Apache-2.0
"""Keeping statistics while something is recorded: in a thread of its own, so that
the probe is always heard."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from ..errors import IolabError
from ..recording.write.writer import RecordingWriter
from ..statistics.kept.writer import Keeper

NICENESS = 10
"""Of the thread: what is measured, and what is recorded, goes before it."""
LAST_S = 20.0
"""Seconds that it has at the end for what is not kept yet; the rest is made by the next writer."""


class KeepingSink:
    """A recording's writer with the keeper of its statistics, which looks once a second.
    Closed once, by `close`."""

    def __init__(self, writer: RecordingWriter, noticed: Callable[[str], None]) -> None:
        """`noticed` receives what a user should know, by the thread that calls `tick`."""
        self._writer, self._noticed = writer, noticed
        self._words: deque[str] = deque()
        self._said: set[str] = set()
        self._ending = False
        self._until = float("inf")
        self._nudge = threading.Event()
        self._keeper = Keeper(
            writer.directory,
            noticed=self._words.append,
            cpus=os.cpu_count() or 1,
            going=lambda: time.monotonic() < self._until,
        )
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)
        self._thread.start()

    def append_events(self, batch: pa.RecordBatch) -> None:
        """See `RecordingWriter.append_events`."""
        self._writer.append_events(batch)

    def append_samples(self, batch: pa.RecordBatch) -> None:
        """See `RecordingWriter.append_samples`."""
        self._writer.append_samples(batch)

    def loss(
        self,
        kind: str,
        source: str,
        from_ns: int,
        until_ns: int | None,
        count: int | None,
        words: str | None = None,
    ) -> None:
        """See `RecordingWriter.loss`."""
        self._writer.loss(kind, source, from_ns, until_ns, count, words)

    def mark(
        self,
        label: str,
        from_ns: int,
        until_ns: int | None,
        kind: Literal["run", "user"] = "user",
        link: str | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """See `RecordingWriter.mark`."""
        self._writer.mark(label, from_ns, until_ns, kind, link, facts)

    def process(self, pid: int, process: str, command: str, first_ns: int) -> None:
        """See `RecordingWriter.process`."""
        self._writer.process(pid, process, command, first_ns)

    def take_in(self, origin: Path, label: str, from_ns: int, until_ns: int) -> int:
        """See `RecordingWriter.take_in`."""
        return self._writer.take_in(origin, label, from_ns, until_ns)

    def seal(self) -> None:
        """See `RecordingWriter.seal`."""
        self._writer.seal()

    def tick(self, now_ns: int) -> None:
        """See `RecordingWriter.tick`; has the keeper look."""
        try:
            self._writer.tick(now_ns)
        finally:
            self._nudge.set()
            self._tell()

    def close(self) -> None:
        """Seal, keep what is not kept yet, and close."""
        with contextlib.suppress(IolabError):
            # where it fails, closing says so
            self._writer.seal()
        self._until = time.monotonic() + LAST_S
        self._ending = True
        self._nudge.set()
        self._thread.join()
        self._tell()
        self._writer.close()

    def _keep(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(
                os.PRIO_PROCESS,
                threading.get_native_id(),
                min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS),
            )
        while not self._ending:
            self._nudge.wait()
            self._nudge.clear()
            self._look()
        # what was sealed while it looked
        self._look()

    def _look(self) -> None:
        try:
            self._keeper.look()
        except IolabError as error:
            self._words.append(f"statistics are not kept: {error}")
        except Exception as error:
            # a fault here must not go unheard, nor end what records
            self._words.append(f"statistics are not kept: {type(error).__name__}: {error}")

    def _tell(self) -> None:
        """Each once: what can't be done now can't be done a second later either."""
        while self._words:
            words = self._words.popleft()
            if words not in self._said:
                self._said.add(words)
                self._noticed(words)
