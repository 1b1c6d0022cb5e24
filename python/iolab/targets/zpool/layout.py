# SPDX-License-Identifier: Apache-2.0
"""How a pool is laid out over devices: `raidz2:10 x 7 + log mirror:2` becomes the words that
zpool-create(8) takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

KINDS = ("stripe", "mirror", "raidz1", "raidz2", "raidz3")
CLASSES = ("log", "cache", "special", "dedup", "spare")
_LEAST = {"stripe": 1, "mirror": 2, "raidz1": 2, "raidz2": 3, "raidz3": 4}
_GROUP = re.compile(
    rf"(?:({'|'.join(CLASSES)})\s+)?(stripe|mirror|raidz[123]?):(\d+)(?:\s*x\s*(\d+))?"
)
FORM = 'write such as "mirror:2 x 7" or "raidz2:10 + log mirror:2", or a list of words as zpool create takes them'


@dataclass(frozen=True)
class Group:
    """`count` vdevs of one kind, each of `width` devices. `of`: the class of vdev, empty for data."""

    of: str
    kind: str
    width: int
    count: int

    @property
    def devices(self) -> int:
        """How many devices it takes."""
        return self.width * self.count


@dataclass(frozen=True)
class Layout:
    """Groups that take devices in their order, or words as given; devices begin with a slash."""

    groups: tuple[Group, ...] = ()
    literal: tuple[str, ...] = ()

    @property
    def devices(self) -> int:
        """How many devices it takes."""
        return (
            sum(group.devices for group in self.groups)
            if self.groups
            else sum(word.startswith("/") for word in self.literal)
        )

    def words(self, devices: Sequence[str]) -> list[str]:
        """What zpool create gets after the pool's name."""
        if self.literal:
            return list(self.literal)
        parts: list[str] = []
        names = list(devices)
        for group in self.groups:
            parts += [group.of] if group.of else []
            for _ in range(group.count):
                parts += ([] if group.kind == "stripe" else [group.kind]) + names[: group.width]
                del names[: group.width]
        return parts


def parse_layout(text: str) -> Layout:
    """The layout that a text means; ValueError with what is wrong."""
    groups = []
    for part in text.split("+"):
        match = _GROUP.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"'{part.strip()}' is not a layout; {FORM}")
        kind = "raidz1" if match[2] == "raidz" else match[2]
        group = Group(match[1] or "", kind, int(match[3]), int(match[4] or 1))
        if group.width < _LEAST[kind] or group.count < 1:
            raise ValueError(
                f"'{part.strip()}' has too few devices; {kind} takes {_LEAST[kind]} or more"
            )
        if group.of in ("cache", "spare") and kind != "stripe":
            raise ValueError(
                f"'{part.strip()}': {group.of} devices have no redundancy; write {group.of} stripe:{group.devices}"
            )
        groups.append(group)
    if not any(not group.of for group in groups):
        raise ValueError("has no vdev for data")
    return Layout(tuple(groups))
