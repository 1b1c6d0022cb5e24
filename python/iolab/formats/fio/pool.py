# SPDX-License-Identifier: Apache-2.0
"""Several jobs of one fio run as the single job that group_reporting would have written.

Rates are summed job by job, so that a straggler's longer runtime doesn't thin out the others' I/Os
(fio divides the sum of I/Os by the longest runtime). Percentiles can't be averaged: they come from
summed bins, or there are none.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from iolab import _core
from iolab.base.errors import UsageError

from ..core.tables import FioDirection, FioJob, FioOutput, Latency

_DEFAULT_PERCENTS = (
    1.0,
    5.0,
    10.0,
    20.0,
    30.0,
    40.0,
    50.0,
    60.0,
    70.0,
    80.0,
    90.0,
    95.0,
    99.0,
    99.5,
    99.9,
    99.95,
    99.99,
)
"""fio's own list (fio(1), percentile_list)."""

_T = TypeVar("_T")


def pool_jobs(jobs: Iterable[FioJob]) -> FioJob:
    """All jobs as one.

    iops, bandwidth, I/Os and bytes are sums, runtime the longest; latency's mean and standard
    deviation are those of all I/Os together, minimum and maximum the extremes, bins the sum;
    percentiles are read from the summed bins as fio reads them, and absent where a job has no bins.
    A latency that one of the jobs lacks is absent. CPU is the mean over threads, weighted by
    runtime. Options are those that all jobs share.

    A single job comes back as it is. Raises UsageError when there is none.
    """
    listed = tuple(jobs)
    if not listed:
        raise UsageError("there is no job to pool")
    if len(listed) == 1:
        return listed[0]
    operations = dict.fromkeys(operation for job in listed for operation in job.directions)
    starts = [job.start_ns for job in listed if job.start_ns is not None]
    return FioJob(
        name=_common_value([job.name for job in listed])
        or "+".join(dict.fromkeys(job.name for job in listed)),
        error=next((job.error for job in listed if job.error), 0),
        options=_shared_options([job.options for job in listed]),
        directions={
            operation: _pool_directions(
                [job.directions[operation] for job in listed if operation in job.directions]
            )
            for operation in operations
        },
        total_errors=sum(job.total_errors for job in listed),
        user_cpu=_weighted_mean(
            [job.user_cpu for job in listed], [_runtime(job) for job in listed]
        ),
        system_cpu=_weighted_mean(
            [job.system_cpu for job in listed], [_runtime(job) for job in listed]
        ),
        elapsed=max((job.elapsed for job in listed if job.elapsed is not None), default=None),
        start_ns=min(starts, default=None),
        hostname=_common_value([job.hostname for job in listed]),
        group=_common_value([job.group for job in listed]),
    )


def join_processes(outputs: Sequence[FioOutput]) -> FioOutput:
    """The results of fio processes that ran at once, as one result with the jobs of all.

    Raises UsageError when there is none.
    """
    if not outputs:
        raise UsageError("there is no result to join")
    ends = [output.end_ns for output in outputs if output.end_ns is not None]
    return replace(
        outputs[0],
        end_ns=max(ends, default=None),
        jobs=tuple(
            replace(job, process=process)
            for process, output in enumerate(outputs)
            for job in output.jobs
        ),
        all_clients=None,
        global_options=_shared_options([output.global_options for output in outputs]),
        assumptions=tuple(dict.fromkeys(text for output in outputs for text in output.assumptions)),
    )


def join_clients(outputs: Mapping[str, FioOutput]) -> FioOutput:
    """The results of fio on several clients, by name, as one result with the jobs of all.

    Each job's host is its client. The command by which it waited for the common start is left out
    of its options: it differs from run to run. Raises UsageError when there is none.
    """
    named = [
        replace(output, jobs=tuple(_of_client(job, name) for job in output.jobs))
        for name, output in outputs.items()
    ]
    joined = join_processes(named)
    return replace(joined, jobs=tuple(replace(job, process=0) for job in joined.jobs))


def _of_client(job: FioJob, name: str) -> FioJob:
    options = {key: value for key, value in job.options.items() if key != "exec_prerun"}
    return replace(job, hostname=name, options=options)


