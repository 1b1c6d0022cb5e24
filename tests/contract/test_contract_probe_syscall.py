# SPDX-License-Identifier: Apache-2.0
"""What the source of system calls must do: the right file, process and offset for every call, or
none; nothing invented."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.probe import Events, Probe, events_of, instances_of, need_tracing
from support.waiting import PATIENCE, until

PYTHON = (sys.executable, "-I", "-S", "-c")
LATER = 4


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory for files to be written."""
    need_tracing()
    return tmp_path.resolve()


def recorded(
    work: Callable[[], Any],
    *arguments: str,
    loses: bool = False,
    began: Callable[[Probe], object] = lambda _: None,
) -> tuple[Events, Probe]:
    """The events of a load, and the probe that saw them; `loses` where its rings are too small for
    the load; `began` gets it before."""
    probe = Probe.start("--source", "syscall", *arguments)
    assert probe.of("hello"), probe.words()
    try:
        began(probe)
        work()
        # the rings are looked at twenty times a second
        time.sleep(0.3)
    finally:
        code = probe.stop()
    assert (code, probe.torn, instances_of(probe.process.pid)) == (0, 0, [])
    assert (probe.of("end")[0]["lost"]["syscall"] > 0) == loses
    return events_of(probe, "syscall"), probe


def rows(events: Events, **conditions: Any) -> list[int]:
    """Places of the rows that meet all conditions, in the order of time."""
    chosen = np.ones(len(events), dtype=bool)
    for name, value in conditions.items():
        chosen &= np.array([one == value for one in events[name]], dtype=bool)
    return sorted(np.flatnonzero(chosen), key=lambda place: int(events["time_ns"][place]))


def offsets(events: Events, found: list[int]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in events["offset_bytes"][found]]


def python(code: str, *arguments: object) -> int:
    """Run a small program; its process number."""
    process = subprocess.Popen([*PYTHON, f"import os, sys\n{code}", *map(str, arguments)])
    assert process.wait(timeout=PATIENCE) == 0
    return process.pid


@pytest.mark.tracing
def test_short_processes_bear_their_file_and_name(place: Path) -> None:
    burst = f"for i in $(seq 500); do dd if=/dev/zero of={place}/file-$i bs=8k count=1 status=none; done"
    events, _ = recorded(
        lambda: subprocess.run(["sh", "-c", burst], check=True, timeout=4 * PATIENCE)
    )
    found = [
        row for row in rows(events, op="write", process="dd") if events["size_bytes"][row] == 8192
    ]
    right = {events["file"][row] for row in found if offsets(events, [row]) == [0.0]} & {
        str(place / f"file-{i}") for i in range(1, 501)
    }
    assert len(found) == 500
    assert len(right) >= 450, "on a busy machine some end before the probe can look"
    named = [events["file"][row] for row in found if events["file"][row] is not None]
    assert all(name.startswith(f"{place}/file-") for name in named), "a name is right or unknown"
    assert len(set(named)) == len(named)
    assert len({events["pid"][row] for row in found}) == 500
    assert (events["latency_ns"][found] > 0).all()


@pytest.mark.tracing
def test_renamed_deleted_and_reopened_files_keep_the_name_of_their_opening(place: Path) -> None:
    code = """
place = sys.argv[1]
one = os.open(place + '/one', os.O_RDWR | os.O_CREAT)
os.write(one, b'a' * 100)
os.rename(place + '/one', place + '/two')
os.write(one, b'b' * 100)
os.unlink(place + '/two')
os.pwrite(one, b'c' * 100, 5000)
again = os.open(place + '/one', os.O_RDWR | os.O_CREAT)
os.write(again, b'd' * 100)
os.close(one); os.close(again)
two = os.open(place + '/three', os.O_RDWR | os.O_CREAT)
os.write(two, b'e' * 100)
"""
    pids = []
    events, _ = recorded(lambda: pids.append(python(code, place)))
    found = [
        row for row in rows(events, op="write", pid=pids[0]) if events["size_bytes"][row] == 100
    ]
    assert [Path(events["file"][row]).name for row in found] == [
        "one",
        "one",
        "one",
        "one",
        "three",
    ]
    assert offsets(events, found) == [0, 100, 5000, 0, 0]


