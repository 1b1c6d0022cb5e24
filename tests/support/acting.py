# SPDX-License-Identifier: Apache-2.0
"""A machine in memory with a disk and a fio that works, for tests of the runner: no fio is needed
and no time passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from iolab.base.clock import FakeClock
from iolab.hosts.base.host import Completed
from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from iolab.studies.plan.cells.plan import Plan, PlannedRun
from iolab.studies.plan.file.load import Study
from iolab.studies.run.progress import Outcome
from iolab.studies.run.study import How
from support.fio_files import job, output


def split_how(given: dict[str, Any]) -> How:
    """What of the arguments is how a study is done; the others remain in them."""
    names = [each.name for each in fields(How) if each.name in given]
    return How(**{name: given.pop(name) for name in names})


DISKSTATS = (
    "   8       0 sda 10 0 80 5 20 0 160 9 0 11 14 0 0 0 0 0 0\n"
    "   8       1 sda1 10 0 80 5 20 0 160 9 0 11 14 0 0 0 0 0 0\n"
    "   8      16 sdb 1 0 8 5 2 0 16 9 0 11 14 0 0 0 0 0 0\n"
)

STAT = (
    "cpu  100 10 50 800 40 5 5 0 0 0\ncpu0 60 5 30 400 20 5 5 0 0 0\ncpu1 40 5 20 400 20 0 0 0 0 0\n"
    "intr 5000 0 7 0\nctxt 9000\nbtime 1700000000\nprocesses 77\nprocs_running 2\nprocs_blocked 1\nsoftirq 50 1 2\n"
)
VMSTAT = (
    "nr_dirty 12\nnr_writeback 0\nnr_dirtied 500\nnr_written 400\npgpgin 1000\npgpgout 2000\npswpin 0\npswpout 0\n"
    "allocstall_normal 3\nallocstall_movable 4\npgscan_direct 9\npgfault 70\npgmajfault 7\ncompact_stall 1\n"
)
PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=500\n"

SYS = {
    "/proc/self/mountinfo": "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n",
    "/proc/diskstats": DISKSTATS,
    "/proc/sys/kernel/osrelease": "6.1.0-fake\n",
    "/proc/meminfo": (
        "MemTotal:       16384000 kB\nMemFree:         8192000 kB\nMemAvailable:   12288000 kB\n"
        "Cached:          2048000 kB\nDirty:               400 kB\nWriteback:             0 kB\nHugePages_Total:       0\n"
    ),
    "/proc/stat": STAT,
    "/proc/vmstat": VMSTAT,
    **{f"/proc/pressure/{resource}": PRESSURE for resource in ("io", "cpu", "memory")},
    "/proc/cpuinfo": "processor\t: 0\nmodel name\t: Fake CPU\nprocessor\t: 1\nmodel name\t: Fake CPU\n",
    "/sys/devices/pci/block/sda/size": "1000\n",
    "/sys/devices/pci/block/sda/queue/scheduler": "none [mq-deadline]\n",
    "/sys/devices/pci/block/sda/queue/rotational": "1\n",
    "/sys/devices/pci/block/sda/device/model": "FAKE DISK\n",
    "/sys/devices/pci/block/sda/sda1/partition": "1\n",
}
LINKS = {
    "/sys/dev/block/8:1": "/sys/devices/pci/block/sda/sda1",
    "/sys/class/block/sda": "/sys/devices/pci/block/sda",
    "/sys/class/block/sda1": "/sys/devices/pci/block/sda/sda1",
}


def write_result(command: Sequence[str], directory: Path) -> None:
    """What a healthy fio of four jobs leaves."""
    (directory / "fio.json").write_text(output(job(jobs=1, runtime=2.0), minute=0), "utf-8")


def fake_fio(seconds: float = 2.6) -> FakeProgram:
    """A fio of version 3.33 that accepts every job."""

    def answer(command: Sequence[str]) -> Completed:
        said = "fio-3.33\n" if "--version" in command else ""
        return Completed(tuple(command), 0, said, "")

    return FakeProgram(seconds=seconds, output=answer, work=write_result)


def iostat_document(passed: float, whole: bool = True) -> str:
    """What `iostat -o JSON -xdt 1 sda` has written after so many seconds: a report at once, then
    one a second."""
    row = (
        '{"disk_device": "sda", "r/s": 0.00, "w/s": 100.00, "rkB/s": 0.00, "wkB/s": 800.00, "r_await": 0.00, "w_await": 1.00, '
        '"util": 50.00}'
    )
    reports = [
        f'{{"timestamp": "2023-11-14T22:{13 + (20 + second) // 60:02}:{(20 + second) % 60:02}+0000", "disk": [{row}]}}'
        for second in range(int(passed + 1e-6) + 1)
    ]
    return (
        '{"sysstat": {"hosts": [{"nodename": "fake", "statistics": ['
        + ",\n".join(reports)
        + ("]}]}}" if whole else "")
    )


def fake_iostat(seconds: float = 1e9, exit_code: int = 0) -> FakeProgram:
    """An iostat that reports once a second until it is ended, or dies after `seconds`."""
    return FakeProgram(
        seconds=seconds,
        exit_code=exit_code,
        prints=lambda passed: iostat_document(passed, whole=passed < seconds),
    )


def fake_host(clock: FakeClock | None = None) -> FakeHost:
    """A machine with fio, sync, iostat, and one disk behind its root."""
    return FakeHost(
        clock or FakeClock(),
        programs={"fio": fake_fio(), "sync": FakeProgram(seconds=0.0), "iostat": fake_iostat()},
        files=dict(SYS),
        links=dict(LINKS),
    )


def set_rates(host: FakeHost, rate: Callable[[str, int], float]) -> None:
    """Let fio measure IOPS by the text of its job and the number of the run; one job."""

    def work(command: Sequence[str], directory: Path) -> None:
        text = " ".join(path.read_text() for path in directory.glob("*.fio"))
        iops = rate(text, int(directory.name[:4]))
        result = output(job(jobs=1, iops=iops, runtime=2.0), minute=0)
        end = f'"timestamp_ms": {host.clock.realtime_ns() // 1_000_000}'
        (directory / "fio.json").write_text(re.sub(r'"timestamp_ms": \d+', end, result), "utf-8")

    host.programs["fio"].work = work


def study_text(*, repetitions: int = 2, order: str = "balanced", extra: str = "") -> str:
    """A study of two variants at two levels."""
    return f"""
