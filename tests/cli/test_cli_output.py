# SPDX-License-Identifier: Apache-2.0
"""What the commands write, for people and for programs."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from iolab.cli.main import COMMANDS, run
from support.fio_files import iostat, job, output


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two variants x two loads x three repetitions; one run failed, one stalled."""
    base = tmp_path_factory.mktemp("cli")
    minutes = itertools.count()
    for repetition in (1, 2, 3):
        for variant, rate in (("master", 1000.0), ("project", 1200.0)):
            for jobs in (1, 4):
                run_dir = base / "tree" / variant / f"rep{repetition}" / f"fio-{jobs}-jobs"
                run_dir.mkdir(parents=True)
                failed = (variant, repetition, jobs) == ("project", 2, 4)
                stalled = (variant, repetition, jobs) == ("master", 1, 1)
                iops = (
                    rate
                    * jobs
                    * (
                        1
                        + repetition / 100
                        + (jobs if variant == "project" else 0) * repetition**2 / 5000
                    )
                )
                (run_dir / "fio.json").write_text(
                    output(
                        job(jobs=jobs, iops=iops, error=28 if failed else 0),
                        minute=next(minutes),
                        ioengine="psync",
                        numjobs=str(jobs),
                    )
                )
                moved = [(800.0, 50.0)] * 5 + [(0.0 if stalled else 800.0, 50.0)] * 5
                (run_dir / "iostat-sdb.txt").write_text(iostat(moved))
    layout = "{variant}/rep{repetition:int}/fio-{numjobs:int}-jobs"
    assert run(["import", str(base / "tree"), "--layout", layout, "-o", str(base / "results")]) == 0
    return base / "results"


