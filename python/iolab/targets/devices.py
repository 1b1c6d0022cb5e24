# SPDX-License-Identifier: Apache-2.0
"""The block devices behind a mounted file system, down to what the kernel counts I/O for: read from
/sys.

A partition counts as its disk, device-mapper and md devices as what they are made of (sysfs
`slaves`), a btrfs as all of its members. ZFS, overlay, tmpfs and network file systems show no block
device here; that is said, not guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..hosts.base.host import Host, text_or_none
from ..hosts.facts.block_devices import active_choice
from .mounts import Mount

_DEPTH = 16
"""Stacks of devices are a few layers deep; more means that /sys is not what it seems."""


@dataclass(frozen=True)
class Backing:
    """Devices found, and where none were, why."""

    devices: tuple[str, ...]
    missing: str = ""


def backing(host: Host, mount: Mount) -> Backing:
    """The devices at the bottom of a mount, sorted by name."""
    tops = _btrfs_members(host, mount) or _mounted_device(host, mount)
    names: set[str] = set()
    for top in tops:
        names.update(_bottom(host, top, _DEPTH))
    if names:
        return Backing(tuple(sorted(names)))
    return Backing(
        (),
        f"no block device is known behind {mount.kind} '{mount.source}' mounted at {mount.point}",
    )


def stack_of(host: Host, mount: Mount) -> set[str]:
    """Kernel names of every device below a mount, from the mounted one to the disks: partitions and
    layers included."""
    names: set[str] = set()
    below = set(_btrfs_members(host, mount) or _mounted_device(host, mount))
    while below - names:
        names |= below
        below = {lower for name in below for lower in _directly_below(host, name)}
    return names


def partitions(host: Host, device: str) -> list[str]:
    """Kernel names of a disk's partitions."""
    base = f"/sys/class/block/{device}"
    try:
        names = host.list_directory(base)
    except OSError:
        return []
    return [
        name
        for name in names
        if name.startswith(device) and text_or_none(host, f"{base}/{name}/partition") is not None
    ]


def _directly_below(host: Host, device: str) -> list[str]:
    base = host.resolve(f"/sys/class/block/{device}")
    try:
        slaves = host.list_directory(f"{base}/slaves")
    except OSError:
        slaves = []
    if text_or_none(host, f"{base}/partition") is not None:
        slaves.append(base.rpartition("/")[0].rpartition("/")[2])
    return slaves


def device_facts(host: Host, device: str) -> dict[str, str | int]:
    """Model, rotational, scheduler, size and write cache of a device, as far as the kernel has them."""
    base = f"/sys/class/block/{device}"
    facts: dict[str, str | int] = {}
    for name, path in (
        ("model", "device/model"),
        ("scheduler", "queue/scheduler"),
        ("write_cache", "queue/write_cache"),
    ):
        text = text_or_none(host, f"{base}/{path}")
        if text:
            facts[name] = active_choice(text) if name == "scheduler" else " ".join(text.split())
    for name, path, scale in (
        ("rotational", "queue/rotational", 1),
        ("size_bytes", "size", 512),
        ("logical_block_bytes", "queue/logical_block_size", 1),
        ("queue_requests", "queue/nr_requests", 1),
    ):
        text = text_or_none(host, f"{base}/{path}")
        if text and text.isdigit():
            facts[name] = int(text) * scale
    return facts


def _mounted_device(host: Host, mount: Mount) -> list[str]:
    node = _name_in_sys(host, f"/sys/dev/block/{mount.device}")
    if node is not None:
        return [node]
    if mount.source.startswith("/dev/"):
        name = host.resolve(mount.source).rpartition("/")[2]
        if host.is_directory(f"/sys/class/block/{name}"):
            return [name]
    return []


def _btrfs_members(host: Host, mount: Mount) -> list[str]:
    """All members of the btrfs that the mount's source belongs to."""
    if mount.kind != "btrfs" or not mount.source.startswith("/dev/"):
        return []
    source = host.resolve(mount.source).rpartition("/")[2]
    try:
        systems = host.list_directory("/sys/fs/btrfs")
    except OSError:
        return []
    for system in systems:
        try:
            members = host.list_directory(f"/sys/fs/btrfs/{system}/devices")
        except OSError:
            continue
        if source in members:
            return members
    return []


def _name_in_sys(host: Host, path: str) -> str | None:
    resolved = host.resolve(path)
    return resolved.rpartition("/")[2] if resolved != path and host.is_directory(resolved) else None


def _bottom(host: Host, device: str, depth: int) -> set[str]:
    base = host.resolve(f"/sys/class/block/{device}")
    if text_or_none(host, f"{base}/partition") is not None:
        disk = base.rpartition("/")[0].rpartition("/")[2]
        return _bottom(host, disk, depth - 1) if depth else {device}
    try:
        slaves = host.list_directory(f"{base}/slaves")
    except OSError:
        slaves = []
    if not slaves or not depth:
        return {device}
    return set().union(*(_bottom(host, slave, depth - 1) for slave in slaves))
