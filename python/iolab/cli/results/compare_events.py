# SPDX-License-Identifier: Apache-2.0
"""`iolab compare BEFORE AFTER` of two recordings or traces: rates, throughput, latency, and which
devices, processes and files changed their share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.output import tell, tell_json

if TYPE_CHECKING:
    from iolab.recordings.ask.attribution import Dimension
    from iolab.recordings.ask.difference import Difference, Measure, Value

FORMATS = ("text", "json")
SHOWN = 5
"""Values of a dimension in text."""
LEAST_APART = 0.0005
"""Dimensions that differ by less are equal in text."""
MANY_TIMES = 9.0
"""Changes from which on a factor reads better than percents."""

_TITLES = {"rate": "IOPS", "throughput": "throughput"}


def is_events(path: Path) -> bool:
    """Whether a path is a recording or a trace."""
    from .show_recording import is_recording
    from .show_trace import is_trace

    return is_recording(path) or is_trace(path)


def compare_events(paths: Sequence[Path], where: tuple[str, ...], style: str) -> None:
    """Print how two recordings or traces differ. UsageError where the paths are not two of these, or
    the format is one of tables of runs."""
    from iolab.base.errors import UsageError
    from iolab.recordings.ask.difference import as_data, differences
    from iolab.recordings.ask.engine.windows import filters_of
    from iolab.recordings.store.base.conditions import parse_where

    from ..base.events import open_path

    if len(paths) != 2 or not all(map(is_events, paths)):
        other = next((path for path in paths if not is_events(path)), None)
        raise UsageError(
            "compares two recordings or traces"
            if other is None
            else f"compares a recording or trace with another one; {other} is neither",
            where="compare",
            hint="iolab compare BEFORE AFTER",
        )
    if style not in FORMATS:
        raise UsageError(
            f"recordings are compared as {' or '.join(FORMATS)}, not as {style}",
            where="--format",
            hint="leave it out",
        )
    first, second = (open_path(path) for path in paths)
    by_source = differences(first, second, filters=filters_of(parse_where(where)))
    names = _names(paths)
    if style == "json":
        data = [as_data(difference) for difference in by_source]
        tell_json({"schema": 1, "kind": "difference", "paths": list(map(str, paths)), "of": data})
        return
    blocks = [_lines(difference, names) for difference in by_source]
    tell(*(line for block in blocks for line in (*block, "")), *_NOTES)


_NOTES = (
    "in brackets: the least and the largest of up to 20 equal parts of the recording; * where the ranges do not overlap",
    "note: a recording is one observation, so no change is tested; the load itself may have differed",
)


def _names(paths: Sequence[Path]) -> tuple[str, str]:
    names = [path.name or path.resolve().name for path in paths]
    first, second = names if names[0] != names[1] else map(str, paths)
    return first, second


def _lines(difference: Difference, names: tuple[str, str]) -> list[str]:
    from iolab.recordings.heatmap.ticks import quantity
    from iolab.recordings.heatmap.words import ios
    from iolab.studies.compare.render.grids import grid

    heads = [
        f"{name}: {source}, {ios(events)} in {quantity(covered_ns, 'ns')}"
        for name, source, events, covered_ns in zip(
            names, difference.sources, difference.events, difference.covered_ns, strict=True
        )
    ]
    ops = list(dict.fromkeys(measure.op for measure in difference.measures))
    rows = [["", names[0], "", names[1], "", "change", ""]]
    for op in ops:
        rows.append([op or "all operations", *[""] * 6])
        rows += [_row(measure) for measure in difference.measures if measure.op == op]
    equal, tables = [], []
    for dimension in difference.dimensions:
        if dimension.telling < LEAST_APART:
            equal.append(dimension.field)
        else:
            tables += ["", *_shares(dimension, names)]
    return [
        *heads,
        "",
        *grid(rows, left=(0, 2, 4, 6)),
        *tables,
        *(["", f"equal shares of {', '.join(equal)}"] if equal else []),
        *(
            f"note: {name}: {note}"
            for name, notes in zip(names, difference.notes, strict=True)
            for note in notes
        ),
    ]


def _row(measure: Measure) -> list[str]:
    title = _TITLES.get(measure.name, f"latency {measure.name}")
    change = measure.change
    return [
        title,
        *_value(measure.first, measure.unit),
        *_value(measure.second, measure.unit),
        "" if change is None else _change(change),
        "*" if measure.is_apart else "",
    ]


def _change(change: float) -> str:
    return f"{change + 1:.1f} times" if change >= MANY_TIMES else f"{100 * change:+.1f} %"


def _value(value: Value | None, unit: str) -> tuple[str, str]:
    if value is None:
        return "none", ""
    if value.low is None or value.high is None:
        return _quantity(value.value, unit), ""
    return _quantity(
        value.value, unit
    ), f"[{_quantity(value.low, unit)}, {_quantity(value.high, unit)}]"


def _quantity(value: float, unit: str) -> str:
    from iolab.base.units import format_quantity
    from iolab.recordings.heatmap.ticks import quantity

    return quantity(value, unit, 3) if unit == "ns" else format_quantity(value, unit, 3)


def _shares(dimension: Dimension, names: tuple[str, str]) -> list[str]:
    """A table of the values of which the shares differ most."""
    from iolab.studies.compare.render.grids import grid

    largest = [
        share
        for share in dimension.values
        if max(share.share_inside, share.share_outside) >= LEAST_APART
    ][:SHOWN]
    rows = [
        [f"{dimension.field} ({100 * dimension.telling:.1f} % differ)", *names],
        *(
            [share.value, _percent(share.share_inside), _percent(share.share_outside)]
            for share in largest
        ),
    ]
    more = dimension.left + len(dimension.values) - len(largest)
    return [*grid(rows, left=(0,)), *([f"and {more} more"] if more else [])]


def _percent(share: float) -> str:
    return "" if share != share else f"{100 * share:.1f} %"
