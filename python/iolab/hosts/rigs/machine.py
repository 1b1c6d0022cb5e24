# SPDX-License-Identifier: Apache-2.0
"""Starting and ending machines of a rig."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from iolab.base.errors import RunError, UsageError, sudo_command
from iolab.base.files import write_atomically
from iolab.base.untrusted_text import visible

from ..base.orphans import start_ticks
from ..kinds.rig import (
    MACHINES,
    OWN_KERNEL,
    STATE_FILE,
    RigHost,
    RigOptions,
    RigState,
    cache_home,
    machine_home,
    machines,
    rig_home,
    running_machine,
)
from .build import image_version
from .kernels import find_kernel
from .network import NetworkState, configure, end_unused, find_network, join, write_names
from .process import cpu_wait, end_process, reap
from .qemu import (
    COUNTED,
    PROGRAM,
    MachineOptions,
    choose_accelerator,
    command,
    disk_file,
    kernel_words,
)

BOOT_SECONDS = {"kvm": 90.0, "tcg": 300.0, COUNTED: 300.0}
"""Until ssh answers; an emulated machine needs about half a minute where it has two cores for
itself. Time in which it waits for a CPU does not count."""
_LONGEST = 6
"""The wait ends after this many times `BOOT_SECONDS`, whatever the machine waited for."""


_PANIC = "Kernel panic - not syncing"


def up(
    rig: str, names: Sequence[str], options: MachineOptions, notify: Callable[[str], None]
) -> list[RigState]:
    """Start machines and wait until they answer. If one fails, none of them remains: RunError with
    the last line of its log."""
    version = image_version(rig)
    if version is None:
        raise RunError(f"the rig '{rig}' was not built yet", hint=sudo_command("rig", "build", rig))
    states: list[RigState] = []
    try:
        with _hold(rig):
            _check_names(names, notify)
            choice = choose_accelerator(rig, options.counts_instructions)
            if choice.why:
                notify(choice.why)
            link = options.link
            addresses = (
                join(link.network, len(names), PROGRAM)
                if link
                else contextlib.nullcontext([""] * len(names))
            )
            with addresses as free:
                for name, address in zip(names, free, strict=True):
                    state = _plan(rig, name, address, choice.accelerator, options, version)
                    states.append(_start(state, options))
        for state in states:
            await_machine(state)
        if options.link is not None:
            _connect(states, find_network(options.link.network))
    except BaseException:
        for state in states:
            with contextlib.suppress(UsageError):  # of a machine that 'rig down' has deleted
                down(state.name)
        raise
    return states


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
            ended = end_process(state.pid, state.started) or ended
    for place in places:
        _forget(place)
    end_unused()
    return ended


def restart(name: str, kernel: str) -> RigState:
    """End a machine and start it again with a kernel, and wait until it answers. Its disks remain;
    what was written to its image is lost.

    Raises UsageError where the rig does not have the kernel, RunError where the machine does not
    start.
    """
    state = running_machine(name)
    home = machine_home(state.rig, name)
    with _hold(state.rig):
        words = json.loads((home / "command.json").read_text("utf-8"))
        words_of_kernel = kernel_words(state.rig, kernel)
        for option, value in zip(words_of_kernel[::2], words_of_kernel[1::2], strict=True):
            words[words.index(option) + 1] = value
        end_process(state.pid, state.started)
        version = image_version(state.rig) or state.version
        state = _launch(replace(state, kernel=kernel, version=version), words, home)
    await_machine(state)
    if state.network:
        _connect([state], find_network(state.network))
    return state


def _check_kernel(state: RigState) -> None:
    """RunError where a machine runs another kernel than it was started with."""
    if state.kernel == OWN_KERNEL:
        return
    release = find_kernel(rig_home(state.rig), state.kernel).release
    with RigHost(RigOptions(name=state.name)) as host:
        running = host.run(["uname", "-r"]).stdout.strip()
    if running != release:
        raise RunError(
            f"runs the kernel {running} instead of {release}",
            where=f"rig:{state.name}",
            hint=f"'iolab rig build {state.rig}' puts its modules into the image",
        )


def command_line_of(name: str, words: tuple[str, ...]) -> list[str]:
    """ssh into a running machine, with a terminal where no words are given."""
    host = RigHost(RigOptions(name=name))
    to = host.destination()
    arguments = to.arguments(Path("none"))
    return [*(word for word in arguments if words or word != "-T"), "--", to.address, *words]


def _check_names(names: Sequence[str], notify: Callable[[str], None]) -> None:
    """UsageError where a machine of one of the names runs; files of those that ended are deleted."""
    for state in machines():
        if state.name not in names:
            continue
        if state.running:
            raise UsageError(
                f"a machine '{state.name}' is up already",
                where=f"rig:{state.name}",
                hint=f"take another --name, or iolab rig down {state.name}",
            )
        notify(f"{state.name} had ended unexpectedly; its files are deleted")
        _forget(machine_home(state.rig, state.name))


def _plan(
    rig: str, name: str, address: str, accelerator: str, options: MachineOptions, version: str
) -> RigState:
    """The state of a machine that is about to start."""
    disks, link = options.disks, options.link
    return RigState(
        rig=rig,
        name=name,
        pid=0,
        started=0,
        port=_free_port({state.port for state in machines()}),
        accelerator=accelerator,
        begun_ns=time.time_ns(),
        disks=disks.count,
        disk_bytes=disks.size_bytes,
        disk_iops=disks.iops,
        disk_bytes_per_s=disks.bytes_per_s,
        fast_disks=disks.fast,
        memory_bytes=options.memory_bytes,
        cpus=options.cpu_count,
        version=version,
        network=link.network if link else "",
        address=address,
        link_bits_per_s=link.bits_per_s if link else None,
        link_delay_s=link.delay_s if link else 0.0,
        can_reboot=options.can_reboot,
        kernel=options.kernel,
    )


def _start(planned: RigState, options: MachineOptions) -> RigState:
    """Start qemu and write the state. Nothing remains of a machine that can't be started."""
    home = machine_home(planned.rig, planned.name)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    try:
        for disk in options.disks.names:
            with disk_file(home, disk).open("wb") as file:
                file.truncate(options.disks.size_bytes)
        words = command(
            planned.rig,
            planned.accelerator,
            options,
            port=planned.port,
            home=home,
            address=planned.address,
        )
        return _launch(planned, words, home)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise


