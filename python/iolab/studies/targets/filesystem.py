# SPDX-License-Identifier: Apache-2.0
"""A file system made for the study, on loop devices or a user's devices, as the target.

mkfs's own command lines make each file system, with what keeps a measurement undisturbed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal
from uuid import uuid4

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from iolab.base.errors import RunError
from iolab.base.units import format_quantity
from iolab.hosts.base.host import Host, Place, need
from iolab.hosts.base.options import OptionProblem, Options, problems_error
from iolab.hosts.facts.host_facts import Facts
from iolab.hosts.facts.mounts import Mount, mount_of, mounts

from .base import NOTHING_ALLOWED, Permissions, RunContext
from .cache import CacheOption, check_cold, check_fincore, drop_caches
from .commands import do, need_root, pause, refusals, try_command
from .disks import DiskOptions, DiskTarget, make_recorded
from .space import Usage, survey, usage, write_back

FileSystem = Literal["ext4", "xfs", "btrfs"]

PACKAGES: dict[str, str] = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}
"""Package that has `mkfs.<name>`, by the same name in Debian and Fedora."""

SMALLEST = {"ext4": 8 << 20, "xfs": 300 << 20, "btrfs": 109 << 20}
"""Bytes below which mkfs refuses, or a file system has no room for itself (mkfs.xfs 5.19,
mkfs.btrfs 6.2)."""


def mkfs_command(
    fs: FileSystem, nodes: Sequence[str], options: Sequence[str], uuid: str, *, keep: bool
) -> list[str]:
    """The command that makes a file system over the nodes.

    Args:
        options: the study's, last, so that they win. uuid: by which the file system is known as
        iolab's. keep: whether the device's blocks are kept instead of discarded: a loop file would
        fall back to a sparse one.
    """
    if fs == "ext4":
        extended, rest = _taken_out(options, "-E")
        words = ",".join([*(["nodiscard"] if keep else []), *extended])
        return [
            "mkfs.ext4",
            "-q",
            "-F",
            "-U",
            uuid,
            *(["-E", words] if words else []),
            *rest,
            *nodes,
        ]
    discard = ["-K"] if keep else []
    if fs == "xfs":
        return ["mkfs.xfs", "-q", "-f", *discard, "-m", f"uuid={uuid}", *options, *nodes]
    return ["mkfs.btrfs", "-q", "-f", *discard, "-U", uuid, *options, *nodes]


def mount_options(fs: FileSystem, options: str) -> str:
    """The study's mount options, and for ext4 `noinit_itable`: the thread that writes inode tables
    after mkfs disturbs the first runs."""
    names = {option.partition("=")[0] for option in options.split(",")}
    if fs == "ext4" and not names & {"init_itable", "noinit_itable"}:
        return ",".join(filter(None, [options, "noinit_itable"]))
    return options


def _taken_out(options: Sequence[str], flag: str) -> tuple[list[str], list[str]]:
    """Values of a flag that mkfs takes once only, and the options without it."""
    values, rest = [], []
    words = iter(options)
    for word in words:
        if word == flag:
            values.append(next(words, ""))
        elif word.startswith(flag):
            values.append(word[len(flag) :])
        else:
            rest.append(word)
    return [value for value in values if value], rest


def _words(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise ValueError(
                f"can't be taken apart into words: {error}; close the quotes"
            ) from None
    if not isinstance(value, list | tuple) or not all(
        isinstance(word, str | int) and not isinstance(word, bool) for word in value
    ):
        raise ValueError('is not a list of options; write "-m 0 -i 512" or ["-m", "0"]')
    return tuple(str(word) for word in value)


_WORDS = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
    ]
}


class FilesystemOptions(DiskOptions):
    """`[target]` of kind `filesystem`."""

    fs: Annotated[FileSystem, Field(description="the file system to make")]
    mkfs_options: Annotated[
        tuple[str, ...],
        BeforeValidator(_words),
        WithJsonSchema(_WORDS),
        Field(
            description='options of mkfs, a text or a list: "-m 0"; for btrfs over several devices its profiles: "-d raid1 -m raid1"'
        ),
    ] = ()
    mount_options: Annotated[
        str, Field(description='as after mount -o, such as "noatime,compress=zstd"')
    ] = ""
    fresh: Annotated[
        Literal["run", "cell", "block", "study"],
        Field(
            description="when a new file system is made: for every run, so that none finds what others left; when another cell's turn "
            "comes; at every block's start; once"
        ),
    ] = "run"
    cache: CacheOption = "warm"

    @field_validator("mount_options")
    @classmethod
    def _one_text(cls, options: str) -> str:
        stripped = options.strip().strip(",")
        if any(char.isspace() or ord(char) < 32 for char in stripped):
            raise ValueError("has blanks in it; options are joined by commas alone")
        return stripped

    @model_validator(mode="after")
    def _fits(self) -> FilesystemOptions:
        problems = []
        devices = len(self.device) if self.device else self.loop.count if self.loop else 1
        if devices > 1 and self.fs != "btrfs":
            place = ("device",) if self.device else ("loop", "count")
            problems.append(
                OptionProblem(
                    place, f"are {devices} devices", f"one, for {self.fs}; btrfs takes several"
                )
            )
        if self.loop is not None and self.loop.size < SMALLEST[self.fs]:
            problems.append(
                OptionProblem(
                    ("loop", "size"),
                    f"is {format_quantity(self.loop.size, 'B', 3)}",
                    f"at least {SMALLEST[self.fs] >> 20}m for {self.fs}",
                )
            )
        if problems:
            raise problems_error(problems)
        return self


RESERVE = 0.02
"""Share on top of what a workload asks for, for metadata that grows with the files."""
_TRIES = 50


class FilesystemTarget(DiskTarget):
    """ext4, xfs or btrfs, created and mounted by iolab as often as `fresh` says; every run gets a
    new directory in it."""

    name: ClassVar[str] = "filesystem"
    options: ClassVar[type[Options]] = FilesystemOptions
    _options: FilesystemOptions

    def __init__(
        self,
        options: FilesystemOptions,
        host: Host,
        scratch: str,
        permissions: Permissions = NOTHING_ALLOWED,
        writes: bool = True,
    ) -> None:
        # Making a file system writes, whatever the loads do.
        super().__init__(options, host, scratch, permissions, writes=True)
        self._scratch, self._point = scratch, f"{scratch}/mnt"
        self._mount: Mount | None = None
        self._serves: str | None = None
        self._before: Usage | None = None
        self._run: str | None = None
        self._version = ""

    def destroys(self) -> tuple[str, ...]:
        """The user's devices that would be overwritten."""
        return tuple(
            f"everything on {name}, by mkfs.{self._options.fs}" for name in self._disks.destroys()
        )

    def problems(self, needed_bytes: int) -> tuple[str, ...]:
        """Whether there are leave, tools, devices and room."""
        return tuple(refusals(*self._checks(needed_bytes), *self._disks.checks()))

    def open(self, needed_bytes: int) -> None:
        """Check tools, leave and devices; make the file system once and look at it."""
        for check in self._checks(needed_bytes):
            check()
        make_recorded(self._host, self._made, self._scratch)
        self._disks.open(scratch_made=True)
        self._host.make_directory(self._point)
        self._made.note_mount(self._point, self._disks.nodes)
        self._version = self._mkfs_version()
        self._make()
        self._check_room(needed_bytes, self._host.free_bytes(self._point), self._point)
        if self._options.cache == "cold":
            drop_caches(self._host)

    def begin(self, context: RunContext) -> Place:
        """A fresh directory, of a fresh file system where `fresh` says so."""
        self._disks.check_present()
        serves = context.served_by(self._options.fresh)
        if self._serves != serves or not self._is_mounted():
            # The one that `open` made serves whatever comes first.
            if self._serves is not None or not self._is_mounted():
                self._make()
            self._serves = serves
        self._check_room(context.needed_bytes, self._host.free_bytes(self._point), self._point)
        path = f"{self._point}/{context.run}"
        try:
            self._host.make_directory(path)
        except OSError as error:
            raise RunError(f"can't be made: {error.strerror or error}", where=path) from None
        self._run = context.run
        write_back(self._host, self._point)
        self._before = usage(self._host, self._options.fs, self._point)
        return Place(path)

    def chill(self) -> None:
        """Mount again with empty caches, also of the files below loop devices."""
        write_back(self._host, self._point)
        self._unmount()
        drop_caches(self._host)
        self._mount_again()
        check_cold(
            self._host, f"{self._point}/{self._run}", *(loop.image for loop in self._disks.loops)
        )

    def observe(self) -> Mapping[str, Any]:
        """What the run's files take, by the file system's own books, after everything was written
        back."""
        if self._before is None:
            return {}
        write_back(self._host, self._point)
        after = usage(self._host, self._options.fs, self._point)
        facts: dict[str, Any] = {
            "kind": self._options.fs,
            "fill": after.used / after.size if after.size else 0.0,
            "size_bytes": after.size,
            "taken_bytes": after.data - self._before.data,
        }
        facts.update(survey(self._host, f"{self._point}/{self._run}"))
        return facts

    def end(self, run: str) -> None:
        """Remove the run's files and let the file system write what it owes."""
        self._before = None
        try:
            self._host.remove_tree(f"{self._point}/{run}")
        except OSError as error:
            raise RunError(
                f"the run's files can't be removed: {error.strerror or error}",
                where=f"{self._point}/{run}",
            ) from None
        write_back(self._host, self._point)

    def facts(self) -> Facts:
        """How it was made and mounted, and on what."""
        fs = self._options.fs
        facts = super().facts()
        mkfs = f"{fs} {' '.join(self._options.mkfs_options)}".strip()
        mounted = self._mount.options if self._mount else ""
        facts.facts["filesystem"] = {
            "type": fs,
            "made_with": self._version,
            "mkfs_options": list(self._options.mkfs_options),
            "mounted_at": self._point,
            "mount_options": mounted,
            "fresh": self._options.fresh,
        }
        facts.fingerprint["filesystem"] = f"{mkfs} ({mounted})"
        if self._version:
            facts.fingerprint["mkfs"] = self._version
        return facts

    def _checks(self, needed_bytes: int) -> list[Callable[[], object]]:
        fs, loop = self._options.fs, self._options.loop
        checks: list[Callable[[], object]] = [
            lambda: need_root(self._host, "making and mounting a file system"),
            lambda: need(self._host, f"mkfs.{fs}", PACKAGES[fs]),
        ]
        if fs == "btrfs":
            checks.append(lambda: need(self._host, "btrfs", PACKAGES[fs]))
        if loop is not None:
            checks.append(
                lambda: self._check_room(needed_bytes, loop.size * loop.count, "target.loop")
            )
        if self.cold():
            checks.append(lambda: check_fincore(self._host))
        return checks

    def _make(self) -> None:
        """A new, empty file system, mounted; the old one goes."""
        self._unmount()
        self._disks.check()
        fs, nodes = self._options.fs, self._disks.nodes
        # the devices of one file system bear one UUID
        uuid = str(uuid4()) if self._disks.loops else self._made.note_filesystem(nodes)
        do(
            self._host,
            mkfs_command(
                fs, nodes, self._options.mkfs_options, uuid, keep=self._disks.keeps_blocks()
            ),
            where=" ".join(nodes),
            hint="check target.mkfs_options and the devices' size",
            timeout=3600,
        )
        if fs == "btrfs" and len(nodes) > 1:
            do(self._host, ["btrfs", "device", "scan", *nodes])
        self._mount_again()

    def _mount_again(self) -> None:
        fs, options = self._options.fs, mount_options(self._options.fs, self._options.mount_options)
        do(
            self._host,
            [
                "mount",
                "-t",
                fs,
                *(["-o", options] if options else []),
                self._disks.nodes[0],
                self._point,
            ],
            where=self._disks.nodes[0],
            hint="check target.mount_options; the kernel's own words are in 'dmesg'",
        )
        self._mount = mount_of(
            self._host.read_text("/proc/self/mountinfo"), self._host.resolve(self._point)
        )

    def _unmount(self) -> None:
        for _ in range(_TRIES):
            if not self._is_mounted() or try_command(self._host, ["umount", self._point]):
                return
            pause(self._host)
        raise RunError(
            "can't be unmounted: something still uses it",
            where=self._point,
            hint=f"'fuser -vm {self._point}' names it",
        )

    def _is_mounted(self) -> bool:
        point = self._host.resolve(self._point)
        return any(
            mount.point == point for mount in mounts(self._host.read_text("/proc/self/mountinfo"))
        )

    def _mkfs_version(self) -> str:
        """First line of `mkfs -V` with a number in it; words of some go to standard error."""
        answer = self._host.run([f"mkfs.{self._options.fs}", "-V"])
        lines = [line.strip() for line in (answer.stdout + "\n" + answer.stderr).splitlines()]
        return next((line for line in lines if any(char.isdigit() for char in line)), "")

    def _check_room(self, needed_bytes: int, free: int, where: str) -> None:
        if free < round(needed_bytes * (1 + RESERVE)):
            needed_text, free_text = (
                format_quantity(needed_bytes, "B", 3),
                format_quantity(free, "B", 3),
            )
            raise RunError(
                f"the workload asks for {needed_text} (size x jobs), the {self._options.fs} has {free_text} free",
                where=where,
                hint="lower size or numjobs, or give the file system more room (target.loop.size)",
            )
