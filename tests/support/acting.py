"""A machine in memory with a disk and a fio that works, for tests of the runner: no fio is needed and no time passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iolab.clock import FakeClock
from iolab.hosts.base import Completed
from iolab.hosts.fake import FakeHost, FakeProgram
from iolab.run.progress import Outcome
from iolab.study.load import Study
from iolab.study.plan import Plan, PlannedRun
from support.fio_files import job, output

DISKSTATS = ("   8       0 sda 10 0 80 5 20 0 160 9 0 11 14 0 0 0 0 0 0\n"
             "   8       1 sda1 10 0 80 5 20 0 160 9 0 11 14 0 0 0 0 0 0\n"
             "   8      16 sdb 1 0 8 5 2 0 16 9 0 11 14 0 0 0 0 0 0\n")

SYS = {
    "/proc/self/mountinfo": "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n",
    "/proc/diskstats": DISKSTATS,
    "/proc/sys/kernel/osrelease": "6.1.0-fake\n",
    "/proc/meminfo": "MemTotal:       16384000 kB\n",
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
    (directory / "fio.json").write_text(output(job(jobs=1, runtime=2.0)), "utf-8")


def fake_fio(seconds: float = 2.6) -> FakeProgram:
    """A fio of version 3.33 that accepts every job."""

    def answer(command: Sequence[str]) -> Completed:
        said = "fio-3.33\n" if "--version" in command else ""
        return Completed(tuple(command), 0, said, "")

    return FakeProgram(seconds=seconds, output=answer, work=write_result)


def fake_host(clock: FakeClock | None = None) -> FakeHost:
    """A machine with fio, sync, and one disk behind its root."""
    return FakeHost(clock or FakeClock(), programs={"fio": fake_fio(), "sync": FakeProgram(seconds=0.0)}, files=dict(SYS),
                    links=dict(LINKS))


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
    plan: Plan | None = None
    end: Outcome | None = None
    waits: int = 0
    left: list[float] = field(default_factory=list)

    def planned(self, study: Study, plan: Plan, directory: Path) -> None:
        self.plan = plan

    def started(self, run: PlannedRun, name: str) -> None:
        pass

    def waiting(self, run: PlannedRun, seconds: float, expected: float) -> None:
        self.waits += 1

    def ended(self, run: PlannedRun, status: str, reason: str, left_seconds: float) -> None:
        self.runs.append((run.number, status, reason))
        self.left.append(left_seconds)

    def noticed(self, text: str) -> None:
        self.notes.append(text)

    def outcome(self, outcome: Outcome) -> None:
        self.end = outcome
