# SPDX-License-Identifier: Apache-2.0
"""Charts of comparisons: what is drawn where, what its marks say, and what odd data do to it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable

import pytest

from iolab.base.errors import UsageError
from iolab.base.verdict import Level
from iolab.output.charts import Chart, before_after, change, matrix, over_load
from iolab.output.charts.base.theme import DARK, LIGHT
from iolab.output.charts.lines import Spot, rows_of
from iolab.studies.compare.model import Comparison
from support.charts_data import (
    DISKS,
    JOBS,
    MASTER_IOPS,
    PROJECT_IOPS,
    Values,
    comparison,
    published,
    repeated,
)
from support.charts_read import channel, domains, layers, rows, validate, words
from support.depth import depth
from support.narrow import present

KEY = ("project", (), (64,), (8,))


def numbers(chart: Chart) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(chart.to_csv())))


def test_iops_over_threads_as_published() -> None:
    chart = over_load(published())
    validate(chart)
    assert chart.title == "IOPS, writes, over numjobs"
    assert chart.name == "write-iops-over-numjobs"
    assert chart.spec["facet"]["sort"] == [f"disks = {disks}" for disks in DISKS]
    for axis in channel(chart, "x"):
        assert axis["axis"]["values"] == list(JOBS)
        assert (axis["scale"]["type"], axis["scale"]["base"]) == ("log", 2)
        assert axis["title"] == "numjobs"
    for axis in channel(chart, "y"):
        assert axis["title"] == "IOPS, writes (1/s)"
    assert "no interval" in chart.caption
    assert not rows(chart, "band")
    assert not rows(chart, "dot")


def test_one_domain_for_all_panels_and_layers_that_holds_the_extremes() -> None:
    chart = over_load(repeated(noise=0.3, disks=DISKS))
    ((low, high),) = domains(chart, "y")
    drawn = [row["y"] for kind in ("dot", "point", "line") for row in rows(chart, kind)]
    drawn += [end for row in rows(chart, "band") for end in (row["lo"], row["hi"])]
    assert low < min(drawn)
    assert high > max(drawn)
    assert len(domains(chart, "x")) == 1
    assert "resolve" not in chart.spec


def test_csv_has_the_unrounded_numbers_of_the_published_table() -> None:
    table = {
        (row["disks"], row["numjobs"], row["variant"]): row
        for row in numbers(over_load(published()))
        if row["kind"] == "estimate"
    }
    assert len(table) == 88
    for variant, published_rates in (("master", MASTER_IOPS), ("project", PROJECT_IOPS)):
        for jobs, rates in zip(JOBS, published_rates, strict=True):
            for disks, rate in zip(DISKS, rates, strict=True):
                row = table[(str(disks), str(jobs), variant)]
                assert float(row["value"]) == pytest.approx(rate, rel=1e-12)
                assert (row["unit"], row["verdict"], row["low"]) == ("1/s", "UNJUDGED", "")


def test_every_repetition_is_a_dot_and_every_estimate_a_point_in_a_band() -> None:
    given = repeated(5, disks=(8,))
    chart = over_load(given)
    assert len(rows(chart, "dot")) == 2 * len(JOBS) * 5
    assert len(rows(chart, "point")) == 2 * len(JOBS)
    band = rows(chart, "band", group="project")
    assert [row["x"] for row in band] == list(JOBS)
    first = present(given.cell((), (1,), (), "project")).estimate
    assert band[0]["lo"] == pytest.approx(first.low, rel=1e-5)
    assert {row["piece"] for row in band} == {band[0]["piece"]}
    (area,) = (layer["encoding"] for layer in layers(chart) if layer["mark"]["type"] == "area")
    assert (area["y"]["field"], area["y2"]["field"]) == ("lo", "hi")
    assert "order" not in area  # it would tear the area into single points


def test_suspect_is_hollow_and_nothing_else_is() -> None:
    chart = over_load(repeated(levels={KEY: Level.SUSPECT}))
    hollow = [row for row in rows(chart, "point") if row["hollow"]]
    assert [(row["group"], row["x"], row["panel"]) for row in hollow] == [
        ("project", 64, "disks = 8")
    ]
    above = [layer for layer in layers(chart) if layer["mark"].get("style") == "hollow"]
    assert [layer["transform"] for layer in above] == [
        [{"filter": "datum.kind === 'point' && datum.hollow"}]
    ]
    assert all(
        theme["style"]["hollow"]["color"] == theme["background"] for theme in (LIGHT, DARK)
    ), "no line shines through"
    assert "hollow: suspect" in " ".join(chart.spec["title"]["subtitle"])
    assert "hollow" not in over_load(repeated()).caption.lower()


def test_refused_runs_are_crosses_that_move_neither_the_line_nor_the_scale() -> None:
    plain = over_load(repeated())
    refused = {
        KEY: [9e12],
        ("master", (), (4,), (1,)): [None],
        ("master", (), (8,), (1,)): [1000.0],
    }
    chart = over_load(repeated(left_out=refused))
    validate(chart)
    assert domains(chart, "y") == domains(plain, "y")
    assert rows(chart, "line") == rows(plain, "line")
    ((low, high),) = domains(chart, "y")
    crosses = {(row["group"], row["x"]): row["y"] for row in rows(chart, "cross")}
    assert crosses[("project", 64)] == pytest.approx(high, rel=0.2)
    assert crosses[("master", 4)] == pytest.approx(low, rel=0.2)
    assert crosses[("master", 8)] == 1000
    assert all(low < y < high for y in crosses.values())
    written = [row for row in numbers(chart) if row["kind"] == "left out"]
    assert sorted(row["value"] for row in written) == ["", "1000.0", "9000000000000.0"]


def test_a_cell_without_any_valid_run_is_bridged_and_crossed() -> None:
    values: Values = {
        ("a", (), (jobs,), ()): [] if jobs == 4 else [100.0 * jobs] for jobs in (1, 2, 4, 8)
    }
    chart = over_load(comparison("write.iops", values, left_out={("a", (), (4,), ()): [50.0]}))
    assert [row["x"] for row in rows(chart, "line")] == [1, 2, 8]
    assert [row["x"] for row in rows(chart, "cross")] == [4]


def test_segments_to_saturated_points_are_dashed() -> None:
    saturated = [("master", (), (jobs,), ()) for jobs in (256, 512)]
    chart = over_load(repeated(disks=(8,), saturated=saturated))
    pieces: dict[int, list[int]] = {}
    for row in rows(chart, "line", group="master"):
        pieces.setdefault(row["piece"], []).append(row["x"])
        assert row["dashed"] == (row["piece"] == 2)
    assert pieces == {1: [1, 2, 4, 8, 16, 32, 64, 128], 2: [128, 256, 512, 1024]}
    assert "dashed: offered rate not reached" in chart.caption.lower()
    assert not any(row["dashed"] for row in rows(chart, "line", group="project"))


def test_an_interval_alone_is_a_bar() -> None:
    values: Values = {
        ("a", (), (jobs,), ()): [10.0, 11.0] if jobs in (1, 4, 8) else [10.0]
        for jobs in (1, 2, 4, 8)
    }
    chart = over_load(comparison("write.iops", values))
    assert [row["x"] for row in rows(chart, "bar")] == [1]
    assert [row["x"] for row in rows(chart, "band")] == [4, 8]


def test_published_units_are_kept() -> None:
    chart = over_load(published("write.lat.mean"))
    assert "(ms)" in "".join(str(one["title"]) for one in channel(chart, "y"))
    given = repeated(metric="write.lat.mean", shown_unit="µs")
    assert "(µs)" in "".join(str(one["title"]) for one in channel(over_load(given), "y"))


def test_device_busy_runs_from_0_to_100_per_cent() -> None:
    values: Values = {
        (variant, (), (jobs,), ()): [0.1 * (1 + place) * math.log2(jobs)]
        for place, variant in enumerate(("a", "b"))
        for jobs in (1, 2, 8, 16)
    }
    chart = over_load(comparison("device.util", values))
    assert domains(chart, "y") == {(0.0, 100.0)}
    assert [row["y"] for row in rows(chart, "point", group="a")] == [0, 10, 30, 40]


def test_change_over_threads_is_the_published_one() -> None:
    chart = change(published())
    validate(chart)
    at = {(row["group"], row["x"]): row["y"] for row in rows(chart, "point")}
    assert len(at) == 44
    assert at[("disks = 8", 1024)] == pytest.approx(139.508976, abs=1e-3)
    assert at[("disks = 2", 1)] == pytest.approx(-4.546318, abs=1e-3)
    ((low, high),) = domains(chart, "y")
    assert low <= -4.55
    assert high >= 139.51
    assert all(row["hollow"] for row in rows(chart, "point"))
    assert "no interval, no test" in chart.caption
    written = {(row["disks"], row["numjobs"]): float(row["change"]) for row in numbers(chart)}
    assert 100 * written[("1", "2")] == pytest.approx(88.962492, abs=1e-6)


def test_change_marks_what_is_decided_and_where_nothing_differs() -> None:
    given = repeated(noise=0.2, variants=("master", "project", "other"), noise_floor=(-0.04, 0.05))
    chart = change(given)
    validate(chart)
    assert chart.spec["facet"]["sort"] == ["project", "other"]
    for row in rows(chart, "point"):
        disks = int(row["group"].removeprefix("disks = "))
        cell = present(given.cell((), (row["x"],), (disks,), row["panel"]))
        assert row["hollow"] != present(cell.change).decided
    inline = [layer["data"]["values"][0] for layer in layers(chart) if "data" in layer]
    assert inline == [{"lo": -4.0, "hi": 5.0}, {"y": 0.0}]
    ((low, high),) = domains(chart, "y")
    assert all(low <= row["lo"] <= row["hi"] <= high for row in rows(chart, "band"))


def test_variants_are_the_lines_of_the_change_without_columns_and_keep_their_colour() -> None:
    given = repeated(disks=(8,), variants=("master", "project", "other"))
    chart, absolute = change(given), over_load(given)
    assert "facet" not in chart.spec
    assert {row["group"] for row in rows(chart, "point")} == {"project", "other"}
    assert domains(chart, "fill") == domains(absolute, "fill") == {("master", "project", "other")}
    assert {tuple(one["legend"]["values"]) for one in channel(chart, "fill")} == {
        ("project", "other")
    }


def test_a_change_of_shares_is_in_percentage_points() -> None:
    values: Values = {
        (variant, (), (jobs,), ()): [0.2 * place + 0.1]
        for place, variant in enumerate("ab")
        for jobs in (1, 2)
    }
    chart = change(comparison("device.util", values))
    assert [row["y"] for row in rows(chart, "point")] == [20, 20]
    assert all("percentage points" in " ".join(one["title"]) for one in channel(chart, "y"))
    assert "+20 points" in chart.to_csv()


def test_enormous_changes_share_a_ratio_axis_with_small_ones() -> None:
    values: Values = {
        (variant, (), (jobs,), ()): [10.0 if variant == "a" else 11.0 * jobs**2]
        for variant in "ab"
        for jobs in (1, 8)
    }
    chart = change(comparison("write.iops", values))
    validate(chart)
    assert [row["y"] for row in rows(chart, "point")] == [1.1, 70.4]
    assert {one["scale"]["type"] for one in channel(chart, "y")} == {"log"}
    assert "logarithmic axis of ratios" in chart.caption.lower()


def seed_004() -> Comparison:
    values: Values = {}
    table = (
        (10, (0.09, 0.36), (0.07, 0.33)),
        (40, (0.0, 1.55), (0.14, 1.46)),
        (160, (0.11, 0.17), (0.11, 0.0)),
    )
    for files, before, after in table:
        for size, old, new in zip(("128k", "1m"), before, after, strict=True):
            values[("before", (512,), (files,), (size,))] = [old]
            values[("after", (512,), (files,), (size,))] = [new]
            values[("before", (8192,), (files,), (size,))] = [old * 2]
            values[("after", (8192,), (files,), (size,))] = [new * 2]
    return comparison("read.time", values, rows=("files",), cols=("size",), tables=("recordsize",))


def test_before_after_is_a_table_of_tables() -> None:
    chart = before_after(seed_004())
    validate(chart)
    cells = {(row["panel"], row["row"], row["col"]): row for row in chart.spec["datasets"]["rows"]}
    assert len(cells) == 12
    first = cells[("recordsize = 512", "10", "128k")]
    assert (first["line1"], first["line2"]) == ("90 → 70", "−22.2 %")
    assert first["score"] > 0
    zero = cells[("recordsize = 512", "40", "128k")]
    assert (zero["line1"], zero["line2"], zero["score"]) == ("0 → 140", "—", 0)
    assert cells[("recordsize = 512", "160", "128k")]["line2"] == "±0 %"
    assert chart.title == "Elapsed time, reads (ms): before → after"
    scale = layers(chart)[0]["encoding"]["color"]["scale"]
    assert scale["domain"][0] == -scale["domain"][1]


@pytest.mark.parametrize(
    ("metric", "sign"), [("write.iops", 1), ("write.lat.mean", -1), ("device.read.iops", 1)]
)
def test_colour_follows_the_better_direction(metric: str, sign: int) -> None:
    values: Values = {("a", (), (1,), ()): [100.0], ("b", (), (1,), ()): [150.0]}
    (row,) = before_after(comparison(metric, values)).spec["datasets"]["rows"]
    assert row["score"] == pytest.approx(sign * math.log2(1.5), abs=1e-4)


def test_before_after_says_what_is_not_significant_or_suspect() -> None:
    values: Values = {("a", (), (1,), ()): [100.0, 130.0], ("b", (), (1,), ()): [120.0, 104.0]}
    chart = before_after(
        comparison("write.iops", values, levels={("b", (), (1,), ()): Level.SUSPECT})
    )
    (row,) = chart.spec["datasets"]["rows"]
    assert row["line2"].endswith("~")
    assert row["line1"].endswith("*")
    assert "~ not significant" in chart.caption
    assert "* suspect" in chart.caption.lower()


def seed_002() -> tuple[Comparison, Comparison]:
    table = {(1, 0): (1623, 45), (1, 100): (2491, 44), (9, 0): (2674, 379), (9, 100): (6348, 168)}
    both: list[Values] = [
        {
            ("zfs", (), (procs,), (share,)): [pair[which] * scale]
            for (procs, share), pair in table.items()
        }
        for which, scale in ((0, 2**20), (1, 1e-6))
    ]
    rows, cols = ("processes",), ("compressibility",)
    return (
        comparison("write.bw", both[0], rows=rows, cols=cols),
        comparison("write.clat.mean", both[1], rows=rows, cols=cols),
    )


def test_the_matrix_reads_as_the_seed_prints_it() -> None:
    chart = matrix(*seed_002())
    validate(chart)
    texts = {(row["row"], row["col"]): row["line1"] for row in chart.spec["datasets"]["rows"]}
    assert texts == {
        ("1", "0"): "1623 MiB/s @ 45 µs",
        ("1", "100"): "2491 MiB/s @ 44 µs",
        ("9", "0"): "2674 MiB/s @ 379 µs",
        ("9", "100"): "6348 MiB/s @ 168 µs",
    }
    assert float(numbers(chart)[0]["write.bw"]) == pytest.approx(1623 * 2**20)


def test_a_matrix_with_a_missing_side_shows_a_dash_and_other_axes_are_refused() -> None:
    throughput, latency = seed_002()
    values: Values = {
        (cell.variant, (), cell.row, cell.col): list(cell.estimate.values)
        for cell in latency.cells[:-1]
    }
    less = comparison("write.clat.mean", values, rows=latency.rows, cols=latency.cols)
    assert matrix(throughput, less).spec["datasets"]["rows"][-1]["line1"] == "6348 MiB/s @ —"
    with pytest.raises(UsageError, match="different factors"):
        matrix(throughput, published("write.lat.mean"))


ODD: dict[str, Values] = {
    "nothing": {},
    "one cell": {("a", (), (1,), ()): [5.0]},
    "one variant": {("a", (), (jobs,), ()): [5.0 * jobs, 6.0 * jobs] for jobs in (1, 2, 4, 8)},
    "all zero": {(variant, (), (jobs,), ()): [0.0] for variant in "ab" for jobs in (1, 8)},
    "some zero": {
        (variant, (), (jobs,), ()): [float(jobs * place)]
        for place, variant in enumerate("ab")
        for jobs in (1, 64)
    },
    "nothing valid": {(variant, (), (jobs,), ()): [] for variant in "ab" for jobs in (1, 8)},
    "no rows": {("a", (), (), ()): [5.0], ("b", (), (), ()): [6.0]},
    "words": {(variant, (), ("x\"<b>'",), ()): [1.0] for variant in ("<script>", "naïve µ")},
    "quotes and dots": {("a.b[0]", (), ("it's",), ()): [1.0], ("c\\d", (), ("it's",), ()): [2.0]},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("metric", ["write.iops", "device.util", "homemade"])
def test_odd_data_make_valid_charts_that_render(name: str, metric: str) -> None:
    given = comparison(metric, ODD[name], rows=() if name == "no rows" else ("numjobs",))
    charts = (over_load(given), change(given), before_after(given), matrix(given, given))
    for number, chart in enumerate(charts, list(ODD).index(name)):
        validate(chart)
        assert chart.caption
        if metric == "write.iops" and number % depth(2, 1) == 0:
            svg = chart.svg()
            assert "NaN" not in svg
            assert "undefined" not in svg


def test_values_that_are_not_finite_are_not_drawn() -> None:
    values: Values = {
        ("a", (), (jobs,), ()): [math.nan] if jobs == 2 else [math.inf] if jobs == 4 else [5.0]
        for jobs in (1, 2, 4, 8)
    }
    chart = over_load(comparison("write.iops", values))
    assert [row["x"] for row in rows(chart, "point")] == [1, 8]
    assert "NaN" not in chart.svg()


@pytest.mark.parametrize("make", [over_load, change, before_after])
def test_a_specification_has_no_colour_of_its_own(make: Callable[..., Chart]) -> None:
    chart = make(repeated(levels={KEY: Level.SUSPECT}))
    assert "config" not in chart.spec
    assert not [word for word in words(chart.spec) if word.startswith("#")]


@pytest.mark.slow
def test_many_panels_stay_side_by_side_and_last_rows_keep_an_axis() -> None:
    chart = over_load(repeated(2, disks=(1, 2, 3, 4, 5)))
    validate(chart)
    assert chart.spec["columns"] == 3
    assert chart.spec["resolve"] == {"axis": {"x": "independent"}}


def test_lines_can_be_levels_and_panels_variants() -> None:
    chart = over_load(published(), "disks")
    validate(chart)
    assert chart.spec["facet"]["sort"] == ["master", "project"]
    assert list(dict.fromkeys(row["group"] for row in rows(chart, "point"))) == [
        f"disks = {disks}" for disks in DISKS
    ]
    top = rows(chart, "point", panel="project", group="disks = 8")[-1]
    assert top["x"] == 1024
    assert top["y"] == pytest.approx(PROJECT_IOPS[-1][-1], rel=1e-5)
    assert top["tip"].startswith("project, disks = 8, numjobs 1024: ")
    assert chart.rows == over_load(published()).rows, "the numbers are the same"
    assert over_load(published(), "variant").spec["facet"] == over_load(published()).spec["facet"]


def test_other_factors_stay_panels_with_the_variants_beside_each_other() -> None:
    values: Values = {
        (variant, (media,), (jobs,), (disks,)): [1.0 * jobs * disks]
        for media in ("hdd", "ssd")
        for disks in (1, 2)
        for variant in ("a", "b")
        for jobs in (1, 2)
    }
    chart = over_load(comparison("write.iops", values, cols=("disks",), tables=("media",)), "disks")
    assert chart.spec["facet"]["sort"] == [
        "a, media = hdd",
        "b, media = hdd",
        "a, media = ssd",
        "b, media = ssd",
    ]
    assert chart.spec["columns"] == 2
    by_media = over_load(
        comparison("write.iops", values, cols=("disks",), tables=("media",)), "media"
    )
    assert {row["group"] for row in rows(by_media, "point")} == {"media = hdd", "media = ssd"}


def test_one_variant_alone_has_its_levels_as_lines() -> None:
    def alone(levels: int) -> Chart:
        values: Values = {
            ("a", (), (jobs,), (level,)): [1.0 * jobs] for level in range(levels) for jobs in (1, 2)
        }
        return over_load(comparison("write.iops", values, cols=("bs",)))

    assert "facet" not in alone(3).spec
    assert {row["group"] for row in rows(alone(3), "point")} == {"bs = 0", "bs = 1", "bs = 2"}
    assert len(alone(8).spec["facet"]["sort"]) == 8, "more are not told apart at a glance"


def test_lines_of_what_splits_nothing_are_refused() -> None:
    for asked in ("numjobs", "media"):
        with pytest.raises(UsageError) as error:
            over_load(published(), asked)
        assert error.value.hint == "the factors that split this chart are variant, disks"


@pytest.mark.parametrize(("places", "kind"), [((1.0, 4.0), "band"), (("mirror", "raidz2"), "bar")])
def test_intervals_at_named_places_are_bars(places: tuple[float | str, ...], kind: str) -> None:
    """An area over names has no width, so that nothing would be seen."""
    spots = [Spot(number, place, 2.0, 1.0, 3.0) for number, place in enumerate(places)]
    rows = [row for row in rows_of(spots, {"group": "new"}) if "lo" in row]
    assert [(row["x"], row["kind"], row["lo"], row["hi"]) for row in rows] == [
        (place, kind, 1.0, 3.0) for place in places
    ]
