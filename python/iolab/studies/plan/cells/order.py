# SPDX-License-Identifier: Apache-2.0
"""The order of runs, in which no arm is always the first.

Storage drifts (caches fill, free space fragments, disks age within hours), so an arm that always
comes second is measured on another disk. Over successive blocks the order of variants is turned and
mirrored until each had each place; the seed gives the order of cells.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def variant_order(variants: Sequence[Item], block: int) -> list[Item]:
    """Order of the variants in a block (from 1): AB, BA, BA, AB for two; all turns and their
    mirrors for more."""
    turn = ((block - 1) // 2) % len(variants)
    turned = [*variants[turn:], *variants[:turn]]
    return turned if block % 2 else turned[::-1]


def session_order(variants: Sequence[Item], count: int) -> tuple[Item, ...]:
    """Variant of each session, with `count` sessions of each: AB, BA, BA, AB."""
    return tuple(
        variant for turn in range(1, count + 1) for variant in variant_order(variants, turn)
    )


def cell_order(cells: Sequence[Item], block: int, seed: int) -> list[Item]:
    """Order of the cells in a block (from 1): a seeded shuffle for each odd block, its mirror for
    the even one after it.

    The mirror gives every cell an early and a late place, and keeps blocks from all being ascending
    by chance.
    """
    shuffled = list(cells)
    random.Random(f"{seed}/{(block - 1) // 2}").shuffle(shuffled)
    return shuffled if block % 2 else shuffled[::-1]