@pytest.mark.tracing
def test_offsets_are_followed_through_seek_append_dup_fork_and_exec(place: Path) -> None:
    code = """
place = sys.argv[1]
file = os.open(place + '/data', os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.write(file, b'.' * 1000)
os.lseek(file, 100, os.SEEK_SET)
os.read(file, 50)
copy = os.dup(file)
os.write(copy, b'.' * 7)
if os.fork() == 0:
    os.write(file, b'.' * 11)
    os._exit(0)
os.wait()
os.write(file, b'.' * 13)
log = os.open(place + '/log', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(log, b'.' * 17)
os.lseek(log, 0, os.SEEK_END)
os.write(log, b'.' * 19)
os.pwrite(log, b'.' * 23, 0)
os.set_inheritable(file, True)
os.execv(sys.executable, [sys.executable, '-I', '-S', '-c', f'import os; os.write({file}, b"." * 29)'])
"""
    events, _ = recorded(lambda: python(code, place))
    data = rows(events, file=str(place / "data"))
    assert [(events["op"][row], events["size_bytes"][row]) for row in data] == [
        ("write", 1000),
        ("read", 50),
        ("write", 7),
        ("write", 11),
        ("write", 13),
        ("write", 29),
    ]
    assert offsets(events, data) == [0, 100, 150, 157, 168, 181]
    log = rows(events, file=str(place / "log"))
    assert offsets(events, log) == [None, 17, 36], (
        "where the end is not known, neither is the offset"
    )


@pytest.mark.tracing
def test_calls_of_every_kind(place: Path) -> None:
    code = """
place = sys.argv[1]
file = os.open(place + '/calls', os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.writev(file, [b'x' * 10, b'y' * 20])
os.pwritev(file, [b'z' * 40], 4096)
os.preadv(file, [bytearray(8)], 16)
os.fsync(file); os.fdatasync(file)
other = os.open(place + '/copy', os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.copy_file_range(file, other, 4136, 0, 0)
os.sendfile(other, file, 0, 10)
reader, writer = os.pipe()
os.write(writer, b'pipe'); os.read(reader, 4)
full = os.open('/dev/null', os.O_WRONLY); os.write(full, b'null')
limit = os.open(place + '/calls', os.O_RDONLY)
try:
    os.preadv(limit, [bytearray(8)], -5)
except OSError:
    pass
try:
    os.write(limit, b'no')
except OSError:
    pass
"""
    events, _ = recorded(lambda: python(code, place))
    found = [row for row in range(len(events)) if str(events["file"][row]).startswith(str(place))]
    found.sort(key=lambda row: int(events["time_ns"][row]))
    seen = [
        (
            events["flags"][row],
            events["op"][row],
            Path(events["file"][row]).name,
            *offsets(events, [row]),
            events["error"][row],
        )
        for row in found
    ]
    # the C library may take the newer form of a call
    assert [(one[0].rstrip("2"), *one[1:]) for one in seen[:3]] == [
        ("writev", "write", "calls", 0, None),
        ("pwritev", "write", "calls", 4096, None),
        ("preadv", "read", "calls", 16, None),
    ]
    assert [one[:3] for one in seen[3:5]] == [
        ("fsync", "sync", "calls"),
        ("fdatasync", "sync", "calls"),
    ]
    assert sorted(one[1:3] for one in seen if one[0] == "copy_file_range") == [
        ("read", "calls"),
        ("write", "copy"),
    ]
    assert sorted(one[1:3] for one in seen if one[0] == "sendfile64") == [
        ("read", "calls"),
        ("write", "copy"),
    ]
    assert ("write", "write", "calls", 0, "EBADF") in seen
    assert not any(one is not None and "null" in one for one in events["file"]), (
        "character devices are left out"
    )
    own = {events["pid"][row] for row in found}
    assert not [
        row
        for row in range(len(events))
        if events["pid"][row] in own and events["size_bytes"][row] == 4
    ], "pipes are left out"


