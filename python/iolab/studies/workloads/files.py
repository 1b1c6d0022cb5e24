# SPDX-License-Identifier: Apache-2.0
"""A set of files as the workload: so many of such a size, written or read whole, so many at a time;
how long it takes is the figure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from iolab.base.errors import RunError
from iolab.hosts.base.host import Host, Place
from iolab.hosts.base.options import Duration, OptionProblem, Options, Size, problems_error

from ..results.evidence.files import PASSES
from ..results.evidence.marks import Mark
from .base import Job, Load, StartTime, Workload
from .compressibility import DECIDED
from .fio.check import check_jobs
from .fio.job import LAYOUT_FILE, LAYOUT_OUTPUT, job_sections
from .fio.names import KNOWN, RESERVED
from .fio.options import Scalar, consent_to, job_text, problems
from .fio.sections import FioOptions, resolve
from .fio.workload import FioWorkload

_KEYS = {
    "rw": "op",
    "readwrite": "op",
    "nrfiles": "files",
    "filesize": "size",
    "size": "size",
    "io_size": "size",
    "io_limit": "size",
    "numjobs": "parallel",
    "bs": "bs",
    "blocksize": "bs",
}
"""fio's options that are keys of this workload's table."""
_BARRED = {
    **{name: f"write it as workload.{key}" for name, key in _KEYS.items()},
    **dict.fromkeys(
        (
            "openfiles",
            "file_service_type",
            "filename",
            "filename_format",
            "create_on_open",
            "unlink",
        ),
        "each job goes through files of its own, one after the other",
    ),
    **dict.fromkeys(
        ("loops", "number_ios", "rate_iops", "bsrange", "bssplit"),
        "every file is read or written once, block by block",
    ),
}
"""Options that contradict a set of files which are read or written once."""


class FilesOptions(Options):
    """`[workload]` of kind `files`."""

    files: Annotated[int, Field(ge=1, le=1_000_000, description="how many files")]
    size: Annotated[Size, Field(gt=0, description="of each file")]
    op: Annotated[
        Literal["write", "read"],
        Field(description="write: make the files; read: read those that were made before"),
    ] = "write"
    parallel: Annotated[
        int,
        Field(
            ge=1,
            le=10_000,
            description="files at a time: jobs, each with as many of the files as the others",
        ),
    ] = 1
    passes: Annotated[
        int,
        Field(
            ge=1,
            le=1000,
            description='how often the files of op = "read" are read. They are written once, and leave '
            "the memory before each pass if the cache is cold. read.time is the mean of all passes",
        ),
    ] = 1
    bs: Annotated[
        Size, Field(ge=512, description="size of each I/O; a file smaller than that is one I/O")
    ] = 128 << 10
    runtime: Annotated[
        Duration,
        Field(
            gt=0,
            description="longest duration of a run; a run that takes longer is INVALID",
        ),
    ] = 600.0
    compressibility: Annotated[
        float | None,
        Field(
            ge=0,
            le=100,
            description="share of the data that can be compressed away, per cent; default: fio's own data",
        ),
    ] = None
    options: Annotated[
        dict[str, Scalar],
        Field(default_factory=dict, description="any other fio options, such as end_fsync = 1"),
    ]

    @field_validator("options", mode="before")
    @classmethod
    def _sound(cls, options: Any) -> Any:
        """Before the values' types are looked at, so that all problems are reported at once."""
        if not isinstance(options, dict):
            return options
        wrong = [
            OptionProblem((name,), "can't be set here", _BARRED[name])
            for name in options
            if name in _BARRED
        ]
        wrong += problems({name: value for name, value in options.items() if name not in _BARRED})
        if wrong:
            raise problems_error(wrong)
        return options

    @model_validator(mode="after")
    def _check_sizes(self) -> FilesOptions:
        wrong = []
        if self.files % self.jobs:
            wrong.append(
                OptionProblem(
                    ("parallel",),
                    f"is {self.parallel}, and {self.files} files are not a multiple of it",
                    "each job takes as many files as the others",
                )
            )
        if self.size % self.block:
            wrong.append(
                OptionProblem(
                    ("size",),
                    f"is {self.size} bytes, no multiple of bs, {self.bs} bytes",
                    "files of whole blocks",
                )
            )
        if self.compressibility is not None:
            wrong += [
                OptionProblem(
                    ("options", name),
                    "is set as well as workload.compressibility",
                    "leave one of them out",
                )
                for name in DECIDED
                if name in self.options
            ]
        if wrong:
            raise problems_error(wrong)
        return self

    def consent(self) -> tuple[tuple[str, str], ...]:
        """Options of fio that are not known to be harmless."""
        return consent_to(self.options)

    @property
    def jobs(self) -> int:
        """Jobs that go through the files."""
        return min(self.parallel, self.files)

    @property
    def block(self) -> int:
        """Bytes of each I/O."""
        return min(self.bs, self.size)


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
