"""Small multiples: one panel for each level of what is neither on an axis nor told apart by colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

_SIZES = {1: (1, 640, 360), 2: (2, 330, 270), 3: (3, 260, 230), 4: (2, 330, 220)}
"""Panels to (columns, width, height) of one."""


@dataclass(frozen=True)
class Panels:
    """How a chart is divided.

    Attributes:
        labels: headings in order, which rows name in their field `panel`; a single empty one means no division.
        columns: panels side by side; width, height: pixels of one panel.
    """

    labels: tuple[str, ...]
    columns: int
    width: int
    height: int

    @property
    def divided(self) -> bool:
        """Whether headings are drawn at all."""
        return self.labels not in ((), ("",))

    def draw(self, layers: Sequence[alt.Chart], *, own_axes: bool = False) -> alt.TopLevelMixin:
        """The layers over the data set `rows`, in panels with the same scales; `own_axes` repeats axes in every panel."""
        source = alt.NamedData(name="rows")
        layer = alt.LayerChart(layer=list(layers), width=self.width, height=self.height)
        if not self.divided:
            layer.data = source
            return layer
        facet = alt.Facet("panel:N", sort=list(self.labels), title=None)
        chart = alt.FacetChart(data=source, spec=layer, facet=facet, columns=self.columns, spacing=18)
        # Without this the last panels of an unfilled row hang above an axis that isn't theirs.
        alone = own_axes or len(self.labels) % self.columns
        return chart.resolve_axis(x="independent") if alone else chart


def panels(labels: Sequence[str], *, columns: int | None = None) -> Panels:
    """The division into these headings; `columns` where it follows from the data (a grid of tables and columns)."""
    count = max(len(labels), 1)
    side, width, height = _SIZES.get(count, (3 if count <= 9 else 4, 230 if count <= 9 else 180, 190))
    if columns is not None and 1 < columns <= 4:
        side, width = columns, {2: 330, 3: 230, 4: 180}[columns]
    return Panels(tuple(labels), side, width, height)
