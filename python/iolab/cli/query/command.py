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
    "--percentiles",
    is_flag=True,
    help="Of a map: p50, p90, p99, p99.9, the maximum and the mean of each column of time.",
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
    columns: str | None,
) -> None:
    """Ask a trace or recording for a statistic: group.name[field=value]...[breakdown].

    \b
    io.ops                           I/Os per second
    io.bytes[op=write][process]      bytes written per second, by process
    io.ops[latency>=10ms][device]    slow I/Os, by device
    io.ops[latency]                  a heat map

    'iolab catalog statistics PATH' lists the statistics that a recording can answer.
    'iolab who' finds who issued slow I/Os. 'iolab ios' lists single ones.

    PATH is a recording, a trace, a folder of recordings, or archive:URL. Several recordings are
    asked as one; 'host' is then a field too, also next to another breakdown: io.ops[latency][host].
    """
    from iolab.base.errors import UsageError
    from iolab.recordings.ask.query import answer
    from iolab.recordings.ask.question import Question, parse
    from iolab.recordings.store.base.counts import HeatCounts

    style, length = options.style, options.interval_ns()
    modes = {"--follow": follow, "--explain": options.explain, "--percentiles": percentiles}
    given = [name for name, is_given in modes.items() if is_given]
    if len(given) > 1:
        raise UsageError(
            f"{given[0]} cannot be combined with {given[1]}", hint="omit one of the two"
        )
    if options.explain and style == "csv":
        raise UsageError(
            "--explain cannot be combined with --format csv", hint="the plan is text or JSON"
        )
    if is_fleet(path):
        from ..base.archives import ask

        refused = [name for name in given if name != "--explain"]
        refused += [] if columns is None else ["--columns"]
        if refused:
            raise UsageError(
                f"several recordings have no {refused[0]}",
                where=path,
                hint="omit it" if refused[0] == "--columns" else "ask one of the recordings",
            )
        ask(path, statistic, options, partial(_columns, style))
        return
    refuse_engine(path)
    parsed = parse(statistic)
    opened = open_path(path, columns=columns)
    if follow:
        from . import follow as query_follow

        query_follow.follow(opened, parsed, options)
        return
    span = span_of([opened], options.start, options.end)
    columns_wanted = _columns(style, parsed.breakdown)
    if percentiles and style == "text":
        from .percentiles import columns_of_text

        columns_wanted = columns_of_text()
    question = Question.of(parsed, span, length, columns_wanted, options.source)
    if options.explain:
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
