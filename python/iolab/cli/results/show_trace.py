# SPDX-License-Identifier: Apache-2.0
"""`iolab show TRACE`: what a trace of I/O holds: span, operations, percentiles by operation, device
and process, losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.output import tell, tell_json

if TYPE_CHECKING:
    from iolab.recordings.store.read.trace import Summary

S = TypeVar("S")

PERCENTILES = ("50", "90", "99", "99.9", "99.99", "max")


def is_trace(path: Path) -> bool:
    """Whether a path is a trace by its content; standard input can only be one."""
    from iolab.recordings.store.read.trace import STDIN, Trace

    return path == STDIN or (
        path.is_file() and path.suffix != ".json" and Trace(path).detect() is not None
    )


def show_trace(path: Path, style: str) -> None:
    """Print the summary of the trace at `path`; FormatError where it is none."""
    from iolab.recordings.store.read.trace import Trace

    tell_summary(Trace(path).summary(), style, as_json, _lines)


def tell_summary(
    summary: S, style: str, as_json: Callable[[S], dict[str, Any]], lines: Callable[[S], list[str]]
) -> None:
    """Print a summary as JSON or as lines."""
    if style == "json":
        tell_json(as_json(summary))
    else:
        tell(*lines(summary))


def as_json(summary: Summary) -> dict[str, Any]:
    """`{"schema": 1, "kind": "trace", "path", "format", "events": {...}, ...}`: times in ns, sizes
    in bytes."""
    facts = summary.facts
    return {
        "schema": 1,
        "kind": "trace",
        "path": str(summary.path),
        "format": summary.format,
        "events": {
            "recorded": summary.events,
            "lost": facts["losses"],
            "damaged": facts["damaged"],
            "unpaired": facts["unpaired"],
            "backwards": facts["backwards"],
        },
        "first_ns": facts["first_ns"],
        "last_ns": facts["last_ns"],
        "averaged": facts["averaged"],
        "has": summary.has,
        "ops": dict(summary.names("op")),
        "names": {name: dict(pairs) for name, pairs in facts["keys"].items() if pairs},
        "distinct": facts["distinct"],
        "beyond_limit": facts["other"],
        "percentiles": facts["percentiles"],
        "mean": facts["mean"],
        "percentile_bits": facts["bits"],
        "latency_by": facts["latency_by"],
        "assumptions": list(facts["assumptions"]),
        "damaged_examples": [
            {"line": line, "reason": reason} for line, reason in facts["damaged_examples"]
        ],
    }


def _lines(summary: Summary) -> list[str]:
    from iolab.recordings.heatmap.ticks import quantity
    from iolab.recordings.heatmap.words import ios, number

    facts = summary.facts
    lines = [f"{summary.path}: {summary.format} trace, {ios(summary.events)}{_span(facts)}"]
    lines.append(f"has       {', '.join(summary.has)}")
    if facts["averaged"]:
        lines.append(
            "note      each line is the mean of a window, not one I/O: percentiles are of windows"
        )
    lines += [f"assumed   {text}" for text in facts["assumptions"]]
    for name in ("op", "device", "process", "file", "job", "client"):
        pairs = summary.names(name)
        if pairs:
            summary_text = ", ".join(f"{value} {number(count)}" for value, count in pairs[:6])
            more = max(len(pairs), facts["distinct"].get(name, 0)) - len(pairs[:6])
            lines.append(
                f"{name:9} {summary_text}{f' and {number(more)} more' if more > 0 else ''}"
            )
    for name, values in facts["percentiles"].items():
        unit = "ns" if name == "latency" else "B"
        percentiles = values if name == "latency" else sizes(values, facts["bits"])
        summary_text = percentiles_text(percentiles, unit)
        lines.append(f"{name:9} mean {quantity(facts['mean'][name], unit)}, {summary_text}")
    for name, rows in facts["latency_by"].items():
        if len(rows) > 1:
            lines += [f"latency by {name}", *latency_lines(rows)]
    return [*lines, *_losses(facts)]


def percentiles_text(
    values: Mapping[str, int], unit: str, shown: Sequence[str] = PERCENTILES
) -> str:
    """Percentiles by name with their unit, such as "p50 1.2 ms, max 3 ms"."""
    from iolab.recordings.heatmap.ticks import quantity

    return ", ".join(
        f"{'max' if key == 'max' else f'p{key}'} {quantity(values[key], unit)}"
        for key in shown
        if key in values
    )


def latency_lines(rows: Mapping[str, Mapping[str, int]]) -> list[str]:
    """A line for each value of a field: I/Os, and percentiles of their latency."""
    from iolab.recordings.heatmap.words import number

    return [
        f"  {value:20} {number(row['count']):>12}  {percentiles_text(row, 'ns', ('50', '99', 'max'))}"
        for value, row in rows.items()
    ]


def sizes(values: Mapping[str, int], bits: int) -> dict[str, int]:
    """Percentiles of sizes, that are the upper bounds of buckets, as their lower ones: I/Os are of
    4 KiB, not of the last byte before the next bucket. The largest is exact."""
    from iolab import _core

    return {
        key: value
        if value == values.get("max")
        else _core.grid_bounds(_core.grid_index(value, bits), bits)[0]
        for key, value in values.items()
    }


def _span(facts: Any) -> str:
    from iolab.recordings.heatmap.ticks import quantity

    if facts["first_ns"] is None or facts["last_ns"] is None:
        return ""
    return f" over {quantity(facts['last_ns'] - facts['first_ns'], 'ns')}"


def _losses(facts: Any) -> list[str]:
    from iolab.recordings.heatmap.words import number

    lines = []
    if facts["losses"]:
        lines.append(
            f"lost      {number(facts['losses'])} record{_s(facts['losses'])}, says the tracer"
        )
    if facts["unpaired"]:
        lines.append(
            f"unmatched {number(facts['unpaired'])} issue or completion event{_s(facts['unpaired'])}"
        )
    if facts["backwards"]:
        lines.append(
            f"backwards {number(facts['backwards'])} event{_s(facts['backwards'])} earlier than the one before"
        )
    if facts["damaged"]:
        lines.append(
            f"damaged   {number(facts['damaged'])} line{_s(facts['damaged'])} left out, such as"
        )
        lines += [f"  line {line}: {reason}" for line, reason in facts["damaged_examples"]]
    return lines or ["losses    none"]


def _s(many: int) -> str:
    return "" if many == 1 else "s"
