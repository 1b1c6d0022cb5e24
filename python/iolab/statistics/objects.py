"""Devices and interfaces that are made of others: they count for themselves, but not again in a sum."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

_PARTITION = re.compile(r"(.+?)(?:(?<=\d)p\d+|(?<!\d)\d+)")
_DISKS = re.compile(r"(dm-|md|loop|bcache|drbd|zd)\d.*")
_LINKS = re.compile(r"lo|(bond|br|br-|docker|dummy|ifb|macvlan|ovs-|team|tap|tun|veth|virbr|vnet|wg)[\w-]*|.*[.@:].*")

UNNAMED = "others"
"""The object of all peers that are too many to be told apart."""


def summed(kind: str, names: Iterable[str]) -> set[str]:
    """The objects that a sum holds. `kind` is the field that they are of: "device", "interface", "peer", "cpu"...

    Of devices whole disks: no partitions of a disk that is there itself, and nothing that is made of other devices; of interfaces those to
    the outside; of peers none on this machine, whose connections have both their ends here. Where that leaves none, all of them but
    partitions.
    """
    held = set(names)
    if kind == "device":
        held -= {name for name in held if (match := _PARTITION.fullmatch(name)) and match[1] in held}
        return {name for name in held if not _DISKS.fullmatch(name)} or held
    if kind == "interface":
        return {name for name in held if not _LINKS.fullmatch(name)} or held
    if kind == "peer":
        outside = {name for name in held if not _here(name)}
        return outside if outside - {UNNAMED} else held
    return held


def _here(peer: str) -> bool:
    try:
        return ipaddress.ip_address(peer).is_loopback
    except ValueError:
        return False