@pytest.mark.tracing
def test_threads_bear_their_process_and_overlapping_calls_no_offset(place: Path) -> None:
    code = """
import threading
file = os.open(sys.argv[1] + '/shared', os.O_RDWR | os.O_CREAT | os.O_TRUNC)
def work():
    for _ in range(200):
        os.write(file, b'.' * 4096)
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
"""
    pids: list[int] = []
    events, _ = recorded(lambda: pids.append(python(code, place)))
    found = rows(events, file=str(place / "shared"), op="write")
    assert len(found) == 800
    assert {events["pid"][row] for row in found} == {pids[0]}
    assert len({events["thread"][row] for row in found}) == 4
    known = [one for one in offsets(events, found) if one is not None]
    assert len(known) == len(set(known)), "no place is told twice"
    assert set(known) <= {4096.0 * number for number in range(800)}


@pytest.mark.tracing
def test_files_that_were_open_before_and_what_is_left_out(place: Path) -> None:
    data = place / "before"
    data.write_bytes(b"." * 100_000)
    ready, go = os.pipe(), os.pipe()
    code = f"""
file = os.open(sys.argv[1], os.O_RDONLY)
os.lseek(file, 4096, os.SEEK_SET)
os.write({ready[1]}, b'r'); os.read({go[0]}, 1)
os.read(file, 512); os.read(file, 512)
"""
    child = subprocess.Popen(
        [*PYTHON, f"import os, sys\n{code}", str(data)], pass_fds=(ready[1], go[0])
    )
    os.read(ready[0], 1)

    def work() -> None:
        os.write(go[1], b"g")
        assert child.wait(timeout=PATIENCE) == 0
        (place / "own").write_bytes(b"x")

    try:
        events, _ = recorded(work, "--exclude-pid", str(os.getpid()), "--mount", str(place))
    finally:
        for end in (*ready, *go):
            os.close(end)
        if child.poll() is None:
            child.kill()
    found = rows(events, file=str(data))
    assert offsets(events, found) == [4096, 4608]
    assert rows(events, file=str(place / "own")) == [], "left out by its process"
    device = place.stat().st_dev
    devices = set()
    for name in {one for one in events["file"] if one is not None}:
        with contextlib.suppress(OSError):  # files of others come and go
            devices.add(Path(name).stat().st_dev)
    assert devices == {device}, "left out by --mount"


def watches(probe: Probe, device: int) -> bool:
    """Whether the probe is told of opens on a file system, as the kernel says of its descriptors."""
    mark = f"fanotify sdev:{os.major(device) << 20 | os.minor(device):x} "
    for each in Path(f"/proc/{probe.process.pid}/fdinfo").iterdir():
        with contextlib.suppress(OSError):  # closed since
            if mark in each.read_text():
                return True
    return False


@pytest.mark.tracing
def test_a_file_system_that_comes_and_goes(place: Path) -> None:
    mounted = place / "mounted"
    mounted.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "iolab-test", str(mounted)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {made.stderr.strip()}")
    subprocess.run(["umount", str(mounted)], check=True)
    busy: list[str] = []
    probes: list[Probe] = []

    def work() -> None:
        for number in range(10):
            subprocess.run(["mount", "-t", "tmpfs", "iolab-test", str(mounted)], check=True)
            until(
                lambda: watches(probes[0], mounted.stat().st_dev),
                "the probe to see what was mounted",
            )
            subprocess.run(
                ["dd", "if=/dev/zero", f"of={mounted}/{number}", "bs=8k", "count=1", "status=none"],
                check=True,
            )
            unmounting = subprocess.run(
                ["umount", str(mounted)], capture_output=True, text=True, check=False
            )
            if unmounting.returncode != 0:
                busy.append(unmounting.stderr)
                until(
                    lambda: (
                        subprocess.run(
                            ["umount", str(mounted)], capture_output=True, check=False
                        ).returncode
                        == 0
                    ),
                    "the probe to let go",
                )

    try:
        events, _ = recorded(work, began=probes.append)
    finally:
        # still mounted only after an error
        subprocess.run(["umount", str(mounted)], capture_output=True, check=False)
    assert len(busy) <= 1, "the probe keeps no mount busy"
    named = [
        row
        for row in rows(events, op="write", process="dd")
        if str(events["file"][row]).startswith(f"{mounted}/")
    ]
    names = [str(events["file"][row]) for row in named]
    assert names == sorted(set(names)), "each file is written once, in their order"
    # device numbers are used again, so the probe may not watch a mount yet when its file is written
    assert len(names) >= 2
    assert {events["mount"][row] for row in named} == {str(mounted)}


