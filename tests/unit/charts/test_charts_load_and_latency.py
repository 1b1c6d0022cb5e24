# SPDX-License-Identifier: Apache-2.0
"""Bars of IOPS with latency, and histograms of counts and of percentiles."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

import numpy as np
import pytest

from iolab import _core
from iolab.base.errors import UsageError
from iolab.base.verdict import Level
from iolab.output.charts import Chart, bars
from iolab.output.charts.book import ChartBook
from iolab.output.charts.histogram import Shares, histogram, shares_of_counts, shares_of_percentiles
from iolab.studies.results.evidence.model import Histogram, Run
from support.charts_data import Values, comparison
from support.charts_read import channel, domains, rows, validate
from support.report_data import run

KEY = ("b", (), (4,), ())


def pair(*, depths: Sequence[int] = (1, 4), cols: Sequence[tuple[object, ...]] = ((),)) -> Values:
    return {
        (variant, (), (depth,), col): [1000.0 * depth * (place + 1), 1010.0 * depth * (place + 1)]
        for place, variant in enumerate(("a", "b"))
        for depth in depths
        for col in cols
    }


def latencies(rates: Values) -> Values:
    return {key: [1 / value for value in values] for key, values in rates.items()}


def numbers(chart: Chart) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(chart.to_csv())))


def test_bars_begin_at_zero_and_latency_has_the_right_axis() -> None:
    rates = pair()
    chart = bars(
        comparison("write.iops", rates, rows=("iodepth",)),
        comparison("write.lat.mean", latencies(rates), rows=("iodepth",)),
    )
    validate(chart)
    assert chart.name == "write-iops-with-write-lat-mean"
    assert chart.title == "IOPS and mean latency, writes"
    assert len(rows(chart, "rate")) == len(rows(chart, "latency")) == 4
    rate_axis, latency_axis = (
        next(axis for axis in channel(chart, "y") if axis["title"].startswith(title))
        for title in ("IOPS", "mean latency")
    )
    assert rate_axis["scale"]["domain"][0] == 0
    assert "orient" not in rate_axis["axis"]
    assert latency_axis["axis"]["orient"] == "right"
    assert chart.spec["resolve"]["scale"]["y"] == "independent"
    for row in numbers(chart):
        values = (rates if row["metric"] == "write.iops" else latencies(rates))[
            (row["variant"], (), (int(row["iodepth"]),), ())
        ]
        assert float(row["value"]) == pytest.approx(math.sqrt(values[0] * values[1]), rel=1e-3)


def test_bars_of_columns_are_panels_with_equal_scales() -> None:
    rates = pair(cols=[("read",), ("write",)])
    chart = bars(
        comparison("write.iops", rates, cols=("rw",)),
        comparison("write.lat.mean", latencies(rates), cols=("rw",)),
    )
    validate(chart)
    assert chart.spec["facet"]["sort"] == ["rw = read", "rw = write"]
    assert len(domains(chart, "y")) == 2


def test_bars_mark_suspect_runs_and_count_refused_ones() -> None:
    rates = pair()
    chart = bars(
        comparison("write.iops", rates, levels={KEY: Level.SUSPECT}, left_out={KEY: [9e9]}),
        comparison("write.lat.mean", latencies(rates)),
    )
    pale = [row for row in rows(chart, "rate") if row["hollow"]]
    assert [(row["group"], row["x"]) for row in pale] == [("b", "4")]
    assert "1 run left out" in chart.caption
    assert all(row["y"] < 1e6 for row in rows(chart, "rate"))


def test_bars_of_different_factors_are_refused() -> None:
    rates = pair()
    with pytest.raises(UsageError, match="different factors"):
        bars(
            comparison("write.iops", rates, rows=("iodepth",)),
            comparison("write.lat.mean", latencies(rates), rows=("numjobs",)),
        )


def counted(*latencies_ns: int) -> Histogram:
    indices, counts = np.unique(
        [_core.grid_index(value, 6) for value in latencies_ns], return_counts=True
    )
    return Histogram("write.clat", 6, indices.astype(np.uint32), counts.astype(np.uint64))


def test_counts_of_all_repetitions_are_added() -> None:
    shares = shares_of_counts("a", [counted(1000, 1000, 1000), counted(1000, 70_000)])
    assert shares.shares == {
        _core.grid_index(1000, 2): pytest.approx(0.8),
        _core.grid_index(70_000, 2): pytest.approx(0.2),
    }
    assert (shares.repetitions, shares.of_percentiles) == (2, False)


def test_percentiles_give_the_share_between_two_of_them() -> None:
    shares = shares_of_percentiles("a", [(1e-3, {50.0: 2e-3, 99.0: 2e-3}, 64e-3)])
    at_most = {
        limit: sum(
            part for index, part in shares.shares.items() if _core.grid_bounds(index, 2)[1] <= limit
        )
        for limit in (2_100_000, 2_200_000, 70_000_000)
    }
    assert sum(shares.shares.values()) == pytest.approx(1)
    assert max(shares.shares.values()) == shares.shares[_core.grid_index(2_000_000, 2)] > 0.49
    assert at_most[70_000_000] == pytest.approx(1)
    low = [index for index in shares.shares if index < _core.grid_index(2_000_000, 2)]
    assert 0.3 < sum(shares.shares[index] for index in low) < 0.5


@pytest.mark.parametrize(
    ("smallest", "percentiles", "largest"),
    [
        (0.0, {1.0: 0.0, 50.0: 0.0}, 0.0),
        (5e-3, {50.0: 1e-3}, 1e-6),
        (1e-9, {99.0: 1e-9}, 3600.0),
        (-1.0, {50.0: -1.0}, 1e-3),
    ],
)
def test_percentiles_out_of_order_or_of_nothing_are_still_shares_of_one(
    smallest: float, percentiles: dict[float, float], largest: float
) -> None:
    shares = shares_of_percentiles("a", [(smallest, percentiles, largest)])
    assert sum(shares.shares.values()) == pytest.approx(1)
    validate(histogram([shares]))


def test_an_outline_returns_to_zero_between_bins_that_are_apart() -> None:
    shares = shares_of_counts("a", [counted(1000, 70_000)])
    chart = histogram([shares, Shares("b", {40: 1.0}, 1, of_percentiles=True)], cell={"iodepth": 4})
    validate(chart)
    outline = [row["y"] for row in chart.spec["datasets"]["rows"] if row["group"] == "a"]
    assert outline == [0, 50, 50, 0, 0, 50, 50, 0]
    written = numbers(chart)
    assert [row["source"] for row in written] == ["counts", "counts", "percentiles"]
    assert sum(float(row["share"]) for row in written) == pytest.approx(2)
    assert "mean over repetitions (b)" in chart.caption
    assert "all repetitions added (a)" in chart.caption


def test_a_histogram_of_nothing_is_drawn_empty() -> None:
    chart = histogram([])
    validate(chart)
    assert "No latency here" in chart.caption


class Plain:
    """Results of plain JSON: percentiles without counts."""

    baseline = "a"

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs

    def metrics(self) -> list[str]:
        return list(self.runs[0].observations)

    def default_metric(self) -> str:
        return "write.iops"

    def run(self, run_id: str) -> Run | None:
        return next((item for item in self.runs if item.id == run_id), None)

    def series(self, run_id: str) -> tuple[()]:
        return ()

    def histograms(self, run_id: str) -> tuple[Histogram, ...]:
        return ()

    def step_runs(self) -> list[Run]:
        return []


def test_plain_json_has_a_histogram_and_no_percentile_curve() -> None:
    percents = {f"write.clat.p{percent}": 1e-4 * percent for percent in (1, 50, 90, 99)}
    values = {"write.iops": 100.0, "write.clat.min": 5e-5, "write.clat.max": 0.5, **percents}
    book = ChartBook(Plain([run(1, "a", {}, values), run(2, "b", {}, values)]))
    (chart,) = book.percentiles("write")
    assert chart.name == "write-latency-histogram"
    assert {row["source"] for row in numbers(chart)} == {"percentiles"}
    assert chart.title == "latency histogram, writes"
    synced = [run(1, "a", {}, values), run(2, "b", {}, values | {"sync.lat.mean": 0.1})]
    (chart,) = ChartBook(Plain(synced)).percentiles("write")
    assert chart.title == "latency histogram, writes (without syncs)"
    few = ChartBook(Plain([run(1, "a", {}, {"write.iops": 1.0, "write.clat.p50": 1e-3})]))
    assert few.percentiles("write") == []
