# SPDX-License-Identifier: Apache-2.0
"""The mounted file systems of a host (/proc/self/mountinfo), and which one holds a path."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo (proc_pid_mountinfo(5)).

    Attributes:
        device: `major:minor` of the file system. btrfs, overlay, tmpfs and network file systems
        have a number of no block device. point: where it is mounted. kind: file system type.
        source: device or name. options: of mount and superblock.
    """

    device: str
    point: str
    kind: str
    source: str
    options: str


def mount_of(mountinfo: str, path: str) -> Mount | None:
    """The mount that holds an absolute path without symbolic links, or None where no line fits.

    The longest mount point wins; among equal ones the last, which hides those before it.
    """
    best: Mount | None = None
    for mount in mounts(mountinfo):
        if not _holds(mount.point, path):
            continue
        if best is None or len(mount.point) >= len(best.point):
            best = mount
    return best


def mounts(mountinfo: str) -> list[Mount]:
    """Every mount of the file, in its order; lines that are none are left out."""
    return [mount for mount in map(_parse, mountinfo.splitlines()) if mount is not None]


def _parse(line: str) -> Mount | None:
    fields, dash, rest = line.partition(" - ")
    fields_of_mount, right = fields.split(" "), rest.split(" ")
    if not dash or len(fields_of_mount) < 6 or len(right) < 2:
        return None
    superblock = right[2] if len(right) > 2 else ""
    options = list(
        dict.fromkeys([*fields_of_mount[5].split(","), *filter(None, superblock.split(","))])
    )
    return Mount(
        fields_of_mount[2],
        _unescape(fields_of_mount[4]),
        right[0],
        _unescape(right[1]),
        ",".join(options),
    )


def _holds(point: str, path: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")


def _unescape(text: str) -> str:
    """Decode the octal escapes of blank, tab, newline and backslash."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
