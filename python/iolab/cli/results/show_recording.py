# SPDX-License-Identifier: Apache-2.0
"""`iolab show RECORDING`: sources, events, span, processes, percentiles by operation, losses and
gaps, marks, size."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .show_trace import latency_lines, percentiles_text, tell_summary

if TYPE_CHECKING:
    from iolab.recordings.store.base.intervals import Unrecorded
    from iolab.recordings.store.base.metadata import Facts
    from iolab.recordings.store.read.summary import RecordingSummary

SHOWN_MARKS = 20


def is_recording(path: Path) -> bool:
    """Whether a path is the directory of a recording."""
    from iolab.recordings.store.base import layout

    return layout.is_recording(path)


def show_recording(path: Path, style: str) -> None:
    """Print the summary of the recording at `path`; it may be growing."""
    from iolab.recordings.store.read.recording import Recording

    recording = Recording(path)
    summary = recording.summary()
    if (path / "histograms" / "keep.json").exists() or (path / "histograms" / "kept.json").exists():
        from iolab.recordings.ask.kept.recorded import find_damage

        summary = replace(summary, broken=[*summary.broken, *find_damage(path)])
    tell_summary(summary, style, as_json, _lines)


def as_json(summary: RecordingSummary) -> dict[str, Any]:
    """`{"schema": 1, "kind": "recording", "events": {"recorded", "lost", ...}, ...}`: times in ns,
    sizes in bytes."""
    facts = summary.facts
    return {
        "schema": 1,
        "kind": "recording",
        "path": str(summary.path),
        "host": facts.host,
        "clock": facts.clock,
        "origin": facts.origin,
        "events": {
            "recorded": summary.events,
            "lost": summary.lost,
            "damaged": summary.damaged,
            "unpaired": summary.unpaired,
            "rows": summary.rows,
            "losses_of_unknown_number": summary.unknown,
        },
        "samples": summary.samples,
        "first_ns": summary.first_ns,
        "last_ns": summary.last_ns,
        "sources": {
            name: {**facts.sources.get(name, {}), **summary.sources.get(name, {})}
            for name in sorted({*facts.sources, *summary.sources})
        },
        "ops": dict(summary.names.get("op", {})),
        "names": {name: dict(counts) for name, counts in summary.names.items() if name != "op"},
        "commands": {name: list(lines) for name, lines in summary.commands.items()},
        "distinct": dict(summary.distinct),
        "names_partial": list(summary.partial),
        "percentiles": summary.percentiles,
        "mean": {source: {"latency": value} for source, value in summary.mean.items()},
        "latency_by_op": summary.latency_by,
        "losses": summary.losses,
        "gaps": [{"from_ns": start, "until_ns": end} for start, end in summary.gaps],
        "unrecorded": [
            {
                "source": gap.source,
                "of": gap.of,
                "from_ns": gap.from_ns,
                "until_ns": _until(gap),
                "words": gap.words,
            }
            for gap in summary.unrecorded
        ],
        "killed": summary.is_killed,
        "complete_ns": summary.complete_ns,
        "sessions": facts.sessions,
        "marks": list(summary.marks),
        "retention": facts.retention,
        "dropped": facts.dropped,
        "segments": dict(summary.segments),
        "bytes": dict(summary.bytes),
        "bytes_per_io": summary.bytes_per_io,
        "broken": [{"file": str(path), "reason": reason} for path, reason in summary.broken],
    }


def _connection(facts: Facts) -> list[str]:
    """How another machine was recorded, and the offset of its clock to the recorder's."""
    from iolab.recordings.heatmap.ticks import quantity

    connection, session = (
        facts.origin.get("connection"),
        facts.sessions[-1] if facts.sessions else {},
    )
    offset, uncertainty = session.get("clock_offset_ns"), session.get("clock_offset_uncertainty_ns")
    if not isinstance(connection, dict):
        return []
    clock = ""
    if isinstance(offset, int) and isinstance(uncertainty, int):
        clock = f"; its clock was {quantity(abs(offset), 'ns')} {'behind' if offset < 0 else 'ahead'}, within {quantity(uncertainty, 'ns')}"
    return [f"reached   {connection.get('host')}{clock}"]


