# SPDX-License-Identifier: Apache-2.0
"""A study laid out as runs, in the order in which they will happen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..file.load import Study
from .cells import Cell
from .order import cell_order, variant_order

OVERHEAD_SECONDS = 0.4
"""Starting and ending fio, making and removing files, settling: about what it takes on an idle
machine."""
LAYOUT_RATE = 200e6
"""Bytes per second assumed for laying out files, for the estimate alone."""


@dataclass(frozen=True)
class PlannedRun:
    """One run to come.

    Attributes:
        number: from 1, in order of execution; block: from 1, the repetition of its cell as well.
        profile: whether it is made for a profile alone. It follows all blocks, its block has the
        next number, and no estimate uses it.
        session: from 1, in a study with sessions, else 0.
    """

    number: int
    block: int
    cell: Cell
    profile: bool = False
    session: int = 0

    @property
    def repetition(self) -> int:
        """Each block holds a cell once, so the block's number is the repetition's."""
        return self.block

    def identity(self, surroundings: Mapping[str, Any]) -> str:
        """`0042-1a2b3c4d`: the number, and a hash of the resolved parameters and what they ran on.

        `surroundings`: tool versions and environment fingerprint. Equal hashes mean that the same
        thing was run on the same thing; a change of kernel or fio makes another hash.
        """
        text = json.dumps([self.cell.as_data(), surroundings], sort_keys=True, default=str)
        return f"{self.number:04d}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Plan:
    """All runs of a study.

    Attributes:
        run_seconds: estimated wall time of each, in the same order.
    """

    runs: tuple[PlannedRun, ...]
    run_seconds: tuple[float, ...]

    @property
    def measured_runs(self) -> tuple[PlannedRun, ...]:
        """Those that count: all but the ones made for profiles."""
        return tuple(run for run in self.runs if not run.profile)

    @property
    def profiles(self) -> tuple[PlannedRun, ...]:
        """Those made for profiles."""
        return tuple(run for run in self.runs if run.profile)

    @property
    def seconds(self) -> float:
        """Estimated wall time of all of them."""
        return sum(self.run_seconds)

    def estimate_rest(self, done: int, passed: float) -> float:
        """Seconds that the rest will take, going by how well the estimate held for the `done` runs
        that took `passed`."""
        expected = sum(self.run_seconds[:done])
        scale = passed / expected if done and expected > 0 else 1.0
        return scale * sum(self.run_seconds[done:])


def plan_runs(study: Study, seconds: Callable[[Cell], float], *, profiles: bool = True) -> Plan:
    """Lay a study out in blocks.

    Args:
        seconds: estimated wall time of one run of a cell.
        profiles: whether the runs that the study wants profiled come behind all others; without
        them the numbers of those stay the same.

    balanced: in each block cells come in seeded order. The variants of a cell follow each other, in
    the block's order of variants: compared runs are measured close together.
    sessions: the variants in the order of their sessions, each session with `repetitions` blocks.
    as-written: blocks in turn. Each has the variants and their cells in the file's order.
    """
    runs: list[PlannedRun] = _session_runs(study)
    for block in range(1, 1 if study.session_order else study.repetitions + 1):
        runs += [
            PlannedRun(len(runs) + place, block, cell)
            for place, cell in enumerate(_cells_of(study, block), 1)
        ]
    if profiles and study.profiling is not None:
        last = study.repetitions + 1
        profiled_cells = [
            cell for cell in _cells_of(study, last) if study.profiling.takes(cell.factors)
        ]
        runs += [
            PlannedRun(len(runs) + place, last, cell, profile=True)
            for place, cell in enumerate(profiled_cells, 1)
        ]
    return Plan(tuple(runs), tuple(seconds(run.cell) for run in runs))


def _session_runs(study: Study) -> list[PlannedRun]:
    """Runs of a study with sessions; empty without sessions."""
    runs: list[PlannedRun] = []
    for session, variant in enumerate(study.session_order, 1):
        cells = [cell for cell in study.cells if cell.variant == variant]
        before = (session - 1) // len(study.variants) * study.repetitions
        for block in range(before + 1, before + study.repetitions + 1):
            runs += [
                PlannedRun(len(runs) + place, block, cell, session=session)
                for place, cell in enumerate(cell_order(cells, block, study.seed), 1)
            ]
    return runs


def _cells_of(study: Study, block: int) -> list[Cell]:
    """Every cell once per variant, in the order of that block."""
    if study.order == "as-written":
        return list(study.cells)
    by_variant = {
        variant: [cell for cell in study.cells if cell.variant == variant]
        for variant in study.variants
    }
    places = range(len(by_variant[study.variants[0]]))
    return [
        by_variant[variant][place]
        for place in cell_order(places, block, study.seed)
        for variant in variant_order(study.variants, block)
    ]


def run_seconds(runtime: float, ramp: float, space_bytes: int) -> float:
    """Estimated wall time of one run."""
    return runtime + ramp + space_bytes / LAYOUT_RATE + OVERHEAD_SECONDS
