# SPDX-License-Identifier: Apache-2.0
"""Storage controllers on the PCI bus: what sits between the host and its disks."""

from __future__ import annotations

import re
from typing import Any

from ..base.host import Host, text_or_none

_BUS = "/sys/bus/pci/devices"
_NAMES = ("/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids")
_STORAGE = "0x01"
"""Base class of mass storage controllers (PCI Code and ID Assignment Specification)."""
_KINDS = {
    "0x0100": "SCSI",
    "0x0101": "IDE",
    "0x0104": "RAID",
    "0x0106": "SATA",
    "0x0107": "SAS",
    "0x0108": "NVMe",
}


def storage_controllers(host: Host) -> list[dict[str, Any]]:
    """Each controller with address, kind, name (its ids `8086:a382` where no list of names is
    there), driver, NUMA node and link."""
    try:
        addresses = host.list_directory(_BUS)
    except OSError:
        return []
    codes = {address: text_or_none(host, f"{_BUS}/{address}/class") or "" for address in addresses}
    storage = {address: code for address, code in codes.items() if code.startswith(_STORAGE)}
    names = _name_list(host) if storage else ""
    return [_controller(host, names, address, code) for address, code in storage.items()]


def _controller(host: Host, names: str, address: str, code: str) -> dict[str, Any]:
    base = f"{_BUS}/{address}"
    ids = [
        (text_or_none(host, f"{base}/{name}") or "").removeprefix("0x")
        for name in ("vendor", "device")
    ]
    controller: dict[str, Any] = {
        "address": address,
        "kind": _KINDS.get(code[:6], f"class {code}"),
        "ids": ":".join(ids),
        "name": _name(names, *ids) or ":".join(ids),
    }
    folder, _, driver = host.resolve(f"{base}/driver").rpartition("/")
    if folder.endswith(
        "/drivers"
    ):  # without a driver it is the missing file in the device's own directory, itself behind a link
        controller["driver"] = driver
    for key in ("numa_node", "current_link_speed", "current_link_width"):
        value = text_or_none(host, f"{base}/{key}")
        if value and value not in ("-1", "Unknown"):
            controller[key] = value
    return controller


def _name_list(host: Host) -> str:
    return next((text for path in _NAMES if (text := text_or_none(host, path))), "")


def _name(names: str, vendor: str, device: str) -> str | None:
    """`Vendor Device` from the text of pci.ids: vendors at the start of a line, their devices below
    them behind one tab."""
    block = (
        re.search(rf"^{re.escape(vendor)}  (.*)\n((?:[\t#].*\n?)*)", names, re.MULTILINE)
        if vendor
        else None
    )
    if block is None:
        return None
    match = re.search(rf"^\t{re.escape(device)}  (.*)$", block[2], re.MULTILINE)
    return f"{block[1].strip()} {match[1].strip() if match else device}"
