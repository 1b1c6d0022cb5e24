# SPDX-License-Identifier: Apache-2.0
"""A load that rises within one run, step by step: what each step measured, as pseudo-runs that
curves can be drawn of.

A step's section of the job is either alone (a rate, a depth: one section takes over from the
other), and then fio's own result of that section is the step's; or it adds to those before it
(jobs, devices), and then the steps are separated in the sections' logs by time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from iolab.base.errors import FormatError
from iolab.base.verdict import Verdict
from iolab.formats.core.tables import FioDirection, FioJob, FioLogTable, FioOutput, Latency
from iolab.formats.detect import detect
from iolab.formats.fio.json_output import FioJson
from iolab.formats.fio.log import FioLog
from iolab.formats.fio.pool import pool_jobs
from iolab.formats.fio.seconds import OPERATION_NAMES, overlaps, rates_between

from ..evidence.files import measured_files, read_file
from ..evidence.marks import Mark, read_marks
from ..evidence.model import Factors, Observation, Run, RunPlan
from ..facts.run_facts import RunFacts
from ..gates.base import Gate
from ..gates.littles_law import LittlesLawGate
from ..gates.offered_rate import OfferedRateGate
from . import fio_metrics

IN_LOGS = (".iops", ".bw", ".lat.mean", "littles_law")
"""Metrics of a step that is derived from its logs: they have no distribution."""

SETTLING = 0.5
"""Seconds at the beginning of a step that are left out where its logs are used: until fio has
started the new jobs."""

_LOG = re.compile(r"-(step\d+)_(iops|bw|lat)\.log$")
_OF_THE_WHOLE = {"steps", "sections", "concurrency"}

Logs = Mapping[tuple[str, str], FioLogTable]
"""(section, `iops` or `bw` or `lat`) to its log."""


@dataclass(frozen=True)
class Step:
    """One step of a run.

    Attributes:
        number: from 1; levels: the factor that rises, and its level; start, end: seconds since the
        window's start. observations: metric to its value within the step; facts: what gates ask, of
        this step alone. exact: whether these are fio's own results of the step, and not read from
        its logs.
    """

    number: int
    levels: Factors
    start: float
    end: float
    observations: Mapping[str, Observation]
    facts: RunFacts
    exact: bool

    def value(self, metric: str) -> float | None:
        """The step's value of a metric in base units, or None where it wasn't observed."""
        observation = self.observations.get(metric)
        return None if observation is None else observation.value


def pool_run(jobs: Sequence[FioJob], plan: RunPlan) -> FioJob:
    """All jobs of a run as one. Where the load rises, sections cover parts of the window: rates are
    what was done over all of it."""
    pooled = pool_jobs(jobs)
    planned = plan.extra.get("steps")
    if not isinstance(planned, list):
        return pooled
    lasted: dict[str, float] = {}
    for job in jobs:
        runtime = max((direction.runtime for direction in job.directions.values()), default=0.0)
        lasted[job.name] = max(lasted.get(job.name, 0.0), runtime)
    seconds = max(lasted.values()) if _goes_on(planned, 0) else sum(lasted.values())
    if seconds <= 0:
        return pooled
    return replace(
        pooled,
        directions={
            name: replace(
                direction,
                runtime=seconds,
                iops=direction.ios / seconds,
                bw=direction.size_bytes / seconds,
                bw_field="io_bytes",
                bw_source=direction.size_bytes / seconds,
                bw_unit="B/s",
            )
            for name, direction in pooled.directions.items()
        },
    )


def steps_of(
    plan: RunPlan, fio: FioOutput | None, fio_file: str, logs: Logs, marks: Sequence[Mark] = ()
) -> tuple[Step, ...]:
    """What each step of a run measured; none for a run without rising load, or without
    result.

    Args:
        plan: its `run.json`, with the planned steps in `extra["steps"]`.
        fio, fio_file: its result, with an entry or more per section, and the file's name.
        marks: the run's; those of kind `step` say when each began.
    """
    planned = plan.extra.get("steps")
    if not isinstance(planned, list) or fio is None:
        return ()
    begins = (
        [(mark.time_ns - plan.window[0]) / 1e9 for mark in marks if mark.kind == "step"]
        if plan.window
        else []
    )
    step_list = []
    for place, data in enumerate(planned):
        start = begins[place] if len(begins) == len(planned) else float(data["start"])
        end = start + float(data["end"]) - float(data["start"])
        sections = [str(name) for name in data["sections"]]
        facts = _facts(plan, fio, fio_file, sections, end - start)
        if facts is None:
            continue
        exact = len(sections) == 1 and not _goes_on(planned, place)
        if exact:
            values = list(fio_metrics.observations(facts))
        else:
            times = StepTimes(start + min(SETTLING, (end - start) / 4), end, plan.window)
            facts = replace(
                facts, pooled=pooled_from_logs(times, sections, logs), is_over_time=True
            )
            values = [
                replace(
                    observation,
                    source_file=f"fio-step*_*.log ({len(sections)} sections)",
                    source_field="mean over the step",
                    source_value=None,
                    source_unit="",
                )
                for observation in fio_metrics.observations(facts)
                if observation.metric.endswith(IN_LOGS)
            ]
        step_list.append(
            Step(
                int(data["number"]),
                dict(data["levels"]),
                start,
                end,
                {value.metric: value for value in values},
                facts,
                exact,
            )
        )
    return tuple(step_list)


def read_steps(run: Run) -> tuple[Step, ...]:
    """`steps_of` a run from its evidence. A damaged log costs the steps that need it; the run's
    verdict has said so."""
    if not run.plan.extra.get("steps") or not run.evidence.is_dir():
        return ()
    fio: FioOutput | None = None
    fio_file = ""
    logs: dict[tuple[str, str], FioLogTable] = {}
    for path in measured_files(run.evidence):
        match = _LOG.search(path.name)
        try:
            data = read_file(run.evidence, path.name, run.plan.files)
            if match:
                logs[match[1], match[2]] = FioLog().read(data, path.name)
            elif fio is None and detect(data, path.name) == FioJson.name:
                fio, fio_file = FioJson().read(data, path.name), path.name
        except FormatError:
            continue
    try:
        marks = read_marks(run.evidence, run.plan.files)
    except FormatError:
        marks = ()
    return steps_of(run.plan, fio, fio_file, logs, marks)


def step_runs(run: Run, steps: Sequence[Step]) -> list[Run]:
    """Each step as a run of its own: its level is a factor's, block and repetition are the run's.

    `compare.curves.curves` over the step runs of all runs draws throughput against latency and
    finds the knee per variant. The verdict is the run's; an offered rate not reached is judged
    again for each step, and so is Little's law where fio's own result is the step's (logs are too
    coarse for it).
    """
    runs = []
    for step in steps:
        plan = step.facts.plan
        gates: list[Gate] = [OfferedRateGate(), *([LittlesLawGate()] if step.exact else [])]
        reasons = [reason for gate in gates for reason in gate.judge(step.facts)]
        kept = [
            reason
            for reason in run.verdict.reasons
            if reason.code not in ("saturated", "time-outside-io")
        ]
        window = None
        if run.plan.window is not None:
            window = (
                run.plan.window[0] + round(step.start * 1e9),
                run.plan.window[0] + round(step.end * 1e9),
            )
        runs.append(
            Run(
                replace(
                    plan,
                    run=f"{run.id}/step{step.number}",
                    factors={**run.factors, **step.levels},
                    window=window,
                    offered_iops=step.facts.offered_iops,
                    jobs=step.facts.jobs,
                ),
                run.evidence,
                step.observations,
                Verdict.of([*kept, *reasons]),
                run.environment,
                run.assumptions,
                run.options,
                window or run.window,
                run.boot,
            )
        )
    return runs


def _goes_on(planned: Sequence[Mapping[str, Any]], place: int) -> bool:
    """Whether the next step's load includes this one's sections: then fio's result of them covers
    more than the step."""
    if place + 1 == len(planned):
        return len(planned[place]["sections"]) > 1
    return planned[place]["sections"][0] in planned[place + 1]["sections"]


def _facts(
    plan: RunPlan, fio: FioOutput, fio_file: str, sections: Sequence[str], seconds: float
) -> RunFacts | None:
    """The step as if it were a run: the entries of its sections, and a plan without the whole run's
    numbers."""
    jobs = tuple(job for job in fio.jobs if job.name in sections)
    if {job.name for job in jobs} != set(sections):
        return None
    extra = {key: value for key, value in plan.extra.items() if key not in _OF_THE_WHOLE}
    single = RunFacts(
        replace(plan, jobs=None, depth=None, offered_iops=None, runtime=seconds, extra=extra)
    )
    parts = [
        replace(single, fio=replace(fio, jobs=tuple(job for job in jobs if job.name == name)))
        for name in sections
    ]
    counts = [_count(part) for part in parts]
    rates = [_offered_iops(part, count) for part, count in zip(parts, counts, strict=True)]
    depths = [part.depth for part in parts]
    step = replace(
        plan,
        jobs=sum(counts),
        depth=max(depths),
        runtime=seconds,
        offered_iops=sum(rates) or None,
        extra=extra,
    )
    return RunFacts(step, replace(fio, jobs=jobs), fio_file, pool_jobs(jobs))


def _count(part: RunFacts) -> int:
    """Jobs of one section: its echo, or its entries where it reports each job separately."""
    assert part.fio is not None
    echoed = part.options.get("numjobs", "")
    return int(echoed) if echoed.isdigit() else len(part.fio.jobs)


def _offered_iops(part: RunFacts, count: int) -> float:
    assert part.fio is not None
    part_of_jobs = replace(
        part, plan=replace(part.plan, jobs=count), pooled=pool_jobs(part.fio.jobs)
    )
    return part_of_jobs.offered_iops or 0.0


# One step of a load that adds to what runs: its rates and latency from the logs of the sections
# that take part in it.

_NANOSECOND = 1e-9
_SINCE_EPOCH = 1e8
"""Seconds; a later time of a log is the epoch's."""


