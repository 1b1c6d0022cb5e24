# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C: once means "finish this run, then stop", twice means "stop now". A plain kill means now."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Interrupts:
    """Counts requests to stop while it is entered, instead of the signals' usual effect.

    Handlers only count; the runner's loop checks the count several times a second.
    """

    def __init__(self, on_first: Callable[[], None] = lambda: None) -> None:
        self._presses = 0
        self._on_first = on_first
        self._previous: dict[signal.Signals, Any] = {}

    @property
    def presses(self) -> int:
        """How often it was asked."""
        return self._presses

    @property
    def stop_after_run(self) -> bool:
        """Whether no further run shall start."""
        return self.presses >= 1

    @property
    def stop_now(self) -> bool:
        """Whether the run in flight shall end."""
        return self.presses >= 2

    def press(self, count: int = 1) -> None:
        """Ask to stop, as one Ctrl-C does."""
        first = self._presses == 0
        self._presses += count
        if first and self._presses == 1:
            self._on_first()

    def __enter__(self) -> Interrupts:
        # Only the main thread may set handlers; in other threads the caller calls `press`.
        if threading.current_thread() is threading.main_thread():
            for number, handler in (
                (signal.SIGINT, self._interrupt),
                (signal.SIGTERM, self._terminate),
                (signal.SIGHUP, self._terminate),
            ):
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
                    self._previous[number] = signal.signal(number, handler)
        return self

    def __exit__(self, *_: object) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)
        self._previous.clear()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.press()

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        self.press(2)


class SameInterrupts(Interrupts):
    """Shares the requests of another `Interrupts`, for parallel loops; handles no signals."""

    def __init__(self, of: Interrupts) -> None:
        super().__init__()
        self._of = of

    @property
    def presses(self) -> int:
        """How often it was asked."""
        return self._of.presses

    def press(self, count: int = 1) -> None:
        """Ask all to stop."""
        self._of.press(count)

    def __enter__(self) -> SameInterrupts:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was taken over."""
