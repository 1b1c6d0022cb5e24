# SPDX-License-Identifier: Apache-2.0
"""Does the recording of every I/O hold what fio counted?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from iolab import _core
from iolab.base.verdict import Reason
from iolab.formats.core.tables import FioDirection

from ..facts.run_facts import RunFacts
from .base import note

PERCENTILES = ("50", "90", "99", "99.9", "99.99")
"""Of total latency, held against fio's own histogram."""

LOGGED = ("read", "write", "trim")
"""Operations that fio's log holds: its syncs are in its result alone."""

LATENCY_BITS = 6
"""The recording's grid; fio's bins lie on it without moving a count."""


class IoLogGate:
    """A note when the recording of a run's I/Os (`log_ios`) has other numbers than fio's result, or
    could not be made.

    Held against each other are I/Os of each operation (fio's `total_ios`, or the `N` of its
    latencies: after a ramp the two differ by I/Os that began in it) and percentiles of total
    latency, which must be equal: both use one grid. The metrics come from fio's result
    whatever the recording holds, so it takes nothing away from the run.
    """

    name = "io-log"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """What `log_ios.json` says against fio's result."""
        said = facts.io_log
        if not said:
            return
        problem = said.get("problem")
        if problem:
            yield note("io-log", f"the log of every I/O is not in the recording: {problem}")
            return
        events, latency = said.get("events", {}), said.get("latency", {})
        wrong = [
            words
            for operation in LOGGED
            if (
                words := describe_difference(
                    operation, int(events.get(operation, 0)), facts.directions
                )
            )
        ]
        if said.get("damaged"):
            wrong.append(f"{said['damaged']} lines of fio's log are damaged")
        if wrong:
            yield note(
                "io-log",
                f"the recording differs from fio's result: {'; '.join(wrong)}",
                events=dict(events),
            )
            return
        for operation in LOGGED:
            direction = facts.directions.get(operation)
            moved = (
                _differing_percentiles(latency.get(operation, {}), direction)
                if direction is not None and direction.ios
                else []
            )
            if moved:
                yield note(
                    "io-log",
                    f"{operation}: percentiles of the recording differ from fio's: {', '.join(moved)}",
                )


def describe_difference(operation: str, events: int, directions: Mapping[str, FioDirection]) -> str:
    """How the events of an operation differ from fio's count, in words; empty where they don't."""
    direction = directions.get(operation)
    if direction is None:
        return f"{events} {operation}s of which fio's result knows nothing" if events else ""
    timed = direction.latencies.get("lat")
    if events in (direction.ios, None if timed is None else timed.count):
        return ""
    return f"{events} {operation}s, fio counted {direction.ios}"


def _differing_percentiles(
    recorded: Mapping[str, int | None], direction: FioDirection
) -> list[str]:
    """Percentiles that differ; none where fio's result has no histogram of total latency."""
    timed = direction.latencies.get("lat")
    if timed is None or not timed.bins:
        return []
    indices, counts = _core.take_over_fio_bins(sorted(timed.bins.items()))
    own = _core.quantiles(
        indices, counts, [float(percent) / 100 for percent in PERCENTILES], _core.fio_bits()
    )
    return [
        f"p{name} {recorded.get(name)} ns instead of {value} ns"
        for name, value in zip(PERCENTILES, own, strict=True)
        if recorded.get(name) != value
    ]
