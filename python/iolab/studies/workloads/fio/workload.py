# SPDX-License-Identifier: Apache-2.0
"""fio as the workload: any of its options, or a job file as it is, in a job file that stays with
the run's evidence."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from iolab.base.errors import FormatError, RunError
from iolab.hosts.base.host import Host, Place, need
from iolab.hosts.base.options import Options

from ...results.evidence.marks import Mark
from ..base import Job, Load, StartTime, Workload
from .check import check_jobs
from .ios import FOLDER, io_logs, span_ns
from .job import (
    JOB_FILE,
    LAYOUT_FILE,
    LAYOUT_OUTPUT,
    LOG_PREFIX,
    OUTPUT_FILE,
    job_sections,
    starting_at,
)
from .jobfile import Section
from .names import KNOWN, RESERVED
from .options import (
    SMALL_BLOCK,
    depth,
    direction,
    job_text,
    laid_out,
    largest_block,
    offered_iops,
    space_bytes,
)
from .sections import NAME, FioOptions, resolve
from .steps import DEVICES, as_data

SPARE_SECONDS = 60.0
_EPOCH_MS = 1e11
"""Times below this (1973) count from the start of a job."""
SLOWEST_LAYOUT = 10e6
"""Bytes per second below which laying out files counts as hanging."""
_ONLY_READ = {"read", "randread"}
_OWN_FACTORS = {"compressibility", "section"}
"""Factors that are keys of the workload's table, not fio's options."""


class FioWorkload:
    """fio with one job section, `numjobs` times; with the sections of a job file; or with a load
    that rises within the run.

    iolab adds: the place, runtime and time_based, ramp_time, group_reporting, and per-second logs
    of rate and bandwidth, one file each over all jobs of a section, stamped with the wall clock
    (runs of two seconds and more). With `log_ios` the logs hold every I/O instead, and those per
    second are summed from them after the run.
    """

    name: ClassVar[str] = "fio"
    options: ClassVar[type[Options]] = FioOptions
    waits: ClassVar[bool] = True

    def __init__(self, options: FioOptions) -> None:
        self._given = options
        self._resolved = resolve(options)

    @classmethod
    def place_of(cls, factor: str) -> tuple[str, ...] | None:
        """A factor named as a fio option becomes that option."""
        if factor in _OWN_FACTORS:
            return (factor,)
        return ("options", factor) if factor in KNOWN and factor not in RESERVED else None

    @classmethod
    def factors(cls) -> Collection[str]:
        """fio's options that may be set here, and iolab's own."""
        return (KNOWN - RESERVED.keys()) | _OWN_FACTORS

    @classmethod
    def tools(cls, host: Host) -> Mapping[str, str]:
        """fio's version as it writes it: `fio-3.33`."""
        need(host, "fio", "fio")
        answer = host.run(["fio", "--version"])
        version = answer.stdout.strip()
        if answer.exit_code or not re.fullmatch(r"fio-[\w.-]+", version):
            said = (version or answer.stderr.strip())[:80]
            raise RunError(
                f"'fio --version' says '{said}' (exit code {answer.exit_code})",
                where=host.name,
                hint="check the fio that is first in PATH",
            )
        return {"fio": version}

    @classmethod
    def check(cls, host: Host, jobs: Mapping[str, Workload]) -> None:
        """Have fio parse every distinct job (`--parse-only`), all in one file: bad options cost
        nothing but a second."""
        sections: dict[str, tuple[Section, ...]] = {}
        for name, workload in jobs.items():
            assert isinstance(workload, FioWorkload)
            sections[name] = workload._resolved.sections
        check_jobs(host, sections)

    def load(self) -> Load:
        """Jobs, depth and room from the options, read as fio reads them."""
        resolved = self._resolved
        sections = resolved.sections
        jobs = [_jobs(section) for section in sections]
        in_flight = [
            count * depth(section.options) for count, section in zip(jobs, sections, strict=True)
        ]
        rates = [
            offered_iops(section.options, count)
            for count, section in zip(jobs, sections, strict=True)
        ]
        spaces = [
            space_bytes(section.options, count)
            for count, section in zip(jobs, sections, strict=True)
        ]
        layouts = [
            space if laid_out(section.options) else 0
            for space, section in zip(spaces, sections, strict=True)
        ]
        offered = self._over_time([rate or 0.0 for rate in rates]) if any(rates) else None
        facts: dict[str, Any] = {"time_based": resolved.time_based}
        if len(sections) > 1:
            facts.update(
                sections=len(sections),
                concurrency=self._over_time([float(count) for count in in_flight]),
            )
        if resolved.steps:
            assert self._given.steps is not None
            facts["steps"] = as_data(resolved.steps, self._given.steps.factor, apart=resolved.apart)
        if resolved.log_ios:
            facts["log_ios"] = True
        if resolved.notes:
            facts["notes"] = list(resolved.notes)
        options = dict(sections[0].options)
        if self._given.compressibility is not None:
            options["compressibility"] = self._given.compressibility
        return Load(
            jobs=max(jobs) if resolved.apart else sum(jobs),
            depth=max(depth(section.options) for section in sections),
            runtime=resolved.runtime,
            ramp=resolved.ramp,
            offered_iops=offered,
            space_bytes=max(spaces) if resolved.apart else sum(spaces),
            options=options,
            writes=any(direction(section.options) not in _ONLY_READ for section in sections),
            facts=facts,
            layout_bytes=max(layouts) if resolved.apart else sum(layouts),
            layout_first=any(
                laid_out(section.options) and largest_block(section.options) < SMALL_BLOCK
                for section in sections
            ),
        )

    def job(self, place: Place, start: StartTime | None = None) -> Job:
        """The job file and the command that runs it in the evidence directory."""
        sections = job_sections(
            self._resolved, place, rising=DEVICES if self._rises(DEVICES) else ""
        )
        if start is not None:
            sections = starting_at(sections, start)
        readonly = ["--readonly"] if place.kind == "device" and not self.load().writes else []
        files = {JOB_FILE: _text(sections)}
        if self._given.job is not None:
            files["given.fio"] = self._given.job
        command = ("fio", *readonly, "--output-format=json+", f"--output={OUTPUT_FILE}", JOB_FILE)
        return Job(
            command,
            files,
            JOB_FILE,
            self._limit(),
            folders=(FOLDER,) if self._resolved.log_ios else (),
        )

    def layout(self, place: Place) -> Job | None:
        """The same job, ended once its files are there; devices have none."""
        if place.kind == "device":
            return None
        sections = job_sections(self._resolved, place, logs=False, create_only=True)
        return Job(
            ("fio", f"--output={LAYOUT_OUTPUT}", LAYOUT_FILE),
            {LAYOUT_FILE: _text(sections)},
            LAYOUT_FILE,
            self._limit(),
        )

    def notes(self) -> tuple[str, ...]:
        """What was left out of the job, or written differently."""
        return self._resolved.notes

    def marks(self, window: tuple[int, int]) -> tuple[Mark, ...]:
        """The steps of a load that rises, each at its beginning."""
        if self._given.steps is None:
            return ()
        factor = self._given.steps.factor
        return tuple(
            Mark(
                window[0] + round(step.start * 1e9),
                "step",
                f"{factor}={step.level}",
                {factor: step.level},
            )
            for step in self._resolved.steps
        )

    def window(self, run_dir: Path) -> tuple[int, int] | None:
        """By fio's own clock: back from its last I/O if it logs each, else from its start time if
        it has one (3.36 and later), else from the first second of its log of bandwidth, else back
        from the end of its jobs, which includes what ending them took."""
        from iolab.formats.fio.json_output import FioJson

        try:
            output = FioJson().read((run_dir / OUTPUT_FILE).read_bytes(), OUTPUT_FILE)
        except (OSError, FormatError):
            return None
        lengths = [
            direction.runtime for job in output.jobs for direction in job.directions.values()
        ]
        if not lengths or max(lengths) <= 0:
            return None
        length = round((self._resolved.runtime if self._resolved.apart else max(lengths)) * 1e9)
        logged = span_ns(io_logs(run_dir / FOLDER, NAME))
        if (
            logged is not None
        ):  # fio's end is told after all its logs are written, which may take seconds
            return logged[1] - length, logged[1]
        starts = [job.start_ns for job in output.jobs if job.start_ns is not None]
        if starts:
            begin = min(starts) + round(self._resolved.ramp * 1e9)
            return begin, begin + length
        begin_ms = (
            None if self._resolved.steps else logged_start_ms(run_dir / f"{LOG_PREFIX}_bw.log")
        )
        if begin_ms is not None:
            return begin_ms * 1_000_000, begin_ms * 1_000_000 + length
        return None if output.end_ns is None else (output.end_ns - length, output.end_ns)

    def _rises(self, factor: str) -> bool:
        return self._given.steps is not None and self._given.steps.factor == factor

    def _over_time(self, amounts: Sequence[float]) -> float:
        """The mean over the window of what the sections bring, one value each."""
        resolved = self._resolved
        if not resolved.steps:
            return sum(amounts)
        return sum(
            amount
            * ((step.end if resolved.apart else resolved.runtime) - step.start)
            / resolved.runtime
            for amount, step in zip(amounts, resolved.steps, strict=True)
        )

    def _limit(self) -> float:
        return (
            self._resolved.runtime
            + self._resolved.ramp
            + self.load().space_bytes / SLOWEST_LAYOUT
            + SPARE_SECONDS
        )


def logged_start_ms(path: Path) -> int | None:
    """When the first job of a per-second log began, realtime milliseconds; None without such a log.

    A line is written by the first I/O that ends after a full second of its job, so that each is late
    by as much: the least late one counts.
    """
    from iolab.formats.fio.log import FioLog

    try:
        times = FioLog().read(path.read_bytes(), path.name).time * 1e3
    except (OSError, FormatError):
        return None
    if not len(times) or times.min() < _EPOCH_MS:
        return None
    seconds = np.maximum(1, np.floor((times - times.min()) / 1e3 + 0.5) + 1)
    return round(float((times - 1e3 * seconds).min()))


def _jobs(section: Section) -> int:
    return int(section.options.get("numjobs", 1))


def _text(sections: Sequence[Section]) -> str:
    return "\n".join(job_text(section.options, section=section.name) for section in sections)
