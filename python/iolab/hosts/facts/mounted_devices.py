# SPDX-License-Identifier: Apache-2.0
"""The block devices behind a mounted file system, down to those for which the kernel counts I/O.

A partition counts as its disk. Device-mapper and md devices count as their members (sysfs
`slaves`), a btrfs as all of its members, a ZFS as all disks of its pool (`zpool list`). No block
device is known for overlay, tmpfs and network file systems.
"""

from __future__ import annotations

from dataclasses import dataclass

from iolab.base.errors import RunError

from ..base.host import Host, text_or_none
from .block_devices import active_choice
from .mounts import Mount

_DEPTH = 16
"""Stacks of devices are a few layers deep; more means that /sys is not what it seems."""
_POOL_SECONDS = 60.0
"""For `zpool list`; a suspended pool may never answer."""


@dataclass(frozen=True)
class Backing:
    """Kernel names of disks; where there are none, `missing` has the reason."""

    devices: tuple[str, ...]
    missing: str = ""


def backing(host: Host, mount: Mount) -> Backing:
    """The devices at the bottom of a mount, sorted by name."""
    names: set[str] = set()
    for top in top_devices(host, mount):
        names.update(_bottom(host, top, _DEPTH))
    if names:
        return Backing(tuple(sorted(names)))
    return Backing(
        (),
        f"no block device is known behind {mount.kind} '{mount.source}' mounted at {mount.point}",
    )


def top_devices(host: Host, mount: Mount) -> list[str]:
    """Kernel names of the devices that a file system is on, before partitions and layers below are
    looked up."""
    if mount.kind == "zfs":
        return _pool_members(host, mount.source.partition("/")[0])
    return _btrfs_members(host, mount) or _mounted_device(host, mount)


def stack_of(host: Host, mount: Mount) -> set[str]:
    """Kernel names of every device below a mount, from the mounted one to the disks: partitions and
    layers included."""
    names: set[str] = set()
    below = set(top_devices(host, mount))
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


def _pool_members(host: Host, pool: str) -> list[str]:
    """All disks of a pool: of mirrors and RAIDZ, logs, caches and spares; files have no device."""
    try:
        answer = host.run(["zpool", "list", "-v", "-H", "-L", "-P", pool], timeout=_POOL_SECONDS)
    except (OSError, RunError):
        return []
    if answer.exit_code:
        return []
    paths = [line.strip().partition("\t")[0] for line in answer.stdout.splitlines()]
    nodes = [path.rpartition("/")[2] for path in paths if path.startswith("/dev/")]
    return [
        node for node in nodes if node.strip(".") and host.is_directory(f"/sys/class/block/{node}")
    ]


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
