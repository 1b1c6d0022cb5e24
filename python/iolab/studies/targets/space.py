# SPDX-License-Identifier: Apache-2.0
"""How much room a run's files take: of a file system's own books, and of the files themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from iolab.base.errors import RunError
from iolab.hosts.base.host import Host

from .commands import do, interpreter

_SURVEY = """
import json, os, stat, sys
apparent = written = blocks = files = 0
for root, _, names in os.walk(sys.argv[1]):
    for name in names:
        try:
            fd = os.open(os.path.join(root, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                continue
            files, apparent, blocks = files + 1, apparent + info.st_size, blocks + 512 * info.st_blocks
            place = 0
            while place < info.st_size:
                try:
                    begin = os.lseek(fd, place, os.SEEK_DATA)
                    place = os.lseek(fd, begin, os.SEEK_HOLE)
                except OSError:
                    break
                written += place - begin
        finally:
            os.close(fd)
print(json.dumps({"files": files, "apparent_bytes": apparent, "written_bytes": written, "block_bytes": blocks}))
"""
"""Holes, and what was only reserved, are no data (lseek(2), SEEK_DATA)."""


@dataclass(frozen=True)
class Usage:
    """A mounted file system's books in bytes: its size, what is in use, and data in use (as
    stored)."""

    size: int
    used: int
    data: int


def existing(host: Host, path: str) -> str:
    """A path, or the nearest directory above it that is there."""
    while path not in ("", "/") and not host.is_directory(path):
        path = path.rpartition("/")[0]
    return path or "/"


def check_writable(host: Host, path: str) -> None:
    """RunError where a directory may not be written to; test(1) asks the kernel, so that a
    read-only mount counts."""
    if host.which("test") is not None and host.run(["test", "-w", path]).exit_code:
        raise RunError(
            "can't be written to", where=path, hint="name a directory of yours as target.path"
        )


def usage(host: Host, kind: str, point: str) -> Usage:
    """The books of a mounted file system; write everything back first, else they lag.

    btrfs counts metadata and reserves within statfs, so data comes from its own report there.
    """
    answer = do(host, ["stat", "--file-system", "--format", "%b %f %S", point], where=point)
    try:
        blocks, free, size = map(int, answer.stdout.split())
    except ValueError:
        raise RunError(
            f"'stat --file-system' says '{answer.stdout.strip()[:80]}'", where=point
        ) from None
    used = (blocks - free) * size
    if kind != "btrfs":
        return Usage(blocks * size, used, used)
    report = do(host, ["btrfs", "filesystem", "df", "--raw", point], where=point).stdout
    parts = re.findall(r"^Data[^:]*: total=\d+, used=(\d+)", report, re.MULTILINE)
    return Usage(blocks * size, used, sum(map(int, parts)) if parts else used)


def write_back(host: Host, path: str) -> None:
    """Have the file system that holds a path write everything that it owes."""
    do(host, ["sync", "--file-system", path], where=path)


def survey(host: Host, path: str) -> Mapping[str, int]:
    """`files`, `apparent_bytes`, `written_bytes` (without holes) and `block_bytes` (st_blocks) of
    the files below a directory.

    Nothing where the host has no Python to ask with.
    """
    python = interpreter(host)
    if python is None:
        return {}
    done = do(host, [python, "-I", "-S", "-c", _SURVEY, path], where=path)
    try:
        return {str(name): int(value) for name, value in json.loads(done.stdout).items()}
    except (ValueError, TypeError, AttributeError):
        raise RunError("the files can't be counted", where=path) from None