[study]
name = "small"
repetitions = {repetitions}
order = "{order}"

[workload]
kind = "fio"
runtime = "2s"
ramp = "500ms"

[workload.options]
rw = "randwrite"
bs = "4k"
size = "1m"

[factors]
numjobs = [1, 4]

[variants.plain]
[variants.synced]
workload.options.sync = "dsync"
{extra}"""


@dataclass
class Listener:
    """Remembers what it heard."""

    runs: list[tuple[int, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    study: Study | None = None
    plan: Plan | None = None
    end: Outcome | None = None
    waits: int = 0
    left: list[float] = field(default_factory=list)
    latest: dict[str, float] = field(default_factory=dict)
    values: list[dict[str, float]] = field(default_factory=list)

    def begin_study(self, study: Study, plan: Plan, directory: Path) -> None:
        self.study, self.plan = study, plan

    def begin_run(self, run: PlannedRun, name: str) -> None:
        pass

    def update_run(
        self, run: PlannedRun, seconds: float, expected: float, latest: Mapping[str, float]
    ) -> None:
        self.waits += 1
        self.latest.update(latest)

    def end_run(
        self,
        run: PlannedRun,
        status: str,
        reason: str,
        left_seconds: float,
        values: Mapping[str, float],
    ) -> None:
        self.runs.append((run.number, status, reason))
        self.left.append(left_seconds)
        self.values.append(dict(values))

    def notice(self, text: str) -> None:
        self.notes.append(text)

    def outcome(self, outcome: Outcome) -> None:
        self.end = outcome
