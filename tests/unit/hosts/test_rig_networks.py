# SPDX-License-Identifier: Apache-2.0
"""Private networks of rigs: addresses, the hub's life, and errors, with a small program as hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from iolab.base.errors import RunError, UsageError
from iolab.cli.main import run
from iolab.hosts.base.host import Completed
from iolab.hosts.base.orphans import start_ticks
from iolab.hosts.kinds.rig import RigState, cache_home, machine_home
from iolab.hosts.rigs.machine import down
from iolab.hosts.rigs.network import (
    MOST_MACHINES,
    Link,
    configure,
    end_unused,
    find_network,
    join,
    networks,
    write_names,
)
from iolab.hosts.rigs.process import end_process
from iolab.hosts.rigs.qemu import Disks, MachineOptions, command

HUB = f"""#!{sys.executable} -S
import socket, sys, time
ports = []
for word in sys.argv:
    if "addr.path=" in word:
        ports.append(socket.socket(socket.AF_UNIX))
        ports[-1].bind(word.partition("addr.path=")[2])
        ports[-1].listen()
time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In a short path, as that of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="rig", dir="/tmp") as directory:
        monkeypatch.setenv("XDG_CACHE_HOME", directory)
        monkeypatch.delenv("SUDO_UID", raising=False)
        yield
        for network in networks():
            end_process(network.pid, network.started)


@pytest.fixture
def hub(tmp_path: Path) -> str:
    return program(tmp_path, HUB)


def program(directory: Path, text: str) -> str:
    path = directory / "hub"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def machine(name: str, address: str, **more: object) -> RigState:
    """A machine of the network `lab`, as on disk; its process is this one."""
    state = RigState(
        rig="small",
        name=name,
        pid=os.getpid(),
        started=start_ticks(os.getpid()) or 0,
        port=1,
        accelerator="tcg",
        begun_ns=0,
        disks=0,
        disk_bytes=1,
        disk_iops=None,
        disk_bytes_per_s=None,
        memory_bytes=1 << 30,
        cpus=1,
        version="v",
        network="lab",
        address=address,
    )
    state = replace(state, **more)  # type: ignore[arg-type]
    home = machine_home("small", name)
    home.mkdir(parents=True, exist_ok=True)
    data = state.as_data()
    del data["running"]
    (home / "state.json").write_text(json.dumps(data))
    return state


def test_addresses_are_free_ones_and_the_hub_ends_with_the_last_machine(hub: str) -> None:
    with join("lab", 1, hub) as [address]:
        server = machine("server", address)
    network = find_network("lab")
    assert (address, network.running) == ("192.168.77.1", True)
    assert (cache_home() / ".networks/lab").stat().st_mode & 0o777 == 0o700
    with join("lab", 2, hub) as addresses:
        for number, free in enumerate(addresses):
            machine(f"client{number}", free)
    assert addresses == ["192.168.77.2", "192.168.77.3"]
    assert find_network("lab") == network  # the hub was not started again
    assert [state.name for state in network.members()] == ["server", "client0", "client1"]
    # a machine that has ended gives its address back
    machine("client0", "192.168.77.2", started=1)
    with join("lab", 1, hub) as [address]:
        assert address == "192.168.77.2"
    for name in ("server", "client0", "client1"):
        assert network.running
        machine(name, "192.168.77.9", started=1)  # not this process
        down(name)
    assert not network.running
    assert networks() == []
    assert server.network == "lab"


def test_networks_are_apart(hub: str) -> None:
    with join("lab", 1, hub) as [address]:
        machine("one", address)
    with join("other", 1, hub) as [address]:
        machine("two", address, network="other")
    assert address == "192.168.77.1"
    first, second = networks()
    assert first.pid != second.pid


def test_a_network_that_no_machine_joined_ends(hub: str) -> None:
    def fail() -> None:
        with join("lab", 1, hub):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert networks() == []
    assert list((cache_home() / ".networks").iterdir()) == [cache_home() / ".networks/lock"]


def test_a_full_network(hub: str) -> None:
    with join("lab", MOST_MACHINES, hub) as addresses:
        for number, address in enumerate(addresses):
            machine(f"m{number}", address)
    with pytest.raises(UsageError, match="16 of at most 16"), join("lab", 1, hub):
        pass
    assert find_network("lab").running


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#!/bin/sh\necho one; echo 'stream: invalid netdev' >&2; exit 1\n", "invalid netdev"),
        ("#!/bin/sh\n", "no message"),
        ("", "can't be started"),
    ],
)
def test_a_hub_that_does_not_start(tmp_path: Path, text: str, words: str) -> None:
    path = program(tmp_path, text) if text else str(tmp_path / "none")
    with pytest.raises(RunError, match=words), join("lab", 1, path):
        pass
    assert networks() == []


def test_a_hub_that_ended_under_its_machines(hub: str) -> None:
    with join("lab", 1, hub) as [address]:
        machine("server", address)
    network = find_network("lab")
    end_process(network.pid, network.started)
    with pytest.raises(RunError, match="has ended"), join("lab", 1, hub):
        pass
    # without a running machine it is started again
    machine("server", address, started=1)
    with join("lab", 1, hub):
        assert find_network("lab").running