@dataclass(frozen=True)
class StepTimes:
    """Seconds [begin, end] since the start of the run's window, as far as they count, and the
    window's realtime nanoseconds."""

    begin: float
    end: float
    window: tuple[int, int] | None

    def on_clock_of(self, table: FioLogTable) -> tuple[float, float] | None:
        """The same on a log's own clock, or None where it counts from its job's start: sections
        start at different times."""
        if self.window is None or not len(table.time) or table.time[0] < _SINCE_EPOCH:
            return None
        origin = self.window[0] / 1e9
        return self.begin + origin, self.end + origin


def pooled_from_logs(
    times: StepTimes, sections: Sequence[str], logs: Mapping[tuple[str, str], FioLogTable]
) -> FioJob:
    """Rate, bandwidth and mean latency of every operation, summed over the sections, as one job;
    nothing where a section has no log of the step.

    Latency is the mean over I/Os: a window's mean counts as often as I/Os ended in it, by the log
    of rates. What logs don't have (extremes, distribution) is zero or missing.
    """
    seconds = times.end - times.begin
    rates = {section: _rates(times, logs.get((section, "iops")), "iops") for section in sections}
    directions: dict[str, FioDirection] = {}
    for operation in OPERATION_NAMES[:3] if all(rates.values()) else ():
        own = {
            section: rates_of_section.get(operation, 0.0)
            for section, rates_of_section in rates.items()
        }
        total = sum(own.values())
        if total <= 0:
            continue
        bw = sum(
            _rates(times, logs.get((section, "bw")), "bw").get(operation, 0.0)
            for section in sections
        )
        delay = _latency(times, operation, own, logs)
        latencies = (
            {} if delay is None else {"lat": Latency("lat_ns", _NANOSECOND, delay, 0.0, 0.0, 0.0)}
        )
        directions[operation] = FioDirection(
            round(total * seconds),
            round(bw * seconds),
            seconds,
            total,
            bw,
            "bw",
            bw / 1024,
            "KiB/s",
            latencies=latencies,
        )
    return FioJob("+".join(sections), 0, {}, directions)