def pool_latencies(latencies: Sequence[tuple[Latency, int]]) -> Latency:
    """Latencies, each with its number of I/Os, as one; see `pool_jobs`."""
    first = latencies[0][0]
    if len(latencies) == 1:
        return first
    total = sum(count for _, count in latencies)
    mean = sum(latency.mean * count for latency, count in latencies) / total
    # fio's is the sample's standard deviation: squares within the jobs, and between their means
    # (Chan et al. 1979)
    squares = sum(
        latency.stddev**2 * max(count - 1, 0) + count * (latency.mean - mean) ** 2
        for latency, count in latencies
    )
    complete = all(latency.bins for latency, _ in latencies)
    bins = _sum_bins(latency.bins for latency, _ in latencies) if complete else {}
    percents = (
        sorted({percent for latency, _ in latencies for percent in latency.percentiles})
        or _DEFAULT_PERCENTS
    )
    counts = [latency.count for latency, _ in latencies]
    return Latency(
        source_field=first.source_field,
        source_scale=first.source_scale,
        mean=mean,
        minimum=min(latency.minimum for latency, _ in latencies),
        maximum=max(latency.maximum for latency, _ in latencies),
        stddev=math.sqrt(squares / (total - 1)) if total > 1 else 0.0,
        count=sum(count for count in counts if count is not None) if None not in counts else None,
        percentiles=percentiles_of_bins(bins, percents) if bins else {},
        bins=bins,
    )


def percentiles_of_bins(bins: Mapping[int, int], percents: Iterable[float]) -> dict[float, float]:
    """Per cent to seconds, from bins in nanoseconds; each is the bin that holds the I/O of that
    rank, as fio prints it."""
    valid_percents = [percent for percent in percents if 0 <= percent <= 100]
    indices, counts = _core.take_over_fio_bins(sorted(bins.items()))
    tops = _core.quantiles(
        indices, counts, [percent / 100 for percent in valid_percents], _core.fio_bits()
    )
    keys = sorted(bins)
    # the core answers with the end of a bucket; fio names a bucket by the value inside it that keys
    # its bin
    return {
        percent: keys[bisect_right(keys, top) - 1] * 1e-9
        for percent, top in zip(valid_percents, tops, strict=True)
        if top is not None
    }


def _pool_directions(parts: Sequence[FioDirection]) -> FioDirection:
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    alike = all((part.bw_field, part.bw_unit) == (first.bw_field, first.bw_unit) for part in parts)
    bw = sum(part.bw for part in parts)
    kinds = [kind for kind in first.latencies if all(kind in part.latencies for part in parts)]
    return FioDirection(
        ios=sum(part.ios for part in parts),
        size_bytes=sum(part.size_bytes for part in parts),
        runtime=max(part.runtime for part in parts),
        iops=sum(part.iops for part in parts),
        bw=bw,
        bw_field=first.bw_field if alike else "",
        bw_source=sum(part.bw_source for part in parts) if alike else bw,
        bw_unit=first.bw_unit if alike else "B/s",
        short_ios=sum(part.short_ios for part in parts),
        drop_ios=sum(part.drop_ios for part in parts),
        latencies={
            kind: pool_latencies(
                [(part.latencies[kind], _weight(part, part.latencies[kind])) for part in parts]
            )
            for kind in kinds
        },
    )


def _weight(direction: FioDirection, latency: Latency) -> int:
    return latency.count if latency.count else max(direction.ios, 1)


def _sum_bins(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for part in parts:
        for key, count in part.items():
            total[key] = total.get(key, 0) + count
    return dict(sorted(total.items()))


def _runtime(job: FioJob) -> float:
    return max((direction.runtime for direction in job.directions.values()), default=0.0)


def _weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    total = sum(weights)
    if total <= 0:
        return sum(values) / len(values)
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / total


def _common_value(values: Sequence[_T]) -> _T | None:
    return values[0] if all(value == values[0] for value in values) else None


def _shared_options(options: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {
        key: value
        for key, value in options[0].items()
        if all(other.get(key) == value for other in options)
    }