def test_a_path_that_is_too_long_for_a_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ("c" * 100)))
    with pytest.raises(UsageError, match="too long"), join("lab", 1, hub):
        pass


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"name": "lab"}', '{"name": 1, "odd": 2}'])
def test_a_damaged_state_is_no_network(hub: str, damage: str) -> None:
    with join("lab", 1, hub) as [address]:
        machine("server", address, started=1)
    network = find_network("lab")
    (cache_home() / ".networks/lab/network.json").write_text(damage)
    try:
        assert networks() == []
        end_unused()
        with join("lab", 1, hub):  # replaces it
            assert find_network("lab").running
    finally:
        end_process(network.pid, network.started)


def test_the_card_of_a_machine(tmp_path: Path) -> None:
    link = Link("lab")
    options = MachineOptions(Disks(0, 1), 1 << 30, 1, link, can_reboot=True)
    words = command("small", "tcg", options, port=1, home=tmp_path, address="192.168.77.12")
    text = " ".join(words)
    assert "addr.path=" + str(cache_home() / ".networks/lab/12.sock") in text
    assert "mac=52:54:00:77:00:0c" in text
    assert "speed=" not in text
    limited = command(
        "small",
        "tcg",
        replace(options, link=Link("lab", 20_000_000)),
        port=1,
        home=tmp_path,
        address="192.168.77.12",
    )
    assert "speed=20,duplex=full" in " ".join(limited)
    assert "-no-reboot" not in words
    alone = command("small", "tcg", replace(options, link=None), port=1, home=tmp_path)
    assert "stream" not in " ".join(alone)
    assert "-no-reboot" in command(
        "small", "tcg", MachineOptions(Disks(0, 1), 1 << 30), port=1, home=tmp_path
    )


class RecordedHost:
    """A host that records commands, and ends each with this exit code."""

    def __init__(self, exit_code: int = 0) -> None:
        self.commands: list[list[str]] = []
        self._exit_code = exit_code

    def run(self, command: Sequence[str], timeout: float) -> Completed:
        self.commands.append([*command])
        return Completed(
            (*command,), self._exit_code, "", "one\nRTNETLINK answers: No such device\n"
        )


def test_a_machine_is_set_up(tmp_path: Path) -> None:
    host = RecordedHost()
    slow = machine("slow", "192.168.77.2", link_bits_per_s=20_000_000, link_delay_s=0.0105)
    configure(host, slow)  # type: ignore[arg-type]
    configure(host, machine("fast", "192.168.77.3"))  # type: ignore[arg-type]
    write_names(host, slow, [slow])  # type: ignore[arg-type]
    (*_, name, script, _), (*_, unlimited, _), (*_, lines) = host.commands
    assert name == "slow"
    assert script.count("delay 10500us rate 20000000bit") == 2  # each direction
    assert "netem" not in unlimited
    assert lines == "192.168.77.2 slow\n"
    for text in (script, unlimited, *(words[2] for words in host.commands)):
        assert subprocess.run(["sh", "-n", "-c", text], check=False).returncode == 0


def test_a_machine_that_cannot_be_set_up() -> None:
    with pytest.raises(RunError, match="'lab' can't be set up: RTNETLINK") as raised:
        configure(RecordedHost(1), machine("slow", "192.168.77.2"))  # type: ignore[arg-type]
    assert raised.value.where == "rig:slow"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["up", "--count", "2"], 2, "--count"),
        (["up", "--count", "0", "--name", "x"], 2, "--count"),
        (["up", "--mbps", "10"], 2, "--network"),
        (["up", "--delay", "10ms"], 2, "--network"),
        (["up", "--network", "lab", "--mbps", "fast"], 2, "--mbps"),
        (["up", "--network", "lab", "--mbps", "0"], 2, "--mbps"),
        (["up", "--network", "lab", "--delay", "soon"], 2, "--delay"),
        (["up", "--network", "lab", "--delay", "1h"], 2, "--delay"),
        (["up", "--network", "../lab"], 2, "not a name of a network"),
        (["up", "--network", "ä"], 2, "not a name of a network"),
        (["up", "--name", "a b"], 2, "not a name of a machine"),
        (["down", "--network", "lab"], 2, "no network 'lab'"),
    ],
)
def test_wrong_options_are_one_line(
    root: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    rig = [str(root / "rigs/openzfs")] if words[0] == "up" else []
    assert run(["rig", words[0], *rig, *words[1:]]) == code
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_the_list_has_networks(hub: str, capsys: pytest.CaptureFixture[str]) -> None:
    with join("lab", 2, hub) as [server, client]:
        machine("server", server)
        machine("slow", client, link_bits_per_s=20_000_000, link_delay_s=0.01)
    assert run(["rig", "list"]) == 0
    out = capsys.readouterr().out
    assert "network lab: server 192.168.77.1, slow 192.168.77.2" in out
    assert "network lab, 20 Mbit/s, delay 10 ms" in out
    assert run(["rig", "list", "--format", "json"]) == 0
    [network] = json.loads(capsys.readouterr().out)["networks"]
    assert (network["name"], network["machines"]) == ("lab", ["server", "slow"])


def test_machines_that_disappear_do_not_stop_down(
    hub: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with join("lab", 2, hub) as [first, second]:
        machine("first", first, started=1)
        machine("second", second, started=1)
    real = down

    def delete(name: str) -> bool:
        if name == "first":  # as an interrupted 'rig up' does
            real("second")
        return real(name)

    monkeypatch.setattr("iolab.hosts.rigs.machine.down", delete)
    assert run(["rig", "down", "--network", "lab"]) == 0
    assert "first had ended" in capsys.readouterr().out
    assert networks() == []
    assert run(["rig", "down", "second"]) == 2
