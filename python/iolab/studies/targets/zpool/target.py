# SPDX-License-Identifier: Apache-2.0
"""A ZFS pool made for the study as the target: laid out over a user's devices, under a chosen build
and its parameters."""

from __future__ import annotations

import contextlib
import fnmatch
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from iolab.base.errors import RunError
from iolab.base.units import format_quantity
from iolab.hosts.base.host import Host, Place, need
from iolab.hosts.base.options import Options
from iolab.hosts.facts.host_facts import Facts
from iolab.hosts.facts.mounted_devices import device_facts

from ..base import NOTHING_ALLOWED, MadeTarget, Permissions, RunContext
from ..cache import drop_caches
from ..commands import do, need_root, refusals, try_command
from ..disks import make_recorded
from ..made import Made
from ..safety import Device, check_may_overwrite, check_unused, find_device
from ..space import survey
from .modules import (
    ModuleState,
    as_wanted,
    build_record,
    build_sources,
    builds,
    check_build,
    is_loaded,
    load,
    loaded_by_iolab,
    loaded_modules,
    parameters,
    restore,
    state,
    version,
)
from .options import ZpoolOptions
from .pool import PREFIX, create, destroy, number, pools, properties_of, ratio, state_of, write_out

RESERVE = 0.05
"""Share on top of what a workload asks for: ZFS keeps a part of every pool to itself."""


