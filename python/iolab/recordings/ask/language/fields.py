# SPDX-License-Identifier: Apache-2.0
"""The fields of statistics' names, and the columns of events that hold them.

Counters are of things: which of them a sum holds (a device made of other devices
is not counted again), and which one a condition means.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from iolab import _core

from ...store.base.counts import Y
from ...store.base.metadata import PLACES

Kind: TypeAlias = Literal["name", "number", "time", "size"]


@dataclass(frozen=True)
class Field:
    """A field of events.

    Attributes:
        name: as users write it. column: of the schema of events.
        kind: "name" is compared as a word; "number" is a plain whole number; "time" (ns) and "size"
        (bytes) take units. missing: the word for events that lack it; conditions can name
        it.
    """

    name: str
    column: str
    kind: Kind
    missing: str = "unknown"


def _fields() -> dict[str, Field]:
    names = [
        Field(name, name, "name")
        for name in ("op", "device", "process", "file", "mount", "client", "job")
    ]
    numbers = [Field(name, name, "number") for name in ("pid", "thread")]
    # most I/Os have no error, and no flags beside the operation: that is knowledge, not the lack of
    # it
    words = [Field(name, name, "name", "none") for name in ("error", "flags")]
    values = [
        Field("latency", "latency_ns", "time"),
        Field("queue", "queue_ns", "time"),
        Field("offset", "offset_bytes", "size"),
        Field("size", "size_bytes", "size"),
    ]
    return {field.name: field for field in [*names, *numbers, *words, *values]}


FIELDS = _fields()
"""Every field of events, by name."""

COUNTED = {
    name: Field(name, "", "name")
    for name in (
        "mode",
        "cpu",
        "kind",
        "interface",
        "direction",
        "peer",
        "pool",
        "result",
        "outcome",
        "access",
        "phase",
        "server",
    )
}
"""Fields that counters alone have."""

ZPOOL = {"vdev": Field("vdev", "device", "name"), "pool": Field("pool", "mount", "name")}
"""Fields of the events of OpenZFS's disks: which columns hold them."""

NFS = {
    "procedure": Field("procedure", "flags", "name"),
    "version": Field("version", "mount", "name"),
}
"""Fields of the events of the NFS server: which columns hold them."""

SMB = {"share": Field("share", "job", "name"), "user": Field("user", "device", "name")}
"""Fields of system calls of Samba: which columns hold them."""

OF_DISKS = {name: Field(name, "", "name") for name in PLACES}
"""Fields of disk I/O that follow from the device: the recording says what each disk is a part of."""

STORED = {**FIELDS, **ZPOOL, **NFS, **SMB}
"""Every field that a column of events holds."""

UTILIZATION = Field("utilization", "", "number")
"""How busy something was, in whole percent: a breakdown of counters."""

ANY = {**OF_DISKS, **STORED, **COUNTED, **ZPOOL, UTILIZATION.name: UTILIZATION}
"""Every field that a statistic's name can have."""

TIME = Field("time", "time_ns", "time")
"""The time of completion: a condition of maps, but no field of a statistic, which has a window of
time."""

QUANTIZED: tuple[Y, ...] = ("latency", "queue", "offset", "size")
"""Fields with a heat map as breakdown."""

MAPPED: tuple[str, ...] = (*QUANTIZED, UTILIZATION.name)
"""Fields with a heat map as breakdown, those of counters included."""

OPS = tuple(_core.trace_ops())


def near(word: str, allowed: Iterable[str]) -> str:
    """`did you mean 'write'? there are read, write...`: the word that is closest to an unknown one,
    and all words."""
    words = list(allowed)
    if not words:
        return "there are none"
    similar = _closest(word, words)
    return f"{f'did you mean {similar[0]!r}? ' if similar else ''}there are {', '.join(words)}"


def _closest(word: str, words: Sequence[str]) -> list[str]:
    """The most similar one of some words; none where none is similar."""
    import difflib

    return difflib.get_close_matches(word, words, 1, 0.6)


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
        from iolab.formats.core.device_names import choose_devices

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
            near = _closest(name, existing) if more else []
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
