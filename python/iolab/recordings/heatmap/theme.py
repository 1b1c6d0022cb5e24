# SPDX-License-Identifier: Apache-2.0
"""Colours of maps: for light paper and for dark screens, distinguishable with any common colour
vision.

A sequential palette is monotone in lightness, so that order survives every colour vision and a grey
print; its end for few counts still differs from the background, which is zero's alone. The
diverging palette runs from blue (fewer) to orange (more), the pair that red-green blindness leaves
apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

STEPS = 256
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', 'Liberation Sans', Arial, sans-serif"

SHADE = 0.06
"""How much of the text's colour is in a shaded ground, as on the page (`web/src/canvas/frame.ts`).
"""

Palette = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Theme:
    """Colours as `#rrggbb`; the palettes are anchors between which colours are interpolated in
    linear light."""

    name: str
    background: str
    text: str
    faint: str
    grid: str
    hatch: str
    sequential: tuple[str, ...]
    fewer: tuple[str, ...]
    more: tuple[str, ...]
    lines: tuple[str, ...]
    lost: str

    @cached_property
    def palette(self) -> Palette:
        """`STEPS` colours from few to many, shape (STEPS, 3)."""
        return interpolate(self.sequential)

    @cached_property
    def shade(self) -> str:
        """The ground where nothing happened though something was expected: a little of the text's
        colour on the background."""
        ground, ink = rgb(self.background), rgb(self.text)
        return "#" + "".join(
            f"{round(under + SHADE * (over - under)):02x}"
            for under, over in zip(ground, ink, strict=True)
        )

    @cached_property
    def signed(self) -> Palette:
        """`2 STEPS` colours, from far fewer over little to far more, shape (2 STEPS, 3)."""
        return np.concatenate([interpolate(self.fewer)[::-1], interpolate(self.more)])


LIGHT = Theme(
    "light",
    background="#ffffff",
    text="#1d232b",
    faint="#5c6672",
    grid="#dfe3e8",
    hatch="#c3cad2",
    sequential=("#c4e6c3", "#7fcdbb", "#41a8c4", "#2a72b5", "#26408f", "#14163f"),
    fewer=("#cfe3f3", "#5fa3d3", "#0a4f8f"),
    more=("#fbdcbd", "#ec8a3c", "#8f3c00"),
    lines=("#e4572e", "#c2188f", "#7a0f2b", "#111111"),
    lost="#c8102e",
)
"""For white paper; pictures use it."""

DARK = Theme(
    "dark",
    background="#14181d",
    text="#e6eaf0",
    faint="#98a3b1",
    grid="#2b323b",
    hatch="#3d4651",
    sequential=("#2c3f73", "#2b638d", "#23878d", "#3bac7c", "#95cb52", "#fbe723"),
    fewer=("#233a54", "#3a83c4", "#a9d8ff"),
    more=("#4f331c", "#cf7a33", "#ffd9a8"),
    lines=("#ff9e7a", "#ff6fd0", "#cdbbff", "#ffffff"),
    lost="#ff6b62",
)
"""For dark screens."""

GREY = Theme(
    "grey",
    background="#000000",
    text="#ffffff",
    faint="#a0a0a0",
    grid="#404040",
    hatch="#505050",
    sequential=("#3a3a3a", "#ffffff"),
    fewer=("#303030", "#8a8a8a"),
    more=("#b0b0b0", "#ffffff"),
    lines=("#ffffff",) * 4,
    lost="#ffffff",
)
"""For terminals without colours."""

THEMES = {"light": LIGHT, "dark": DARK}


def rgb(colour: str) -> tuple[int, int, int]:
    """`#rrggbb` as three numbers."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def interpolate(anchors: Sequence[str], steps: int = STEPS) -> Palette:
    """Colours between anchors, in linear light (sRGB, IEC 61966-2-1), shape (steps, 3)."""
    points = linear_light(np.array([rgb(anchor) for anchor in anchors], dtype=float))
    place = np.linspace(0, len(anchors) - 1, steps)
    light = np.stack(
        [np.interp(place, np.arange(len(anchors)), points[:, channel]) for channel in range(3)],
        axis=1,
    )
    encoded = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.round(255 * encoded).astype(np.uint8)


def linear_light(colours: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """sRGB bytes as linear light between 0 and 1."""
    share = colours / 255
    result: npt.NDArray[np.float64] = np.where(
        share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4
    )
    return result
