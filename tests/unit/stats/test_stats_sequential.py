# SPDX-License-Identifier: Apache-2.0
"""Looks, boundaries against published tables, and the errors of simulated studies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from iolab.base.stats.sequential import Design, Look, Spending, boundaries, plan_looks, spent
from support.depth import depth
from support.simulated_sequential import (
    EXACT_MARGIN,
    EXACT_RULE,
    MARGIN,
    WORLDS,
    World,
    designs,
    outcomes,
    uncorrected,
)


@pytest.mark.parametrize(
    ("spending", "published"),
    [
        # Reboussin, DeMets, Kim & Lan (2000), "Computations for group sequential boundaries using
        # the Lan-DeMets spending function method": two-sided 0.05, five equal looks
        ("obrien-fleming", (4.8769, 3.3569, 2.6803, 2.2898, 2.0310)),
        ("pocock", (2.4380, 2.4268, 2.4101, 2.3966, 2.3859)),
    ],
)
def test_bounds_are_those_of_published_tables(
    spending: Spending, published: tuple[float, ...]
) -> None:
    levels = Design((1, 2, 3, 4, 5), 0.025, spending).levels()
    assert [-float(special.ndtri(level)) for level in levels] == pytest.approx(published, abs=2e-4)


def test_constant_bounds_spend_what_pocock_published() -> None:
    """Pocock (1977): 2.413 at each of five looks is a two-sided error of 0.05."""
    shares = [0.2, 0.4, 0.6, 0.8, 1.0]
    crossed = _crossing(shares, 2.413, paths=200_000)
    assert crossed[-1] == pytest.approx(0.025, abs=0.0015)
    assert boundaries(shares, list(crossed)) == pytest.approx([2.413] * 5, abs=0.06)


def _crossing(shares: list[float], bound: float, paths: int) -> np.ndarray:
    """Share of simulated paths that crossed a constant bound up to each look."""
    random = np.random.default_rng(7)
    steps = np.sqrt(np.diff([0.0, *shares]))
    sums = np.cumsum(random.normal(0, 1, (paths, len(shares))) * steps, axis=1)
    crossed = np.maximum.accumulate(sums / np.sqrt(shares) >= bound, axis=1)
    return np.asarray(crossed.mean(axis=0))


@pytest.mark.parametrize("spending", ["pocock", "obrien-fleming"])
def test_all_of_the_error_is_spent_at_the_end(spending: Spending) -> None:
    shares = np.linspace(0.01, 1, 50)
    used = [spent(float(share), 0.05, spending) for share in shares]
    assert used == sorted(used)
    assert used[-1] == pytest.approx(0.05)


def test_a_single_look_is_the_plain_test() -> None:
    design = Design((8,), 0.05)
    assert design.levels() == pytest.approx((0.05,))
    for p in (1e-6, 0.003, 0.049, 0.051, 0.4):
        assert design.repeated_p(1, p) == pytest.approx(p, rel=0.01)


@pytest.mark.parametrize("spending", ["pocock", "obrien-fleming"])
def test_repeated_p_values_agree_with_the_levels(spending: Spending) -> None:
    design = Design((4, 8, 12, 20), 0.05, spending)
    for number, level in enumerate(design.levels(), 1):
        look = Look(design, number)
        assert look.level == level
        assert look.repeated_p(level) == pytest.approx(0.05)
        assert look.repeated_p(level * 1.01) > 0.05 > look.repeated_p(level * 0.99)
        values = [look.repeated_p(float(p)) for p in np.geomspace(1e-12, 1, 60)]
        assert values == sorted(values)
        assert values[-1] == 1
    # the first look has spent only its own level, so that the spending function can be inverted
    share, p = 4 / 20, 1e-12
    inverse = {
        "pocock": p / math.log1p((math.e - 1) * share),
        "obrien-fleming": 2 * float(special.ndtr(special.ndtri(p / 2) * math.sqrt(share))),
    }
    lowest = max(inverse[spending], 1e-9)  # the smallest one that is distinguished
    assert design.repeated_p(1, p) == pytest.approx(lowest, rel=0.02)
    # of a correction for four tests: the level under a quarter of alpha
    quarter = Design((4, 8, 12, 20), 0.0125, spending).levels()
    assert [
        design.repeated_p(number, level) for number, level in enumerate(quarter, 1)
    ] == pytest.approx([0.0125] * 4, rel=0.02)


@pytest.mark.parametrize(
    ("most", "is_exact", "looks"),
    [
        (20, False, (3, 7, 12, 16, 20)),
        (20, True, (6, 10, 13, 16, 20)),
        (5, True, (5,)),
        (4, True, None),
        (4, False, (3, 4)),
        (2, False, (2,)),
    ],
)
def test_looks_are_planned(most: int, is_exact: bool, looks: tuple[int, ...] | None) -> None:
    assert plan_looks(most, 0.05, "pocock", is_exact=is_exact) == looks


@pytest.mark.parametrize("spending", ["pocock", "obrien-fleming"])
@pytest.mark.parametrize("most", range(5, 40))
def test_an_exact_test_can_reach_the_level_of_its_first_look(most: int, spending: Spending) -> None:
    looks = plan_looks(most, 0.05, spending, is_exact=True)
    assert looks is not None
    assert looks[-1] == most
    assert 2.0 ** -looks[0] <= Design(looks, 0.05, spending).levels()[0]


def test_an_impossible_design_is_refused() -> None:
    for looks, alpha in (((), 0.05), ((3, 3), 0.05), ((5, 3), 0.05), ((0, 3), 0.05), ((3,), 0.0)):
        with pytest.raises(ValueError):
            Design(looks, alpha)
    with pytest.raises(ValueError, match="no spending function"):
        Design((3,), 0.05, "all at once")  # type: ignore[arg-type]


def most(rate: float, studies: int) -> float:
    """What a true rate stays below in 999 of 1000 repetitions of the simulation."""
    return float(stats.binom.ppf(0.999, studies, rate)) / studies


@pytest.mark.figures
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
@pytest.mark.slow
def test_sequential_studies_err_at_the_stated_rate(world: World) -> None:
    studies = depth(sample=300, full=4000)
    for design in designs(20):
        counts, blocks = outcomes(world, MARGIN, design, studies)
        assert counts["pass"] / studies <= most(0.06, studies)
        assert counts["fail"] / studies <= most(0.06, studies)
        print(
            f"sequential ({design.spending}), {world.name}, at the margin: "
            f"{counts['pass'] / studies:.1%} pass, {counts['fail'] / studies:.1%} fail, {blocks:.1f} blocks"
        )


@pytest.mark.figures
def test_equal_arms_are_decided_early() -> None:
    studies = depth(sample=150, full=2000)
    [pocock, _] = designs(20)
    for effect, outcome in ((0.0, "pass"), (2 * MARGIN, "fail")):
        counts, blocks = outcomes(WORLDS[0], effect, pocock, studies)
        assert counts[outcome] / studies > 0.97  # type: ignore[index]
        assert blocks < 10
        print(f"sequential, {outcome}: {counts[outcome] / studies:.1%} after {blocks:.1f} blocks")  # type: ignore[index]


@pytest.mark.figures
@pytest.mark.slow
def test_exact_tests_keep_their_level_over_the_looks() -> None:
    studies = depth(sample=150, full=1000)
    [pocock, _] = designs(16, is_exact=True)
    counts, _ = outcomes(WORLDS[1], EXACT_MARGIN, pocock, studies, rule=EXACT_RULE)
    assert max(counts["pass"], counts["fail"]) / studies <= most(0.05, studies)


def test_looking_without_a_correction_would_err_far_more() -> None:
    assert uncorrected(WORLDS[0], 300) > 0.12
    assert math.isclose(MARGIN, math.log1p(-0.05))
