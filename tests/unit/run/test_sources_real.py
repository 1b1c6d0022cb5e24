# SPDX-License-Identifier: Apache-2.0
"""Sources beside the real fio: a slow device among four is named, a killed monitor costs its run,
watching is cheap."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from iolab.base.clock import SystemClock
from iolab.base.registry import load
from iolab.base.verdict import Level
from iolab.hosts.kinds.local import LocalHost
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.files import read_plan, run_directories, write_plan
from iolab.studies.results.evidence.model import Derived, RunPlan
from iolab.studies.run.study import run_study
from iolab.studies.sources.diskstats import DiskstatsOptions, DiskstatsSource
from iolab.studies.workloads.fio.sections import FioOptions
from iolab.studies.workloads.fio.workload import FioWorkload
from support.acting import study_text
from support.recorded import MEMORY
from support.waiting import PATIENCE

pytestmark = pytest.mark.fio

SLOW_BYTES = 256 << 10
"""Bytes per second to which one device is held: an I/O of 8 KiB takes 31 ms and more, beyond what a
busy machine adds."""


def loop(stack: ExitStack, backing: str, *, direct: bool = False) -> str:
    """A loop device on a file or device, with direct I/O where asked, detached at the end."""
    ways = ["--direct-io=on"] if direct else []
    done = subprocess.run(
        ["losetup", "--find", "--show", *ways, backing], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no loop device can be had: {done.stderr.strip()}")
    device = done.stdout.strip()
    stack.callback(subprocess.run, ["losetup", "--detach", device], check=False)
    return device


def throttled_group(stack: ExitStack, device: str) -> Path:
    """A control group whose writes to the device are held to `SLOW_BYTES`: v1's blkio, or v2 where
    it has the io controller."""
    number = Path(f"/sys/class/block/{Path(device).name}/dev").read_text().strip()
    mounts = [line.split()[:4] for line in Path("/proc/mounts").read_text().splitlines()]
    first = next(
        (
            Path(where)
            for _, where, kind, options in mounts
            if kind == "cgroup" and "blkio" in options.split(",")
        ),
        None,
    )
    second = next((Path(where) for _, where, kind, _ in mounts if kind == "cgroup2"), None)
    if first is not None:
        root, file, rule = first, "blkio.throttle.write_bps_device", f"{number} {SLOW_BYTES}"
    elif second is not None and "io" in (second / "cgroup.subtree_control").read_text().split():
        root, file, rule = second, "io.max", f"{number} wbps={SLOW_BYTES}"
    else:
        pytest.skip("neither cgroup v1's blkio nor v2's io controller is mounted")
    group = root / f"iolab-test-{os.getpid()}"
    group.mkdir()
    stack.callback(group.rmdir)
    (group / file).write_text(rule)
    return group


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[tuple[list[str], Path]]:
    """Four loop devices, the last upon another one that is throttled, and the group for whom it is."""
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("loop devices need root and losetup")
    with ExitStack() as stack:
        # in memory, where a slow disk of this machine changes nothing
        memory = stack.enter_context(
            tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else tmp_path)
        )
        backing = []
        for number in range(4):
            path = Path(memory, f"disk{number}")
            with path.open("wb") as file:
                file.truncate(64 << 20)
            backing.append(loop(stack, str(path)))
        # Throttling holds an I/O back before its device counts it: the one above shows how long it
        # took.
        slow = loop(stack, backing[3], direct=True)
        yield [*backing[:3], slow], throttled_group(stack, backing[3])


def striped(devices: list[str], group: Path, directory: Path) -> Derived:
    """Four seconds of writes over all devices in turn, watched, by a fio in the group."""
    names = [Path(device).name for device in devices]
    directory.mkdir()
    source = DiskstatsSource(DiskstatsOptions(devices=[]), LocalHost(), SystemClock(), names)
    fio = [
        "fio",
        "--name=stripe",
        f"--filename={':'.join(devices)}",
        "--rw=randwrite",
        "--bs=8k",
        "--direct=1",
        "--numjobs=4",
        "--size=200m",
        "--runtime=4",
        "--time_based",
        "--group_reporting",
        "--output-format=json+",
        "--output=fio.json",
    ]
    source.start(directory)
    process = subprocess.Popen(
        ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *fio], cwd=directory
    )
    while process.poll() is None:
        time.sleep(0.05)
        source.poll()
    source.stop()
    assert process.returncode == 0
    options = FioOptions.model_validate(
        {"runtime": 4, "options": {"rw": "randwrite", "size": "1m"}}
    )
    plan = RunPlan(
        run="0001-a",
        variant="v",
        factors={},
        jobs=4,
        runtime=4.0,
        exit_code=0,
        window=FioWorkload(options).window(directory),
        extra={"sources": ["diskstats"]},
    )
    write_plan(directory, plan)
    return derive(directory, plan)


@pytest.mark.exclusive
def test_a_throttled_device_among_four_is_seen_and_named(
    fio: str, devices: tuple[list[str], Path], tmp_path: Path
) -> None:
    result = striped(*devices, tmp_path / "run")
    slow = Path(devices[0][3]).name
    reasons = {reason.code: reason for reason in result.verdict.reasons}
    assert reasons["slow-device"].level is Level.SUSPECT
    assert reasons["slow-device"].data["device"] == slow
    values = {one.metric: one.value for one in result.observations}
    awaits = {
        Path(device).name: values[f"device.await[{Path(device).name}]"] for device in devices[0]
    }
    assert max(awaits, key=lambda name: awaits[name]) == slow
    assert values[f"device.write.bw[{slow}]"] == pytest.approx(SLOW_BYTES, rel=0.35)


def test_a_killed_iostat_makes_its_run_invalid_and_the_study_goes_on(
    fio: str, tmp_path: Path
) -> None:
    if shutil.which("iostat") is None:
        pytest.skip("iostat is absent")
    device = next(
        (path.name for path in sorted(Path("/sys/block").iterdir()) if "ram" not in path.name), None
    )
    if device is None:
        pytest.skip("no block device")
    text = (
        study_text(repetitions=1)
        .replace("numjobs = [1, 4]", "numjobs = [1]")
        .replace('"2s"', '"6s"')
        .replace('"500ms"', "0")
    )
    (tmp_path / "study.toml").write_text(
        f'{text}\n[sources.iostat]\ndevices = ["{device}"]\n[sources.cpu]\n[sources.memory]\n'
    )
    mine = {entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()}

    def kill() -> None:
        """End the first iostat that this study starts, once it has reported to its file."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for entry in Path("/proc").iterdir():
                if (
                    entry.name.isdigit()
                    and entry.name not in mine
                    and _is_our_iostat(entry, tmp_path)
                    and _has_reported(entry, tmp_path)
                ):
                    os.kill(int(entry.name), signal.SIGKILL)
                    return
            time.sleep(0.02)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    out = run_study(tmp_path / "study.toml", tmp_path / "out")
    killer.join()
    first, second = run_directories(out)
    judged = derive(first, read_plan(first)).verdict
    assert judged.level is Level.INVALID
    assert any(
        "iostat ended early" in reason.text and "exit code 137" in reason.text
        for reason in judged.reasons
    )
    sound = derive(second, read_plan(second))
    assert not sound.verdict.has("monitor-dead"), [reason.text for reason in sound.verdict.reasons]
    assert {"host.cpu.busy", "host.memory.dirty", "device.util"} <= {
        one.metric for one in sound.observations
    }
    assert {"cpu.log", "memory.log", "iostat.json"} <= {path.name for path in second.iterdir()}


