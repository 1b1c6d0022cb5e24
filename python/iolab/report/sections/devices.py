# SPDX-License-Identifier: Apache-2.0
"""Block devices and controllers of the hosts that were measured, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..model.payload import Grid
from ..words.phrases import count_text, list_text, size_text
from .measured_hosts import HostFacts

_HEADS = {
    "model": "model",
    "vendor": "vendor",
    "serial": "serial",
    "size_bytes": "size",
    "rotational": "rotational",
    "scheduler": "scheduler",
    "write_cache": "write cache",
    "logical_block_bytes": "logical block",
    "physical_block_bytes": "physical block",
    "queue_requests": "queue",
    "read_ahead_bytes": "read ahead",
    "largest_request_bytes": "largest request",
    "merges_off": "merges",
}


def asked(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What each target was asked to be, with what was made of it."""
    several = facts.get("targets")
    found = several if isinstance(several, list) else [facts] if "target" in facts else []
    return [one for one in found if isinstance(one, Mapping)]


def devices_grid(hosts: Sequence[HostFacts]) -> Grid:
    """A row for each block device of each host, the target's first; "in the target" is of the
    host's own runs."""
    known = [(host, _known(host.facts)) for host in hosts]
    columns = [
        key
        for key in _HEADS
        if any(each.get(key) not in (None, "") for _, devices in known for each in devices.values())
    ]
    rows = [
        [
            name,
            *of(hosts, host.name),
            used,
            *(_device_text(key, devices[name].get(key)) for key in columns),
        ]
        for host, devices in known
        for name, used in _used(host, devices)
    ]
    return Grid(
        title="Block devices",
        note="",
        head=["device", *of(hosts, "host"), "in the target", *(_HEADS[key] for key in columns)],
        rows=rows,
    )


def of(hosts: Sequence[HostFacts], text: str) -> list[str]:
    """A column that only results of several hosts have."""
    return [text] if len(hosts) > 1 else []


def _known(facts: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    known: dict[str, Mapping[str, Any]] = {}
    for one in (facts, *asked(facts)):
        for part in ("block_devices", "devices"):
            table = one.get(part)
            tables = table.items() if isinstance(table, Mapping) else ()
            known |= {
                name: {**each, **known.get(name, {})}
                for name, each in tables
                if isinstance(each, Mapping)
            }
    return known


def _used(host: HostFacts, devices: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each device with whether the target has it, or in how many runs it had."""
    used = Counter(
        str(name)
        for run in host.runs
        if isinstance(found := run.plan.extra.get("devices"), list | tuple)
        for name in found
    )
    return [
        (
            name,
            "no"
            if not used[name]
            else "yes"
            if used[name] == len(host.runs)
            else count_text(used[name], "run"),
        )
        for name in sorted(devices, key=lambda name: (not used[name], len(name), name))
    ]


def _device_text(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key.endswith("_bytes") and isinstance(value, int | float):
        return size_text(value)
    if key == "merges_off":
        return {0: "on", 1: "simple ones", 2: "off"}.get(value, str(value))
    return ("no", "yes")[bool(value)] if key == "rotational" else str(value)


def controllers_grid(hosts: Sequence[HostFacts]) -> Grid:
    """Controllers as `kind, name (driver)`, those of a host that are alike once, with where they
    sit."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for host in hosts:
        listed = host.facts.get("storage_controllers")
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, Mapping):
                driver = f" ({one['driver']})" if one.get("driver") else ""
                key = str(one.get("kind", "")), f"{one.get('name', '')}{driver}", host.name
                found.setdefault(key, []).append(str(one.get("address", "")))
    rows = [
        [kind, name, *of(hosts, host), str(len(places)), list_text(places)]
        for (kind, name, host), places in found.items()
    ]
    return Grid(
        title="Controllers",
        note="",
        head=["kind", "controller (driver)", *of(hosts, "host"), "number", "addresses"],
        rows=rows,
    )
