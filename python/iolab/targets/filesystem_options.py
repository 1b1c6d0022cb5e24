# SPDX-License-Identifier: Apache-2.0
"""`[target]` of kind `filesystem`: its options."""

from __future__ import annotations

import shlex
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from ..hosts.base.options import OptionProblem, problems_error
from ..units import format_quantity
from .cache import CacheOption
from .disks import DiskOptions
from .mkfs import SMALLEST, FileSystem


def _words(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise ValueError(
                f"can't be taken apart into words: {error}; close the quotes"
            ) from None
    if not isinstance(value, list | tuple) or not all(
        isinstance(word, str | int) and not isinstance(word, bool) for word in value
    ):
        raise ValueError('is not a list of options; write "-m 0 -i 512" or ["-m", "0"]')
    return tuple(str(word) for word in value)


_WORDS = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
    ]
}


class FilesystemOptions(DiskOptions):
    """`[target]` of kind `filesystem`."""

    fs: Annotated[FileSystem, Field(description="the file system to make")]
    mkfs_options: Annotated[
        tuple[str, ...],
        BeforeValidator(_words),
        WithJsonSchema(_WORDS),
        Field(
            description='options of mkfs, a text or a list: "-m 0"; for btrfs over several devices its profiles: "-d raid1 -m raid1"'
        ),
    ] = ()
    mount_options: Annotated[
        str, Field(description='as after mount -o, such as "noatime,compress=zstd"')
    ] = ""
    fresh: Annotated[
        Literal["run", "cell", "block", "study"],
        Field(
            description="when a new file system is made: for every run, so that none finds what others left; when another cell's turn "
            "comes; at every block's start; once"
        ),
    ] = "run"
    cache: CacheOption = "warm"

    @field_validator("mount_options")
    @classmethod
    def _one_text(cls, options: str) -> str:
        stripped = options.strip().strip(",")
        if any(char.isspace() or ord(char) < 32 for char in stripped):
            raise ValueError("has blanks in it; options are joined by commas alone")
        return stripped

    @model_validator(mode="after")
    def _fits(self) -> FilesystemOptions:
        problems = []
        devices = len(self.device) if self.device else self.loop.count if self.loop else 1
        if devices > 1 and self.fs != "btrfs":
            place = ("device",) if self.device else ("loop", "count")
            problems.append(
                OptionProblem(
                    place, f"are {devices} devices", f"one, for {self.fs}; btrfs takes several"
                )
            )
        if self.loop is not None and self.loop.size < SMALLEST[self.fs]:
            problems.append(
                OptionProblem(
                    ("loop", "size"),
                    f"is {format_quantity(self.loop.size, 'B', 3)}",
                    f"at least {SMALLEST[self.fs] >> 20}m for {self.fs}",
                )
            )
        if problems:
            raise problems_error(problems)
        return self
