"""Connections that send nothing: they are closed after a time, and at once where their place is needed."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_WITHIN = 10.0
"""Seconds from a connection, or from the first byte of a later request on it, within which the whole head of the request is there."""


class Connection(H11Protocol):
    """A connection of uvicorn's that holds no place without a request.

    Anybody on this machine may connect, without a token too. So a connection that has not sent a request's head in time is closed, and
    where all places are taken, the one that has waited longest without a request makes room for a new one.
    """

    _head_timer: asyncio.TimerHandle | None = None
    _waits_since = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        """Take it in, in place of one that waits where there are too many."""
        super().connection_made(transport)
        self._expect_head()
        if self.limit_concurrency is not None:
            waiting = sorted((each for each in self.connections if isinstance(each, Connection) and each is not self and each.is_waiting),
                             key=lambda each: each._waits_since)
            for oldest in waiting[:max(0, len(self.connections) - self.limit_concurrency + 1)]:
                self.connections.discard(oldest)
                oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take it, and note when the head began to come or is there."""
        super().data_received(data)
        if not self.is_waiting:
            self._forget_head()
        elif self._head_timer is None:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more."""
        self._forget_head()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._waits_since = time.monotonic()
        self._head_timer = self.loop.call_later(HEAD_WITHIN, self._hang_up)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _hang_up(self) -> None:
        self._head_timer = None
        if self.is_waiting and not self.transport.is_closing():
            self.transport.close()
