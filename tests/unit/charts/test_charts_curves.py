# SPDX-License-Identifier: Apache-2.0
"""Hockey stick, percentiles and per-second series."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.stats.curves.knee import KneeEstimate
from iolab.output.charts import (
    Reference,
    Tail,
    change,
    hockey_stick,
    over_load,
    percentiles,
    series,
    tail,
)
from iolab.output.charts.base.model import Chart
from iolab.output.charts.percentiles import BEYOND, percents_for
from iolab.studies.compare.compare import compare
from iolab.studies.compare.load.curves import curves
from iolab.studies.results.evidence.model import Histogram, Series
from support.charts_data import DISKS, JOBS, runs_of, saturating
from support.charts_read import channel, domains, layers, rows, validate


@pytest.mark.slow
def test_hockey_stick_labels_loads_and_rings_knees() -> None:
    found = curves(runs_of(saturating()))
    chart = hockey_stick(found)
    validate(chart)
    assert chart.spec["facet"]["sort"] == ["disks = 1", "disks = 8"]
    ladder = rows(chart, "point", group="project", panel="disks = 8")
    assert [row["load"] for row in ladder] == [str(jobs) for jobs in JOBS]
    assert len(rows(chart, "dot")) == 4 * len(JOBS) * 5
    knees = {(row["panel"], row["group"]): (row["x"], row["y"]) for row in rows(chart, "knee")}
    for curve in found.curves:
        assert isinstance(curve.knee, KneeEstimate)
        x, y = knees[(f"disks = {curve.table[0]}", curve.variant)]
        assert x == pytest.approx(curve.knee.throughput, rel=1e-5)
        assert y == pytest.approx(curve.knee.latency * 1000, rel=1e-5)
    assert len(rows(chart, "knee-x")) == len(rows(chart, "knee-y")) == 4
    labelled = {row["load"] for row in rows(chart, "load", group="project", panel="disks = 8")}
    assert {"1024", "512", "256"} <= labelled
    assert chart.caption.endswith("Knees: see the table."), (
        "a line for each of four curves is a table, not a caption"
    )
    assert sum("knee at numjobs" in str(row.get("label")) for row in chart.rows) == 4
    two = hockey_stick(curves(runs_of(saturating(disks=(8,)))))
    assert "In master: knee at numjobs" in two.caption


def test_panels_stand_as_in_other_charts_and_titles_fit_them() -> None:
    values = {
        (variant, disks, jobs, n): factor * 1000 * jobs / (1 + jobs / 8) * disks
        for variant, factor in (("a", 1.0), ("b", 1.2))
        for disks in DISKS
        for jobs in JOBS
        for n in (1,)
    }
    given_runs = [
        dataclasses.replace(
            run, plan=dataclasses.replace(run.plan, factors={"media": media, **run.factors})
        )
        for media in ("hdd", "ssd")
        for run in runs_of(values)
    ]
    chart, other = hockey_stick(curves(given_runs)), over_load(compare(given_runs, "write.iops"))
    assert chart.spec["facet"]["sort"] == other.spec["facet"]["sort"]
    assert chart.spec["columns"] == other.spec["columns"] == 4
    width = chart.spec["spec"]["width"]
    lines = [
        line
        for axis in channel(chart, "x")
        for line in ([axis["title"]] if isinstance(axis["title"], str) else axis["title"])
    ]
    assert lines
    assert max(6 * len(line) for line in lines) <= width, "titles of neighbours don't touch"


def test_a_curve_without_a_knee_says_why_and_has_no_ring() -> None:
    straight = {("a", 1, jobs, n): 100.0 * jobs for jobs in JOBS for n in (1, 2)}
    chart = hockey_stick(curves(runs_of(straight)))
    validate(chart)
    assert not rows(chart, "knee")
    assert "no clear knee (" in chart.caption


def test_references_widen_the_axes_and_are_named() -> None:
    found = curves(runs_of(saturating(disks=(8,))), throughput="bw")
    plain = hockey_stick(found)
    ((_, before),) = domains(plain, "x")
    chart = hockey_stick(
        found, [Reference("10 GbE link", 1192 * 2**20), Reference("limit", 0.5, "y")]
    )
    validate(chart)
    ((_, across),) = domains(chart, "x")
    ((_, up),) = domains(chart, "y")
    assert before < 1192 <= across
    assert up >= 500
    inline = [layer["data"]["values"][0] for layer in layers(chart) if "data" in layer]
    assert {(row["label"], row.get("x"), row.get("y")) for row in inline} == {
        ("10 GbE link", 1192.0, None),
        ("limit", None, 500.0),
    }
    assert ">10 GbE link</text>" in chart.svg()


def test_hockey_stick_leaves_invalid_runs_out_and_hollows_suspect_points() -> None:
    given_runs = runs_of(
        saturating(3, disks=(8,)),
        suspect=[("master", 8, 64, 2)],
        invalid=[("project", 8, 1024, n) for n in (1, 2, 3)],
    )
    chart = hockey_stick(curves(given_runs))
    assert [row["load"] for row in rows(chart, "point") if row["hollow"]] == ["64"]
    assert "1024" not in {row["load"] for row in rows(chart, "point", group="project")}
    assert "3 runs left out" in chart.caption


def test_axes_turn_logarithmic_only_where_panels_are_unlike() -> None:
    alike = hockey_stick(curves(runs_of(saturating(2, disks=(1, 2)))))
    assert {axis["scale"].get("type") for axis in channel(alike, "x")} == {None}
    unlike = hockey_stick(curves(runs_of(saturating(2, disks=(1, 64)))))
    assert {axis["scale"].get("type") for name in "xy" for axis in channel(unlike, name)} == {"log"}
    assert len(domains(unlike, "x")) == len(domains(unlike, "y")) == 1


def histogram(indices: list[int], counts: list[int]) -> Histogram:
    return Histogram("write.clat", 6, np.array(indices, np.uint32), np.array(counts, np.uint64))


def test_percentiles_pool_repetitions_and_stop_where_too_few_lie_beyond() -> None:
    slow = tail("slow", [histogram([700, 900], [900, 100]), histogram([720, 900], [950, 50])])
    fast = tail("fast", [histogram([500], [10])])
    chart = percentiles(
        [slow, fast], title="Write: completion latency percentiles", cell={"numjobs": 64}
    )
    validate(chart)
    assert (slow.count, slow.repetitions, fast.repetitions) == (2000, 2, 1)
    assert max(slow.percents) == 99.5
    assert max(fast.percents) == 50
    drawn = rows(chart, "line", group="slow")
    assert drawn[-1]["x"] == pytest.approx(200)
    assert "2 000 I/Os of 2 runs" in chart.caption
    assert rows(chart, "band", group="slow")
    assert not rows(chart, "band", group="fast")
    table = list(csv.DictReader(io.StringIO(chart.to_csv())))
    by_percent = {float(row["percent"]): row for row in table if row["variant"] == "slow"}
    # 150 of 2000 I/Os are in the slow bucket: the 92.5th per cent is the first that can be one of
    # them.
    assert float(by_percent[90.0]["value"]) < float(by_percent[95.0]["value"])
    assert {row["numjobs"] for row in table} == {"64"}


def test_percentile_axis_gives_each_decade_its_tick() -> None:
    percents = tuple(percents_for(10**6))
    values = tuple(0.001 * (1 + percent) for percent in percents)
    chart = percentiles([Tail("a", percents, values, values, values, 10**6, 3)])
    axis = layers(chart)[0]["encoding"]["x"]
    assert axis["axis"]["values"] == [1, 2, 10, 100, 1000, 10000, 100000]
    assert axis["scale"]["type"] == "log"
    svg = chart.svg()
    for label in ("50 %", "90 %", "99 %", "99.9 %", "99.99 %"):
        assert f">{label}</text>" in svg


@given(st.integers(0, 10**9))
def test_no_percentile_is_asked_that_the_count_cannot_answer(count: int) -> None:
    percents = percents_for(count)
    assert percents == sorted(set(percents))
    assert all(0 < percent < 100 for percent in percents)
    assert all(percent <= 50 or count * (1 - percent / 100) > BEYOND - 1e-3 for percent in percents)
    assert bool(percents) == (count > 0)


def test_percentiles_of_nothing_and_of_different_grids() -> None:
    chart = percentiles([tail("a", []), tail("b", [histogram([], [])])])
    validate(chart)
    assert "no latency histogram" in chart.caption.lower()
    with pytest.raises(ValueError, match="different grids"):
        tail(
            "a",
            [
                histogram([1], [1]),
                Histogram("x", 3, np.array([1], np.uint32), np.array([1], np.uint64)),
            ],
        )


def one(name: str, unit: str, values: list[float], times: list[float] | None = None) -> Series:
    seconds = times if times is not None else [1.0 + n for n in range(len(values))]
    return Series(name, unit, np.array(seconds), np.array(values))


def panel(chart: Chart, number: int = 0) -> list[dict[str, object]]:
    found: list[dict[str, object]] = chart.spec["datasets"][f"panel{number}"]
    return found


@pytest.mark.slow
def test_series_share_time_and_are_divided_by_unit() -> None:
    chart = series(
        [
            one("write.iops", "1/s", [5, 6, 7]),
            one("write.bw", "B/s", [5, 6, 7]),
            one("device.util[sda]", "1", [0.5, 0.6, 0.7]),
            one("device.util[sdb]", "1", [0.1, 0.2, 0.3]),
        ]
    )
    validate(chart)
    assert len(chart.spec["vconcat"]) == 3
    spans = {
        tuple(layer["encoding"]["x"]["scale"]["domain"])
        for part in chart.spec["vconcat"]
        for layer in part["layer"]
    }
    assert spans == {(0.0, 3.0)}
    assert {row["group"] for row in panel(chart, 2)} == {"device.util[sda]", "device.util[sdb]"}
    assert "device utilization (%)" in chart.svg()


def test_a_gap_breaks_the_line_and_is_hatched_not_zero() -> None:
    chart = series([one("write.iops", "1/s", [5, 6, math.nan, math.nan, 7, math.nan, 9, 9])])
    assert [(row["x"], row["piece"], row["alone"]) for row in panel(chart)] == [
        (1, 0, False),
        (2, 0, False),
        (5, 2, True),
        (7, 3, False),
        (8, 3, False),
    ]
    assert 0 not in [row["y"] for row in panel(chart)]
    strokes = chart.spec["vconcat"][0]["layer"][0]
    assert strokes["mark"]["style"] == "gap"
    ends = [(row["x"], row["x2"]) for row in strokes["data"]["values"]]
    assert min(ends)[0] == 2.5
    assert max(end for _, end in ends) == 6.5
    assert not any(start < 5.4 < end and start > 4.5 for start, end in ends if end <= 5.5)
    assert "hatched: nothing known" in chart.caption.lower()
    assert list(csv.DictReader(io.StringIO(chart.to_csv())))[2]["value"] == ""


def test_missing_seconds_are_gaps_too_and_stalls_are_zero_not_gaps() -> None:
    chart = series([one("write.bw", "B/s", [5, 0, 0, 0, 5], [1, 2, 3, 4, 12])], stalls=[(1.5, 4.5)])
    validate(chart)
    styles = [layer["mark"].get("style") for layer in chart.spec["vconcat"][0]["layer"]]
    assert styles[:2] == ["stall", "gap"]
    assert [row["y"] for row in panel(chart)][1:4] == [0, 0, 0]


@pytest.mark.slow
def test_what_was_done_meanwhile_is_a_rule_with_its_name_in_the_uppermost_panel() -> None:
    lines = [one("write.bw", "B/s", [5.0, 6.0, 7.0]), one("write.iops", "1/s", [1.0, 2.0, 3.0])]
    chart = series(lines, marked=[(2.5, "cache on"), (99.0, "after the end")])
    validate(chart)
    rules = [
        [layer["data"]["values"] for layer in panel["layer"] if layer["mark"]["type"] == "rule"]
        for panel in chart.spec["vconcat"]
    ]
    assert rules == [[[{"x": 2.5, "label": "cache on"}]], [[{"x": 2.5, "label": ""}]]]
    texts = [
        layer for layer in chart.spec["vconcat"][0]["layer"] if layer["mark"]["type"] == "text"
    ]
    assert [text["data"]["values"] for text in texts] == [[{"x": 2.5, "label": "cache on"}]]


def test_long_series_are_thinned_to_their_extremes_and_say_so() -> None:
    values = np.full(10_000, 100.0)
    values[4321], values[8765] = 900.0, 1.0
    chart = series([one("write.iops", "1/s", list(values))])
    drawn = [row["y"] for row in panel(chart)]
    assert len(drawn) <= 2000
    assert {900.0, 1.0} <= set(drawn)
    assert "thinned: lowest and highest of every 10 readings" in chart.caption.lower()
    assert len(chart.rows) == 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines",
    [
        [],
        [one("x", "", [])],
        [one("x", "s", [math.nan])],
        [one("x", "s", [1.0])],
        [one("write.lat.mean", "s", [0.0, 0.001, 1.0])],
    ],
)
def test_odd_series_render(lines: list[Series]) -> None:
    chart = series(lines)
    validate(chart)
    assert "NaN" not in chart.svg()


@pytest.mark.slow
def test_a_reports_charts_are_built_in_time() -> None:
    runs = runs_of(saturating(4, disks=DISKS))
    assert len(runs) == 352
    compared = [compare(runs, metric) for metric in ("write.iops", "write.bw", "write.lat.mean")]
    found = curves(runs)
    begin = time.process_time()
    charts = [make(one) for _ in range(4) for one in compared for make in (over_load, change)]
    charts += [hockey_stick(found) for _ in range(6)]
    assert len(charts) == 30
    spent = time.process_time() - begin
    print(f"30 charts of 352 runs: {spent:.2f} s")
    assert spent < 2
