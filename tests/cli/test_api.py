"""`iolab.open`: the same numbers as the command line, and charts that show in a notebook."""

from __future__ import annotations

from pathlib import Path

import pytest

import iolab
from iolab.api import Opened
from iolab.errors import UsageError
from iolab.results.published import import_table


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Opened:
    directory = tmp_path_factory.mktemp("api") / "447"
    import_table(root / "studies/published/openzfs-447-max-rate-hdd.csv", directory)
    return iolab.open(directory)


def test_compare_takes_names_and_conditions(results: Opened) -> None:
    comparison = results.compare("write.iops", rows="numjobs", cols="disks", where={"disks": [1, 8]})
    assert comparison.col_levels == ((1,), (8,))
    assert "project against master" in str(comparison)
    assert comparison._repr_markdown_().startswith("### write.iops")


@pytest.mark.parametrize("draw", ["iops", "latency", "change", "busy", "hockey_stick", "before_after"])
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
