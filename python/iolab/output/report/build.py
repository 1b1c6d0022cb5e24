# SPDX-License-Identifier: Apache-2.0
"""The report's one door: results in, a page out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iolab.studies.compare.published import Published

from ..charts.reference import Reference
from .assemble import assemble
from .model.cover_payload import Cover
from .model.source import Progress, Source
from .page.html import render
from .sections.maps import run_maps
from .sections.profiles import run_profiles


def build_report(
    results: Source,
    base: Path | None = None,
    references: Sequence[Reference] = (),
    published: Published | None = None,
    lines: str | None = None,
    progress: Progress | None = None,
) -> str:
    """The report of opened results, as one HTML file that needs no network.

    Args:
        results: `iolab.studies.results.open.results.Results`.
        references: rated figures that throughput against latency is held against.
        published: numbers that the cells are compared with.
        lines: the factor with one line over the load per level, with a panel per variant.
        base: directory that the file will be written to; evidence is linked relative to it.
        Default: the results' own.
        progress: called with each step that begins.

    Raises IolabError where the page's script has not been built (`make setup`), UsageError where
    `lines` splits no chart.
    """
    return build_page(results, base, references, published, lines, progress)[0]


def build_page(
    results: Source,
    base: Path | None = None,
    references: Sequence[Reference] = (),
    published: Published | None = None,
    lines: str | None = None,
    progress: Progress | None = None,
) -> tuple[str, Cover]:
    """The report as `build_report` has it, and its cover: the sentences about each quantity."""
    maps = run_maps(results)
    payload, details = assemble(
        results, results.path if base is None else base, references, published, lines, progress
    )
    return render(payload, details, maps, run_profiles(results)), payload.cover
