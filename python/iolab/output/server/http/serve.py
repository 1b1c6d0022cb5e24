# SPDX-License-Identifier: Apache-2.0
"""The service on a socket: where it listens, its address with the token, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ipaddress
import logging
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from iolab.base.errors import RunError, UsageError
from iolab.recordings.ask.engine.engine import HALT, Halt

from ..base.store import Store
from ..base.thread_pool import Workers, load
from ..live.stream import PATIENCE
from ..prometheus.metrics import Exporter
from .access import LONGEST_HEAD, Door
from .actions import AppState
from .app import application

LOCAL = "127.0.0.1"
MOST_CONNECTIONS = 256
"""More requests than so many at once are answered with 503; connections without a request make
room."""
ENDS_WITHIN = 5.0
"""Seconds that the watch over alerts has to end."""
GRACE_S = 2
"""Seconds that open requests have to end; then they are cancelled."""


@dataclass(frozen=True)
class Listener:
    """A socket that listens, and the door before it. `warning`: what a user should know of where it
    listens, empty for this machine."""

    socket: socket.socket
    door: Door
    url: str
    warning: str


def listen(host: str, port: int, *, token: str | None = None) -> Listener:
    """Listen. `host` is a name or address of this machine, `port` 0 for any that is free.

    UsageError for a name that is not this machine's, RunError where the port is taken or not
    allowed.
    """
    if not 0 <= port < 65536:
        raise UsageError(
            f"{port} is not a port", where="--port", hint="0 to 65535; 0 takes any that is free"
        )
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError):
        raise UsageError(
            f"there is no host '{host}'", where="--listen", hint="a name or address of this machine"
        ) from None
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # a reader that takes nothing is hung up on by the kernel as well; connections inherit this
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(2000 * PATIENCE))
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        is_taken = isinstance(error, PermissionError) or "in use" in str(error)
        hint = "choose another with --port" if is_taken else "--listen names this machine"
        raise RunError(
            f"can't listen there: {error.strerror or error}", where=f"{host}:{port}", hint=hint
        ) from None
    listener.setblocking(False)
    bound = ipaddress.ip_address(str(listener.getsockname()[0]).split("%")[0])
    used = int(listener.getsockname()[1])
    names = {host, str(bound)} | (
        {"localhost", LOCAL, "::1"} if bound.is_loopback or bound.is_unspecified else set()
    )
    if bound.is_unspecified:
        names |= {socket.gethostname(), socket.getfqdn()}
    door = Door(names, used, literals=bound.is_unspecified, token=token)
    host_name = (
        socket.gethostname()
        if bound.is_unspecified
        else f"[{bound}]"
        if bound.version == 6 and host == str(bound)
        else host
    )
    warning = (
        ""
        if bound.is_loopback
        else (
            f"listens on {bound}: whoever has the token sees every I/O that is recorded here, and it travels unencrypted"
        )
    )
    return Listener(listener, door, f"http://{host_name}:{used}/?token={door.token}", warning)


class _Server(uvicorn.Server):
    """Leaves signals to `serve`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(
    served: AppState | Store,
    listener: Listener,
    *,
    metrics: Sequence[str] = (),
    ready: Callable[[], None] = lambda: None,
    go_on: Callable[[], bool] = lambda: True,
) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP, or until `go_on` says False; then open streams are
    ended and the socket is closed.

    Of a store without its state nothing can be changed. `ready` is called once requests are
    answered, `go_on` several times a second.
    """
    exporter = Exporter(served.store if isinstance(served, AppState) else served, metrics)
    _quieten()
    workers = Workers()
    stopping = threading.Event()
    halt, context = Halt(), contextvars.copy_context()
    context.run(HALT.set, halt)
    watcher = (
        threading.Thread(
            target=context.run, args=(served.watch.run, stopping), name="iolab-watch", daemon=True
        )
        if isinstance(served, AppState)
        else None
    )
    try:
        if watcher is not None:
            watcher.start()
        asyncio.run(_serve(served, listener, exporter, workers, ready, go_on))
    finally:
        stopping.set()
        # a question of an alert that outlived the process would leave objects of its engine behind
        halt.halt()
        workers.close()
        listener.socket.close()
        if isinstance(served, AppState):
            served.start.studies.close()
        if watcher is not None and watcher.ident is not None:
            watcher.join(ENDS_WITHIN)


async def _serve(
    served: AppState | Store,
    listener: Listener,
    exporter: Exporter,
    workers: Workers,
    ready: Callable[[], None],
    go_on: Callable[[], bool],
) -> None:
    server: _Server

    def stopping() -> bool:
        return server.should_exit

    app = application(served, listener.door, exporter, stopping=stopping, workers=workers)
    server = _Server(
        uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            lifespan="off",
            loop="asyncio",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=LONGEST_HEAD,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=GRACE_S,
        )
    )
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(
            RuntimeError, ValueError
        ):  # not in the main thread: whoever runs it stops it
            loop.add_signal_handler(number, stop)

    loading: list[asyncio.Task[None]] = []

    async def watch() -> None:
        is_ready = False
        while not server.should_exit:
            if server.started and not is_ready:
                is_ready = True
                ready()
                loading.append(asyncio.create_task(workers.run(load)))
            if not go_on():
                stop()
            await asyncio.sleep(0.2 if is_ready else 0.02)

    watcher = asyncio.create_task(watch())
    try:
        await server.serve(sockets=[listener.socket])
    finally:
        stop()
        watcher.cancel()
        await asyncio.gather(watcher, *loading, return_exceptions=True)


def _quieten() -> None:
    """Of uvicorn's messages only those on faults are of use."""
    log = logging.getLogger("uvicorn.error")
    log.setLevel(logging.ERROR)
    if not log.filters:
        log.addFilter(_is_fault)


