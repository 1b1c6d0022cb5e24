# SPDX-License-Identifier: Apache-2.0
"""Was the load steady over the window?"""

from __future__ import annotations

from collections.abc import Iterable

from iolab.base.stats.series.steady import HALVES_LIMIT, RANGE_LIMIT, SLOPE_LIMIT, steady
from iolab.base.verdict import Reason

from ..facts.run_facts import RunFacts
from .base import suspect


class SteadyGate:
    """SUSPECT when the load's own per-second throughput fails SNIA's range or slope test, or its
    halves differ.

    SNIA Performance Test Specification 2.0.2, "Steady State": range within 20 % of the average,
    best-fit slope within 10 %. `stats.steady` says how seconds become rounds. Devices alone are no
    measure: write-back moves in bursts.
    """

    name = "steady"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """The load's bytes per second; silent below ten samples, on open loops, as their rate is
        given, and where the load rises."""
        series = None if facts.plan.extra.get("steps") else facts.series.get("load.bw")
        trend = None if series is None or facts.offered_iops is not None else steady(series.values)
        if trend is None or trend.ok:
            return
        said = []
        if trend.range_share > RANGE_LIMIT:
            said.append(f"range {100 * trend.range_share:.0f} % of the average")
        if trend.slope_share > SLOPE_LIMIT:
            said.append(f"drift {100 * trend.slope_share:.0f} % over the window")
        if not 1 / HALVES_LIMIT <= trend.halves_ratio <= HALVES_LIMIT:
            said.append(f"second half at {100 * trend.halves_ratio:.0f} % of the first")
        yield suspect(
            "not-steady",
            f"not steady: {', '.join(said)}",
            range_share=trend.range_share,
            slope_share=trend.slope_share,
            halves_ratio=trend.halves_ratio,
        )
