# SPDX-License-Identifier: Apache-2.0
"""The session that a writer records: from where all was set up, or its first event, as far as
everything was told to be there."""

from __future__ import annotations

import pyarrow as pa

from .metadata import Begun, Facts

NEAR_NS = 60_000_000_000
"""So far beyond the ends of a session may its first and last event lie; further out they come of a
clock that was set."""


class Sessions:
    """Keeps the last session of `facts` while it goes on; of a recording that isn't live there is
    none.

    Attributes:
        told_ns: up to where everything is there; None before anyone said so.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.told_ns: int | None = None
        self._last_ns = 0

    def reach(self, batch: pa.RecordBatch) -> bool:
        """Take in a batch that came. Returns whether the session turned out to begin earlier."""
        session = self._going()
        if session is None:
            return False
        times, begun = batch.column("time_ns").to_numpy(), session["from_ns"] or 0
        first, last = int(times.min()), int(times.max())
        if last <= max(begun, self.told_ns or 0) + NEAR_NS:
            self._last_ns = max(self._last_ns, last + 1)
        earlier = begun - NEAR_NS <= first < begun
        if earlier:
            session["from_ns"] = first
        return earlier

    def is_set(self, begun: Begun) -> bool:
        """Whether the clock was set since the session began."""
        session = self._going()
        return (
            session is not None
            and Begun.of(session).set_by(begun.monotonic_ns, begun.realtime_ns) != 0
        )

    def end(self, now_ns: int | None = None) -> bool:
        """End the session; returns whether there was one. `now_ns`: until when it lasted where
        nobody told; None for its last event."""
        session = self._going()
        if session is None:
            return False
        told = self.told_ns if self.told_ns is not None else now_ns
        session["until_ns"] = max(session["from_ns"] or 0, told or 0, self._last_ns)
        return True

    def begin(self, begun: Begun) -> None:
        """Begin another one, after that before was ended."""
        self._facts.sessions.append(begun.session())
        self.told_ns, self._last_ns = begun.from_ns, 0

    def _going(self) -> dict[str, int | None] | None:
        last = self._facts.sessions[-1] if self._facts.sessions else None
        return last if last is not None and last["until_ns"] is None else None