def _lines(summary: RecordingSummary) -> list[str]:
    from iolab.recordings.heatmap.ticks import quantity
    from iolab.recordings.heatmap.words import ios, number

    facts = summary.facts
    span = (
        ""
        if summary.first_ns is None or summary.last_ns is None
        else f" over {quantity(summary.last_ns - summary.first_ns, 'ns')}"
    )
    of_host = f" of {facts.host}" if facts.host else ""
    # several sources may have seen the same I/O
    alone = len(summary.sources) < 2
    kinds = (
        ios(summary.events)
        if alone
        else f"{number(summary.events)} events of {len(summary.sources)} sources"
    )
    lines = [f"{summary.path}: recording{of_host}, {kinds}{span}"]
    if facts.clock == "realtime" and summary.first_ns is not None:
        lines.append(f"begins    {_when(summary.first_ns)}")
    lines += [*_connection(facts), *_death(summary)]
    lines += [
        f"source    {name} {ios(counts_of_source['events'])}{_about(facts.sources.get(name, {}))}"
        for name, counts_of_source in summary.sources.items()
    ]
    lines += [
        f"source    {name} no events"
        for name in facts.sources
        if name not in summary.sources and not summary.samples
    ]
    if summary.samples:
        lines.append(f"samples   {number(summary.samples)}")
    lines += [
        f"imported  {file.get('file')}"
        for file in facts.origin.get("files", [])[:5]
        if isinstance(file, dict)
    ]
    if not alone and summary.names:
        lines.append("note      an I/O that several sources saw counts for each of them below")
    for name, counts in summary.names.items():
        values = ", ".join(f"{value} {number(count)}" for value, count in list(counts.items())[:6])
        more = summary.distinct[name] - len(list(counts)[:6])
        least = "at least " if name in summary.partial else ""
        lines.append(f"{name:9} {values}{f' and {least}{number(more)} more' if more > 0 else ''}")
        if name == "process":
            lines += _commands(summary)
    lines += _distributions(summary)
    lines += _losses(summary)
    lines += _marks(summary)
    return [*lines, _size(summary), *_retention(summary)]


def _death(summary: RecordingSummary) -> list[str]:
    """That the recorder was killed, and until when the recording is complete."""
    if not summary.is_killed:
        return []
    until = "" if summary.complete_ns is None else f"; complete until {_when(summary.complete_ns)}"
    return [f"killed    the recorder ended without closing the recording{until}"]


def _commands(summary: RecordingSummary) -> list[str]:
    """What the processes that are shown were begun as: their command lines, shortened."""
    from iolab.recordings.store.read.summary import SHOWN

    lines = []
    for process in list(summary.names["process"])[:6]:
        commands = summary.commands.get(process, [])
        lines += [
            f"command   {process}: {textwrap.shorten(command, 110, placeholder=' ...')}"
            for command in commands[:2]
        ]
        least = "at least " if len(commands) == SHOWN else ""
        lines += (
            [f"command   {process}: and {least}{len(commands) - 2} more"]
            if len(commands) > 2
            else []
        )
    return lines


def _about(facts: Mapping[str, Any]) -> str:
    words = str(facts.get("what") or facts.get("format") or "")
    return (
        f" ({words}{', each the mean of a window' if facts.get('averaged') else ''})"
        if words
        else ""
    )


def _distributions(summary: RecordingSummary) -> list[str]:
    from iolab.recordings.heatmap.ticks import quantity
    from iolab.recordings.store.base.schema import LATENCY_BITS

    from .show_trace import sizes

    lines = []
    several = len(summary.percentiles) > 1
    for source, kinds in summary.percentiles.items():
        of_source = f" of {source}" if several else ""
        for name, values in kinds.items():
            unit = "ns" if name == "latency" else "B"
            mean = f"mean {quantity(summary.mean[source], 'ns')}, " if name == "latency" else ""
            percentiles = values if name == "latency" else sizes(values, LATENCY_BITS)
            lines.append(f"{name + of_source:9} {mean}{percentiles_text(percentiles, unit)}")
        by_op = summary.latency_by.get(source, {})
        if len(by_op) > 1:
            lines += [f"latency by op{of_source}", *latency_lines(by_op)]
    return lines


