"""The report's one door: results in, a page out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..charts.reference import Reference
from ..compare.beside import Published
from .assemble import assemble
from .html import render
from .maps import run_maps
from .profiles import run_profiles
from .source import Source


def build_report(results: Source, base: Path | None = None, references: Sequence[Reference] = (),
                 published: Published | None = None, lines: str | None = None) -> str:
    """The report of opened results, as one HTML file that needs no network.

    Args:
        results: `iolab.results.open.Results`.
        references: rated figures that throughput against latency is held against.
        published: numbers that the cells are held beside.
        lines: the factor whose levels are lines over the load, with a panel per variant.
        base: directory that the file will be written to; evidence is linked relative to it. Default: the results' own.

    Raises IolabError where the page's script has not been built (`make setup`), UsageError where `lines` splits no chart.
    """
    maps = run_maps(results)
    payload, details = assemble(results, results.path if base is None else base, references, published, lines)
    return render(payload, details, maps, run_profiles(results))
