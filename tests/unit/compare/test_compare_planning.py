# SPDX-License-Identifier: Apache-2.0
"""The advised number of blocks: that of the test that decides, with about the stated power, whatever
the number of existing blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from iolab.base.stats.blocks import t_intervals
from iolab.base.stats.exact import sign_flip_p
from iolab.studies.compare.compare import compare
from iolab.studies.compare.rules.planning import Basis, blocks_needed, detectable
from support.extremes import LONGEST_QUEUE
from support.runs import run

STUDIES = 600


def pairs(count: int, mean: float, seed: int = 1) -> np.ndarray:
    """Pairs of exactly this mean and a standard deviation of 1."""
    drawn = np.random.default_rng(seed).normal(0, 1, count)
    scaled: np.ndarray = (drawn - drawn.mean()) / drawn.std(ddof=1) + mean
    return scaled


def basis(differences: np.ndarray, *, exact: bool) -> Basis:
    return Basis(t_intervals([differences])[0], differences, exact)


def found(mean: float, blocks: int, level: float) -> float:
    """The share of studies in which the exact test finds the change."""
    random = np.random.default_rng(8)
    return float(
        np.mean(
            [(sign_flip_p(random.normal(mean, 1, blocks)) or 1) <= level for _ in range(STUDIES)]
        )
    )


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("mean", [0.3, 0.6, 0.9])
def test_the_advice_does_not_move_with_the_blocks_that_there_are(mean: float, exact: bool) -> None:
    advised = {
        blocks_needed(basis(pairs(count, mean, seed), exact=exact), 0.05)
        for count in range(6, 12)
        for seed in range(3)
        if mean * math.sqrt(count) < 2.3
    }
    assert len(advised) == 1


@pytest.mark.parametrize(
    ("mean", "level"), [(1.9, 0.05), (1.3, 0.05), (0.9, 0.05), (1.9, 0.00125), (1.2, 0.01)]
)
def test_extremes_are_found_with_the_power_that_is_stated(mean: float, level: float) -> None:
    advised = blocks_needed(basis(pairs(2, mean), exact=True), level)
    assert advised is not None
    assert found(mean, advised, level) >= 0.75
    assert advised == 6 or found(mean, advised - 1, level) <= 0.84
    least = detectable([basis(pairs(advised, mean), exact=True)], level)
    assert least is not None
    assert found(least, advised, level) == pytest.approx(0.8, abs=0.045)


def test_pairs_that_are_all_equal_are_decided_by_their_signs() -> None:
    for exact in (True, False):
        assert blocks_needed(basis(np.full(3, 0.1), exact=exact), 0.05) == 6
        assert blocks_needed(basis(np.full(3, 0.1), exact=exact), 0.05 / 40) == 11


def test_fewer_blocks_than_the_exact_test_needs_detect_nothing() -> None:
    assert detectable([basis(pairs(5, 1.0), exact=True)], 0.05) is None
    assert detectable([basis(pairs(8, 1.0), exact=True)], 0.05 / 40) is None
    assert detectable([basis(pairs(5, 1.0), exact=False)], 0.05) is not None


def test_a_metric_without_a_distribution_is_advised_by_the_exact_test() -> None:
    """Enough noise that nothing is decided: the advised number is that of the exact test, for the
    pairs of this cell alone."""
    random = np.random.default_rng(3)
    noise = {
        (block, load): float(random.normal(0.4, 0.6)) for block in range(1, 9) for load in (1, 2)
    }
    runs = [
        run(
            variant,
            0.01 * (math.exp(noise[block, load]) if variant == "b" else 1.0),
            metric=LONGEST_QUEUE.name,
            unit="s",
            block=block,
            numjobs=load,
        )
        for block in range(1, 9)
        for load in (1, 2)
        for variant in ("a", "b")
    ]
    comparison = compare(runs, LONGEST_QUEUE.name)
    told = 0
    for cell in comparison.cells:
        if cell.change is None or cell.change.decided:
            continue
        differences = np.array([noise[block, cell.row[0]] for block in range(1, 9)])  # type: ignore[index]
        assert cell.change.blocks_needed == blocks_needed(basis(differences, exact=True), 0.05 / 2)
        told += 1
    assert told
