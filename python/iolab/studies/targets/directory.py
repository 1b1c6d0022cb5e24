# SPDX-License-Identifier: Apache-2.0
"""A directory of a mounted file system as the target: no privilege needed, no other files
touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, NoReturn

from pydantic import Field, field_validator

from iolab.base.errors import RunError
from iolab.base.units import format_quantity
from iolab.hosts.base.host import Host, Place
from iolab.hosts.base.options import Options
from iolab.hosts.facts.host_facts import Facts
from iolab.hosts.facts.mounted_devices import Backing, backing, device_facts
from iolab.hosts.facts.mounts import Mount, mount_of

from .base import NOTHING_ALLOWED, MadeTarget, Permissions, RunContext
from .cache import CacheOption, check_cold, check_may_be_cold, check_on_disk, drop_caches
from .commands import refusals
from .disks import make_recorded
from .made import Made, elsewhere
from .space import check_writable, existing, survey, usage, write_back

RESERVE = 0.05
"""Share on top of what a workload asks for: file systems need room for themselves."""


class DirectoryOptions(Options):
    """`[target]` of kind `directory`."""

    path: Annotated[
        str | None,
        Field(
            description="an existing directory to measure in; default: a fresh one under the results directory, removed after "
            "the study. Relative paths start where iolab was called"
        ),
    ] = None

    cache: CacheOption = "warm"
    space: Annotated[
        bool,
        Field(
            description="have every run's files written back before they are removed, and count what they take; costs the writing"
        ),
    ] = False

    @field_validator("path")
    @classmethod
    def _not_empty(cls, path: str | None) -> str | None:
        if path is not None and (not path.strip() or any(ord(char) < 32 for char in path)):
            raise ValueError("is empty or has control characters; name an existing directory")
        return path


class DirectoryTarget(MadeTarget):
    """A directory: every run gets a fresh one in it, which is removed after the run.

    Fresh files per run cost a layout each time and keep runs alike: no run finds extents, or a
    cache, that another left.
    """

    name: ClassVar[str] = "directory"
    options: ClassVar[type[Options]] = DirectoryOptions
    _options: DirectoryOptions

    def __init__(
        self,
        options: DirectoryOptions,
        host: Host,
        scratch: str,
        permissions: Permissions = NOTHING_ALLOWED,
        writes: bool = True,
    ) -> None:
        self._options, self._host, self._scratch = options, host, scratch
        self._made = Made(scratch)
        self._base: str | None = None
        self._run: str | None = None
        self._mount: Mount | None = None
        self._backing = Backing((), "the target was not opened")

    def problems(self, needed_bytes: int) -> tuple[str, ...]:
        """Whether the directory is there and may be written to, has room, and can be cold."""
        named = self._options.path
        place = (
            self._host.resolve(named) if named is not None else existing(self._host, self._scratch)
        )
        if named is not None and not self._host.is_directory(place):
            return tuple(refusals(lambda: self._refuse_missing(named)))
        mount = self._mount_at(place)
        checks: list[Callable[[], object]] = [
            lambda: check_writable(self._host, place),
            lambda: self._check_room(needed_bytes, place, mount),
        ]
        if self.cold():
            checks.append(lambda: check_may_be_cold(self._host, mount.kind if mount else "", place))
        return tuple(refusals(*checks))

    def open(self, needed_bytes: int) -> None:
        """Make the study's own directory, look at what is behind it, and check the room."""
        try:
            self._base = self._make_base()
            real = self._host.resolve(self._base)
        except OSError as error:
            raise RunError(
                f"can't be written to: {error.strerror or error}",
                where=self._options.path or self._scratch,
                hint="name a directory of yours as target.path",
            ) from None
        self._mount = self._mount_at(real)
        self._backing = (
            Backing((), "the host doesn't tell its mounts")
            if self._mount is None
            else backing(self._host, self._mount)
        )
        self._check_room(needed_bytes, self._base, self._mount)
        if self.cold():
            check_on_disk(self._mount.kind if self._mount else "", self._base)
            drop_caches(self._host)

    def begin(self, context: RunContext) -> Place:
        """A fresh directory named after the run."""
        self._check_room(context.needed_bytes, str(self._base), self._mount)
        path = self._path_of(context.run)
        try:
            self._host.make_directory(path)
        except OSError as error:
            raise RunError(f"can't be made: {error.strerror or error}", where=path) from None
        self._run = context.run
        return Place(path)

    def chill(self) -> None:
        """Write everything back and drop the host's whole cache; the file system is not mounted
        again, since others use it."""
        write_back(self._host, str(self._base))
        drop_caches(self._host)
        if (
            self._mount is None or self._mount.kind != "zfs"
        ):  # whose cache is no page cache; `notes` says so
            check_cold(self._host, self._path_of(str(self._run)))

    def observe(self) -> Mapping[str, Any]:
        """With `space`, what the run's files take by their own block counts; btrfs counts those
        before compression, so not there."""
        if not self._options.space or self._run is None:
            return {}
        base, kind = str(self._base), "" if self._mount is None else self._mount.kind
        write_back(self._host, base)
        after = usage(self._host, "", base)
        facts = dict(survey(self._host, self._path_of(self._run)))
        if kind != "btrfs" and "block_bytes" in facts:
            facts["taken_bytes"] = facts["block_bytes"]
        return {
            "kind": kind,
            "fill": after.used / after.size if after.size else 0.0,
            "size_bytes": after.size,
            **facts,
        }

    def end(self, run: str) -> None:
        """Remove the run's files and wait until the file system has written what it owes, which
        would bill the next run."""
        try:
            self._host.remove_tree(self._path_of(run))
            self._host.run(["sync", "-f", str(self._base)], timeout=600)
        except OSError as error:
            raise RunError(
                f"the run's files can't be removed: {error.strerror or error}",
                where=self._path_of(run),
            ) from None

    def close(self) -> None:
        """Remove the study's own directory."""
        self._made.undo(self._host)
        self._base = None

    def devices(self) -> tuple[str, ...]:
        """Disks behind the directory."""
        return self._backing.devices

    def notes(self) -> tuple[str, ...]:
        """Why no device is watched, where none is, and where a cold cache can't be had."""
        zfs = self.cold() and self._mount is not None and self._mount.kind == "zfs"
        return tuple(
            filter(
                None,
                (
                    self._backing.missing,
                    "ZFS keeps part of its cache (ARC) when caches are dropped" if zfs else "",
                ),
            )
        )

    def facts(self) -> Facts:
        """File system with mount options, and the devices behind it."""
        facts = Facts(facts={"target": {"kind": self.name, "path": self._options.path}})
        if self._mount is not None:
            facts.facts["filesystem"] = {
                "type": self._mount.kind,
                "source": self._mount.source,
                "mounted_at": self._mount.point,
                "mount_options": self._mount.options,
            }
            facts.fingerprint["filesystem"] = f"{self._mount.kind} ({self._mount.options})"
        devices = {name: device_facts(self._host, name) for name in self._backing.devices}
        facts.facts["devices"] = devices
        for name, device in devices.items():
            if "scheduler" in device:
                facts.fingerprint[f"scheduler:{name}"] = str(device["scheduler"])
            if "model" in device:
                facts.fingerprint[f"model:{name}"] = str(device["model"])
        return facts

    def _make_base(self) -> str:
        if self._options.path is None:
            make_recorded(self._host, self._made, self._scratch)
            return self._scratch
        path = self._host.resolve(self._options.path)
        if not self._host.is_directory(path):
            self._refuse_missing(self._options.path)
        base = elsewhere(path)
        make_recorded(self._host, self._made, base)
        return base

    def _refuse_missing(self, path: str) -> NoReturn:
        raise RunError(
            "is not a directory",
            where=path,
            hint="make it first, or leave target.path out to measure under the results directory",
        )

    def _mount_at(self, path: str) -> Mount | None:
        try:
            return mount_of(self._host.read_text("/proc/self/mountinfo"), path)
        except OSError:
            return None

    def _path_of(self, run: str) -> str:
        if self._base is None:
            raise RunError("the target is not open")
        return f"{self._base}/{run}"

    def _check_room(self, needed_bytes: int, where: str, mount: Mount | None) -> None:
        try:
            free = self._host.free_bytes(where)
        except OSError as error:
            raise RunError(f"does not exist: {error.strerror or error}", where=where) from None
        needed = round(needed_bytes * (1 + RESERVE))
        if free < needed:
            place = f"{mount.kind} at {mount.point}" if mount else where
            raise RunError(
                f"the workload asks for {format_quantity(needed_bytes, 'B', 3)} (size x jobs), {place} has "
                f"{format_quantity(free, 'B', 3)} free",
                where=where,
                hint="lower size or numjobs, or name a roomier directory as target.path",
            )
