# SPDX-License-Identifier: Apache-2.0
"""Series of a history whose truth is known: without a change, with a drift, with a step.

As a program it prints the tables of docs/method/history.md: `python
tests/support/simulated_histories.py [SERIES]`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from iolab.base.stats.series.changepoints import Changes, change_points, find_changes

NOISES = ("normal", "t(4)", "0.2", "0.4", "0.6")
"""Normal, heavy tails, or autocorrelation of the first order; all of standard deviation 1."""


def series(
    noise: str, entries: int, count: int, *, drift: float = 0.0, step: float = 0.0
) -> Iterator[NDArray[np.float64]]:
    """Series with a drift in all, and a step in the middle, in standard deviations."""
    random = np.random.default_rng(20)
    for _ in range(count):
        if noise == "normal":
            values = random.normal(0, 1, entries)
        elif noise == "t(4)":
            values = random.standard_t(4, entries) / math.sqrt(2)
        else:
            rho = float(noise)
            values = random.normal(0, 1, entries + 50)
            for place in range(1, len(values)):
                values[place] += rho * values[place - 1]
            values = values[50:] * math.sqrt(1 - rho**2)
        values += drift * np.linspace(0, 1, entries)
        values[entries // 2 :] += step
        yield values


def shares(
    noise: str, entries: int, count: int, *, drift: float = 0.0, step: float = 0.0
) -> tuple[float, float, float]:
    """Shares of series with a step by steps alone at 5 % (the search of before), with a step or a
    trend, and with a trend."""
    before, now, trends = 0, 0, 0
    for values in series(noise, entries, count, drift=drift, step=step):
        changes: Changes = find_changes(values)
        before += bool(change_points(values))
        now += bool(changes.means) or changes.trend is not None
        trends += changes.trend is not None
    return before / count, now / count, trends / count


def _print_tables(count: int) -> None:
    print("noise, entries: with a change before, now, of these a trend")
    for noise in NOISES:
        for entries in (20, 40, 60, 100):
            _print_row(noise, entries, count)
    print("drift")
    for noise in ("normal", "t(4)", "0.4"):
        for entries in (20, 40, 60):
            for drift in (2.0, 3.0, 5.0, 10.0, 20.0):
                _print_row(noise, entries, count, drift=drift)
    print("step")
    for entries in (20, 60):
        for step in (1.0, 2.0, 3.0, 5.0):
            _print_row("normal", entries, count, step=step)


def _print_row(noise: str, entries: int, count: int, **truth: float) -> None:
    words = [noise, str(entries), *(f"{value:g} sd" for value in truth.values())]
    rates = [f"{share:.1%}" for share in shares(noise, entries, count, **truth)]
    print("| " + " | ".join([*words, *rates]) + " |", flush=True)


if __name__ == "__main__":
    _print_tables(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
