# SPDX-License-Identifier: Apache-2.0
"""Lines that are not measured: zero, a noise floor, a link's or a disk's rated figure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from iolab.base.errors import UsageError
from iolab.base.units import to_base

from .base.axes import ValueAxis
from .base.drawing import Spec, channel, inline, layer, pixel
from .lines import at


@dataclass(frozen=True)
class Reference:
    """A figure to hold measurements against.

    Attributes:
        label: what it is, such as `10 GbE link`.
        value: in the base unit of its axis.
        axis: `x` or `y`.
        unit: that base unit, where it is to be drawn only on axes of that unit (a link's B/s does
        not belong on an axis of IOPS).
    """

    label: str
    value: float
    axis: Literal["x", "y"] = "x"
    unit: str = ""


def parse_reference(text: str) -> Reference:
    """`10 GbE link=1192MiB/s` as a reference: throughputs and rates belong to the x axis of a
    hockey stick, times on y.

    Raises UsageError for what is no `label=quantity`.
    """
    label, equals, quantity = text.rpartition("=")
    match = re.fullmatch(r"\s*([\d.]+(?:[eE][-+]?\d+)?)\s*(\S+)\s*", quantity)
    if not equals or not label.strip() or match is None:
        raise UsageError(
            f"'{text}' is not a reference",
            where="--reference",
            hint="write a label and a quantity: '10 GbE link=1192MiB/s'",
        )
    value, base = to_base(float(match[1]), match[2])
    if base not in _AXES:
        raise UsageError(
            f"'{quantity.strip()}' is not a quantity of any axis",
            where="--reference",
            hint="give a throughput, a rate or a time",
        )
    return Reference(label.strip(), value, _AXES[base], base)


_AXES: dict[str, Literal["x", "y"]] = {"B/s": "x", "1/s": "x", "s": "y"}


def fitting(references: Sequence[Reference], x_unit: str, y_unit: str) -> list[Reference]:
    """The references that have a place on axes of these base units."""
    return [
        reference
        for reference in references
        if not reference.unit or reference.unit == (x_unit if reference.axis == "x" else y_unit)
    ]


def zero_layer(y: ValueAxis, vertical: Spec) -> list[Spec]:
    """A rule at no change."""
    return [
        layer(
            Spec(type="rule", style="faint", strokeWidth=1.2),
            data=inline({"y": y.zero}),
            y=vertical,
        )
    ]


def floor_layer(floor: tuple[float, float], y: ValueAxis, vertical: Spec) -> list[Spec]:
    """A grey band of the changes that an A/A arm showed."""
    return [
        layer(
            Spec(type="rect", style="faint", opacity=0.15, strokeWidth=0),
            data=inline({"lo": y.place(floor[0]), "hi": y.place(floor[1])}),
            y=at(vertical, "lo"),
            y2=channel("hi"),
        )
    ]


def reference_layers(
    references: Sequence[Reference], x: ValueAxis, y: ValueAxis, horizontal: Spec, vertical: Spec
) -> list[Spec]:
    """A dotted rule and its label for each reference; the label is inside the plot at the
    rule's far end."""
    layers = []
    for reference in references:
        upright = reference.axis == "x"
        place = (x if upright else y).place(reference.value)
        if place is None:
            continue
        data = inline({reference.axis: place, "label": reference.label})
        text = Spec(
            type="text",
            fontSize=10,
            align="right",
            baseline="bottom",
            dx=-4,
            dy=-3,
            angle=270 if upright else 0,
        )
        position: dict[str, Any] = {"x": horizontal} if upright else {"y": vertical}
        edge: dict[str, Any] = {"y": pixel(4)} if upright else {"x": pixel("width")}
        layers.append(
            layer(
                Spec(type="rule", style="faint", strokeDash=[2, 3], strokeWidth=1.4),
                data=data,
                **position,
            )
        )
        layers.append(layer(text, data=data, **position, **edge, text=channel("label:N")))
    return layers
