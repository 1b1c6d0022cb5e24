# SPDX-License-Identifier: Apache-2.0
"""Requests to actions: the document of a request, read within bounds and held to its model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ...documents import Model
from ...errors import UsageError
from ..base.json_store import said
from ..base.thread_pool import Workers
from ..queries.query_params import parameters
from .actions import Action, AppState
from .compression import is_far, packed, response

LARGEST = 1 << 20
"""Bytes of a document."""
PATIENCE = 10.0
"""Seconds that a document may take to come."""


def endpoint(action: Action, state: AppState, pool: Workers) -> Callable[[Request], Any]:
    """The endpoint of an action."""
    known = {
        parameter.name: parameter.bounds
        for parameter in action.parameters
        if parameter.place == "query"
    }

    async def answer(request: Request) -> Response:
        words = {**parameters(request.query_params.multi_items(), known), **request.path_params}
        content = await _document(request) if action.body is not None else b""
        far = is_far(request)
        return await pool.run(lambda: _acted(action, state, words, content, far))

    return answer


def _acted(
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
    found = action.act(state, words, document)
    if found is None:
        return Response(status_code=204)
    headers = (
        {"content-disposition": f'attachment; filename="{action.file}"'} if action.file else None
    )
    text = found.model_dump_json(by_alias=True) if isinstance(found, Model) else found
    if headers is None:
        body, encoded = packed(text.encode(), far=far)
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
