"""The notebooks of `examples/notebooks`: every cell runs, and what a cell ends with shows itself."""

from __future__ import annotations

import ast
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest


def shown(source: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does; the value of the expression that it ends with, None where it
    ends with a statement."""
    tree = ast.parse(source)
    end = tree.body[-1]
    last = None
    if isinstance(end, ast.Expr):
        last = ast.Expression(end.value)
        tree.body.pop()
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(last, "cell", "eval"), names) if last else None


def run_notebook(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Titles of the kinds of what the cells showed. Each must have a picture, a table or a chart."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    names: dict[str, Any] = {"__name__": "__main__"}
    kinds = []
    book = json.loads(path.read_text())
    assert book["nbformat"] == 4
    try:
        for cell in book["cells"]:
            if cell["cell_type"] != "code":
                continue
            assert cell["outputs"] == [], "notebooks are committed without outputs"
            value = shown("".join(cell["source"]), names)
            assert value is not None
            bundle = value._repr_mimebundle_() if hasattr(value, "_repr_mimebundle_") else {}
            html = value._repr_html_() if hasattr(value, "_repr_html_") else ""
            markdown = value._repr_markdown_() if hasattr(value, "_repr_markdown_") else ""
            picture = value._repr_svg_() if hasattr(value, "_repr_svg_") else ""
            assert (
                picture
                or any(bundle.values())
                or "<table" in html
                or "<svg" in html
                or "<img" in html
                or "\n|" in markdown
            ), repr(value)
            kinds.append(type(value).__name__)
    finally:
        if "work" in names:
            shutil.rmtree(names["work"])
    return kinds


@pytest.mark.parametrize("name", ["openzfs-447", "recording"])
def test_a_notebook_runs(root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(run_notebook(root / f"examples/notebooks/{name}.ipynb", monkeypatch)) >= 4


@pytest.mark.fio
def test_the_notebook_of_an_own_study_runs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    assert len(run_notebook(root / "examples/notebooks/own-study.ipynb", monkeypatch)) == 3


def test_every_notebook_is_run(root: Path) -> None:
    assert {path.stem for path in (root / "examples/notebooks").glob("*.ipynb")} == {
        "openzfs-447",
        "recording",
        "own-study",
    }
