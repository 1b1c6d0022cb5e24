# SPDX-License-Identifier: Apache-2.0
"""Text laid out in columns, and grids put side by side while they fit."""

from __future__ import annotations

from collections.abc import Container, Sequence

WIDTH = 120
"""Columns of a wide terminal window; wider packs are stacked."""


def grid(rows: Sequence[Sequence[str]], left: Container[int] = ()) -> list[str]:
    """Rows of fields in columns two spaces apart, right-aligned but for the columns `left`."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            field.ljust(width) if place in left else field.rjust(width)
            for place, (field, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def join_blocks(blocks: Sequence[list[str]], *, width: int = WIDTH, gap: str = "    ") -> list[str]:
    """Blocks of lines from left to right, a new row of blocks (after an empty line) where the next
    would not fit."""
    lines: list[str] = []
    row_of_blocks: list[list[str]] = []
    for block in blocks:
        if (
            row_of_blocks
            and sum(_width(other) + len(gap) for other in row_of_blocks) + _width(block) > width
        ):
            lines += [*_join(row_of_blocks, gap), ""]
            row_of_blocks = []
        row_of_blocks.append(block)
    return [*lines, *_join(row_of_blocks, gap)]


def _width(block: Sequence[str]) -> int:
    return max((len(line) for line in block), default=0)


def _join(blocks: Sequence[list[str]], gap: str) -> list[str]:
    height = max((len(block) for block in blocks), default=0)
    padded = [
        [line.ljust(_width(block)) for line in block]
        + [" " * _width(block)] * (height - len(block))
        for block in blocks
    ]
    return [gap.join(parts).rstrip() for parts in zip(*padded, strict=True)]
