# SPDX-License-Identifier: Apache-2.0
"""`[profile]`: runs of their own, after the measured ones, in which perf samples what the CPUs of
the host do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from iolab.hosts.base.options import Duration, OptionProblem, problems_error

from ..compare.axes import level_text
from .cells.factors import FactorSet, Scalar, matches
from .file.problems import near

MOST_SECONDS = 30.0
"""Seconds that are sampled where the study doesn't say: 3000 samples a CPU at 99 Hz."""
_MARGIN, _LEAST_MARGIN = 0.1, 1.0
"""Share of a run's window that is left out at either end where the study doesn't say; at its end,
where perf has to come to its own end before the load does, so many seconds at least."""


@dataclass(frozen=True)
class Profiling:
    """What a study wants profiled.

    Attributes:
        cells: tables of levels, a cell being taken where one of them matches; None takes all.
        after: seconds from the start of a run's window; None leaves out a tenth of it.
        seconds: duration; None takes the rest except a tenth, or a second, at the end; at most
        `MOST_SECONDS`. frequency: samples per second on each CPU.
    """

    cells: tuple[Mapping[str, Scalar | list[Scalar]], ...] | None
    after: float | None
    seconds: float | None
    frequency: int

    def takes(self, factors: Mapping[str, Any]) -> bool:
        """Whether the cell of these factor levels is profiled."""
        return self.cells is None or any(
            set(table) <= set(factors) and matches(factors, table) for table in self.cells
        )

    def span(self, runtime: float, *, by_size: bool = False) -> tuple[float, float]:
        """(seconds from the window's start, how long) within a window of that length; `by_size`:
        that is only the longest that it may last, so sampling begins with the load, unless the
        study says when, and ends with it."""
        if by_size:
            return self.after or 0.0, self.seconds or min(MOST_SECONDS, runtime)
        after = _MARGIN * runtime if self.after is None else self.after
        if self.seconds is not None:
            return after, self.seconds
        return after, min(MOST_SECONDS, runtime - max(_MARGIN * runtime, _LEAST_MARGIN) - after)

    def as_data(self) -> dict[str, Any]:
        """As plain data, for the manifest."""
        cells = "all" if self.cells is None else [dict(table) for table in self.cells]
        return {
            "cells": cells,
            "after": self.after,
            "seconds": self.seconds,
            "frequency": self.frequency,
        }


class ProfileTable(BaseModel):
    """`[profile]`: which cells are profiled by perf, in runs of their own after the measured ones."""

    model_config = ConfigDict(extra="forbid")

    cells: Annotated[
        Literal["all"] | list[dict[str, Scalar | list[Scalar]]],
        Field(
            description="the cells, each a table of levels: [{disks = 8, threads = 1024}]; a list means any of "
            'these, factors not named may be anything; or "all"'
        ),
    ] = "all"
    after: Annotated[
        Duration | None,
        Field(
            description="time from the start of the measured window at which sampling begins; default: a tenth of the runtime, the start "
            "where a run ends by its size"
        ),
    ] = None
    seconds: Annotated[
        Duration | None,
        Field(
            description="how long is sampled; default: up to a tenth before the window's end, 30 s at most; not beyond the load's end"
        ),
    ] = None
    frequency: Annotated[
        int, Field(ge=1, le=10_000, strict=True, description="samples per second on each CPU")
    ] = 99

    @field_validator("cells", mode="before")
    @classmethod
    def _cells_named(cls, cells: Any) -> Any:
        is_selection = cells == "all" or (
            isinstance(cells, list)
            and cells
            and all(isinstance(table, dict) and table for table in cells)
        )
        if not is_selection:
            raise problems_error(
                [
                    OptionProblem(
                        (), f"is {cells!r}", '"all", or tables of levels such as [{numjobs = 64}]'
                    )
                ]
            )
        return cells

    def profiling(self) -> Profiling:
        """As the plan takes it."""
        return Profiling(
            None if self.cells == "all" else tuple(self.cells),
            self.after,
            self.seconds,
            self.frequency,
        )


def profile_problems(
    profiling: Profiling, sets: Sequence[FactorSet], runtimes: Sequence[float]
) -> Iterator[OptionProblem]:
    """What is wrong with it for these factors and for runs of these lengths; keys below
    `[profile]`."""
    levels: dict[str, list[Scalar]] = {}
    for factor_set in sets:
        for name, swept in factor_set.levels.items():
            levels.setdefault(name, []).extend(swept)
    for place, table in enumerate(profiling.cells or ()):
        for name, levels_of_cell in table.items():
            if name not in levels:
                yield OptionProblem(
                    ("cells", str(place), name),
                    "is not a factor of the study",
                    near(name, list(levels)),
                )
                continue
            for level in levels_of_cell if isinstance(levels_of_cell, list) else [levels_of_cell]:
                if not any(matches({name: existing}, {name: level}) for existing in levels[name]):
                    yield OptionProblem(
                        ("cells", str(place), name),
                        f"is {level!r}, which is not a level of it",
                        f"one of {', '.join(level_text(existing) for existing in levels[name])}",
                    )
    for runtime in sorted(set(runtimes))[:1]:
        after, seconds = profiling.span(runtime)
        if seconds <= 0 or after + seconds > runtime:
            key = "seconds" if profiling.seconds is not None else "after"
            yield OptionProblem(
                (key,),
                "leads past the end of the measured window",
                f"what is sampled must lie within {runtime:g} s",
            )
