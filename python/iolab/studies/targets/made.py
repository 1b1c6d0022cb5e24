# SPDX-License-Identifier: Apache-2.0
"""Objects that a target creates, recorded before they are created, so that they are always removed:
at the end of the study, or after a kill by the next one.

`<scratch>.made` is in the results directory: one JSON object per line, synced. Paths at or below
the scratch directory are relative to it, since results may be moved.

A results directory may come from elsewhere, so a record alone removes nothing. Each record has a
random token, which the created object has as well. A directory contains an entry of that name; the
UUID of a file system and the name of a pool are hashes of it. A mount counts only below such a
directory, a loop device only if its backing file is in one. Symbolic links are never followed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from iolab.base.errors import RunError
from iolab.base.files import open_for_writing, read_regular
from iolab.base.untrusted_text import parse_json
from iolab.hosts.base.host import Host
from iolab.hosts.facts.mounts import mounts
from iolab.hosts.ssh.remote_paths import here, scratch_on

from .commands import pause, try_command
from .zpool.pool import PREFIX
from .zpool.pool import remove as remove_pools

SUFFIX = ".made"
IMAGES = "disk-"
"""Backing files of loop devices are `disk-0.img`, `disk-1.img`... in a directory that iolab made.
"""
MARK = ".iolab-"
"""Before a token: the entry by which a directory is known as made by the study that has the token
on record."""
_ELSEWHERE = re.compile(r"/(?:[^/]+/)*iolab-[0-9a-f]{12}")
"""Paths of directories that are made outside of the results."""
_FIELDS = {
    "directory": ("path",),
    "mount": ("path", "sources"),
    "filesystem": ("devices", "token"),
    "pool": ("token", "devices"),
}
_TRIES = 50
_FEW_TRIES = 10


class Made:
    """The record of one target."""

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._path = Path(here(scratch) + SUFFIX)

    def make_directory(self, host: Host, path: str) -> None:
        """Make a directory and mark it, on record beforehand. Raises OSError.

        Outside of the scratch directory it is one of `elsewhere`.
        """
        token = self._note("directory", path=self._relative(path))
        host.make_directory(path)
        host.make_directory(f"{path}/{MARK}{token}")

    def note_mount(self, path: str, sources: Sequence[str]) -> None:
        """Record what is about to be mounted, below a directory that was made. Raises OSError."""
        self._note("mount", path=self._relative(path), sources=list(sources))

    def note_filesystem(self, devices: Sequence[str]) -> str:
        """Record a file system that is about to be made over devices; the UUID to give it. Raises
        OSError."""
        return _uuid_of(self._note("filesystem", devices=list(devices)))

    def note_pool(self, devices: Sequence[str]) -> str:
        """Record a pool that is about to be made; the name to give it. Raises OSError."""
        return _pool_of(self._note("pool", devices=list(devices)))

    def undo(self, host: Host) -> list[str]:
        """Remove everything on record that bears its mark, then the record; what is still there, in
        words (the record stays then)."""
        try:
            records = list(self._read())
        except FileNotFoundError:
            return []
        except OSError as error:
            return [f"{self._path} can't be read: {error.strerror or error}"]
        remaining: list[str] = []
        directories = []
        for record in records:
            if record["made"] == "directory" and host.is_directory(
                path := self._absolute(record["path"])
            ):
                wrong = self._why_foreign(host, path, str(record.get("token", "")))
                remaining += [f"{path} is left alone: {wrong}"] if wrong else []
                directories += [] if wrong else [path]
        loops = {
            node: image for directory in directories for node, image in _loops(host, directory)
        }
        pools = [record for record in records if record["made"] == "pool"]
        remaining += (
            remove_pools(
                host,
                {_pool_of(record["token"]) for record in pools},
                {device for record in pools for device in record["devices"]},
            )
            if pools
            else []
        )
        for record in records:
            if record["made"] == "mount":
                point = self._absolute(record["path"])
                if any(_is_below(point, directory) for directory in directories):
                    remaining += _unmount(host, point, {*loops, *record["sources"]})
        for node, image in loops.items():
            remaining += _detach(host, node, image)
        for record in records:
            if record["made"] == "filesystem":
                remaining += [
                    word
                    for device in record["devices"]
                    for word in _wipe(host, device, _uuid_of(record["token"]))
                ]
        if not remaining:
            for directory in directories:
                remaining += _remove(host, directory)
        if not remaining:
            self._path.unlink(missing_ok=True)
        return remaining

    def forget(self) -> None:
        """Take the record back, where nothing on it came to be."""
        self._path.unlink(missing_ok=True)

    def _note(self, kind: str, **data: Any) -> str:
        """Put a line on record, durably; the token that is drawn for it."""
        token = secrets.token_hex(16)
        with os.fdopen(
            open_for_writing(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
            "a",
            encoding="utf-8",
        ) as file:
            file.write(json.dumps({"made": kind, **data, "token": token}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return token

    def _read(self) -> Iterator[dict[str, Any]]:
        """Complete lines only: the object of a torn last line was not created."""
        for line in read_regular(self._path).decode("utf-8", "replace").split("\n")[:-1]:
            try:
                record = parse_json(line)
                if all(_fits(record[field]) for field in _FIELDS[record["made"]]):
                    yield record
            except (ValueError, KeyError, TypeError):
                continue

    def _why_foreign(self, host: Host, path: str, token: str) -> str:
        """Why an existing directory is not known to be of this study; empty if it is, or if the
        directory is empty."""
        inside = _is_below(path, self._scratch)
        if ".." in path.split("/") or not (inside or _ELSEWHERE.fullmatch(path)):
            return "iolab makes none in such a place"
        results = self._scratch.rpartition("/")[0]
        if host.resolve(path) != (
            f"{host.resolve(results)}{path[len(results) :]}" if inside else path
        ):
            return "a symbolic link leads there"
        try:
            if not host.list_directory(path):  # a kill came before its mark
                return ""
        except OSError as error:
            return f"it can't be read: {error.strerror or error}"
        if re.fullmatch("[0-9a-f]{32}", token) and host.is_directory(f"{path}/{MARK}{token}"):
            return ""
        return f"it does not bear the mark that {self._path} has on record; remove it yourself where it is yours"

    def _relative(self, path: str) -> str:
        if path == self._scratch:
            return "."
        return path[len(self._scratch) + 1 :] if path.startswith(self._scratch + "/") else path

    def _absolute(self, path: str) -> str:
        return (
            path
            if path.startswith("/")
            else self._scratch
            if path == "."
            else f"{self._scratch}/{path}"
        )


def elsewhere(parent: str) -> str:
    """A new path for a directory of iolab in another one, in the form that iolab recognizes."""
    return f"{parent.rstrip('/')}/iolab-{secrets.token_hex(6)}"


def clean_leftovers(host: Host, directory: Path) -> list[str]:
    """Remove what targets of a killed study made, by the records in its results directory.

    Call it with the results' lock held and before any target is made. Returns what could not be
    removed, in words.
    """
    files = sorted(directory.absolute().glob(f"*{SUFFIX}"))
    return [
        word
        for path in files
        for word in Made(scratch_on(host, path.with_name(path.name[: -len(SUFFIX)]))).undo(host)
    ]


def _loops(host: Host, directory: str) -> Iterator[tuple[str, str]]:
    """Loop devices with their backing file in the directory, and that file."""
    try:
        names = [
            name
            for name in host.list_directory(directory)
            if name.startswith(IMAGES) and name.endswith(".img")
        ]
    except OSError:
        return
    for image in (f"{directory}/{name}" for name in names):
        if (
            host.resolve(image) == f"{host.resolve(directory)}/{image.rpartition('/')[2]}"
        ):  # no symbolic link
            for node in loops_of(host, image):
                yield node, image


def loops_of(host: Host, image: str) -> list[str]:
    """Nodes of the loop devices that a file backs, by the file's device and inode (losetup(8), -j)."""
    try:
        answer = host.run(
            ["losetup", "--noheadings", "--raw", "--output", "NAME", "--associated", image]
        )
    except RunError:
        return []
    return answer.stdout.split() if answer.exit_code == 0 else []


