# SPDX-License-Identifier: Apache-2.0
"""`iolab compare`: every variant against the baseline; two recordings: `compare_events`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..base.completion import complete_metrics
from ..base.options import PATH, Arms, format_option, group_options, several_options
from ..base.output import say, tell_as

if TYPE_CHECKING:
    from iolab.output.report.model.source import Source
    from iolab.studies.compare.axes import Layout, Where
    from iolab.studies.compare.model import Comparison, Warning
    from iolab.studies.results.evidence.model import Run

CONFIDENCE = 0.95

_TYPEWRITER = {ord("\N{MINUS SIGN}"): "-", ord("\N{NO-BREAK SPACE}"): " "}
"""Signs of a page, as the tables of a terminal have them."""

FORMATS = ("text", "csv", "json", "markdown", "benchstat")


def _names(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]


def _number(_: click.Context, __: click.Parameter, value: float) -> float:
    # neither below a range nor above it
    if math.isnan(value):
        raise click.BadParameter("nan is not a number.")
    return value


@dataclass(frozen=True)
class Subject:
    """What is compared instead of runs: parts of them, or what follows from their curves."""

    knee: bool
    limits: bool
    windows: bool
    steps: bool
    clients: bool

    def parts(self) -> list[str]:
        """The flags that cut runs into parts."""
        return [f"--{name}" for name in ("windows", "steps", "clients") if getattr(self, name)]


@dataclass(frozen=True)
class Numbers:
    """How numbers are written, and the confidence of intervals."""

    unit: str | None
    precision: int | None
    confidence: float
    style: str


@click.command("compare")
@click.argument(
    "paths",
    metavar="RESULTS | RESULTS RESULTS... | FIO.json FIO.json... | RECORDING RECORDING",
    type=PATH,
    nargs=-1,
)
@several_options
@click.option(
    "--metric",
    shell_complete=complete_metrics,
    help="What to compare, such as write.iops or write.lat.mean; two with @ between them give a matrix of "
    "both (write.bw@write.lat.mean). Default: the first that was measured; of a single cell the main "
    "ones, in one table.",
)
@click.option(
    "--baseline", help="The variant that the others are compared with. Default: the study's."
)
@click.option(
    "--rows", callback=_names, help="Factors of the rows, with commas. Default: the load."
)
@click.option("--cols", callback=_names, help="Factors of the columns. Default: the next largest.")
@click.option(
    "--tables",
    callback=_names,
    help="Factors that split the tables. Default: every other factor that varies.",
)
@click.option(
    "--ignore",
    callback=_names,
    default="",
    help="Factors to pool within a cell; named as hidden variation.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="FACTOR=LEVEL[,LEVEL]",
    help="Only these runs (of recordings, these I/Os: process=fio); may be given again.",
)
@click.option(
    "--knee",
    is_flag=True,
    help="Throughput against latency instead: each variant's knee, its scalability, and what "
    "it does at equal throughput and at equal latency.",
)
@click.option(
    "--limits",
    is_flag=True,
    help="The limits of each system instead: the largest rates over the load of --rows, and what was busy.",
)
@click.option(
    "--windows",
    is_flag=True,
    help="Compare the windows before and after the marks of actions, within each run.",
)
@click.option(
    "--steps",
    is_flag=True,
    help="Compare the steps of loads that rise within a run, each as a cell.",
)
@click.option(
    "--clients",
    is_flag=True,
    help="Compare each client's part of the load, with the factor client.",
)
@click.option(
    "--published",
    type=PATH,
    metavar="TABLE.csv[:FACTOR=LEVEL]",
    help="Compare the cells with a published table (or one level of it): rank correlation.",
)
@click.option(
    "--unit", help="Unit to write values in, such as us or MiB/s. Default: a readable one."
)
@click.option("--precision", type=click.IntRange(0, 15), help="Digits after the point.")
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.9999),
    default=CONFIDENCE,
    show_default=True,
    callback=_number,
    help="Of every interval.",
)
@format_option(*FORMATS)
@group_options(
    arms="cli.base.options:Arms",
    layout="studies.compare.axes:Layout",
    subject="cli.results.compare:Subject",
    numbers="cli.results.compare:Numbers",
)
def command(
    arms: Arms,
    metric: str | None,
    baseline: str | None,
    layout: Layout,
    where: tuple[str, ...],
    subject: Subject,
    published: Path | None,
    numbers: Numbers,
) -> None:
    """Compare every variant with the baseline. Of several results directories, or fio results, each
    is an arm with the name of its directory or file, and the first is the baseline.

    Results that were not measured in turn also differ by their sessions. No change is significant
    until each arm was repeated in several sessions, such as --as old=A1,new=B1,old=A2,new=B2.

    Of two recordings or traces it compares the rate, throughput and latency of each operation, and
    the shares of devices, processes and files.

    Values are geometric means over blocks. Each change is printed with its confidence interval and
    its q value (Benjamini-Hochberg over the whole sweep); ~ means not significant.
    """
    from iolab.base.errors import UsageError
    from iolab.base.registry import load
    from iolab.studies.compare.axes import parse_where, select
    from iolab.studies.compare.compare import compare
    from iolab.studies.compare.load.limits import find_limits
    from iolab.studies.compare.published import Published
    from iolab.studies.compare.render.limits import render_limits
    from iolab.studies.compare.render.matrix import render_matrix
    from iolab.studies.compare.render.overview import STYLES, is_one_cell, render_overview
    from iolab.studies.compare.render.words import opening_lines
    from iolab.studies.compare.several import Several
    from iolab.studies.results.derive.windows import FIRST

    from .compare_events import compare_events, is_events

    if any(is_events(path) for path in arms.paths):
        is_plain = _is_plain(metric, baseline, layout, {}, numbers, subject.parts())
        of_runs = (subject.knee, subject.limits, published, arms.names, arms.match)
        if not is_plain or any(of_runs) or numbers.precision is not None:
            raise UsageError(
                "recordings are compared with no other options than --where and --format",
                where="compare",
                hint="iolab compare BEFORE AFTER",
            )
        compare_events(arms.paths, where, numbers.style)
        return
    results = arms.open()
    has_several = isinstance(results, Several)
    parts, style = subject.parts(), numbers.style
    if has_several and (subject.knee or parts):
        raise UsageError(
            "takes one results directory",
            where="--knee" if subject.knee else parts[0],
            hint="give one",
        )
    if subject.knee and subject.limits:
        raise UsageError("are two tables", where="--knee and --limits", hint="give one of them")
    conditions = parse_where(where)
    metric_name = metric or results.default_metric()
    published_table = None if published is None else Published(published)
    notes = results.notes
    runs, base = results.runs, baseline or results.baseline
    if len(parts) > 1:
        raise UsageError(
            f"{' and '.join(parts)} cut runs in different ways",
            where="compare",
            hint="give one of them",
        )
    if subject.windows:
        runs, base = results.window_runs(), baseline or FIRST
    elif subject.steps:
        runs = results.step_runs()
    elif subject.clients:
        runs = results.client_runs()
    if subject.limits:
        systems = find_limits(select(runs, conditions), layout.rows[0] if layout.rows else None)
        tell_as(style, render_limits(systems, style))
        return
    if subject.knee:
        tell_as(style, _knees(runs, metric, base, layout.rows, conditions, style, notes))
        return

    def compare_metric(name: str, in_unit: str | None) -> Comparison:
        comparison = compare(
            runs,
            name.strip(),
            baseline=base,
            layout=layout,
            where=conditions,
            shown_unit=in_unit,
            confidence=numbers.confidence,
            notes=notes,
        )
        if style in ("csv", "benchstat") and has_several:
            say(*(opening_lines(comparison) + [note.text for note in comparison.warnings]))
        return (
            comparison
            if published_table is None
            else published_table.add_note(comparison, select(runs, conditions))
        )

    if "@" in metric_name:
        first, second = metric_name.split("@", 1)
        units = [*numbers.unit.split("@", 1), ""] if numbers.unit else ["", ""]
        text = render_matrix(
            compare_metric(first, units[0] or None),
            compare_metric(second, units[1] or None),
            style,
            precision=numbers.precision,
        )
    else:
        comparison = compare_metric(metric_name, numbers.unit)
        is_overview = (
            metric is None and published is None and style in STYLES and is_one_cell(comparison)
        )
        if is_overview:
            text = render_overview(
                _main_comparisons(runs, comparison, compare_metric),
                style,
                precision=numbers.precision,
            )
        else:
            text = load("renderer", style)().render(comparison, precision=numbers.precision)
            if style == "text" and _is_plain(metric, baseline, layout, conditions, numbers, parts):
                text += _summary(results)
    tell_as(style, text)


def _is_plain(
    metric: str | None,
    baseline: str | None,
    layout: Layout,
    where: Where,
    numbers: Numbers,
    parts: Sequence[str],
) -> bool:
    """Whether results are compared as they are, so that the sentences of their report hold."""
    axes = (layout.rows, layout.cols, layout.tables, layout.ignore)
    options = (metric, baseline, where, numbers.unit, parts, *axes)
    return not any(options) and numbers.confidence == CONFIDENCE


def _summary(results: Source) -> str:
    """A sentence for each main metric, as on the report's cover; empty where there is one alone."""
    from iolab.output.report.headline import headline_sentences

    sentences = [
        f"  {sentence.text.translate(_TYPEWRITER)}" for sentence in headline_sentences(results)
    ]
    if len(sentences) < 2:
        return ""
    return "\n".join(
        ["", "summary of the main metrics (--metric prints its tables):", *sentences, ""]
    )


