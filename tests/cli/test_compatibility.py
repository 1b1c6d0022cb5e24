# SPDX-License-Identifier: Apache-2.0
"""What 0.1.0 wrote opens, with the numbers that 0.1.0 printed; what a newer version writes is
refused in a line.

`tests/data/0.1`: a study and a recording made by 0.1.0, and its answers. Paths in them were
shortened.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import iolab
from iolab.cli.main import run


@pytest.fixture
def old(root: Path, tmp_path: Path) -> Path:
    """A copy, since opening results leaves caches beside them; with the times of now, as a checkout
    has them."""
    shutil.copytree(root / "tests/data/0.1", tmp_path / "old", copy_function=shutil.copyfile)
    return tmp_path / "old"


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run([*words, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def without(found: Any, *names: str) -> Any:
    if isinstance(found, dict):
        return {key: without(value, *names) for key, value in found.items() if key not in names}
    return [without(each, *names) for each in found] if isinstance(found, list) else found


def test_results_compare_as_they_did(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "compare", str(old / "results"), "--metric", "write.iops")
    assert without(found, "title") == without(
        json.loads((old / "compare.json").read_text()), "title"
    )
    assert answer(capsys, "show", str(old / "results"))["runs"][0]["status"]


def test_results_are_undamaged_and_no_evidence_is_rewritten(
    old: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", str(old / "results")]) == 0
    assert "1 cache made by another iolab" in capsys.readouterr().out
    assert run(["report", str(old / "results"), "-o", str(old / "report.html")]) == 0
    first = root / "tests/data/0.1/results"
    caches = {"caches.json", *json.loads((first / "caches.json").read_text())["files"]}
    for path in first.rglob("*"):
        if path.is_file() and path.name not in caches:
            assert (old / "results" / path.relative_to(first)).read_bytes() == path.read_bytes()


def test_a_recording_answers_as_it_did(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "query", str(old / "recording"), "io.ops[op]")
    assert found == json.loads((old / "query.json").read_text())
    assert run(["heatmap", str(old / "recording"), "-o", str(old / "map.html")]) == 0
    assert run(["verify", str(old / "recording")]) == 0


def test_notebooks_open_both(old: Path) -> None:
    assert "<table" in iolab.open(old / "results")._repr_html_()
    assert "300" in iolab.open(old / "recording")._repr_html_()


@pytest.mark.parametrize(
    ("file", "key"),
    [("results/manifest.json", "schema_version"), ("recording/recording.json", "schema")],
)
def test_what_a_newer_version_wrote_is_refused_in_a_line(
    old: Path, capsys: pytest.CaptureFixture[str], file: str, key: str
) -> None:
    path = old / file
    document = json.loads(path.read_text())
    assert key in document
    path.write_text(json.dumps({**document, key: 99}))
    assert run(["show", str(path.parent)]) == 3
    [line] = capsys.readouterr().err.splitlines()
    assert "schema 99" in line
    assert "newer" in line
    assert path.name in line
