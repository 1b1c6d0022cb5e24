"""What a host is, as far as numbers depend on it: kernel, CPU, memory, governor."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from .base import Host, text_or_none


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


_GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"


def host_facts(host: Host) -> Facts:
    """Facts of the machine; what a kernel doesn't tell is left out, never guessed."""
    found = Facts(facts={"host": host.name})
    kernel = text_or_none(host, "/proc/sys/kernel/osrelease")
    if kernel:
        found.fingerprint["kernel"] = found.facts["kernel"] = kernel
    build = text_or_none(host, "/proc/sys/kernel/version")
    if build:
        found.facts["kernel_build"] = build
    _cpu(host, found)
    memory = re.search(r"^MemTotal:\s+(\d+) kB", text_or_none(host, "/proc/meminfo") or "", re.MULTILINE)
    if memory:
        size = int(memory[1]) * 1024
        found.facts["memory_bytes"] = size
        # Rounded: the kernel's own share varies a little from boot to boot.
        found.fingerprint["memory"] = f"{size / 2**30:.0f} GiB"
    governor = text_or_none(host, _GOVERNOR)
    if governor:
        found.fingerprint["governor"] = found.facts["governor"] = governor
    release = re.search(r'^PRETTY_NAME="?([^"\n]*)', text_or_none(host, "/etc/os-release") or "", re.MULTILINE)
    if release:
        found.facts["distribution"] = release[1]
    return found


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
