# SPDX-License-Identifier: Apache-2.0
"""Which of the block devices that are listed together are counted, by their names
alone.

Counters of a whole machine list an I/O several times: for the partition, its disk, and everything
that is made of it. A sum over devices holds the lowest layer that is listed, so that each I/O
counts once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

_NVME_PATH = re.compile(r"(nvme\d+)c\d+(n\d+)((?:p\d+)?)")
"""A path to an NVMe namespace, below the device of all its paths: nvme0c1n2 below nvme0n2 (Linux
nvme(4), native multipath)."""
_MULTIPATH = re.compile(r"mpath[a-z]+|emcpower[a-z]+")

_PARTITION = re.compile(r"(.+?)(?:(?<=\d)[ps]\d+|(?<!\d)\d+)")
_STACKED = re.compile(r"(dm-|md|loop|bcache|drbd|zd)\d.*|mpath[a-z]+.*|emcpower[a-z]+.*")
_NO_DISK = re.compile(r"(zram|ram|sr|scd|cd|fd|pass)\d+.*")
_DISK = re.compile(
    r"((sd|hd|vd|xvd|ubd|dasd|fio|rssd|scm)[a-z]+"  # Linux, by letters
    r"|nvme\d+(c\d+)?n\d+|mmcblk\d+((boot|gp)\d+|rpmb)?|(pmem|rbd|nbd|ublkb|nullb|skd|mtdblock)\d+s?|(cciss|ida|rd)[/!]c\d+d\d+"
    r"|(ada|da|nda|nvd|vtbd|xbd|wd|ld|mfid|mfisyspd|aacd|amrd|twed)\d+"  # BSD
    r"|c\d+(t[0-9A-Za-z]+)?d\d+|(cmdk|ssd|sd|blkdev|vdc)\d+"  # illumos
    r")([ps]?\d+)?"
)

PARTITION = "partitions of a disk that is listed"
STACKED = "made of other devices"
PATH = "paths of a device that is listed"
SEVERAL_PATHS = "without I/O of its own: its paths are listed"
NO_DISK = "memory or removable media"
UNKNOWN = "not the name of a known disk, such as a name that iostat -N gives to the device mapper's"


@dataclass(frozen=True)
class DeviceChoice:
    """The devices that a sum holds, and the others with why they are left out, in the order of the
    list."""

    counted: tuple[str, ...]
    left_out: Mapping[str, str]


def is_multipath(name: str) -> bool:
    """Whether multipath tools give such a name to the device of several paths to a disk."""
    return _MULTIPATH.fullmatch(name) is not None


def choose_devices(
    names: Iterable[str], *, are_kernel_names: bool = True, idle: Collection[str] = ()
) -> DeviceChoice:
    """The devices that are counted.

    Paths of an NVMe namespace leave where the namespace is listed, which leaves instead where it
    is one of `idle` and a path is not: not every kernel counts its I/O. Partitions leave where
    their disk is listed. Of the others the lowest layer that is listed counts: disks. Without any,
    what is made of other devices (device mapper, md, loop, bcache, drbd, zvols). Without these,
    memory (zram, ram) and removable media. A device alone counts whatever it is.

    Args:
        are_kernel_names: whether a name of no known kind is that of a disk. Tools may print names
        that somebody gave to the
            device mapper's devices: where that may be so and known disks are listed, it counts as
            made of other devices.
        idle: devices that moved nothing.
    """
    listed = list(dict.fromkeys(names))
    left_out = _paths(listed, idle)
    mentioned = set(listed)
    left_out |= {
        name: PARTITION
        for name in listed
        if name not in left_out and (match := _PARTITION.fullmatch(name)) and match[1] in mentioned
    }
    without_parts = [name for name in listed if name not in left_out]
    layers: dict[str, list[str]] = {"": [], UNKNOWN: [], STACKED: [], NO_DISK: []}
    for name in without_parts:
        layers[_layer(name, are_kernel_names)].append(name)
    counted = next((members for members in layers.values() if members), [])
    left_out |= {
        name: why for why, members in layers.items() if members is not counted for name in members
    }
    return DeviceChoice(
        tuple(counted), {name: left_out[name] for name in listed if name in left_out}
    )


def _paths(listed: Iterable[str], idle: Collection[str]) -> dict[str, str]:
    """Paths of listed NVMe namespaces, or the namespaces of which the paths alone count I/O."""
    paths_of: dict[str, list[str]] = {}
    for name in listed:
        if match := _NVME_PATH.fullmatch(name):
            paths_of.setdefault(match[1] + match[2] + match[3], []).append(name)
    left_out: dict[str, str] = {}
    for namespace in paths_of.keys() & set(listed):
        paths = paths_of[namespace]
        if namespace in idle and not all(path in idle for path in paths):
            left_out[namespace] = SEVERAL_PATHS
        else:
            left_out |= dict.fromkeys(paths, PATH)
    return left_out


def _layer(name: str, are_kernel_names: bool) -> str:
    if _NO_DISK.fullmatch(name):
        return NO_DISK
    if _STACKED.fullmatch(name):
        return STACKED
    return "" if are_kernel_names or _DISK.fullmatch(name) else UNKNOWN
