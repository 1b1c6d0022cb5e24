# SPDX-License-Identifier: Apache-2.0
"""The application: requests to questions and actions, answers and errors to responses, compressed for
clients on other machines.

Responses are remembered by question and version of the recording's catalogue: until the recording
changes they are neither computed nor written again.
"""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Mapping
from typing import Any, TypeAlias, TypeVar

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope

from iolab.base.documents import Model
from iolab.base.errors import FormatError, IolabError, ResultsError, UsageError
from iolab.recordings.ask.kept.files.paths import stamp
from iolab.recordings.store.read.folder import Folder
from iolab.recordings.store.read.trace import Trace

from ..base.json_store import said
from ..base.models import Problem
from ..base.store import NotServed, Store
from ..base.thread_pool import Busy, Workers
from ..live.stream import Streams, stream_path, wait_disconnect
from ..prometheus import metrics
from ..queries import binary
from ..queries.parameters import Words, parameters, recording_of
from ..queries.routes import PREFIX, ROUTES, Route
from ..reports import reports
from . import page
from .access import Door, Guard
from .actions import ACTIONS, Action, AppState
from .openapi import document

MOST_BYTES = 64 << 20
LARGEST_ANSWER = MOST_BYTES // 4
"""Bytes of one response; a larger one is computed each time."""
MOST = 2000
"""Responses, since questions take room as well."""

Written: TypeAlias = tuple[bytes, str]
"""A response: its bytes, and their media type."""


