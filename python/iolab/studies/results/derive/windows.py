# SPDX-License-Identifier: Apache-2.0
"""The windows that marks cut a run into, so that before and after an action can be compared within
the run itself."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from iolab.base.errors import FormatError
from iolab.base.metrics import of

from ..evidence.marks import FILE, Mark, read_marks
from ..evidence.model import Observation, Run, Series

FIRST = "start"
"""Name of the window before the first mark."""

ARM = "arm"
"""Factor that holds a run's variant, since the windows are the variants here."""

SHORTEST = 2
"""Seconds, in whole samples, that a window must have to be compared."""

_JITTER = 0.1
"""Seconds that readings may lack of it: they come a little early now and then."""

LATENCIES = ("lat", "clat", "slat")
"""Series of these are means over I/Os, and theirs are not means over seconds."""

_CUT_KINDS = ("action", "mark")


def window_runs(
    runs: Iterable[Run],
    series: Callable[[str], Sequence[Series]],
    baseline: str | None = None,
) -> list[Run]:
    """Each window of each marked run as a run of its own: its variant is the window, its values are
    means over its seconds, of latencies over its I/Os, of transaction groups over those that ended
    in it.

    Args:
        runs: runs of one study; those without marks or without a known measured window are left
        out. series: per-second series of a run by its name.
        baseline: the variant that comes first among the windows.

    A window goes from a mark to the next; only whole seconds inside it count, and those in which an
    action's command ran belong to none: the pool is in between two states. That holds for windows
    after the next mark too, while the command still runs; a window that ends before the command
    belongs to it as a whole and is left out. A command that runs for more than half of its own
    window is what that window is about (a scrub that is waited for), and its seconds count. Block,
    host, factors and verdict are the run's, so that windows of the same run are a pair; where
    several variants were run, theirs is the factor `arm`: the baseline, then the others by name.
    """
    listed = [run for run in runs if run.plan.window is not None]
    listed.sort(key=lambda run: (run.variant != baseline, run.variant))
    arms = len({run.variant for run in listed}) > 1
    runs_of_windows: list[Run] = []
    for run in listed:
        try:
            marks = [
                mark for mark in read_marks(run.evidence, run.plan.files) if mark.kind in _CUT_KINDS
            ]
        except FormatError:
            continue
        if marks:
            runs_of_windows += _windows(
                run, marks, {line.name: line for line in series(run.id)}, arms
            )
    return runs_of_windows


def _windows(
    run: Run, marks: Sequence[Mark], series: Mapping[str, Series], arms: bool
) -> Iterable[Run]:
    assert run.plan.window is not None
    start, end = run.plan.window
    cuts = [
        (FIRST, 0.0, 0.0),
        *((mark.label, (mark.time_ns - start) / 1e9, _took(mark)) for mark in marks),
        ("", (end - start) / 1e9, 0.0),
    ]
    busy = -math.inf
    for (label, begun, took), (_, before, _) in itertools.pairwise(cuts):
        after = max(begun + took, busy) if took <= (before - begun) / 2 else begun
        observations = _means(series, after, before) if busy < before else {}
        busy = max(busy, begun + took)
        if observations:
            factors = {**({ARM: run.variant} if arms else {}), **run.factors}
            plan = dataclasses.replace(
                run.plan, run=f"{run.id}/{label}", variant=label, factors=factors
            )
            span = (start + round(after * 1e9), start + round(before * 1e9))
            yield dataclasses.replace(run, plan=plan, observations=observations, window=span)


def _took(mark: Mark) -> float:
    """Seconds that an action's command ran; 0 where that isn't known."""
    seconds = mark.data.get("seconds")
    return float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < math.inf else 0.0


def _means(series: Mapping[str, Series], after: float, before: float) -> dict[str, Observation]:
    """Means over the time of the samples that lie wholly between two times; things that ended then
    count alike."""
    observations = {}
    for name, line in series.items():
        if "[" in name or name in ("load.bw", "device.bw"):
            continue
        steps = line.steps
        inside = (line.time - steps >= after - 1e-6) & (line.time <= before + 1e-6)
        is_used = inside & np.isfinite(line.values)
        things = line.reading is not None
        if (
            not is_used.any()
            or (before - after if things else steps[is_used].sum()) < SHORTEST - _JITTER
        ):
            continue
        span = f"{name}, seconds {after:.0f} to {before:.0f}"
        operation, _, kind = name.partition(".")
        if kind in LATENCIES:
            metric = of(f"{name}.mean", line.unit)
            value = _over_ios(line, series.get(f"{operation}.iops"), inside)
        else:
            metric, value = (
                of(name, line.unit),
                float(np.average(line.values[is_used], weights=None if things else steps[is_used])),
            )
        observations[metric.name] = Observation(
            metric.name, value, metric.unit or line.unit, FILE, span
        )
    return observations


def _over_ios(latency: Series, rate: Series | None, inside: NDArray[np.bool_]) -> float:
    """The mean over the window's I/Os: a second counts as often as I/Os ended in it, or once each
    where that isn't known."""
    inside = inside & np.isfinite(latency.values)
    weights = (
        np.ones(len(latency.time))
        if rate is None
        else np.interp(latency.time, rate.time, np.nan_to_num(rate.values))
    )
    weights = weights[inside] if weights[inside].sum() > 0 else np.ones(int(inside.sum()))
    return float(np.average(latency.values[inside], weights=weights))
