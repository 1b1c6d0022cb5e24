# SPDX-License-Identifier: Apache-2.0
"""`iolab query --list`: the single I/Os in a part of a map."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from ..base.output import say, tell, tell_as

if TYPE_CHECKING:
    from iolab.recordings.ask.question import Question, Statistic
    from iolab.recordings.ask.single_ios import SingleIos
    from iolab.recordings.store.read.recording import Recording
    from iolab.recordings.store.read.trace import Trace

SHOWN = 20
"""I/Os that are listed by default."""


def answer(
    opened: Trace | Recording, question: Question, values: str, top: int | None, order: str | None
) -> SingleIos:
    """The I/Os with these values (`10ms..1s`, `..` for all) that meet the question's conditions in
    its span, the first `top` in an order (`-latency`: the largest first). UsageError for what can't
    be asked."""
    from iolab.recordings.ask.attribution import Rectangle
    from iolab.recordings.ask.language.fields import FIELDS
    from iolab.recordings.ask.single_ios import list_ios
    from iolab.recordings.store.base.conditions import parse_range

    from .who import map_of

    statistic = question.statistic
    assert statistic is not None
    low, high = None, None
    if values.strip() != "..":
        low, high = parse_range(values, FIELDS[map_of(statistic, "--list")].kind)
    name = order or "time"
    return list_ios(
        opened,
        statistic,
        Rectangle(*question.span, low, high),
        source=question.source,
        order=name.removeprefix("-"),
        descending=name.startswith("-"),
        limit=SHOWN if top is None else top,
    )


def print_list(page: SingleIos, statistic: Statistic, name: str, values: str, style: str) -> None:
    """Print it. name: of the recording or trace. values: the range of values."""
    if style == "json":
        from iolab.recordings.ask.single_ios import as_data

        document = {"schema": 1, "kind": "ios", "statistic": str(statistic), **as_data(page)}
        tell_as(style, f"{json.dumps(document, ensure_ascii=False)}\n")
        return
    if style == "csv":
        tell_as(style, _csv(page))
        for note in page.notes:
            say(f"note: {note}")
        return
    tell(*_text(page, statistic, name, values))


def _text(page: SingleIos, statistic: Statistic, name: str, values: str) -> list[str]:
    from iolab.base.untrusted_text import visible
    from iolab.recordings.heatmap.ticks import quantity
    from iolab.recordings.heatmap.words import ios

    within = "" if values.strip() == ".." else f" within {values}"
    lines = [f"{name}: {statistic}: {ios(page.total)}{within}"]
    head = ("time", "op", "latency", "offset", "size", "device", "process", "file")
    table = [head]
    for io_row in page.ios:
        columns = io_row.values
        latency, size, offset = (
            columns["latency_ns"],
            columns["size_bytes"],
            columns["offset_bytes"],
        )
        table.append(
            (
                _moment(io_row.end_ns),
                columns["op"],
                "-" if latency is None else quantity(latency, "ns"),
                "-" if offset is None else str(offset),
                "-" if size is None else quantity(size, "B"),
                visible(columns["device"] or "-"),
                visible(columns["process"] or "-"),
                visible(columns["file"] or "-"),
            )
        )
    widths = [max(len(row[place]) for row in table) for place in range(len(head))]
    for row in table if page.ios else []:
        cells = [
            cell.rjust(width) if place in (2, 3, 4) else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    remaining = page.rows - page.skip - len(page.ios)
    if remaining > 0:
        lines.append(f"and {remaining} more; --top N lists more")
    return [*lines, *(f"note: {note}" for note in page.notes)]


def _moment(time_ns: int) -> str:
    """UTC with microseconds since 1970; seconds of clocks with a start of their own."""
    import datetime

    if time_ns < 10**17:
        return f"{time_ns / 10**9:.6f} s"
    moment = datetime.datetime.fromtimestamp(time_ns // 10**9, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ns % 10**9 // 1000:06d}"


def _csv(page: SingleIos) -> str:
    from iolab.recordings.ask.single_ios import COLUMNS

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["source", *COLUMNS])
    for row in page.ios:
        cells = ("" if (value := row.values[name]) is None else value for name in COLUMNS)
        writer.writerow([row.source, *cells])
    return out.getvalue()
