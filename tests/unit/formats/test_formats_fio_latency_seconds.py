# SPDX-License-Identifier: Apache-2.0
"""Latency per second over all jobs: each job counts as often as it did I/Os."""

from __future__ import annotations

import numpy as np
import pytest

from iolab.base.errors import FormatError
from iolab.formats.core.tables import FioLogTable
from iolab.formats.fio.log import FioLog
from iolab.formats.fio.seconds import latency_per_second
from iolab.studies.results.facts.load_series import load_series

EPOCH = 1_700_000_000_000


def table(
    rows: list[tuple[int, int]], *, block: int = 0, operation: int = 1, name: str = "fio_lat.log"
) -> FioLogTable:
    text = "".join(f"{EPOCH + at}, {value}, {operation}, {block}, 0\n" for at, value in rows)
    return FioLog().read(text.encode(), name)


def test_one_job_is_as_its_log_says() -> None:
    found = latency_per_second([(table([(1000, 400), (2000, 500), (3000, 600)]), None)])
    assert found.rates["write"].tolist() == pytest.approx([400, 500, 600])
    assert found.origin == EPOCH / 1000


def test_jobs_count_by_their_ios() -> None:
    latencies = table(
        [(1000, 100), (2000, 100), (1002, 900), (2002, 900)]
    )  # per_job_logs=0: one job after the other
    rates = table([(1000, 300), (2000, 700), (1001, 100), (2001, 100)], name="fio_iops.log")
    found = latency_per_second([(latencies, rates)]).rates["write"]
    assert found.tolist() == pytest.approx(
        [(300 * 100 + 100 * 900) / 400, (700 * 100 + 100 * 900) / 800], rel=5e-3
    )


def test_jobs_count_alike_where_their_rates_are_not_known() -> None:
    latencies = table([(1000, 100), (2000, 100), (1000, 900), (2000, 900)])
    for rates in (None, table([(1000, 300), (2000, 300)], name="fio_iops.log")):
        assert latency_per_second([(latencies, rates)]).rates["write"].tolist() == pytest.approx(
            [500, 500]
        )


def test_a_second_without_io_is_unknown_not_zero() -> None:
    found = latency_per_second(
        [(table([(1000, 100), (2000, 100), (5000, 100), (6000, 100)]), None)]
    ).rates["write"]
    assert np.isnan(found).tolist() == [False, False, True, True, False, False]


def test_single_ios_are_averaged() -> None:
    found = latency_per_second(
        [(table([(100, 10), (200, 30), (1150, 60), (2090, 80)], block=4096), None)]
    )
    assert found.rates["write"].tolist() == pytest.approx([20, 70])


def test_operations_stay_apart() -> None:
    text = "".join(
        f"{EPOCH + 1000 * k}, {100 + 400 * op}, {op}, 0, 0\n" for k in (1, 2) for op in (0, 1)
    )
    found = latency_per_second([(FioLog().read(text.encode(), "x_lat.log"), None)])
    assert {name: values.tolist() for name, values in found.rates.items()} == {
        "read": [100, 100],
        "write": [500, 500],
    }


def test_logs_of_another_year_are_refused() -> None:
    with pytest.raises(FormatError, match="span"):
        latency_per_second([(table([(0, 1), (10**11, 1)]), None)])
    assert latency_per_second([]).rates == {}


@pytest.mark.parametrize(
    ("names", "scale"),
    [(("fio_clat.log", "fio_iops.log"), 1e-9), (("x_clat.1.log", "x_iops.1.log"), 1e-6)],
)
def test_the_series_is_in_seconds_and_cut_to_the_window(
    names: tuple[str, str], scale: float
) -> None:
    latencies = table([(1000 * k, 100 * k) for k in range(1, 7)], name=names[0])
    rates = table([(1000 * k, 50) for k in range(1, 7)], name=names[1])
    window = (EPOCH * 10**6 + 2 * 10**9, EPOCH * 10**6 + 5 * 10**9)
    found = load_series({names[0]: latencies, names[1]: rates}, window, latency_scale=scale)[
        "write.clat"
    ]
    assert found.unit == "s"
    assert found.time.tolist() == pytest.approx([1, 2, 3])
    assert found.values.tolist() == pytest.approx([300 * scale, 400 * scale, 500 * scale])
