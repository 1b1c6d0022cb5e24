# SPDX-License-Identifier: Apache-2.0
"""Block devices as they are, without a file system, as the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from iolab.base.errors import RunError
from iolab.base.units import format_quantity
from iolab.hosts.base.host import Place, need
from iolab.hosts.base.options import Options

from .base import RunContext
from .cache import CacheOption, drop_caches
from .commands import do, need_root, refusals
from .disks import DiskOptions, DiskTarget


class DeviceOptions(DiskOptions):
    """`[target]` of kind `device`."""

    cache: CacheOption = "warm"


class DeviceTarget(DiskTarget):
    """Raw block devices: a user's, or loop devices over files that iolab makes and removes.

    Contents stay from run to run: a device is never fresh. Several devices form one place, over
    which fio spreads its I/O. A user's device is overwritten only with --destructive; loads that
    only read need no leave.
    """

    name: ClassVar[str] = "device"
    options: ClassVar[type[Options]] = DeviceOptions
    _options: DeviceOptions

    def destroys(self) -> tuple[str, ...]:
        """The user's devices that would be overwritten."""
        return tuple(f"everything on {name}" for name in self._disks.destroys())

    def problems(self, needed_bytes: int) -> tuple[str, ...]:
        """Whether the devices are there, may be had, and are large enough."""
        loop, checks = self._options.loop, self._disks.checks()
        if loop is not None:
            checks.append(lambda: self._check_size(needed_bytes, loop.size * loop.count))
        if self.cold():
            checks.append(lambda: need_root(self._host, "a cold cache"))
        return tuple(refusals(lambda: need(self._host, "blockdev", "util-linux"), *checks))

    def open(self, needed_bytes: int) -> None:
        """Check the devices, or make and attach them; look at their size."""
        if self._options.loop is not None:
            self._check_size(needed_bytes, self._options.loop.size * self._options.loop.count)
        need(self._host, "blockdev", "util-linux")
        self._disks.open(scratch_made=False)
        self._check_size(needed_bytes, self._disks.size() * len(self._disks.nodes))
        if self.cold():
            drop_caches(self._host)

    def begin(self, context: RunContext) -> Place:
        """The devices, checked to exist and to be unused."""
        self._disks.check()
        self._check_size(context.needed_bytes, self._disks.size() * len(self._disks.nodes))
        return Place(":".join(self._disks.nodes), "device")

    def chill(self) -> None:
        """Write back and drop the devices' buffers, and the whole cache."""
        self._flush()
        drop_caches(self._host)

    def observe(self) -> Mapping[str, Any]:
        """Nothing: a bare device keeps no books."""
        return {}

    def end(self, run: str) -> None:
        """Write back what went through the page cache, and drop it."""
        self._flush()

    def _flush(self) -> None:
        for node in self._disks.nodes:
            do(self._host, ["blockdev", "--flushbufs", node], where=node)

    def _check_size(self, needed_bytes: int, size: int) -> None:
        if size < needed_bytes:
            where = ":".join(self._disks.nodes) or "target.loop"
            raise RunError(
                f"the workload asks for {format_quantity(needed_bytes, 'B', 3)}, the device has {format_quantity(size, 'B', 3)} "
                "free",
                where=where,
                hint="lower size or numjobs, or take a larger device",
            )
