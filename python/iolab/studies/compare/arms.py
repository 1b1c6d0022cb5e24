# SPDX-License-Identifier: Apache-2.0
"""Runs per arm: how many there are, how many count, and which were lost.

Missing runs are information. Runs that died or did no I/O leave a comparison with the survivors, and
the arm that fails more often can look as good as the other one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from iolab.base.verdict import Level

from ..results.evidence.model import Run

ERRORS = frozenset(
    {"job-error", "io-errors", "exit-code", "failed", "no-result", "damaged-file", "no-io"}
)
"""Reasons of INVALID that are failures of the load or of the storage: errors, no result, no I/O."""

ZERO = "no-operation"
"""Reason of a run that counts and did none of the I/Os of an operation of its load."""

MOST_ARMS = 8
"""Arms that a text lists."""

_OPERATIONS = ("read", "write", "trim")


@dataclass(frozen=True)
class LostRun:
    """A run that a comparison lacks. code: of the first reason, or `ZERO`. text: the reason. cell:
    the run's factors."""

    run: str
    code: str
    text: str
    cell: tuple[tuple[str, str], ...]

    @property
    def is_failure(self) -> bool:
        """Whether errors or missing I/O are the reason."""
        return self.code in ERRORS or self.code == ZERO


@dataclass(frozen=True)
class ArmRuns:
    """The runs of one arm.

    Attributes:
        variant: the arm. planned: its runs, those that failed included. counted: runs that are not
        INVALID.
        suspect: number of SUSPECT runs by the code of their first reason.
        lost: INVALID runs, and runs without an operation of their load.
    """

    variant: str
    planned: int
    counted: int
    suspect: dict[str, int]
    lost: tuple[LostRun, ...]

    @property
    def failures(self) -> int:
        """Runs lost to errors or to no I/O."""
        return sum(run.is_failure for run in self.lost)

    def words(self) -> str:
        """`B 3 of 6 (3 lost: fio reports EIO in its entry, such as 0007-ab12)`."""
        parts = []
        if self.suspect:
            listed = ", ".join(f"{code} {count}" for code, count in sorted(self.suspect.items()))
            parts.append(f"{sum(self.suspect.values())} SUSPECT: {listed}")
        by_text: dict[tuple[bool, str], list[str]] = {}
        for run in self.lost:
            by_text.setdefault((run.code == ZERO, run.text), []).append(run.run)
        for (is_zero, text), runs in by_text.items():
            how = " with" if is_zero else " lost:"
            parts.append(f"{len(runs)}{how} {text}, such as {runs[0]}")
        more = f" ({'; '.join(parts)})" if parts else ""
        return f"{self.variant} {self.counted} of {self.planned}{more}"

    def as_data(self) -> dict[str, object]:
        """For JSON."""
        return {
            "variant": self.variant,
            "planned": self.planned,
            "counted": self.counted,
            "suspect": self.suspect,
            "lost": [
                {"run": run.run, "code": run.code, "text": run.text, "factors": dict(run.cell)}
                for run in self.lost
            ],
        }


def arm_runs(runs: Sequence[Run], variants: Sequence[str]) -> tuple[ArmRuns, ...]:
    """The runs of each arm, in this order."""
    of_variant: dict[str, list[Run]] = {}
    for run in runs:
        of_variant.setdefault(run.variant, []).append(run)
    return tuple(_arm(variant, of_variant.get(variant, [])) for variant in variants)


def _arm(variant: str, runs: Sequence[Run]) -> ArmRuns:
    suspect: Counter[str] = Counter()
    lost = []
    for run in runs:
        cell = tuple((name, str(level)) for name, level in run.factors.items())
        if run.verdict.level is Level.INVALID:
            reason = next(iter(run.verdict.blames))
            lost.append(LostRun(run.id, reason.code, reason.text, cell))
            continue
        if run.verdict.level is Level.SUSPECT:
            suspect[next(iter(run.verdict.blames)).code] += 1
        idle = [name for name in _OPERATIONS if run.value(f"{name}.iops") == 0]
        if idle:
            lost.append(LostRun(run.id, ZERO, f"no {' and no '.join(idle)} I/O (-100 %)", cell))
    counted = sum(run.verdict.level is not Level.INVALID for run in runs)
    return ArmRuns(variant, len(runs), counted, dict(suspect), tuple(lost))


def runs_text(arms: Sequence[ArmRuns]) -> str:
    """`runs that count: A 6 of 6; B 3 of 6 (3 lost: ...)`; of many arms those with something to say."""
    listed = list(arms)
    if len(listed) > MOST_ARMS:
        listed = [arm for arm in arms if arm.lost or arm.suspect][:MOST_ARMS]
    texts = [arm.words() for arm in listed]
    if len(listed) < len(arms):
        others = [arm for arm in arms if arm not in listed]
        counted, planned = (
            sum(getattr(arm, name) for arm in others) for name in ("counted", "planned")
        )
        texts.append(f"{len(others)} other arms {counted} of {planned}")
    return f"runs that count: {'; '.join(texts)}"


def is_asymmetric(baseline: ArmRuns, arm: ArmRuns) -> bool:
    """Whether the arms lost different numbers of runs in a cell, for whatever reason."""
    counts = [Counter(run.cell for run in counted.lost) for counted in (baseline, arm)]
    return counts[0] != counts[1]
