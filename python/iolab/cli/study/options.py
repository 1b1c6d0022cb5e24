# SPDX-License-Identifier: Apache-2.0
"""Options of the commands that do a study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from iolab.studies.plan.adapt import Changes


class Runtime(click.ParamType):  # type: ignore[type-arg]
    """A duration as a study writes it; kept as typed."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text, once it reads as more than nothing."""
        from iolab.base.errors import UsageError
        from iolab.base.units import parse_fio_time

        try:
            if parse_fio_time(value) <= 0:
                self.fail(f"'{value}' is not a time", param, ctx)
        except UsageError as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)
        return str(value)


ONLY = click.option(
    "--only",
    "only",
    metavar="FACTOR=LEVEL[,LEVEL]",
    multiple=True,
    help="Only these levels of a factor; repeatable.",
)
REPETITIONS = click.option(
    "--repetitions",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Number of blocks. Default: as in the study.",
)
RUNTIME = click.option(
    "--runtime",
    type=Runtime(),
    metavar="TIME",
    help="Duration of every run, such as 5s. Default: as in the study.",
)
TARGET = click.option(
    "--target",
    metavar="KEY=VALUE",
    multiple=True,
    help="A key of [target], such as path=/mnt/x; 'KEY=' takes it out; repeatable.",
)
WORKLOAD = click.option(
    "--workload",
    metavar="KEY=VALUE",
    multiple=True,
    help="A key of [workload], such as options.size=64m; 'KEY=' takes it out; repeatable.",
)
DESTRUCTIVE = click.option(
    "--destructive", is_flag=True, help="Allow block devices named by the study to be overwritten."
)
TRUST = click.option("--trust", is_flag=True, help="Run the study's commands without asking.")


@dataclass(frozen=True)
class ChangeOptions:
    """What differs from the study's file, as written."""

    only: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    repetitions: int | None = None
    until: tuple[str, ...] = ()
    at_most: int | None = None
    runtime: str | None = None
    seed: int | None = None
    target: tuple[str, ...] = ()
    workload: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    again: bool = False
    builds: tuple[str, ...] = ()
    reduced: bool = False

    def changes(self) -> Changes:
        """The changes; UsageError where an option is wrong."""
        from iolab.hosts.rigs.source_tree import with_absolute_paths
        from iolab.studies.plan.adapt import Changes, parse_only, parse_target

        return Changes(
            only=parse_only(self.only),
            variants=self.variants,
            repetitions=self.repetitions,
            runtime=self.runtime,
            seed=self.seed,
            target=parse_target(self.target),
            again=self.again,
            workload=parse_target(self.workload, "--workload"),
            load=parse_target(self.load, "--load"),
            builds=tuple(
                with_absolute_paths(word) if "=" in word else word for word in self.builds
            ),
            reduced=self.reduced,
            until=self.until,
            at_most=self.at_most,
        )
