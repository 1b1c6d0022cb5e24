# SPDX-License-Identifier: Apache-2.0
"""Private networks of rigs: an Ethernet hub for each, and the addresses of its machines.

The hub is a qemu without a guest. Its ports are sockets in a directory of this user, so that no other
user and no other network is reachable. Machines keep their own first network card, which is for ssh.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from iolab.base.errors import RunError, UsageError

from ..base.host import Host
from ..base.orphans import start_ticks
from ..kinds.rig import RigState, cache_home, machines
from .process import end_process

MOST_MACHINES = 16
_PREFIX = "192.168.77."
_STATE = "network.json"
_START_SECONDS = 20.0
_SET_UP_SECONDS = 600.0
"""For the commands in a machine; an emulated one on a busy host takes minutes."""
_MOST_PATH = 107
"""Bytes of a path of a unix socket, see unix(7)."""
_QUEUE_PACKETS = 10_000
"""Of a link with a delay or a rate: enough that TCP fills it, and no packet is dropped."""

_UNIT = "\n".join(
    (
        "[Unit]",
        "Description=Private network",
        "After=local-fs.target",
        "Before=network.target nfs-server.service",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        "TimeoutStartSec=300",
        "ExecStart=/usr/local/sbin/rig-private-network",
        "[Install]",
        "WantedBy=multi-user.target",
    )
)
_CONFIGURE = "\n".join(
    (
        "set -e",
        'hostname "$1"; echo "$1" > /etc/hostname',
        "script=/usr/local/sbin/rig-private-network",
        'printf "#!/bin/sh\\nset -e\\n%s\\n" "$2" > $script; chmod 755 $script',
        'printf "%s\\n" "$3" > /etc/systemd/system/rig-private-network.service',
        "systemctl daemon-reload",
        "systemctl enable --quiet --now rig-private-network",
    )
)
_HOSTS = "printf '127.0.0.1 localhost\\n%s' \"$1\" > /etc/hosts.new && mv /etc/hosts.new /etc/hosts"


@dataclass(frozen=True)
class Link:
    """A machine's link to a private network.

    Attributes:
        network: its name. bits_per_s: rate in each direction, None for no limit. delay_s: added to
        each packet in each direction.
    """

    network: str
    bits_per_s: int | None = None
    delay_s: float = 0.0


@dataclass(frozen=True)
class NetworkState:
    """A network that was started. pid, started: of its hub; see `hosts.base.Process`."""

    name: str
    pid: int
    started: int

    @property
    def running(self) -> bool:
        """Whether its hub still runs."""
        return start_ticks(self.pid) == self.started

    def members(self) -> list[RigState]:
        """Its machines, by address; also those that ended unexpectedly."""
        states = [state for state in machines() if state.network == self.name]
        return sorted(states, key=lambda state: _port(state.address))

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        names = [state.name for state in self.members()]
        return {**asdict(self), "running": self.running, "machines": names}


def networks() -> list[NetworkState]:
    """Every network, by name."""
    states = []
    for path in sorted(_home().glob(f"*/{_STATE}")):
        try:
            states.append(NetworkState(**json.loads(path.read_text("utf-8"))))
        except (OSError, ValueError, TypeError):
            continue
    return states


def find_network(name: str) -> NetworkState:
    """The network of that name; UsageError with the existing ones."""
    states = networks()
    state = next((state for state in states if state.name == name), None)
    if state is None:
        names = ", ".join(state.name for state in states)
        raise UsageError(
            f"there is no network '{name}'",
            where="--network",
            hint=f"there are: {names}" if names else "'iolab rig up --network NAME' starts one",
        )
    return state


@contextlib.contextmanager
def join(name: str, count: int, program: str) -> Iterator[list[str]]:
    """Addresses for further machines of a network, which is started if it does not run. They are
    reserved until the block ends; the machines' states must be written by then.

    Raises RunError where the hub cannot start, or has ended under its machines; UsageError where the
    network is full.
    """
    with _lock_networks():
        state = next((state for state in networks() if state.name == name), None)
        members = state.members() if state else []
        if state is None or not state.running:
            if any(member.running for member in members):
                raise RunError(
                    f"the network '{name}' has ended, and its machines are still up",
                    where="--network",
                    hint=f"take them down: iolab rig down --network {name}",
                )
            _start(name, program)
        used = {_port(member.address) for member in members if member.running}
        free = [port for port in range(1, MOST_MACHINES + 1) if port not in used]
        if len(free) < count:
            raise UsageError(
                f"the network '{name}' has {len(used)} of at most {MOST_MACHINES} machines",
                where="--network",
            )
        try:
            yield [f"{_PREFIX}{port}" for port in free[:count]]
        except BaseException:
            _end_unused()
            raise


def end_unused() -> None:
    """End networks without machines."""
    if networks():
        with _lock_networks():
            _end_unused()


def card(link: Link, address: str) -> list[str]:
    """qemu's words for a machine's network card."""
    port = _port(address)
    # the guest sees the speed of its link, as that of a real card; it is 1 Mbit/s at least
    speed = f",speed={max(1, round(link.bits_per_s / 1e6))},duplex=full" if link.bits_per_s else ""
    return [
        "-netdev",
        f"stream,id=private,server=off,addr.type=unix,addr.path={_escape(_socket(link.network, port))}",
        "-device",
        f"virtio-net-pci,netdev=private,romfile=,mac=52:54:00:77:00:{port:02x}{speed}",
    ]


def configure(host: Host, state: RigState) -> None:
    """Give a machine its name, address and link; they remain after a reboot. RunError where a
    command of it fails."""
    _run(host, state, [_CONFIGURE, state.name, _script(state), _UNIT])


def write_names(host: Host, state: RigState, members: Sequence[RigState]) -> None:
    """Write the names of a network's machines to /etc/hosts of one of them."""
    lines = "".join(f"{member.address} {member.name}\n" for member in members)
    _run(host, state, [_HOSTS, lines])


