# SPDX-License-Identifier: Apache-2.0
"""Answers of statistics in the terminal: a line of blocks, a table with one for each key, or a heat
map."""

from __future__ import annotations

import math
import os
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from ..base.output import say, tell, tell_as, tell_drawn

if TYPE_CHECKING:
    from iolab.recordings.ask.answers.answers import Answer, Floats, Series, Stack
    from iolab.recordings.ask.question import Statistic
    from iolab.recordings.store.base.counts import HeatCounts

_BLOCKS = "▁▂▃▄▅▆▇█"
_NOTHING = "╱"
_OVERLAP = "they overlap: no sum"


def tell_answer(
    statistic: Statistic, answer: Answer, name: str, style: str, top: int | None
) -> None:
    """Print an answer as text, csv or json. name: of what was asked. top: keys of a stack; by
    default 10 in text, else all."""
    from iolab.recordings.ask.answers.json_form import as_json, csv_lines
    from iolab.recordings.store.base.counts import HeatCounts

    if style == "csv":
        tell_as(style, "".join(f"{line}\n" for line in csv_lines(statistic, answer, top)))
        for note in answer.assumptions if isinstance(answer, HeatCounts) else answer.notes:
            say(f"note: {note}")
    elif style == "json":
        tell_as(style, f"{as_json(statistic, answer, top)}\n")
    elif isinstance(answer, HeatCounts):
        tell_drawn(draw_map(statistic, answer, name))
    else:
        tell(*lines(statistic, answer, name, top or 10))


def lines(asked: Statistic, answer: Series | Stack, name: str, top: int) -> list[str]:
    """What to print of an answer that is no map."""
    from iolab.recordings.ask.answers.answers import Stack

    body = _stack(answer, top) if isinstance(answer, Stack) else _series(answer)
    return [_heading(asked, answer, name), *body, *_rest(answer)]


def blocks(values: Floats, most: float) -> str:
    """A character for each value, higher for more; a stroke where nothing was recorded."""
    import numpy as np

    scale = (len(_BLOCKS) - 1) / most if most > 0 else 0.0
    return "".join(
        _NOTHING if np.isnan(value) else _BLOCKS[round(float(value) * scale)] for value in values
    )


