# SPDX-License-Identifier: Apache-2.0
"""Starting the host of a study with another kernel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from iolab.base.errors import RunError
from iolab.hosts.base.host import Host
from iolab.hosts.kinds.rig import OWN_KERNEL, RigHost, kernel_names, rig_home, running_machine
from iolab.hosts.rigs.machine import restart

UNSUITABLE = "only a machine of 'iolab rig up' can be started with another kernel"


@runtime_checkable
class KernelHost(Protocol):
    """What such a host has in addition to `Host`. RunError where the host is lost."""

    def kernel(self) -> str | None:
        """The name of the kernel that runs; None where it is unknown."""

    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels that it can be started with."""

    def boot(self, kernel: str) -> None:
        """Start it again with a kernel, and wait until it answers. Connections are closed."""


class RigKernels:
    """The kernels of a machine of a rig."""

    def __init__(self, host: RigHost) -> None:
        self._host = host

    def kernel(self) -> str | None:
        """The name of the kernel that runs."""
        return running_machine(self._host.machine).kernel

    def kernels(self) -> tuple[str, ...]:
        """The kernel of the recipe, and those that were added."""
        rig = running_machine(self._host.machine).rig
        return (OWN_KERNEL, *kernel_names(rig_home(rig)))

    def boot(self, kernel: str) -> None:
        """Restart the machine with a kernel."""
        self._host.close()
        restart(self._host.machine, kernel)
        self._host.clock.renew()


def kernel_host(host: Host) -> KernelHost:
    """The host with its kernels; RunError if it has none."""
    if isinstance(host, RigHost):
        return RigKernels(host)
    if not isinstance(host, KernelHost):
        raise RunError(
            f"names a kernel, and {UNSUITABLE}",
            where="target.kernel",
            hint="start one, and use --host rig:NAME; elsewhere restart the host by [session] begin",
        )
    return host


def check_kernels(host: Host, names: Iterable[str]) -> None:
    """RunError where a host can't be started with one of these kernels, or has no
    kernels."""
    for name in names:
        kernels = kernel_host(host).kernels()
        if name not in kernels:
            raise RunError(
                f"'{host.name}' has no kernel '{name}'",
                where="target.kernel",
                hint=f"it has: {', '.join(kernels)}; 'iolab rig build --kernel {name}=PACKAGE' adds it",
            )
