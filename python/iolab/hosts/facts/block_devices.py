# SPDX-License-Identifier: Apache-2.0
"""The block devices of a host with what their numbers depend on: model, firmware, queue settings,
write cache."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from ..base.host import Host, text_or_none

SECTOR = 512
"""Bytes of a sector in sysfs, whatever the device's own blocks are."""

_TEXTS = {
    "model": ("device/model",),
    "vendor": ("device/vendor",),
    "serial": ("device/serial", "serial", "device/wwid", "wwid"),
    "firmware": ("device/firmware_rev", "device/rev"),
    "scheduler": ("queue/scheduler",),
    "write_cache": ("queue/write_cache",),
    "transport": ("device/transport",),
    "backing_file": ("loop/backing_file",),
}
_NUMBERS = {
    "size_bytes": ("size", SECTOR),
    "rotational": ("queue/rotational", 1),
    "logical_block_bytes": ("queue/logical_block_size", 1),
    "physical_block_bytes": ("queue/physical_block_size", 1),
    "queue_requests": ("queue/nr_requests", 1),
    "queue_depth": ("device/queue_depth", 1),
    "read_ahead_bytes": ("queue/read_ahead_kb", 1024),
    "largest_request_bytes": ("queue/max_sectors_kb", 1024),
    "merges_off": ("queue/nomerges", 1),
    "direct_io": ("loop/dio", 1),
}


def block_devices(host: Host) -> dict[str, dict[str, str | int]]:
    """Every whole disk by kernel name; those without a medium or a backing file (size 0) are left
    out, memory disks too."""
    try:
        names = host.list_directory("/sys/block")
    except OSError:
        return {}
    facts_by_name = {
        name: block_device_facts(host, name)
        for name in names
        if not name.startswith(("ram", "zram"))
    }
    return {name: facts for name, facts in facts_by_name.items() if facts.get("size_bytes")}


def block_device_facts(host: Host, device: str, sysfs: str = "/sys") -> dict[str, str | int]:
    """Facts of one device as the kernel reports them; other facts are missing."""
    base = f"{sysfs}/class/block/{device}"
    facts: dict[str, str | int] = {}
    for key, paths in _TEXTS.items():
        text = next((text for path in paths if (text := text_or_none(host, f"{base}/{path}"))), "")
        if text:
            facts[key] = active_choice(text) if key == "scheduler" else " ".join(text.split())
    for key, (path, scale) in _NUMBERS.items():
        number = text_or_none(host, f"{base}/{path}")
        if number and number.isdecimal():
            facts[key] = int(number) * scale
    return facts | _bay(host, f"{base}/device")


def _bay(host: Host, scsi_device: str) -> dict[str, str | int]:
    """The enclosure of a SCSI device (its logical id) and the slot in it.

    The kernel's module `ses` links a device to its component of the enclosure,
    `enclosure_device:Slot 01`, and the directory above the component is the enclosure. A device with
    several links, one for each path to it, has these facts only where they are the same."""
    try:
        names = host.list_directory(scsi_device)
    except OSError:
        return {}
    bays = set()
    for name in names:
        prefix, colon, slot_name = name.partition(":")
        if prefix != "enclosure_device" or not colon:
            continue
        component = PurePosixPath(host.resolve(f"{scsi_device}/{name}"))
        if not host.is_directory(str(component)):
            continue  # the disk was removed meanwhile
        enclosure = text_or_none(host, f"{component.parent}/id") or component.parent.name
        slot = text_or_none(host, f"{component}/slot") or slot_name
        bays.add((" ".join(enclosure.split()), " ".join(slot.split())))
    if len(bays) != 1:
        return {}
    [(enclosure, slot)] = bays
    return {"enclosure": enclosure, "enclosure_slot": slot}


def settings(facts: dict[str, Any], device: str) -> dict[str, str]:
    """The part of a device's facts by which runs may differ unasked, keyed `scheduler:sda`."""
    keys = ("model", "firmware", "scheduler", "write_cache", "queue_requests")
    return {f"{key}:{device}": str(facts[key]) for key in keys if key in facts}


def active_choice(text: str) -> str:
    """`none [mq-deadline] kyber` has the active choice in brackets."""
    _, bracket, rest = text.partition("[")
    return rest.partition("]")[0] if bracket else text
