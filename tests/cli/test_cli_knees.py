# SPDX-License-Identifier: Apache-2.0
"""`compare --knee` on published curves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.cli.main import run


@pytest.fixture(scope="module")
def results(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("knees") / "r"
    assert (
        run(
            [
                "import",
                "--table",
                str(root / "studies/published/zfs-write-compressibility.csv"),
                "-o",
                str(directory),
            ]
        )
        == 0
    )
    return directory


def test_the_knees_of_the_compressibility_study(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", str(results), "--knee", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    knees = {
        curve["factors"]["compressibility"]: curve["knee"].get("load")
        for curve in document["curves"]
    }
    # The third process saturates 0 % and 100 %. The curve of 50 % has a single repetition that
    # scatters as much as it bends: there a knee cannot be distinguished from noise.
    assert knees == {0: 3, 50: None, 100: 3}
    assert all(len(curve["points"]) == 9 for curve in document["curves"])


def test_the_text_names_knee_and_scalability(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", str(results), "--knee", "--where", "compressibility=100"]) == 0
    text = capsys.readouterr().out
    assert "knee at numjobs" in text
    assert "5.811 GiB/s  55.00 µs" in text


def test_a_format_without_knees_is_refused(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", str(results), "--knee", "--format", "csv"]) == 2
    assert "knees can't be written as csv" in capsys.readouterr().err
