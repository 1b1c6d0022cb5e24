# SPDX-License-Identifier: Apache-2.0
"""Rules for a change, such as `write.iops >= -5 %`, as bounds."""

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
    r"\s*(?P<metric>[\w.\[\]-]+)(?:\s*(?P<relation>>=|<=|≥|≤|within)\s*|\s+)"
    r"(?P<number>[+-]?\d+(?:\.\d*)?|[+-]?\.\d+)\s*(?P<unit>%|[^\s\d]+)?\s*"
)
_SIGNS: dict[str, Relation] = {">=": ">=", "≥": ">=", "<=": "<=", "≤": "<=", "within": "within"}
_EXAMPLE = "write --rule 'write.iops >= -5 %', 'read.clat.p99 <= +10 %' or 'write.iops within 5 %'"


@dataclass(frozen=True)
class Rule:
    """A bound for the change of a metric.

    Attributes:
        metric: its name. relation: `>=`, `<=`, or `within` for both directions. number, unit: the
        bound as written: per cent, `points` of a share, or a unit of the metric.
    """

    metric: str
    relation: Relation
    number: float
    unit: str

    def __str__(self) -> str:
        sign = "" if self.relation == "within" else "+" if self.number > 0 else ""
        return f"{self.metric} {self.relation} {sign}{self.number:g} {self.unit}".rstrip()

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
    same; UsageError for anything else."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise UsageError(f"'{text}' is not a rule", where="--rule", hint=_EXAMPLE)
    return Rule(
        match["metric"],
        _SIGNS[match["relation"] or "within"],
        float(match["number"]),
        match["unit"] or "",
    )
