# SPDX-License-Identifier: Apache-2.0
"""Did the monitors live through the window?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from iolab.base.units import format_number
from iolab.base.verdict import Reason

from ..facts.run_facts import Monitor, RunFacts
from .base import invalid, note, suspect

SHARE = 0.9
COSTLY = 0.25
"""Share of all CPU time from which recording may have slowed the load: what `iolab record` may take
unless another budget is given."""


class MonitorAliveGate:
    """INVALID when a monitor that was planned left nothing, or one of its files has less than 90 %
    (less one) of the samples expected inside the window, for any device.

    Of an imported run, which planned no monitor, it is a note.

    A file that doesn't say the time between its samples is not judged: the expected number is
    unknown.

    A monitor that died takes its numbers' meaning with it: an average over the first ten seconds
    isn't one over sixty. A source's file is `<source>.log`, or begins with its name and a dot. What
    a recording lost during the run is noted, and what interrupted it. SUSPECT if recording took
    more than a quarter of all CPU time.
    """

    name = "monitor-alive"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """Planned sources against files, received samples against expected samples."""
        planned = [str(name) for name in facts.plan.extra.get("sources", ())]
        file_names = [*facts.monitor_files, *(damaged.file for damaged in facts.damaged)]
        missing = [
            name for name in planned if not any(file.startswith(f"{name}.") for file in file_names)
        ]
        if missing:
            whose = (
                f"monitors {', '.join(missing)}" if len(missing) > 1 else f"monitor {missing[0]}"
            )
            yield invalid("monitor-missing", f"the {whose} left nothing", sources=missing)
        recording = facts.plan.extra.get("recording")
        if isinstance(recording, dict):
            yield from _lost(recording)
        for client in facts.clients:
            yield from _lost(client.recording, f"client {client.name}: ")
        window_seconds = _window_seconds(facts)
        if window_seconds <= 0:
            return
        for monitor in facts.monitors:
            if monitor.interval is None:
                continue
            expected_samples = window_seconds / monitor.interval
            if monitor.samples < SHARE * expected_samples - 1:
                yield _dead(monitor, expected_samples, facts)


def _window_seconds(facts: RunFacts) -> float:
    """How long the window is in which samples count. That of several clients is the time in which
    all of them measured: shorter than the runtime of each, which another gate judges."""
    window = facts.plan.window
    if len(facts.clients) > 1 and window is not None:
        return (window[1] - window[0]) / 1e9
    return facts.runtime


def _lost(recording: Mapping[str, object], where: str = "") -> Iterable[Reason]:
    """Events that were lost take nothing from the load's own numbers; maps of the run lack them."""
    lost, events = recording.get("lost"), recording.get("events")
    for source, count in lost.items() if isinstance(lost, dict) else ():
        if isinstance(count, int) and count > 0:
            kept = events.get(source) if isinstance(events, dict) else None
            among = f", {kept} recorded" if isinstance(kept, int) else ""
            yield note(
                "events-lost",
                f"{where}{count} events of {source} were lost{among}",
                source=source,
                lost=count,
            )
    interrupted = recording.get("interrupted")
    if isinstance(interrupted, list) and interrupted:
        sources = " and ".join(events) if isinstance(events, dict) and events else "events"
        yield note(
            "recording-gap",
            f"{where}{sources} were not recorded all the time: {'; '.join(map(str, interrupted))}",
            times=len(interrupted),
        )
    share = recording.get("cpu_share")
    if isinstance(share, float) and share > COSTLY:
        yield suspect(
            "recording-cost",
            f"{where}recording took {format_number(100 * share, 3)} % of all CPU time; "
            "the load may be faster without it",
            share=share,
        )
    if recording.get("problem"):
        yield note("recording-trouble", f"{where}the recording: {recording['problem']}")


def _dead(monitor: Monitor, due: float, facts: RunFacts) -> Reason:
    source = monitor.file.partition(".")[0]
    whose = "" if monitor.what == source else f" of {monitor.what}"
    readings = facts.plan.extra.get("readings", {})
    trouble = str(readings.get(source, {}).get("trouble", "")) if isinstance(readings, dict) else ""
    why = f": {source} {trouble}" if trouble else ""
    level = note if facts.plan.status == "imported" else invalid
    return level(
        "monitor-dead",
        f"the monitor{whose or f' {source}'} has {monitor.samples} of {due:.0f} samples{why}",
        device=monitor.what,
        file=monitor.file,
        samples=monitor.samples,
        due=round(due),
    )
