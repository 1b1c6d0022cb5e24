# SPDX-License-Identifier: Apache-2.0
"""Foreign trees and published tables: what is taken, and what is said about what can't be."""

from __future__ import annotations

import contextlib
import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.errors import FormatError, ResultsError, UsageError
from iolab.base.verdict import Level
from iolab.formats.core.published_table import read_published_table
from iolab.studies.results.imports.layouts.layout import parse_layout
from iolab.studies.results.imports.table import import_table
from iolab.studies.results.imports.tree import import_tree
from iolab.studies.results.open import cache, cache_details
from iolab.studies.results.open.results import Results
from support.fio_files import iostat, job, output
from support.golden import Golden

LAYOUT = "{variant}/{disks:int}-{media}/fio-{numjobs:int}-jobs"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two variants x two disk counts x two loads, and a copy that is no run."""
    base = tmp_path / "tree"
    for variant, rate in (("master", 1000.0), ("project", 1500.0)):
        for disks in (1, 10):
            for jobs in (2, 4):
                run_dir = base / variant / f"{disks}-hdd" / f"fio-{jobs}-jobs"
                run_dir.mkdir(parents=True)
                (run_dir / "fio.json").write_text(output(job(jobs=jobs, iops=rate * jobs)))
                (run_dir / "iostat-sdb.txt").write_text(iostat([(800.0, 50.0)] * 10))
    copy = base / "master" / "1-hdd" / "results" / "fio-2-jobs"
    copy.mkdir(parents=True)
    shutil.copy(base / "master/1-hdd/fio-2-jobs/fio.json", copy)
    return base


def test_a_tree_becomes_results(tree: Path, tmp_path: Path) -> None:
    found = import_tree(tree, LAYOUT, tmp_path / "out")
    results = Results(tmp_path / "out")
    assert (found.runs, found.unmatched_files) == (8, ("master/1-hdd/results/fio-2-jobs/fio.json",))
    assert {run.verdict.level for run in results.runs} == {Level.OK}
    assert results.manifest.variants == ["master", "project"]
    assert [run.factors for run in results.runs[:3]] == [
        {"disks": 1, "media": "hdd", "numjobs": 2},
        {"disks": 1, "media": "hdd", "numjobs": 4},
        {"disks": 10, "media": "hdd", "numjobs": 2},
    ]
    assert results.runs[0].value("write.iops") == 2000.0
    copied = results.path / "runs" / results.runs[0].id / "fio.json"
    assert copied.read_bytes() == (tree / "master/1-hdd/fio-2-jobs/fio.json").read_bytes()


def test_links_leave_the_files_where_they_are(tree: Path, tmp_path: Path) -> None:
    import_tree(tree, LAYOUT, tmp_path / "out", link=True)
    linked = next((tmp_path / "out" / "runs").glob("*/fio.json"))
    assert linked.is_symlink()
    assert linked.resolve().is_relative_to(tree)


def test_an_archive_with_one_top_folder(tree: Path, tmp_path: Path) -> None:
    archive = tmp_path / "tree.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(tree, "some-study")
    assert import_tree(archive, LAYOUT, tmp_path / "out").runs == 8
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_an_archive_cannot_write_outside_the_results(tree: Path, tmp_path: Path) -> None:
    archive = tmp_path / "evil.tar"
    inside = tree / "master/1-hdd/fio-2-jobs/fio.json"
    with tarfile.open(archive, "w") as file:
        file.add(inside, "master/1-hdd/fio-2-jobs/fio.json")
        file.add(inside, "../outside/1-hdd/fio-2-jobs/fio.json")
        file.add(inside, str(tmp_path / "absolute/1-hdd/fio-2-jobs/fio.json"))
    (tmp_path / "below").mkdir()
    assert import_tree(archive, LAYOUT, tmp_path / "below" / "out").runs >= 1
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "below" / "outside").exists()
    assert not (tmp_path / "absolute").exists()


def test_an_archive_that_matches_nothing_shows_one_of_its_paths(tree: Path, tmp_path: Path) -> None:
    archive = tmp_path / "tree.tar"
    with tarfile.open(archive, "w") as file:
        file.add(tree, "study")
    with pytest.raises(
        UsageError,
        match=r"a path at that depth is '(master|project)/\d+-hdd'.*--layout '.*' would match",
    ):
        import_tree(archive, "{variant}/nothing", tmp_path / "out")


def test_single_files_can_be_runs(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for jobs in (1, 2):
        (tmp_path / "tree" / f"randwrite-{jobs}.json").write_text(output(job(jobs=jobs)))
    import_tree(tmp_path / "tree", "{rw}-{numjobs:int}.json", tmp_path / "out")
    assert [run.factors["numjobs"] for run in Results(tmp_path / "out").runs] == [1, 2]


def test_a_damaged_file_costs_that_run_and_no_other(tree: Path, tmp_path: Path) -> None:
    damaged = tree / "project/1-hdd/fio-4-jobs/fio.json"
    damaged.write_text(damaged.read_text()[:500])
    (tree / "project/1-hdd/fio-2-jobs/fio.json").write_text("")
    (tree / "project/10-hdd/fio-2-jobs/fio.json").unlink()
    found = import_tree(tree, LAYOUT, tmp_path / "out")
    runs = Results(tmp_path / "out").runs
    invalid = {
        (run.factors["disks"], run.factors["numjobs"])
        for run in runs
        if run.verdict.level is Level.INVALID
    }
    assert (len(runs), invalid, found.empty) == (
        7,
        {(1, 4), (1, 2)},
        ("project/10-hdd/fio-2-jobs",),
    )
    assert found.files["damaged"] == [
        "project/1-hdd/fio-2-jobs/fio.json",
        "project/1-hdd/fio-4-jobs/fio.json",
    ]
    assert "project/10-hdd/fio-2-jobs/iostat-sdb.txt" in found.files["unattached"]


def test_another_fio_version_is_drift(tree: Path, tmp_path: Path) -> None:
    odd = tree / "project/10-hdd/fio-4-jobs/fio.json"
    odd.write_text(odd.read_text().replace("fio-3.33", "fio-3.41"))
    import_tree(tree, LAYOUT, tmp_path / "out")
    results = Results(tmp_path / "out")
    suspect = [run for run in results.runs if run.verdict.level is Level.SUSPECT]
    assert [(run.variant, run.factors["disks"], run.factors["numjobs"]) for run in suspect] == [
        ("project", 10, 4)
    ]
    assert (
        "fio was 'fio-3.33' in the first run and is 'fio-3.41' here"
        in suspect[0].verdict.blames[0].text
    )


@pytest.mark.parametrize(
    "layout",
    [
        "{variant}/nothing",
        "{variant/x",
        "{variant}/{disks:number}",
        "{variant}/{variant}",
        "{a b}",
        "",
    ],
)
def test_a_layout_that_is_wrong_or_matches_nothing(
    tree: Path, tmp_path: Path, layout: str, golden: Golden
) -> None:
    with pytest.raises(UsageError) as caught:
        import_tree(tree, layout, tmp_path / "out")
    golden("import/layout", str(caught.value))
    assert not (tmp_path / "out").exists()


def test_a_taken_output_is_left_alone(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x")
    with pytest.raises(ResultsError, match="exists already"):
        import_tree(tree, LAYOUT, tmp_path / "out")
    assert (tmp_path / "out" / "precious").read_text() == "x"


@pytest.mark.parametrize("content", [b"", b"no archive", b"\xfd7zXZ\x00cut"])
def test_what_is_no_tree(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(
        FormatError, match=r"neither a fio result nor a directory|archive is damaged"
    ):
        import_tree(tmp_path / "file", LAYOUT, tmp_path / "out")
    with pytest.raises(UsageError, match="no such file"):
        import_tree(tmp_path / "absent", LAYOUT, tmp_path / "out")


@given(st.text(max_size=40))
def test_any_text_is_a_layout_or_a_usage_error(text: str) -> None:
    try:
        layout = parse_layout(text)
    except UsageError:
        return
    layout.match("some/path/fio-4-jobs")


def test_the_cache_is_renewed_when_evidence_changes(tree: Path, tmp_path: Path) -> None:
    import_tree(tree, LAYOUT, tmp_path / "out")
    first = Results(tmp_path / "out")
    again = Results(tmp_path / "out")
    assert [(run.plan, run.verdict, run.observations) for run in again.runs] == [
        (run.plan, run.verdict, run.observations) for run in first.runs
    ]
    changed = tmp_path / "out" / "runs" / first.runs[0].id / "fio.json"
    before = changed.read_bytes()
    changed.write_text(output(job(jobs=2, iops=5000.0)))
    for damaged in (Results(tmp_path / "out"), Results(tmp_path / "out")):
        assert damaged.runs[0].value("write.iops") is None
        [reason] = [each for each in damaged.runs[0].verdict.reasons if each.code == "damaged-file"]
        assert reason.text == "fio.json can't be used: its content changed after the run ended"
    changed.write_bytes(before)
    assert Results(tmp_path / "out").runs[0].observations == first.runs[0].observations
    (tmp_path / "out" / cache.FILE).write_bytes(b"PAR1 damaged")
    assert Results(tmp_path / "out").runs[0].observations == first.runs[0].observations


def test_series_and_histograms_come_from_the_cache_as_from_the_evidence(
    tree: Path, tmp_path: Path
) -> None:
    binned = tree / "master/1-hdd/fio-2-jobs/fio.json"
    document = json.loads(binned.read_text())
    document["jobs"][0]["write"]["clat_ns"]["bins"] = {"1003520": 30, "1019904": 70}
    binned.write_text(json.dumps(document))
    import_tree(tree, LAYOUT, tmp_path / "out")
    first = Results(tmp_path / "out")
    again = Results(tmp_path / "out")
    assert again._cached_details
    for run in first.runs:
        for fresh, kept in zip(first.series(run.id), again.series(run.id), strict=True):
            assert (fresh.name, fresh.unit) == (kept.name, kept.unit)
            assert np.array_equal(fresh.time, kept.time)
            assert np.array_equal(fresh.values, kept.values)
    histogram = again.histograms(first.runs[0].id)[0]
    assert (histogram.name, histogram.bits, int(histogram.counts.sum())) == ("write.clat", 6, 100)
    (tmp_path / "out" / cache_details.SERIES).write_bytes(b"PAR1 damaged")
    assert [one.name for one in Results(tmp_path / "out").series(first.runs[0].id)] == [
        one.name for one in first.series(first.runs[0].id)
    ]


def test_observations_as_a_table(tree: Path, tmp_path: Path) -> None:
    import_tree(tree, LAYOUT, tmp_path / "out")
    table = Results(tmp_path / "out").observations()
    assert {
        "run",
        "variant",
        "factor.disks",
        "factor.media",
        "metric",
        "value",
        "unit",
        "verdict",
    } <= set(table.column_names)
    assert str(table.schema.field("factor.disks").type) == "int64"
    assert table.num_rows > 100


TABLE = (
    "variant,numjobs,metric,value,unit\nmaster,1,write.iops,100,1/s\nproject,1,write.iops,120,1/s\n"
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("unit\n", "units\n"),
        (",1/s\nproject", ",\nproject"),
        ("1/s\nproject", "furlong\nproject"),
        ("1/s\nproject", "ms\nproject"),
        ("120", "fast"),
        ("120", "nan"),
        ("project,1,", "project,"),
        ("project", "master"),
        ("project", ""),
        (TABLE, ""),
        (TABLE, "variant,numjobs,metric,value,unit\n"),
    ],
)
def test_a_wrong_table_is_told_by_line(old: str, new: str, golden: Golden) -> None:
    with pytest.raises(FormatError) as caught:
        read_published_table(TABLE.replace(old, new, 1).encode(), "t.csv")
    assert str(caught.value).startswith("t.csv")
    golden("import/table", str(caught.value))


@given(st.binary(max_size=200) | st.integers(0, len(TABLE)).map(lambda cut: TABLE[:cut].encode()))
def test_any_bytes_are_a_table_or_a_format_error(data: bytes) -> None:
    with contextlib.suppress(FormatError):
        read_published_table(data, "t.csv")


def test_published_cells_stay_unjudged(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("# from somewhere\n" + TABLE)
    assert import_table(tmp_path / "t.csv", tmp_path / "out") == 2
    results = Results(tmp_path / "out")
    assert results.manifest.description == "from somewhere"
    assert [run.verdict.level for run in results.runs] == [Level.UNJUDGED] * 2
    observation = results.runs[1].observations["write.iops"]
    assert (observation.source_file, observation.source_field, observation.source_unit) == (
        "tables/t.csv",
        "line 4",
        "1/s",
    )


@pytest.mark.parametrize(
    "manifest",
    ["", "[]", "{}", '{"schema_version": 99}', '{"schema_version": 1, "origin": "moon"}'],
)
def test_a_damaged_manifest(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(ResultsError, match=r"manifest\.json"):
        Results(tmp_path)


def test_a_run_without_a_plan_is_shown_and_counts_for_nothing(tree: Path, tmp_path: Path) -> None:
    import_tree(tree, LAYOUT, tmp_path / "out")
    victim = next((tmp_path / "out" / "runs").iterdir())
    (victim / "run.json").write_text('{"schema": 1, "run"')
    runs = Results(tmp_path / "out").runs
    assert len(runs) == 8
    assert [run.verdict.level for run in runs if run.id == victim.name] == [Level.INVALID]
