# SPDX-License-Identifier: Apache-2.0
"""What one run's evidence says, gathered once for observations and gates alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from iolab.base.errors import UsageError
from iolab.base.units import parse_fio_size, parse_fio_time
from iolab.formats.core.tables import DeviceSamples, FioDirection, FioJob, FioOutput, Latency

from ..evidence.clients import ClientRun
from ..evidence.model import PROGRAM, RunPlan, Series

SYNC_ENGINES = {
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
    "null",
    "falloc",
    "ftruncate",
    "filecreate",
    "filestat",
    "filedelete",
    "net",
    "netsplice",
    "splice",
    "e4defrag",
    "cpuio",
}
"""fio engines that hold one I/O at a time whatever iodepth says (fio(1), iodepth)."""

_ONE = 1.1
"""Up to so many threads' runtime is one thread's: it takes a little longer than its I/Os."""


@dataclass(frozen=True)
class DamagedFile:
    """A file of the run that could not be read, with its reason. `is_auxiliary`: not the load's
    own result, and its numbers are as good without it."""

    file: str
    reason: str
    is_auxiliary: bool = False


@dataclass(frozen=True)
class Monitor:
    """What one file of a monitor holds of one thing that it watched.

    Attributes:
        file: its name; what: the device, or the source where it watched the host as a whole.
        samples: how many lie inside the window; interval: seconds between them, None where its file
        doesn't say.
    """

    file: str
    what: str
    samples: int
    interval: float | None


@dataclass(frozen=True)
class RunFacts:
    """Everything that gates may ask of one run.

    Attributes:
        fio, fio_file: the load's own result and the file it came from; None where there is none.
        pooled: the run's jobs as one: operation to its sums. None where there is no job, or
        `sections` ran one after another. sections: names of fio's sections where the result holds
        several and the run is none of them; else empty. entries: positions of the run's jobs in the
        file, where it is a section of it; empty where they are all. processes: how many results of
        fio were joined, 0 where the run has one. is_over_time: whether `pooled`
        has the rates of a whole window in which jobs took turns, and isn't the sum of the entries.
        devices: name to samples, cut to the window, of those that sums over devices hold.
        monitor_files: files that a monitor wrote. monitors: what each of those files holds, a
        device each, within the window. host_busy: share of the time of all the host's CPUs that was
        busy over the window. None where it was not recorded. series: name to per-second series.
        damaged: files that could not be read. altered: files that describe the run in words, and
        are not as the run left them. environment, reference: this run's host facts and those to
        which they are held (`derive_all`). target: what the target said of the run (`target.json`),
        empty where it said nothing. builds: what was loaded or ran for each build that a run of the
        study requested (`build` of `target.json` and of `run.json`), one entry each. io_log: what became of the log of
        every I/O (`log_ios.json`), empty where there was none. clients: of a load from several
        hosts, each with its part of the run; then each job's host is its client. host: further
        facts of the host, `memory_bytes` and `cpus` among them, where known. pass_seconds: how long
        each pass of reading before the last one took.
    """

    plan: RunPlan
    fio: FioOutput | None = None
    fio_file: str = ""
    pooled: FioJob | None = None
    sections: tuple[str, ...] = ()
    entries: tuple[int, ...] = ()
    processes: int = 0
    is_over_time: bool = False
    devices: Mapping[str, DeviceSamples] = field(default_factory=dict)
    monitor_files: tuple[str, ...] = ()
    monitors: tuple[Monitor, ...] = ()
    host_busy: float | None = None
    series: Mapping[str, Series] = field(default_factory=dict)
    damaged: Sequence[DamagedFile] = ()
    altered: Sequence[DamagedFile] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    reference: Mapping[str, str] = field(default_factory=dict)
    host: Mapping[str, float] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    builds: Sequence[Mapping[str, Any]] = ()
    io_log: Mapping[str, Any] = field(default_factory=dict)
    clients: tuple[ClientRun, ...] = ()
    pass_seconds: tuple[float, ...] = ()

    @cached_property
    def options(self) -> Mapping[str, str]:
        """What fio echoed of its options, global below the first job's; never complete (flags are
        missing)."""
        if self.fio is None:
            return {}
        first = self.fio.jobs[0].options if self.fio.jobs else {}
        return {**self.fio.global_options, **first}

    @cached_property
    def jobs(self) -> int | None:
        """Concurrent jobs: what the file of an imported run proves, else the plan's, else as many
        as fio's echo says on each host, but no fewer than there are entries."""
        if self.proven_jobs is not None or self.plan.jobs is not None:
            return self.plan.jobs if self.proven_jobs is None else self.proven_jobs
        if self.fio is None or not self.fio.jobs:
            return None
        echoed = self.options.get("numjobs", "")
        hosts = len({job.origin for job in self.fio.jobs})
        return max(len(self.fio.jobs), int(echoed) * hosts if echoed.isdecimal() else 0)

    @cached_property
    def proven_jobs(self) -> int | None:
        """Jobs of an imported run by the runtimes that fio adds up (`job_runtime`); None where the
        file lacks them."""
        if (
            self.plan.status != "imported"
            or self.fio is None
            or any(job.job_runtime is None for job in self.fio.jobs)
        ):
            return None
        alike = Counter((job.origin, job.group, job.name) for job in self.fio.jobs)
        return (
            round(
                sum(
                    threads_of(job, seconds_of(job), alike[job.origin, job.group, job.name])[0]
                    for job in self.fio.jobs
                )
            )
            or None
        )

    @cached_property
    def depth(self) -> int:
        """I/Os in flight per job, as the engine does them."""
        return (
            self.plan.depth if self.plan.depth is not None else effective_depth(self.options) or 1
        )

    @cached_property
    def concurrency(self) -> float | None:
        """I/Os that can be in flight over all jobs, mean over the window: the plan's where jobs
        differ, else jobs x depth."""
        planned = self.plan.extra.get("concurrency")
        if isinstance(planned, int | float) and planned > 0:
            return float(planned)
        return None if self.jobs is None else float(self.jobs * self.depth)

    @cached_property
    def offered_iops(self) -> float | None:
        """Offered rate of an open loop over all jobs, 1/s: the plan's, else echoed rate_iops x
        jobs."""
        if self.plan.offered_iops is not None:
            return self.plan.offered_iops
        rates = [
            float(part)
            for part in self.options.get("rate_iops", "").split(",")
            if part.strip().isdigit()
        ]
        if not rates or self.jobs is None:
            return None
        # "read,write,trim" gives a rate each; one number holds for every direction that runs
        active = [name for name in ("read", "write", "trim") if name in self.directions]
        per_job = (
            rates[0] * max(len(active), 1)
            if len(rates) == 1
            else sum(
                rate
                for name, rate in zip(("read", "write", "trim"), rates, strict=False)
                if name in active
            )
        )
        return per_job * self.jobs if per_job > 0 else None

    @cached_property
    def asked_runtime(self) -> float | None:
        """Seconds that the measured window was to last."""
        if self.plan.runtime is not None:
            return self.plan.runtime
        return self._option(parse_fio_time, "runtime", "timeout")

    @cached_property
    def asked_bytes(self) -> int | None:
        """Bytes that the jobs were to move in all when bounded by size; None where unknown.

        Of an imported run each entry has its own size and threads: what a layout calls jobs may be
        something else.
        """
        if self.plan.status != "imported" or self.fio is None:
            size = bytes_of_job(self.options)
            return None if size is None or self.jobs is None else int(size) * self.jobs
        alike = Counter((job.origin, job.group, job.name) for job in self.fio.jobs)
        total = 0
        for job in self.fio.jobs:
            size = bytes_of_job({**self.fio.global_options, **job.options})
            if size is None or is_of_several_sections(job):
                return None
            threads, _, is_told = threads_of(
                job, seconds_of(job), alike[job.origin, job.group, job.name]
            )
            if not is_told and not job.options and self.plan.jobs is not None:
                threads = self.plan.jobs / len(self.fio.jobs)
            total += round(size * threads)
        return total or None

    @cached_property
    def asked_ios(self) -> int | None:
        """I/Os that the jobs were to do in all (`number_ios`); None where a job has no such
        bound."""
        if self.fio is None or not self.fio.jobs:
            return None
        alike = Counter((job.origin, job.group, job.name) for job in self.fio.jobs)
        total = 0.0
        for job in self.fio.jobs:
            text = {**self.fio.global_options, **job.options}.get("number_ios", "")
            if not text.isdecimal() or int(text) == 0:
                return None
            threads = threads_of(job, seconds_of(job), alike[job.origin, job.group, job.name])
            total += int(text) * threads[0]
        return int(total)

    @cached_property
    def is_bounded(self) -> bool:
        """Whether fio echoed a bound of size or number besides the runtime."""
        return any(name in self.options for name in ("size", "io_size", "number_ios"))

    @cached_property
    def ended_by_size(self) -> bool:
        """Whether the load ended because everything was moved that it was to move, and began with
        its window.

        Known of jobs of one section of known size. Of an imported run that had a runtime as
        well it is unknown: fio echoes no flag, and `time_based` is one.
        """
        extra = self.plan.extra
        bounded = extra.get("time_based", self.asked_runtime is not None) or "sections" in extra
        if bounded or self.plan.ramp or "ramp_time" in self.options or self.asked_bytes is None:
            return False
        moved = sum(direction.size_bytes for direction in self.parts.values())
        return 0 < self.asked_bytes <= moved and (
            self.asked_runtime is None or self.runtime < self.asked_runtime
        )

    @cached_property
    def data_bytes(self) -> int | None:
        """Bytes of data that the load goes over: `size` of each job, and once where `filename`
        makes them share it and no `offset_increment` sends each to a part of its own (fio(1)); None
        where unknown."""
        size = self._option(parse_fio_size, "size")
        if size is None or self.jobs is None:
            return None
        apart = (
            "offset_increment" in self.options
            and self._option(parse_fio_size, "offset_increment") != 0
        )
        shared = "filename" in self.options and not apart
        return int(size) * (len(self.clients) or 1 if shared else self.jobs)

    def _option(self, parse: Callable[[str], float], *names: str) -> float | None:
        return _parse_option(self.options, parse, *names)

    @property
    def directions(self) -> Mapping[str, FioDirection]:
        """Operations that ran, pooled over jobs."""
        return {} if self.pooled is None else self.pooled.directions

    @cached_property
    def parts(self) -> Mapping[str, FioDirection]:
        """Operations that add up to the whole: fio's `mixed` replaces read, write and trim, and
        may be given in addition to them."""
        return parts_of(self.directions)

    @cached_property
    def runtime(self) -> float:
        """Seconds that the load measured: the longest operation's; of a program, from its start to
        its end."""
        if PROGRAM in self.plan.extra and self.plan.window is not None:
            return (self.plan.window[1] - self.plan.window[0]) / 1e9
        return max((direction.runtime for direction in self.directions.values()), default=0.0)

    @cached_property
    def iops(self) -> float:
        """I/Os per second over all operations except syncs."""
        return sum(direction.iops for name, direction in self.parts.items() if name != "sync")

    @cached_property
    def client_iops(self) -> dict[str, float]:
        """I/Os per second of each client over all operations except syncs; empty for a load on one
        host."""
        rates = dict.fromkeys((client.name for client in self.clients), 0.0)
        for job in () if self.fio is None else self.fio.jobs:
            if job.hostname in rates:
                parts = parts_of(job.directions)
                rates[job.hostname] += sum(
                    direction.iops for name, direction in parts.items() if name != "sync"
                )
        return rates

    @cached_property
    def cpu(self) -> float:
        """User plus system share of one CPU that a job took on average."""
        return 0.0 if self.pooled is None else self.pooled.user_cpu + self.pooled.system_cpu


