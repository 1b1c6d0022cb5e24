# SPDX-License-Identifier: Apache-2.0
"""Every read, write and sync of the target's files, recorded: `syscall.log` in the run, the
events in the study's recording."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from iolab.hosts.base.options import Options

from .counters import CounterOptions
from .recorded import RecordedSource


class SyscallOptions(CounterOptions):
    """`[sources.syscall]`."""

    fs: Annotated[
        list[str],
        Field(
            default_factory=list,
            description="mount points of the files to record; default: the target's",
        ),
    ]


class SyscallSource(RecordedSource):
    """Every read, write and sync of the target's files: latency, offset, size, process, file. Needs
    root."""

    name: ClassVar[str] = "syscall"
    options: ClassVar[type[Options]] = SyscallOptions
