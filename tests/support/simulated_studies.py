# SPDX-License-Identifier: Apache-2.0
"""Studies whose truth is known: what the comparison's rates and coverages are measured on.

Run as a program it prints the tables of docs/method/comparison.md: `python
tests/support/simulated_studies.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iolab.base.stats.blocks import MeanInterval, t_intervals
from iolab.base.stats.multiple import benjamini_hochberg
from support.narrow import present

NOISE = 0.02
"""Relative standard deviation of one run."""

TEN_PER_CENT = math.log(1.1)


@dataclass(frozen=True)
class Noise:
    """How the runs of a study scatter.

    Attributes:
        times: noise of the first `noisy` cells as a multiple of the others'.
        tails: degrees of freedom of Student's t for heavy tails, None for the lognormal.
        spread: standard deviation of the logarithm of the cells' noise, drawn anew per study.
        luck: of a whole block of one arm, shared by its cells, as a multiple of the noise.
    """

    name: str
    times: float = 1.0
    noisy: int = 0
    tails: int | None = None
    spread: float = 0.0
    luck: float = 0.0

    def studies(self, count: int, cells: int, blocks: int, seed: int) -> NDArray[np.float64]:
        """Differences of logarithms of two arms that do not differ, shape (count, cells, blocks)."""
        random = np.random.default_rng(seed)
        shape = (count, 2, cells, blocks)
        if self.tails is None:
            runs = random.normal(0, NOISE, shape)
        else:
            runs = (
                random.standard_t(self.tails, shape)
                * NOISE
                / math.sqrt(self.tails / (self.tails - 2))
            )
        scale = np.ones(cells)
        scale[: self.noisy] = self.times
        each = (
            scale * np.exp(random.normal(0, self.spread, (count, cells)))
            if self.spread
            else np.tile(scale, (count, 1))
        )
        differences: NDArray[np.float64] = (runs[:, 1] - runs[:, 0]) * each[:, :, None]
        if self.luck:
            shared = random.normal(0, self.luck * NOISE, (count, 2, 1, blocks))
            differences += shared[:, 1] - shared[:, 0]
        return differences


EQUAL = Noise("equal noise, 2 %")
HEAVY = Noise("heavy tails, t(4)", tails=4)
FOUR_NOISY = Noise("4 of 40 cells at 10 %", times=5, noisy=4)
HALF_NOISY = Noise("20 of 40 cells at 10 %", times=5, noisy=20)
ADVERSE = (
    Noise("1 of 40 cells at 4 %", times=2, noisy=1),
    Noise("4 of 40 cells at 3 %", times=1.5, noisy=4),
    Noise("4 of 40 cells at 4 %", times=2, noisy=4),
    Noise("20 of 40 cells at 3 %", times=1.5, noisy=20),
    Noise("20 of 40 cells at 4 %", times=2, noisy=20),
    Noise("every cell its own, 0.7-5 % (log sd 0.5)", spread=0.5),
)


LUCKY = tuple(
    Noise(f"luck of a block {times:g} times the noise", luck=times) for times in (0.3, 1.0, 3.0)
)


def intervals(studies: NDArray[np.float64]) -> Iterable[list[MeanInterval]]:
    """The comparison of each study."""
    _, cells, count = studies.shape
    blocks = [range(count)] * cells
    return (t_intervals(list(study), blocks=blocks) for study in studies)


def decided(found: list[MeanInterval], alpha: float = 0.05) -> NDArray[np.bool_]:
    """Which cells a study calls different."""
    q_values = benjamini_hochberg([each.p for each in found])
    return np.array([q is not None and q <= alpha for q in q_values])


def false_alarm_rate(
    noise: Noise, count: int, blocks: int, cells: int = 40, seed: int = 1
) -> float:
    """Share of studies without any difference that call at least one cell different."""
    studies = noise.studies(count, cells, blocks, seed)
    return float(np.mean([decided(found).any() for found in intervals(studies)]))


def share_found(
    noise: Noise, count: int, blocks: int, differing: int, cells: int = 40, seed: int = 2
) -> float:
    """Share of cells with a true effect of 10 % (the last ones: the quiet) that a study calls
    different."""
    studies = noise.studies(count, cells, blocks, seed)
    studies[:, cells - differing :] += TEN_PER_CENT
    return float(
        np.mean([decided(found)[cells - differing :].mean() for found in intervals(studies)])
    )


def coverage(
    noise: Noise, count: int, blocks: int, cells: int = 40, seed: int = 3
) -> NDArray[np.float64]:
    """Share of 95 % intervals that hold the truth (zero), per cell, shape (cells,)."""
    held = [
        [present(each.low) <= 0 <= present(each.high) for each in found]
        for found in intervals(noise.studies(count, cells, blocks, seed))
    ]
    return np.asarray(np.mean(held, axis=0))


def _print_tables(count: int) -> None:
    print(f"false alarms per study, {count} studies of 40 cells (columns: 3, 4, 5, 6, 10 blocks)")
    for noise in (EQUAL, HEAVY, FOUR_NOISY, HALF_NOISY, *ADVERSE, *LUCKY):
        rates = "  ".join(
            f"{false_alarm_rate(noise, count, blocks):6.2%}" for blocks in (3, 4, 5, 6, 10)
        )
        print(f"  {noise.name:42} {rates}", flush=True)
    print("share of 10 % effects found (columns: 1, 10, 40 cells of 40 differ)")
    for noise in (EQUAL, HEAVY, FOUR_NOISY, *LUCKY):
        for blocks in (3, 4, 5, 6, 10):
            shares = "  ".join(
                f"{share_found(noise, count // 10, blocks, differing):4.0%}"
                for differing in (1, 10, 40)
            )
            print(f"  {noise.name:28} {blocks:2} blocks  {shares}", flush=True)
    print("coverage of 95 % intervals: mean, lowest cell (5 blocks, 6 blocks)")
    for noise in (EQUAL, HEAVY, FOUR_NOISY, HALF_NOISY, *ADVERSE):
        for blocks in (5, 6):
            covered = coverage(noise, count, blocks)
            print(
                f"  {noise.name:42} {blocks} blocks  {covered.mean():6.1%}  {covered.min():6.1%}",
                flush=True,
            )


if __name__ == "__main__":
    _print_tables(20_000)
