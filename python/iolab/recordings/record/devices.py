# SPDX-License-Identifier: Apache-2.0
"""Block devices by the names that users type: the kernel's numbers of their disks."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from iolab.base.errors import UsageError
from iolab.hosts.base.host import Host, text_or_none
from iolab.hosts.facts.mounted_devices import top_devices
from iolab.hosts.facts.mounts import mount_of

_NUMBER = re.compile(r"\d+:\d+")


@dataclass(frozen=True)
class RecordedDevice:
    """A device to record.

    Attributes:
        name: kernel name of the disk, `nvme0n1`; number: its `major:minor`.
        said: what a user should know, such as that a partition is recorded as its disk; empty where
        there is nothing.
    """

    name: str
    number: str
    said: str = ""


def find_devices(host: Host, named: list[str] | tuple[str, ...]) -> list[RecordedDevice]:
    """The devices of those names, each disk once; UsageError for a name that is none.

    A name is a kernel name (`sda`, `dm-0`), a path (`/dev/sda`, `/dev/disk/by-id/...`,
    `/dev/mapper/...`) or `major:minor`.
    """
    devices: dict[str, RecordedDevice] = {}
    for name in named:
        device = _find(host, name)
        if device.name not in devices or device.said:
            devices[device.name] = device
    return list(devices.values())


def devices_behind(host: Host, path: str) -> list[RecordedDevice]:
    """The disks of the file system that holds a path; none where no block device is known (tmpfs,
    networks)."""
    mount = mount_of(text_or_none(host, "/proc/self/mountinfo") or "", host.resolve(path))
    names = [] if mount is None else top_devices(host, mount)
    return [
        replace(device, said=f"block: {device.name}, the disk behind {path}")
        for device in find_devices(host, names)
    ]


def _find(host: Host, named: str) -> RecordedDevice:
    if _NUMBER.fullmatch(named):
        name = host.resolve(f"/sys/dev/block/{named}").rpartition("/")[2]
    else:
        node = host.resolve(named if "/" in named else f"/dev/{named}")
        # the kernel writes ! for a slash in a device's name (cciss!c0d0)
        name = node.removeprefix("/dev/").replace("/", "!")
    base = f"/sys/class/block/{name}"
    if not name or not host.is_directory(base):
        raise UsageError(
            "no such block device", where=f"--device {named}", hint=_known_devices(host)
        )
    said = ""
    if text_or_none(host, f"{base}/partition") is not None:
        disk = host.resolve(base).rstrip("/").rpartition("/")[0].rpartition("/")[2]
        said = f"{name} is a partition; its disk {disk} is recorded, for the kernel's trace names disks"
        name, base = disk, f"/sys/class/block/{disk}"
    number = text_or_none(host, f"{base}/dev")
    if number is None or not _NUMBER.fullmatch(number):
        raise UsageError(
            "has no device number in /sys", where=f"--device {named}", hint=_known_devices(host)
        )
    return RecordedDevice(name, number, said)


def _known_devices(host: Host) -> str:
    try:
        names = host.list_directory("/sys/block")
    except OSError:
        return "'lsblk' lists them"
    used = [name for name in names if (text_or_none(host, f"/sys/block/{name}/size") or "0") != "0"]
    return f"there are: {', '.join(used)}" if used else "'lsblk' lists them"