def _rates(times: StepTimes, table: FioLogTable | None, kind: str) -> dict[str, float]:
    span = None if table is None else times.on_clock_of(table)
    if table is None or span is None:
        return {}
    return rates_between([table], "bw" if kind == "bw" else "iops", *span)


def _latency(
    times: StepTimes,
    operation: str,
    rates: Mapping[str, float],
    logs: Mapping[tuple[str, str], FioLogTable],
) -> float | None:
    """Seconds, weighted by I/Os over the sections; None where a section that did I/O has no log of
    latency."""
    waited = 0.0
    for section, rate in rates.items():
        if rate <= 0:
            continue
        delay, count = logs.get((section, "lat")), logs.get((section, "iops"))
        span = None if delay is None else times.on_clock_of(delay)
        if delay is None or count is None or span is None:
            return None
        number = OPERATION_NAMES.index(operation)
        inside = overlaps(delay, *span)
        rows, counted = (delay.operation == number) & (inside > 0), count.operation == number
        if not rows.any() or not counted.any():
            return None
        order = np.argsort(count.time[counted], kind="stable")
        weights = inside[rows] * np.interp(
            delay.time[rows], count.time[counted][order], count.value[counted][order]
        )
        if weights.sum() <= 0:
            return None
        waited += rate * float(np.average(delay.value[rows], weights=weights)) * _NANOSECOND
    total = sum(rates.values())
    return waited / total if total > 0 else None
