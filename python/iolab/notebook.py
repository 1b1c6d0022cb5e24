# SPDX-License-Identifier: Apache-2.0
"""Heat maps as widgets of a notebook: pan, zoom, a marked part with its processes, devices and
operations, and the marked part in Python.

The widget draws with the code of the pages; `anywidget` connects it to the kernel. Where no kernel
runs, such as on a page of a repository, the output is the map as a picture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from .output.report.page.html import bundle_file, pack
from .recordings.ask.attribution import Rectangle, Who
from .recordings.heatmap.figure import Named
from .recordings.heatmap.model import View
from .recordings.heatmap.theme import DARK, LIGHT
from .recordings.heatmap.wire import HeatMapPage, colours, group_of
from .recordings.store.base.counts import HeatCounts

__all__ = ["MapWidget"]


class MapWidget(anywidget.AnyWidget):
    """A heat map to pan, zoom and mark.

    Attributes:
        selection: the marked part, or None: `from` and `until` in ns since the begin of the map,
            `low` and `high` in ns or bytes. Setting it marks a part; `observe` follows it.
    """

    page = traitlets.Unicode().tag(sync=True)
    selection = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)

    def __init__(
        self,
        map_of_events: Named,
        picture: Callable[[], str],
        who: Callable[[Rectangle], Who],
        crop: Callable[[Rectangle], Any],
    ) -> None:
        """Show a map.

        Args:
            map_of_events: counts with their label and the counts of each process, device, operation.
            picture: the map as SVG.
            who: who issued the I/Os of a part.
            crop: the map of a part.

        IolabError where the widget's script has not been built.
        """
        counts = map_of_events.counts
        self._begin_ns, self._y = counts.t0_ns, counts.y
        self._picture, self._who, self._crop = picture, who, crop
        # A comment of its own: hosts that cache scripts by content would share one state of the maps.
        self._esm = f"{bundle_file('widget.js')}\n// {id(self)}\n"
        super().__init__(page=pack(_document(map_of_events)))

    @property
    def rectangle(self) -> Rectangle | None:
        """The marked part on the clock of the events: times in ns, values in ns or bytes."""
        part = self.selection
        if part is None:
            return None
        return Rectangle(
            self._begin_ns + int(part["from"]),
            self._begin_ns + int(part["until"]),
            int(part["low"]),
            int(part["high"]),
        )

    def who(self) -> Who | None:
        """Who issued the I/Os of the marked part, over all fields; None where none is marked."""
        part = self.rectangle
        return None if part is None else self._who(part)

    def crop(self) -> Any:
        """The map of the marked part alone; None where none is marked."""
        part = self.rectangle
        return None if part is None else self._crop(part)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, and the picture for readers without a kernel."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        return {**data, "image/svg+xml": self._picture()}, metadata


def _document(map_of_events: Named) -> HeatMapPage:
    """What the page of a heat map has, of one map."""
    from . import __version__

    counts: HeatCounts = map_of_events.counts
    view = View("linear" if counts.y == "offset" else "log")
    return HeatMapPage(
        generator=f"iolab {__version__}",
        title=f"I/O of {map_of_events.label}",
        conditions=[],
        notes=[],
        light=colours(LIGHT),
        dark=colours(DARK),
        groups=[group_of(view, [map_of_events], False)],
    )
