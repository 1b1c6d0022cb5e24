"""The reports of results whose recordings are served: made when they are asked for, and linked with the worksheet both ways."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from ..errors import IolabError
from ..recording.recording import Recording
from ..report.payload import Link
from ..results.cache import evidence_key
from ..results.open import Results
from .listing import run_of
from .store import NotServed, Store
from .work import Workers

PATH = "/report/{name}"

_POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]+)"')


class Reports:
    """The pages of a store's results, each kept until its evidence changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._held: dict[str, tuple[str, str]] = {}

    def page(self, name: str) -> str:
        """A report. NotServed where there are no results of that name."""
        path = self._store.results.get(name)
        if path is None:
            raise NotServed(f"there is no report '{name[:80]}'", hint=f"there are {', '.join(self._store.results) or 'none'}")
        with self._lock:
            key = evidence_key(path)
            held = self._held.get(name)
            if held is None or held[0] != key:
                held = self._held[name] = key, self._made(name, path)
            return held[1]

    def _made(self, name: str, path: Path) -> str:
        # charts take long to load
        from ..report.assemble import assemble
        from ..report.html import render
        from ..report.maps import run_maps

        results = Results(path)
        payload, details = assemble(results)
        links = self._links(name)
        for run, detail in zip(results.runs, details.runs, strict=True):
            # evidence isn't served: it is named, and what was recorded of the run is a link
            bare = [Link(text=each.text, href=None) for each in detail.links]
            detail.links = [*links.get(run.id, []), *bare]
        return render(payload, details, run_maps(results))

    def _links(self, name: str) -> dict[str, list[Link]]:
        """Of each run where the worksheet shows what was recorded of it."""
        found: dict[str, list[Link]] = {}
        for recording in self._store.of_results(name):
            try:
                marks = Recording(self._store.path(recording)).marks()
            except IolabError:
                continue  # its own problem is told where it is listed
            for mark in marks:
                run = run_of(mark)
                if run is not None and mark["until_ns"] is not None:
                    words = {"recording": recording, "from": mark["from_ns"], "to": mark["until_ns"]}
                    found.setdefault(run, []).append(Link(text=f"what was recorded: {recording}", href=f"/?{urlencode(words)}"))
        return found


def endpoint(reports: Reports, pool: Workers) -> Callable[[Request], Any]:
    """A report as a page; what it may do is what it says itself, and no more."""

    async def answer(request: Request) -> Response:
        html = await pool.run(lambda: reports.page(request.path_params["name"]))
        policy = _POLICY.search(html)
        allowed = policy[1] if policy else "default-src 'none'"
        return Response(html, media_type="text/html", headers={"content-security-policy": f"{allowed}; frame-ancestors 'none'"})

    return answer
