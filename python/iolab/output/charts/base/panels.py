# SPDX-License-Identifier: Apache-2.0
"""Small multiples: one panel for each level of the factors that have neither an axis nor
colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .drawing import ROWS, Spec, channel, stack

_SIZES = {1: (1, 640, 360), 2: (2, 330, 270), 3: (3, 260, 230), 4: (2, 330, 220)}
"""Panels to (columns, width, height) of one."""


@dataclass(frozen=True)
class Panels:
    """How a chart is divided.

    Attributes:
        labels: headings in order, which rows name in their field `panel`; a single empty one means
        no division. columns: panels side by side; width, height: pixels of one panel.
    """

    labels: tuple[str, ...]
    columns: int
    width: int
    height: int

    @property
    def has_headings(self) -> bool:
        """Whether headings are drawn at all."""
        return self.labels not in ((), ("",))

    def draw(
        self,
        layers: Sequence[Spec],
        *,
        own_axes: bool = False,
        has_two_scales: bool = False,
    ) -> Spec:
        """The layers over the data set `rows`, in panels with the same scales.

        Args:
            own_axes: repeat axes in every panel.
            has_two_scales: each layer has a vertical scale of its own, with an axis.
        """
        apart: dict[str, Any] = (
            {"resolve": Spec(scale=Spec(y="independent"))} if has_two_scales else {}
        )
        source = Spec(name=ROWS)
        if not self.has_headings:
            return Spec(
                data=source, layer=list(layers), width=self.width, height=self.height, **apart
            )
        more: dict[str, Any] = {}
        # Without axes of their own the last panels of an unfilled row hang above an axis that isn't
        # theirs.
        if has_two_scales:  # an axis of a scale within a panel can't be outside it
            more["resolve"] = Spec(axis=Spec(x="independent", y="independent"))
        elif own_axes or len(self.labels) % self.columns:
            more["resolve"] = Spec(axis=Spec(x="independent"))
        lines = (
            f"length(datum.label) > {self.width / 6.8:.0f} ? split(datum.label, ', ') : datum.label"
        )
        heading = channel(
            "panel:N",
            sort=list(self.labels),
            title=None,
            header=Spec(labelExpr=lines),
        )
        return Spec(
            data=source,
            spec=stack(layers, self.width, self.height, **apart),
            facet=heading,
            columns=self.columns,
            spacing=18,
            **more,
        )


def panels(labels: Sequence[str], *, columns: int | None = None) -> Panels:
    """The division into these headings; `columns` where it follows from the data (a grid of tables
    and columns)."""
    count = max(len(labels), 1)
    side, width, height = _SIZES.get(
        count, (3 if count <= 9 else 4, 230 if count <= 9 else 180, 190)
    )
    if columns is not None and 1 < columns <= 4:
        side, width = columns, {2: 330, 3: 230, 4: 180}[columns]
    return Panels(tuple(labels), side, width, height)