@pytest.mark.tracing
def test_after_a_loss_nothing_is_invented_and_names_come_back(place: Path) -> None:
    code = """
file = os.open(sys.argv[1] + '/busy', os.O_RDWR | os.O_CREAT)
os.write(file, bytes(1 << 20))
for number in range(200000):
    os.pread(file, 512, number % 1000 * 512)
"""
    began = time.monotonic_ns()

    def work() -> None:
        python(code, place)
        # after the span in which records were lost; small rings can overflow again by other processes
        for number in range(LATER):
            time.sleep(1)
            later = f"of={place}/later-{number}"
            subprocess.run(
                ["dd", "if=/dev/zero", later, "bs=8k", "count=3", "status=none"], check=True
            )

    events, probe = recorded(work, "--ring-kib", "256", loses=True)
    kinds = {loss["loss_kind"]: loss["count"] for loss in probe.of("loss")}
    assert kinds["overrun"] > 0
    assert kinds["unpaired"] > 0
    assert np.nanmax(events["latency_ns"]) < time.monotonic_ns() - began
    reads = rows(events, file=str(place / "busy"), op="read")
    assert {events["size_bytes"][row] for row in reads} <= {512}, "a return is of its own entry"
    writes = [rows(events, file=str(place / f"later-{n}"), op="write") for n in range(LATER)]
    assert [0, 8192, 16384] in [offsets(events, of_file) for of_file in writes]


@pytest.mark.fio
@pytest.mark.tracing
def test_every_call_of_a_load_is_there(fio: str, place: Path) -> None:
    arguments = [
        "--name=load",
        f"--directory={place}",
        "--rw=randrw",
        "--bs=4k",
        "--size=16m",
        "--ioengine=psync",
        "--numjobs=2",
        "--fsync=64",
        # the probe reads the name of a file while its process lives
        "--rate_iops=1500",
        "--output-format=json",
        "--group_reporting",
    ]
    outcome: list[str] = []

    def work() -> None:
        outcome.append(
            subprocess.run(
                [fio, *arguments], check=True, capture_output=True, text=True, timeout=4 * PATIENCE
            ).stdout
        )

    events, probe = recorded(work)
    job = json.loads(outcome[0])["jobs"][0]
    files = {str(place / f"load.{number}.0") for number in range(2)}
    mine = [
        row
        for row in range(len(events))
        if events["file"][row] in files and events["process"][row] == "fio"
    ]
    count = {
        call: sum(events["flags"][row] == call for row in mine)
        for call in ("pread64", "pwrite64", "fsync")
    }
    assert (count["pread64"], count["pwrite64"]) == (
        job["read"]["total_ios"],
        job["write"]["total_ios"],
    )
    # laying out a file ends with a sync that fio does not count
    assert job["sync"]["total_ios"] <= count["fsync"] <= job["sync"]["total_ios"] + 2
    assert {loss["loss_kind"] for loss in probe.of("loss")} <= {"unknown-name", "unpaired"}


