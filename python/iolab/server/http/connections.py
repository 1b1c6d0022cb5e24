# SPDX-License-Identifier: Apache-2.0
"""Connections that send nothing: they are closed after a time, and at once where their place is
needed. Connections that still send what was refused: they are closed once that came, so that the
answer is not lost."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_WITHIN = 10.0
"""Seconds from a connection, or from the first byte of a later request on it, within which the
whole head of the request is there."""
LINGER = 10.0
"""Seconds for which the rest of a refused request is taken and discarded before its connection is
closed."""


class _Transport:
    """A transport with a `close` that lets the other side finish what it sends (RFC 9112, 9.6).

    A socket that is closed while bytes wait in it resets the connection, and a reset discards an
    answer that was not read yet.
    """

    def __init__(self, transport: asyncio.Transport, connection: Connection) -> None:
        self._transport, self._connection = transport, connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        """Close it now, or once the rest of the request came."""
        if not self._connection.linger():
            self._transport.close()


class Connection(H11Protocol):
    """A connection of uvicorn's that holds no place without a request.

    Anybody on this machine may connect, without a token too. So a connection that has not sent a
    request's head in time is closed, and where all places are taken, the connection that has
    waited longest without a request makes room for a new one.
    """

    _head_timer: asyncio.TimerHandle | None = None
    _waits_since = 0.0
    _lingers = False

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        """Take it in, instead of a waiting one where there are too many."""
        super().connection_made(_Transport(transport, self))  # type: ignore[arg-type]
        self._expect_head()
        if self.limit_concurrency is not None:
            waiting = sorted(
                (
                    connection
                    for connection in self.connections
                    if isinstance(connection, Connection)
                    and connection is not self
                    and connection.is_waiting
                ),
                key=lambda each: each._waits_since,
            )
            for oldest in waiting[: max(0, len(self.connections) - self.limit_concurrency + 1)]:
                self.connections.discard(oldest)
                oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take it, and note when the head began to come or is there; discard what was refused."""
        if self._lingers:
            return
        super().data_received(data)
        if not self.is_waiting:
            self._forget_head()
        elif self._head_timer is None:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more."""
        self._forget_head()
        super().connection_lost(exc)

    def linger(self) -> bool:
        """Whether more of a refused request may come: then the answer ends here, and the connection
        is closed after a time or by the other side."""
        refused = self.is_waiting and self.conn.their_state in (h11.SEND_BODY, h11.ERROR)
        if self._lingers or not refused or self.transport.is_closing():
            return False
        self._lingers = True
        self._forget_head()
        self._head_timer = self.loop.call_later(LINGER, self._hang_up)
        self.flow.resume_reading()
        self.transport.write_eof()
        return True

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
