# SPDX-License-Identifier: Apache-2.0
"""The reports of served results: made on request, and linked with the worksheet both ways, which needs
the times at which runs were recorded."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from iolab.base.errors import IolabError
from iolab.recordings.ask.available import available
from iolab.recordings.store.read.recording import Recording
from iolab.studies.results.open.cache import evidence_key
from iolab.studies.results.open.results import Results

from ...report.model.payload import Link
from ..base.store import NotServed, Store
from ..base.thread_pool import Busy, Workers
from ..queries.listing import run_of


@dataclass(frozen=True)
class RecordedRun:
    """A run's time in a recording, ns on its clock. graph: the statistic that shows most of it,
    empty where none has an answer."""

    recording: str
    from_ns: int
    until_ns: int
    graph: str


def find_recorded_runs(store: Store, results: str) -> dict[str, list[RecordedRun]]:
    """By run, where it was recorded. A recording that can't be read is left out: its problem is
    stated where it is listed."""
    runs: dict[str, list[RecordedRun]] = {}
    for name in store.of_results(results):
        try:
            recording = Recording(store.path(name))
            marks, graph = recording.marks(), _first_look(recording)
        except IolabError:
            continue
        for mark in marks:
            run, until = run_of(mark), mark["until_ns"]
            if run is not None and until is not None:
                runs.setdefault(run, []).append(RecordedRun(name, mark["from_ns"], until, graph))
    return runs


def _first_look(recording: Recording) -> str:
    """A map of latency, else the first statistic that has an answer; empty where none has."""
    usable = [statistic for statistic in available(recording) if not statistic.why_not]
    mapped = next((item for item in usable if "latency" in item.breakdowns), None)
    return f"{mapped.entry.name}[latency]" if mapped else usable[0].entry.name if usable else ""


PATH = "/report/{name:path}"
MOST_WAITING = 16
"""Requests that wait while a report is made; more are refused."""

_POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]+)"')


class Reports:
    """The pages of a store's results, each kept until its evidence changes. Safe to use from
    several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._making = threading.Lock()
        self._held: dict[str, tuple[str, str]] = {}

    def page_if_current(self, name: str) -> str | None:
        """A report that was made of the evidence as it is, None where it has to be made. NotServed
        where there are no results of that name."""
        key = evidence_key(self._path(name))
        report = self._held.get(name)
        return report[1] if report is not None and report[0] == key else None

    def page(self, name: str) -> str:
        """A report, made where it has to be; Busy while another one is. NotServed where there are
        no results of that name."""
        report = self.page_if_current(name)
        if report is not None:
            return report
        if not self._making.acquire(blocking=False):
            raise Busy
        try:
            key, path = evidence_key(self._path(name)), self._path(name)
            self._held[name] = key, self._make_page(name, path)
            return self._held[name][1]
        finally:
            self._making.release()

    def _path(self, name: str) -> Path:
        path = self._store.results.get(name)
        if path is None:
            raise NotServed(
                f"there is no report '{name[:80]}'",
                hint=f"there are {', '.join(self._store.results) or 'none'}",
            )
        return path

    def _make_page(self, name: str, path: Path) -> str:
        # charts take long to load
        from ...report.assemble import assemble
        from ...report.page.html import render
        from ...report.sections.maps import run_maps
        from ...report.sections.profiles import run_profiles

        results = Results(path)
        payload, details = assemble(results)
        links = self._links(name)
        for run, detail in zip(results.runs, details.runs, strict=True):
            # evidence isn't served: it is named, and what was recorded of the run is a link
            bare = [Link(text=link.text, href=None) for link in detail.links]
            detail.links = [*links.get(run.id, []), *bare]
        return render(payload, details, run_maps(results), run_profiles(results))

    def _links(self, name: str) -> dict[str, list[Link]]:
        """Of each run where the worksheet shows what was recorded of it."""
        links: dict[str, list[Link]] = {}
        for run, places in find_recorded_runs(self._store, name).items():
            for place in places:
                words = {
                    "recording": place.recording,
                    "from": place.from_ns,
                    "to": place.until_ns,
                    **({"graph": place.graph} if place.graph else {}),
                }
                text = f"what was recorded: {place.recording}"
                links.setdefault(run, []).append(Link(text=text, href=f"/?{urlencode(words)}"))
        return links


def endpoint(reports: Reports, pool: Workers) -> Callable[[Request], Any]:
    """A report as a page; what it may do is what it says itself, and no more. Reports are made one
    at a time, in one of the threads: who waits for them occupies none."""
    turn = asyncio.Lock()
    waiting = 0

    async def make_in_turn(name: str) -> str:
        nonlocal waiting
        if waiting >= MOST_WAITING:
            raise Busy
        waiting += 1
        try:
            async with turn:
                return await pool.run(lambda: reports.page(name))
        finally:
            waiting -= 1

    async def answer(request: Request) -> Response:
        name = request.path_params["name"]
        html = await pool.run(lambda: reports.page_if_current(name)) or await make_in_turn(name)
        policy = _POLICY.search(html)
        allowed = policy[1] if policy else "default-src 'none'"
        return Response(
            html,
            media_type="text/html",
            headers={"content-security-policy": f"{allowed}; frame-ancestors 'none'"},
        )

    return answer
