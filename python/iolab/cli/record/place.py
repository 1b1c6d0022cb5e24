# SPDX-License-Identifier: Apache-2.0
"""Where `iolab record` records: on this machine, with a probe that keeps root, or on another host,
with a probe there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..base.output import say

if TYPE_CHECKING:
    from iolab.hosts.base.host import Host
    from iolab.hosts.ssh.remote import Elsewhere
    from iolab.recordings.record.devices import RecordedDevice
    from iolab.recordings.record.session import Preparation
    from iolab.recordings.record.settings import Settings

PATIENCE = 45.0
"""Seconds without a frame after which the probe of another host counts as dead; ssh reports a lost
connection after 15."""
BEGIN = 90.0
"""Seconds that a probe on another host has to say hello."""


@dataclass(frozen=True)
class Asked:
    """The request of the command line. `left_out`: processes that are not recorded; `ring`: bytes."""

    settings: Settings
    devices: tuple[str, ...]
    mounts: tuple[str, ...]
    ring: int | None
    tracefs: str | None
    left_out: tuple[int, ...]


@contextmanager
def ready(asked: Asked, host: Host) -> Iterator[Preparation]:
    """Everything checked, root given up; no probe is left in the end."""
    from iolab.hosts.ssh.remote import elsewhere
    from iolab.recordings.record.probe.privilege import become, caller
    from iolab.recordings.record.session import preload

    far = elsewhere(host)
    user = caller(os.environ)

    def give_up_root() -> None:
        if user is not None:
            preload("iolab.cli.study.progress", "iolab.base.units")
            become(user)

    if far is None:
        session = _here(asked, host, user is not None)
    else:
        give_up_root()  # the connection is made with the user's keys
        session = _there(asked, far)
    try:
        if far is None:
            give_up_root()
        yield session
    finally:
        session.launcher.close()


def _here(asked: Asked, host: Host, sudo: bool) -> Preparation:
    from iolab.recordings.record.probe.launch import DirectLauncher, StarterLauncher
    from iolab.recordings.record.probe.privilege import need_root_for
    from iolab.recordings.record.probe.program import probe_path
    from iolab.recordings.record.session import Preparation

    need_root_for(asked.settings.sources)
    devices = _devices(asked, host)
    program = [str(probe_path()), *_arguments(asked, host, devices, (os.getpid(), *asked.left_out))]
    launcher = StarterLauncher(program) if sudo else DirectLauncher(program)
    return Preparation(
        asked.settings,
        launcher,
        {"devices": [device.name for device in devices]},
        pools=_pools(asked, lambda *words: [*words]),
        samba=_samba(asked, lambda *words: [*words]),
        disks=_disks(asked, lambda *words: [*words]),
    )


def _there(asked: Asked, host: Elsewhere) -> Preparation:
    from iolab.recordings.record.probe.program import probe_path
    from iolab.recordings.record.probe.remote import FarLauncher
    from iolab.recordings.record.session import Preparation

    launcher = FarLauncher(host, probe_path())
    try:
        devices: list[RecordedDevice] = []

        def look() -> None:
            devices.extend(_devices(asked, host))
            launcher.arguments = _arguments(asked, host, devices, asked.left_out)

        launcher.reach(look, asked.settings.sources)
    except BaseException:
        launcher.close()
        raise
    settings = replace(asked.settings, patience_s=PATIENCE, begin_s=BEGIN)
    origin = {"devices": [device.name for device in devices], "host": host.name}
    return Preparation(
        settings,
        launcher,
        origin,
        host.clock,
        lambda: launcher.connection,
        _pools(asked, launcher.session),
        _samba(asked, launcher.session),
        _disks(asked, launcher.session),
    )


def _pools(asked: Asked, session: Callable[..., list[str]]) -> Callable[[], Sequence[str]] | None:
    """What runs the shell that asks OpenZFS's pools; None where no counters are recorded.
    `session`: a command as it is run there."""
    from iolab.recordings.record.settings import COUNTERS
    from iolab.recordings.record.sinks.zpool import SCRIPT

    return (lambda: session("sh", "-c", SCRIPT)) if COUNTERS in asked.settings.sources else None


def _samba(asked: Asked, session: Callable[..., list[str]]) -> Callable[[], Sequence[str]] | None:
    """What runs the shell that asks Samba for users and shares; None where no system calls are
    recorded. `session`: a command as it is run there."""
    from iolab.recordings.record.sinks.smb import SCRIPT

    if "syscall" not in asked.settings.sources:
        return None
    return lambda: session("sh", "-c", SCRIPT)


def _disks(asked: Asked, session: Callable[..., list[str]]) -> Callable[[], Sequence[str]] | None:
    """What runs the shell that reads the places of disks; None where no disks are recorded.
    `session`: a command as it is run there."""
    from iolab.recordings.record.settings import COUNTERS
    from iolab.recordings.record.sinks.disks import SCRIPT

    if {"block", COUNTERS}.isdisjoint(asked.settings.sources):
        return None
    return lambda: session("sh", "-c", SCRIPT)


def _devices(asked: Asked, host: Host) -> list[RecordedDevice]:
    from iolab.base.errors import UsageError
    from iolab.recordings.record.devices import devices_behind, find_devices

    for mount in asked.mounts:
        if not host.is_directory(mount):
            raise UsageError(
                f"'{mount}' does not exist on host '{host.name}', or is not a directory",
                where="--fs",
            )
    devices = find_devices(host, asked.devices)
    if not asked.devices and "block" in asked.settings.sources:
        devices = [device for mount in asked.mounts for device in devices_behind(host, mount)]
    for device in devices:
        if device.said:
            say(device.said)
    return devices


def _arguments(
    asked: Asked, host: Host, devices: Sequence[RecordedDevice], left_out: Sequence[int]
) -> list[str]:
    from iolab.recordings.record.probe.program import probe_arguments

    sources = asked.settings.sources
    return probe_arguments(
        sources,
        devices=[device.number for device in devices],
        mounts=[host.resolve(mount) for mount in asked.mounts] if "syscall" in sources else [],
        exclude=left_out,
        ring_kib=None if asked.ring is None else max(asked.ring // 1024, 4),
        tracefs=asked.tracefs,
    )
