# SPDX-License-Identifier: Apache-2.0
"""`iolab query --who`: devices, processes, files and clients of the I/Os in a part of a map."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING

from ..base.output import tell, tell_as

if TYPE_CHECKING:
    from iolab.recordings.ask.attribution import Who
    from iolab.recordings.ask.question import Question, Statistic
    from iolab.recordings.store.base.counts import Y
    from iolab.recordings.store.read.recording import Recording
    from iolab.recordings.store.read.trace import Trace

SHOWN = 5
"""Values of a dimension in text, unless asked otherwise."""
LEAST_SHARE = 0.0005
"""Values with a smaller share on both sides are counted only: it would print as 0.0 %."""


def answer(opened: Trace | Recording, question: Question, values: str, top: int | None) -> Who:
    """Who is in these values (`10ms..1s`) of a map within the question's span. UsageError where its
    statistic is no map."""
    from iolab.recordings.ask.attribution import TOP, Rectangle, who
    from iolab.recordings.ask.language.fields import FIELDS
    from iolab.recordings.store.base.conditions import parse_range

    statistic = question.statistic
    assert statistic is not None
    y = map_of(statistic)
    low, high = parse_range(values, FIELDS[y].kind)
    return who(
        opened,
        y,
        Rectangle(*question.span, low, high),
        filters=statistic.filters,
        entry=statistic.entry,
        source=question.source,
        top=top or TOP,
    )


def map_of(asked: Statistic, what: str = "--who") -> Y:
    """The field of a map's values. UsageError where the statistic is no map, which `what` needs."""
    from iolab.base.errors import UsageError
    from iolab.recordings.ask.language.fields import QUANTIZED

    for y in QUANTIZED:
        if y == asked.breakdown:
            return y
    raise UsageError(
        "needs a map",
        where=what,
        hint=f"such as {asked.group}.{asked.name}[latency]",
    )


def tell_who(
    found: Who, asked: Statistic, name: str, values: str, top: int | None, style: str
) -> None:
    """Print it. name: of what was asked."""
    if style == "json":
        tell_as(style, f"{as_json(found, asked)}\n")
    elif style == "csv":
        tell_as(style, "".join(f"{line}\n" for line in csv_lines(found)))
    else:
        tell(*text(found, asked, name, values, top))


def text(found: Who, asked: Statistic, name: str, values: str, top: int | None) -> list[str]:
    """What to print: a table for each dimension in which inside and outside differ."""
    from iolab.base.untrusted_text import visible
    from iolab.recordings.heatmap.words import ios, number

    amount = ios if found.unit == "1" else lambda value: f"{number(value)} B"
    lines = [
        f"{name}: {asked}: {amount(found.inside)} within {values}, {amount(found.outside)} outside"
    ]
    if not found.inside or not found.outside:
        return [
            *lines,
            "there is nothing to compare with" if found.inside else "nothing is inside",
            *(f"note: {n}" for n in found.notes),
        ]
    alike = []
    for dimension in found.dimensions:
        if dimension.telling < 0.0005:
            alike.append(dimension.field)
            continue
        top_values = [
            (visible(value_share.value), value_share)
            for value_share in dimension.values[: top or SHOWN]
            if top or max(value_share.share_inside, value_share.share_outside) >= LEAST_SHARE
        ]
        room = max(len(dimension.field), 8, *(min(40, len(value)) for value, _ in top_values))
        lines.append(
            f"{dimension.field:{room}}  inside   outside   ({100 * dimension.telling:.0f} % apart)"
        )
        lines += [
            f"{value if len(value) <= room else '…' + value[1 - room :]:{room}}  {100 * value_share.share_inside:5.1f} %   "
            f"{100 * value_share.share_outside:5.1f} %"
            for value, value_share in top_values
        ]
        hidden = dimension.left + len(dimension.values) - len(top_values)
        if hidden:
            lines.append(f"and {hidden} more")
    if alike:
        lines.append(f"the same inside and outside: {', '.join(alike)}")
    return [*lines, *(f"note: {note}" for note in found.notes)]


def csv_lines(found: Who) -> list[str]:
    """`dimension,value,inside,outside,share_inside,share_outside`; a share of nothing is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["dimension", "value", "inside", "outside", "share_inside", "share_outside"])
    for dimension in found.dimensions:
        writer.writerows(
            [
                dimension.field,
                value_share.value,
                value_share.inside,
                value_share.outside,
                _share(value_share.share_inside),
                _share(value_share.share_outside),
            ]
            for value_share in dimension.values
        )
    return out.getvalue().split("\n")[:-1]


def as_json(found: Who, asked: Statistic) -> str:
    """`{"schema": 1, "kind": "who", "statistic", ...}` as `statistics.who.as_data` has it."""
    from iolab.recordings.ask.attribution import as_data

    return json.dumps(
        {"schema": 1, "kind": "who", "statistic": str(asked), **as_data(found)}, ensure_ascii=False
    )


def _share(share: float) -> float | str:
    return "" if math.isnan(share) else share