def _launch(planned: RigState, words: list[str], home: Path) -> RigState:
    port = planned.port
    key = (rig_home(planned.rig) / "host_key.pub").read_text("utf-8").split()
    (home / "known_hosts").write_text(f"[127.0.0.1]:{port} {key[0]} {key[1]}\n", "utf-8")
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
    try:
        started = start_ticks(popen.pid)
        _pass_on_niceness(popen.pid)
        if started is None:
            raise RunError(
                f"qemu ended at once: {_last_line(home / 'qemu.log')}", where=f"rig:{planned.name}"
            )
        state = replace(planned, pid=popen.pid, started=started)
        data = state.as_data()
        del data["running"]
        write_atomically(home / STATE_FILE, json.dumps(data, indent=1) + "\n")
    except BaseException:  # without a state it could not be ended later
        popen.kill()
        popen.wait()
        raise
    return state


def _connect(states: Sequence[RigState], network: NetworkState) -> None:
    """Set up the cards of new machines, and the names of all machines of the network on each."""
    members = [member for member in network.members() if member.running]
    for member in members:
        with RigHost(RigOptions(name=member.name)) as host:
            if member in states:
                configure(host, member)
            write_names(host, member, members)


def _pass_on_niceness(pid: int) -> None:
    """Where Linux shares time among sessions (sched(7), autogroup), a niceness counts within a
    session only: the new one gets ours."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(os.getpriority(os.PRIO_PROCESS, 0)), "ascii")


def await_machine(state: RigState) -> None:
    """Wait until sshd of a machine answers and its system has started.

    Raises RunError where it ends or panics, has not started in time, or runs another kernel.
    """
    _await_system(state)
    _check_kernel(state)


def _await_system(state: RigState) -> None:
    begin = time.monotonic()
    while not _greets(state.port):
        _check_start(state, begin, "no answer")
        time.sleep(0.5)
    with RigHost(RigOptions(name=state.name)) as host:
        while True:
            try:
                _await_devices(host, state)
                return
            except RunError as error:  # also where a slow machine takes too long for ssh
                _check_start(state, begin, error.message)
                time.sleep(1)


def _check_start(state: RigState, begin: float, failure: str) -> None:
    """RunError where a machine has ended, its kernel panicked, or it had time enough to start since
    `begin`."""
    home = machine_home(state.rig, state.name)
    console = _last_lines(home / "console.log")
    if any(_PANIC in line for line in console):
        raise RunError(
            f"the kernel panicked while the machine started; console: {' | '.join(console)}",
            where=f"rig:{state.name}",
        )
    if reap(state.pid) or not state.running:
        line = _last_line(home / "qemu.log") or _last_line(home / "console.log")
        raise RunError(f"the machine ended while it started: {line}", where=f"rig:{state.name}")
    seconds = BOOT_SECONDS[state.accelerator]
    elapsed, starved = time.monotonic() - begin, cpu_wait(state.pid)
    if elapsed - starved > seconds or elapsed > _LONGEST * seconds:
        line = _last_line(home / "console.log")
        raise RunError(
            f"did not start within {elapsed:.0f} s, in {starved:.0f} s of which it waited for a CPU: "
            f"{failure}{f'; console: {line}' if line else ''}",
            where=f"rig:{state.name}",
            hint="see that the machine isn't busy with something else",
        )


def _await_devices(host: RigHost, state: RigState) -> None:
    """Wait for the end of the system's start. RunError where disks are missing after it."""
    seconds = BOOT_SECONDS[state.accelerator]
    host.run(["systemctl", "is-system-running", "--wait"], timeout=_LONGEST * seconds)
    host.run(["udevadm", "settle"], timeout=seconds)
    expected = state.disks + state.fast_disks
    names = host.list_directory("/dev/disk/by-id") if expected else []
    disks = [name for name in names if name.startswith(("virtio-disk", "virtio-fast"))]
    if len(disks) < expected:
        raise RunError(f"shows {len(disks)} of its {expected} disks", where=f"rig:{state.name}")


def _greets(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.settimeout(5)
            return connection.recv(4) == b"SSH-"
    except OSError:
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


def _free_port(taken: Collection[int]) -> int:
    """A port that nothing listens on. `taken`: ports of machines that may not listen yet."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port


def _last_line(path: Path) -> str:
    return "".join(_last_lines(path)[-1:])


def _last_lines(path: Path) -> list[str]:
    """The last lines of a log that are not empty. Of a kernel that panicked: those up to the end of
    its report, which other messages may follow."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return []
    lines = [visible(line.strip())[:200] for line in text.splitlines() if line.strip()]
    panic = next((number for number, line in enumerate(lines) if _PANIC in line), len(lines))
    return lines[max(0, panic - 3) : panic + 3] if panic < len(lines) else lines[-6:]
