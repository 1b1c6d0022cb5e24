# SPDX-License-Identifier: Apache-2.0
"""Checks before a user's block device is overwritten.

Refused whatever is allowed: a device that is mounted, swapped to, part of something (holders, an
exclusive open), or behind `/` or the results. Refused without `--destructive`: everything. Refused
without `--force`: a device that carries a known signature. Names must be stable: `/dev/sdb` may be
another disk after the next boot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iolab.base.errors import RunError
from iolab.hosts.base.host import Host, need, text_or_none
from iolab.hosts.facts.mounted_devices import partitions, stack_of
from iolab.hosts.facts.mounts import mount_of, mounts

from .base import Permissions
from .commands import interpreter
from .made import signatures

_STABLE = ("by-id", "by-path", "by-partuuid", "by-partlabel")
_ERASED = ("by-uuid", "by-label")
_EXCLUSIVE = """
import os, sys
for node in sys.argv[1:]:
    try:
        os.close(os.open(node, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        sys.exit(f"{node}\\t{error}")
"""


@dataclass(frozen=True)
class Device:
    """A user's device: as named in the study, its node, and its kernel name."""

    named: str
    node: str
    name: str


def find_device(host: Host, named: str) -> Device:
    """The device of that name; RunError where it is none."""
    node = host.resolve(named)
    name = node.removeprefix("/dev/").replace("/", "!")
    if not node.startswith("/dev/") or not host.is_directory(f"/sys/class/block/{name}"):
        parent, _, last = node.rpartition("/")
        try:
            exists = last in host.list_directory(parent or "/")
        except OSError:
            exists = False
        raise RunError(
            "is not a block device here" if exists else "does not exist",
            where=named,
            hint="'lsblk' lists them, /dev/disk/by-id has their stable names",
        )
    return Device(named, node, name)


def check_may_overwrite(
    host: Host, devices: Sequence[Device], permissions: Permissions, results: str
) -> None:
    """RunError with the reason where a device must not, or may not, be overwritten.

    Args:
        results: a path of the results directory; its devices are never touched.
    """
    for device in devices:
        check_name(host, device)
    check_unused(host, devices, results)
    for device in devices:
        if not permissions.destructive:
            raise RunError(
                "everything on this device would be overwritten",
                where=device.named,
                hint="--destructive allows it; 'iolab run --dry-run' shows what a study would overwrite",
            )
        need(host, "wipefs", "util-linux")
        signatures_of_device = signatures(host, device.node)
        if signatures_of_device and not permissions.force:
            kinds = ", ".join(
                dict.fromkeys(line.split()[0] for line in signatures_of_device.splitlines())
            )
            raise RunError(
                f"carries data: {kinds}",
                where=device.named,
                hint=f"check with 'wipefs --no-act {device.node}'; --force overwrites it",
            )


def check_name(host: Host, device: Device) -> None:
    """RunError where the name may mean another device after the next boot, or goes with what is
    overwritten."""
    parts = device.named.split("/")
    if parts[:3] == ["", "dev", "mapper"] or (
        parts[:3] == ["", "dev", "disk"] and len(parts) == 5 and parts[3] in _STABLE
    ):
        return
    hint = _stable_name_hint(host, device)
    if parts[:3] == ["", "dev", "disk"] and len(parts) > 3 and parts[3] in _ERASED:
        raise RunError(
            "is named by what is on it, which the study erases", where=device.named, hint=hint
        )
    raise RunError(
        "is not a stable name: it may be another device after the next boot",
        where=device.named,
        hint=hint,
    )


def check_unused(host: Host, devices: Sequence[Device], results: str) -> None:
    """RunError if a device or one of its partitions is in use, or has `/` or the results."""
    nodes = {
        name: device for device in devices for name in (device.name, *partitions(host, device.name))
    }
    info = text_or_none(host, "/proc/self/mountinfo") or ""
    for what, path in (("the root file system", "/"), ("the results", results)):
        mount = mount_of(info, host.resolve(path))
        for name in sorted(stack_of(host, mount) & set(nodes)) if mount is not None else ():
            raise RunError(
                f"holds {what}",
                where=nodes[name].named,
                hint="choose another device; nothing allows this",
            )
    users = _Users(host, info)
    for name in nodes:
        _refuse_used(nodes[name], name, users.of(name))
    refusal = _find_refusal(host, [_node(name) for name in nodes])
    if refusal is not None:
        name = next(name for name in nodes if _node(name) == refusal[0])
        _refuse_used(nodes[name], name, f"can't be had for oneself ({refusal[1]})")


def _refuse_used(device: Device, name: str, used: str | None) -> None:
    if used:
        which = "" if name == device.name else f" (its partition {name})"
        raise RunError(
            f"is in use{which}: {used}",
            where=device.named,
            hint="stop whatever uses it first; nothing allows this",
        )


class _Users:
    """What uses block devices, as far as the kernel lists it: read once for all, as every question
    to a far host takes its time."""

    def __init__(self, host: Host, info: str) -> None:
        self._host, self._mounts = host, list(mounts(info))
        sources = {mount.source for mount in self._mounts if mount.source.startswith("/dev/")}
        self._sources = {source: host.resolve(source) for source in sources}
        self._btrfs = {
            system: _names(host, f"/sys/fs/btrfs/{system}/devices")
            for system in _names(host, "/sys/fs/btrfs")
        }
        lines = (text_or_none(host, "/proc/swaps") or "").splitlines()[1:]
        self._swaps = {host.resolve(line.split()[0]) for line in lines if line.split()}
        loops = [name for name in _names(host, "/sys/class/block") if name.startswith("loop")]
        self._loops = {
            loop: text_or_none(host, f"/sys/class/block/{loop}/loop/backing_file") for loop in loops
        }

    def of(self, name: str) -> str | None:
        """Who uses the device of that kernel name."""
        node = _node(name)
        number = text_or_none(self._host, f"/sys/class/block/{name}/dev")
        for mount in self._mounts:
            if mount.device == number or self._sources.get(mount.source) == node:
                return f"mounted at {mount.point}"
        for system, members in self._btrfs.items():
            if name in members:
                return f"part of the mounted btrfs {system}"
        if node in self._swaps:
            return "swapped to"
        holders = _names(self._host, f"/sys/class/block/{name}/holders")
        if holders:
            return f"part of {', '.join(holders)}"
        return next(
            (f"attached as {loop}" for loop, file in self._loops.items() if file == node), None
        )


def _node(name: str) -> str:
    return f"/dev/{name.replace('!', '/')}"


def _find_refusal(host: Host, nodes: Sequence[str]) -> tuple[str, str] | None:
    """The first node that refuses an exclusive open, with the reason, as those of mounts of other
    namespaces, pools and arrays do (open(2), O_EXCL on block devices)."""
    python = interpreter(host)
    if python is None:
        return None
    done = host.run([python, "-I", "-S", "-c", _EXCLUSIVE, *nodes])
    if not done.exit_code:
        return None
    node, _, reason = (done.stderr.strip().splitlines() or [""])[-1].partition("\t")
    return (node, reason) if node in nodes else (nodes[0], node or "no reason given")


def _stable_name_hint(host: Host, device: Device) -> str:
    for kind in _STABLE:
        for name in _names(host, f"/dev/disk/{kind}"):
            if host.resolve(f"/dev/disk/{kind}/{name}") == device.node:
                return f"write /dev/disk/{kind}/{name}"
    return "name it as in /dev/disk/by-id; this device has no stable name there"


def _names(host: Host, path: str) -> list[str]:
    try:
        return host.list_directory(path)
    except OSError:
        return []
