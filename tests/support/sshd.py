# SPDX-License-Identifier: Apache-2.0
"""An sshd of the tests' own: on loopback, with keys of its own, ended by its pid. It leads back to
this very machine."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.hosts.ssh.host import SshOptions
from iolab.hosts.ssh.remote_paths import mirror_root

from .waiting import PATIENCE, until


def why_no_sshd() -> str | None:
    """Why this machine can't have one; None where it can."""
    missing = [name for name in ("ssh", "ssh-keygen") if shutil.which(name) is None]
    if shutil.which("sshd", path="/usr/sbin:/sbin:/usr/local/sbin") is None:
        missing.append("sshd")
    if missing:
        return f"{', '.join(missing)} are missing (openssh-client, openssh-server)"
    if os.geteuid() == 0 and not Path("/run/sshd").is_dir() and not os.access("/run", os.W_OK):
        return "/run/sshd can't be made"
    return None


@contextlib.contextmanager
def sshd(directory: Path, more: str = "") -> Iterator[SshOptions]:
    """How to reach an sshd that runs meanwhile. `more`: lines of its configuration."""
    reason = why_no_sshd()
    if reason:
        pytest.skip(reason)
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("host_key", "user_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)], check=True
        )
    (directory / "authorized").write_text((directory / "user_key.pub").read_text())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (directory / "config").write_text(f"""
Port {port}
ListenAddress 127.0.0.1
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/authorized
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
{more}
""")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    key = (directory / "host_key.pub").read_text().split()
    (directory / "known_hosts").write_text(f"[127.0.0.1]:{port} {key[0]} {key[1]}\n")
    program = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/local/sbin")
    assert program is not None
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen(
            [program, "-D", "-e", "-f", str(directory / "config")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while not _answers(port):
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.skip(f"sshd does not start here: {(directory / 'log').read_text()[-200:]}")
            time.sleep(0.05)
        user = pwd.getpwuid(os.geteuid()).pw_name
        yield SshOptions(
            address=f"{user}@127.0.0.1",
            port=port,
            identity=directory / "user_key",
            known_hosts=directory / "known_hosts",
        )
    finally:
        server.terminate()
        server.wait(PATIENCE)


def nothing_is_left() -> None:
    """Wait until the far side has removed what it kept, which whoever killed a connection does not
    wait for."""
    until(lambda: not Path(mirror_root()).exists(), "what was kept there to be removed")


def sessions_of(options: SshOptions) -> list[int]:
    """Ids of the sshd processes that serve a connection to it from this machine."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and (entry / "comm").read_text().strip() in (
                "sshd",
                "sshd-session",
                "sshd-auth",
            ):
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if _port_of(int(entry.name)) == options.port and "-D -e" not in words:
                    found.append(int(entry.name))
    return found


def _port_of(pid: int) -> int | None:
    """Local port of the established connection that a process holds."""
    sockets = set()
    with contextlib.suppress(OSError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                sockets.add(str(file.readlink()))
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "01" and f"socket:[{fields[9]}]" in sockets:
            return int(fields[1].rpartition(":")[2], 16)
    return None


def _answers(port: int) -> bool:
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        connection.settimeout(10)
        return connection.recv(4) == b"SSH-"
    return False
