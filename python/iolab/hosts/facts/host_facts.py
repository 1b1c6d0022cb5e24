# SPDX-License-Identifier: Apache-2.0
"""What a host is, as far as numbers depend on it: kernel, CPU, memory, governor."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ..base.host import Host, text_or_none
from .block_devices import block_devices
from .controllers import storage_controllers


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


def _cpu(host: Host, found: Facts) -> None:
    text = text_or_none(host, "/proc/cpuinfo") or ""
    count = len(re.findall(r"^processor\s*:", text, re.MULTILINE))
    model = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    if count:
        found.facts["cpus"] = count
    if model:
        found.facts["cpu"] = model[1].strip()
    if count or model:
        found.fingerprint["cpu"] = f"{count} x {model[1].strip() if model else 'unknown'}"


def _frequency(host: Host, found: Facts) -> None:
    """Governors of all CPUs (one word where they agree), and whether they may go beyond their
    nominal frequency."""
    governors = {
        text
        for cpu in _list_files(host, _CPU, r"cpu\d+")
        if (text := text_or_none(host, f"{_CPU}/{cpu}/cpufreq/scaling_governor"))
    }
    if governors:
        found.fingerprint["governor"] = found.facts["governor"] = ", ".join(sorted(governors))
    for path, allowed in _TURBO:
        value = text_or_none(host, path)
        if value is not None:
            found.fingerprint["turbo"] = found.facts["turbo"] = "on" if value == allowed else "off"
            break


def _memory(host: Host, found: Facts) -> None:
    memory = re.search(
        r"^MemTotal:\s+(\d+) kB", text_or_none(host, "/proc/meminfo") or "", re.MULTILINE
    )
    if memory:
        size = int(memory[1]) * 1024
        found.facts["memory_bytes"] = size
        # Rounded: the kernel's own share varies a little from boot to boot.
        found.fingerprint["memory"] = f"{size / 2**30:.0f} GiB"
    nodes = {}
    for node in _list_files(host, "/sys/devices/system/node", r"node\d+"):
        base = f"/sys/devices/system/node/{node}"
        total = re.search(r"MemTotal:\s+(\d+) kB", text_or_none(host, f"{base}/meminfo") or "")
        nodes[node] = {
            "cpus": text_or_none(host, f"{base}/cpulist") or "",
            **({"memory_bytes": int(total[1]) * 1024} if total else {}),
        }
    if nodes:
        found.facts["numa_nodes"] = nodes


def _list_files(host: Host, directory: str, pattern: str) -> list[str]:
    try:
        return [name for name in host.list_directory(directory) if re.fullmatch(pattern, name)]
    except OSError:
        return []
