# SPDX-License-Identifier: Apache-2.0
"""Hand-made results for the report's tests: any shape of study, without a file behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from iolab.base.errors import ResultsError
from iolab.base.verdict import Level, Reason, Verdict
from iolab.studies.results.derive.windows import window_runs
from iolab.studies.results.evidence.completeness import Standing
from iolab.studies.results.evidence.manifest import Manifest
from iolab.studies.results.evidence.model import Histogram, Observation, Run, RunPlan, Series
from iolab.studies.results.open.profiles import Profile, read_profiles

UNITS = {
    "write.iops": "1/s",
    "write.bw": "B/s",
    "write.lat.mean": "s",
    "device.util": "1",
    "stall.seconds": "s",
}


class HandMade:
    """What `report.source.Source` asks for, from plain values."""

    def __init__(
        self,
        runs: Sequence[Run],
        path: Path = Path("/nowhere"),
        series: Mapping[str, Sequence[Series]] | None = None,
        histograms: Mapping[str, tuple[Histogram, ...]] | None = None,
        environment: dict[str, Any] | None = None,
        environments: dict[str, dict[str, Any]] | None = None,
        **manifest: Any,
    ) -> None:
        self.runs = list(runs)
        self.path = path
        self.standing: Standing | None = None
        self._series = series or {}
        self._histograms = histograms or {}
        self._environment = environment or {}
        self._environments = environments or {}
        variants = list(dict.fromkeys(run.variant for run in runs))
        factors = list(dict.fromkeys(name for run in runs for name in run.factors))
        known: dict[str, Any] = {
            "name": "study",
            "origin": "run",
            "created_ns": 1_700_000_000_000_000_000,
            "iolab": "0",
            "variants": variants,
            "factors": factors,
            "baseline": variants[0] if variants else None,
        }
        self.manifest = Manifest(**{**known, **manifest})

    def metrics(self) -> list[str]:
        return list(dict.fromkeys(name for run in self.runs for name in run.observations))

    def series(self, run_id: str) -> Sequence[Series]:
        return self._series.get(run_id, ())

    def histograms(self, run_id: str) -> tuple[Histogram, ...]:
        return self._histograms.get(run_id, ())

    def step_runs(self) -> list[Run]:
        raise ResultsError("no run's load rises in steps")

    def window_runs(self) -> list[Run]:
        return window_runs(self.runs, self.series, self.manifest.baseline)

    def home(self, run: Run) -> Path:
        return self.path / run.id.rpartition("/")[0]

    def profiles(self) -> tuple[list[Profile], list[str]]:
        return read_profiles(self.path) if self.path.is_dir() else ([], [])

    def manifests(self) -> dict[str, Manifest]:
        return {"": self.manifest}

    def environments(self) -> dict[str, dict[str, Any]]:
        return self._environments or {"": self._environment}


def run(
    number: int,
    variant: str,
    factors: Mapping[str, Any],
    values: Mapping[str, float],
    *,
    block: int = 1,
    reasons: Iterable[Reason] = (),
    judged: bool = True,
    evidence: Path = Path("/nowhere/run"),
    **plan: Any,
) -> Run:
    """One run; `plan` goes into its RunPlan."""
    name = f"{number:04d}-00000000"
    observations = {
        metric: Observation(
            metric,
            value,
            UNITS.get(metric, ""),
            f"runs/{name}/fio.json",
            f"jobs[0].{metric}",
            value,
            UNITS.get(metric, ""),
        )
        for metric, value in values.items()
    }
    return Run(
        RunPlan(run=name, variant=variant, factors=factors, repetition=block, block=block, **plan),
        evidence,
        observations,
        Verdict.of(reasons, judged=judged),
        {"kernel": "6.1"},
        ("columns were guessed",),
    )


def sweep(
    change: float = 1.5,
    *,
    blocks: int = 6,
    noise: float = 0.01,
    loads: Sequence[int] = (1, 4, 16),
    variants: Sequence[str] = ("master", "project"),
    more: Mapping[str, Sequence[Any]] | None = None,
) -> list[Run]:
    """Every variant but the first is `change` times as fast at every load; noise is lognormal, from
    a fixed seed."""
    random = np.random.default_rng(1)
    name, levels = next(iter(more.items())) if more else ("", [None])
    runs: list[Run] = []
    for block in range(1, blocks + 1):
        for level in levels:
            for load in loads:
                for place, variant in enumerate(variants):
                    rate = (
                        100.0
                        * load**0.7
                        * (change if place else 1.0)
                        * float(np.exp(noise * random.standard_normal()))
                    )
                    factors = {"numjobs": load} | ({name: level} if name else {})
                    values = {
                        "write.iops": rate,
                        "write.bw": rate * 8192,
                        "write.lat.mean": load / rate,
                        "device.util": min(1.0, rate / 2000),
                    }
                    runs.append(
                        run(
                            len(runs) + 1,
                            variant,
                            factors,
                            values,
                            block=block,
                            jobs=load,
                            command=("fio", "job.fio"),
                            exit_code=0,
                            tools={"fio": "fio-3.33"},
                            extra={"job": "[global]\nrw=write\n"},
                        )
                    )
    return runs


def suspect(code: str = "stall", text: str = "moved nothing for 4 s from second 20") -> Reason:
    return Reason(code, Level.SUSPECT, text, {"start_seconds": 20.0, "longest_seconds": 4})


def invalid(code: str = "errors", text: str = "job 0 ended with error 28") -> Reason:
    return Reason(code, Level.INVALID, text)


def seconds(count: int = 30, *, devices: Sequence[str] = ("sda", "sdb")) -> list[Series]:
    """Series of a run with a stall from second 20 to 24 and a second of which nothing is known."""
    time = np.arange(1.0, count + 1)
    total = 1e6 * (1 + 0.1 * np.sin(time))
    total[20:24] = 0
    total[5] = np.nan
    found = [
        Series("device.write.bw", "B/s", time, total),
        Series("device.read.bw", "B/s", time, np.zeros(count)),
        Series("device.bw", "B/s", time, total),
        Series("device.util", "1", time, np.full(count, 0.5)),
    ]
    return found + [
        Series(f"device.write.bw[{name}]", "B/s", time, total / len(devices)) for name in devices
    ]