class ResponseCache:
    """The latest responses, up to a number of them and of bytes. Safe to use from several threads."""

    def __init__(
        self, most_bytes: int = MOST_BYTES, largest: int = LARGEST_ANSWER, most: int = MOST
    ) -> None:
        self._most_bytes, self._largest, self._most = most_bytes, largest, most
        self._responses: OrderedDict[Hashable, tuple[Hashable, Written]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def answer(
        self, store: Store, path: Hashable, words: Words, compute: Callable[[], Written]
    ) -> Written:
        """The response to a question, computed where it is not known. `path`: which question, and in
        which form."""
        try:
            version = _version(store, recording_of(store, words))
        except (IolabError, OSError):
            return compute()  # it says what is wrong
        key = path, tuple(sorted(words.items()))
        with self._lock:
            remembered = self._responses.get(key)
            if remembered is not None and remembered[0] == version:
                self._responses.move_to_end(key)
                return remembered[1]
        response = compute()
        self._keep(key, version, response)
        return response

    def _keep(self, key: Hashable, version: Hashable, response: Written) -> None:
        with self._lock:
            before = self._responses.pop(key, None)
            self._bytes -= 0 if before is None else len(before[1][0])
            if len(response[0]) > self._largest:
                return
            self._responses[key] = version, response
            self._bytes += len(response[0])
            while self._bytes > self._most_bytes or len(self._responses) > self._most:
                _, (_, oldest) = self._responses.popitem(last=False)
                self._bytes -= len(oldest[0])


def _version(store: Store, name: str) -> Hashable:
    """What changes whenever a recording, what is kept of it, or a trace does."""
    opened = store.open_asked(name)
    if isinstance(opened, Trace):
        status = opened.path.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size
    recordings = opened.recordings if isinstance(opened, Folder) else (opened,)
    return tuple((item.path, item.catalogue().version, stamp(item.path)) for item in recordings)


LEAST = 1400
"""Bytes below which an answer is a packet in any case."""
_LEVEL = 3


def response(content: bytes, kind: str, *, encoded: bool, vary: str = "") -> Response:
    """The response. `encoded`: whether the content went through `packed` and came out compressed;
    vary: headers that it depends on."""
    headers = {"vary": ", ".join(header for header in (vary, "Accept-Encoding") if header)}
    return Response(
        content,
        media_type=kind,
        headers=headers | ({"content-encoding": "gzip"} if encoded else {}),
    )


def pack(content: bytes, *, far: bool) -> tuple[bytes, bool]:
    """(the content as it is sent, whether it is compressed)."""
    if not far or len(content) < LEAST:
        return content, False
    return gzip.compress(content, _LEVEL, mtime=0), True


def is_far(request: Request) -> bool:
    """Whether who asks is not on this machine, and takes compressed answers."""
    if request.client is None or not _takes_gzip(request.headers):
        return False
    try:
        host = ipaddress.ip_address(request.client.host.split("%")[0])
    except ValueError:
        return False  # no address: within this process
    if isinstance(host, ipaddress.IPv6Address) and host.ipv4_mapped is not None:
        host = host.ipv4_mapped
    return not host.is_loopback


def _takes_gzip(headers: Mapping[str, str]) -> bool:
    for part in headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


LARGEST = 1 << 20
"""Bytes of a document."""
PATIENCE = 10.0
"""Seconds that a document may take to come."""


def _action_endpoint(action: Action, state: AppState, pool: Workers) -> Callable[[Request], Any]:
    """The endpoint of an action."""
    bounds = {
        parameter.name: parameter.bounds
        for parameter in action.parameters
        if parameter.place == "query"
    }

    async def answer(request: Request) -> Response:
        words = {**parameters(request.query_params.multi_items(), bounds), **request.path_params}
        content = await _document(request) if action.body is not None else b""
        far = is_far(request)
        return await pool.run(lambda: _run_action(action, state, words, content, far))

    return answer


def _run_action(
    action: Action, state: AppState, words: dict[str, str], content: bytes, far: bool
) -> Response:
    document = None
    if action.body is not None:
        try:
            document = action.body.model_validate_json(content, strict=True)
        except ValidationError as error:
            raise UsageError(
                f"that is not a valid {action.body.__name__}: {said(error)}",
                hint="see docs/reference/api.md",
            ) from None
    answer = action.act(state, words, document)
    if answer is None:
        return Response(status_code=204)
    headers = (
        {"content-disposition": f'attachment; filename="{action.file}"'} if action.file else None
    )
    text = answer.model_dump_json(by_alias=True) if isinstance(answer, Model) else answer
    if headers is None:
        body, encoded = pack(text.encode(), far=far)
        return response(body, action.kind, encoded=encoded)
    return Response(text.encode(), media_type=action.kind, headers=headers)


async def _document(request: Request) -> bytes:
    if (
        request.headers.get("content-type", "").partition(";")[0].strip().lower()
        != "application/json"
    ):
        raise HTTPException(415, "a document is application/json")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > LARGEST:
        raise _too_large()
    try:
        return await asyncio.wait_for(_read(request), PATIENCE)
    except TimeoutError:
        raise HTTPException(408, "the document did not come in time") from None
    except ClientDisconnect:
        raise HTTPException(400, "the document did not come") from None


async def _read(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST:
            raise _too_large()
        parts.append(part)
    return b"".join(parts)


def _too_large() -> HTTPException:
    return HTTPException(
        413, f"a document has {LARGEST} bytes at most", headers={"connection": "close"}
    )


GONE = 499
"""Where the client has left; the answer is not read."""

_T = TypeVar("_T")


class Path(StarletteRoute):
    """A path with all that can be done at it: where it matches, no later one is tried for the sake
    of the method."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether it is this path, whatever the method; an unsupported one is refused with 405."""
        match, inner = super().matches(scope)
        return Match.FULL if match is Match.PARTIAL else match, inner


def application(
    state: AppState | Store,
    door: Door,
    exporter: metrics.Exporter | None = None,
    *,
    stopping: Callable[[], bool] = lambda: False,
    workers: Workers | None = None,
) -> ASGIApp:
    """The service of a state, or of a store without changes, behind its door. `stopping` says that
    open streams are to end."""
    pool = workers or Workers()
    store = state.store if isinstance(state, AppState) else state
    streams = Streams(store, pool, stopping)
    cache = ResponseCache()
    paths: list[StarletteRoute] = [
        Path(f"{PREFIX}{route.path}", _endpoint(route, store, pool, cache), methods=["GET"])
        for route in ROUTES
    ]
    paths += _of_actions(state, pool) if isinstance(state, AppState) else []
    paths += [
        Path(f"{PREFIX}/openapi.json", _openapi, methods=["GET"]),
        Path(f"{PREFIX}/stream", stream_path(streams), methods=["GET"]),
        Path(reports.PATH, reports.endpoint(reports.Reports(store), pool), methods=["GET"]),
        Path(
            "/metrics",
            metrics.endpoint(exporter or metrics.Exporter(store, ()), pool),
            methods=["GET"],
        ),
        *page.paths(store),
    ]
    handlers: Any = {
        HTTPException: _http_problem,
        IolabError: _problem,
        Busy: _busy,
        Exception: _failure,
    }
    service = Starlette(routes=paths, exception_handlers=handlers)
    service.router.redirect_slashes = False
    return Guard(service, door)


def _endpoint(
    route: Route, store: Store, pool: Workers, cache: ResponseCache
) -> Callable[[Request], Any]:
    bounds = {parameter.name: parameter.bounds for parameter in route.parameters}

    async def endpoint(request: Request) -> Response:
        words = parameters(request.query_params.multi_items(), bounds)
        compute = (
            route.binary
            if route.binary is not None and binary.MEDIA_TYPE in request.headers.get("accept", "")
            else route.answer
        )
        kind, far = route.kind if compute is route.answer else binary.MEDIA_TYPE, is_far(request)

        def make() -> Written:
            return _write_answer(compute(store, words), kind)

        def answer() -> tuple[bytes, bool, str]:
            content, media_type = (
                cache.answer(store, compute, words, make) if route.is_cached else make()
            )
            return *pack(content, far=far), media_type

        answered_request = await _unless_disconnected(pool.run(answer), request.receive)
        if answered_request is None:
            return Response(status_code=GONE)
        content, encoded, kind = answered_request
        return response(
            content, kind, encoded=encoded, vary="" if route.binary is None else "Accept"
        )

    return endpoint


async def _unless_disconnected(asked: Coroutine[Any, Any, _T], receive: Receive) -> _T | None:
    """The answer; None, and the question is cancelled, where the client has left."""
    question, leaving = asyncio.create_task(asked), asyncio.create_task(wait_disconnect(receive))
    try:
        await asyncio.wait({question, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return question.result() if question.done() else None
    finally:
        for task in (question, leaving):
            task.cancel()
        await asyncio.gather(question, leaving, return_exceptions=True)


def _of_actions(state: AppState, pool: Workers) -> list[Path]:
    """The paths of actions, with all that can be done at each."""
    endpoints: dict[str, dict[str, Callable[[Request], Any]]] = {}
    for action in ACTIONS:
        endpoints.setdefault(action.path, {})[action.method] = _action_endpoint(action, state, pool)
    return [
        Path(f"{PREFIX}{path}", _by_method(ways), methods=list(ways))
        for path, ways in endpoints.items()
    ]


def _by_method(ways: dict[str, Callable[[Request], Any]]) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        response: Response = await ways["GET" if request.method == "HEAD" else request.method](
            request
        )
        return response

    return endpoint


def _write_answer(answer: Model | bytes, kind: str) -> Written:
    """In the thread too: a large answer takes its time to be written. `kind`: of bytes."""
    if isinstance(answer, bytes):
        return answer, kind
    return answer.model_dump_json(by_alias=True).encode(), "application/json"


async def _openapi(request: Request) -> Response:
    return Response(json.dumps(document()), media_type="application/json")


def _answer(
    status: int, error: str, hint: str = "", headers: dict[str, str] | None = None
) -> Response:
    return JSONResponse(Problem(error=error, hint=hint).model_dump(by_alias=True), status, headers)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, IolabError)
    status = (
        404
        if isinstance(error, NotServed)
        else 400
        if isinstance(error, UsageError)
        else 409
        if isinstance(error, FormatError | ResultsError)
        else 500
    )
    return _answer(status, error.message, error.hint or "")


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {404: "there is nothing at this path", 405: "that can't be done here"}.get(
        error.status_code, str(error.detail)
    )
    headers = dict(error.headers or {})
    if "Allow" in headers:  # of a set, in no order
        headers["Allow"] = ", ".join(sorted(headers["Allow"].split(", ")))
    return _answer(error.status_code, words, headers=headers)


async def _busy(request: Request, error: Exception) -> Response:
    return _answer(503, "too many questions at once", "ask again in a moment", {"retry-after": "1"})


async def _failure(request: Request, error: Exception) -> Response:
    return _answer(
        500,
        "the service failed at this: a fault of iolab's",
        "the terminal of the service has the details",
    )
