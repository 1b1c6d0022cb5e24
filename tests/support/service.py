# SPDX-License-Identifier: Apache-2.0
"""The service on a socket of its own, and a recording for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from iolab.base.clock import FakeClock
from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import AppState
from iolab.output.server.http.serve import LOCAL, Listener, listen, serve
from iolab.recordings.store.write.writer import RecordingWriter

from .recordings import SECOND, START, events
from .waiting import PATIENCE

TOKEN = "a-token-of-twenty-letters-or-more"


def recorded(path: Path, seconds: int = 8, per_s: int = 400) -> RecordingWriter:
    """A recording of so many seconds, the last of them hot; its writer is open."""
    writer = RecordingWriter.create(
        path, host="there", clock="realtime", origin={"kind": "import"}, live=False
    )
    for second in range(seconds):
        writer.append_events(events(per_s, second, start_ns=START + second * SECOND, per_s=per_s))
        if second == seconds // 2:
            writer.seal()
    writer.loss("overrun", "block", START + SECOND, START + 2 * SECOND, 17)
    writer.mark("run 1", START, START + 3 * SECOND, "run", "runs/0001", {"variant": "a"})
    return writer


def watched(path: Path, seconds: int = 8) -> None:
    """A recording of so many seconds that was made by watching, of which statistics can be kept, at
    rest."""
    clock = FakeClock(START)
    with RecordingWriter.create(
        path, host="here", clock="realtime", origin={"kind": "record"}, system=clock
    ) as writer:
        for second in range(seconds):
            writer.append_events(events(400, second, start_ns=START + second * SECOND, per_s=400))
            clock.sleep(1)


Served = Callable[..., Listener]


@contextmanager
def serving(store: AppState | Store, *, port: int = 0, **options: object) -> Iterator[Listener]:
    """The service on a socket, in a thread; `port` 0 is any that is free."""
    listener = listen(LOCAL, port, token=TOKEN)
    up, down = threading.Event(), threading.Event()
    thread = threading.Thread(
        target=serve,
        args=(store, listener),
        daemon=True,
        kwargs={"ready": up.set, "go_on": lambda: not down.is_set(), **options},
    )
    thread.start()
    try:
        assert up.wait(PATIENCE)
        yield listener
    finally:
        down.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()
