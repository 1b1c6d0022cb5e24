"""Everything that serving needs, loaded by serving once: after root is given up, what only root may read can't be loaded any more."""

from __future__ import annotations

import http.client
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from ..recording.ingest import ingest
from ..recording.trace import Trace
from . import binary, protobuf
from .routes import PREFIX
from .serve import LOCAL, Listener, listen, serve
from .store import Store

_LINES = "time:ms,latency:us,offset:bytes,size:bytes,op,process,file\n0,100,0,8192,read,a,/a/b\n1500,90,8192,512,write,b,/a/c\n"
_ASKED = ("io.ops", "io.ops[op]", "io.ops[latency]", "io.bytes[op=read][process]", "io.ops[latency>=10us][offset]")
_METRICS = ("io.ops[latency]", "io.bytes", "io.ops[size]")


def warm(host: str | None = None) -> None:
    """Serve a little recording of no one's for a moment, and ask it everything. `host`: a name that is to be looked up later."""
    with TemporaryDirectory(prefix="iolab-") as folder:
        trace = Path(folder) / "trace.csv"
        trace.write_text(_LINES)
        ingest(Trace(trace), Path(folder) / "recording")
        if host is not None:
            listen(host, 0).socket.close()
        listener = listen(LOCAL, 0)
        asker = threading.Thread(target=_ask, args=(listener,), daemon=True)
        serve(Store([Path(folder) / "recording"]), listener, metrics=_METRICS, ready=asker.start,
              go_on=lambda: asker.ident is None or asker.is_alive())


def _ask(listener: Listener) -> None:
    queries = [{"statistic": name} for name in _ASKED]
    paths = ["/", "/live.js", "/nothing", f"{PREFIX}/recordings", f"{PREFIX}/statistics", f"{PREFIX}/marks", f"{PREFIX}/losses", "/metrics",
             f"{PREFIX}/openapi.json", f"{PREFIX}/query", f"{PREFIX}/hierarchy?statistic=io.bytes", f"{PREFIX}/query?statistic=io.opps",
             *(f"{PREFIX}/query?{urlencode(words)}" for words in queries),
             *(f"{PREFIX}/query?{urlencode({**words, 'drawn': 'true', 'from': '-1s'})}" for words in queries),
             f"{PREFIX}/who?{urlencode({'statistic': 'io.ops[latency]', 'low': '1us', 'from': '0.1s'})}"]
    for accept in ("application/json", binary.MEDIA_TYPE, protobuf.MEDIA_TYPE.replace(" ", "")):
        for path in paths:
            _get(listener, path, accept)
    _get(listener, f"{PREFIX}/stream?{urlencode({'statistic': 'io.ops'})}", "*/*", most=64)


def _get(listener: Listener, path: str, accept: str, most: int | None = None) -> None:
    """Ask; what comes doesn't matter."""
    connection = http.client.HTTPConnection(LOCAL, listener.door.port, timeout=10)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {listener.door.token}", "Accept": accept})
        connection.getresponse().read(most)
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()
