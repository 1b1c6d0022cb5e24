# SPDX-License-Identifier: Apache-2.0
"""How each file system is made: mkfs's own command lines, with what keeps a measurement
undisturbed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

FileSystem = Literal["ext4", "xfs", "btrfs"]

PACKAGES: dict[str, str] = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}
"""Package that has `mkfs.<name>`, by the same name in Debian and Fedora."""

SMALLEST = {"ext4": 8 << 20, "xfs": 300 << 20, "btrfs": 109 << 20}
"""Bytes below which mkfs refuses, or a file system has no room for itself (mkfs.xfs 5.19,
mkfs.btrfs 6.2)."""


def mkfs_command(
    fs: FileSystem, nodes: Sequence[str], options: Sequence[str], uuid: str, *, keep: bool
) -> list[str]:
    """The command that makes a file system over the nodes.

    Args:
        options: the study's, last, so that they win. uuid: by which the file system is known as
        iolab's. keep: whether the device's blocks are kept instead of discarded: a loop file would
        fall back to a sparse one.
    """
    if fs == "ext4":
        extended, rest = _taken_out(options, "-E")
        words = ",".join([*(["nodiscard"] if keep else []), *extended])
        return [
            "mkfs.ext4",
            "-q",
            "-F",
            "-U",
            uuid,
            *(["-E", words] if words else []),
            *rest,
            *nodes,
        ]
    discard = ["-K"] if keep else []
    if fs == "xfs":
        return ["mkfs.xfs", "-q", "-f", *discard, "-m", f"uuid={uuid}", *options, *nodes]
    return ["mkfs.btrfs", "-q", "-f", *discard, "-U", uuid, *options, *nodes]


def mount_options(fs: FileSystem, options: str) -> str:
    """The study's mount options, and for ext4 `noinit_itable`: the thread that writes inode tables
    after mkfs disturbs the first runs."""
    names = {option.partition("=")[0] for option in options.split(",")}
    if fs == "ext4" and not names & {"init_itable", "noinit_itable"}:
        return ",".join(filter(None, [options, "noinit_itable"]))
    return options


def _taken_out(options: Sequence[str], flag: str) -> tuple[list[str], list[str]]:
    """Values of a flag that mkfs takes once only, and the options without it."""
    values, rest = [], []
    words = iter(options)
    for word in words:
        if word == flag:
            values.append(next(words, ""))
        elif word.startswith(flag):
            values.append(word[len(flag) :])
        else:
            rest.append(word)
    return [value for value in values if value], rest