class ZpoolTarget(MadeTarget):
    """A pool with a name of iolab, created as often as `fresh` says; every run gets a new file
    system in it.

    Other targets of the study (another build, another layout) may use the same modules and devices.
    The pool is therefore created just before a run that needs it, and a conflicting pool of the
    study is destroyed then.
    """

    name: ClassVar[str] = "zpool"
    options: ClassVar[type[Options]] = ZpoolOptions
    _options: ZpoolOptions

    def __init__(
        self,
        options: ZpoolOptions,
        host: Host,
        scratch: str,
        permissions: Permissions = NOTHING_ALLOWED,
        writes: bool = True,
    ) -> None:
        self._options, self._host = options, host
        self._scratch, self._permissions = scratch, permissions
        self._layout = options.to_layout()
        self._made = Made(scratch)
        self._devices: tuple[Device, ...] = ()
        self._pool = ""
        self._serves: str | None = None
        self._run: str | None = None
        self._before = ModuleState(False, None, True)
        self._changed = self._exported = False
        self._delays: list[str] = []
        self._expected: dict[str, str] | None = None

    def destroys(self) -> tuple[str, ...]:
        """The user's devices that would be overwritten."""
        named = self._options.devices or tuple(
            word for word in self._layout.literal if word.startswith("/")
        )
        return tuple(
            f"everything on {name} (as far as the layout takes them), by zpool create"
            for name in named
        )

    def problems(self, needed_bytes: int) -> tuple[str, ...]:
        """Whether there are leave, tools, the build and the devices."""

        def devices() -> None:
            nodes = tuple(find_device(self._host, name) for name in self._device_names())
            check_may_overwrite(
                self._host,
                nodes,
                replace(self._permissions, destructive=True),
                self._scratch.rpartition("/")[0] or "/",
            )

        return tuple(
            refusals(
                lambda: need_root(self._host, "making a pool"),
                lambda: need(self._host, "zpool", "zfsutils-linux"),
                lambda: need(self._host, "zfs", "zfsutils-linux"),
                lambda: check_build(self._host, self._options.build),
                devices,
            )
        )

    def open(self, needed_bytes: int) -> None:
        """Check tools, leave, devices and builds. No pool is made yet."""
        need_root(self._host, "making a pool")
        need(self._host, "zpool", "zfsutils-linux")
        need(self._host, "zfs", "zfsutils-linux")
        if self._options.delay is not None:
            need(self._host, "zinject", "zfs-test")
        check_build(self._host, self._options.build)
        self._devices = tuple(find_device(self._host, name) for name in self._device_names())
        nodes: dict[str, str] = {}
        for device in self._devices:
            if device.node in nodes:
                raise RunError(
                    f"names the same device as {nodes[device.node]}",
                    where=device.named,
                    hint="name each once",
                )
            nodes[device.node] = device.named
        check_may_overwrite(
            self._host, self._devices, self._permissions, self._scratch.rpartition("/")[0] or "/"
        )
        self._check_room(needed_bytes, self._size(), "target.devices")
        make_recorded(self._host, self._made, self._scratch)
        self._before = state(self._host)
        if not self._before.is_loaded:
            self._load()

    def begin(self, context: RunContext) -> Place:
        """A fresh file system, in a fresh pool where `fresh` says so or another target of the study
        has used devices or modules since."""
        serves = context.served_by(self._options.fresh)
        if self._exported and self._serves == serves:
            self._bring_back()
        elif self._serves != serves or self._pool not in pools(self._host):
            self._make()
            self._serves = serves
        dataset, path = f"{self._pool}/{context.run}", f"{self._point}/{context.run}"
        settings = properties_of(self._host, "zfs", self._pool)
        self._check_room(context.needed_bytes, number(settings, "available") or 0, self._pool)
        do(self._host, ["zfs", "create", dataset], where=dataset)
        self._run = context.run
        write_out(self._host, self._pool)
        self._delay()
        return Place(path)

    def chill(self) -> None:
        """Export and import the pool: nothing of it stays in the ARC; then drop what the page cache
        holds."""
        self._export()
        drop_caches(self._host)
        self._import()
        self._delay()

    def observe(self) -> Mapping[str, Any]:
        """What the run's files take by ZFS's own books, after everything was written; the pool, its
        properties and its parameters."""
        if self._run is None or self._pool not in pools(self._host):
            return {}
        dataset = f"{self._pool}/{self._run}"
        write_out(self._host, self._pool)
        books = properties_of(self._host, "zfs", dataset)
        pool = state_of(self._host, self._pool)
        size, used_bytes = (
            number(pool["properties"], "size"),
            number(pool["properties"], "allocated"),
        )
        facts: dict[str, Any] = {
            "kind": "zfs",
            "taken_bytes": number(books, "used"),
            "logical_bytes": number(books, "logicalused"),
            "compressratio": ratio(books, "compressratio"),
            "size_bytes": size,
            "fill": used_bytes / size if size and used_bytes is not None else None,
            "version": version(self._host),
            "build": self._build(),
            "pool": pool,
            "dataset": books,
            "module_parameters": parameters(self._host),
        }
        facts.update(survey(self._host, f"{self._point}/{self._run}"))
        return {key: value for key, value in facts.items() if value is not None}

    def _build(self) -> dict[str, Any]:
        """The requested build, its files, and what is loaded: the gate of builds compares
        them."""
        build = self._options.build
        if build is not None and self._expected is None:
            self._expected = build_sources(self._host, build)
        facts = {
            "asked": build,
            "loaded": next((build.branch for build in builds(self._host) if build.loaded), None),
            "modules": loaded_modules(self._host),
            "expected": self._expected,
            "record": build_record(self._host, build) if build else {},
        }
        return {key: value for key, value in facts.items() if value}

    def end(self, run: str) -> None:
        """Destroy the run's file system, and let the pool free what it held, before the next
        run."""
        self._run = None
        if self._pool not in pools(self._host):
            return
        self._undelay()
        dataset = f"{self._pool}/{run}"
        do(self._host, ["zfs", "destroy", "-r", dataset], where=dataset)
        write_out(self._host, self._pool)
        try_command(
            self._host, ["zpool", "wait", "-t", "free", self._pool]
        )  # OpenZFS 2.0 and later

    def release(self, again: bool) -> None:
        """Export the pool where a later run shall find it (`fresh` is block or study), else destroy
        it: commands may load modules then."""
        if not self._pool or self._pool not in pools(self._host):
            return
        self._undelay()
        if again and self._options.fresh in ("block", "study"):
            self._export()
            self._exported = True
        else:
            destroy(self._host, self._pool)
            self._serves = None

    def close(self) -> None:
        """Destroy the pool, wipe its labels, and have the modules as they were. RunError if other
        pools are imported, or the modules are used otherwise: they stay loaded."""
        with contextlib.suppress(RunError, OSError):
            self._undelay()
        remaining = self._made.undo(self._host)
        if self._changed and not remaining:
            self._changed = False
            restore(self._host, self._before)

    def devices(self) -> tuple[str, ...]:
        """The disks that the layout takes."""
        return tuple(device.name for device in self._devices)

    def notes(self) -> tuple[str, ...]:
        """What changes on the host meanwhile."""
        if self._options.build or self._options.module_parameters or self._options.reload:
            return ("the modules of OpenZFS are reloaded when a pool is made",)
        return ()

    def facts(self) -> Facts:
        """The layout with its settings, the devices, and what OpenZFS there is."""
        options = self._options
        facts = Facts(facts={"target": {"kind": self.name, **options.model_dump(mode="json")}})
        build_list = builds(self._host)
        loaded_version = version(self._host)
        facts.facts["openzfs"] = {
            "loaded": loaded_version,
            "builds": {build.branch: build.version for build in build_list},
        }
        version_of_build = next(
            (build.version for build in build_list if build.branch == options.build), ""
        )
        if version_of_build or (loaded_version and options.build is None):
            facts.fingerprint["openzfs"] = version_of_build or loaded_version
        words = [options.layout if isinstance(options.layout, str) else " ".join(options.layout)]
        words += [
            f"{key}={value}"
            for table in (options.pool, options.properties)
            for key, value in sorted(table.items())
        ]
        facts.fingerprint["zpool"] = " ".join(words)
        if options.module_parameters:
            facts.fingerprint["zfs parameters"] = " ".join(
                f"{key}={value}" for key, value in sorted(options.module_parameters.items())
            )
        devices = {device.name: device_facts(self._host, device.name) for device in self._devices}
        facts.facts["devices"] = devices
        for place, disk in enumerate(devices.values()):
            for key in ("scheduler", "model", "logical_block_bytes", "size_bytes"):
                if key in disk:
                    facts.fingerprint[f"{key}:{place}"] = str(disk[key])
        return facts

    @property
    def _point(self) -> str:
        return f"{self._scratch}/{self._pool}"

    def _make(self) -> None:
        """A new pool; every other of this study goes first, for it may hold the devices or the
        modules."""
        results = self._scratch.rpartition("/")[0]
        for name in pools(self._host):
            if name.startswith(PREFIX) and self._is_ours(name, results):
                destroy(self._host, name)
        self._exported = False
        if self._options.reload or not self._as_wanted():
            self._load()
        check_unused(self._host, self._devices, results or "/")
        self._pool = self._made.note_pool([device.named for device in self._devices])
        create(
            self._host,
            self._pool,
            self._point,
            self._layout.words([device.named for device in self._devices]),
            self._options.pool,
            self._options.properties,
            force=True,
        )

    def _is_ours(self, name: str, results: str) -> bool:
        point = properties_of(self._host, "zfs", name).get("mountpoint", "")
        return name == self._pool or point.startswith(f"{results}/")

    def _as_wanted(self) -> bool:
        return as_wanted(
            self._host, self._options.build, self._before.build, self._options.module_parameters
        )

    def _load(self) -> None:
        """The build that the study names; without one the build that a set-up loaded, or that was
        loaded when the study began."""
        is_known = loaded_by_iolab(self._host) or not is_loaded(self._host)
        before = self._before.build if is_known else None
        load(self._host, self._options.build or before, self._options.module_parameters)
        self._changed = True

    def _export(self) -> None:
        write_out(self._host, self._pool)
        do(self._host, ["zpool", "export", self._pool], where=self._pool)

    def _import(self) -> None:
        places = sorted({device.named.rpartition("/")[0] for device in self._devices})
        do(
            self._host,
            [
                "zpool",
                "import",
                *(word for place in places for word in ("-d", place)),
                "-o",
                "cachefile=none",
                self._pool,
            ],
            where=self._pool,
        )

    def _bring_back(self) -> None:
        """Import the pool that `release` exported, under the modules that the target asks for."""
        if not self._as_wanted():
            self._load()
        self._import()
        self._exported = False

    def _delay(self) -> None:
        delay = self._options.zinject_delay()
        if delay is not None:
            self._undelay()
            for device in self._devices:
                said = do(
                    self._host,
                    ["zinject", "-d", device.named, "-D", delay, self._pool],
                    where=device.named,
                ).stdout
                self._delays += re.findall(r"handler (\d+)", said)

    def _undelay(self) -> None:
        while self._delays:
            do(self._host, ["zinject", "-c", self._delays[-1]], where=self._pool)
            self._delays.pop()

    def _device_names(self) -> list[str]:
        """As many of the named devices as the layout takes, in natural order; RunError where they
        are too few."""
        if self._layout.literal:
            return [word for word in self._layout.literal if word.startswith("/")]
        paths: list[str] = []
        for pattern in self._options.devices:
            directory, _, name = pattern.rpartition("/")
            if not re.search(r"[*?\[]", name):
                paths.append(pattern)
                continue
            try:
                names = fnmatch.filter(self._host.list_directory(directory), name)
            except OSError as error:
                raise RunError(
                    f"can't be listed: {error.strerror or error}", where=directory
                ) from None
            paths += [
                f"{directory}/{disk}"
                for disk in sorted(names, key=_natural)
                if not re.search(r"-part\d+$", disk)
            ]
        paths = list(dict.fromkeys(paths))
        if len(paths) < self._layout.devices:
            raise RunError(
                f"the layout takes {self._layout.devices} devices, {' '.join(self._options.devices)} are {len(paths)}",
                where="target.devices",
                hint="name more devices, or take a smaller layout",
            )
        return paths[: self._layout.devices]

    def _size(self) -> int:
        """An upper bound of what a pool over the devices can hold."""
        return sum(
            int(device_facts(self._host, device.name).get("size_bytes", 0))
            for device in self._devices
        )

    def _check_room(self, needed_bytes: int, free: int, where: str) -> None:
        if free < round(needed_bytes * (1 + RESERVE)):
            needed_text, free_text = (
                format_quantity(needed_bytes, "B", 3),
                format_quantity(free, "B", 3),
            )
            raise RunError(
                f"the workload asks for {needed_text} (size x jobs), the pool has {free_text} free",
                where=where,
                hint="lower size or numjobs, or give the pool more or larger devices",
            )


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]
