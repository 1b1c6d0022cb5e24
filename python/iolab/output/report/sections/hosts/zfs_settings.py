# SPDX-License-Identifier: Apache-2.0
"""Which of a pool's many properties a reader wants to see: those that people ask about, and those
that aren't OpenZFS's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...words.phrases import size_text

ALWAYS = (
    "ashift",
    "recordsize",
    "volblocksize",
    "compression",
    "checksum",
    "sync",
    "atime",
    "logbias",
    "primarycache",
    "secondarycache",
)
"""Shown whatever they are."""

_USUAL = {
    "off": "autoexpand autoreplace autotrim compatibility listsnapshots multihost readonly utf8only nbmand vscan zoned dedup "
    "sharenfs sharesmb acltype encryption longname relatime jailed",
    "on": "delegation devices exec setuid canmount xattr overlay relatime",
    "-": "altroot bootfs cachefile comment version checkpoint",
    "none": "quota reservation refquota refreservation filesystem_limit snapshot_limit normalization mlslabel context fscontext "
    "defcontext rootcontext keylocation keyformat defaultuserquota defaultgroupquota",
    "0": "ashift quota reservation refquota refreservation pbkdf2iters special_small_blocks bclonesaved",
    "18446744073709551615": "filesystem_limit snapshot_limit",
    "all": "prefetch redundant_metadata",
    "auto": "dedup_table_quota",
    "default": "volmode",
    "standard": "direct",
    "wait": "failmode",
    "hidden": "snapdir snapdev",
    "discard": "aclmode",
    "restricted": "aclinherit",
    "1": "copies",
    "legacy": "dnodesize",
    "sensitive": "casesensitivity",
    "5": "version",
    "sa": "xattr",
}
"""Default to the properties that have it, zpoolprops(7) and zfsprops(7); some have changed over the
versions."""

_DEFAULTS = {(name, value) for value, names in _USUAL.items() for name in names.split()} | {
    ("cachefile", "none")
}
"""iolab itself makes its pools without a cache file."""

_STATE = {
    name
    for names in (
        "size capacity health guid load_guid dedupratio free allocated expandsize freeing fragmentation leaked bcloneused bclonesaved",
        "bcloneratio dedup_table_size last_scrubbed_txg type creation createtxg used available referenced compressratio mountpoint",
        "usedbysnapshots usedbydataset usedbychildren usedbyrefreservation objsetid refcompressratio written logicalused",
        "logicalreferenced filesystem_count snapshot_count snapshots_changed volsize receive_resume_token origin name mounted",
    )
    for name in names.split()
}
"""What they say of the moment, not of how they were set."""


def settings(target: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, str]:
    """Setting to value, of `target.json` of a pool: the usual ones, the requested ones, and
    others with unusual values.

    Args:
        asked: names of properties and module parameters that the study sets.
    """
    texts: dict[str, str] = {}
    for where, values in (
        ("pool", _part(target, "pool", "properties")),
        ("file system", _part(target, "dataset")),
    ):
        for name, value in sorted(values.items(), key=lambda item: (_place(item[0]), item[0])):
            feature = name.startswith("feature@")
            usual = feature or name in _STATE or (name, str(value)) in _DEFAULTS
            if name in ALWAYS or (name in asked and not feature) or not usual:
                texts[f"{name}, {where}"] = _value(name, str(value))
    parameters = _part(target, "module_parameters")
    return texts | {
        f"{name}, module": str(parameters[name]) for name in sorted(asked) if name in parameters
    }


def differing(targets: list[Mapping[str, Any]]) -> list[str]:
    """Module parameters that all of these have, with different values."""
    tables = [_part(target, "module_parameters") for target in targets]
    common = set.intersection(*(set(table) for table in tables)) if tables else set()
    return sorted(name for name in common if len({str(table[name]) for table in tables}) > 1)


def parameter(target: Mapping[str, Any], name: str) -> str:
    """A module parameter as it was."""
    return str(_part(target, "module_parameters").get(name, ""))


def _part(target: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    value: Any = target
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _place(name: str) -> int:
    return ALWAYS.index(name) if name in ALWAYS else len(ALWAYS)


def _value(name: str, value: str) -> str:
    return (
        size_text(int(value))
        if name in ("recordsize", "volblocksize") and value.isdigit()
        else value
    )
