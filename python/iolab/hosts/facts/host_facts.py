# SPDX-License-Identifier: Apache-2.0
"""What a host is, as far as numbers depend on it: kernel, CPU, memory, governor."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ..base.host import Host, text_or_none
from .block_devices import block_devices


@dataclass
class Facts:
    """Facts for people, and the part of them by which runs may differ unasked.

    Attributes:
        fingerprint: name to a short text; a change of it makes runs another environment.
        facts: everything recorded; base units in the keys (`memory_bytes`).
    """

    fingerprint: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, other: Facts) -> None:
        """Take over another part's facts."""
        self.fingerprint.update(other.fingerprint)
        self.facts.update(other.facts)


_CPU = "/sys/devices/system/cpu"
_TURBO = ((f"{_CPU}/intel_pstate/no_turbo", "0"), (f"{_CPU}/cpufreq/boost", "1"))
"""Files that tell of turbo frequencies, and what they say where these are allowed."""


def host_facts(host: Host) -> Facts:
    """Facts of the machine; what a kernel doesn't tell is left out, never guessed."""
    facts = Facts(facts={"host": host.name})
    elsewhere = getattr(host, "connection_facts", None)
    if elsewhere is not None:
        facts.facts.update(elsewhere())
    kernel = text_or_none(host, "/proc/sys/kernel/osrelease")
    if kernel:
        facts.fingerprint["kernel"] = facts.facts["kernel"] = kernel
    build = text_or_none(host, "/proc/sys/kernel/version")
    if build:
        facts.facts["kernel_build"] = build
    boot = boot_id(host)
    if boot:
        facts.facts["boot_id"] = boot
    _cpu(host, facts)
    _frequency(host, facts)
    _memory(host, facts)
    release = re.search(
        r'^PRETTY_NAME="?([^"\n]*)', text_or_none(host, "/etc/os-release") or "", re.MULTILINE
    )
    if release:
        facts.facts["distribution"] = release[1]
    facts.facts["storage_controllers"] = storage_controllers(host)
    facts.facts["block_devices"] = block_devices(host)
    return facts


def temperatures(host: Host) -> dict[str, float]:
    """Degrees Celsius by thermal zone, where the kernel knows any."""
    celsius = {}
    for zone in _list_files(host, "/sys/class/thermal", r"thermal_zone\d+"):
        base = f"/sys/class/thermal/{zone}"
        value = text_or_none(host, f"{base}/temp")
        if value and value.lstrip("-").isdecimal():
            celsius[f"{zone} {text_or_none(host, f'{base}/type') or ''}".strip()] = (
                int(value) / 1000
            )
    return celsius


def boot_id(host: Host) -> str | None:
    """A word that is another one after every boot: process ids and start times hold within one."""
    return text_or_none(host, "/proc/sys/kernel/random/boot_id")


def _cpu(host: Host, facts: Facts) -> None:
    text = text_or_none(host, "/proc/cpuinfo") or ""
    count = len(re.findall(r"^processor\s*:", text, re.MULTILINE))
    model = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    if count:
        facts.facts["cpus"] = count
    if model:
        facts.facts["cpu"] = model[1].strip()
    if count or model:
        facts.fingerprint["cpu"] = f"{count} x {model[1].strip() if model else 'unknown'}"


def _frequency(host: Host, facts: Facts) -> None:
    """Governors of all CPUs (one word where they agree), and whether they may go beyond their
    nominal frequency."""
    governors = {
        text
        for cpu in _list_files(host, _CPU, r"cpu\d+")
        if (text := text_or_none(host, f"{_CPU}/{cpu}/cpufreq/scaling_governor"))
    }
    if governors:
        facts.fingerprint["governor"] = facts.facts["governor"] = ", ".join(sorted(governors))
    for path, allowed in _TURBO:
        value = text_or_none(host, path)
        if value is not None:
            facts.fingerprint["turbo"] = facts.facts["turbo"] = "on" if value == allowed else "off"
            break


def _memory(host: Host, facts: Facts) -> None:
    memory = re.search(
        r"^MemTotal:\s+(\d+) kB", text_or_none(host, "/proc/meminfo") or "", re.MULTILINE
    )
    if memory:
        size = int(memory[1]) * 1024
        facts.facts["memory_bytes"] = size
        # Rounded: the kernel's own share varies a little from boot to boot.
        facts.fingerprint["memory"] = f"{size / 2**30:.0f} GiB"
    nodes = {}
    for node in _list_files(host, "/sys/devices/system/node", r"node\d+"):
        base = f"/sys/devices/system/node/{node}"
        total = re.search(r"MemTotal:\s+(\d+) kB", text_or_none(host, f"{base}/meminfo") or "")
        nodes[node] = {
            "cpus": text_or_none(host, f"{base}/cpulist") or "",
            **({"memory_bytes": int(total[1]) * 1024} if total else {}),
        }
    if nodes:
        facts.facts["numa_nodes"] = nodes


def _list_files(host: Host, directory: str, pattern: str) -> list[str]:
    try:
        return [name for name in host.list_directory(directory) if re.fullmatch(pattern, name)]
    except OSError:
        return []


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
