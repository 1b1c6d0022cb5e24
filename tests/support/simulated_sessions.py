# SPDX-License-Identifier: Apache-2.0
"""Arms that were measured in sessions of unequal noise, without any difference.

As a program it prints the table of docs/method/comparison.md: `python
tests/support/simulated_sessions.py`.
"""

from __future__ import annotations

import numpy as np

from iolab.base.stats.sessions import session_interval
from support.narrow import present

CASES = (
    ((3, 9), (0.10, 0.02)),
    ((2, 10), (0.10, 0.02)),
    ((2, 10), (0.02, 0.02)),
    ((3, 9), (0.02, 0.02)),
    ((9, 3), (0.10, 0.02)),
    ((4, 8), (0.10, 0.02)),
    ((6, 12), (0.10, 0.02)),
    ((2, 2), (0.10, 0.02)),
    ((3, 3), (0.10, 0.02)),
    ((3, 3), (0.02, 0.02)),
    ((5, 5), (0.02, 0.02)),
)
"""Sessions of each arm, and the standard deviation of a session mean."""


def share_significant(
    sessions: tuple[int, int],
    noise: tuple[float, float],
    studies: int,
    *,
    difference: float = 0.0,
    one_variance: bool = False,
) -> float:
    """Share of studies with p up to 5 %; `one_variance`: by Student's test."""
    random = np.random.default_rng(4711)
    arms = [random.normal(0, sd, (studies, n, 1)) for sd, n in zip(noise, sessions, strict=True)]
    return float(
        np.mean(
            [
                present(
                    session_interval(
                        list(first), list(second + difference), is_stationary=one_variance
                    ).p
                )
                <= 0.05
                for first, second in zip(*arms, strict=True)
            ]
        )
    )


if __name__ == "__main__":
    print("sessions   noise        false alarms: Student  Welch   10 % found: Student  Welch")
    for counts, sds in CASES:
        rates = [
            share_significant(counts, sds, 4000, difference=shift, one_variance=old)
            for shift in (0.0, 0.1)
            for old in (True, False)
        ]
        print(
            f"{counts[0]:2} and {counts[1]:2}  {sds[0]:4.0%} {sds[1]:4.0%}  "
            + "  ".join(f"{rate:6.1%}" for rate in rates),
            flush=True,
        )
