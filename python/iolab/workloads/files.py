# SPDX-License-Identifier: Apache-2.0
"""A set of files as the workload: so many of such a size, written or read whole, so many at a time;
how long it takes is the figure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from ..errors import RunError
from ..hosts.base.host import Host
from ..hosts.base.options import Options
from ..hosts.base.target_path import Place
from ..results.evidence.files import PASSES
from ..results.evidence.marks import Mark
from .base import Job, Load, StartTime, Workload
from .files_model import FilesOptions
from .fio.check import check_jobs
from .fio.job import LAYOUT_FILE, LAYOUT_OUTPUT, job_sections
from .fio.model import FioOptions
from .fio.names import KNOWN, RESERVED
from .fio.options import Scalar, job_text
from .fio.sections import resolve
from .fio.workload import FioWorkload


class FilesWorkload:
    """Complete files, written or read by fio, several at a time. A run ends when all are done, and
    `write.time` or `read.time` is its time. Files may be read in several passes.

    Each job has its own files and one I/O at a time. With a cold cache the load of `op = "write"`
    writes what is read, so that files are placed as such writes place them. With a warm cache fio
    lays them out, and they are read from memory.
    """

    name: ClassVar[str] = "files"
    options: ClassVar[type[Options]] = FilesOptions
    waits: ClassVar[bool] = True

    def __init__(self, options: FilesOptions) -> None:
        self._given = options
        self._fio = FioWorkload(_fio_options(options, options.op))

    @classmethod
    def place_of(cls, factor: str) -> tuple[str, ...] | None:
        """A factor named as one of its keys is that key, as another fio option that option."""
        if factor in FilesOptions.model_fields:
            return (factor,)
        return ("options", factor) if factor in KNOWN and factor not in RESERVED else None

    @classmethod
    def factors(cls) -> Collection[str]:
        """Its keys, and fio's options that may be set here."""
        return FilesOptions.model_fields.keys() | (KNOWN - RESERVED.keys())

    @classmethod
    def tools(cls, host: Host) -> Mapping[str, str]:
        """fio's version."""
        return FioWorkload.tools(host)

    @classmethod
    def check(cls, host: Host, jobs: Mapping[str, Workload]) -> None:
        """Have fio parse every distinct job."""
        sections = {}
        for name, workload in jobs.items():
            assert isinstance(workload, FilesWorkload)
            sections[name] = resolve(_fio_options(workload._given, workload._given.op)).sections
        check_jobs(host, sections)

    def load(self) -> Load:
        """Jobs and room; the runtime is the longest that it may take."""
        load = self._fio.load()
        facts = {**load.facts, "files": self._given.files}
        if self._given.op == "read" and self._given.passes > 1:
            facts[PASSES] = self._given.passes
        return replace(load, facts=facts)

    def job(self, place: Place, start: StartTime | None = None) -> Job:
        """fio's job; RunError where the place is a device."""
        if place.kind == "device":
            raise RunError(
                "the workload is a set of files, and the target is a device",
                where=place.path,
                hint="use a target of kind 'directory', 'filesystem' or 'zpool', or the workload 'fio'",
            )
        return self._fio.job(place, start)

    def layout(self, place: Place) -> Job | None:
        """The writing of what will be read; None where the files are written in the run itself."""
        if place.kind == "device" or self._given.op == "write":
            return None
        sections = job_sections(resolve(_fio_options(self._given, "write")), place, logs=False)
        options = [
            {name: value for name, value in section.options.items() if name != "runtime"}
            for section in sections
        ]
        text = "\n".join(
            job_text(options_of_job, section=section.name)
            for options_of_job, section in zip(options, sections, strict=True)
        )
        return Job(
            ("fio", f"--output={LAYOUT_OUTPUT}", LAYOUT_FILE),
            {LAYOUT_FILE: text},
            LAYOUT_FILE,
            self._fio.job(place).limit,
        )

    def marks(self, window: tuple[int, int]) -> tuple[Mark, ...]:
        """None: the load doesn't rise."""
        return ()

    def notes(self) -> tuple[str, ...]:
        """What was left out of fio's options, or written differently."""
        return self._fio.notes()

    def window(self, run_dir: Path) -> tuple[int, int] | None:
        """By fio's own clock."""
        return self._fio.window(run_dir)


def _fio_options(given: FilesOptions, op: str) -> FioOptions:
    files_of_job = given.files // given.jobs
    options: dict[str, Scalar] = {
        "rw": op,
        "bs": given.block,
        "nrfiles": files_of_job,
        "filesize": given.size,
        "size": files_of_job * given.size,
        "numjobs": given.jobs,
        "openfiles": 1,
        "file_service_type": "sequential",
        "fallocate": "none",
    }
    if op == "write":
        options["create_on_open"] = (
            1  # else all files are there, at their full size, before the first is timed
        )
    table: dict[str, Any] = {
        "runtime": given.runtime,
        "time_based": False,
        "options": {**options, **given.options},
    }
    if given.compressibility is not None:
        table["compressibility"] = given.compressibility
    return FioOptions.model_validate(table)
