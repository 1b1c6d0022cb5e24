# SPDX-License-Identifier: Apache-2.0
"""The application: requests to questions, answers and errors to responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope

from ...documents import Model
from ...errors import FormatError, IolabError, ResultsError, UsageError
from ..base.models import Problem
from ..base.store import NotServed, Store
from ..base.thread_pool import Busy, Workers
from ..live.stream import Streams, disconnected, stream_path
from ..prometheus import metrics
from ..queries import binary
from ..queries.query_params import parameters
from ..queries.response_cache import Remembered, Written
from ..queries.routes import PREFIX, ROUTES, Route
from ..reports import reports
from . import action_endpoint, page
from .access import Door, Guard
from .actions import ACTIONS, AppState
from .compression import is_far, packed, response
from .openapi import document

GONE = 499
"""Where nobody waits for the answer any more; nobody reads it."""

_T = TypeVar("_T")


class Path(StarletteRoute):
    """A path with all that can be done at it: where it matches, no later one is tried for the sake
    of the method."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether it is this path, whatever the method; one that can't be used is refused with 405."""
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
    remembered = Remembered()
    paths: list[StarletteRoute] = [
        Path(f"{PREFIX}{route.path}", _endpoint(route, store, pool, remembered), methods=["GET"])
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
        Exception: _failed,
    }
    service = Starlette(routes=paths, exception_handlers=handlers)
    service.router.redirect_slashes = False
    return Guard(service, door)


def _endpoint(
    route: Route, store: Store, pool: Workers, remembered: Remembered
) -> Callable[[Request], Any]:
    known = {parameter.name: parameter.bounds for parameter in route.parameters}

    async def endpoint(request: Request) -> Response:
        words = parameters(request.query_params.multi_items(), known)
        wanted = (
            route.binary
            if route.binary is not None and binary.MEDIA_TYPE in request.headers.get("accept", "")
            else route.answer
        )
        kind, far = route.kind if wanted is route.answer else binary.MEDIA_TYPE, is_far(request)

        def make() -> Written:
            return _written(wanted(store, words), kind)

        def answer() -> tuple[bytes, bool, str]:
            content, found = (
                remembered.answer(store, wanted, words, route.ends, make) if route.ends else make()
            )
            return *packed(content, far=far), found

        asked = await _unless_disconnected(pool.run(answer), request.receive)
        if asked is None:
            return Response(status_code=GONE)
        content, encoded, found = asked
        return response(
            content, found, encoded=encoded, vary="" if route.binary is None else "Accept"
        )

    return endpoint


async def _unless_disconnected(asked: Coroutine[Any, Any, _T], receive: Receive) -> _T | None:
    """What was asked for; None, and it is given up, where who asks has gone."""
    question, leaving = asyncio.create_task(asked), asyncio.create_task(disconnected(receive))
    try:
        await asyncio.wait({question, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return question.result() if question.done() else None
    finally:
        for task in (question, leaving):
            task.cancel()
        await asyncio.gather(question, leaving, return_exceptions=True)


def _of_actions(state: AppState, pool: Workers) -> list[Path]:
    """The paths of actions, with all that can be done at each."""
    found: dict[str, dict[str, Callable[[Request], Any]]] = {}
    for action in ACTIONS:
        found.setdefault(action.path, {})[action.method] = action_endpoint.endpoint(
            action, state, pool
        )
    return [
        Path(f"{PREFIX}{path}", _by_method(ways), methods=list(ways))
        for path, ways in found.items()
    ]


def _by_method(ways: dict[str, Callable[[Request], Any]]) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        found: Response = await ways["GET" if request.method == "HEAD" else request.method](request)
        return found

    return endpoint


def _written(answer: Model | bytes, kind: str) -> Written:
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


async def _failed(request: Request, error: Exception) -> Response:
    return _answer(
        500,
        "the service failed at this: a fault of iolab's",
        "its own words stand where it was started",
    )
