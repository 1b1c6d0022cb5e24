# SPDX-License-Identifier: Apache-2.0
"""Parts of a Vega-Lite specification, as plain dictionaries. Tests check whole specifications against
the schema with altair, which would take longer to load than most reports take to make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

Spec = dict[str, Any]
"""A specification, or a part of one: `Spec(type="bar")` is a mark. None is null."""

SCHEMA_URL = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
ROWS = "rows"
"""Name of the data set that a drawing of one data set draws."""

_TYPES = {"N": "nominal", "Q": "quantitative"}


def channel(source: str, **properties: Any) -> Spec:
    """A channel of an encoding. `source` is the field with its type, `load:N` or `y:Q`; without a
    type for a second end, which has that of the first."""
    field, _, kind = source.partition(":")
    typed = {"type": _TYPES[kind]} if kind else {}
    return {"field": field, **typed, **properties}


def layer(
    mark: Spec,
    *,
    where: str | None = None,
    data: Spec | None = None,
    **channels: Spec,
) -> Spec:
    """One mark over its channels; `where` is a Vega expression over `datum`, `data` where it isn't
    the drawing's own."""
    more: Spec = {}
    if where is not None:
        more["transform"] = [{"filter": where}]
    if data is not None:
        more["data"] = data
    return {"mark": mark, "encoding": channels, **more}


def pixel(value: float | Literal["width", "height"]) -> Spec:
    """A place in the panel that no scale decides: pixels from its upper left corner, or `width`,
    `height`."""
    return Spec(value=value)


def stack(layers: Sequence[Spec], width: int, height: int, **more: Any) -> Spec:
    """Layers on top of each other, back to front."""
    return Spec(layer=list(layers), width=width, height=height, **more)


def inline(*rows: Spec) -> Spec:
    """A few rows that belong to one layer alone."""
    return Spec(values=list(rows))