def bytes_of_job(options: Mapping[str, str]) -> float | None:
    """Bytes that a job with these options moves, as far as they say it: `io_size`, else `size`,
    which may be percentages, limited by `filesize` of its files from `offset` on (fio(1)).

    None where they don't say it: a percentage of files of unknown size, or sizes in a range.
    """
    filesize = _parse_option(options, parse_fio_size, "filesize")
    if "filesize" in options and filesize is None:
        return None
    files = options.get("nrfiles", "1")
    whole = None if filesize is None or not files.isdecimal() else filesize * int(files)
    size = _size_of(options, "size", whole)
    if size is not None and whole is not None:
        offset = _size_of(options, "offset", whole)
        size = None if offset is None and "offset" in options else min(size, whole - (offset or 0))
    if "io_size" in options:
        return _size_of(options, "io_size", size)
    return size if "size" in options else None


def _size_of(options: Mapping[str, str], name: str, whole: float | None) -> float | None:
    """Bytes of an option; those of a percentage of `whole`."""
    text = options.get(name, "")
    if text.endswith("%"):
        share = text[:-1]
        return whole * int(share) / 100 if whole is not None and share.isdecimal() else None
    return _parse_option(options, parse_fio_size, name)


def _parse_option(
    options: Mapping[str, str], parse: Callable[[str], float], *names: str
) -> float | None:
    """The first of some options that is there, parsed; None without it, or where it isn't such."""
    text = next((options[name] for name in names if name in options), None)
    try:
        return None if text is None else float(parse(text))
    except UsageError:
        return None


