# SPDX-License-Identifier: Apache-2.0
"""A real server of Samba with two clients, each in a network namespace: bytes and operations by
client, user and share are those that the clients moved."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.query import query
from iolab.recordings.store.read.recording import Recording
from support.network import Network, need_network, network
from support.probe import need_tracing
from support.waiting import PATIENCE, until

PORT = 4450
PASSWORD = "iolab"
BLOCK = 65536
CONFIG = """[global]
server role = standalone server
load printers = no
disable spoolss = yes
smb ports = {port}
smb2 max read = {block}
smb2 max write = {block}
passdb backend = tdbsam
lock directory = {place}/run
state directory = {place}/run
cache directory = {place}/run
pid directory = {place}/run
private dir = {place}/run
ncalrpc dir = {place}/run
log file = {place}/log
[first]
path = {place}/first
read only = no
force user = root
[second]
path = {place}/link
read only = no
force user = root
"""


@dataclass(frozen=True)
class Client:
    """What a client does. `user`: an account of every Debian; `share`: see `CONFIG`."""

    place: int
    user: str
    share: str
    size: int


CLIENTS = (Client(1, "daemon", "first", 4_000_000), Client(2, "bin", "second", 2_500_001))


def need_samba() -> None:
    """Leave the test out where Samba is not installed."""
    missing = [name for name in ("smbd", "smbclient", "smbpasswd") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} missing (Debian: samba, smbclient)")


def within(lab: Network, place: int, *command: str) -> list[str]:
    """A command in a namespace of the network, with the file systems of this process."""
    return ["nsenter", f"--net=/run/netns/{lab.spaces[place]}", *command]


@contextlib.contextmanager
def serving(lab: Network, place: Path) -> Iterator[Path]:
    """A server in the first namespace; its configuration."""
    for name in ("run", "first", "target"):
        (place / name).mkdir()
    (place / "link").symlink_to(place / "target")
    config = place / "smb.conf"
    config.write_text(CONFIG.format(place=place, port=PORT, block=BLOCK))
    for client in CLIENTS:
        subprocess.run(
            ["smbpasswd", "-c", str(config), "-s", "-a", client.user],
            input=f"{PASSWORD}\n{PASSWORD}\n",
            text=True,
            check=True,
            capture_output=True,
            timeout=PATIENCE,
        )
    command = ["smbd", "--foreground", "--no-process-group", "-s", str(config)]
    with (place / "out").open("wb") as out:
        server = subprocess.Popen(
            within(lab, 0, *command),
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            process_group=0,
        )
    try:
        listening = within(lab, 0, "ss", "-Hltn", f"sport = {PORT}")
        until(
            lambda: subprocess.run(listening, capture_output=True, check=True).stdout,
            "smbd",
            PATIENCE,
        )
        yield config
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait(PATIENCE)


def connected(lab: Network, client: Client, config: Path) -> subprocess.Popen[str]:
    """smbclient, which takes commands from its input."""
    command = [
        *("smbclient", "-s", str(config), "-p", str(PORT), "-U", f"{client.user}%{PASSWORD}"),
        f"//{lab.addresses[0]}/{client.share}",
    ]
    return subprocess.Popen(
        within(lab, client.place, *command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def send(process: subprocess.Popen[str], command: str) -> None:
    """Send a command to smbclient."""
    assert process.stdin is not None
    process.stdin.write(f"{command}\n")
    process.stdin.flush()


def totals(recording: Recording, statistic: str) -> dict[str, float]:
    """Totals by key, of a series under ""; what is 0 is left out."""
    found = query(recording, statistic)
    if isinstance(found, Series):
        return {"": found.total}
    assert isinstance(found, Stack)
    return {key: total for key, total in zip(found.keys, found.totals, strict=True) if total}


@pytest.mark.tracing
@pytest.mark.exclusive
def test_bytes_by_client_user_and_share_are_those_that_clients_moved(tmp_path: Path) -> None:
    need_tracing()
    need_network()
    need_samba()
    files = {client: tmp_path / f"of-{client.user}" for client in CLIENTS}
    for client, file in files.items():
        file.write_bytes(os.urandom(client.size))
    place = tmp_path / "r"
    with network(2, slow={}) as lab, serving(lab, tmp_path) as config:
        recorder = subprocess.Popen(
            [
                *(sys.executable, "-m", "iolab", "record", "syscall", "--budget", "none"),
                *("--duration", "600s", "-q", "-o", str(place)),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until((place / "recording.json").exists, "recording", PATIENCE)
            clients = {client: connected(lab, client, config) for client in CLIENTS}
            # calls before the first answer of smbstatus have no user: files of a byte until it came
            byte = tmp_path / "byte"
            byte.write_bytes(b"1")

            def has_users() -> bool:
                for client, process in clients.items():
                    send(process, f"put {byte} {client.user}")
                time.sleep(1)
                return {client.user for client in CLIENTS} <= totals(
                    Recording(place), "smb.ops[user]"
                ).keys()

            until(has_users, "users of both connections", 3 * PATIENCE)
            for client, process in clients.items():
                send(process, f"put {files[client]} file")
                send(process, f"get file {files[client]}.back")
            for client, process in clients.items():
                output, _ = process.communicate(timeout=PATIENCE)
                assert process.returncode == 0, output
                assert Path(f"{files[client]}.back").read_bytes() == files[client].read_bytes()
            time.sleep(2)
        finally:
            recorder.send_signal(signal.SIGINT)
            _, said = recorder.communicate(timeout=2 * PATIENCE)
        assert recorder.returncode == 0, said
    recording = Recording(place)
    assert not [loss for loss in recording.losses() if loss["kind"] in ("overrun", "gap")]
    moved = {lab.addresses[client.place]: 2 * client.size for client in CLIENTS}
    assert totals(recording, "smb.bytes[share!=unknown][size>1B][client]") == moved
    for client in CLIENTS:
        address = lab.addresses[client.place]
        target = tmp_path / ("first" if client.share == "first" else "target") / "file"
        whole = f"smb.bytes[client={address}][share!=unknown][size>1B]"
        assert totals(recording, f"{whole}[user]") == {client.user: 2 * client.size}
        assert totals(recording, f"{whole}[share]") == {client.share: 2 * client.size}
        assert totals(recording, f"{whole}[file]") == {str(target): 2 * client.size}
        for op in ("read", "write"):
            of_op = f"[client={address}][share={client.share}][op={op}][size>1B]"
            calls = totals(recording, f"smb.ops{of_op}")[""]
            assert totals(recording, f"smb.bytes[user={client.user}][file={target}][op={op}]") == {
                "": client.size
            }
            assert calls == math.ceil(client.size / BLOCK)
            print(f"{client.user} {op}: {client.size} bytes, {calls:.0f} calls")
    print("Samba's own files:", totals(recording, "smb.ops[share=unknown][client!=unknown][file]"))
