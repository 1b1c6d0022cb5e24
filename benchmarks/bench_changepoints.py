# SPDX-License-Identifier: Apache-2.0
"""Changes of simulated series: false alarms, delay and time, against Apache Otava where it is
installed (`pip install apache-otava`), on the same series.

Otava's significance level is chosen so that both raise about as many false alarms with normal noise,
since a search that raises more of them finds more changes as well.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from iolab.base.stats.series.changepoints import change_points

ENTRIES, SERIES = 60, 200
STEPS = (1.0, 2.0, 3.0)
LEVELS = (0.001, 0.005, 0.01)
"""Of Otava; the first is its default."""

Search = Callable[[NDArray[np.float64]], Sequence[int]]


def series(seed: int, step: float, tails: int | None = None) -> NDArray[np.float64]:
    """Noise of standard deviation 1 around 100, and a step in the middle; shape (ENTRIES,)."""
    random = np.random.default_rng(seed)
    noise = random.normal(0, 1, ENTRIES) if tails is None else random.standard_t(tails, ENTRIES)
    noise[ENTRIES // 2 :] += step
    return 100 + noise


def own(values: NDArray[np.float64]) -> list[int]:
    """Places of changes as iolab finds them."""
    return [change.place for change in change_points(values)]


def otava(level: float) -> Search:
    """Otava's search with a significance level.

    Raises:
        ImportError: it is not installed.
    """
    analysis = importlib.import_module("otava.analysis")

    def search(values: NDArray[np.float64]) -> list[int]:
        changes, _ = analysis.compute_change_points(values.tolist(), max_pvalue=level)
        return [change.index for change in changes]

    return search


def measure(name: str, search: Search) -> None:
    """Print the rates of a search, and its time per series."""
    start = time.perf_counter()
    alarms = [
        sum(bool(search(series(seed, 0, tails))) for seed in range(SERIES)) * 1000 / SERIES
        for tails in (None, 4)
    ]
    each_ms = (time.perf_counter() - start) / (2 * SERIES) * 1000
    middle = ENTRIES // 2
    words = []
    for step in STEPS:
        hits, delays = 0, 0
        for seed in range(SERIES):
            values = series(seed, step)
            hits += any(abs(place - middle) <= 3 for place in search(values))
            ends = range(middle + 1, ENTRIES + 1)
            delays += next((end - middle for end in ends if search(values[:end])), middle + 1)
        words.append(f"{step:g} sd {hits / SERIES:.0%} after {delays / SERIES:.1f}")
    print(
        f"{name}: false alarms per 1,000 series {alarms[0]:.0f}, with heavy tails {alarms[1]:.0f}; "
        f"found within 3 entries, and results until a change is reported: {', '.join(words)}; "
        f"{each_ms:.1f} ms a series",
        flush=True,
    )


def main() -> None:
    measure("iolab", own)
    for level in LEVELS:
        try:
            search = otava(level)
        except ImportError:
            print("Apache Otava is not installed: pip install apache-otava")
            return
        measure(f"Otava at {level:g}", search)


if __name__ == "__main__":
    main()
