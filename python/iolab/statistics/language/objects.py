# SPDX-License-Identifier: Apache-2.0
"""The things that counters are of: which of them a sum holds (a device made of other devices
is not counted again), and which one a condition means."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable

from ...formats.core.device_names import choose_devices

_LINKS = re.compile(
    r"lo|(bond|br|br-|docker|dummy|ifb|macvlan|ovs-|team|tap|tun|veth|virbr|vnet|wg)[\w-]*|.*[.@:].*"
)

_NAMED = 12
"""Objects that are listed where one is not there."""

UNNAMED = "others"
"""The object of all peers beyond the largest."""


def objects_in_sum(kind: str, names: Iterable[str]) -> set[str]:
    """The objects that a sum holds. `kind` is the field that they are of: "device", "interface",
    "peer", "cpu"...

    Of devices whole disks (`formats.device_names`); of interfaces those to the
    outside; of peers none on this machine, as both ends of their connections are here. Where that
    leaves no interface or peer, all of them.
    """
    objects = set(names)
    if kind == "device":
        return set(choose_devices(objects).counted)
    if kind == "interface":
        return {name for name in objects if not _LINKS.fullmatch(name)} or objects
    if kind == "peer":
        outside = {name for name in objects if not _here(name)}
        return outside if outside - {UNNAMED} else objects
    return objects


def meant(kind: str | None, value: str) -> str:
    """The object that a condition's value means: of processors the number alone will do."""
    return f"cpu{value}" if kind == "cpu" and value.isdecimal() else value


def missing(kind: str, wanted: Iterable[str], there: Iterable[str]) -> list[str]:
    """A note for each of the objects that conditions name and that were not read; none where
    nothing was."""
    existing = sorted(
        set(there),
        key=lambda name: [
            int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)
        ],
    )
    if not existing:
        return []
    more = f" and {len(existing) - _NAMED} more" if len(existing) > _NAMED else ""
    notes = []
    for name in dict.fromkeys(wanted):
        if name not in existing:
            near = [] if not more else difflib.get_close_matches(name, existing, 1, 0.6)
            notes.append(
                f"there was no {kind} '{name}' then; {f'did you mean {near[0]!r}? ' if near else ''}"
                f"there were {', '.join(existing[:_NAMED])}{more}"
            )
    return notes


def _here(peer: str) -> bool:
    try:
        return ipaddress.ip_address(peer).is_loopback
    except ValueError:
        return False
