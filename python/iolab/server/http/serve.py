# SPDX-License-Identifier: Apache-2.0
"""The service on a socket: where it listens, its address with the token, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import uvicorn

from ...errors import RunError, UsageError
from ..base.store import Store
from ..base.thread_pool import Workers, load
from ..live.stream import PATIENCE
from ..prometheus.metrics import Exporter
from .access import LONGEST_HEAD, Door
from .actions import AppState
from .app import application
from .connections import Connection

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
    watcher = (
        threading.Thread(target=served.watch.run, args=(stopping,), name="iolab-watch", daemon=True)
        if isinstance(served, AppState)
        else None
    )
    try:
        if watcher is not None:
            watcher.start()
        asyncio.run(_serve(served, listener, exporter, workers, ready, go_on))
    finally:
        stopping.set()
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
            limit_concurrency=MOST_CONNECTIONS,
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
