# SPDX-License-Identifier: Apache-2.0
"""The things that counters are of: which of them a sum holds (what is made of others counts for
itself, but not again), and which one a condition means."""

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
"""The object of all peers that are too many to be told apart."""


def summed(kind: str, names: Iterable[str]) -> set[str]:
    """The objects that a sum holds. `kind` is the field that they are of: "device", "interface",
    "peer", "cpu"...

    Of devices those that stand for themselves (`formats.device_names`); of interfaces those to the
    outside; of peers none on this machine, whose connections have both their ends here. Where that
    leaves no interface or peer, all of them.
    """
    held = set(names)
    if kind == "device":
        return set(choose_devices(held).counted)
    if kind == "interface":
        return {name for name in held if not _LINKS.fullmatch(name)} or held
    if kind == "peer":
        outside = {name for name in held if not _here(name)}
        return outside if outside - {UNNAMED} else held
    return held


def meant(kind: str | None, value: str) -> str:
    """The object that a condition's value means: of processors the number alone will do."""
    return f"cpu{value}" if kind == "cpu" and value.isdecimal() else value


def missing(kind: str, wanted: Iterable[str], there: Iterable[str]) -> list[str]:
    """A note for each of the objects that conditions name and that were not read; none where
    nothing was."""
    held = sorted(
        set(there),
        key=lambda name: [
            int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)
        ],
    )
    if not held:
        return []
    more = f" and {len(held) - _NAMED} more" if len(held) > _NAMED else ""
    found = []
    for name in dict.fromkeys(wanted):
        if name not in held:
            near = [] if not more else difflib.get_close_matches(name, held, 1, 0.6)
            found.append(
                f"there was no {kind} '{name}' then; {f'did you mean {near[0]!r}? ' if near else ''}"
                f"there were {', '.join(held[:_NAMED])}{more}"
            )
    return found


def _here(peer: str) -> bool:
    try:
        return ipaddress.ip_address(peer).is_loopback
    except ValueError:
        return False