SERVER = """
import os, socket, sys, threading
def serve(connection, path):
    connection.recv(1)
    data = os.open(path, os.O_CREAT | os.O_RDWR)
    worker = threading.Thread(target=lambda: os.pwrite(data, b'w' * 3000, 0))
    worker.start(); worker.join()
    os.pread(data, 2000, 0)
    connection.send(b'x')
    connection.recv(1)
    os._exit(0)
listener = socket.create_server(('', 445))
for client, source in (('one', '10.7.0.7'), ('two', '10.7.0.8')):
    if not os.fork():
        with socket.create_connection(('10.7.0.1', 445), source_address=(source, 0)) as connection:
            connection.send(b'x'); connection.recv(1)
            import time; time.sleep(2)
        os._exit(0)
    connection, _ = listener.accept()
    if not os.fork():
        listener.close()
        serve(connection, sys.argv[1] + '/' + client)
    connection.close()
for _ in range(4):
    os.wait()
os.pwrite(os.open(sys.argv[1] + '/own', os.O_CREAT | os.O_RDWR), b'o' * 1000, 0)
"""
NETWORK = "ip link set lo up; for n in 1 7 8; do ip address add 10.7.0.$n/32 dev lo; done; "


@pytest.mark.tracing
@pytest.mark.parametrize("name", ["smbd", "other"])
def test_calls_of_samba_bear_their_client(place: Path, name: str) -> None:
    """One process for each connection, and threads in it, as Samba has them."""
    (place / name).symlink_to(Path(sys.executable).resolve())
    (place / "server.py").write_text(SERVER)
    command = f'{NETWORK} exec "{place}/{name}" -I -S "{place}/server.py" "{place}"'
    serving = ["unshare", "--net", "sh", "-c", command]
    if subprocess.run(["unshare", "--net", "ip", "link"], capture_output=True).returncode:
        pytest.skip("ip (iproute2) is missing, or a network namespace cannot be made here")
    events, _ = recorded(lambda: subprocess.run(serving, check=True, timeout=PATIENCE))
    expected = {"one": "10.7.0.7", "two": "10.7.0.8", "own": None}
    for file, client in expected.items():
        found = rows(events, file=str(place / file))
        assert len(found) == (1 if file == "own" else 2)
        assert {events["process"][row] for row in found} == {name}
        assert {events["client"][row] for row in found} == {client if name == "smbd" else None}


@pytest.mark.exclusive
@pytest.mark.tracing
@pytest.mark.slow
def test_memory_of_a_burst_is_returned(place: Path) -> None:
    """Alone, since the source records the calls of every process: those of other tests need memory."""

    def resident() -> list[int]:
        return [tick["rss_bytes"] for tick in probe.of("tick")]

    probe = Probe.start("--source", "syscall", "--ring-kib", "32768")
    try:
        until(resident, "the first tick")
        before = resident()[0]
        for _ in range(4):
            burst = ["dd", "if=/dev/zero", f"of={place}/file", "bs=1", "count=500000"]
            subprocess.run(burst, check=True, capture_output=True, timeout=4 * PATIENCE)
        after = len(resident())
        # free memory is returned every ten seconds
        returned = "memory of the burst returned"
        until(
            lambda: min(resident()[after:], default=1 << 40) < before + (8 << 20),
            returned,
            PATIENCE,
        )
    finally:
        assert probe.stop() == 0
    assert probe.of("end")[0]["events"]["syscall"] > 1_000_000
    peak = max(resident()[: after + 1])
    assert peak > min(resident()[after:]) + (2 << 20), "the burst needs memory"


@pytest.mark.exclusive
@pytest.mark.tracing
@pytest.mark.slow
def test_names_begin_again_before_there_are_too_many(place: Path) -> None:
    code = """
import time
for number in range(3 * (1 << 15)):
    path = f'{sys.argv[1]}/{number}'
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.pwrite(file, b'x', number)
    os.close(file)
    os.unlink(path)
    if number % 8192 == 0:
        time.sleep(0.5)
"""
    events, probe = recorded(lambda: python(code, place))
    restarts = sum(frame["file_restarted"] for frame in probe.of("events"))
    assert restarts >= 1
    names = events["file"]
    own = [
        (int(events["offset_bytes"][row]), str(names[row]))
        for row in rows(events, op="write", size_bytes=1)
        if str(names[row]).startswith(f"{place}/")
    ]
    # of opens that wait for long in fanotify's queue the name is in doubt
    assert len(own) > 1 << 15
    assert all(name == f"{place}/{offset}" for offset, name in own)
    assert "(other)" not in names
