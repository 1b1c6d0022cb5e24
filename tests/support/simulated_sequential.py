# SPDX-License-Identifier: Apache-2.0
"""Sequential studies whose truth is known: how often they are decided wrongly, and after how many
blocks.

Run as a program it prints the tables of docs/method/check.md: `python
tests/support/simulated_sequential.py [STUDIES]`.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iolab.base.metrics import find
from iolab.base.stats.blocks import t_intervals
from iolab.base.stats.sequential import Design, Look, Spending, plan_looks
from iolab.studies.compare.cells import Pairing
from iolab.studies.compare.rules.check import Evidence, Outcome, judge
from iolab.studies.compare.rules.rules import parse_rule
from iolab.studies.plan.cells.order import variant_order
from support.extremes import LONGEST_QUEUE
from support.narrow import present

NOISE = 0.02
"""Relative standard deviation of one run."""

RULE = "write.iops >= -5 %"
MARGIN = math.log(0.95)
EXACT_RULE = f"{LONGEST_QUEUE.name} <= +5 %"
EXACT_MARGIN = math.log(1.05)


@dataclass(frozen=True)
class World:
    """How runs vary. `tails`: degrees of freedom of Student's t, None for the lognormal. `drift`:
    change of all arms in a block, and standard deviation of a random walk from run to run."""

    name: str
    tails: int | None = None
    drift: float = 0.0

    def differences(
        self, effect: float, cells: int, blocks: int, random: np.random.Generator
    ) -> NDArray[np.float64]:
        """Differences of logarithms of a study, shape (cells, blocks). Arms take turns in each
        block as iolab orders them."""
        shape = (blocks, cells, 2)
        if self.tails is None:
            noise = random.normal(0, NOISE, shape)
        else:
            scale = NOISE / math.sqrt(self.tails / (self.tails - 2))
            noise = random.standard_t(self.tails, shape) * scale
        places = np.arange(noise.size).reshape(shape) / (2 * cells)
        walk = np.cumsum(random.normal(0, 1, noise.size)).reshape(shape)
        in_order = noise + self.drift * (places + walk)
        turns = np.array([variant_order((-1.0, 1.0), block) for block in range(1, blocks + 1)])
        differences: NDArray[np.float64] = (in_order * turns[:, None, :]).sum(axis=2).T + effect
        return differences


WORLDS = (
    World("normal noise"),
    World("heavy tails, t(3)", tails=3),
    World("drift of 1 % per block", drift=0.01),
)


def decide(
    differences: NDArray[np.float64], design: Design, rule: str = RULE
) -> tuple[Outcome, int]:
    """The outcome of a study and its number of blocks."""
    parsed = parse_rule(rule)
    metric = present(find(parsed.metric))
    outcome: Outcome = "inconclusive"
    for number, blocks in enumerate(design.looks, 1):
        look = Look(design, number)
        values = [cell[:blocks] for cell in differences]
        intervals = t_intervals(values, confidence=1 - 2 * look.level)
        cells: list[tuple[tuple[dict[str, object], str], Evidence | str]] = [
            (
                ({"cell": place}, "b"),
                Evidence(interval, Pairing(cell, (), 0), metric.assumption != "normal"),
            )
            for place, (interval, cell) in enumerate(zip(intervals, values, strict=True))
        ]
        [result] = judge([(parsed, metric, cells)], design.alpha, look)
        outcome = result.outcome
        if outcome != "inconclusive":
            return outcome, blocks
    return outcome, design.looks[-1]


def outcomes(
    world: World,
    effect: float,
    design: Design,
    studies: int,
    *,
    cells: int = 1,
    rule: str = RULE,
    seed: int = 1,
) -> tuple[Counter[Outcome], float]:
    """How many studies had each outcome, and the mean number of blocks."""
    random = np.random.default_rng(seed)
    counts: Counter[Outcome] = Counter()
    total = 0
    for _ in range(studies):
        differences = world.differences(effect, cells, design.looks[-1], random)
        outcome, blocks = decide(differences, design, rule)
        counts[outcome] += 1
        total += blocks
    return counts, total / studies


def designs(at_most: int, *, is_exact: bool = False) -> Iterator[Design]:
    """The designs that are compared: looks planned by each spending function."""
    spendings: tuple[Spending, ...] = ("pocock", "obrien-fleming")
    for spending in spendings:
        looks = present(plan_looks(at_most, 0.05, spending, is_exact=is_exact))
        yield Design(looks, 0.05, spending)


def _row(name: str, counts: Counter[Outcome], studies: int, blocks: float) -> str:
    shares = "  ".join(
        f"{counts[outcome] / studies:7.2%}" for outcome in ("pass", "fail", "inconclusive")
    )
    return f"  {name:38} {shares}  {blocks:5.1f}"


def _print_tables(studies: int) -> None:
    effects = (("equal", 0.0), ("at the margin", MARGIN), ("twice the margin", 2 * MARGIN))
    print(
        f"{RULE}, {NOISE:.0%} noise per run, {studies} studies each (pass, fail, inconclusive, mean blocks)"
    )
    for cells, worlds in ((1, WORLDS), (3, WORLDS[:1])):
        for design in designs(20):
            print(f"{design.spending}, looks at {design.looks}, cells: {cells}")
            for world in worlds:
                for name, effect in effects:
                    counts, blocks = outcomes(world, effect, design, studies, cells=cells)
                    print(_row(f"{world.name}, {name}", counts, studies, blocks), flush=True)
    few = studies // 4
    [design, _] = designs(16, is_exact=True)
    print(f"{EXACT_RULE}, exact test, {few} studies each, looks at {design.looks}")
    for world in WORLDS:
        for name, margins in (("equal", 0), ("at the margin", 1), ("twice the margin", 2)):
            effect = margins * EXACT_MARGIN
            counts, blocks = outcomes(world, effect, design, few, rule=EXACT_RULE)
            print(_row(f"{world.name}, {name}", counts, few, blocks), flush=True)
    print("at the margin, tested at 5 % after every block from 3 to 20 (no correction)")
    for world in WORLDS:
        print(f"  {world.name:38} pass {uncorrected(world, studies):7.2%}", flush=True)


def uncorrected(world: World, studies: int, seed: int = 1) -> float:
    """Share of studies at the margin that pass where each block from 3 to 20 is a look at 5 %."""
    random = np.random.default_rng(seed)
    passed = 0
    for _ in range(studies):
        [values] = world.differences(MARGIN, 1, 20, random)
        passed += any(
            Evidence(t_intervals([values[:n]])[0], Pairing(values[:n], (), 0), False)
            .test(MARGIN)
            .above
            <= 0.05
            for n in range(3, 21)
        )
    return passed / studies


if __name__ == "__main__":
    _print_tables(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
