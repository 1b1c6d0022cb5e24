# SPDX-License-Identifier: Apache-2.0
"""Heat maps as one self-contained HTML file: the maps' counts with the page that draws, zooms and
queries them."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.base.untrusted_text import html
from iolab.recordings.heatmap import words
from iolab.recordings.heatmap.figure import Named
from iolab.recordings.heatmap.model import View
from iolab.recordings.heatmap.theme import DARK, LIGHT
from iolab.recordings.heatmap.wire import HeatMapPage, colours, group_of

from .html import page


def build(
    groups: Sequence[tuple[View, Sequence[Named]]],
    title: str,
    *,
    conditions: Sequence[str] = (),
    notes: Sequence[str] = (),
    percentiles: bool = False,
) -> str:
    """The page. Each group is maps of one y, of which two are compared.

    Raises FormatError where nothing is left to draw, IolabError where the page's script has not
    been built.
    """
    from iolab import __version__

    document = HeatMapPage(
        generator=f"iolab {__version__}",
        title=title,
        conditions=list(conditions),
        notes=list(notes),
        light=colours(LIGHT),
        dark=colours(DARK),
        groups=[group_of(view, maps, percentiles) for view, maps in groups],
    )
    return page(
        "heatmap", title, document.generator, {"iolab-heatmap": document}, _without_script(document)
    )


def _without_script(document: HeatMapPage) -> str:
    """Title and counts for browsers without scripts."""
    lines = [
        f"<p>{html(group.title)} of {html(map_of_group.label)}: {html(words.ios(map_of_group.events))}.</p>"
        for group in document.groups
        for map_of_group in group.maps
    ]
    return f"<main><h1>{html(document.title)}</h1><p>The maps need JavaScript.</p>{''.join(lines)}</main>"
