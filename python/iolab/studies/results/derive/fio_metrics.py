# SPDX-License-Identifier: Apache-2.0
"""Observations and histograms of what fio measured."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

import numpy as np

from iolab import _core
from iolab.base.metrics import SUMMARIES, percentile_name
from iolab.formats.core.tables import FioDirection, Latency

from ..evidence.files import PLAN_FILE
from ..evidence.model import PROGRAM, Histogram, Observation
from ..facts.concurrency import concurrency_of, in_flight
from ..facts.run_facts import RunFacts

_MIXES = {
    "rw": ("read", "write"),
    "readwrite": ("read", "write"),
    "randrw": ("read", "write"),
    "trimwrite": ("trim", "write"),
    "randtrimwrite": ("trim", "write"),
}
"""Loads of several operations, by fio's `rw`."""
_EXPECTED = 20
"""I/Os of an operation that a run must have been expected to do."""
_SUMMARY_FIELDS = {"mean": "mean", "min": "minimum", "max": "maximum", "stddev": "stddev"}


def observations(facts: RunFacts) -> Iterator[Observation]:
    """Rates, sizes and latencies of every operation that ran, pooled over jobs, each with the field
    it came from.

    Where the load ended by its size, `<operation>.time` too: from the load's start until its last
    job was through, fio's own runtime, which is in whole milliseconds, rounded up. The time of a
    run that was to last so long says nothing, and is none. Of a program there is `time` alone.
    """
    if PROGRAM in facts.plan.extra and facts.runtime > 0:
        yield Observation("time", facts.runtime, "s", PLAN_FILE, "window")
    if facts.fio is None or facts.pooled is None:
        return
    several = len(facts.fio.jobs) > 1
    first = facts.entries[0] if facts.entries else 0
    prefix = (
        f"sum of {len(facts.fio.jobs)} jobs{f' from jobs[{first}]' if first else ''}"
        f"{f' of {facts.processes} processes' if facts.processes else ''}"
        f"{f' of {len(facts.clients)} clients' if facts.clients else ''}: "
        if several
        else f"jobs[{first}]."
    )
    for name, direction in facts.directions.items():
        yield from _direction(name, direction, facts.fio_file, prefix, several)
        if facts.ended_by_size and name != "sync" and direction.runtime > 0:
            field = (
                f"{f'longest of {len(facts.fio.jobs)} jobs: ' if several else prefix}{name}.runtime"
            )
            seconds = direction.runtime
            if name == "read" and facts.pass_seconds:
                seconds = fmean((*facts.pass_seconds, seconds))
                field = f"mean of {len(facts.pass_seconds) + 1} passes: {field}"
            yield Observation(
                f"{name}.time", seconds, "s", facts.fio_file, field, seconds * 1e3, "ms"
            )
    for name in idle_operations(facts):
        for metric, unit in (("ios", ""), ("iops", "1/s"), ("bw", "B/s"), ("bytes", "B")):
            yield Observation(
                f"{name}.{metric}",
                0.0,
                unit,
                facts.fio_file,
                f"{prefix}{name}.total_ios",
                0.0,
                unit,
            )
    file = facts.fio_file
    yield Observation(
        "cpu.usr",
        facts.pooled.user_cpu,
        "1",
        file,
        f"{prefix}usr_cpu",
        100 * facts.pooled.user_cpu,
        "%",
    )
    yield Observation(
        "cpu.sys",
        facts.pooled.system_cpu,
        "1",
        file,
        f"{prefix}sys_cpu",
        100 * facts.pooled.system_cpu,
        "%",
    )
    if facts.runtime > 0:
        yield Observation(
            "runtime", facts.runtime, "s", file, f"{prefix}runtime", facts.runtime * 1e3, "ms"
        )
    if facts.offered_iops is not None:
        yield Observation("offered.iops", facts.offered_iops, "1/s", file, "rate_iops x numjobs")
    occupancy = in_flight(facts)
    concurrency = concurrency_of(facts).value
    if occupancy is not None and concurrency:
        yield Observation(
            "littles_law",
            occupancy[0] / concurrency,
            "",
            file,
            "iops x mean latency / (jobs x depth)",
        )


def idle_operations(facts: RunFacts) -> list[str]:
    """Operations of the load of which no I/O was done: their throughput is zero, which is a value.

    By fio's echo of rw and of the mix. At least 20 I/Os of the operation were to be expected, so that
    a short run is not the reason (probability below 1e-8). A limited rate decides the mix itself.
    """
    done = sum(direction.ios for name, direction in facts.directions.items() if name != "sync")
    expected: dict[str, float] = {}
    for job in facts.fio.jobs if facts.fio is not None else ():
        kind = job.options.get("rw", job.options.get("readwrite", "")).partition(":")[0]
        if any(name.startswith("rate") for name in job.options):
            return []
        names = _MIXES.get(kind, ())
        for name in names:
            share = 1 / len(names)
            mix = job.options.get(f"rwmix{name}") or job.options.get(
                f"rwmix{'write' if name == 'read' else 'read'}"
            )
            if kind not in ("trimwrite", "randtrimwrite") and mix is not None:
                percent = float(mix) if mix.isdecimal() else 50.0
                share = (percent if f"rwmix{name}" in job.options else 100 - percent) / 100
            expected[name] = max(expected.get(name, 0.0), share)
    return [
        name
        for name, share in expected.items()
        if name not in facts.directions and share * done >= _EXPECTED
    ]


def _direction(
    name: str, direction: FioDirection, file: str, prefix: str, several: bool
) -> Iterator[Observation]:
    def make_observation(
        metric: str, value: float, unit: str, field: str, source: float, source_unit: str
    ) -> Observation:
        return Observation(
            f"{name}.{metric}", value, unit, file, f"{prefix}{name}.{field}", source, source_unit
        )

    yield make_observation("ios", direction.ios, "", "total_ios", direction.ios, "")
    if name != "sync":
        yield make_observation("iops", direction.iops, "1/s", "iops", direction.iops, "1/s")
        yield make_observation(
            "bw", direction.bw, "B/s", direction.bw_field, direction.bw_source, direction.bw_unit
        )
        yield make_observation(
            "bytes", direction.size_bytes, "B", "io_bytes", direction.size_bytes, "B"
        )
    for kind, latency in direction.latencies.items():
        unit = {1e-9: "ns", 1e-6: "us"}.get(latency.source_scale, "s")
        for summary in SUMMARIES:
            value = getattr(latency, _SUMMARY_FIELDS[summary])
            yield make_observation(
                f"{kind}.{summary}",
                value,
                "s",
                f"{latency.source_field}.{summary}",
                value / latency.source_scale,
                unit,
            )
        how = "percentile of summed bins" if several else "percentile"
        for percent, value in latency.percentiles.items():
            yield make_observation(
                f"{kind}.{percentile_name(percent)}",
                value,
                "s",
                f"{latency.source_field}.{how}.{percent:.6f}",
                value / latency.source_scale,
                unit,
            )


def histograms(facts: RunFacts) -> Iterator[Histogram]:
    """Latency counts of every operation on fio's own grid, where the result is json+."""
    for name, direction in facts.directions.items():
        for kind, latency in direction.latencies.items():
            histogram = _histogram(f"{name}.{kind}", latency)
            if histogram is not None:
                yield histogram


def _histogram(name: str, latency: Latency) -> Histogram | None:
    if not latency.bins:
        return None
    indices, counts = _core.take_over_fio_bins(list(latency.bins.items()))
    return Histogram(
        name, _core.fio_bits(), np.asarray(indices, np.uint32), np.asarray(counts, np.uint64)
    )
