# SPDX-License-Identifier: Apache-2.0
"""Statistics that are kept during a recording, by a separate thread: the probe never waits for
them."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable

from ..errors import IolabError
from ..recording.write.writer import RecordingWriter
from ..statistics.kept.writer import Keeper
from .passing_sink import PassingSink

NICENESS = 10
"""Of the thread: what is measured, and what is recorded, goes before it."""
LAST_S = 20.0
"""Seconds that it has at the end for what is not kept yet; the rest is made by the next writer."""


class KeepingSink(PassingSink):
    """The writer of a recording with the keeper of its statistics, which works once a second.
    `close` is called once."""

    def __init__(self, writer: RecordingWriter, notice: Callable[[str], None]) -> None:
        """`notice` receives what a user should know, by the thread that calls `tick`."""
        super().__init__(writer)
        self._writer, self._notice = writer, notice
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
                self._notice(words)
