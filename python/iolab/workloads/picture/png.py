# SPDX-License-Identifier: Apache-2.0
"""Reading PNG (W3C Portable Network Graphics, third edition) as far as a picture needs it: which
pixels are dark."""

from __future__ import annotations

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Colour type to samples of a pixel: grey, colour, palette, grey with alpha, colour with alpha."""
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}


def dark_pixels(data: bytes, most_columns: int, most_rows: int) -> list[list[bool]]:
    """Rows of pixels, top down: whether each is darker than half on white paper. ValueError where
    the file is damaged or too large."""
    chunks = _chunks(data)
    head = chunks.get(b"IHDR", b"")
    if len(head) != 13:
        raise ValueError("is damaged: it has no header")
    width, height, depth, colour, packing, filtering, interlaced = struct.unpack(">IIBBBBB", head)
    if not 0 < width <= most_columns or not 0 < height <= most_rows:
        raise ValueError(
            f"has {width} x {height} pixels; 1 x 1 to {most_columns} x {most_rows} can be drawn"
        )
    if depth not in _DEPTHS.get(colour, ()) or packing or filtering:
        raise ValueError("is damaged: no such kind of pixels")
    if interlaced:
        raise ValueError("is interlaced; save it without")
    channels = _CHANNELS[colour]
    line = -(-width * channels * depth // 8)
    try:
        body = zlib.decompressobj().decompress(chunks.get(b"IDAT", b""), (line + 1) * height)
    except zlib.error as error:
        raise ValueError(f"is damaged: {error}") from None
    if len(body) < (line + 1) * height:
        raise ValueError("is cut off")
    palette = chunks.get(b"PLTE", b"")
    step, before, rows = max(1, channels * depth // 8), bytes(line), []
    for row in range(height):
        start = row * (line + 1)
        before = _unfilter(body[start], body[start + 1 : start + 1 + line], before, step)
        samples = _samples(before, width * channels, depth)
        rows.append(
            [
                _dark(samples[at : at + channels], depth, colour, palette, chunks.get(b"tRNS", b""))
                for at in range(0, width * channels, channels)
            ]
        )
    return rows


def _chunks(data: bytes) -> dict[bytes, bytes]:
    """Kind to content, equal kinds joined."""
    chunks: dict[bytes, bytes] = {}
    place = len(SIGNATURE)
    while place + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        kind, content = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        if len(data) < place + 12 + length:
            raise ValueError("is cut off")
        if struct.unpack_from(">I", data, place + 8 + length)[0] != zlib.crc32(kind + content):
            raise ValueError(f"is damaged: the check of its chunk {kind.decode('latin-1')!r} fails")
        chunks[kind] = chunks.get(kind, b"") + content
        if kind == b"IEND":
            return chunks
        place += 12 + length
    raise ValueError("is cut off")


def _unfilter(kind: int, line: bytes, before: bytes, step: int) -> bytes:
    """A line as it was before it was filtered by its difference to neighbours ("Filter types for
    filter method 0")."""
    if kind > 4:
        raise ValueError("is damaged: no such filter")
    pixels = bytearray(line)
    for at in range(len(pixels)):
        previous = pixels[at - step] if at >= step else 0
        above, corner = before[at], before[at - step] if at >= step else 0
        if kind == 1:
            pixels[at] = (pixels[at] + previous) & 255
        elif kind == 2:
            pixels[at] = (pixels[at] + above) & 255
        elif kind == 3:
            pixels[at] = (pixels[at] + (previous + above) // 2) & 255
        elif kind == 4:
            guess = previous + above - corner
            nearest = min((previous, above, corner), key=lambda one: abs(guess - one))
            pixels[at] = (pixels[at] + nearest) & 255
    return bytes(pixels)


def _samples(line: bytes, count: int, depth: int) -> list[int]:
    if depth == 16:
        return list(struct.unpack(f">{count}H", line))
    if depth == 8:
        return list(line)
    samples_per_byte = 8 // depth
    return [
        line[at // samples_per_byte] >> (8 - depth - depth * (at % samples_per_byte))
        & ((1 << depth) - 1)
        for at in range(count)
    ]


def _dark(samples: list[int], depth: int, colour: int, palette: bytes, transparent: bytes) -> bool:
    most, opaque = (1 << depth) - 1, 1.0
    if colour == 3:
        index = samples[0]
        if 3 * index + 3 > len(palette):
            raise ValueError("is damaged: a colour is not in its palette")
        shades, most = list(palette[3 * index : 3 * index + 3]), 255
        opaque = transparent[index] / 255 if index < len(transparent) else 1.0
    elif colour in (4, 6):
        shades, opaque = samples[:-1], samples[-1] / most
    else:
        shades = samples
    red, green, blue = shades if len(shades) == 3 else shades * 3
    grey = (0.2126 * red + 0.7152 * green + 0.0722 * blue) / most
    return grey * opaque + 1 - opaque < 0.5