def _remove(host: Host, directory: str) -> list[str]:
    """Remove a directory, unless something is mounted in it; what is still there, in words."""
    try:
        place, everything = host.resolve(directory), mounts(host.read_text("/proc/self/mountinfo"))
        inside = [mount.point for mount in everything if _is_below(mount.point, place)]
    except OSError:
        inside = []  # a host without mounts
    if inside:
        return [f"{directory} is left alone: {inside[0]} is mounted in it"]
    try:
        host.remove_tree(directory)
    except OSError as error:
        return [f"{directory} can't be removed: {error.strerror or error}"]
    return []


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory + "/")


def _uuid_of(token: str) -> str:
    """A UUID that can't be chosen: to find the token for a given one takes 2^122 trials."""
    return str(UUID(bytes=hashlib.sha256(f"filesystem {token}".encode()).digest()[:16], version=4))


def _pool_of(token: str) -> str:
    return f"{PREFIX}{hashlib.sha256(f'pool {token}'.encode()).hexdigest()[:24]}"


def _fits(value: object) -> bool:
    """Whether a field of a record is a text, or a list of such."""
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(value_of_key, str) for value_of_key in value)
    )


def _unmount(host: Host, point: str, sources: set[str]) -> list[str]:
    """Unmount what is ours at the point; something else there is left alone."""
    for attempt in range(_TRIES):
        try:
            mounts_at_point = [
                mount
                for mount in mounts(host.read_text("/proc/self/mountinfo"))
                if mount.point == host.resolve(point)
            ]
        except OSError as error:
            return [f"the mounts can't be read: {error.strerror or error}"]
        if not mounts_at_point:
            return []
        if mounts_at_point[-1].source not in sources:
            return [
                f"{point} has a mount of {mounts_at_point[-1].source}, which iolab did not make"
            ]
        # Lazily in the end: the mount is of iolab's own making, and whatever still holds it has its
        # device until it lets go.
        if not try_command(host, ["umount", *(["--lazy"] if attempt >= _FEW_TRIES else []), point]):
            pause(host)
    return [f"{point} can't be unmounted"]


def _detach(host: Host, node: str, image: str) -> list[str]:
    for _ in range(_TRIES):
        if node not in loops_of(host, image):
            return []
        try_command(host, ["losetup", "--detach", node])
        if node not in loops_of(host, image):
            return []
        pause(host)
    return [f"{node} can't be detached from {image}"]


def _wipe(host: Host, device: str, uuid: str) -> list[str]:
    """Take the signature of a file system of ours off a user's device, so that the next study finds
    it as blank as this one did."""
    if uuid.lower() not in signatures(host, device).lower():
        return []
    return (
        []
        if try_command(host, ["wipefs", "--all", device])
        else [f"the file system that iolab made on {device} can't be wiped"]
    )


def signatures(host: Host, device: str) -> str:
    """Known signatures on a device, a line of type and UUID each (wipefs(8)); RunError where it
    can't be read."""
    answer = host.run(["wipefs", "--no-act", "--noheadings", "--output", "TYPE,UUID", device])
    if answer.exit_code:
        raise RunError(f"can't be looked at: {answer.stderr.strip()[:200]}", where=device)
    return answer.stdout.strip()
