# SPDX-License-Identifier: Apache-2.0
"""`iolab report`: one HTML file, or each chart as a file with its CSV."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click

from ..base.options import PATH, Arms, group_options, several_options
from ..base.output import say, steps


@click.command("report")
@click.argument("paths", metavar="RESULTS | RESULTS RESULTS...", type=PATH, nargs=-1)
@several_options
@click.option(
    "-o",
    "--output",
    type=PATH,
    help="The HTML file. Default: report.html in the results directory; "
    "of a fio result, NAME.report.html in the working directory, and report.html there of several "
    "results.",
)
@click.option(
    "--charts",
    type=PATH,
    metavar="DIR",
    help="Write each chart into this directory instead, with its CSV.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(("svg", "png")),
    default="svg",
    show_default=True,
    help="Of the charts.",
)
@click.option(
    "--reference",
    "references",
    multiple=True,
    metavar="LABEL=QUANTITY",
    help="A rated figure to draw in the throughput-latency chart: '10 GbE link=1192MiB/s'; repeatable.",
)
@click.option(
    "--published",
    type=PATH,
    metavar="TABLE.csv[:FACTOR=LEVEL]",
    help="Published numbers to compare the cells with.",
)
@click.option(
    "--lines",
    "lines",
    metavar="FACTOR",
    help="Over the load draw a line per level of this factor, in a panel per variant.",
)
@group_options(arms="cli.base.options:Arms")
def command(
    arms: Arms,
    output: Path | None,
    charts: Path | None,
    style: Literal["svg", "png"],
    references: tuple[str, ...],
    published: Path | None,
    lines: str | None,
) -> None:
    """Write the report: one HTML file that opens from disk without a network, or its charts as SVG
    or PNG.

    Several results directories are arms, as iolab compare has them: the report begins with the
    differences of their environments and with their sessions.
    """
    from iolab.base.errors import ResultsError, UsageError

    if charts is not None and output is not None:
        raise UsageError(
            "--charts writes files of its own, -o writes the report", hint="give one of them"
        )
    from iolab.output.charts.reference import parse_reference
    from iolab.studies.compare.published import Published

    published_table = None if published is None else Published(published)
    rated = [parse_reference(text) for text in references]
    results = arms.open()
    if not results.runs:
        raise ResultsError(
            "holds no run", where=arms.paths[0], hint="iolab show says what is missing"
        )
    if charts is not None:
        from iolab.output.charts.base.export import export
        from iolab.output.charts.flame import flame_charts
        from iolab.studies.compare.profiles import cells_of

        profiles = cells_of(
            results.profiles()[0], results.manifest.baseline, results.manifest.variants
        )
        written = export(
            itertools.chain(results.chart.all(rated, lines), flame_charts(profiles)), charts, style
        )
        say(f"wrote {len(written)} files into {charts}")
        return
    from iolab.base.files import write_atomically
    from iolab.output.report.build import build_report

    target = output or _default_output(arms.paths)
    with steps() as progress:
        html = build_report(results, target.parent, rated, published_table, lines, progress)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, html)
    say(f"wrote {target} ({len(html.encode()) / 1e6:.1f} MB)")


def _default_output(paths: Sequence[Path]) -> Path:
    first = paths[0]
    if not first.is_dir():
        return Path(f"{first.stem}.report.html")
    return Path("report.html") if len(paths) > 1 else first / "report.html"
