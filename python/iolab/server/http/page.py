# SPDX-License-Identifier: Apache-2.0
"""The page: a shell in HTML, the built script and its style, each a file of its own so that nothing
inline is allowed to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ... import __version__
from ...heatmap.theme import DARK, LIGHT
from ...heatmap.wire import colours
from ...report.page.html import ICON, bundle_file

_FILES = {"live.js": "text/javascript", "live.css": "text/css"}

_SHELL = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="iolab {__version__}">
<title>iolab</title>
<link rel="icon" href="{ICON}">
<link rel="stylesheet" href="/live.css">
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript; iolab query asks the same in a terminal.</noscript>
<script type="application/json" id="iolab-colours">(colours)</script>
<script src="/live.js" defer></script>
</body>
</html>
"""


def paths() -> list[Route]:
    """The page's paths."""
    return [
        Route("/", _page, methods=["GET"]),
        *(Route(f"/{name}", _file(name, kind), methods=["GET"]) for name, kind in _FILES.items()),
    ]


def check() -> None:
    """IolabError where the page has not been built."""
    for name in _FILES:
        bundle_file(name)


async def _page(request: Request) -> Response:
    found = (
        f'{{"light":{colours(LIGHT).model_dump_json()},"dark":{colours(DARK).model_dump_json()}}}'
    )
    return Response(_SHELL.replace("(colours)", found), media_type="text/html")


def _file(name: str, kind: str) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        return Response(bundle_file(name), media_type=kind)

    return answer
