# SPDX-License-Identifier: Apache-2.0
"""One pool of iolab's own: made, asked, and removed without a trace on its devices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from iolab.base.errors import RunError
from iolab.hosts.base.host import Host

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
        return _wipe(host, ours, sorted(devices))
    except (RunError, OSError) as error:
        return [str(error)]


def _wipe(host: Host, ours: Collection[str], devices: Sequence[str]) -> list[str]:
    """Labels are on the device itself, or on the first of the two partitions that ZFS makes on a
    whole disk. One command for all devices: a pool may have 70, and a machine may be slow."""
    parts = {node: _partitions(host, node) for node in map(host.resolve, devices)}
    labels = _labels(host, [place for node, names in parts.items() for place in (*names, node)])
    places: list[str] = []
    for node, names in parts.items():
        labelled = [place for place in (*names, node) if labels.get(place) in ours]
        is_whole_disk = labelled and node not in labelled and len(names) <= 2
        places += [*labelled, node] if is_whole_disk else labelled
    if not places:
        return []
    command = ["wipefs", "--all", "--force"]
    if not try_command(host, [*command, *places]):
        for place in places:
            if not try_command(host, [*command, place]):
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


def _labels(host: Host, places: Sequence[str]) -> dict[str, str]:
    """Each device or partition with a label of ZFS, and the name of the label's pool."""
    command = ["wipefs", "--no-act", "--noheadings", "--output", "DEVICE,TYPE,LABEL"]
    completed = host.run([*command, *places], timeout=300)
    outputs = [completed.stdout]
    if completed.exit_code:  # it ends at the first device that it cannot read
        outputs = [host.run([*command, place]).stdout for place in places]
    labels = {}
    for line in "\n".join(outputs).splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] == "zfs_member":
            labels[f"/dev/{fields[0]}"] = fields[2]
    return labels


def state_of(host: Host, name: str) -> dict[str, Any]:
    """What a pool says of itself: status, all properties."""
    return {
        "status": do(host, ["zpool", "status", "-v", name], where=name)
        .stdout.rstrip()
        .splitlines(),
        "properties": properties_of(host, "zpool", name),
    }
