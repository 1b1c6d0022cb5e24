# SPDX-License-Identifier: Apache-2.0
"""A running rig as a host: a virtual machine of this one, reached by ssh on its loopback port with
the rig's own key."""

from __future__ import annotations

import json
import os
import pwd
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from iolab.base.errors import RunError

from ..base.options import Options
from ..base.orphans import start_ticks
from ..ssh.channel import Destination
from ..ssh.host import SshHost, SshOptions

STATE_FILE = "state.json"
MACHINES = "machines"
KERNELS, KERNEL_FILE = "kernels", "kernel.json"
"""Kernels that were added to a rig: `kernels/NAME/root`, with what it is in `kernel.json`."""
OWN_KERNEL = "default"
"""Name of the kernel of the recipe."""


@dataclass(frozen=True)
class RigState:
    """A machine that was started.

    Attributes:
        rig, name: of the recipe, and of the machine. pid, started: of qemu; see
        `hosts.base.Process`. port: of ssh on 127.0.0.1.
        accelerator: `kvm`, `tcg`, or `icount` (`tcg` with a clock that counts instructions). begun_ns: when it was started, realtime.
        disks, disk_bytes, disk_iops, disk_bytes_per_s: of its data disks. Limits are None for none.
        fast_disks: further disks without a limit. memory_bytes, cpus: its own.
        version: of the image it was started from.
        network, address: of its private network, empty without one.
        link_bits_per_s, link_delay_s: of its link there, in each direction. None or 0 for no limit.
        can_reboot: whether a reboot starts it again. Otherwise it ends.
        kernel: the name of the kernel that it runs.
    """

    rig: str
    name: str
    pid: int
    started: int
    port: int
    accelerator: str
    begun_ns: int
    disks: int
    disk_bytes: int
    disk_iops: int | None
    disk_bytes_per_s: int | None
    memory_bytes: int
    cpus: int
    version: str
    fast_disks: int = 0
    network: str = ""
    address: str = ""
    link_bits_per_s: int | None = None
    link_delay_s: float = 0.0
    can_reboot: bool = False
    kernel: str = OWN_KERNEL

    @property
    def running(self) -> bool:
        """Whether its qemu still runs: the pid alone could be another process by now."""
        return start_ticks(self.pid) == self.started

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "running": self.running}


class RigOptions(Options):
    """Which machine."""

    name: Annotated[
        str,
        Field(
            description="name of a machine that 'iolab rig up' started; by default it bears its rig's"
        ),
    ] = "openzfs"


class RigHost(SshHost):
    """A machine that `iolab rig up` started. `--host rig:NAME`."""

    name = "rig"
    options: ClassVar[type[Options]] = RigOptions

    def __init__(self, options: RigOptions) -> None:
        self.machine = options.name
        super().__init__(SshOptions(address="root@127.0.0.1", name=f"rig:{options.name}"))
        self.words = self.name

    def connection_facts(self) -> dict[str, Any]:
        """Facts of ssh, and the machine itself: its disks' limits, and whether its CPU is
        emulated."""
        state = running_machine(self.machine)
        kept = {
            key: value
            for key, value in state.as_data().items()
            if key not in ("pid", "started", "port", "running", "begun_ns")
        }
        facts = super().connection_facts()
        facts["connection"]["kind"] = "rig"
        return {**facts, "rig": kept}

    def destination(self) -> Destination:
        state = running_machine(self.machine)
        return Destination(
            self.name,
            "root@127.0.0.1",
            state.port,
            rig_home(state.rig) / "id_ed25519",
            machine_home(state.rig, state.name) / "known_hosts",
        )


def cache_home() -> Path:
    """Where rigs are kept: `iolab/rigs` in the user's cache directory; under sudo, of the user who
    called it."""
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        return Path(pwd.getpwuid(int(os.environ["SUDO_UID"])).pw_dir) / ".cache" / "iolab" / "rigs"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (
        (
            Path(base)
            if base.startswith("/")
            else Path(os.environ.get("HOME") or Path.home()) / ".cache"
        )
        / "iolab"
        / "rigs"
    )


def rig_home(rig: str) -> Path:
    """Where a rig is kept."""
    return cache_home() / rig


def machine_home(rig: str, name: str) -> Path:
    """Where a machine's disks and state are."""
    return rig_home(rig) / MACHINES / name


def kernel_names(home: Path) -> list[str]:
    """Names of the complete kernels that were added to a rig."""
    return [
        path.parent.parent.name for path in sorted((home / KERNELS).glob(f"*/root/{KERNEL_FILE}"))
    ]


def machines() -> list[RigState]:
    """Every machine that was started and not taken down, those that ended by themselves too, by
    name."""
    machine_list = []
    for path in sorted(cache_home().glob(f"*/{MACHINES}/*/{STATE_FILE}")):
        try:
            machine_list.append(RigState(**json.loads(path.read_text("utf-8"))))
        except (OSError, ValueError, TypeError):
            continue  # half written by a kill, or of another iolab: `rig down` removes it by its directory
    return machine_list


def running_machine(name: str) -> RigState:
    """The running machine of that name; RunError with the way to have one."""
    running_machines = machines()
    state = next((machine for machine in running_machines if machine.name == name), None)
    if state is None:
        names = ", ".join(machine.name for machine in running_machines if machine.running)
        raise RunError(
            f"no rig '{name}' is up" + (f"; there are: {names}" if names else ""),
            where=f"rig:{name}",
            hint=f"start it: iolab rig up {name} --disks 8",
        )
    if not state.running:
        raise RunError(
            "has ended unexpectedly",
            where=f"rig:{name}",
            hint=f"{machine_home(state.rig, name) / 'console.log'} may say why; 'iolab rig up' starts it again",
        )
    return state
