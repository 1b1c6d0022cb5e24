# SPDX-License-Identifier: Apache-2.0
"""Starting and ending machines of a rig."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import RunError, UsageError, sudo_command
from ..hosts.base.orphans import start_ticks
from ..hosts.kinds.rig import (
    MACHINES,
    STATE_FILE,
    RigHost,
    RigOptions,
    RigState,
    cache_home,
    machine_home,
    machines,
    rig_home,
)
from .build import image_version
from .qemu import Disks, choose_accelerator, command, disk_file

BOOT_SECONDS = {"kvm": 90.0, "tcg": 300.0}
"""Until ssh answers; an emulated machine needs about half a minute where it has two cores for
itself."""
_GRACE = 10.0


def up(
    rig: str,
    name: str,
    disks: Disks,
    memory_bytes: int,
    cpus: int | None,
    said: Callable[[str], None],
) -> RigState:
    """Start a machine and wait until it answers; RunError where it doesn't. Nothing is left of one
    that failed but its logs' last words."""
    version = image_version(rig)
    if version is None:
        raise RunError(f"the rig '{rig}' was not built yet", hint=sudo_command("rig", "build", rig))
    home = machine_home(rig, name)
    with _hold(rig):
        for machine in machines():
            if machine.name != name:
                continue
            if machine.running:
                raise UsageError(
                    f"a machine '{name}' is up already",
                    where=f"rig:{name}",
                    hint=f"take another --name, or iolab rig down {name}",
                )
            said(f"{name} had ended unexpectedly; its files are deleted")
            _forget(machine_home(machine.rig, name))
        choice = choose_accelerator(rig)
        if choice.why:
            said(choice.why)
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        try:
            state = _start(
                rig,
                name,
                home,
                choice.accelerator,
                disks,
                memory_bytes,
                cpus or min(4, os.cpu_count() or 1),
                version,
            )
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
    try:
        _await(state, home)
    except BaseException:
        down(name)
        raise
    return state


def down(name: str) -> bool:
    """End a machine and remove its disks; whether it was running. UsageError where there is none of
    that name."""
    places = (
        [path for path in cache_home().glob(f"*/{MACHINES}/{name}") if path.is_dir()]
        if name and "/" not in name
        else []
    )
    if not places:
        names = ", ".join(machine.name for machine in machines())
        raise UsageError(
            f"no rig '{name}' is up",
            hint=f"there are: {names}" if names else "'iolab rig up' starts one",
        )
    ended = False
    for state in machines():
        if state.name == name:
            ended = _end(state.pid, state.started) or ended
    for place in places:
        _forget(place)
    return ended


def command_line_of(name: str, words: tuple[str, ...]) -> list[str]:
    """ssh into a running machine, with a terminal where no words are given."""
    host = RigHost(RigOptions(name=name))
    to = host.destination()
    arguments = to.arguments(Path("none"))
    return [*(word for word in arguments if words or word != "-T"), "--", to.address, *words]


def _start(
    rig: str,
    name: str,
    home: Path,
    accelerator: str,
    disks: Disks,
    memory_bytes: int,
    cpus: int,
    version: str,
) -> RigState:
    for disk in disks.names:
        with disk_file(home, disk).open("wb") as file:
            file.truncate(disks.size_bytes)
    port = _free_port()
    key = (rig_home(rig) / "host_key.pub").read_text("utf-8").split()
    (home / "known_hosts").write_text(f"[127.0.0.1]:{port} {key[0]} {key[1]}\n", "utf-8")
    words = command(
        rig, accelerator, memory_bytes=memory_bytes, cpus=cpus, port=port, home=home, disks=disks
    )
    (home / "command.json").write_text(json.dumps(words, indent=1) + "\n", "utf-8")
    try:
        with (home / "qemu.log").open("wb") as log:
            # A session of its own: it outlives this command, and a Ctrl-C here isn't meant for it.
            popen = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "TMPDIR": str(home)},
            )
    except OSError as error:
        raise RunError(
            f"qemu can't be started: {error.strerror or error}",
            hint="install it: apt install qemu-system-x86",
        ) from None
    started = start_ticks(popen.pid)
    _pass_on_niceness(popen.pid)
    if started is None:
        raise RunError(f"qemu ended at once: {_last_words(home / 'qemu.log')}", where=f"rig:{name}")
    state = RigState(
        rig=rig,
        name=name,
        pid=popen.pid,
        started=started,
        port=port,
        accelerator=accelerator,
        begun_ns=time.time_ns(),
        disks=disks.count,
        disk_bytes=disks.size_bytes,
        disk_iops=disks.iops,
        disk_bytes_per_s=disks.bytes_per_s,
        fast_disks=disks.fast,
        memory_bytes=memory_bytes,
        cpus=cpus,
        version=version,
    )
    new = home / f"{STATE_FILE}.new"
    data = state.as_data()
    del data["running"]
    new.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    new.rename(home / STATE_FILE)
    return state


def _pass_on_niceness(pid: int) -> None:
    """Where Linux shares time among sessions (sched(7), autogroup), a niceness counts within a
    session only: the new one gets ours."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(os.getpriority(os.PRIO_PROCESS, 0)), "ascii")


def _await(state: RigState, home: Path) -> None:
    """Until sshd says its first word, and the system has finished starting up."""
    deadline = time.monotonic() + BOOT_SECONDS[state.accelerator]
    while not _greets(state.port):
        if _reap(state.pid) or not state.running:
            raise RunError(
                f"the machine ended while it started: {_last_words(home / 'qemu.log') or _last_words(home / 'console.log')}",
                where=f"rig:{state.name}",
            )
        if time.monotonic() > deadline:
            raise RunError(
                f"did not answer within {BOOT_SECONDS[state.accelerator]:.0f} s: {_last_words(home / 'console.log')}",
                where=f"rig:{state.name}",
                hint="see that the machine isn't busy with something else",
            )
        time.sleep(0.5)
    host = RigHost(RigOptions(name=state.name))
    try:
        host.run(
            ["systemctl", "is-system-running", "--wait"], timeout=BOOT_SECONDS[state.accelerator]
        )
        host.run(["udevadm", "settle"], timeout=60)
        disk_count = state.disks + state.fast_disks
        disks = (
            [
                disk
                for disk in host.list_directory("/dev/disk/by-id")
                if disk.startswith(("virtio-disk", "virtio-fast"))
            ]
            if disk_count
            else []
        )
        if len(disks) < disk_count:
            raise RunError(
                f"shows {len(disks)} of its {disk_count} disks", where=f"rig:{state.name}"
            )
    finally:
        host.close()


def _greets(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.settimeout(5)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _end(pid: int, started: int) -> bool:
    """End a process that is known by its start time too; whether it was there."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if start_ticks(pid) != started:
            return False
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
            if select.select([handle], [], [], _GRACE)[0]:
                break
        _reap(pid)
        return True
    finally:
        os.close(handle)


def _reap(pid: int) -> bool:
    """Whether it was a child of ours that has ended: it would stay visible otherwise."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return False


def _forget(home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    with contextlib.suppress(OSError):
        home.parent.rmdir()


@contextlib.contextmanager
def _hold(rig: str) -> Iterator[None]:
    """One start at a time: they look for free ports and names."""
    file = os.open(rig_home(rig) / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(
                "is being built or started by another iolab", where=rig, hint="wait for it"
            ) from None
        yield
    finally:
        os.close(file)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _last_words(path: Path) -> str:
    try:
        lines = [
            line.strip() for line in path.read_text("utf-8", "replace").splitlines() if line.strip()
        ]
    except OSError:
        return ""
    return lines[-1][:200] if lines else ""
