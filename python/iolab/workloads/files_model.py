# SPDX-License-Identifier: Apache-2.0
"""What a study says in `[workload]` of kind `files`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from ..hosts.base.options import Duration, OptionProblem, Options, Size, problems_error
from .compressibility import DECIDED
from .fio.options import Scalar, problems

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

    @property
    def jobs(self) -> int:
        """Jobs that go through the files."""
        return min(self.parallel, self.files)

    @property
    def block(self) -> int:
        """Bytes of each I/O."""
        return min(self.bs, self.size)
