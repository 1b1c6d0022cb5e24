# SPDX-License-Identifier: Apache-2.0
"""Rules for a change, such as `write.iops >= -5 %` or `write.iops p10 >= -5 %`, as bounds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from iolab.base.errors import UsageError
from iolab.base.metrics import Metric
from iolab.base.units import BASE, unit

ALPHA = 0.05
"""Chance of a wrong pass, and of a wrong fail, unless another one is given."""

AT_MOST = 20
"""Blocks at which a study with undecided rules ends, unless it states another number."""

Relation = Literal[">=", "<=", "within"]

_RULE = re.compile(
    r"\s*(?P<metric>[\w.\[\]-]+)(?:\s+(?P<statistic>p\d{1,2}(?:\.\d+)?|min|max))?"
    r"(?:\s*(?P<relation>>=|<=|≥|≤|within)\s*|\s+)"
    r"(?P<number>[+-]?\d+(?:\.\d*)?|[+-]?\.\d+)\s*(?P<unit>%|[^\s\d]+)?\s*"
)
_SIGNS: dict[str, Relation] = {">=": ">=", "≥": ">=", "<=": "<=", "≤": "<=", "within": "within"}
_EXAMPLE = "write --rule 'write.iops >= -5 %', 'read.clat.p99 <= +10 %' or 'write.iops within 5 %'"


@dataclass(frozen=True)
class Rule:
    """A bound for the change of a metric.

    Attributes:
        metric: its name. statistic: of the changes of single blocks: `p10` (a percentile), `min` or
        `max`; empty for the mean. relation: `>=`, `<=`, or `within` for both directions. number, unit: the
        bound as written: per cent, `points` of a share, or a unit of the metric.
    """

    metric: str
    relation: Relation
    number: float
    unit: str
    statistic: str = ""

    def __str__(self) -> str:
        sign = "" if self.relation == "within" else "+" if self.number > 0 else ""
        name = f"{self.metric} {self.statistic}".rstrip()
        return f"{name} {self.relation} {sign}{self.number:g} {self.unit}".rstrip()

    @property
    def share(self) -> float | None:
        """The share of blocks that may break the bound: 0.1 for `p10 >=` and `p90 <=`, 0 for `min >=`
        and `max <=`. None for a rule on the mean."""
        if not self.statistic:
            return None
        if self.statistic in ("min", "max"):
            return 0.0
        percent = float(self.statistic[1:])
        return (percent if self.relation == ">=" else 100 - percent) / 100

    def bounds(self, metric: Metric) -> tuple[float | None, float | None]:
        """The lowest and the highest change that meet the rule, on the scale on which differences
        are tested (logarithms for a ratio); None for an open end.

        Raises UsageError for a unit that changes of the metric are not in, and for a ratio of -100
        % or less.
        """
        number = self._change(metric)
        if self.relation == ">=":
            return self._to_scale(number, metric), None
        if self.relation == "<=":
            return None, self._to_scale(number, metric)
        if number <= 0:
            raise self._error("needs a margin above 0")
        return self._to_scale(-number, metric), self._to_scale(number, metric)

    def _change(self, metric: Metric) -> float:
        if metric.change == "ratio":
            if self.unit != "%":
                raise self._error(f"changes of {metric.name} are in %")
            return self.number / 100
        if metric.unit == "1":
            if self.unit not in ("points", "point"):
                raise self._error(f"changes of {metric.name} are in points (percentage points)")
            return self.number / 100
        if not self.unit and not metric.unit:
            return self.number
        try:
            named = unit(self.unit)
        except (UsageError, KeyError):
            named = None
        if named is None or BASE[named.dimension] != metric.unit:
            raise self._error(f"changes of {metric.name} are in {metric.unit or 'numbers'}")
        return self.number * named.scale

    def _to_scale(self, change: float, metric: Metric) -> float:
        if metric.change != "ratio":
            return change
        if change <= -1:
            raise self._error("a ratio cannot fall by 100 % or more")
        return math.log1p(change)

    def _error(self, message: str) -> UsageError:
        return UsageError(f"'{self}': {message}", where="--rule", hint=_EXAMPLE)


def parse_rule(text: str) -> Rule:
    """`METRIC >= -5 %`, `METRIC <= +10 %`, `METRIC within 5 %` or `METRIC 5 %`, which means the
    same; `METRIC p10 >= -5 %`, `METRIC min >= -5 %` for single blocks. UsageError for anything
    else."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise UsageError(f"'{text}' is not a rule", where="--rule", hint=_EXAMPLE)
    statistic = match["statistic"] or ""
    rule = Rule(
        match["metric"],
        _SIGNS[match["relation"] or "within"],
        float(match["number"]),
        match["unit"] or "",
        statistic,
    )
    if statistic and rule.relation == "within":
        raise rule._error("a percentile of the blocks has a bound on one side")
    if statistic in ("min", "max") and rule.relation != {"min": ">=", "max": "<="}[statistic]:
        raise rule._error("the worst block is min with >=, and max with <=")
    if (rule.share is not None and not 0 <= rule.share <= 0.5) or statistic == "p0":
        raise rule._error("p10 with >=, or p90 with <=, allows a tenth of the blocks to be worse")
    return rule
