# SPDX-License-Identifier: Apache-2.0
"""`iolab query`: a statistic of a trace or recording: a number over time, a stack of them, or a
heat map."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..base.archives import engine_option, is_fleet, refuse_engine
from ..base.completion import complete_statistics
from ..base.events import name_of, open_path
from ..base.options import (
    PATH,
    columns_option,
    format_option,
    group_options,
    names_option,
    span_options,
)
from ..base.spans import span_of

if TYPE_CHECKING:
    from iolab.recordings.store.read.recording import Recording
    from iolab.recordings.store.read.trace import Trace

    from ..base.archives import QueryOptions

LABELS = 48
"""Characters of the labels of a stack's sparklines."""


@click.command("query")
@click.argument("path", metavar="PATH", type=PATH)
@click.argument("statistic", metavar="STATISTIC", shell_complete=complete_statistics)
@span_options
@click.option(
    "--interval",
    metavar="TIME",
    help="Length of a time column: 1s, 10ms. Default: chosen to fit the output.",
)
@format_option("text", "csv", "json")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help="Show only the N largest keys. Default: 10 in text, else all.",
)
@click.option(
    "--source",
    metavar="NAME",
    help="What answers: block, syscall, fio, diskstats... Default: by the statistic.",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Follow a live recording: print a line for each --interval (1s); Ctrl-C stops.",
)
@click.option(
    "--who",
    "values",
    metavar="RANGE",
    help="Find which keys the I/Os in this range of a map (10ms..1s) belong to, compared with all others.",
)
@click.option(
    "--percentiles",
    is_flag=True,
    help="Of a map: p50, p90, p99, p99.9, the maximum and the mean of each column of time.",
)
@click.option(
    "--list",
    "listed",
    metavar="RANGE",
    help="List the single I/Os in this range of a map (10ms.., or .. for all); --top says how many (20).",
)
@click.option(
    "--order",
    metavar="FIELD",
    help="Sort --list by time (default), latency, size, offset, file...; -latency: largest first.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Print the query plan instead of the answer: which data is read, how much, and why other data is not.",
)
@columns_option
@engine_option
@names_option
@group_options(options="cli.base.archives:QueryOptions")
def command(
    path: Path,
    statistic: str,
    options: QueryOptions,
    follow: bool,
    percentiles: bool,
    listed: str | None,
    order: str | None,
    columns: str | None,
) -> None:
    """Ask a trace or recording for a statistic: group.name[field=value]...[breakdown].

    \b
    io.ops                           I/Os per second
    io.bytes[op=write][process]      bytes written per second, by process
    io.ops[latency>=10ms][device]    slow I/Os, by device
    io.ops[latency]                  a heat map

    'iolab catalog statistics PATH' lists the statistics that a recording can answer.

    PATH is a recording, a trace, a folder of recordings, or archive:URL. Several recordings are
    asked as one; 'host' is then a field too, also next to another breakdown: io.ops[latency][host].
    """
    from iolab.base.errors import UsageError
    from iolab.recordings.ask.query import answer
    from iolab.recordings.ask.question import Question, parse
    from iolab.recordings.store.base.counts import HeatCounts

    values, explain, style = options.values, options.explain, options.style
    length = options.interval_ns()
    if listed is None and order is not None:
        raise UsageError("--order sorts the I/Os of --list", hint="add --list RANGE, or omit it")
    other = next(
        (
            name
            for name, is_given in {
                "--who": values is not None,
                "--follow": follow,
                "--explain": explain,
                "--interval": length is not None,
            }.items()
            if is_given
        ),
        None,
    )
    if listed is not None and other is not None:
        raise UsageError(f"--list cannot be combined with {other}", hint="omit one of the two")
    if explain and (follow or values is not None or style == "csv"):
        raise UsageError(
            f"--explain cannot be combined with {'--follow' if follow else '--who' if values is not None else '--format csv'}",
            hint="it says how one answer is found, as text or JSON: leave the other option out",
        )
    if percentiles and (follow or explain or values is not None or listed is not None):
        refusing = {"--follow": follow, "--explain": explain, "--who": values is not None}
        other = next((name for name, is_given in refusing.items() if is_given), "--list")
        raise UsageError(
            f"--percentiles cannot be combined with {other}", hint="omit one of the two"
        )
    if is_fleet(path):
        from ..base.archives import ask

        options_of_one = {
            "--follow": follow,
            "--list": listed is not None,
            "--percentiles": percentiles,
            "--columns": columns is not None,
        }
        refused = next((name for name, is_given in options_of_one.items() if is_given), None)
        if refused is not None:
            raise UsageError(
                f"several recordings have no {refused}",
                where=path,
                hint="omit it" if refused == "--columns" else "ask one of the recordings",
            )
        ask(path, statistic, options, partial(_columns, style))
        return
    refuse_engine(path)
    parsed = parse(statistic)
    opened = open_path(path, columns=columns)
    if follow:
        from . import follow as query_follow

        if values is not None:
            raise UsageError("--who cannot be combined with --follow", hint="omit one of the two")
        query_follow.follow(opened, parsed, options)
        return
    span = span_of([opened], options.start, options.end)
    columns_wanted = _columns(style, parsed.breakdown)
    if percentiles and style == "text":
        from .percentiles import columns_of_text

        columns_wanted = columns_of_text()
    question = Question.of(parsed, span, length, columns_wanted, options.source)
    if listed is not None:
        from . import single_ios as query_list

        page = query_list.answer(opened, question, listed, options.top, order)
        query_list.print_list(page, parsed, _name(opened), listed, style)
    elif values is not None:
        from . import who as query_who

        shares = query_who.answer(opened, question, values, options.top)
        query_who.tell_who(shares, parsed, _name(opened), values, options.top, style)
    elif explain:
        from . import explain as query_explain

        query_explain.explain(opened, question, style)
    elif percentiles:
        from .percentiles import tell_percentiles
        from .who import map_of

        map_of(parsed, "--percentiles")
        counts = answer(opened, question)
        assert isinstance(counts, HeatCounts)
        tell_percentiles(parsed, counts, _name(opened), style)
    else:
        from .text import tell_answer

        tell_answer(parsed, answer(opened, question), _name(opened), style, options.top)


def _columns(style: str, breakdown: str | None) -> int:
    """Columns that suit the output."""
    from iolab.recordings.ask.language.fields import MAPPED
    from iolab.recordings.ask.question import COLUMNS

    width = shutil.get_terminal_size((100, 40)).columns
    if style != "text":
        return COLUMNS
    if breakdown in MAPPED:
        return 8 * max(10, width - 11)
    return max(10, width - (LABELS if breakdown else 2))


def _name(opened: Trace | Recording) -> str:
    return name_of(opened.path)
