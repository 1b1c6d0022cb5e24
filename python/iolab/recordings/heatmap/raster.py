# SPDX-License-Identifier: Apache-2.0
"""A map as pixels, and pixels as a PNG file."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .figure import Panel
from .theme import STEPS, Theme, rgb

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = npt.NDArray[np.uint8]

_HATCH = 8
"""Pixels from one line of the hatch to the next."""


def colours(panel: Panel, theme: Theme) -> Pixels:
    """A colour for each cell, background where there is none; shape (rows, columns, 3), row 0 the
    lowest."""
    level = panel.levels
    empty = np.isnan(level)
    color_places = np.where(empty, 0, level)
    if panel.signed:
        # the sign is the count's: the level of the least change is zero on both sides
        place = np.where(
            panel.cells.counts < 0,
            STEPS - 1 - np.round(np.abs(color_places) * (STEPS - 1)),
            STEPS + np.round(np.abs(color_places) * (STEPS - 1)),
        )
        colours_of_place = theme.signed[place.astype(int)]
    else:
        colours_of_place = theme.palette[np.round(color_places * (STEPS - 1)).astype(int)]
    colours_of_place[empty] = rgb(theme.background)
    return np.asarray(colours_of_place, dtype=np.uint8)


def row_of_pixel(panel: Panel, height: int) -> npt.NDArray[np.int64]:
    """The row that each pixel shows, pixel 0 at the bottom. Rows at least a pixel high have at
    least one each."""
    edges = np.floor(panel.frame.position(panel.cells.edges) * height + 0.5)
    return np.clip(np.searchsorted(edges, np.arange(height), side="right") - 1, 0, len(edges) - 2)


def draw(panel: Panel, theme: Theme, width: int, height: int) -> Pixels:
    """The map as pixels, shape (height, width, 3), row 0 at the top; idle spans are shaded,
    unrecorded ones hatched."""
    across = np.arange(width) * panel.columns // width
    image = colours(panel, theme)[row_of_pixel(panel, height)[::-1]][:, across]
    diagonal = (np.arange(width)[None, :] + np.arange(height)[:, None]) % _HATCH < 2
    # a span shorter than a cell shows only where the cell's column is empty
    bare = np.all(image == rgb(theme.background), axis=2)
    for sign, where, colour in (
        ("shaded", bare, theme.shade),
        ("hatched", bare & diagonal, theme.hatch),
    ):
        for start, end in panel.signs[sign]:
            left_pixel, right = (
                round(start * width / panel.columns),
                round(end * width / panel.columns),
            )
            image[:, left_pixel:right][where[:, left_pixel:right]] = rgb(colour)
    return image


def png(pixels: Pixels) -> bytes:
    """Pixels of shape (height, width, 3) as a PNG file; a palette where 256 colours are enough,
    which they usually are."""
    from PIL import Image  # loaded late: the wire form of maps has no pictures

    packed = pixels.astype(np.uint32) @ np.array([65536, 256, 1], dtype=np.uint32)
    used, place = np.unique(packed, return_inverse=True)
    if len(used) <= 256:
        table = np.stack([used >> 16, used >> 8 & 255, used & 255], axis=1).astype(np.uint8)
        image = Image.fromarray(place.reshape(pixels.shape[:2]).astype(np.uint8))
        image.putpalette(table.tobytes())
    else:
        image = Image.fromarray(pixels)
    return _file(image, {})


def repack(picture: bytes, texts: Mapping[str, str]) -> bytes:
    """The same PNG, compressed well (a sixth of what the renderer writes), with texts as
    uncompressed iTXt chunks."""
    from PIL.PngImagePlugin import PngImageFile

    return _file(PngImageFile(io.BytesIO(picture)), texts)


def _file(image: Image, texts: Mapping[str, str]) -> bytes:
    from PIL.PngImagePlugin import PngInfo

    chunks = PngInfo()
    for keyword, text in texts.items():
        chunks.add_itxt(keyword, text)
    file = io.BytesIO()
    image.save(file, "PNG", pnginfo=chunks)
    return file.getvalue()
