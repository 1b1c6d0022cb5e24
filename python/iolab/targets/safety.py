"""Before a user's block device is overwritten: is it one that may be?

Refused whatever is allowed: a device that is mounted, swapped to, part of something (holders, an exclusive open), or behind `/` or
the results. Refused without `--destructive`: everything. Refused without `--force`: a device that carries a known signature.
Names must be stable: `/dev/sdb` may be another disk after the next boot.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import RunError
from ..hosts.base import Host, need, text_or_none
from .base import Permissions
from .commands import interpreter
from .devices import partitions, stack_of
from .made import signatures
from .mounts import mount_of, mounts

_STABLE = ("by-id", "by-path", "by-partuuid", "by-partlabel")
_ERASED = ("by-uuid", "by-label")
_EXCLUSIVE = "import os, sys; os.close(os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL))"


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
        raise RunError("is no block device here", where=named, hint="'lsblk' lists them, /dev/disk/by-id has their stable names")
    return Device(named, node, name)


def check_may_overwrite(host: Host, device: Device, permissions: Permissions, results: str) -> None:
    """RunError with the reason where the device must not, or may not, be overwritten.

    Args:
        results: a path of the results directory, whose own devices are never touched.
    """
    check_name(host, device)
    check_unused(host, device, results)
    if not permissions.destructive:
        raise RunError("everything on this device would be overwritten", where=device.named,
                       hint="--destructive allows it; 'iolab run --dry-run' shows what a study would overwrite")
    need(host, "wipefs", "util-linux")
    found = signatures(host, device.node)
    if found and not permissions.force:
        kinds = ", ".join(dict.fromkeys(line.split()[0] for line in found.splitlines()))
        raise RunError(f"carries data: {kinds}", where=device.named,
                       hint=f"check with 'wipefs --no-act {device.node}'; --force overwrites it")


def check_name(host: Host, device: Device) -> None:
    """RunError where the name may mean another device after the next boot, or goes with what is overwritten."""
    parts = device.named.split("/")
    if parts[:3] == ["", "dev", "mapper"] or (parts[:3] == ["", "dev", "disk"] and len(parts) == 5 and parts[3] in _STABLE):
        return
    hint = _stable_name_hint(host, device)
    if parts[:3] == ["", "dev", "disk"] and len(parts) > 3 and parts[3] in _ERASED:
        raise RunError("is named by what is on it, which the study erases", where=device.named, hint=hint)
    raise RunError("is no stable name: it may be another device after the next boot", where=device.named, hint=hint)


def check_unused(host: Host, device: Device, results: str) -> None:
    """RunError where anything uses the device or one of its partitions, or `/` or the results stand on it."""
    nodes = [device.name, *partitions(host, device.name)]
    info = text_or_none(host, "/proc/self/mountinfo") or ""
    for what, path in (("the root file system", "/"), ("the results", results)):
        mount = mount_of(info, host.resolve(path))
        if mount is not None and stack_of(host, mount) & set(nodes):
            raise RunError(f"holds {what}", where=device.named, hint="choose another device; nothing allows this")
    for name in nodes:
        used = _use(host, name, info)
        if used:
            which = "" if name == device.name else f" (its partition {name})"
            raise RunError(f"is in use{which}: {used}", where=device.named, hint="stop whatever uses it first; nothing allows this")


def _use(host: Host, name: str, info: str) -> str | None:
    node = f"/dev/{name.replace('!', '/')}"
    number = text_or_none(host, f"/sys/class/block/{name}/dev")
    for mount in mounts(info):
        if mount.device == number or (mount.source.startswith("/dev/") and host.resolve(mount.source) == node):
            return f"mounted at {mount.point}"
    for system in _names(host, "/sys/fs/btrfs"):
        if name in _names(host, f"/sys/fs/btrfs/{system}/devices"):
            return f"part of the mounted btrfs {system}"
    for line in (text_or_none(host, "/proc/swaps") or "").splitlines()[1:]:
        if line.split() and host.resolve(line.split()[0]) == node:
            return "swapped to"
    holders = _names(host, f"/sys/class/block/{name}/holders")
    if holders:
        return f"part of {', '.join(holders)}"
    for other in _names(host, "/sys/class/block"):
        if other.startswith("loop") and text_or_none(host, f"/sys/class/block/{other}/loop/backing_file") == node:
            return f"attached as {other}"
    return _held(host, node)


def _held(host: Host, node: str) -> str | None:
    """An exclusive open, which mounts of other namespaces, pools and arrays refuse (open(2), O_EXCL on block devices)."""
    python = interpreter(host)
    if python is None:
        return None
    done = host.run([python, "-I", "-S", "-c", _EXCLUSIVE, node])
    if not done.exit_code:
        return None
    words = done.stderr.strip().splitlines()
    return f"can't be had for oneself ({words[-1] if words else 'no reason given'})"


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
