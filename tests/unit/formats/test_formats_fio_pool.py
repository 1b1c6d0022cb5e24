# SPDX-License-Identifier: Apache-2.0
"""Pooling of jobs: sums, moments of all I/Os together, percentiles from summed bins or none at all."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.base.errors import UsageError
from iolab.formats.core.tables import FioDirection, FioJob, Latency
from iolab.formats.fio.json_output import FioJson
from iolab.formats.fio.pool import percentiles_of_bins, pool_jobs, pool_latencies

DATA = Path(__file__).parents[2] / "data" / "formats"


def latency_of(
    values: list[float],
    bins: dict[int, int] | None = None,
    percentiles: dict[float, float] | None = None,
) -> Latency:
    return Latency(
        "lat_ns",
        1e-9,
        statistics.fmean(values),
        min(values),
        max(values),
        statistics.stdev(values) if len(values) > 1 else 0.0,
        len(values),
        percentiles or {},
        bins or {},
    )


def job_of(ios: int, latency: Latency | None, runtime: float = 10.0, **more: object) -> FioJob:
    direction = FioDirection(
        ios,
        ios * 4096,
        runtime,
        ios / runtime,
        ios * 4096 / runtime,
        "bw_bytes",
        ios * 4096 / runtime,
        "B/s",
        latencies={} if latency is None else {"lat": latency},
    )
    return replace(FioJob("load", 0, {"bs": "4k"}, {"write": direction}), **more)  # type: ignore[arg-type]


def test_fios_own_sum_of_reads_and_writes_is_what_pooling_gives() -> None:
    # unified_rw_reporting=both: fio adds up read and write of the very same run itself
    both = FioJson().read((DATA / "fio-3.33-both.json").read_bytes(), "both").jobs[0].directions
    parts = [(both[name].latencies["clat"], both[name].ios) for name in ("read", "write")]
    pooled, truth = pool_latencies(parts), both["mixed"].latencies["clat"]
    assert pooled.mean == pytest.approx(truth.mean, rel=1e-9)
    assert pooled.stddev == pytest.approx(truth.stddev, rel=1e-6)
    assert (pooled.minimum, pooled.maximum, pooled.count) == (
        truth.minimum,
        truth.maximum,
        truth.count,
    )
    assert pooled.bins == truth.bins
    assert pooled.percentiles == pytest.approx(truth.percentiles, rel=1e-12)


values = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30)


@settings(deadline=None)
@given(st.lists(values, min_size=1, max_size=6))
def test_moments_are_those_of_all_ios_together(jobs: list[list[float]]) -> None:
    pooled = pool_latencies([(latency_of(one), len(one)) for one in jobs])
    together = [value for one in jobs for value in one]
    assert pooled.mean == pytest.approx(statistics.fmean(together))
    assert (pooled.minimum, pooled.maximum, pooled.count) == (
        min(together),
        max(together),
        len(together),
    )
    expected = statistics.stdev(together) if len(together) > 1 else 0.0
    assert pooled.stddev == pytest.approx(expected, rel=1e-6, abs=1e-9)


counts = st.dictionaries(st.integers(0, 2**40), st.integers(1, 10**6), min_size=1, max_size=40)


@settings(deadline=None)
@given(st.lists(counts, min_size=2, max_size=5))
def test_no_count_is_lost_and_ranks_lie_where_they_should(parts: list[dict[int, int]]) -> None:
    latencies = [
        Latency(
            "clat_ns", 1e-9, 1.0, 0.5, 2.0, 0.1, sum(bins.values()), {50.0: 1.0, 99.9: 2.0}, bins
        )
        for bins in parts
    ]
    pooled = pool_latencies([(latency, latency.count or 0) for latency in latencies])
    total = sum(sum(bins.values()) for bins in parts)
    assert sum(pooled.bins.values()) == total
    assert set(pooled.percentiles) == {50.0, 99.9}
    for percent, value in pooled.percentiles.items():
        key = round(value * 1e9)
        # bins of one bucket are one to the grid: its width is at most 1/64 of its values
        at_or_below = sum(count for place, count in pooled.bins.items() if place <= key)
        below = sum(count for place, count in pooled.bins.items() if place < key * (1 - 1 / 63))
        rank = math.ceil(percent / 100 * total)
        assert below < rank <= at_or_below


def test_rates_bytes_and_errors_are_sums_runtime_the_longest() -> None:
    pooled = pool_jobs(
        [job_of(100, None, 10.0), job_of(300, None, 20.0, error=28, total_errors=3, user_cpu=0.3)]
    )
    write = pooled.directions["write"]
    assert (write.ios, write.size_bytes, write.runtime) == (400, 400 * 4096, 20.0)
    assert write.iops == pytest.approx(10 + 15), (
        "the straggler's runtime does not thin out the other job"
    )
    assert write.bw == pytest.approx(25 * 4096)
    assert (pooled.error, pooled.total_errors) == (28, 3)
    assert pooled.user_cpu == pytest.approx(0.2), "weighted by runtime"


def test_percentiles_are_never_made_up() -> None:
    without = latency_of([1.0, 2.0], percentiles={99.0: 2.0})
    with_bins = latency_of([1.0, 2.0], bins={10**9: 1, 2 * 10**9: 1}, percentiles={99.0: 2.0})
    pooled = (
        pool_jobs([job_of(2, with_bins), job_of(2, without)]).directions["write"].latencies["lat"]
    )
    assert pooled.percentiles == {}
    assert pooled.bins == {}
    assert pooled.mean == pytest.approx(1.5)


def test_a_latency_that_one_job_lacks_is_absent() -> None:
    assert (
        pool_jobs([job_of(2, latency_of([1.0, 2.0])), job_of(2, None)])
        .directions["write"]
        .latencies
        == {}
    )


def test_a_single_job_stays_as_it_is_and_none_is_refused() -> None:
    one = job_of(2, latency_of([1.0, 2.0], percentiles={99.0: 2.0}))
    assert pool_jobs([one]) is one
    with pytest.raises(UsageError, match="no job"):
        pool_jobs([])


def test_an_operation_of_some_jobs_is_the_sum_of_those() -> None:
    reader = replace(
        job_of(5, None), directions={"read": job_of(5, None).directions["write"]}, name="reader"
    )
    pooled = pool_jobs([job_of(100, None), reader])
    assert (pooled.directions["write"].ios, pooled.directions["read"].ios) == (100, 5)
    assert pooled.name == "load+reader"


def test_options_that_differ_are_left_out() -> None:
    assert pool_jobs([job_of(1, None), job_of(1, None, options={"bs": "8k"})]).options == {}


def test_percentiles_of_one_bin_and_of_none() -> None:
    assert percentiles_of_bins({5000: 3}, [1.0, 50.0, 100.0]) == pytest.approx(
        {1.0: 5e-6, 50.0: 5e-6, 100.0: 5e-6}
    )
    assert percentiles_of_bins({}, [50.0]) == {}
