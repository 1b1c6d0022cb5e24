# SPDX-License-Identifier: Apache-2.0
"""The notebooks of `examples/notebooks` in a real kernel: every cell runs, and what it ends with is
shown as a picture, a table or a chart."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import iolab
from iolab.api import Events
from iolab.base.errors import UsageError
from support.waiting import PATIENCE

NOTEBOOKS = {"openzfs-447", "recording", "own-study"}


def run_notebook(path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """Outputs of each code cell. The kernel does not have iolab's directory in PATH, as where a
    notebook is opened in an editor."""
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setenv("TMPDIR", str(directory))
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.outputs for cell in cells] == [[]] * len(cells), "it is committed without outputs"
    client = NotebookClient(
        notebook,
        timeout=int(4 * PATIENCE),
        kernel_name="python3",
        resources={"metadata": {"path": str(directory)}},
    )
    client.execute()
    return [cell.outputs for cell in cells]


def is_rich(outputs: list[Any]) -> bool:
    """Whether an output is more than the repr of a value."""
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    return bool(kinds - {"text/plain"})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openzfs-447", "recording"])
def test_a_notebook_runs(
    root: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = run_notebook(root / f"examples/notebooks/{name}.ipynb", tmp_path, monkeypatch)
    assert len(outputs) >= 4
    assert all(map(is_rich, outputs))
    if name == "recording":
        widget, cropped = outputs[-2][0]["data"], outputs[-1][0]["data"]
        # the widget is a picture where no kernel runs
        assert {"application/vnd.jupyter.widget-view+json", "image/svg+xml"} <= set(widget)
        assert cropped["image/svg+xml"] != widget["image/svg+xml"]


@pytest.mark.fio
def test_the_notebook_of_an_own_study_runs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    outputs = run_notebook(root / "examples/notebooks/own-study.ipynb", tmp_path, monkeypatch)
    assert len(outputs) == 3
    assert all(map(is_rich, outputs))


def test_the_kernel_is_that_of_the_tests() -> None:
    """Otherwise the notebooks would run with another iolab, or with another Python."""
    from jupyter_client.kernelspec import KernelSpecManager

    spec = KernelSpecManager().get_kernel_spec("python3")
    assert spec.argv[0] in ("python", sys.executable)


def test_a_missing_widget_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("time:ms,latency:us\n1,100\n2,300\n")
    events = iolab.open(trace)
    assert isinstance(events, Events)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "iolab.notebook", raising=False)
    with pytest.raises(UsageError, match="anywidget"):
        events.explore()


def test_every_notebook_is_run(root: Path) -> None:
    assert {path.stem for path in (root / "examples/notebooks").glob("*.ipynb")} == NOTEBOOKS
