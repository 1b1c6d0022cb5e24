"""Lines that are not measured: zero, a noise floor, a link's or a disk's rated figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from .axes import ValueAxis
from .drawing import Layer, inline, layer, pixel
from .lines import at


@dataclass(frozen=True)
class Reference:
    """A figure to hold measurements against.

    Attributes:
        label: what it is, such as `10 GbE link`.
        value: in the base unit of the axis it stands on.
        axis: `x` or `y`.
    """

    label: str
    value: float
    axis: Literal["x", "y"] = "x"


def zero_layer(y: ValueAxis, channel: alt.Y) -> list[Layer]:
    """A rule at no change."""
    return [layer(alt.MarkDef(type="rule", style="faint", strokeWidth=1.2), data=inline({"y": y.zero}), y=channel)]


def floor_layer(floor: tuple[float, float], y: ValueAxis, channel: alt.Y) -> list[Layer]:
    """A grey band of the changes that an A/A arm showed."""
    return [layer(alt.MarkDef(type="rect", style="faint", opacity=0.15, strokeWidth=0),
                  data=inline({"lo": y.drawn(floor[0]), "hi": y.drawn(floor[1])}), y=at(channel, "lo"), y2=alt.Y2("hi"))]


def reference_layers(references: Sequence[Reference], x: ValueAxis, y: ValueAxis, horizontal: alt.X,
                     vertical: alt.Y) -> list[Layer]:
    """A dotted rule and its label for each reference; the label stands inside the plot at the rule's far end."""
    drawn = []
    for reference in references:
        upright = reference.axis == "x"
        place = (x if upright else y).drawn(reference.value)
        if place is None:
            continue
        data = inline({reference.axis: place, "label": reference.label})
        text = alt.MarkDef(type="text", fontSize=10, align="right", baseline="bottom", dx=-4, dy=-3,
                           angle=270 if upright else 0)
        here: dict[str, Any] = {"x": horizontal} if upright else {"y": vertical}
        edge: dict[str, Any] = {"y": pixel(4)} if upright else {"x": pixel("width")}
        drawn.append(layer(alt.MarkDef(type="rule", style="faint", strokeDash=[2, 3], strokeWidth=1.4), data=data, **here))
        drawn.append(layer(text, data=data, **here, **edge, text=alt.Text("label:N")))
    return drawn
