# SPDX-License-Identifier: Apache-2.0
"""`zpool status -LP`: the disks of pools, with the vdev at the top that each is a part of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_INDENT = 2
"""Spaces of a level. The pool and classes of vdevs (logs, cache...) have none."""
_SPARES = "spares"
_POOL, _CONFIG, _HEAD = "pool:", "config:", "NAME"


class PoolDisk(NamedTuple):
    """A disk of a pool. vdev: `mirror-0`, or the name of the disk where it is no part of another
    vdev. path: of its device."""

    pool: str
    vdev: str
    path: str


def pool_disks(text: str) -> Iterator[PoolDisk]:
    """The disks of all pools. Spares that are not in use, and disks that are missing, are left out.
    Lines that are not understood are skipped."""
    pool = vdev = ""
    is_config = is_spare = False
    for line in text.split("\n"):
        words = line.split()
        if not line.startswith("\t"):
            if words[:1] == [_POOL]:
                pool, is_config = line.partition(_POOL)[2].strip(), False
            elif words:
                is_config = words[0] == _CONFIG
            continue
        if not pool or not is_config or not words or words[0] == _HEAD:
            continue
        depth, name = (len(line) - 1 - len(line[1:].lstrip(" "))) // _INDENT, words[0]
        if depth == 0:
            is_spare, vdev = name == _SPARES, ""
            continue
        is_disk = name.startswith("/")
        if depth == 1:
            vdev = name.rpartition("/")[2] if is_disk else name
        if is_disk and vdev and not is_spare:
            yield PoolDisk(pool, vdev, name)
