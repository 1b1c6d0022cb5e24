# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while others work for the main thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def heeding(interrupt: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C within the block calls `interrupt`, then is the KeyboardInterrupt that it always is.

    DuckDB heeds a signal in the thread that asked alone, and then waits until its other threads
    have ended what they do: they must be told. In threads that get no signals, and where somebody
    else handles Ctrl-C, nothing is changed.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        interrupt()
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        # a generator that nobody reads any more may be closed by any thread
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is handle
        ):
            signal.signal(signal.SIGINT, signal.default_int_handler)
