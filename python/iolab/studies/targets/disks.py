# SPDX-License-Identifier: Apache-2.0
"""The block devices that a target works on: a user's, taken after every check, or loop devices that
iolab makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from iolab.base.errors import RunError
from iolab.base.units import format_quantity
from iolab.hosts.base.host import Host, need, text_or_none
from iolab.hosts.base.options import OptionProblem, Options, Size, problems_error
from iolab.hosts.facts.host_facts import Facts
from iolab.hosts.facts.mounted_devices import device_facts
from iolab.hosts.facts.mounts import mount_of

from .base import NOTHING_ALLOWED, MadeTarget, Permissions
from .commands import do, need_root, pause
from .made import IMAGES, Made, elsewhere, loops_of
from .safety import Device, check_may_overwrite, check_unused, find_device
from .space import existing

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


def _names(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    if (
        not isinstance(names, list | tuple)
        or not names
        or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError('names no device; write "/dev/disk/by-id/..." or a list of such names')
    if any(not name.startswith("/dev/") or any(ord(char) < 33 for char in name) for name in names):
        raise ValueError("names no device; a device's name starts with /dev/")
    if len(set(names)) < len(names):
        raise ValueError("names a device twice; each once")
    return tuple(names)


_TEXTS = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
}


class DiskOptions(Options):
    """Where a target's devices come from."""

    device: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(_names),
        WithJsonSchema(_TEXTS),
        Field(
            description="block device, or a list of them, by stable names such as /dev/disk/by-id/...; what is on them is overwritten, "
            "which needs --destructive"
        ),
    ] = None
    loop: Annotated[
        LoopOptions | None,
        Field(
            description="or files that iolab makes and attaches as loop devices: a table with a size"
        ),
    ] = None

    @model_validator(mode="after")
    def _one_of_both(self) -> DiskOptions:
        if self.device is None and self.loop is None:
            raise problems_error(
                [
                    OptionProblem(
                        ("loop",),
                        "is missing",
                        'loop = {size = "2g"}, or device = "/dev/disk/by-id/..."',
                    )
                ]
            )
        if self.device is not None and self.loop is not None:
            raise problems_error(
                [OptionProblem(("loop",), "cannot be combined with device", "one of both")]
            )
        return self


