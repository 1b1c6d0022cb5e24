# SPDX-License-Identifier: Apache-2.0
"""Altair's pieces put together without its conveniences, which copy every layer several times over.

`alt.Chart` and its kin deep-copy channels and data at each call; a report draws dozens of charts.
The schema classes below them (`UnitSpec`, `LayerSpec`, the top-level specifications) say the same
and copy nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import altair as alt

Layer = alt.UnitSpec
Drawing = alt.TopLevelLayerSpec | alt.TopLevelFacetSpec | alt.TopLevelVConcatSpec
ROWS = "rows"
"""Name of the data set that a drawing of one data set draws."""


def layer(
    mark: alt.MarkDef,
    *,
    where: str | None = None,
    data: alt.InlineData | alt.NamedData | None = None,
    **channels: Any,
) -> Layer:
    """One mark over its channels; `where` is a Vega expression over `datum`, `data` where it isn't
    the drawing's own."""
    more: dict[str, Any] = {}
    if where is not None:
        more["transform"] = [alt.FilterTransform(where)]
    if data is not None:
        more["data"] = data
    return alt.UnitSpec(mark=mark, encoding=alt.Encoding(**channels), **more)


def pixel(value: float | Literal["width", "height"]) -> alt.PositionValueDef:
    """A place in the panel that no scale decides: pixels from its upper left corner, or `width`,
    `height`."""
    return alt.PositionValueDef(value=value)


def stack(
    layers: Sequence[Layer | alt.LayerSpec], width: int, height: int, **more: Any
) -> alt.LayerSpec:
    """Layers on top of each other, back to front."""
    return alt.LayerSpec(layer=list(layers), width=width, height=height, **more)


def inline(*rows: dict[str, Any]) -> alt.InlineData:
    """A few rows that belong to one layer alone."""
    return alt.InlineData(values=list(rows))
