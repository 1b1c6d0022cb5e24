# SPDX-License-Identifier: Apache-2.0
"""Block devices and controllers of the hosts that were measured, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...model.payload import Grid
from ...words.phrases import count_text, list_text, size_text
from .measured_hosts import HostFacts

_HEADS = {
    "model": "model",
    "vendor": "vendor",
    "serial": "serial",
    "enclosure": "enclosure",
    "enclosure_slot": "slot",
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


def requested_targets(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What each target was asked to be, with what was made of it."""
    several = facts.get("targets")
    targets = several if isinstance(several, list) else [facts] if "target" in facts else []
    return [target for target in targets if isinstance(target, Mapping)]


def devices_grid(hosts: Sequence[HostFacts]) -> Grid:
    """A row for each block device of each host, the target's first; "in the target" is of the
    host's own runs."""
    known_devices = [(host, _device_table(host.facts)) for host in hosts]
    columns = [
        key
        for key in _HEADS
        if any(
            device.get(key) not in (None, "")
            for _, devices in known_devices
            for device in devices.values()
        )
    ]
    rows = [
        [
            name,
            *of(hosts, host.name),
            used,
            *(_device_text(key, devices[name].get(key)) for key in columns),
        ]
        for host, devices in known_devices
        for name, used in _use_of_devices(host, devices)
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


def _device_table(facts: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    facts_of_device: dict[str, Mapping[str, Any]] = {}
    for source in (facts, *requested_targets(facts)):
        for part in ("block_devices", "devices"):
            table = source.get(part)
            tables = table.items() if isinstance(table, Mapping) else ()
            facts_of_device |= {
                name: {**value, **facts_of_device.get(name, {})}
                for name, value in tables
                if isinstance(value, Mapping)
            }
    return facts_of_device


def _use_of_devices(host: HostFacts, devices: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each device with whether the target has it, or in how many runs it had."""
    used = Counter(
        str(name)
        for run in host.runs
        if isinstance(planned_devices := run.plan.extra.get("devices"), list | tuple)
        for name in planned_devices
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
    rows_of_controller: dict[tuple[str, str, str], list[str]] = {}
    for host in hosts:
        listed = host.facts.get("storage_controllers")
        for controller in listed if isinstance(listed, list) else ():
            if isinstance(controller, Mapping):
                driver = f" ({controller['driver']})" if controller.get("driver") else ""
                key = (
                    str(controller.get("kind", "")),
                    f"{controller.get('name', '')}{driver}",
                    host.name,
                )
                rows_of_controller.setdefault(key, []).append(str(controller.get("address", "")))
    rows = [
        [kind, name, *of(hosts, host), str(len(places)), list_text(places)]
        for (kind, name, host), places in rows_of_controller.items()
    ]
    return Grid(
        title="Controllers",
        note="",
        head=["kind", "controller (driver)", *of(hosts, "host"), "number", "addresses"],
        rows=rows,
    )