class Disks:
    """Devices ready to be written to, from `open` to the undoing of the record that they are on."""

    def __init__(
        self,
        options: DiskOptions,
        host: Host,
        scratch: str,
        made: Made,
        permissions: Permissions,
        writes: bool,
    ) -> None:
        self._options, self._host, self._scratch, self._made = options, host, scratch, made
        self._permissions, self._writes = permissions, writes
        self._devices: tuple[Device, ...] = ()
        self.loops: tuple[Loop, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """Device nodes, `/dev/loop0`."""
        return tuple(loop.node for loop in self.loops) or tuple(
            device.node for device in self._devices
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Kernel names."""
        return tuple(loop.name for loop in self.loops) or tuple(
            device.name for device in self._devices
        )

    def destroys(self) -> tuple[str, ...]:
        """The user's devices that would be overwritten."""
        return (self._options.device or ()) if self._writes else ()

    def checks(self) -> list[Callable[[], object]]:
        """What `open` would check, each as something that raises RunError; leave to overwrite is
        taken as given."""
        loop = self._options.loop
        if loop is not None:
            place = (
                existing(self._host, self._scratch) if loop.directory is None else loop.directory
            )
            return [
                lambda: check_fit(self._host, loop),
                lambda: check_loop_room(self._host, place, loop.size * loop.count),
            ]

        def devices() -> None:
            nodes = tuple(find_device(self._host, name) for name in self._options.device or ())
            if self._writes:
                check_may_overwrite(
                    self._host, nodes, replace(self._permissions, destructive=True), self._results
                )

        return [devices]

    def images(self) -> tuple[str, int] | None:
        """Where the loop files would be made, or the nearest directory above, and their bytes."""
        loop = self._options.loop
        return (
            None
            if loop is None
            else (existing(self._host, loop.directory or self._scratch), loop.size * loop.count)
        )

    def open(self, scratch_made: bool) -> None:
        """Check or make the devices. `scratch_made`: whether the target's scratch directory is
        there already."""
        if self._options.loop is not None:
            check_fit(self._host, self._options.loop)
            self.loops = make_loops(
                self._host,
                self._image_directory(self._options.loop, scratch_made),
                self._options.loop,
            )
            return
        self._devices = tuple(find_device(self._host, name) for name in self._options.device or ())
        if self._writes:
            check_may_overwrite(self._host, self._devices, self._permissions, self._results)

    def check_present(self) -> None:
        """RunError if a device is missing, or not the same as at the start."""
        for loop in self.loops:
            check_loop(self._host, loop)
        for device in self._devices:
            # A partition's name may go with the table that is overwritten; the node stays while the
            # device does.
            if not self._host.is_directory(f"/sys/class/block/{device.name}"):
                raise RunError("does not exist", where=device.named)
            node = self._host.resolve(device.named)
            if node not in (device.node, device.named):
                raise RunError(
                    f"is another device ({node}) than at the study's start ({device.node})",
                    where=device.named,
                )

    def check(self) -> None:
        """Like `check_present`, and RunError where somebody else uses a device meanwhile; call it
        before anything is written."""
        self.check_present()
        if self._writes:
            check_unused(self._host, self._devices, self._results)

    def size(self) -> int:
        """Bytes of the smallest device."""
        sizes = [
            text_or_none(self._host, f"/sys/class/block/{name}/size") or "0" for name in self.names
        ]
        return min(int(size) * 512 if size.isdigit() else 0 for size in sizes)

    def keeps_blocks(self) -> bool:
        """Whether the devices' blocks should be kept rather than discarded: loop files would become
        sparse."""
        return self._options.loop is not None and self._options.loop.allocate != "sparse"

    def facts(self) -> Facts:
        """What the devices are."""
        devices = {name: device_facts(self._host, name) for name in self.names}
        facts = Facts(facts={"devices": devices})
        for number, device in enumerate(devices.values()):
            for key in ("scheduler", "model", "logical_block_bytes", "size_bytes"):
                if key in device:
                    facts.fingerprint[f"{key}:{number}"] = str(device[key])
        if self.loops:
            image = self._host.resolve(self.loops[0].image)
            mount = mount_of(text_or_none(self._host, "/proc/self/mountinfo") or "", image)
            how = "direct" if all(loop.direct_io for loop in self.loops) else "buffered"
            allocated = self._options.loop.allocate if self._options.loop else ""
            facts.facts["loops"] = [
                {"node": loop.node, "image": loop.image, "direct_io": loop.direct_io}
                for loop in self.loops
            ]
            facts.fingerprint["loops"] = (
                f"{len(self.loops)} on {mount.kind if mount else 'unknown'}, {how}, {allocated}"
            )
        return facts

    def notes(self) -> tuple[str, ...]:
        """A note where the page cache is used below the devices without a request for it."""
        if (
            self._options.loop is None
            or not self._options.loop.direct_io
            or all(loop.direct_io for loop in self.loops)
        ):
            return ()
        return (
            "the kernel does not do direct I/O on the loop devices' files: the page cache holds them as well",
        )

    @property
    def _results(self) -> str:
        return self._scratch.rpartition("/")[0] or "/"

    def _image_directory(self, options: LoopOptions, scratch_made: bool) -> str:
        """A directory of ours for the images, on record before it is there."""
        if options.directory is None:
            if not scratch_made:
                make_recorded(self._host, self._made, self._scratch)
            return self._scratch
        parent = self._host.resolve(options.directory)
        if not self._host.is_directory(parent):
            raise RunError(
                "is not a directory",
                where=options.directory,
                hint="make it first, or leave target.loop.directory out",
            )
        path = elsewhere(parent)
        make_recorded(self._host, self._made, path)
        return path


def make_recorded(host: Host, made: Made, path: str) -> None:
    """Make a directory, on record beforehand; RunError where it can't be made, and nothing stays on
    record then."""
    try:
        if host.is_directory(path):
            raise RunError(
                "is there already: a study that was killed has left it",
                where=path,
                hint="continue that study with --resume, or name another results directory",
            )
        made.make_directory(host, path)
    except OSError as error:
        raise RunError(
            f"can't be made: {error.strerror or error}",
            where=path,
            hint="name a directory of yours, or call iolab with the rights that it takes",
        ) from None


class DiskTarget(MadeTarget):
    """A target on `Disks`."""

    def __init__(
        self,
        options: DiskOptions,
        host: Host,
        scratch: str,
        permissions: Permissions = NOTHING_ALLOWED,
        writes: bool = True,
    ) -> None:
        self._options, self._host = options, host
        self._made = Made(scratch)
        self._disks = Disks(options, host, scratch, self._made, permissions, writes)

    def images(self) -> tuple[str, int] | None:
        """The loop files."""
        return self._disks.images()

    def devices(self) -> tuple[str, ...]:
        """The devices themselves."""
        return self._disks.names

    def notes(self) -> tuple[str, ...]:
        """What the kernel did not grant."""
        return self._disks.notes()

    def facts(self) -> Facts:
        """The devices, and how they were made."""
        facts = Facts(
            facts={"target": {"kind": self.name, **self._options.model_dump(mode="json")}}
        )
        facts.add(self._disks.facts())
        return facts
