# SPDX-License-Identifier: Apache-2.0
"""A map as pixels, and pixels as a PNG file (W3C Portable Network Graphics, third edition)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from .figure import Panel
from .theme import STEPS, Theme, rgb

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
    height, width, _ = pixels.shape
    packed = pixels.astype(np.uint32) @ np.array([65536, 256, 1], dtype=np.uint32)
    used, place = np.unique(packed, return_inverse=True)
    parts = [b"\x89PNG\r\n\x1a\n"]
    if len(used) <= 256:
        table = np.stack([used >> 16, used >> 8 & 255, used & 255], axis=1).astype(np.uint8)
        parts += [
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", table.tobytes()),
        ]
        rows = place.reshape(height, width).astype(np.uint8)
    else:
        parts.append(_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)))
        rows = pixels.reshape(height, width * 3)
    # each row begins with its filter: none
    filtered = np.concatenate([np.zeros((height, 1), dtype=np.uint8), rows], axis=1)
    return b"".join(
        [*parts, _chunk(b"IDAT", zlib.compress(filtered.tobytes(), 6)), _chunk(b"IEND", b"")]
    )


def repack(picture: bytes, texts: Mapping[str, str]) -> bytes:
    """The same PNG, compressed well (a sixth of what the renderer writes), with texts as
    uncompressed iTXt chunks."""
    parts, data, place = [picture[:8]], b"", 8
    while place < len(picture):
        length, kind = struct.unpack(">I4s", picture[place : place + 8])
        content = picture[place + 8 : place + 8 + length]
        place += 12 + length
        if kind == b"IDAT":
            data += content
        elif kind == b"IEND":
            parts += [
                _chunk(b"IDAT", zlib.compress(zlib.decompress(data), 6)),
                _chunk(b"IEND", b""),
            ]
        else:
            parts.append(_chunk(kind, content))
        if kind == b"IHDR":
            parts += [
                _chunk(b"iTXt", key.encode("latin-1") + b"\0\0\0\0\0" + text.encode())
                for key, text in texts.items()
            ]
    return b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
