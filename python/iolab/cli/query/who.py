# SPDX-License-Identifier: Apache-2.0
"""`iolab who`: processes, files, devices and clients of the slow I/Os, or of those in a part of a
map."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from iolab.base.errors import UsageError
from iolab.base.untrusted_text import json_text, visible
from iolab.recordings.ask.attribution import TOP, Rectangle, Who, as_data, ordered, who
from iolab.recordings.ask.available import sources_of
from iolab.recordings.ask.engine.snapshot import snapshot
from iolab.recordings.ask.fleet import FleetStatistic, ask_fleet, labels_of, who_of_fleet
from iolab.recordings.ask.language.fields import FIELDS, QUANTIZED
from iolab.recordings.ask.query import answer as answer_of
from iolab.recordings.ask.question import Question, Statistic, parse
from iolab.recordings.ask.slowest import Slowest, slowest, uppermost
from iolab.recordings.heatmap.ticks import quantity
from iolab.recordings.heatmap.words import ios, number
from iolab.recordings.store.base.conditions import parse_range
from iolab.recordings.store.base.counts import HeatCounts, Y
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.trace import Trace

from ..base.archives import engine_option, is_fleet, open_fleet, refuse_engine
from ..base.completion import complete_statistics
from ..base.events import name_of, open_path
from ..base.options import PATH, columns_option, format_option, names_option, span_options
from ..base.output import say, tell, tell_as
from ..base.spans import span_of

SHOWN = 5
"""Values of a dimension in text, unless asked otherwise."""
LEAST_SHARE = 0.0005
"""Values with a smaller share on both sides are counted only: it would print as 0.0 %."""
COLUMNS = 300
"""Columns of time at most in which slow I/Os are searched."""
FLAGS = {
    "block": "flags are letters of the block layer: S sync, M metadata, F flush or FUA, A readahead",
    "syscall": "flags are names of system calls",
}
"""What the values of the field `flags` are, by source (Documentation/trace/events.rst, blktrace(8),
`blk_fill_rwbs`)."""


@dataclass(frozen=True)
class Selection:
    """The I/Os that are looked for. values: their range as text. slow: how they were chosen, None
    for a range that was given."""

    rectangle: Rectangle
    values: str
    slow: Slowest | None = None


@click.command("who")
@click.argument("path", metavar="PATH", type=PATH)
@click.argument(
    "statistic", metavar="[STATISTIC]", required=False, shell_complete=complete_statistics
)
@click.option(
    "--slowest",
    "share",
    metavar="PERCENT",
    help="Look at the slowest I/Os: this part of all. Default: 1%.",
)
@click.option(
    "--range",
    "values",
    metavar="RANGE",
    help="Look at the I/Os with these values of the map instead: 10ms..1s, 10ms.. "
    "They are compared with all others.",
)
@span_options
@click.option("--top", type=click.IntRange(min=1), help="Values of a field. Default: 5 in text.")
@click.option("--source", metavar="NAME", help="What answers: block, syscall, fio...")
@click.option(
    "--all",
    "is_own_included",
    is_flag=True,
    help="Include iolab's own processes (recorder, probe).",
)
@format_option("text", "csv", "json")
@columns_option
@engine_option
@names_option
def command(
    path: Path,
    statistic: str | None,
    share: str | None,
    values: str | None,
    start: str | None,
    end: str | None,
    top: int | None,
    source: str | None,
    is_own_included: bool,
    style: str,
    columns: str | None,
) -> None:
    """Find which processes, files, devices and clients the slow I/Os belong to.

    The slowest percent of the I/Os is compared with all others of the same seconds. A value with a
    larger share of the slow I/Os than of the others is named first. Bursts that repeat are counted.

    Without STATISTIC, the uppermost recorded layer is read: what the load generator saw, else
    system calls (file.ops), operations of the NFS server, or the block layer (io.ops). A process
    that waits is slow in its system calls. The block layer may name another one, which writes out
    what the first had written.

    STATISTIC is a map, such as io.ops[op=write][latency]; without a breakdown, its latency is taken.

    PATH is a recording, a trace, a folder of recordings, or archive:URL.
    """
    if share is not None and values is not None:
        raise UsageError("--slowest cannot be combined with --range", hint="omit one of the two")
    part = parse_percent(share or "1%")
    # a condition on the process names what is looked for
    is_own_included |= statistic is not None and "process" in statistic
    if is_fleet(path):
        if columns is not None:
            raise UsageError("several recordings have no --columns", where=path, hint="omit it")
        fleet = open_fleet(path)
        for note in fleet.notes:
            say(f"note: {note}")
        of_hosts = FleetStatistic.parse(
            statistic or f"{uppermost_of(fleet.recordings)}[latency]", labels_of(fleet.recordings)
        )
        of_hosts = replace(of_hosts, statistic=as_map(of_hosts.statistic))
        recordings = of_hosts.select(fleet.recordings)
        span = span_of(recordings, start, end)
        selection: Selection | None
        if values is not None:
            selection = in_range(of_hosts.statistic, span, values)
        else:
            counts = ask_fleet(
                recordings,
                replace(of_hosts, by=None),
                from_ns=span[0],
                until_ns=span[1],
                columns=COLUMNS,
                source=source,
            )
            assert isinstance(counts, HeatCounts)
            selection = slowest_of(counts, span, part)
        parsed, name = of_hosts.statistic, fleet.name
        answer = (
            None
            if selection is None
            else who_of_fleet(
                recordings,
                of_hosts,
                map_of(parsed),
                selection.rectangle,
                during=None if selection.slow is None else selection.slow.columns,
                is_own_included=is_own_included,
                source=source,
                top=top or TOP,
            )
        )
    else:
        refuse_engine(path)
        opened = open_path(path, columns=columns)
        parsed = as_map(parse(statistic or f"{uppermost_of([opened])}[latency]"))
        span, name = span_of([opened], start, end), name_of(opened.path)
        if values is not None:
            selection = in_range(parsed, span, values)
        else:
            counts = answer_of(opened, Question.of(parsed, span, None, COLUMNS, source))
            assert isinstance(counts, HeatCounts)
            selection = slowest_of(counts, span, part)
        answer = (
            None
            if selection is None
            else who(
                opened,
                map_of(parsed),
                selection.rectangle,
                filters=parsed.filters,
                entry=parsed.entry,
                during=None if selection.slow is None else selection.slow.columns,
                is_own_included=is_own_included,
                source=source,
                top=top or TOP,
            )
        )
    if answer is None or selection is None:
        raise UsageError(f"there is no I/O with a value of {map_of(parsed)}", where=path)
    if style == "json":
        tell_as(style, f"{as_json(answer, parsed, selection)}\n")
    elif style == "csv":
        tell_as(style, "".join(f"{line}\n" for line in csv_lines(answer)))
    else:
        tell(*text(answer, parsed, name, selection, top))


def parse_percent(percent: str) -> float:
    """`1%`, `0.1 %` or `1` as a part of 1. UsageError."""
    try:
        part = float(percent.strip().removesuffix("%")) / 100
    except ValueError:
        part = math.nan
    if not 0 < part < 1:
        raise UsageError(
            f"'{percent}' is not a part of all I/Os", where="--slowest", hint="such as 1% or 0.1%"
        )
    return part


def uppermost_of(opened: Sequence[Trace | Recording]) -> str:
    """The statistic of the uppermost layer that any of them recorded."""
    return uppermost(
        {
            name
            for events in opened
            for name in (
                sources_of(events)[0] if isinstance(events, Trace) else snapshot(events).sources
            )
        }
    )


def as_map(statistic: Statistic, what: str = "who") -> Statistic:
    """The map of a statistic: of its latency where it has no breakdown. UsageError where the
    statistic is no map, which `what` needs."""
    mapped = statistic if statistic.breakdown else replace(statistic, breakdown="latency")
    map_of(mapped, what)
    return mapped


def map_of(statistic: Statistic, what: str = "who") -> Y:
    """The field of a map's values. UsageError where the statistic is no map, which `what` needs."""
    for y in QUANTIZED:
        if y == statistic.breakdown:
            return y
    raise UsageError(
        "needs a map", where=what, hint=f"such as {statistic.group}.{statistic.name}[latency]"
    )


