# SPDX-License-Identifier: Apache-2.0
"""A network of its own for tests: a server and its clients, each in a network namespace, joined by
a bridge; one link may be slow."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import pytest

from support.disks import call
from support.waiting import PATIENCE

PORT = 7077
_SERVER = """
import socket, sys, threading
data = bytes(1 << 16)
def serve(far):
    try:
        far.setsockopt(socket.SOL_SOCKET, 47, int(sys.argv[2]))  # SO_MAX_PACING_RATE
        while True:
            far.sendall(data)
    except OSError:
        far.close()
with socket.create_server(("", int(sys.argv[1]))) as server:
    print("ready", flush=True)
    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""
_CLIENT = """
import socket, sys, time
until = time.monotonic() + float(sys.argv[3])
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 60) as near:
    while time.monotonic() < until and near.recv(1 << 20):
        pass
"""


@dataclass(frozen=True)
class Network:
    """Names of namespaces and the addresses in them: the server's first."""

    spaces: tuple[str, ...]
    addresses: tuple[str, ...]

    def within(self, place: int, command: Sequence[str]) -> list[str]:
        """A command within a namespace, which has a /sys of its own."""
        return ["ip", "netns", "exec", self.spaces[place], *command]

    @contextlib.contextmanager
    def serving(self, bytes_per_s: int) -> Iterator[None]:
        """A server that gives every client so many bytes a second, as far as its link takes them."""
        process = subprocess.Popen(
            self.within(0, [sys.executable, "-c", _SERVER, str(PORT), str(bytes_per_s)]),
            stdout=subprocess.PIPE,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)

    def reading(self, place: int, seconds: float) -> subprocess.Popen[bytes]:
        """A client that reads from the server for so long."""
        return subprocess.Popen(
            self.within(
                place, [sys.executable, "-c", _CLIENT, self.addresses[0], str(PORT), str(seconds)]
            )
        )


@cache
def why_no_network() -> str | None:
    """Why this machine can't have such a network, or None where it can; tried for real, once."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} are missing (iproute2)"
    try:
        with network(1, slow={1: "10mbit"}):
            return None
    except subprocess.CalledProcessError as error:
        return f"{' '.join(error.cmd)}: {(error.stderr or '').strip()}"


def need_network() -> None:
    """Leave the test out, with the reason, where there can be no such network."""
    if (reason := why_no_network()) is not None:
        pytest.skip(reason)


@contextlib.contextmanager
def network(clients: int, *, slow: dict[int, str]) -> Iterator[Network]:
    """A server, so many clients, and a bridge in a namespace of its own, gone afterwards; `slow`:
    rate of the link to a client, as tc writes it."""
    name = f"iolab-{os.getpid()}-{os.urandom(2).hex()}"
    spaces = tuple(f"{name}-{place}" for place in range(clients + 1))
    switch, addresses = (
        f"{name}-switch",
        tuple(f"10.77.0.{place + 1}" for place in range(clients + 1)),
    )
    made: list[str] = []
    try:
        for space in (switch, *spaces):
            call("ip", "netns", "add", space)
            made.append(space)
        call("ip", "-n", switch, "link", "add", "bridge0", "type", "bridge")
        call("ip", "-n", switch, "link", "set", "bridge0", "up")
        for place, space in enumerate(spaces):
            port = f"port{place}"
            call(
                "ip",
                "-n",
                switch,
                "link",
                "add",
                port,
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                space,
            )
            call("ip", "-n", switch, "link", "set", port, "master", "bridge0", "up")
            call("ip", "-n", space, "address", "add", f"{addresses[place]}/24", "dev", "eth0")
            call("ip", "-n", space, "link", "set", "eth0", "up")
            if place in slow:
                shaped = ("tbf", "rate", slow[place], "burst", "64kb", "latency", "50ms")
                call("tc", "-n", switch, "qdisc", "add", "dev", port, "root", *shaped)
        yield Network(spaces, addresses)
    finally:
        for space in reversed(made):
            subprocess.run(["ip", "netns", "delete", space], check=False, capture_output=True)
