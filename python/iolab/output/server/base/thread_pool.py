# SPDX-License-Identifier: Apache-2.0
"""Where questions are answered: in a few threads next to the loop, with a bounded queue before them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import TypeVar

from iolab.recordings.ask.engine.engine import HALT, Engine, Halt

_T = TypeVar("_T")

THREADS = 3
MOST_WAITING = 64
"""Questions that wait for a thread; more are refused."""


class Busy(Exception):
    """Too many questions wait already."""


class Workers:
    """Runs functions in threads."""

    def __init__(self, threads: int = THREADS, most_waiting: int = MOST_WAITING) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="iolab-answer")
        self._most = threads + most_waiting
        self._held = 0

    async def run(self, function: Callable[[], _T]) -> _T:
        """The function's result. Raises Busy where too many wait. A cancelled function does
        not begin, or ends at its next question to the engine."""
        if self._held >= self._most:
            raise Busy
        self._held += 1
        loop = asyncio.get_running_loop()
        halt, context = Halt(), copy_context()
        context.run(HALT.set, halt)
        future = self._pool.submit(context.run, function)
        # until its thread is free: a question that is given up may take a moment to end
        future.add_done_callback(
            lambda _: loop.call_soon_threadsafe(self._release) if not loop.is_closed() else None
        )
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            halt.halt()
            raise

    def close(self) -> None:
        """Take no more, and wait for none."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _release(self) -> None:
        self._held -= 1


def load() -> None:
    """Load what the first answer needs, so that whoever asks waits for none of it."""
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401

    with Engine(Path()) as engine:
        engine.run("SELECT 1")
