"""The report's one door: results in, a page out."""

from __future__ import annotations

from pathlib import Path

from .assemble import assemble
from .html import render
from .source import Source


def build_report(results: Source, base: Path | None = None) -> str:
    """The report of opened results, as one HTML file that needs no network.

    Args:
        results: `iolab.results.open.Results`.
        base: directory that the file will be written to; evidence is linked relative to it. Default: the results' own.

    Raises IolabError where the page's script has not been built (`make setup`).
    """
    payload, details = assemble(results, results.path if base is None else base)
    return render(payload, details)
