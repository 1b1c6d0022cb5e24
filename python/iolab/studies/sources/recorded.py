# SPDX-License-Identifier: Apache-2.0
"""Sources with events in the study's recording: a run notes that they were recorded,
and how many they lost.

`<source>.log` has a reading a second of the recorder's own counts; the events are in
`recordings/<host>/`, marked with the run's name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from iolab.base.clock import Clock
from iolab.hosts.base.host import Host

from .counters import CounterOptions, CounterSource

STATUS = "status.json"
_STALE = 2.5
"""Seconds without a word of the recorder after which it counts as ended. It speaks once a second,
and a little later while it seals."""


class RecordedSource(CounterSource):
    """Counts of events that the study's recorder took in and lost. `attach` says where it
    records."""

    recorded: ClassVar[bool] = True

    def __init__(
        self, options: CounterOptions, host: Host, clock: Clock, devices: Sequence[str]
    ) -> None:
        super().__init__(options, host, clock, devices)
        self._keeper: Host = host
        self._status: str | None = None
        self._begun: Mapping[str, object] | None = None

    def attach(self, recording: str, keeper: Host | None = None) -> None:
        """Take readings from the recorder of this recording. `keeper`: the host of that directory,
        where it isn't the host's own."""
        self._keeper = keeper or self._host
        self._status = f"{recording}/{STATUS}"

    def unfit(self) -> str | None:
        """Without a recorder there is nothing to read."""
        return "no recorder runs" if self._status is None else super().unfit()

    def lines(self) -> list[str]:
        """Events and losses since recording began; OSError where no recorder runs."""
        status = self._read_status()
        if self._begun is None:
            self._begun = status
        self._look(status)
        written = status.get("written_ns")
        state = status.get("state")
        suspended = status.get("suspended")
        if state != "recording" or (isinstance(suspended, dict) and self.name in suspended):
            raise OSError(f"{self.name} is not recorded now")
        if not isinstance(written, int) or self._clock.realtime_ns() - written > _STALE * 1e9:
            raise OSError("the recorder says nothing")
        return self.count_lines(status)

    def count_lines(self, status: Mapping[str, object]) -> list[str]:
        """What the recorder took in and lost, a line each."""
        return [
            f"events {_count(status, 'events', self.name)}\n",
            f"lost {_count(status, 'lost', self.name)}\n",
        ]

    def counts(self, lines: Sequence[str]) -> Mapping[str, float]:
        """Each count."""
        return {line.split()[0]: float(line.split()[1]) for line in lines}

    def live(
        self, passed: float, before: Mapping[str, float], now: Mapping[str, float]
    ) -> Mapping[str, float]:
        """Events per second."""
        return {f"{self.name}.events": (now["events"] - before["events"]) / passed}

    def _read_status(self) -> Mapping[str, object]:
        if self._status is None:
            raise OSError("no recorder runs")
        try:
            status = json.loads(self._keeper.read_text(self._status))
        except ValueError:
            raise OSError("the recorder's status is damaged") from None
        if not isinstance(status, dict):
            raise OSError("the recorder's status is damaged")
        return status

    def _look(self, status: Mapping[str, object]) -> None:
        """Remember what befell it since the run began."""
        begun, troubles = self._begun or {}, status.get("troubles")
        deaths = [side.get("deaths") for side in (begun, status)]
        if (
            isinstance(troubles, list)
            and troubles
            and (deaths[0] != deaths[1] or status.get("state") == "ended")
        ):
            self.trouble = str(troubles[-1])


def _count(status: Mapping[str, object], key: str, name: str) -> int:
    counts = status.get(key)
    value = counts.get(name, 0) if isinstance(counts, dict) else 0
    return value if isinstance(value, int) and value >= 0 else 0
