# SPDX-License-Identifier: Apache-2.0
"""Block devices that iolab makes itself: files attached as loop devices, with direct I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, field_validator

from ..errors import RunError
from ..hosts.base.host import Host, need, text_or_none
from ..hosts.base.options import Options, Size
from ..units import format_quantity
from .commands import do, need_root, pause
from .made import IMAGES, loops_of

_TRIES = 20


class LoopOptions(Options):
    """`loop = {...}`: files that iolab makes and attaches as loop devices."""

    size: Annotated[Size, Field(gt=0, description="of each file, such as '2g'")]
    count: Annotated[int, Field(ge=1, le=64, description="how many devices")] = 1
    directory: Annotated[
        str | None, Field(description="where the files are made; default: the results directory")
    ] = None
    allocate: Annotated[
        Literal["written", "reserved", "sparse"],
        Field(
            description="written: full of zeros beforehand, so that no run pays for the file's blocks; reserved: blocks reserved; "
            "sparse: neither"
        ),
    ] = "written"
    direct_io: Annotated[
        bool,
        Field(
            description="bypass the page cache below the device, which would hold everything twice; whether the kernel did so is "
            "recorded"
        ),
    ] = True
    sector_size: Annotated[
        Literal[512, 1024, 2048, 4096], Field(description="logical sector of the devices, bytes")
    ] = 512

    @field_validator("size")
    @classmethod
    def _whole_pages(cls, size: int) -> int:
        if size % 4096:
            raise ValueError("is not a multiple of 4k")
        return size


@dataclass(frozen=True)
class Loop:
    """A loop device: its node, its backing file, whether the kernel does direct I/O on that, and
    its size in bytes."""

    node: str
    image: str
    direct_io: bool
    size: int

    @property
    def name(self) -> str:
        """Kernel name."""
        return self.node.rpartition("/")[2]


def check_fit(host: Host, options: LoopOptions) -> None:
    """RunError where loop devices can't be made at all: no root, no tool."""
    need_root(host, "attaching loop devices")
    need(host, "losetup", "mount")


def make_loops(host: Host, directory: str, options: LoopOptions) -> tuple[Loop, ...]:
    """Make the files in a directory that is on record (`made.Made`), and attach them.

    The caller removes them through that record, also after an error here.
    """
    check_loop_room(host, directory, options.size * options.count)
    images = [f"{directory}/{IMAGES}{number}.img" for number in range(options.count)]
    for image in images:
        _make_image(host, image, options)
    return tuple(_attach(host, image, options) for image in images)


def check_loop_room(host: Host, directory: str, whole: int) -> None:
    """RunError where the files that are to be made in a directory don't fit; holes count as well,
    for runs fill them."""
    if not host.is_directory(directory):
        raise RunError(
            "is not a directory",
            where=directory,
            hint="make it first, or leave target.loop.directory out",
        )
    free = host.free_bytes(directory)
    if free < whole:
        raise RunError(
            f"loop files of {format_quantity(whole, 'B', 3)} are requested, {format_quantity(free, 'B', 3)} is free",
            where=directory,
            hint="lower target.loop.size or count, or name a roomier target.loop.directory",
        )


def check_loop(host: Host, loop: Loop) -> None:
    """RunError where the device is no longer there, or shrank."""
    backing = text_or_none(host, f"/sys/class/block/{loop.name}/loop/backing_file")
    if backing != host.resolve(loop.image):
        raise RunError(
            "the loop device no longer exists: something else detached it", where=loop.node
        )
    if _size(host, loop.name) != loop.size:
        raise RunError(
            "the loop device has lost its size: something cut its backing file", where=loop.image
        )


def _make_image(host: Host, image: str, options: LoopOptions) -> None:
    size = str(options.size)
    hint = "name another target.loop.directory"
    if options.allocate == "sparse":
        do(host, ["truncate", "--size", size, image], where=image, hint=hint)
    elif options.allocate == "reserved":
        do(
            host,
            ["fallocate", "--length", size, image],
            where=image,
            hint='allocate = "sparse" does without a reservation',
        )
    else:
        write = [
            "dd",
            "if=/dev/zero",
            f"of={image}",
            "bs=4M",
            "iflag=count_bytes",
            f"count={size}",
            "conv=fsync",
            "status=none",
        ]
        # Around the page cache where the file system allows that (tmpfs doesn't): zeros in memory
        # serve nobody.
        if host.run([*write, "oflag=direct"], timeout=_patience(options.size)).exit_code:
            do(host, write, where=image, hint=hint, timeout=_patience(options.size))


def _patience(size: int) -> float:
    return 60 + size / 10e6


def _attach(host: Host, image: str, options: LoopOptions) -> Loop:
    attach = ["losetup", "--find", "--show", f"--sector-size={options.sector_size}"]
    wishes = [[f"--direct-io={'on' if options.direct_io else 'off'}"], []]
    said = ""
    for attempt in range(_TRIES):
        # Another study may take the free device between finding and attaching; a kernel may refuse
        # direct I/O outright.
        done = host.run([*attach, *wishes[min(attempt // (_TRIES // 2), 1)], image])
        if done.exit_code == 0 and done.stdout.strip().startswith("/dev/"):
            node = done.stdout.strip()
            name = node.rpartition("/")[2]
            return Loop(
                node,
                image,
                text_or_none(host, f"/sys/class/block/{name}/loop/dio") == "1",
                _size(host, name),
            )
        said = done.stderr.strip() or f"exit code {done.exit_code}"
        for node in loops_of(host, image):
            host.run(["losetup", "--detach", node])
        pause(host, 0.05)
    raise RunError(
        f"no loop device could be attached: {said[:200]}",
        where=image,
        hint="check that /dev/loop-control exists and 'losetup --find' works",
    )


def _size(host: Host, name: str) -> int:
    text = text_or_none(host, f"/sys/class/block/{name}/size") or "0"
    return int(text) * 512 if text.isdigit() else 0
