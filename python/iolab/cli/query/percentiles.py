# SPDX-License-Identifier: Apache-2.0
"""`iolab query --percentiles`: percentiles of a map over time."""

from __future__ import annotations

import csv
import io
import shutil
from typing import TYPE_CHECKING

from ..base.output import say, tell, tell_as, tell_json
from .text import blocks, fit

if TYPE_CHECKING:
    from iolab.recordings.ask.question import Statistic
    from iolab.recordings.heatmap.overlays import Tails
    from iolab.recordings.store.base.counts import HeatCounts

LABELS = 30
"""Characters of a line of text before its sparkline."""


def columns_of_text() -> int:
    """Columns of time that fit into a line."""
    return max(10, shutil.get_terminal_size((100, 40)).columns - LABELS)


def tell_percentiles(asked: Statistic, counts: HeatCounts, name: str, style: str) -> None:
    """Print percentiles of each column of time, as text, csv or json. name: of what was asked.
    UsageError where the map has none."""
    from iolab.recordings.heatmap.overlays import tails

    counts = counts.with_all_columns()
    lines = tails(
        counts,
        where="--percentiles",
        hint="use a map of latency, size or queue, such as io.ops[latency]",
    )
    notes = [*counts.assumptions, *lines.notes]
    if style == "csv":
        tell_as(style, _as_csv(counts, lines))
        say(*(f"note: {note}" for note in notes))
    elif style == "json":
        tell_json(_as_data(asked, counts, lines, notes))
    else:
        tell(*_as_text(asked, counts, lines, name), *(f"note: {note}" for note in notes))


def _as_data(
    asked: Statistic, counts: HeatCounts, lines: Tails, notes: list[str]
) -> dict[str, object]:
    from iolab.recordings.ask.answers.json_form import number, numbers
    from iolab.recordings.heatmap.overlays import TAIL_NAMES
    from iolab.recordings.store.base.counts import UNITS

    return {
        "schema": 1,
        "kind": "percentiles",
        "statistic": str(asked),
        "unit": UNITS[counts.y],
        "t0_ns": counts.t0_ns,
        "interval_ns": counts.interval_ns,
        "events": counts.events,
        "lines": [
            {"key": name, "overall": number(float(overall)), "values": numbers(values)}
            for name, overall, values in zip(TAIL_NAMES, lines.overall, lines.values, strict=True)
        ],
        "notes": notes,
    }


def _as_csv(counts: HeatCounts, lines: Tails) -> str:
    """`time_s,p50,p90,...` in the unit of the values, empty in columns without I/Os."""
    from iolab.recordings.ask.answers.json_form import seconds
    from iolab.recordings.heatmap.overlays import TAIL_NAMES

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time_s", *TAIL_NAMES])
    for column, values in enumerate(lines.values.T.tolist()):
        time_s = seconds(counts.t0_ns + column * counts.interval_ns)
        writer.writerow([time_s, *("" if value != value else f"{value:.15g}" for value in values)])
    return text.getvalue()


def _as_text(asked: Statistic, counts: HeatCounts, lines: Tails, name: str) -> list[str]:
    import numpy as np

    from iolab.recordings.heatmap.overlays import TAIL_NAMES
    from iolab.recordings.heatmap.ticks import quantity
    from iolab.recordings.heatmap.words import ios
    from iolab.recordings.store.base.counts import UNITS

    unit = UNITS[counts.y]
    head = (
        f"{name}: {asked}: percentiles of {ios(counts.total)} over {quantity(counts.span_ns, 'ns')}"
    )
    if not counts.total:
        return [head]
    room = columns_of_text()
    rows = [f"{'':6} {'overall':>9} {'largest':>9}  over time"]
    for title, overall, values in zip(TAIL_NAMES, lines.overall, lines.values, strict=True):
        values, joined = fit(values, room, largest=True)
        largest = float(np.nanmax(values))
        rows.append(
            f"{title:6} {quantity(float(overall), unit, 3):>9} {quantity(largest, unit, 3):>9}  "
            f"{blocks(values, largest)}"
        )
    length = quantity(joined * counts.interval_ns, "ns")
    return [
        head,
        *rows,
        f"a character is the largest value of {length}, a stroke a time without I/Os",
    ]