def is_of_several_sections(job: FioJob) -> bool:
    """Whether more threads ran in an entry than the section that fio echoes has: the others have
    options of their own, which group_reporting hides."""
    seconds = seconds_of(job)
    if job.job_runtime is None or not job.options or seconds <= 0:
        return False
    echoed = job.options.get("numjobs", "")
    return job.job_runtime / seconds > (int(echoed) if echoed.isdecimal() else 1) + _ONE - 1


def parts_of(directions: Mapping[str, FioDirection]) -> Mapping[str, FioDirection]:
    """Operations that add up to the whole: fio's `mixed` replaces read, write and trim, and
    may be given in addition to them."""
    apart = {name: direction for name, direction in directions.items() if name != "mixed"}
    return apart if apart.keys() - {"sync"} else directions


def effective_depth(options: Mapping[str, str]) -> int | None:
    """I/Os that a job with these options keeps in flight: 1 for engines that hold one at a time,
    `iodepth` otherwise. None where an engine that holds several has no iodepth among them."""
    if (
        options.get("ioengine", "psync") in SYNC_ENGINES
        and options.get("io_submit_mode") != "offload"
    ):
        return 1
    echoed = options.get("iodepth", "")
    return int(echoed) if echoed.isdecimal() and int(echoed) > 0 else None


