# SPDX-License-Identifier: Apache-2.0
"""`iolab.open`: the same numbers as the command line, and charts that show in a notebook."""

from __future__ import annotations

from pathlib import Path

import pytest

import iolab
from iolab.api import Opened
from iolab.base.errors import UsageError
from iolab.studies.results.imports.table import import_table


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Opened:
    directory = tmp_path_factory.mktemp("api") / "447"
    import_table(root / "studies/published/openzfs-447-max-rate-hdd.csv", directory)
    opened = iolab.open(directory)
    assert isinstance(opened, Opened)
    return opened


def test_compare_takes_names_and_conditions(results: Opened) -> None:
    comparison = results.compare(
        "write.iops", rows="numjobs", cols="disks", where={"disks": [1, 8]}
    )
    assert comparison.col_levels == ((1,), (8,))
    assert "project against master" in str(comparison)
    assert comparison._repr_markdown_().startswith("### write.iops")


@pytest.mark.parametrize(
    "draw", ["iops", "latency", "change", "busy", "hockey_stick", "before_after"]
)
def test_charts_show_in_a_notebook(results: Opened, draw: str) -> None:
    chart = getattr(results.chart, draw)()
    bundle = chart._repr_mimebundle_()
    specification = bundle[0] if isinstance(bundle, tuple) else bundle
    assert any(kind.startswith("application/vnd.vegalite") for kind in specification)
    assert chart.to_csv().count("\n") > 10


def test_observations_are_a_table(results: Opened) -> None:
    assert results.observations().num_rows == len(results.runs) * 4


def test_a_run_that_is_not_there(results: Opened) -> None:
    with pytest.raises(UsageError, match="there is no run"):
        results.chart.series("0000-nothing")


def test_a_manifest_opens_its_directory(results: Opened) -> None:
    assert iolab.open(results.path / "manifest.json").path == results.path


def test_results_say_what_they_are(results: Opened) -> None:
    assert repr(results).startswith("<Results 447: ")
    assert "variants master, project>" in repr(results)
    assert repr(results.compare("write.iops")) == str(results.compare("write.iops"))
    table = results._repr_html_()
    assert table.count("<tr>") <= 61
    assert "<th>variant</th><th>" in table
    assert f"<p>{len(results.runs) - 60} more rows</p>" in table


def test_answers_say_what_they_are_and_names_of_others_are_escaped(tmp_path: Path) -> None:
    path, names = tmp_path / "t.csv", ("fio", "<b>x\x1b</b>")
    path.write_text(
        "time:us,latency:us,size:bytes,op,process\n"
        + "".join(f"{1000 * number},50,4096,read,{names[number % 2]}\n" for number in range(2000))
    )
    opened = iolab.open(path)
    assert not isinstance(opened, Opened)
    assert (
        repr(opened) == "<Trace t.csv: format csv, I/Os 2000, fields time latency size op process>"
    )
    assert "<td>2000</td>" in opened._repr_html_()
    stack, series = (
        opened.query("io.ops[process]", interval="1s"),
        opened.query("io.ops", interval="1s"),
    )
    assert repr(series).startswith("<Series io.ops (1/s), columns of 1 s, ")
    assert repr(stack).startswith("<Stack io.ops[process] (1/s)")
    for each in (stack, series):
        assert "\x1b" not in repr(each) + each._repr_html_()  # type: ignore[union-attr]
        assert "<b>" not in each._repr_html_()  # type: ignore[union-attr]
    assert "&lt;b&gt;x\\x1b&lt;/b&gt;" in stack._repr_html_()  # type: ignore[union-attr]
    assert series._repr_html_().count("<tr><td>") == 2  # type: ignore[union-attr]
    assert repr(opened.query("io.ops[latency]")).startswith(
        "<HeatCounts of latency by count: 2000 events"
    )
    assert repr(opened.heatmap()).startswith("<Map t.csv: <HeatCounts of latency")


def test_queries_work_where_the_progress_bar_can_not_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a notebook without ipywidgets DuckDB refuses every change of the bar."""
    import duckdb

    connect, refused = (
        duckdb.connect,
        "Could not change the progress bar setting because: 'required package 'ipywidgets' is missing'",
    )

    class Notebook:
        def __init__(self, *args: object, **kwargs: object) -> None:
            self._inner = connect(*args, **kwargs)  # type: ignore[arg-type]

        def execute(self, sql: str, *args: object) -> object:
            if sql.upper().startswith("SET") and "progress_bar" in sql:
                raise duckdb.InvalidInputException(refused)
            return self._inner.execute(sql, *args)

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

    monkeypatch.setattr(duckdb, "connect", Notebook)
    path = tmp_path / "t.csv"
    path.write_text(
        "time:us,latency:us,op,process\n"
        + "".join(f"{1000 * number},50,read,fio\n" for number in range(100))
    )
    opened = iolab.open(path)
    assert not isinstance(opened, Opened)
    assert opened.query("io.ops[process]").keys == ["fio"]  # type: ignore[union-attr]
