# SPDX-License-Identifier: Apache-2.0
"""The pages: start page, worksheet and fleet. Each is a shell in HTML with a built script and its style, files
of their own so that nothing inline is allowed to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from iolab import __version__
from iolab.recordings.heatmap.theme import DARK, LIGHT
from iolab.recordings.heatmap.wire import colours

from ...report.page.html import ICON, bundle_file
from ..base.store import Store

_FILES = {
    f"{bundle}.{ending}": kind
    for bundle in ("start", "live", "fleet")
    for ending, kind in (("js", "text/javascript"), ("css", "text/css"))
}

_SHELL = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="iolab {__version__}">
<title>iolab</title>
<link rel="icon" href="{ICON}">
<link rel="stylesheet" href="/(bundle).css">
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript; iolab query asks the same in a terminal.</noscript>
<script type="application/json" id="iolab-colours">(colours)</script>
<script src="/(bundle).js" defer></script>
</body>
</html>
"""


def paths(store: Store) -> list[Route]:
    """The pages' paths. `/` is the worksheet where a single recording is all that is served, or
    one is named. It is the fleet where only archives are served, else the start page."""

    async def first(request: Request) -> Response:
        is_lone = len(store.names) == 1 and not (store.results or store.histories)
        if store.is_fleet and not request.query_params.keys() & {"recording"}:
            return _page("fleet")
        return _page("live" if is_lone or "recording" in request.query_params else "start")

    return [
        Route("/", first, methods=["GET"]),
        Route("/start", _always("start"), methods=["GET"]),
        Route("/fleet", _always("fleet"), methods=["GET"]),
        Route("/worksheet", _always("live"), methods=["GET"]),
        *(Route(f"/{name}", _file(name, kind), methods=["GET"]) for name, kind in _FILES.items()),
    ]


def check() -> None:
    """IolabError where the page has not been built."""
    for name in _FILES:
        bundle_file(name)


def _always(bundle: str) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        return _page(bundle)

    return answer


def _page(bundle: str) -> Response:
    themes = (
        f'{{"light":{colours(LIGHT).model_dump_json()},"dark":{colours(DARK).model_dump_json()}}}'
    )
    shell = _SHELL.replace("(bundle)", bundle).replace("(colours)", themes)
    return Response(shell, media_type="text/html")


def _file(name: str, kind: str) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        return Response(bundle_file(name), media_type=kind)

    return answer