def mean_latency(direction: FioDirection) -> Latency | None:
    """The latency that a job waits for: `lat`, else `clat` (terse output and old files without
    it)."""
    return direction.latencies.get("lat") or direction.latencies.get("clat")


def threads_of(job: FioJob, seconds: float, alike: int) -> tuple[float, float | None, bool]:
    """Threads of an entry, more than which it can't have had at a time, and whether the file says
    so at all."""
    echoed = job.options.get("numjobs", "")
    said = int(echoed) if echoed.isdecimal() and int(echoed) > 0 else None
    if job.job_runtime is not None and seconds > 0:
        # all runtimes over the longest: as many as that were at work on average, whatever numjobs
        # says
        ran = max(1.0, job.job_runtime / seconds)
        return (
            (
                1.0
                if ran <= _ONE
                else float(said)
                if said is not None and said >= ran - 0.1
                else round(ran)
            ),
            ran,
            True,
        )
    if alike > 1:
        phases = (
            sum(direction.runtime for direction in job.directions.values()) / seconds
            if not job.options and seconds > 0
            else 1.0
        )
        return 1.0, max(1.0, phases), True
    return float(said or 1), None, said is not None


def seconds_of(job: FioJob) -> float:
    """How long an entry did I/O: its longest operation; all of them where what was written was
    verified afterwards."""
    times = [
        direction.runtime for name, direction in parts_of(job.directions).items() if name != "sync"
    ]
    times = times or [direction.runtime for direction in job.directions.values()]
    return sum(times) if "verify" in job.options else max(times, default=0.0)