def _main_comparisons(
    runs: Sequence[Run],
    comparison: Comparison,
    compare_metric: Callable[[str, str | None], Comparison],
) -> list[Comparison]:
    """`comparison`, and those of the other headline metrics that the same arms have, in report
    order."""
    from iolab.base.errors import UsageError
    from iolab.base.metrics import of
    from iolab.studies.results.open.results import metrics_of

    comparisons = []
    for name in metrics_of(runs):
        if name == comparison.metric.name:
            comparisons.append(comparison)
        elif of(name).headline:
            # a metric of INVALID runs alone can't be compared
            with suppress(UsageError):
                comparisons.append(compare_metric(name, None))
    return [
        part
        for part in comparisons
        if part is comparison or any(cell.estimate.value is not None for cell in part.cells)
    ]


def _knees(
    runs: list[Run],
    metric: str | None,
    baseline: str | None,
    rows: Sequence[str] | None,
    where: Where,
    style: str,
    notes: Sequence[Warning],
) -> str:
    """Curves of the operation and throughput of `metric` (`write.bw`), over the load of `rows`."""
    from iolab.studies.compare.axes import select
    from iolab.studies.compare.load.curves import curves
    from iolab.studies.compare.render.knees import render_knees

    operation, _, throughput = (metric or "").partition(".")
    curve_set = curves(
        select(runs, where),
        operation=operation or None,
        load=rows[0] if rows else None,
        throughput=throughput if throughput in ("iops", "bw") else None,
        baseline=baseline,
        notes=notes,
    )
    return render_knees(curve_set, style)
