"""What a target made, on record before it is made, so that it goes in any case: at the study's end, or after a kill by the next one.

`<scratch>.made` stands beside a target's scratch directory, in the results directory: one JSON object a line, synced. Paths at
or below the scratch directory are kept relative to it, as results may have been moved meanwhile. Only what stands there is
removed, and of that only what can be recognised: a mount by its device, a loop device by its backing file, a file system on a
user's device by the UUID that it was given.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..hosts.base import Host
from ..hosts.mirror import here, scratch_on
from ..texts import parsed
from .commands import pause, tried
from .mounts import mounts
from .zpool_pool import remove as remove_pools

SUFFIX = ".made"
IMAGES = "disk-"
"""Backing files of loop devices are `disk-0.img`, `disk-1.img`... in a directory that iolab made."""
_TRIES = 50
_FEW_TRIES = 10


class Made:
    """The record of one target."""

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._path = Path(here(scratch) + SUFFIX)

    def note(self, kind: str, **data: Any) -> None:
        """Record what is about to be made, durably. Raises OSError.

        Kinds: `directory` (path), `mount` (path, sources), `filesystem` (device, uuid), `pool` (name, devices). The images of
        loop devices need no line of their own: they lie in a directory that has one.
        """
        if "path" in data:
            data["path"] = self._relative(data["path"])
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"made": kind, **data}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def undo(self, host: Host) -> list[str]:
        """Remove everything on record, then the record; what is still there, in words, where that fails (the record stays)."""
        try:
            records = list(self._read())
        except FileNotFoundError:
            return []
        except OSError as error:
            return [f"{self._path} can't be read: {error.strerror or error}"]
        directories = [self._absolute(record["path"]) for record in records if record["made"] == "directory"]
        loops = {node: image for directory in directories for node, image in _loops(host, directory)}
        pools = [record for record in records if record["made"] == "pool"]
        left: list[str] = remove_pools(host, {record["name"] for record in pools},
                                       {device for record in pools for device in record["devices"]}) if pools else []
        for record in records:
            if record["made"] == "mount":
                left += _unmount(host, self._absolute(record["path"]), {*loops, *record["sources"]})
        for node, image in loops.items():
            left += _detach(host, node, image)
        for record in records:
            if record["made"] == "filesystem":
                left += _wipe(host, record["device"], record["uuid"])
        if not left:
            for directory in directories:
                try:
                    host.remove_tree(directory)
                except OSError as error:
                    left.append(f"{directory} can't be removed: {error.strerror or error}")
        if not left:
            self._path.unlink(missing_ok=True)
        return left

    def forget(self) -> None:
        """Take the record back, where nothing on it came to be."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> Iterator[dict[str, Any]]:
        """Whole lines only: a torn last one stands for something that had not been begun."""
        for line in self._path.read_text("utf-8", "replace").split("\n")[:-1]:
            try:
                record = parsed(line)
                fields = {"directory": ("path",), "mount": ("path", "sources"), "filesystem": ("device", "uuid"),
                          "pool": ("name", "devices")}[record["made"]]
                if all(field in record for field in fields):
                    yield record
            except (ValueError, KeyError, TypeError):
                continue

    def _relative(self, path: str) -> str:
        if path == self._scratch:
            return "."
        return path[len(self._scratch) + 1:] if path.startswith(self._scratch + "/") else path

    def _absolute(self, path: str) -> str:
        return path if path.startswith("/") else self._scratch if path == "." else f"{self._scratch}/{path}"


def clean_leftovers(host: Host, directory: Path) -> list[str]:
    """Remove what targets of a killed study made, by the records in its results directory.

    Call it with the results' lock held and before any target is made. Returns what could not be removed, in words.
    """
    found = sorted(directory.absolute().glob(f"*{SUFFIX}"))
    return [word for path in found for word in Made(scratch_on(host, path.with_name(path.name[: -len(SUFFIX)]))).undo(host)]


def _loops(host: Host, directory: str) -> Iterator[tuple[str, str]]:
    """Loop devices whose backing file lies in the directory, with the file."""
    try:
        names = [name for name in host.list_directory(directory) if name.startswith(IMAGES) and name.endswith(".img")]
    except OSError:
        return
    for name in names:
        for node in loops_of(host, f"{directory}/{name}"):
            yield node, f"{directory}/{name}"


def loops_of(host: Host, image: str) -> list[str]:
    """Nodes of the loop devices that a file backs, by the file's device and inode (losetup(8), -j)."""
    try:
        answer = host.run(["losetup", "--noheadings", "--raw", "--output", "NAME", "--associated", image])
    except RunError:
        return []
    return answer.stdout.split() if answer.exit_code == 0 else []


def _unmount(host: Host, point: str, sources: set[str]) -> list[str]:
    """Unmount what is ours at the point; something else there is left alone."""
    for attempt in range(_TRIES):
        try:
            here = [mount for mount in mounts(host.read_text("/proc/self/mountinfo")) if mount.point == host.resolve(point)]
        except OSError as error:
            return [f"the mounts can't be read: {error.strerror or error}"]
        if not here:
            return []
        if here[-1].source not in sources:
            return [f"{point} has a mount of {here[-1].source}, which iolab did not make"]
        # Lazily in the end: the mount is of iolab's own making, and whatever still holds it has its device until it lets go.
        if not tried(host, ["umount", *(["--lazy"] if attempt >= _FEW_TRIES else []), point]):
            pause(host)
    return [f"{point} can't be unmounted"]


def _detach(host: Host, node: str, image: str) -> list[str]:
    for _ in range(_TRIES):
        if node not in loops_of(host, image):
            return []
        tried(host, ["losetup", "--detach", node])
        if node not in loops_of(host, image):
            return []
        pause(host)
    return [f"{node} can't be detached from {image}"]


def _wipe(host: Host, device: str, uuid: str) -> list[str]:
    """Take the signature of a file system of ours off a user's device, so that the next study finds it as blank as this one did."""
    if uuid.lower() not in signatures(host, device).lower():
        return []
    return [] if tried(host, ["wipefs", "--all", device]) else [f"the file system that iolab made on {device} can't be wiped"]


def signatures(host: Host, device: str) -> str:
    """Known signatures on a device, a line of type and UUID each (wipefs(8)); RunError where it can't be read."""
    answer = host.run(["wipefs", "--no-act", "--noheadings", "--output", "TYPE,UUID", device])
    if answer.exit_code:
        raise RunError(f"can't be looked at: {answer.stderr.strip()[:200]}", where=device)
    return answer.stdout.strip()