def _is_fault(record: logging.LogRecord) -> bool:
    """Whether a message is about more than a client that left, or a request that the end of the
    service cancelled."""
    error = record.exc_info[1] if record.exc_info else None
    return not (
        isinstance(error, asyncio.CancelledError)
        or "without completing response" in record.getMessage()
        or "timeout graceful shutdown exceeded" in record.getMessage()
    )


# Connections that send nothing: they are closed after a time, and at once where their place is
# needed. Connections that still send what was refused: they are closed once that came, so that the
# answer is not lost.

HEAD_WITHIN = 10.0
"""Seconds from a connection, or from the first byte of a later request on it, within which the
whole head of the request is there."""
REQUEST_WITHIN = 5.0
"""Seconds for which a new connection is kept though there are more than enough: its request is on
its way."""
LINGER = 10.0
"""Seconds for which the rest of a refused request is taken and discarded before its connection is
closed."""


def _most_waiting() -> int:
    """Connections that leave half of the descriptors of the process to what is read."""
    return min(2048, max(MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))


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
    request's head in time is closed. Where there are more connections than places, those that have
    waited longest without a request make room for a new one, but none that was accepted just now:
    its request may be in the socket already, and closing it would reset the connection. Only where
    descriptors run out, these are closed too.
    """

    _head_timer: asyncio.TimerHandle | None = None
    _waits_since = 0.0
    _lingers = False

    @property
    def limit_concurrency(self) -> int | None:
        """uvicorn refuses a request with 503 where there is a limit and as many connections or
        requests: a limit only where there are as many requests."""
        return MOST_CONNECTIONS if len(self.tasks) >= MOST_CONNECTIONS else None

    @limit_concurrency.setter
    def limit_concurrency(self, configured: int | None) -> None:
        """Nothing is configured."""

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        """Take it in, instead of a waiting one where there are too many."""
        super().connection_made(_Transport(transport, self))  # type: ignore[arg-type]
        self._expect_head()
        excess = len(self.connections) - MOST_CONNECTIONS + 1
        if excess <= 0:
            return
        waiting = sorted(
            (
                connection
                for connection in self.connections
                if isinstance(connection, Connection)
                and connection is not self
                and connection.is_waiting
            ),
            key=lambda connection: connection._waits_since,
        )
        since = time.monotonic() - REQUEST_WITHIN
        too_many = len(self.connections) - _most_waiting()
        for place, oldest in enumerate(waiting[:excess]):
            if oldest._waits_since > since and place >= too_many:
                break
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
