# SPDX-License-Identifier: Apache-2.0
"""`[builds.NAME]` of a study: a program that is compiled before the runs of the cells that use it."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from iolab.hosts.base.options import Duration

from .commands import Command, CommandList, OneCommand

FACTOR = "build"
"""A factor of this name selects the build, unless an option mentions it."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PROGRAM = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9._+-]{0,99}")


class BuildTable(BaseModel):
    """`[builds.NAME]`: sources, and the commands that compile and install them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sources: Annotated[
        str,
        Field(
            min_length=1,
            pattern=r"^[^\x00-\x1f\x7f]+$",
            description="a directory, REPOSITORY@REVISION of git, or a tarball; patches follow with "
            "+FILE.patch. Relative paths start from the directory of the study file",
        ),
    ]
    commands: CommandList = Field(
        description="commands that compile the sources and install into {prefix}, started in the "
        "source tree: each a list of arguments, or a text for the shell"
    )
    program: Annotated[
        str | None,
        Field(
            description="file name, in {prefix}/bin, of the program that the load runs; default: the "
            "first word of the load's command"
        ),
    ] = None
    version: Annotated[
        OneCommand | None,
        Field(description="command that prints the version of the program; default: none"),
    ] = None
    timeout: Annotated[
        Duration, Field(gt=0, description="longest duration of all commands together")
    ] = 1800.0

    @field_validator("commands")
    @classmethod
    def _has_commands(cls, commands: tuple[Command, ...]) -> tuple[Command, ...]:
        if not commands:
            raise ValueError("has no command; such as [['make', 'install', 'PREFIX={prefix}']]")
        return commands

    @field_validator("program")
    @classmethod
    def _is_file_name(cls, program: str | None) -> str | None:
        if program is not None and not _PROGRAM.fullmatch(program):
            raise ValueError("is not the name of a program; a file name without a directory")
        return program

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "sources": self.sources,
            "commands": [command.text for command in self.commands],
            "program": self.program,
            "version": self.version.text if self.version else None,
            "timeout": self.timeout,
        }
