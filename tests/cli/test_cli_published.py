# SPDX-License-Identifier: Apache-2.0
"""Results held beside a published table, from the command line: in the text, in JSON, and in the
report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.cli.main import run
from iolab.output.report.assemble import assemble
from iolab.studies.compare.published import Published
from iolab.studies.results.open.results import Results


@pytest.fixture
def table(root: Path) -> Path:
    return root / "studies/published/openzfs-447-max-rate-hdd.csv"


@pytest.fixture
def results(table: Path, tmp_path: Path) -> Path:
    """The table itself as results, with every rate squared: another scale, the same order."""
    lines = [line.split(",") for line in table.read_text().splitlines()]
    for fields in lines:
        if len(fields) == 6 and fields[3] == "write.iops":
            fields[4] = str(float(fields[4]) ** 2)
    copy = tmp_path / "squared.csv"
    copy.write_text(
        "\n".join(",".join(fields) for fields in lines if fields[0] != "project") + "\n"
    )
    assert run(["import", "--table", str(copy), "-o", str(tmp_path / "results")]) == 0
    return tmp_path / "results"


def test_the_text_and_the_json_have_the_correlation(
    results: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["compare", str(results), "--metric", "write.iops", "--published", str(table)]) == 0
    text = capsys.readouterr().out
    assert (
        "note: rank correlation with master of openzfs-447-max-rate-hdd: 1.00 over 44 cells" in text
    )
    assert "note: rank correlation with project of openzfs-447-max-rate-hdd: 0.9" in text
    assert (
        run(
            [
                "compare",
                str(results),
                "--metric",
                "write.iops",
                "--published",
                str(table),
                "--format",
                "json",
            ]
        )
        == 0
    )
    assert "1.00 over 44 cells" in json.dumps(json.loads(capsys.readouterr().out))


def test_the_report_draws_both(results: Path, table: Path) -> None:
    payload, _ = assemble(Results(results), published=Published(table))
    [section] = [one for one in payload.sections if one.name == "beside.write.iops"]
    assert (
        "Rank correlation with master of openzfs-447-max-rate-hdd: 1.00 over 44 cells"
        in section.lead
    )
    assert any(
        "master (published)" in column.title for column in section.tables[0].groups[0].columns
    )
    assert len(section.charts) == 1


def test_mistakes_are_told_in_a_line(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", str(results), "--published", str(tmp_path / "none.csv")]) == 2
    assert run(["report", str(results), "--published", str(tmp_path / "none.csv")]) == 2
    assert capsys.readouterr().err.count("can't be read") == 2


def test_a_report_has_one_unit_for_a_metric(root: Path, tmp_path: Path) -> None:
    assert (
        run(
            [
                "import",
                "--table",
                str(root / "studies/published/zfs-write-compressibility.csv"),
                "-o",
                str(tmp_path / "results"),
            ]
        )
        == 0
    )
    payload, _ = assemble(Results(tmp_path / "results"))
    [section] = [one for one in payload.sections if one.name == "write.bw"]
    [column] = [one for one in payload.runs.columns if one.key == "write.bw"]
    assert section.unit == column.unit == "MiB/s"
    said = [
        sentence.text
        for part in payload.summary
        for sentence in part.sentences
        if sentence.section == "write.bw"
    ]
    assert all("MiB/s" in text and "GiB/s" not in text for text in said)
    assert said
