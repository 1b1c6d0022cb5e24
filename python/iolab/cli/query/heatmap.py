# SPDX-License-Identifier: Apache-2.0
"""`iolab heatmap`: what the I/O of a trace or recording looks like over time: latency, offset or
size."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ..base.archives import engine_option, split_hosts
from ..base.events import name_of, open_all
from ..base.options import PATH, Span, columns_option, group_options, names_option, span_options
from ..base.output import say, tell_drawn
from ..base.spans import span_of

if TYPE_CHECKING:
    from iolab.recordings.ask.question import Question
    from iolab.recordings.heatmap.figure import Named
    from iolab.recordings.heatmap.model import View
    from iolab.recordings.store.base.conditions import Where
    from iolab.recordings.store.base.counts import HeatCounts, Weight, Y
    from iolab.recordings.store.read.recording import Recording
    from iolab.recordings.store.read.trace import Dimension, Trace

    Events = Trace | Recording

SUFFIXES = (".png", ".svg", ".html")
COLUMNS = {".png": 2000, ".svg": 2000, ".html": 2000}
"""Columns of time that are counted; pictures join them until they fit, a page shows them all when
it is zoomed."""


@dataclass(frozen=True)
class Selection(Span):
    """Which I/Os are counted, and how."""

    where: tuple[str, ...] = ()
    weight: Weight = "count"
    source: str | None = None


@dataclass(frozen=True)
class Axis:
    """The options of the vertical axis and of colour."""

    crop: str | None
    y_range: str | None
    y_scale: Literal["log", "linear"] | None
    color: Literal["rank", "log", "linear"]


@dataclass(frozen=True)
class TraceKind:
    """What the traces are: their format, and the columns of a table."""

    kind: str | None
    columns: str | None


@dataclass(frozen=True)
class Look:
    """How maps are drawn."""

    percentiles: bool
    theme: Literal["light", "dark"] | None
    screen: Literal["truecolor", "256", "grey", "text"] | None


@click.command("heatmap")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@click.option(
    "--y",
    "ys",
    default="latency",
    show_default=True,
    metavar="WHAT",
    help="latency, offset or size; several with commas, or all. Of a recording also queue.",
)
@click.option(
    "-o", "--output", type=PATH, help="A .png, .svg or .html file. Default: the terminal."
)
@click.option(
    "--where",
    "where",
    multiple=True,
    metavar="CONDITION",
    help="Keep only these I/Os: 'op=write,device=sda', 'latency>=10ms', 'size=8KiB..64KiB'; may be given again.",
)
@click.option(
    "--crop",
    metavar="SHARE",
    help="Leave this share of the I/Os above the map: 0, 0.01%, 0.1%, 1%, 5%. "
    "Default: 0.1% where y is linear, 0 where it is logarithmic or an offset; of sizes on a logarithmic axis 0.1% below.",
)
@click.option(
    "--y-range", metavar="LOW..HIGH", help="The part of y to show, with units: 0..10ms, 4KiB..1MiB."
)
@click.option(
    "--y-scale", type=click.Choice(("log", "linear")), help="Default: linear for offsets, else log."
)
@click.option(
    "--color",
    type=click.Choice(("rank", "log", "linear")),
    default="rank",
    show_default=True,
    help="How counts become colours: by rank every step is equally frequent, so rare things show.",
)
@click.option(
    "--weight",
    type=click.Choice(("count", "time", "bytes")),
    default="count",
    show_default=True,
    help="Count I/Os, or add up the time they took, or the bytes they moved.",
)
@span_options
@click.option(
    "--source",
    metavar="NAME",
    help="The source of the events of a recording: block, syscall, fio... Default: block if it was recorded.",
)
@click.option(
    "--against",
    type=PATH,
    help="A second recording or trace: draw both maps on one scale, and their difference.",
)
@click.option(
    "--percentiles",
    is_flag=True,
    help="Draw the 50th, 90th and 99th percentile and the mean of each column.",
)
@click.option(
    "--format", "kind", metavar="FORMAT", help="The trace's format. Default: found by content."
)
@columns_option
@click.option(
    "--theme",
    type=click.Choice(("light", "dark")),
    help="Default: light for files, the terminal's own there.",
)
@click.option(
    "--screen",
    type=click.Choice(("truecolor", "256", "grey", "text")),
    help="Colors that the terminal can show. Default: detected.",
)
@engine_option
@names_option
@group_options(
    axis="cli.query.heatmap:Axis",
    look="cli.query.heatmap:Look",
    selection="cli.query.heatmap:Selection",
    kind="cli.query.heatmap:TraceKind",
)
def command(
    paths: tuple[Path, ...],
    ys: str,
    output: Path | None,
    axis: Axis,
    selection: Selection,
    against: Path | None,
    kind: TraceKind,
    look: Look,
) -> None:
    """Draw heat maps of I/O: time runs to the right, latency, offset or size upwards, and colour
    says how many.

    Each PATH is a recording, a trace, a folder of recordings, or archive:URL: of the latter two, all
    hosts, or those of --where host=NAME.
    The format of a trace is found by content; gzip, xz and zstd are unpacked. `-` is standard input.
    Several are added up, as the logs of several jobs are.
    """
    from iolab.base.errors import UsageError
    from iolab.recordings.ask.question import Question
    from iolab.recordings.store.base.conditions import parse_where
    from iolab.recordings.store.read.trace import STDIN

    where, source = selection.where, selection.source
    kinds = _kinds(ys)
    suffix = _suffix(output)
    if STDIN in paths and (
        len(kinds) > 1 or len(paths) > 1 or against is not None or suffix == ".html"
    ):
        raise UsageError(
            "standard input can be read only once",
            where="heatmap",
            hint="save the trace into a file first",
        )
    hosts, fields = split_hosts(where, [*paths, *([] if against is None else [against])])
    conditions = parse_where(fields)
    traces = open_all(paths, kind.kind, kind.columns, conditions, hosts)
    other = (
        [] if against is None else open_all([against], kind.kind, kind.columns, conditions, hosts)
    )
    spans = _spans(traces, other, selection)
    read = partial(_read, conditions=conditions, spans=spans)
    unmatched = partial(_note_unknown_names, conditions=conditions, source=source, spans=spans)
    width, height = shutil.get_terminal_size((100, 40))
    question = Question(
        columns=COLUMNS.get(suffix, 8 * max(10, width - 11)), source=source, weight=selection.weight
    )
    whose = f", {source}" if source else ""
    label = (
        name_of(paths[0]) if len(paths) == 1 else f"{name_of(paths[0])} and {len(paths) - 1} more"
    ) + whose
    groups = []
    for y in kinds:
        view = _view(y, axis)
        groups.append(
            (
                view,
                _maps(
                    [
                        (label, traces),
                        *([(name_of(against) + whose, other)] if against is not None else []),
                    ],
                    y,
                    view,
                    question,
                    read,
                    unmatched,
                    conditions,
                    parts=suffix == ".html",
                    before=against is None or selection.start is not None,
                ),
            )
        )
    if suffix == ".html":
        assert output is not None
        from iolab.output.report.page.heatmap_page import build

        _write(
            output,
            build(groups, _title(groups), conditions=where, percentiles=look.percentiles).encode(),
        )
    elif output is not None:
        _picture(groups, output, suffix, percentiles=look.percentiles, dark=look.theme == "dark")
    else:
        _terminal(groups, width, height, look)


def _kinds(text: str) -> list[Y]:
    from iolab.base.errors import UsageError
    from iolab.recordings.store.base.counts import OF_EVENTS

    names = (
        ["latency", "offset", "size"]
        if text == "all"
        else [part.strip() for part in text.split(",")]
    )
    axes: list[Y] = [y for y in OF_EVENTS if y in names]
    if not names or set(names) - set(axes):
        raise UsageError(
            f"there is no map of '{text}'",
            where="--y",
            hint=f"there are {', '.join(OF_EVENTS)} and all",
        )
    return sorted(axes, key=names.index)


def _suffix(output: Path | None) -> str:
    from iolab.base.errors import UsageError

    if output is None:
        return ""
    if output.suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"'{output.name}' is not a kind of file that a map can be written into",
            where="-o",
            hint=f"end its name with {', '.join(SUFFIXES)}",
        )
    if not output.parent.is_dir():
        raise UsageError("there is no such directory", where=output.parent)
    return output.suffix.lower()


def _view(y: Y, axis: Axis) -> View:
    from iolab.base.errors import UsageError
    from iolab.base.units import parse_quantity
    from iolab.recordings.heatmap.model import View
    from iolab.recordings.store.base.conditions import parse_range

    crop, y_range, color = axis.crop, axis.y_range, axis.color
    scale = axis.y_scale or ("linear" if y == "offset" else "log")
    low, high = (
        parse_range(y_range, "time" if y in ("latency", "queue") else "size")
        if y_range is not None
        else (None, None)
    )
    if crop is None:
        share = 0.001 if scale == "linear" and y != "offset" and high is None else 0.0
    else:
        if y_range is not None:
            raise UsageError(
                "--crop and --y-range both say where the map ends", hint="give one of them"
            )
        share = parse_quantity(crop, "share")
        if not 0 <= share < 1:
            raise UsageError(
                f"'{crop}' is not a share to leave out",
                where="--crop",
                hint="such as 0, 0.1% or 5%",
            )
    return (
        View(scale, share, low, high, color)
        if crop is None
        else View(scale, share, low, high, color, tail=0)
    )


def _spans(
    made: list[Events], other: list[Events], requested: Span
) -> dict[int, tuple[int | None, int | None]]:
    """The requested span of time, by the place of each set: two that are compared each count from
    their own start."""
    return {
        id(item): span
        for group in (made, other)
        if group
        for span in [span_of(group, requested.start, requested.end)]
        for item in group
    }


def _read(
    events: Events,
    y: Y,
    question: Question,
    more: Where | None = None,
    *,
    conditions: Where,
    spans: dict[int, tuple[int | None, int | None]],
) -> HeatCounts:
    """Counts of a trace or recording under the conditions of the command line and further ones."""
    from iolab.recordings.ask.query import heat
    from iolab.recordings.store.read.trace import Trace

    # a trace has the command line's conditions in itself
    where = dict(more or {}) if isinstance(events, Trace) else {**conditions, **(more or {})}
    # parts of a map are no larger than it, whatever was kept of them
    return heat(events, y, replace(question, span=spans[id(events)]), where=where, kept=not more)


def _note_unknown_names(
    events: Events,
    counts: HeatCounts,
    *,
    conditions: Where,
    source: str | None,
    spans: dict[int, tuple[int | None, int | None]],
) -> HeatCounts:
    """Counts with notes on names in conditions that a recording doesn't have, where nothing met the
    conditions."""
    from iolab.recordings.ask.query import told_unmatched
    from iolab.recordings.store.read.trace import Trace

    if isinstance(events, Trace) or not conditions:
        return counts
    from_ns, until_ns = spans[id(events)]
    return told_unmatched(
        counts, events, conditions, from_ns=from_ns, until_ns=until_ns, source=source
    )


def _maps(
    named: list[tuple[str, list[Events]]],
    y: Y,
    view: View,
    question: Question,
    reader: Callable[..., HeatCounts],
    unmatched: Callable[[Events, HeatCounts], HeatCounts],
    where: Where,
    *,
    parts: bool,
    before: bool,
) -> list[Named]:
    """The sum of the counts of each set of traces, all on the same columns and buckets.

    Args:
        where: conditions of the counts that `reader` reads.
        parts: also count by device, process, file and client.
        before: maps begin with the requested time. Maps that are compared begin with their first
            I/O unless a time was requested.
    """
    from iolab.recordings.heatmap.figure import Named
    from iolab.recordings.store.base.counts import merge
    from iolab.recordings.store.read.trace import counts_alike

    # offsets have equal buckets, so a range has to be known when they are counted; latency and size
    # are cut afterwards
    if y == "offset":
        question = replace(question, low=view.low, high=view.high)

    def read(
        events: Events, more: Where | None = None, *, interval_ns: int | None = None
    ) -> HeatCounts:
        return reader(events, y, replace(question, interval_ns=interval_ns), more)

    every = counts_alike(
        [trace for _, traces in named for trace in traces],
        lambda events, interval_ns: read(events, interval_ns=interval_ns),
    )
    maps = []
    for label, traces in named:
        counts, every = merge(every[: len(traces)]), every[len(traces) :]
        for opened in traces:
            counts = unmatched(opened, counts)
        splits, too_large = (
            _whose(traces, counts, partial(read, interval_ns=counts.interval_ns), where)
            if parts and len(counts.count)
            else ([], [])
        )
        if too_large:
            say(f"note: {label} is too large to tell {' and '.join(too_large)} apart in the page")
        maps.append(Named(label, counts.with_all_columns(before=before), tuple(splits)))
    return maps


def _whose(
    events: list[Events],
    counts: HeatCounts,
    read: Callable[[Events, Where], HeatCounts],
    where: Where,
) -> tuple[list[Dimension], list[str]]:
    """Counts of each value of a dimension, and the dimensions that there are too many events
    for."""
    from iolab.recordings.ask.drill import dimensions_of
    from iolab.recordings.store.read.trace import Trace, dimensions

    traces = [item for item in events if isinstance(item, Trace)]
    if len(traces) == len(events):
        return dimensions(traces, counts, read, where)
    recordings = [item for item in events if not isinstance(item, Trace)]
    return (
        ([], ["operations, devices and processes"])
        if traces
        else dimensions_of(recordings, counts, read, where)
    )


def _title(groups: list[tuple[View, list[Named]]]) -> str:
    return f"I/O of {' against '.join(named.label for named in groups[0][1])}"


def _picture(
    groups: list[tuple[View, list[Named]]],
    output: Path,
    suffix: str,
    *,
    percentiles: bool,
    dark: bool,
) -> None:
    from iolab.recordings.heatmap.figure import panels
    from iolab.recordings.heatmap.svg import LAYOUT, svg, svg_png
    from iolab.recordings.heatmap.theme import DARK, LIGHT

    figures = [
        panel
        for view, maps in groups
        for panel in panels(maps, view, LAYOUT, percentiles=percentiles, difference=len(maps) > 1)
    ]
    title = _title(groups)
    document = svg(figures, title, DARK if dark else LIGHT)
    _write(output, document.encode() if suffix == ".svg" else svg_png(document, title))


def _terminal(
    groups: list[tuple[View, list[Named]]],
    width: int,
    height: int,
    look: Look,
) -> None:
    from iolab.recordings.heatmap.figure import panels
    from iolab.recordings.heatmap.terminal import draw, layout_of, mode_of, theme_of
    from iolab.recordings.heatmap.theme import THEMES

    mode = look.screen or mode_of(os.environ, sys.stdout.isatty())
    colours = THEMES[look.theme] if look.theme else theme_of(os.environ)
    count = sum(len(maps) + (len(maps) > 1) for _, maps in groups)
    layout = layout_of(width, max(height - 2, 16 * count), count, mode)
    for view, maps in groups:
        for panel in panels(
            maps, view, layout, percentiles=look.percentiles, difference=len(maps) > 1
        ):
            tell_drawn(draw(panel, layout, mode, colours), coloured=mode != "text")


def _write(output: Path, content: bytes) -> None:
    from iolab.base.errors import IolabError

    try:
        output.write_bytes(content)
    except OSError as error:
        raise IolabError(f"can't be written: {error.strerror}", where=output) from None
    say(f"wrote {output} ({len(content) / 1e3:.0f} kB)")
