# SPDX-License-Identifier: Apache-2.0
"""Curves of throughput and latency over load whose truth is known, in noise.

As a program it prints the table of docs/method/knee.md: `python
tests/support/simulated_curves.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from iolab.base.stats.curves.knee import Knee, KneeEstimate, knee, knee_over_repetitions

Curve = Callable[[NDArray[np.float64]], NDArray[np.float64]]

LOADS = np.asarray(2.0 ** np.arange(7), dtype=np.float64)

WITHOUT_KNEE: dict[str, Curve] = {
    "saturated": lambda loads: np.full(len(loads), 1000.0),
    "N^0.9": lambda loads: 100.0 * loads**0.9,
    "N": lambda loads: 100.0 * loads,
}
WITH_KNEE: dict[str, Curve] = {
    "saturated by 10 jobs": lambda loads: np.minimum(100.0 * loads, 1000.0),
    "softly saturated by 10 jobs": lambda loads: ((100.0 * loads) ** -2 + 1000.0**-2) ** -0.5,
}


def share_with_knee(
    curve: Curve,
    noise: float,
    repetitions: int,
    trials: int,
    *,
    without_noise_test: bool = False,
) -> float:
    """Share of trials in which a closed loop of this throughput has a knee: throughput and latency
    vary by the noise in opposite directions. `without_noise_test`: by the majority of repetitions
    alone."""
    random = np.random.default_rng(77)
    count = 0
    for _ in range(trials):
        factors = np.exp(random.normal(0, noise, (repetitions, len(LOADS))))
        rates = curve(LOADS) * factors
        curves = [(rate, LOADS / rate) for rate in rates]
        if without_noise_test:
            count += 2 * sum(isinstance(knee(*pair), Knee) for pair in curves) >= repetitions
        else:
            count += isinstance(knee_over_repetitions(curves, LOADS), KneeEstimate)
    return count / trials


if __name__ == "__main__":
    print("curve, noise: share with a knee, before and now, with 1, 3, 5 repetitions")
    for name, curve in (WITHOUT_KNEE | WITH_KNEE).items():
        for noise in (0.02, 0.05, 0.10):
            shares = [
                share_with_knee(curve, noise, repetitions, 2000, without_noise_test=before)
                for repetitions in (1, 3, 5)
                for before in (True, False)
            ]
            print(
                f"| {name} | {noise:.0%} | "
                + " | ".join(f"{share:.1%}" for share in shares)
                + " |",
                flush=True,
            )
