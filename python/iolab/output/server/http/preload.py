# SPDX-License-Identifier: Apache-2.0
"""Everything that serving needs, loaded by serving once: after root is given up, what only root may
read can't be loaded any more."""

from __future__ import annotations

import http.client
import json
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

from iolab.recordings.store.read.trace import Trace
from iolab.recordings.store.write.ingest import ingest

from ..base.store import Store
from ..prometheus import metrics
from ..queries import binary
from ..queries.routes import PREFIX
from .actions import state_in
from .serve import LOCAL, Listener, listen, serve

_LINES = "time:ms,latency:us,offset:bytes,size:bytes,op,process,file\n0,100,0,8192,read,a,/a/b\n1500,90,8192,512,write,b,/a/c\n"
_ASKED = (
    "io.ops",
    "io.ops[op]",
    "io.ops[latency]",
    "io.bytes[op=read][process]",
    "io.ops[latency>=10us][offset]",
)
_FURTHER = {
    "layers": {"by": "op", "key": "read"},
    "extremes": {},
    "ios": {"order": "latency", "limit": "1"},
    "export": {},
    "difference": {"from": "0s", "to": "1s", "other_from": "0s", "other_to": "1s"},
}
_SHEET: dict[str, Any] = {
    "schema": 1,
    "name": "one",
    "recording": "",
    "time": {"live": 60},
    "compare": None,
    "graphs": [],
}
_ALERT = {
    "name": "one",
    "recording": "",
    "statistic": "io.ops",
    "exceeds": 0,
    "falls_below": None,
    "for_seconds": 1,
    "only_during": "00:00-24:00",
    "repost_minutes": 0,
    "also_when_clear": False,
    "actions": [],
}
_KEPT = {"recording": "recording", "statistic": "io.ops[latency]"}
_CHANGES = (
    ("PUT", "worksheets/one", _SHEET),
    ("GET", "worksheets/one", None),
    ("DELETE", "worksheets/one", None),
    ("POST", "share", {"worksheet": _SHEET, "questions": ["query?statistic=io.ops"]}),
    ("POST", "kept/add", {**_KEPT, "backfill": True}),
    (
        "POST",
        "marks/add",
        {"recording": "recording", "label": "one", "from_ns": 1, "until_ns": 2, "note": ""},
    ),
    ("PUT", "alerts/one", _ALERT),
    ("GET", "alerts", None),
    ("GET", "alerts/log", None),
    ("DELETE", "alerts/one", None),
    *(("POST", f"kept/{way}", _KEPT) for way in ("pause", "resume", "drop")),
)
_METRICS = ("io.ops[latency]", "io.bytes", "io.ops[size]")


def preload_server(host: str | None = None) -> None:
    """Serve a little recording of no one's for a moment, and ask it everything. `host`: a name that
    is to be looked up later."""
    with TemporaryDirectory(prefix="iolab-") as folder:
        trace = Path(folder) / "trace.csv"
        trace.write_text(_LINES)
        ingest(Trace(trace), Path(folder) / "recording")
        if host is not None:
            listen(host, 0).socket.close()
        listener = listen(LOCAL, 0)
        asker = threading.Thread(target=_ask, args=(listener,), daemon=True)
        state = state_in(
            Store([Path(folder) / "recording"]), Path(folder), Path(folder) / "alerts.jsonl"
        )
        serve(
            state,
            listener,
            metrics=_METRICS,
            ready=asker.start,
            go_on=lambda: asker.ident is None or asker.is_alive(),
        )


def _ask(listener: Listener) -> None:
    queries = [{"statistic": name} for name in _ASKED]
    paths = [
        "/",
        "/live.js",
        "/start",
        "/start.js",
        "/fleet.js",
        "/nothing",
        f"{PREFIX}/start",
        f"{PREFIX}/recordings",
        f"{PREFIX}/statistics",
        f"{PREFIX}/marks",
        f"{PREFIX}/losses",
        "/metrics",
        f"{PREFIX}/openapi.json",
        f"{PREFIX}/query",
        f"{PREFIX}/hierarchy?statistic=io.bytes",
        f"{PREFIX}/query?statistic=io.opps",
        *(f"{PREFIX}/query?{urlencode(words)}" for words in queries),
        *(
            f"{PREFIX}/query?{urlencode({**words, 'drawn': 'true', 'from': '-1s'})}"
            for words in queries
        ),
        *(
            f"{PREFIX}/{path}?{urlencode({'statistic': 'io.ops[latency]', **words})}"
            for path, words in _FURTHER.items()
        ),
        f"{PREFIX}/worksheets",
        f"{PREFIX}/kept",
        f"{PREFIX}/who?{urlencode({'statistic': 'io.ops[latency]', 'low': '1us', 'from': '0.1s'})}",
    ]
    for accept in ("application/json", binary.MEDIA_TYPE, metrics.MEDIA_TYPE.replace(" ", "")):
        for path in paths:
            _get(listener, path, accept)
    for method, path, document in _CHANGES:
        _get(listener, f"{PREFIX}/{path}", "*/*", method=method, document=document)
    _get(listener, f"{PREFIX}/stream?{urlencode({'statistic': 'io.ops'})}", "*/*", most=64)


def _get(
    listener: Listener,
    path: str,
    accept: str,
    most: int | None = None,
    *,
    method: str = "GET",
    document: Any = None,
) -> None:
    """Ask; what comes doesn't matter."""
    connection = http.client.HTTPConnection(LOCAL, listener.door.port, timeout=10)
    try:
        connection.request(
            method,
            path,
            body=json.dumps(document) if document else None,
            headers={
                "Authorization": f"Bearer {listener.door.token}",
                "Accept": accept,
                "Content-Type": "application/json",
            },
        )
        connection.getresponse().read(most)
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()
