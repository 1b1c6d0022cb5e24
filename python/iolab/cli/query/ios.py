# SPDX-License-Identifier: Apache-2.0
"""`iolab ios`: single I/Os, each with its time, values and names."""

from __future__ import annotations

import csv
import datetime
import io
from pathlib import Path

import click

from iolab.base.errors import UsageError
from iolab.base.untrusted_text import json_text, visible
from iolab.recordings.ask.attribution import Rectangle
from iolab.recordings.ask.language.fields import FIELDS
from iolab.recordings.ask.question import parse
from iolab.recordings.ask.single_ios import COLUMNS, SingleIos, as_data, list_ios
from iolab.recordings.heatmap.ticks import quantity
from iolab.recordings.heatmap.words import ios
from iolab.recordings.store.base.conditions import parse_range

from ..base.archives import is_fleet, refuse_engine
from ..base.completion import complete_statistics
from ..base.events import name_of, open_path
from ..base.options import PATH, columns_option, format_option, names_option, span_options
from ..base.output import say, tell, tell_as
from ..base.spans import span_of
from .who import as_map, map_of, uppermost_of

SHOWN = 20
"""I/Os that are listed by default."""


@click.command("ios")
@click.argument("path", metavar="PATH", type=PATH)
@click.argument(
    "statistic", metavar="[STATISTIC]", required=False, shell_complete=complete_statistics
)
@click.option("--slowest", type=click.IntRange(min=1), metavar="N", help="List the N slowest I/Os.")
@click.option(
    "--range", "values", metavar="RANGE", help="Only I/Os with these values: 10ms..1s, 10ms.."
)
@click.option(
    "--order",
    metavar="FIELD",
    help="Sort by time (default), latency, queue, offset, size, op, process, file or device; "
    "-latency: largest first.",
)
@click.option("--top", type=click.IntRange(min=1), help="List N I/Os. Default: 20.")
@span_options
@click.option("--source", metavar="NAME", help="What answers: block, syscall, fio...")
@format_option("text", "csv", "json")
@columns_option
@names_option
def command(
    path: Path,
    statistic: str | None,
    slowest: int | None,
    values: str | None,
    order: str | None,
    top: int | None,
    start: str | None,
    end: str | None,
    source: str | None,
    style: str,
    columns: str | None,
) -> None:
    """List single I/Os of a recording or a trace, each with its time, operation, latency, offset,
    size, device, process and file.

    STATISTIC has the conditions: io.ops[op=write][device=sda]. A breakdown names what --range is
    of: io.ops[size]; without one it is the latency. Without STATISTIC, the uppermost recorded layer
    is listed, as by 'iolab who'.
    """
    if slowest is not None and (order is not None or top is not None):
        other = "--order" if order is not None else "--top"
        raise UsageError(f"--slowest cannot be combined with {other}", hint="omit one of the two")
    if is_fleet(path):
        raise UsageError(
            "single I/Os are listed of one recording",
            where=path,
            hint="name one of the recordings",
        )
    refuse_engine(path)
    opened = open_path(path, columns=columns)
    parsed = parse(statistic or uppermost_of([opened]))
    low, high = None, None
    if values is not None:
        parsed = as_map(parsed, "--range")
        low, high = parse_range(values, FIELDS[map_of(parsed)].kind)
    name = "-latency" if slowest is not None else order or "time"
    page = list_ios(
        opened,
        parsed,
        Rectangle(*span_of([opened], start, end), low, high),
        source=source,
        order=name.removeprefix("-"),
        descending=name.startswith("-"),
        limit=slowest or top or SHOWN,
    )
    if style == "json":
        document = {"schema": 1, "kind": "ios", "statistic": str(parsed), **as_data(page)}
        tell_as(style, f"{json_text(document)}\n")
    elif style == "csv":
        tell_as(style, _csv(page))
        for note in page.notes:
            say(f"note: {note}")
    else:
        within = "" if values is None else f" within {values}"
        tell(*_text(page, f"{name_of(opened.path)}: {parsed}: {ios(page.total)}{within}"))


def _text(page: SingleIos, title: str) -> list[str]:
    lines = [title]
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
    if time_ns < 10**17:
        return f"{time_ns / 10**9:.6f} s"
    moment = datetime.datetime.fromtimestamp(time_ns // 10**9, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ns % 10**9 // 1000:06d}"


def _csv(page: SingleIos) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["source", *COLUMNS])
    for row in page.ios:
        cells = ("" if (value := row.values[name]) is None else value for name in COLUMNS)
        writer.writerow([row.source, *cells])
    return out.getvalue()
