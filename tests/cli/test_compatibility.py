# SPDX-License-Identifier: Apache-2.0
"""What a newer version wrote is refused in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.cli.main import run
from support.fio_files import job, output

LINES = "time:ms,latency:us,op\n1,100,read\n2,200,write\n"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A directory with results and a recording."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/fio.json").write_text(output(job()))
    (tmp_path / "trace.csv").write_text(LINES)
    for source, place in (("tree", "results"), ("trace.csv", "recording")):
        assert run(["import", str(tmp_path / source), "-o", str(tmp_path / place)]) == 0
    return tmp_path


@pytest.mark.parametrize(
    ("file", "key"),
    [("results/manifest.json", "schema_version"), ("recording/recording.json", "schema")],
)
def test_what_a_newer_version_wrote_is_refused_in_a_line(
    made: Path, capsys: pytest.CaptureFixture[str], file: str, key: str
) -> None:
    path = made / file
    document = json.loads(path.read_text())
    assert key in document
    document.pop("sha256", None)
    document.pop("crc32", None)
    path.write_text(json.dumps({**document, key: 99}))
    capsys.readouterr()
    assert run(["show", str(path.parent)]) == 3
    [line] = capsys.readouterr().err.splitlines()
    assert "schema 99" in line
    assert "newer" in line
    assert path.name in line
