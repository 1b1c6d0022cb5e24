# SPDX-License-Identifier: Apache-2.0
"""One pool of iolab's own: made, asked, and removed without a trace on its devices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...errors import RunError
from ...hosts.base.host import Host
from ..commands import PATIENCE, do, pause, try_command

PREFIX = "iolab-"
_TRIES = 50


def create(
    host: Host,
    name: str,
    point: str,
    words: Sequence[str],
    pool: Mapping[str, str],
    properties: Mapping[str, str],
    *,
    force: bool,
) -> None:
    """Make a pool that no boot imports; RunError with zpool's words."""
    options = [
        word
        for key, value in {"cachefile": "none", **pool}.items()
        for word in ("-o", f"{key}={value}")
    ]
    options += [
        word
        for key, value in {"mountpoint": point, **properties}.items()
        for word in ("-O", f"{key}={value}")
    ]
    do(
        host,
        ["zpool", "create", *(["-f"] if force else []), *options, name, *words],
        where="target.layout",
        hint="check target.layout, target.pool and target.properties",
        timeout=PATIENCE,
    )


def pools(host: Host) -> list[str]:
    """Names of the imported pools; none where ZFS isn't there."""
    try:
        answer = host.run(["zpool", "list", "-H", "-o", "name"])
    except RunError:
        return []
    return answer.stdout.split() if answer.exit_code == 0 else []


def properties_of(host: Host, kind: str, name: str) -> dict[str, str]:
    """All properties, exact (`zpool get` or `zfs get`, -Hp)."""
    columns = ["-o", "property,value"]
    lines = do(host, [kind, "get", "-Hp", *columns, "all", name], where=name).stdout.splitlines()
    return dict(line.split("\t", 1) for line in lines if "\t" in line)


def number(found: Mapping[str, str], key: str) -> int | None:
    """A property that is a whole number."""
    value = found.get(key, "")
    return int(value) if value.isdecimal() else None


def ratio(found: Mapping[str, str], key: str) -> float | None:
    """A property such as compressratio: `1.96`, or `1.96x`."""
    try:
        return float(found.get(key, "").rstrip("x"))
    except ValueError:
        return None


def write_out(host: Host, name: str) -> None:
    """Have a pool write everything that it owes."""
    do(host, ["zpool", "sync", name], where=name)


def destroy(host: Host, name: str) -> None:
    """Destroy an imported pool of ours; RunError where something still uses it."""
    if name not in pools(host):
        return
    for attempt in range(_TRIES):
        if try_command(host, ["zpool", "destroy", *(["-f"] if attempt else []), name]):
            return
        pause(host)
    raise RunError("the pool can't be destroyed: something still uses it", where=name)


def remove(host: Host, names: Collection[str], devices: Collection[str]) -> list[str]:
    """Destroy pools of iolab's names, and wipe their labels off the devices; messages about the
    remaining ones.

    A device is touched only if it has the label of one of them.
    """
    ours = {name for name in names if name.startswith(PREFIX)}
    try:
        for name in ours & set(pools(host)):
            destroy(host, name)
        return [word for device in sorted(devices) for word in _wipe(host, ours, device)]
    except (RunError, OSError) as error:
        return [str(error)]


def _wipe(host: Host, ours: Collection[str], device: str) -> list[str]:
    """Labels are on the device itself, or on the first of the two partitions that ZFS makes on a
    whole disk."""
    node = host.resolve(device)
    parts = _partitions(host, node)
    places = [place for place in (*parts, node) if _label(host, place) in ours]
    if not places:
        return []
    if node not in places and len(parts) <= 2:
        places.append(node)
    for place in places:
        if not try_command(host, ["wipefs", "--all", "--force", place]):
            return [f"the label of a pool of iolab's on {place} can't be wiped"]
    try_command(host, ["udevadm", "settle", "--timeout=30"])
    return []


def _partitions(host: Host, node: str) -> list[str]:
    name = node.removeprefix("/dev/")
    try:
        return [
            f"/dev/{entry}"
            for entry in host.list_directory(f"/sys/class/block/{name}")
            if entry.startswith(name)
        ]
    except OSError:
        return []


def _label(host: Host, place: str) -> str:
    answer = host.run(["wipefs", "--no-act", "--noheadings", "--output", "TYPE,LABEL", place])
    for line in answer.stdout.splitlines():
        fields = line.split()
        if len(fields) == 2 and fields[0] == "zfs_member":
            return fields[1]
    return ""


def state_of(host: Host, name: str) -> dict[str, Any]:
    """What a pool says of itself: status, all properties."""
    return {
        "status": do(host, ["zpool", "status", "-v", name], where=name)
        .stdout.rstrip()
        .splitlines(),
        "properties": properties_of(host, "zpool", name),
    }
