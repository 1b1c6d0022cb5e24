# SPDX-License-Identifier: Apache-2.0
"""Studies that end once their rules are decided: what was planned, and how far a study has come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.base.errors import ResultsError, UsageError
from iolab.base.metrics import find, share_beyond
from iolab.base.stats.sequential import Design, Look, Spending, plan_looks

from ...results.evidence.journal import read_journal
from ...results.evidence.manifest import Manifest
from ...results.evidence.model import Run
from ..model import Warning
from .rules import ALPHA, AT_MOST, Rule, parse_rule

SEQUENTIAL = "sequential"
"""Code of the note about such a study."""


@dataclass(frozen=True)
class Until:
    """What ends a study early: rules that are all decided, at one of the looks of a design."""

    rules: tuple[Rule, ...]
    design: Design

    @property
    def at_most(self) -> int:
        """The largest number of blocks."""
        return self.design.looks[-1]

    def as_data(self) -> dict[str, Any]:
        """As plain data, for the manifest."""
        return {
            "rules": [str(rule) for rule in self.rules],
            "at_most": self.at_most,
            "alpha": self.design.alpha,
            "spending": self.design.spending,
            "looks": list(self.design.looks),
        }

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> Until | None:
        """The plan of a study; None where its number of blocks was fixed.

        Raises ResultsError where the manifest has another thing there.
        """
        data = (manifest.study or {}).get("until")
        if data is None:
            return None
        try:
            return cls(
                tuple(parse_rule(str(text)) for text in data["rules"]),
                Design(
                    tuple(int(blocks) for blocks in data["looks"]),
                    float(data["alpha"]),
                    data["spending"],
                ),
            )
        except (AttributeError, KeyError, TypeError, ValueError, UsageError) as error:
            raise ResultsError(
                f"study.until is damaged: {error}",
                where="manifest.json",
                hint="check it with --rule after a copy of the manifest is put back",
            ) from None

    def last_look(self, manifest: Manifest, runs: Sequence[Run]) -> Look:
        """The last look of which all runs are there; number 0 where none is complete.

        `runs` are all runs of the results: a failed one counts as there, and leaves a pair out.
        """
        cells = len((manifest.study or {}).get("cells", ()))
        counts = Counter(
            run.plan.block
            for run in runs
            if run.plan.status in ("finished", "failed") and run.variant != "?"
        )
        complete = 0
        while complete < self.at_most and cells and counts[complete + 1] >= cells:
            complete += 1
        return Look(self.design, sum(blocks <= complete for blocks in self.design.looks))

    def words(self) -> str:
        """`write.iops within 5 %, write.clat.p99 <= +10 %`."""
        return ", ".join(map(str, self.rules))


def plan_until(
    rules: Sequence[str],
    at_most: int = AT_MOST,
    alpha: float = ALPHA,
    spending: Spending = "pocock",
) -> Until:
    """Plan the looks of a study before its first run.

    Args:
        rules: as `iolab check` takes them. at_most: blocks at which it ends undecided.
        alpha: chance of a wrong pass, and of a wrong fail, over all looks.

    Raises UsageError where a rule or its unit is wrong, or `at_most` blocks can never decide.
    """
    parsed = tuple(parse_rule(text) for text in rules)
    is_exact = False
    for rule in parsed:
        metric = find(rule.metric)
        if metric is None:
            raise UsageError(
                f"no metric is called '{rule.metric}'", hint="iolab catalog metrics lists them"
            )
        rule.bounds(metric)
        if rule.statistic:
            raise UsageError(
                f"'{rule}' cannot end a study: looks are planned for rules on the mean",
                hint="choose the number of blocks, and check it afterwards",
            )
        if share_beyond(rule.metric) == 0:
            raise UsageError(
                f"{rule.metric} is made by a single I/O, and never tested",
                hint="choose a percentile, such as p99.9",
            )
        is_exact |= metric.assumption != "normal"
    looks = plan_looks(at_most, alpha, spending, is_exact=is_exact)
    if looks is None:
        needed = next(
            blocks
            for blocks in range(at_most, 1000)
            if plan_looks(blocks, alpha, spending, is_exact=is_exact)
        )
        raise UsageError(
            f"{at_most} blocks can never decide at alpha {alpha:g}",
            hint=f"at least {needed}"
            + (
                ": the exact test of n pairs has no p value below 2^-n"
                if is_exact
                else ": fewer have no noise"
            ),
        )
    return Until(parsed, Design(looks, alpha, spending))


def sequential_notes(directory: Path, manifest: Manifest) -> tuple[Warning, ...]:
    """A note for a study of which the number of blocks depends on its results; none for others."""
    until = Until.from_manifest(manifest)
    if until is None:
        return ()
    return (
        Warning(
            SEQUENTIAL,
            f"the number of blocks was decided sequentially: {until.words()}, {_outcome(directory, until)}. "
            "Intervals and p values of comparisons do not take the looks into account; those of "
            "iolab check do",
        ),
    )


def _outcome(directory: Path, until: Until) -> str:
    try:
        events, _ = read_journal(directory)
    except ResultsError:
        events = []
    looks: list[Mapping[str, Any]] = [event for event in events if event["event"] == "look"]
    if not looks:
        return f"no look yet, at most {until.at_most} blocks"
    last = looks[-1]
    return (
        f"{last.get('outcome')} at look {last.get('look')} of {len(until.design.looks)}, after "
        f"{last.get('blocks')} of at most {until.at_most} blocks"
    )
