# SPDX-License-Identifier: Apache-2.0
"""Comparisons made by hand for the tests of charts: the published #447 tables, and repetitions with
intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from iolab.base import metrics
from iolab.base.verdict import Level, Verdict
from iolab.studies.compare.model import Cell, Change, Comparison, Estimate
from iolab.studies.results.evidence.model import Observation, Run, RunPlan

JOBS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
DISKS = (1, 2, 4, 8)

MASTER_IOPS = (
    (167.258304, 312.444793, 303.189894, 292.878452),
    (169.605066, 311.354396, 328.522623, 290.149483),
    (324.262169, 457.389015, 469.411902, 462.847240),
    (595.903879, 884.861514, 944.986084, 957.287605),
    (1071.628511, 1575.023330, 1672.082792, 1718.954139),
    (1577.105724, 2184.737149, 2689.662068, 2863.541684),
    (3007.230923, 2898.521987, 4075.542745, 4714.240485),
    (4581.062171, 4069.174009, 5232.947919, 6867.573061),
    (6002.881364, 7116.632792, 6780.153892, 8585.032314),
    (7482.713851, 10350.497952, 10679.182193, 10650.569127),
    (7487.409624, 12674.240787, 14745.615495, 13142.251131),
)
PROJECT_IOPS = (
    (168.044399, 298.240059, 312.539582, 297.720228),
    (320.489959, 413.196007, 431.878406, 445.414702),
    (622.004466, 964.133931, 1003.516608, 1033.263340),
    (1047.581747, 1471.084297, 1587.027531, 1616.742217),
    (1818.574190, 2132.967820, 2609.702040, 2874.031363),
    (3247.083722, 3187.612478, 4480.345925, 5030.096489),
    (5118.437057, 5514.379978, 5901.498109, 7477.911780),
    (6996.751245, 9160.785686, 8625.454000, 10643.808001),
    (7946.224561, 12204.490564, 14907.493170, 15287.263459),
    (7590.060667, 13676.253122, 20140.690298, 23297.673179),
    (7745.878208, 13808.625023, 24070.192418, 31476.871167),
)

Levels = tuple[object, ...]
Key = tuple[str, Levels, Levels, Levels]
"""Variant, table, row, column."""
Values = dict[Key, list[float]]
"""Repetitions of each cell."""


def comparison(
    metric: str,
    values: Values,
    *,
    rows: Sequence[str] = ("numjobs",),
    cols: Sequence[str] = (),
    tables: Sequence[str] = (),
    unit: str = "",
    levels: Mapping[Key, Level] | None = None,
    saturated: Sequence[Key] = (),
    left_out: Mapping[Key, Sequence[float | None]] | None = None,
    **more: Any,
) -> Comparison:
    """A comparison of (variant, table, row, col) to repetitions; the first variant is the baseline.

    Intervals are plain t-like ones of two standard errors: charts draw what they are given.
    """
    found = metrics.of(metric, unit)
    levels, left_out = levels or {}, left_out or {}
    variants = tuple(dict.fromkeys(key[0] for key in values))
    axes: list[tuple[Levels, ...]] = [
        tuple(dict.fromkeys(levels_of(key)[place] for key in values)) for place in range(3)
    ]
    cells = []
    for table in axes[0]:
        for row in axes[1]:
            for col in axes[2]:
                base = None
                for variant in variants:
                    key = (variant, table, row, col)
                    if key not in values:
                        continue
                    numbers = tuple(values[key])
                    value, low, high = _mean(numbers)
                    refused = tuple(left_out.get(key, ()))
                    estimate = Estimate(
                        value,
                        low,
                        high,
                        numbers,
                        tuple(f"{n:04d}" for n in range(len(numbers))),
                        levels.get(key, Level.OK),
                        tuple(f"x{n}" for n in range(len(refused))),
                        refused,
                    )
                    change = (
                        None if variant == variants[0] else _change(base, estimate, found.change)
                    )
                    base = estimate if variant == variants[0] else base
                    cells.append(
                        Cell(table, row, col, variant, estimate, change, saturated=key in saturated)
                    )
    return Comparison(
        found,
        variants[0] if variants else "none",
        variants,
        tuple(rows),
        tuple(cols),
        tuple(tables),
        axes[1],
        axes[2],
        axes[0],
        tuple(cells),
        (),
        **more,
    )


def levels_of(key: Key) -> tuple[Levels, Levels, Levels]:
    return key[1:]


def published(metric: str = "write.iops") -> Comparison:
    """Both #447 tables: one number per cell, UNJUDGED; latency is what Little's law makes of the
    same rates."""
    values: Values = {}
    for row, (jobs, before, after) in enumerate(zip(JOBS, MASTER_IOPS, PROJECT_IOPS, strict=True)):
        for col, disks in enumerate(DISKS):
            for variant, table in (("master", before), ("project", after)):
                rate = table[col]
                values[(variant, (), (JOBS[row],), (disks,))] = [
                    rate if metric.endswith("iops") else jobs / rate
                ]
    return comparison(metric, values, cols=("disks",), levels=dict.fromkeys(values, Level.UNJUDGED))


def repeated(
    n: int = 6,
    variants: Sequence[str] = ("master", "project"),
    disks: Sequence[int] = (1, 8),
    metric: str = "write.iops",
    noise: float = 0.06,
    **more: Any,
) -> Comparison:
    """A saturating curve per variant with lognormal noise over n repetitions."""
    chance = random.Random(7)
    values: Values = {}
    for place, variant in enumerate(variants):
        for count in disks:
            for jobs in JOBS:
                level = 200 * (1 + 0.35 * place) * jobs / (1 + jobs / (12 * count))
                values[(variant, (), (jobs,), (count,))] = [
                    level * math.exp(chance.gauss(0, noise)) for _ in range(n)
                ]
    cols = ("disks",) if len(disks) > 1 else ()
    if not cols:
        values = {
            (variant, table, row, ()): numbers
            for (variant, table, row, _), numbers in values.items()
        }
    return comparison(metric, values, cols=cols, **more)


def _mean(numbers: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    if not numbers:
        return None, None, None
    if min(numbers) <= 0:
        value = sum(numbers) / len(numbers)
        half = 2 * _spread(numbers) / math.sqrt(len(numbers))
        return (value, value - half, value + half) if len(numbers) > 1 else (value, None, None)
    logs = [math.log(number) for number in numbers]
    middle = sum(logs) / len(logs)
    half = 2 * _spread(logs) / math.sqrt(len(logs))
    value = math.exp(middle)
    return (
        (value, math.exp(middle - half), math.exp(middle + half))
        if len(logs) > 1
        else (value, None, None)
    )


def _spread(numbers: Sequence[float]) -> float:
    middle = sum(numbers) / len(numbers)
    return math.sqrt(sum((number - middle) ** 2 for number in numbers) / max(len(numbers) - 1, 1))


def _change(base: Estimate | None, estimate: Estimate, kind: str) -> Change | None:
    if base is None or base.value is None or estimate.value is None:
        return None
    pairs = min(len(base.values), len(estimate.values))
    if kind == "difference":
        return Change(estimate.value - base.value, None, None, pairs, 0)
    if base.value <= 0 or estimate.value <= 0:
        return None
    value = estimate.value / base.value - 1
    if pairs < 2:
        return Change(value, None, None, pairs, 0)
    differences = [
        math.log(b) - math.log(a) for a, b in zip(base.values, estimate.values, strict=False)
    ]
    half = 2.5 * _spread(differences) / math.sqrt(len(differences))
    middle = sum(differences) / len(differences)
    low, high = math.exp(middle - half) - 1, math.exp(middle + half) - 1
    return Change(
        math.exp(middle) - 1, low, high, pairs, 0, decided=low > 0 or high < 0, improves=value > 0
    )


def runs_of(
    rates: Mapping[tuple[str, int, int, int], float],
    *,
    suspect: Sequence[tuple[str, int, int, int]] = (),
    invalid: Sequence[tuple[str, int, int, int]] = (),
) -> list[Run]:
    """Runs with throughput and latency (by Little's law) for (variant, disks, numjobs, repetition)
    to IOPS."""
    runs = []
    for number, (key, rate) in enumerate(rates.items()):
        variant, disks, jobs, repetition = key
        level = Level.INVALID if key in invalid else Level.SUSPECT if key in suspect else Level.OK
        observed = {
            name: Observation(name, value, unit, "fio.json", name)
            for name, value, unit in (
                ("write.iops", rate, "1/s"),
                ("write.bw", rate * 8192, "B/s"),
                ("write.lat.mean", jobs / rate, "s"),
            )
        }
        plan = RunPlan(
            f"{number:04d}", variant, {"disks": disks, "numjobs": jobs}, repetition, repetition
        )
        runs.append(Run(plan, Path("runs") / plan.run, observed, Verdict(level)))
    return runs


def saturating(
    repetitions: int = 5, disks: Sequence[int] = (1, 8), noise: float = 0.03
) -> dict[tuple[str, int, int, int], float]:
    """Rates that flatten at a ceiling, as closed loops do: (variant, disks, numjobs, repetition) to
    IOPS."""
    chance = random.Random(3)

    def rate(jobs: int, ceiling: float) -> float:
        return float(
            math.exp(chance.gauss(0, noise)) * min(jobs * 220, ceiling) * 0.97 ** (jobs / 256)
        )

    return {
        (variant, count, jobs, n + 1): rate(jobs, 3000 * gain * count**0.5)
        for variant, gain in (("master", 1.0), ("project", 1.6))
        for count in disks
        for jobs in JOBS
        for n in range(repetitions)
    }