def _run(host: Host, state: RigState, words: Sequence[str]) -> None:
    done = host.run(["sh", "-c", words[0], "sh", *words[1:]], timeout=_SET_UP_SECONDS)
    if done.exit_code:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.exit_code}"]
        raise RunError(
            f"the network '{state.network}' can't be set up: {lines[-1][:200]}",
            where=f"rig:{state.name}",
        )


def _script(state: RigState) -> str:
    """What sets the card up, at each boot. The limits hold for both directions: what arrives passes
    an intermediate device (ifb), as netem delays only what leaves."""
    lines = [
        "until [ -d /sys/class/net/eth1 ]; do sleep 0.2; done",
        "echo 1 > /proc/sys/net/ipv6/conf/eth1/disable_ipv6",
        f"ip address replace {state.address}/24 dev eth1",
        "ip link set eth1 up",
    ]
    limits = []
    if state.link_delay_s:
        limits.append(f"delay {round(state.link_delay_s * 1e6)}us")
    if state.link_bits_per_s:
        limits.append(f"rate {state.link_bits_per_s}bit")
    if limits:
        netem = f"netem limit {_QUEUE_PACKETS} {' '.join(limits)}"
        lines += [
            "modprobe ifb numifbs=0",
            "ip link add ifb-eth1 type ifb",
            "ip link set ifb-eth1 up",
            f"tc qdisc add dev eth1 root {netem}",
            f"tc qdisc add dev ifb-eth1 root {netem}",
            "tc qdisc add dev eth1 handle ffff: ingress",
            "tc filter add dev eth1 parent ffff: matchall action mirred egress redirect dev ifb-eth1",
        ]
    return "\n".join(lines)


def _start(name: str, program: str) -> None:
    home = _home() / name
    longest = _socket(name, MOST_MACHINES)
    if len(os.fsencode(longest)) > _MOST_PATH:
        raise UsageError(
            f"the path of its sockets is too long: {longest}",
            where="--network",
            hint="take a shorter name, or a shorter XDG_CACHE_HOME",
        )
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700)
    words = [program, "-machine", "none", "-nodefaults", "-no-user-config", "-display", "none"]
    words += ["-name", f"iolab-network-{name}"]
    for port in range(1, MOST_MACHINES + 1):
        words += [
            "-netdev",
            f"stream,id=port{port},server=on,addr.type=unix,addr.path={_escape(_socket(name, port))}",
            "-netdev",
            f"hubport,id=hub{port},hubid=0,netdev=port{port}",
        ]
    log_file = home / "qemu.log"
    try:
        with log_file.open("wb") as log:
            hub = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
    except OSError as error:
        raise RunError(
            f"qemu can't be started: {error.strerror or error}",
            hint="install it: apt install qemu-system-x86",
        ) from None
    deadline = time.monotonic() + _START_SECONDS
    while not longest.is_socket():
        if hub.poll() is not None or time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                hub.kill()
            hub.wait()
            lines = log_file.read_text("utf-8", "replace").strip().splitlines()
            shutil.rmtree(home, ignore_errors=True)
            raise RunError(
                f"the network '{name}' can't be started: {lines[-1][:200] if lines else 'no message'}",
                where="--network",
                hint="private networks need qemu 7.2 or later",
            )
        time.sleep(0.05)
    state = NetworkState(name, hub.pid, start_ticks(hub.pid) or 0)
    (home / _STATE).write_text(json.dumps(asdict(state)) + "\n", "utf-8")


def _end_unused() -> None:
    for state in networks():
        if not state.members():
            end_process(state.pid, state.started)
            shutil.rmtree(_home() / state.name, ignore_errors=True)


@contextlib.contextmanager
def _lock_networks() -> Iterator[None]:
    home = _home()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _home() -> Path:
    return cache_home() / ".networks"


def _socket(name: str, port: int) -> Path:
    return _home() / name / f"{port}.sock"


def _port(address: str) -> int:
    return int(address.rpartition(".")[2])


def _escape(path: Path) -> str:
    return str(path).replace(",", ",,")