def fit(values: Floats, room: int, *, largest: bool = False) -> tuple[Floats, int]:
    """(values that fit into so many characters, how many columns became one): means of columns that
    follow each other, or the largest of them."""
    import numpy as np

    joined = max(1, -(-len(values) // max(1, room)))
    if joined == 1:
        return values, 1
    padded = np.concatenate([values, np.full(-len(values) % joined, np.nan)]).reshape(-1, joined)
    is_known = ~np.isnan(padded)
    counts = is_known.sum(axis=1)
    if largest:
        values = np.where(is_known, padded, -np.inf).max(axis=1)
    else:
        values = np.where(is_known, padded, 0).sum(axis=1) / np.maximum(counts, 1)
    return np.where(counts > 0, values, np.nan), joined


def _heading(asked: Statistic, answer: Series | Stack, name: str) -> str:
    from iolab.recordings.heatmap.ticks import quantity
    from iolab.recordings.heatmap.words import ios, number

    measure = asked.entry.measure
    total = {"ops": f"{ios(answer.total)} ", "bytes": f"{number(answer.total)} B "}.get(
        measure, f"{number(answer.total)} {measure} "
    )
    spent = quantity(answer.covered_ns, "ns")
    return f"{name}: {asked}: {total if asked.entry.additive else ''}over {spent}, {_amount(answer.mean, answer.unit)} on average"


def _series(answer: Series) -> list[str]:
    import numpy as np

    finite = answer.values[~np.isnan(answer.values)]
    if not len(finite):
        return ["nothing of it was recorded then"]
    # a column at an end may be recorded in part alone
    inner = finite[1:-1] if len(finite) > 4 else finite
    most = float(finite.max())
    columns, joined = fit(answer.values, shutil.get_terminal_size((100, 40)).columns - 1)
    return [
        f"{blocks(columns, float(np.nanmax(columns)))}{_pace(answer, joined)}",
        f"min {_amount(float(inner.min()), answer.unit)}, mean {_amount(answer.mean, answer.unit)}, max {_amount(most, answer.unit)}",
    ]


def _stack(answer: Stack, top: int) -> list[str]:
    import numpy as np

    from iolab.base.units import format_number, readable_unit
    from iolab.base.untrusted_text import visible
    from iolab.recordings.ask.answers.json_form import is_averaged, largest

    kept, rest = largest(answer, top)
    if not any(row.mean > 0 for row in [*kept, *([rest] if rest else [])]):
        return ["nothing was counted then"]
    rest_rows = (
        [replace(rest, key=f"{rest.keys} other{'s' if rest.keys > 1 else ''}")] if rest else []
    )
    rows = [*(replace(row, key=visible(row.key)) for row in kept), *rest_rows]
    symbol, scale = readable_unit([row.mean for row in rows], answer.unit)
    # of things of which a mean is taken none is a share of it
    total = math.nan if is_averaged(answer) else answer.mean
    room = max(8, min(24, max(len(row.key) for row in rows)))
    labels = [
        fit(row.values, shutil.get_terminal_size((100, 40)).columns - room - 24)[0] for row in rows
    ]
    most = max(
        (float(np.nanmax(values)) for values in labels if not np.isnan(values).all()), default=0.0
    )
    head = f"{answer.statistic.breakdown or '':{room}} {'average ' + symbol:>12} {'share':>7}"
    return [
        head,
        *(
            f"{_short(row.key, room):{room}} {format_number(row.mean / scale):>12} {_percent(row.mean / total if total else 0)}  "
            f"{_OVERLAP if row.keys > 1 and not answer.adds_up and math.isnan(row.mean) else blocks(values, most)}"
            for row, values in zip(rows, labels, strict=True)
        ),
    ]


def _percent(share: float) -> str:
    # a partition's disk is the whole, a device beside the sum has no share of it
    return " " * 7 if math.isnan(share) or share > 1.001 else f"{100 * share:>5.1f} %"


def _pace(answer: Series, joined: int) -> str:
    from iolab.recordings.heatmap.ticks import quantity

    return (
        f"\n{joined} columns, {quantity(joined * answer.interval_ns, 'ns')}, in each character"
        if joined > 1
        else ""
    )


def _short(text: str, room: int) -> str:
    """The end of a text, which identifies it better than its beginning, above all a path."""
    return text if len(text) <= room else f"…{text[len(text) - room + 1 :]}"


def _rest(answer: Series | Stack) -> list[str]:
    import numpy as np

    from iolab.recordings.heatmap.ticks import quantity

    counter = answer.statistic.entry.counter
    counted = counter is not None and answer.source == counter.source
    parts = [
        f"each column {quantity(answer.interval_ns, 'ns')}, {'counters' if counted else 'events'} of {answer.source}"
    ]
    if np.isnan(answer.values).any():
        parts.append(f"{_NOTHING} nothing was recorded")
    return [*parts, *_lost(answer), *(f"note: {note}" for note in answer.notes)]


def _lost(answer: Series | Stack) -> list[str]:
    """What was lost, by kind, and in how many columns."""
    from iolab.recordings.heatmap.words import lost

    losses = answer.losses
    parts = (
        []
        if losses is None
        else [
            f"{lost(kind, count)}{' (and an unknown number more)' if count and kind in losses.unknown else ''}"
            for kind, count in losses.sums.items()
            if count or kind in losses.unknown
        ]
    )
    words = ", ".join(parts)
    if not answer.lost:
        return [words] if words else []
    columns = f"{len(answer.lost)} column{'' if len(answer.lost) == 1 else 's'}"
    return [
        f"{words or 'an unknown number of records were lost'}: in {columns}{' in all' if len(parts) > 1 else ''}"
    ]


def _amount(value: float, unit: str) -> str:
    from iolab.base.units import format_quantity

    return format_quantity(value, unit)


def draw_map(asked: Statistic, counts: HeatCounts, name: str) -> list[str]:
    """A map, with the colours of the terminal."""
    from iolab.recordings.heatmap.figure import Named, panels
    from iolab.recordings.heatmap.model import View
    from iolab.recordings.heatmap.terminal import draw, layout_of, mode_of, theme_of

    width, height = shutil.get_terminal_size((100, 40))
    mode = mode_of(os.environ, sys.stdout.isatty())
    layout = layout_of(width, max(height - 2, 16), 1, mode)
    view = View("linear" if counts.y in ("offset", "utilization") else "log")
    [panel] = panels([Named(f"{name} {asked}", counts.with_all_columns())], view, layout)
    return draw(panel, layout, mode, theme_of(os.environ))
