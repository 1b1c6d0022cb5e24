# SPDX-License-Identifier: Apache-2.0
"""A recording's writer with the I/Os of OpenZFS's disks in addition to what the probe records: read
once a second from a shell on the host."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .host_shell import HostShell
from .intake import Sink
from .passing_sink import PassingSink
from .pool_counts import FACTS, LATENCY, PoolCounts

_AGAIN = 15.0
"""Seconds until a shell that ended by a failure is begun again: the connection to its host may be
back."""


class PoolSink(PassingSink):
    """Hands everything on, and adds events of the pools' disks at each tick. Closed once, by
    `close`."""

    def __init__(
        self,
        sink: Sink,
        begin: Callable[[], Sequence[str]],
        describe: Callable[[str, Mapping[str, Any]], object],
        own_ns: Callable[[int], int],
    ) -> None:
        """`begin`: the argument list of a shell that runs `pool_counts.SCRIPT`, on the host that is
        recorded; `describe` notes what is known of a source; `own_ns`: see `PoolCounts`."""
        super().__init__(sink)
        self._begin, self._describe, self._own_ns = begin, describe, own_ns
        self._counts = PoolCounts(own_ns)
        self._described = False
        self._again_at = 0.0
        self._shell: HostShell | None = None
        self._start()

    def tick(self, now_ns: int) -> None:
        """Take what the shell wrote, then see `Sink`."""
        self._take()
        self._sink.tick(now_ns)

    def close(self) -> None:
        """End the shell, then see `Sink`."""
        try:
            self._take()
        finally:
            self._again_at = float("inf")
            self._end()
            self._sink.close()

    def _start(self) -> None:
        self._counts = PoolCounts(self._own_ns)
        try:
            self._shell = HostShell(self._begin())
        except OSError:
            self._again_at = time.monotonic() + _AGAIN

    def _take(self) -> None:
        if self._shell is None:
            if time.monotonic() >= self._again_at:
                self._start()
            return
        while (data := self._shell.read()) is not None:
            if not data:
                code = self._end(grace=2.0)
                # there is no OpenZFS there, or this was the end
                self._again_at = float("inf") if code == 0 else time.monotonic() + _AGAIN
                return
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        for growth in self._counts.feed(data):
            if not self._described:
                self._described = True
                for name, facts in FACTS.items():
                    self._describe(name, facts)
            for batch in growth.batches:
                self._sink.append_events(batch)
            if growth.missed is not None:
                self._sink.loss(
                    "missed", LATENCY, *growth.missed, None, "zpool took too long to answer"
                )

    def _end(self, grace: float = 0.0) -> int:
        """Its exit code; it has `grace` seconds to end."""
        shell, self._shell = self._shell, None
        return 0 if shell is None else shell.end(grace)