def _losses(summary: RecordingSummary) -> list[str]:
    from iolab.recordings.heatmap.words import number

    lines = []
    for kind, counts in summary.losses.items():
        if kind == "unknown-name":
            lines.append(f"unnamed   {number(counts['count'])} events, recorded without a name")
        elif kind != "gap":
            unknown = (
                f", and {number(counts['unknown'])} times an unknown number"
                if counts["unknown"]
                else ""
            )
            lines.append(f"losses    {kind}: {number(counts['count'])}{unknown}")
    gaps = _gaps(summary)
    lines += [f"gap       {words}" for words in gaps[:5]]
    lines += [f"gap       and {len(gaps) - 5} more"] if len(gaps) > 5 else []
    lines += [
        f"broken    {path.parent.name}/{path.name}: {reason}" for path, reason in summary.broken
    ]
    is_lost = any(not line.startswith("unnamed") for line in lines)
    return lines if is_lost else [*lines, "losses    none"]


def _gaps(summary: RecordingSummary) -> list[str]:
    """What was not recorded, for how long, from when, and why: sources that share a gap in one
    line."""
    from iolab.recordings.heatmap.ticks import quantity

    together: dict[tuple[int, int | None, str], list[str]] = {}
    for gap in summary.unrecorded:
        if gap.of is None:
            together.setdefault((gap.from_ns, _until(gap), gap.words), []).append(gap.source)
    lines = []
    for (start, end, words), sources in together.items():
        is_complete = "" in sources or (
            len(summary.facts.sources) > 1 and set(sources) >= summary.facts.sources.keys()
        )
        length = "" if end is None else f" for {quantity(end - start, 'ns')}"
        lines.append(
            f"{'nothing' if is_complete else ' and '.join(sources) + ' not'} recorded{length} from {_when(start)}: {words}"
        )
    return lines


def _until(gap: Unrecorded) -> int | None:
    """End of a gap; None if it has not ended."""
    from iolab.recordings.store.base.intervals import EVER_NS

    return gap.until_ns if gap.until_ns < EVER_NS else None


def _marks(summary: RecordingSummary) -> list[str]:
    from iolab.recordings.heatmap.ticks import quantity

    lines = []
    for mark in summary.marks[:SHOWN_MARKS]:
        length = (
            ""
            if mark["until_ns"] is None
            else f", {quantity(mark['until_ns'] - mark['from_ns'], 'ns')}"
        )
        start = (
            ""
            if summary.first_ns is None
            else f" at {quantity(mark['from_ns'] - summary.first_ns, 'ns')}"
        )
        lines.append(f"mark      {mark['label']} ({mark['kind']}){start}{length}")
    return (
        [*lines, f"mark      and {len(summary.marks) - SHOWN_MARKS} more"]
        if len(summary.marks) > SHOWN_MARKS
        else lines
    )


def _size(summary: RecordingSummary) -> str:
    from iolab.recordings.heatmap.ticks import quantity

    bytes_per_event = (
        "" if summary.bytes_per_io is None else f", {summary.bytes_per_io:.1f} bytes an event"
    )
    sealed = summary.segments["sealed"]
    hot = f", {summary.segments['hot']} not sealed yet" if summary.segments["hot"] else ""
    return f"on disk   {quantity(summary.bytes['all'], 'B')} in {sealed} segment{'' if sealed == 1 else 's'}{hot}{bytes_per_event}"


def _retention(summary: RecordingSummary) -> list[str]:
    from iolab.recordings.heatmap.ticks import quantity
    from iolab.recordings.heatmap.words import ios

    from ..record.words import lasting

    facts = summary.facts
    most_bytes, most_age = facts.retention.get("bytes"), facts.retention.get("age_s")
    limits = [] if most_bytes is None else [quantity(most_bytes, "B")]
    limits += [] if most_age is None else [lasting(most_age)]
    lines = [f"keeps     {' and '.join(limits)} at most"] if limits else []
    if facts.dropped:
        until = facts.dropped.get("until_ns")
        lines.append(
            f"dropped   {ios(sum(facts.dropped.get('events', {}).values()))}{'' if until is None else f' until {_when(until)}'}; "
            "their maps by second remain"
        )
    return lines


def _when(time_ns: int) -> str:
    """A time since the epoch in UTC; a small one is of a trace's own clock."""
    from iolab.recordings.heatmap.ticks import quantity

    if abs(time_ns) < 10**17:
        return quantity(time_ns, "ns")
    return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