def _is_our_iostat(entry: Path, below: Path) -> bool:
    try:
        command = (entry / "cmdline").read_bytes().split(b"\0")
        return command[0].endswith(b"iostat") and (entry / "cwd").resolve().is_relative_to(below)
    except OSError:
        return False


def _has_reported(entry: Path, below: Path) -> bool:
    """Whether the output of a process is a file below a directory, and not empty.
    `iostat -V` writes to a pipe, and ends at once."""
    try:
        log = (entry / "fd/1").readlink()
        return log.is_relative_to(below) and log.stat().st_size > 0
    except OSError:
        return False


@pytest.mark.exclusive
def test_watching_costs_little(tmp_path: Path) -> None:
    """All default sources: one reading of each takes less than 10 ms of CPU, a per cent of a
    second."""
    sources = [load("source", name) for name in ("diskstats", "cpu", "memory")]
    names = [line.split()[2] for line in Path("/proc/diskstats").read_text().splitlines()]
    running = [
        source(source.options(interval=0.01), LocalHost(), SystemClock(), names)
        for source in sources
    ]
    for source in running:
        source.start(tmp_path)
    before = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    for _ in range(50):
        time.sleep(0.01)
        for source in running:
            source.poll()
    spent = (sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - before) / 50
    for source in running:
        source.stop()
    print(f"a reading of all default sources takes {1e3 * spent:.2f} ms of CPU")
    assert spent < 0.01
