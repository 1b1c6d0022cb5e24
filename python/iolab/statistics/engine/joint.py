# SPDX-License-Identifier: Apache-2.0
"""Questions to many recordings that read their data together.

Each question runs in a thread of its own until it needs data, one thread at a time. When all of them
wait for data, one call reads what they need, and each continues with its part. A question is
answered by the same code alone and with others, so its answer is the same.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from ...errors import FormatError, UsageError
from .engine import Halted

BY = "/*by recording*/"
"""Where a statement has the column `recording` if it reads the rows of several recordings: before
its other columns, and before those that it joins or ranks by. Otherwise it is a comment."""

T = TypeVar("T")
Refusal = UsageError | FormatError
"""Errors of one recording. Any other error ends all questions."""


class Joint(Generic[T]):
    """Questions that are answered together."""

    def __init__(self, asks: Sequence[Callable[[], T]]) -> None:
        self._asks = asks
        self._outcomes: dict[int, T | BaseException] = {}
        self._inboxes: list[SimpleQueue[Any]] = [SimpleQueue() for _ in asks]
        self._reports: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        self._waiting: dict[int, Any] = {}

    def answers(self, read: Callable[[Sequence[Any]], Sequence[Any]]) -> list[T | Refusal]:
        """The answer of each question, or why there is none.

        Args:
            read: the data for some requests, in their order. An exception among them is raised
            where the data was requested.
        """
        try:
            for place in range(len(self._asks)):
                context = contextvars.copy_context()
                threading.Thread(target=context.run, args=(self._run, place), daemon=True).start()
                self._receive()
            while self._waiting:
                requests, self._waiting = self._waiting, {}
                results = read(list(requests.values()))
                for place, result in zip(requests, results, strict=True):
                    self._inboxes[place].put(result)
                    self._receive()
        except BaseException:
            for inbox in self._inboxes:
                inbox.put(Halted("another question failed"))
            raise
        return [self._outcomes[place] for place in range(len(self._asks))]  # type: ignore[misc]

    def _receive(self) -> None:
        """Wait until the question that runs needs data or ends."""
        place, request = self._reports.get()
        if place not in self._outcomes:
            self._waiting[place] = request
            return
        outcome = self._outcomes[place]
        if isinstance(outcome, BaseException) and not isinstance(outcome, Refusal):
            raise outcome

    def _run(self, place: int) -> None:
        def request(wanted: Any) -> Any:
            self._reports.put((place, wanted))
            result = self._inboxes[place].get()
            if isinstance(result, BaseException):
                raise result
            return result

        REQUEST.set(request)
        try:
            self._outcomes[place] = self._asks[place]()
        except BaseException as error:
            self._outcomes[place] = error
        self._reports.put((place, None))


REQUEST: ContextVar[Callable[[Any], Any] | None] = ContextVar("request", default=None)
"""How a question gets its data together with others; None: it is answered alone."""