def in_range(statistic: Statistic, span: tuple[int | None, int | None], values: str) -> Selection:
    """The I/Os of a map with these values (`10ms..1s`)."""
    low, high = parse_range(values, FIELDS[map_of(statistic)].kind)
    return Selection(Rectangle(*span, low, high), values)


def slowest_of(
    counts: HeatCounts, span: tuple[int | None, int | None], share: float
) -> Selection | None:
    """The largest values of a map; None where it is empty."""
    slow = slowest(counts, share)
    if slow is None:
        return None
    unit = "ns" if counts.y in ("latency", "queue") else "B"
    values = f"{quantity(slow.low, unit)} or more"
    return Selection(Rectangle(*span, slow.low, None), values, slow)


def text(
    answer: Who, statistic: Statistic, name: str, selection: Selection, top: int | None
) -> list[str]:
    """What to print: a table for each field in which inside and outside differ."""
    amount = ios if answer.unit == "1" else lambda value: f"{number(value)} B"
    slow = selection.slow
    if slow is None:
        columns = ("inside", "outside")
        lines = [
            f"{name}: {statistic}: {amount(answer.inside)} within {selection.values}, "
            f"{amount(answer.outside)} outside"
        ]
    else:
        columns = ("slow", "others")
        percent = 100 * slow.inside / slow.total
        lines = [
            f"{name}: {statistic}: {amount(answer.inside)} of {selection.values}: "
            f"the slowest {percent:.3g} %",
            f"compared with {amount(answer.outside)} of the same "
            f"{quantity(slow.columns.interval_ns, 'ns')} intervals",
        ]
        if slow.bursts is not None:
            period = slow.bursts.period_ns
            every = "irregular" if period is None else f"every {quantity(period, 'ns')}"
            lines.append(
                f"{slow.bursts.count} bursts, {every}, with {100 * slow.bursts.share:.0f} % "
                "of the slow I/Os"
            )
    if not answer.inside or not answer.outside:
        return [
            *lines,
            "there is nothing to compare with" if answer.inside else "nothing is inside",
            *(f"note: {note}" for note in answer.notes),
        ]
    alike = []
    dimensions = ordered(answer.dimensions)
    for dimension in dimensions:
        if dimension.telling < 0.0005:
            alike.append(dimension.field)
            continue
        top_values = [
            (visible(value_share.value), value_share)
            for value_share in dimension.values[: top or SHOWN]
            if top or max(value_share.share_inside, value_share.share_outside) >= LEAST_SHARE
        ]
        width = max(len(dimension.field), 8, *(min(40, len(value)) for value, _ in top_values))
        lines.append(
            f"{dimension.field:{width}}  {columns[0]:6}   {columns[1]:7}   "
            f"({100 * dimension.telling:.0f} % apart)"
        )
        lines += [
            f"{value if len(value) <= width else '…' + value[1 - width :]:{width}}  "
            f"{100 * value_share.share_inside:5.1f} %   {100 * value_share.share_outside:5.1f} %"
            for value, value_share in top_values
        ]
        hidden = dimension.left + len(dimension.values) - len(top_values)
        if hidden:
            lines.append(f"and {hidden} more")
        if dimension.field == "flags" and answer.source in FLAGS:
            lines.append(FLAGS[answer.source])
    if alike:
        lines.append(f"the same {columns[0]} and {columns[1]}: {', '.join(alike)}")
    return [*lines, *(f"note: {note}" for note in answer.notes)]


def csv_lines(answer: Who) -> list[str]:
    """`dimension,value,inside,outside,share_inside,share_outside`; a share of nothing is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["dimension", "value", "inside", "outside", "share_inside", "share_outside"])
    for dimension in answer.dimensions:
        writer.writerows(
            [
                dimension.field,
                share.value,
                share.inside,
                share.outside,
                *(
                    "" if math.isnan(part) else part
                    for part in (share.share_inside, share.share_outside)
                ),
            ]
            for share in dimension.values
        )
    return out.getvalue().split("\n")[:-1]


def as_json(answer: Who, statistic: Statistic, selection: Selection) -> str:
    """`{"schema": 1, "kind": "who", "statistic", "bursts", ...}` as `attribution.as_data` has it;
    bursts is null where there are none or a range was given."""
    bursts = selection.slow and selection.slow.bursts
    document = {
        "schema": 1,
        "kind": "who",
        "statistic": str(statistic),
        "bursts": bursts
        and {"count": bursts.count, "period_ns": bursts.period_ns, "share": bursts.share},
        **as_data(answer),
    }
    return json_text(document)
