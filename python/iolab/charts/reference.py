"""Lines that are not measured: zero, a noise floor, a link's or a disk's rated figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from .axes import ValueAxis


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


def _one(row: dict[str, Any]) -> alt.InlineData:
    return alt.InlineData(values=[row])


def zero_layer(y: ValueAxis, channel: alt.Y) -> list[alt.Chart]:
    """A rule at no change."""
    rule = alt.Chart(_one({"y": y.zero}), mark=alt.MarkDef(type="rule", style="faint", strokeWidth=1.2))
    return [rule.encode(y=channel)]


def floor_layer(floor: tuple[float, float], y: ValueAxis, channel: alt.Y) -> list[alt.Chart]:
    """A grey band of the changes that an A/A arm showed."""
    low = channel.copy(deep=False)
    low.shorthand = "lo:Q"
    band = alt.Chart(_one({"lo": y.drawn(floor[0]), "hi": y.drawn(floor[1])}),
                     mark=alt.MarkDef(type="rect", style="faint", opacity=0.15, strokeWidth=0))
    return [band.encode(y=low, y2=alt.Y2("hi"))]


def reference_layers(references: Sequence[Reference], x: ValueAxis, y: ValueAxis, horizontal: alt.X,
                     vertical: alt.Y) -> list[alt.Chart]:
    """A dotted rule and its label for each reference; the label stands inside the plot at the rule's far end."""
    drawn = []
    for reference in references:
        upright = reference.axis == "x"
        at = (x if upright else y).drawn(reference.value)
        if at is None:
            continue
        data = _one({reference.axis: at, "label": reference.label})
        rule = alt.Chart(data, mark=alt.MarkDef(type="rule", style="faint", strokeDash=[2, 3], strokeWidth=1.4))
        text = alt.MarkDef(type="text", fontSize=10, align="right", baseline="bottom", dx=-4, dy=-3,
                           angle=270 if upright else 0)
        if upright:
            label = alt.Chart(data, mark=text).encode(x=horizontal, y=alt.value(4), text="label:N")
            drawn += [rule.encode(x=horizontal), label]
        else:
            label = alt.Chart(data, mark=text).encode(y=vertical, x=alt.value("width"), text="label:N")
            drawn += [rule.encode(y=vertical), label]
    return drawn
