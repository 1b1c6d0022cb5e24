# SPDX-License-Identifier: Apache-2.0
"""Any program as the workload: it runs once to its end, and the elapsed time is the metric."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from iolab.base.errors import RunError
from iolab.hosts.base.host import Host, Place
from iolab.hosts.base.options import Duration, Options, Size

from ..results.evidence.marks import Mark
from ..results.evidence.model import PROGRAM
from .base import Job, Load, StartTime, Workload

JOB_FILE = "program.txt"
_FACTORS = ("runtime", "space")


class ProgramOptions(Options):
    """`[workload]` of kind `program`."""

    command: Annotated[
        str | list[str],
        Field(
            description="a list of arguments, or a text for the shell; it is started in the directory "
            "of the target, with the variables of hooks such as IOLAB_TARGET"
        ),
    ]
    runtime: Annotated[
        Duration, Field(gt=0, description="longest duration of a run; then the run fails")
    ] = 600.0
    space: Annotated[
        Size, Field(ge=0, description="room that the program may take on the target")
    ] = 0

    @field_validator("command", mode="before")
    @classmethod
    def _is_command(cls, command: Any) -> Any:
        words = command if isinstance(command, list) else [command]
        if not words or not all(
            isinstance(word, str | int | float) and "\0" not in str(word) for word in words
        ):
            raise ValueError("is not a command; a list with a program and its arguments, or a text")
        if not str(words[0]).strip():
            raise ValueError("is an empty command")
        return [str(word) for word in command] if isinstance(command, list) else command

    def consent(self) -> tuple[tuple[str, str], ...]:
        """The command."""
        return (("command", self.text),)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command as it is executed."""
        if isinstance(self.command, str):
            return ("sh", "-c", self.command)
        return tuple(self.command)

    @property
    def text(self) -> str:
        """The command as text."""
        return self.command if isinstance(self.command, str) else shlex.join(self.command)


class ProgramWorkload:
    """A program that runs once to its end in each run; `time` is the time from its start to its
    end, to a few milliseconds."""

    name: ClassVar[str] = "program"
    options: ClassVar[type[Options]] = ProgramOptions
    waits: ClassVar[bool] = False

    def __init__(self, options: ProgramOptions) -> None:
        self._options = options

    @classmethod
    def place_of(cls, factor: str) -> tuple[str, ...] | None:
        """A factor named as one of its keys is that key; others are mentioned in the command."""
        return (factor,) if factor in _FACTORS else None

    @classmethod
    def factors(cls) -> Collection[str]:
        """Its keys without the command."""
        return _FACTORS

    @classmethod
    def tools(cls, host: Host) -> Mapping[str, str]:
        """None: what the command needs is looked for by `check`."""
        return {}

    @classmethod
    def check(cls, host: Host, jobs: Mapping[str, Workload]) -> None:
        """Look for the program of every job in PATH."""
        for name, workload in jobs.items():
            assert isinstance(workload, ProgramWorkload)
            program = workload._options.arguments[0]
            if host.which(program) is None:
                raise RunError(
                    f"'{program}' is not a program of host '{host.name}'",
                    where=name,
                    hint="install it, or build it: [builds] of the study",
                )

    def load(self) -> Load:
        """One job, for as long as it may last."""
        return Load(
            jobs=1,
            depth=1,
            runtime=self._options.runtime,
            ramp=0.0,
            offered_iops=None,
            space_bytes=self._options.space,
            layout_bytes=0,
            facts={PROGRAM: True, "time_based": False},
        )

    def job(self, place: Place, start: StartTime | None = None) -> Job:
        """The command, started in the target's directory; elsewhere for a device."""
        directory = place.path if place.kind == "directory" else None
        path = shlex.quote(place.path)
        text = [] if directory is None else [f"cd {path}"]
        text += [f"export IOLAB_TARGET={path}", self._options.text, ""]
        return Job(
            self._options.arguments,
            {JOB_FILE: "\n".join(text)},
            JOB_FILE,
            self._options.runtime,
            directory=directory,
        )

    def layout(self, place: Place) -> Job | None:
        """None: a hook makes the files that a program reads."""
        return None

    def marks(self, window: tuple[int, int]) -> tuple[Mark, ...]:
        """None."""
        return ()

    def notes(self) -> tuple[str, ...]:
        """None."""
        return ()

    def window(self, run_dir: Path) -> tuple[int, int] | None:
        """None: the program says nothing of it, and its start and end are the window."""
        return None