def text_of(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    capsys.readouterr()
    assert run(list(args)) == 0
    return capsys.readouterr().out


def test_show_json_has_the_promised_shape(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = json.loads(text_of(capsys, "show", str(results), "--format", "json"))
    assert (shown["schema"], shown["kind"], len(shown["runs"])) == (1, "results", 12)
    first = next(run for run in shown["runs"] if run["verdict"]["level"] == "SUSPECT")
    assert {"run", "variant", "factors", "repetition", "status", "verdict"} <= set(first)
    assert (first["variant"], first["factors"], first["repetition"]) == (
        "master",
        {"numjobs": 1},
        1,
    )
    reason = first["verdict"]["reasons"][0]
    assert (reason["code"], reason["seconds"]) == ("stall", 5)
    assert "moved nothing for 5 s" in reason["text"]
    assert shown["verdicts"] == {"OK": 10, "SUSPECT": 1, "INVALID": 1}


def test_no_number_of_show_has_an_exponent(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = "variant,jobs,metric,value,unit\na,1,write.iops,15160,1/s\nb,1,write.iops,98765,1/s\n"
    (tmp_path / "table.csv").write_text(table)
    text_of(capsys, "import", "--table", str(tmp_path / "table.csv"), "-o", str(tmp_path / "t"))
    shown = text_of(capsys, "show", str(tmp_path / "t"))
    assert "15 160 to 98 765 1/s" in shown


def test_show_text_names_what_is_wrong_first(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = text_of(capsys, "show", str(results)).splitlines()
    assert lines[0] == "results: 12 runs, imported files"
    invalid = next(
        place for place, line in enumerate(lines) if line.startswith("INVALID  job-error: 1 run")
    )
    suspect = next(
        place for place, line in enumerate(lines) if line.startswith("SUSPECT  stall: 1 run")
    )
    assert invalid < suspect
    assert "No space left on device" in lines[invalid + 1]
    assert "Little's law  L/C 1.000 over 12 closed-loop runs" in lines


def test_compare_counts_the_dropped_pair(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(
        csv.DictReader(io.StringIO(text_of(capsys, "compare", str(results), "--format", "csv")))
    )
    four = next(row for row in rows if (row["numjobs"], row["variant"]) == ("4", "project"))
    assert (four["pairs"], four["dropped"], four["footnotes"]) == ("2", "1", "invalid")
    one = next(row for row in rows if (row["numjobs"], row["variant"]) == ("1", "project"))
    assert (one["pairs"], one["dropped"], one["metric"], one["unit"]) == (
        "3",
        "0",
        "write.iops",
        "1/s",
    )
    assert "1 pair left out" in text_of(capsys, "compare", str(results))


@pytest.mark.parametrize("style", ["text", "csv", "json", "markdown", "benchstat"])
def test_every_format_holds_both_variants(
    results: Path, capsys: pytest.CaptureFixture[str], style: str
) -> None:
    text = text_of(capsys, "compare", str(results), "--format", style, "--metric", "write.lat.mean")
    assert "master" in text
    assert "project" in text
    assert text.endswith("\n")


def test_units_and_precision(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = text_of(
        capsys,
        "compare",
        str(results),
        "--metric",
        "write.lat.mean",
        "--unit",
        "us",
        "--precision",
        "1",
    )
    assert "(µs)" in text
    assert "980.4" in text  # 1000 us over the geometric mean of 1.01, 1.02 and 1.03


@pytest.mark.parametrize("style", ["text", "markdown", "csv", "json"])
def test_a_matrix_of_two_metrics(
    results: Path, capsys: pytest.CaptureFixture[str], style: str
) -> None:
    text = text_of(
        capsys, "compare", str(results), "--metric", "write.bw@write.lat.mean", "--format", style
    )
    assert ("@" in text) == (style in ("text", "markdown"))
    assert "project" in text


@pytest.mark.slow
def test_charts_come_with_their_numbers(
    results: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text_of(capsys, "report", str(results), "--charts", str(tmp_path / "charts"), "--format", "svg")
    pictures = sorted(path.stem for path in (tmp_path / "charts").glob("*.svg"))
    assert {
        "write-iops-over-numjobs",
        "write-iops-change-over-numjobs",
        "write-iops-hockey-stick",
    } <= set(pictures)
    assert pictures == sorted(path.stem for path in (tmp_path / "charts").glob("*.csv"))


@pytest.mark.parametrize(
    "kind",
    [
        "glossary",
        "metrics",
        "units",
        "formats",
        "gates",
        "hosts",
        "targets",
        "workloads",
        "sources",
        "renderers",
        "studies",
    ],
)
def test_the_catalogue_lists_every_kind(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    entries = json.loads(text_of(capsys, "catalog", kind, "--format", "json"))["entries"]
    lines = text_of(capsys, "catalog", kind).splitlines()
    assert entries
    assert len(lines) == len(entries)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_and_stands_in_the_reference(
    capsys: pytest.CaptureFixture[str], root: Path, name: str
) -> None:
    assert "Usage: iolab" in text_of(capsys, name, "--help")
    assert f"`{name} " in (root / "docs/reference/commands.md").read_text()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("iolab quer", "query"),
        ("iolab query rec io.op", "io.ops"),
        ("iolab query rec io.ops[lat", "io.ops[latency]"),
        ("iolab compare r --metric write.iops@write.lat.me", "write.iops@write.lat.mean"),
        ("iolab rig build open", "openzfs"),
        ("iolab run --dry", "--dry-run"),
        ("iolab completion fi", "fish"),
        ("iolab keep add rec io.byt", "io.bytes"),
    ],
)
def test_a_shell_completes_commands_options_and_names(
    line: str, wanted: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wanted in completed(line, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("iolab run stud", {"studies/quickstart.toml", "studies/step-load.toml"}),
        ("iolab run ", {"studies/quickstart.toml"}),
        ("iolab import --table studies/pub", {"studies/published/openzfs-447-max-rate-hdd.csv"}),
    ],
)
def test_a_shell_completes_installed_studies_where_no_file_matches(
    line: str,
    names: set[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert names <= set(completed(line, monkeypatch, capsys))
    (tmp_path / "studies-of-mine.toml").touch()
    assert names.isdisjoint(completed(line, monkeypatch, capsys)) or "pub" in line


def completed(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Words that the shell is offered, without files of the directory."""
    monkeypatch.setenv("_IOLAB_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    with pytest.raises(SystemExit) as end:
        run([])
    assert end.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    return [line.removeprefix("plain,") for line in lines if line.startswith("plain,")]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_what_their_shells_parse(
    shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "script"
    script.write_text(text_of(capsys, "completion", shell))
    assert f"_IOLAB_COMPLETE={shell}_complete" in script.read_text()
    if shutil.which(shell):
        done = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert re.match(
        r"iolab \d+\.\d+\.\d+(, commit [0-9a-f]{12}\+?)?, (no probe|probe \S+ \(sha256 [0-9a-f]{12}\))$",
        text_of(capsys, "--version").strip(),
    )


@pytest.mark.parametrize(
    "command",
    [["show"], ["compare"], ["check", "--rule", "read.iops >= -5 %"]],
    ids=lambda command: command[0],
)
def test_json_has_no_number_that_is_not_finite(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, results = tmp_path / "table.csv", str(tmp_path / "r")
    rows = [
        f"{variant},{load},read.iops,1000,1/s\n"
        for load in ("nan", "inf", "1.5")
        for variant in ("old", "new")
    ]
    table.write_text("".join(["variant,load,metric,value,unit\n", *rows]))
    assert run(["import", "--table", str(table), "-o", results]) == 0
    capsys.readouterr()
    run([command[0], results, *command[1:], "--format", "json"])

    def refuse(name: str) -> None:
        raise AssertionError(name)

    assert json.loads(capsys.readouterr().out, parse_constant=refuse)["schema"] == 1
