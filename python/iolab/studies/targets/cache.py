# SPDX-License-Identifier: Apache-2.0
"""A cold cache: none of a run's files are in the host's memory, which is checked.

Caches below the host stay: those of a disk, a controller or a hypervisor.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from iolab.base.errors import RunError
from iolab.base.units import format_quantity
from iolab.hosts.base.host import Host

from .commands import do, need_root

CacheOption = Annotated[
    Literal["warm", "cold"],
    Field(
        description="cold: files are laid out first and put out of memory before every run (needs root); warm: runs begin as they come"
    ),
]

_DROP = "sync && echo 3 > /proc/sys/vm/drop_caches"  # Documentation/admin-guide/sysctl/vm.rst: page cache, dentries, inodes
_TOLERATED = 0.01
"""Share of the files that may stay resident, such as a page that another process reads."""


IN_MEMORY = {"tmpfs", "ramfs"}
"""File systems with files in memory only."""


def check_may_be_cold(host: Host, kind: str, where: str) -> None:
    """RunError where no cold cache can be had at all: not on a file system in memory, not without
    root or fincore(1)."""
    check_on_disk(kind, where)
    need_root(host, "a cold cache")
    check_fincore(host)


def check_on_disk(kind: str, where: str) -> None:
    """RunError where a cold cache is requested on a file system in memory."""
    if kind in IN_MEMORY:
        raise RunError(
            f"is on {kind}, which keeps its files in memory: there is no cold cache",
            where=where,
            hint='measure on a disk, or leave target.cache = "cold" out',
        )


def check_fincore(host: Host) -> None:
    """RunError where fincore(1) is missing."""
    if host.which("fincore") is None:
        raise RunError(
            "fincore is missing, so a cold cache cannot be verified",
            where=host.name,
            hint="install it: apt install util-linux-extra or util-linux (Debian, Ubuntu), dnf install util-linux (Fedora)",
        )


def drop_caches(host: Host) -> None:
    """Put clean pages, directory entries and inodes of the whole host out of memory; RunError where
    it isn't permitted."""
    do(
        host,
        ["sh", "-c", _DROP],
        where="/proc/sys/vm/drop_caches",
        hint='a cold cache needs root and a writable /proc/sys; leave target.cache = "cold" out otherwise',
    )


def check_cold(host: Host, *paths: str) -> None:
    """RunError where more than 1 % of the files below the paths is still in memory (fincore(1),
    which reads no data itself)."""
    check_fincore(host)
    resident = size = 0
    for path in paths:
        answer = do(
            host,
            [
                "find",
                path,
                "-type",
                "f",
                "-size",
                "+0",
                "-exec",
                "fincore",
                "--bytes",
                "--raw",
                "--noheadings",
                "--output",
                "RES,SIZE",
                "{}",
                "+",
            ],
            where=path,
        )
        for line in answer.stdout.splitlines():
            fields = line.split()
            if len(fields) == 2 and all(field.isdigit() for field in fields):
                resident, size = resident + int(fields[0]), size + int(fields[1])
    if resident > _TOLERATED * size:
        raise RunError(
            f"{format_quantity(resident, 'B', 3)} of {format_quantity(size, 'B', 3)} stayed in memory: the cache is not cold",
            where=paths[0],
            hint="see that no other process reads these files",
        )
