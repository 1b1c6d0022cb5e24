# SPDX-License-Identifier: Apache-2.0
"""Trees of fio results as people keep them: every measurement a run, every file accounted for, no
repetition that is none."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from iolab.base.errors import FormatError, ResultsError, UsageError
from iolab.base.verdict import Level
from iolab.studies.compare.compare import compare
from iolab.studies.results.imports.account import account
from iolab.studies.results.imports.tree import import_files, import_tree
from iolab.studies.results.open.results import Results
from support.fio_files import iostat, job, output
from support.fio_texts import HEADER, STATUS, report
from support.imported_trees import check_account, import_results, put_result


def _runs(results: Results) -> list[tuple[object, ...]]:
    return sorted(
        (
            run.variant,
            *map(str, run.factors.items()),
            run.plan.repetition,
            run.verdict.level.value,
            run.value("write.iops"),
        )
        for run in results.runs
    )


# --- no layout is needed


def test_bench_fio_leaves_all_in_one_folder(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for number, (rw, depth) in enumerate(itertools.product(("randwrite", "write"), (1, 8))):
        prefix = f"{rw}-iodepth-{depth}-numjobs-1"
        put_result(
            tree / "ssd" / f"{rw}-{depth}-1.json",
            seed=number,
            rw=rw,
            iodepth=str(depth),
            numjobs="1",
            write_bw_log=prefix,
        )
        for kind in ("bw", "lat"):
            (tree / "ssd" / f"{prefix}_{kind}.1.log").write_text(
                "".join(f"{ms}, 100, 1, 4096\n" for ms in range(1000, 11000, 1000))
            )
    (tree / "ssd" / "README.md").write_text("about\n")
    found, results = import_results(tree, tmp_path / "out")
    assert found.layouts == ("{rw}-{iodepth:int}-1.json",)
    assert (len(found.files["results"]), len(found.files["evidence"]), found.files["unknown"]) == (
        4,
        8,
        ["README.md"],
    )
    for run in results.runs:
        names = {path.name for path in run.evidence.iterdir()}
        prefix = f"{run.factors['rw']}-iodepth-{run.factors['iodepth']}-numjobs-1"
        assert names == {
            "run.json",
            f"{run.factors['rw']}-{run.factors['iodepth']}-1.json",
            f"{prefix}_bw.1.log",
            f"{prefix}_lat.1.log",
        }


def test_logs_join_by_the_words_of_their_names_where_nothing_is_echoed(tmp_path: Path) -> None:
    for depth in (1, 8):
        put_result(
            tmp_path / "tree" / f"randwrite-{depth}-2.json",
            seed=depth,
            rw="randwrite",
            iodepth=str(depth),
        )
        (tmp_path / "tree" / f"randwrite-iodepth-{depth}-numjobs-2_bw.1.log").write_text(
            "1000, 100, 1, 4096\n"
        )
    found, results = import_results(tmp_path / "tree", tmp_path / "out")
    assert len(found.files["evidence"]) == 2
    for run in results.runs:
        assert (
            run.evidence / f"randwrite-iodepth-{run.factors['iodepth']}-numjobs-2_bw.1.log"
        ).exists()


def test_an_inferred_layout_repeated_gives_the_same(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for number, (device, rw, depth) in enumerate(
        itertools.product(("disk-a", "disk-b"), ("randwrite", "write"), (1, 8))
    ):
        put_result(
            tree / device / f"{rw}-iodepth-{depth}.json", seed=number, rw=rw, iodepth=str(depth)
        )
    put_result(tree / "other" / "deep" / "er" / "fio.json", seed=99)
    inferred, first = import_results(tree, tmp_path / "first")
    assert len(inferred.layouts) > 1
    again, second = import_results(tree, tmp_path / "second", inferred.layouts)
    assert (inferred.is_inferred, again.is_inferred) == (True, False)
    assert [run.plan for run in first.runs] == [run.plan for run in second.runs]
    assert (dict(inferred.files), inferred.runs) == (dict(again.files), again.runs)
    assert first.manifest.layout == list(inferred.layouts)


def test_trees_of_two_shapes_are_compared_cell_by_cell(tmp_path: Path) -> None:
    """One names numjobs in its paths, the other leaves it to fio's options and sorts its files into
    folders."""
    tree = tmp_path / "tree"
    for number, (rw, depth) in enumerate(itertools.product(("randwrite", "write"), (1, 8))):
        folder = "random" if rw == "randwrite" else "sequential"
        put_result(
            tree / "old" / folder / f"{rw}-{depth}-1.json",
            seed=number,
            rw=rw,
            iodepth=str(depth),
            numjobs="1",
        )
        for jobs in (1, 4):
            put_result(
                tree / "new" / f"{rw}-{depth}-{jobs}.json",
                seed=100 + 10 * number + jobs,
                jobs=jobs,
                rw=rw,
                iodepth=str(depth),
                numjobs=str(jobs),
            )
    found, results = import_results(tree, tmp_path / "out")
    assert len(found.layouts) == 2
    assert {name for run in results.runs for name in run.factors} == {"rw", "iodepth", "numjobs"}
    cells = [
        {tuple(sorted(run.factors.items())) for run in results.runs if run.variant == variant}
        for variant in ("old", "new")
    ]
    assert cells[0] < cells[1]
    assert any(
        note == "numjobs of 4 runs is taken from fio's options: the path doesn't name it"
        for note in found.notes
    )
    assert any("folder2 is not a factor" in note for note in found.notes)
    _, again = import_results(tree, tmp_path / "again", found.layouts)
    assert _runs(again) == _runs(results)


def test_fio_decides_between_layouts_and_a_given_one_that_contradicts_it_is_noted(
    tmp_path: Path,
) -> None:
    tree = tmp_path / "tree"
    for number, (depth, jobs) in enumerate(itertools.product((1, 8), (2, 4))):
        put_result(
            tree / f"x{depth}-{jobs}.json",
            seed=number,
            jobs=jobs,
            iodepth=str(depth),
            numjobs=str(jobs),
        )
    layouts = ["x{numjobs:int}-{iodepth:int}.json", "x{iodepth:int}-{numjobs:int}.json"]
    _, results = import_results(tree, tmp_path / "both", layouts)
    found, wrong = import_results(tree, tmp_path / "wrong", layouts[0])
    for run in results.runs:
        assert run.factors["iodepth"] == int(run.options["iodepth"])
        assert run.factors["numjobs"] == int(run.options["numjobs"])
    assert sorted((run.factors["numjobs"], run.factors["iodepth"]) for run in wrong.runs) == [
        (1, 2),
        (1, 4),
        (8, 2),
        (8, 4),
    ]
    assert sum("contradicts" in note for note in found.notes) == 2


def test_a_tree_without_a_result_names_the_command_for_what_it_has(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "iostat.txt").write_text(iostat([(800.0, 50.0)] * 10))
    with pytest.raises(UsageError) as of_readings:
        import_tree(tree, None, tmp_path / "out")
    assert "iostat.txt" in str(of_readings.value)
    (tree / "slow.txt").write_text(
        "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n"
        + "".join(f"0.{number:06} fio 7 sda W {8 * number} 4096 1.20\n" for number in range(9))
    )
    with pytest.raises(UsageError) as of_a_trace:
        import_tree(tree, None, tmp_path / "out")
    assert f"iolab import {tree / 'slow.txt'} -o DIR" in str(of_a_trace.value.hint)


def test_folders_without_a_result_and_the_root_are_no_runs(tmp_path: Path) -> None:
    for variant in ("before", "after"):
        put_result(tmp_path / "tree" / variant / "fio.json", seed=len(variant))
    (tmp_path / "tree" / "docs").mkdir()
    (tmp_path / "tree" / "docs" / "notes.txt").write_text("hello\n")
    (tmp_path / "tree" / "summary.txt").write_text("hello\n")
    found, results = import_results(tmp_path / "tree", tmp_path / "out", "{variant}")
    assert sorted(run.variant for run in results.runs) == ["after", "before"]
    assert found.empty == ("docs",)
    check_account(found, tmp_path / "tree")


def test_baselines_are_known_by_their_names(tmp_path: Path) -> None:
    for number, variant in enumerate(("after", "before", "later")):
        put_result(tmp_path / "tree" / variant / "fio.json", seed=number)
    assert import_results(tmp_path / "tree", tmp_path / "out")[1].baseline == "before"


# --- nothing vanishes


def test_what_no_layout_matches_is_counted_with_the_layout_that_would(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for number, (variant, jobs) in enumerate(itertools.product(("old", "new"), (1, 2))):
        put_result(tree / variant / f"{jobs}jobs" / "fio.json", seed=number, jobs=jobs)
        put_result(
            tree / "more" / variant / f"{jobs}jobs" / "result.out", seed=10 + number, jobs=jobs
        )
    (tree / "more" / "new" / "2jobs" / "iostat.txt").write_text(iostat([(800.0, 50.0)] * 10))
    found, results = import_results(tree, tmp_path / "out", "{variant}/{numjobs:int}jobs")
    assert (found.runs, len(found.unmatched_files)) == (4, 4)
    assert found.files["beside-others"] == ["more/new/2jobs/iostat.txt"]
    check_account(found, tree)
    assert results.manifest.imported == account(found)
    _, rest = import_results(tree, tmp_path / "rest", found.suggestions)
    assert len(rest.runs) == 4


def test_files_of_others_next_to_a_result_cost_nothing(tmp_path: Path) -> None:
    """Output of other tools, an iostat that printed nothing, a list of devices, a script."""
    tree = tmp_path / "tree"
    for place in ("a", "b"):
        put_result(tree / place / "fio.json", seed=ord(place))
    texts = {
        "a/iostat.txt": "Linux 5.10.0 (box) \t01/02/24 \t_x86_64_\t(8 CPU)\n\n",
        "a/devices.json": "sda\nsdb\n",
        "a/job.fio": "[job]\nrw=write\n",
        "a/plot.py": 'for job in data[\'jobs\']:\n    print(job["jobname"], {"jobname": 1})\n',
        "a/other/compile-output.json": "hello\nworld\n",
        "a/other/tool-output.json": 'hello\n{"a": 3}\n',
        "a/logs/job_bw.1.log": "1000, 100, 1, 4096\n",
        **{f"a/src/{number}.c": "int x;\n" for number in range(199)},
        **{f"b/{number}.c": "int x;\n" for number in range(199)},
    }
    for path, text in texts.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    found, results = import_results(tree, tmp_path / "out")
    assert found.runs == 2
    assert {run.verdict.level for run in results.runs} == {Level.OK}
    kept = ["a/devices.json", "a/iostat.txt", "a/job.fio", "a/logs/job_bw.1.log", "a/plot.py"]
    assert sorted(found.files["evidence"]) == kept
    assert found.layouts == ("{variant}",)
    check_account(found, tree)


def test_a_file_that_is_empty_or_without_jobs_costs_its_run_alone(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for depth in (1, 2, 4, 8):
        put_result(tree / f"randwrite-{depth}.json", seed=depth, rw="randwrite", iodepth=str(depth))
    (tree / "randwrite-2.json").write_text("")
    (tree / "randwrite-4.json").write_text(json.dumps({"fio version": "fio-3.33", "jobs": []}))
    (tree / "randwrite-16.json").write_text(
        json.dumps({"fio version": "fio-3.33", "client_stats": [{"jobname": "All clients"}]})
    )
    found, results = import_results(tree, tmp_path / "out")
    assert len(results.runs) == 5
    assert (
        found.files["damaged"] == ["randwrite-16.json", "randwrite-2.json", "randwrite-4.json"]
        or len(found.files["damaged"]) == 3
    )
    bad = {
        run.factors["iodepth"]: run.verdict
        for run in results.runs
        if run.verdict.level is Level.INVALID
    }
    assert sorted(bad) == [2, 4, 16]
    for depth, verdict in bad.items():
        assert f"randwrite-{depth}.json" in " ".join(reason.text for reason in verdict.reasons)


def test_nothing_but_damage_is_a_run_that_is_invalid(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "fio.json").write_text("")
    found, results = import_results(tmp_path / "tree", tmp_path / "out")
    assert (found.runs, [run.verdict.level for run in results.runs]) == (1, [Level.INVALID])


def test_a_failed_import_leaves_nothing_that_blocks_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_result(tmp_path / "tree" / "fio.json")
    with monkeypatch.context() as patched:
        patched.setattr("iolab.studies.results.imports.tree.write_manifest", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            import_tree(tmp_path / "tree", None, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tree"]
    assert import_tree(tmp_path / "tree", None, tmp_path / "out").runs == 1


def test_normal_output_of_fio_is_a_result(tmp_path: Path) -> None:
    for variant, ios in (("a", 80_000), ("b", 90_000)):
        (tmp_path / "tree" / variant).mkdir(parents=True)
        (tmp_path / "tree" / variant / "out.txt").write_text(HEADER + report(ios=ios) + STATUS)
    imported, results = import_results(tmp_path / "tree", tmp_path / "out", None)
    assert imported.runs == 2
    assert {run.variant: run.value("read.iops") for run in results.runs} == {"a": 8000, "b": 9000}
    assert {run.verdict.level.value for run in results.runs} == {"OK"}


# --- repetitions


def test_jobs_of_other_names_are_other_measurements_where_nothing_is_echoed(tmp_path: Path) -> None:
    for number, (variant, name) in enumerate(itertools.product(("a", "b"), ("seq", "rand"))):
        place = tmp_path / "tree" / variant / f"{number % 2}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(output(job(name=name, iops=1000.0 + number)), "utf-8")
    _, results = import_results(tmp_path / "tree", tmp_path / "out", "{variant}/*.json")
    assert {run.factors["section"] for run in results.runs} == {"seq", "rand"}


def test_logs_that_fio_compressed_are_named(tmp_path: Path) -> None:
    put_result(tmp_path / "tree" / "a" / "fio.json", seed=1)
    (tmp_path / "tree" / "a" / "x_lat.1.log.fz").write_bytes(b"\0\1")
    found, _ = import_results(tmp_path / "tree", tmp_path / "out")
    assert [
        note
        for note in found.notes
        if "log_store_compressed" in note and "of x_lat.1.log.fz" in note
    ]


def test_a_copy_is_no_repetition(tmp_path: Path) -> None:
    for repetition in (1, 2):
        put_result(tmp_path / "tree" / "a" / f"{repetition}.json", seed=repetition)
    again = json.loads((tmp_path / "tree" / "a" / "2.json").read_text())
    (tmp_path / "tree" / "a" / "3.json").write_text(f"some text\n{json.dumps(again, indent=7)}")
    put_result(tmp_path / "tree" / "b" / "1.json", seed=7)
    found, results = import_results(tmp_path / "tree", tmp_path / "out")
    assert (len(results.runs), found.files["copies"]) == (3, ["a/3.json"])
    assert any("a/3.json of a/2.json" in note for note in found.notes)
    asked, results = import_results(
        tmp_path / "tree", tmp_path / "asked", "{variant}/{repetition}.json"
    )
    assert (len(results.runs), asked.files["copies"]) == (3, ["a/3.json"])


# --- sections


def _sections(place: Path, *names: str, rate: float = 1000.0) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    entries = [
        job(name=name, group=group, iops=rate * (group + 1), jobs=1)
        | {"elapsed": 10 * len(names) + 1}
        for group, name in enumerate(names)
    ]
    place.write_text(output(*entries), "utf-8")


def test_each_section_is_a_run_and_the_file_is_written_once(tmp_path: Path) -> None:
    _sections(tmp_path / "tree" / "a" / "fio.json", "seq", "rand", "mixed")
    found, results = import_results(tmp_path / "tree", tmp_path / "out")
    assert [(run.factors["section"], run.value("write.iops")) for run in results.runs] == [
        ("seq", 1000.0),
        ("rand", 2000.0),
        ("mixed", 3000.0),
    ]
    assert len({(run.evidence / "fio.json").stat().st_ino for run in results.runs}) == 1
    assert (found.runs, len(found.files["results"])) == (3, 1)


def test_a_result_alone_has_a_run_for_each_section(tmp_path: Path) -> None:
    _sections(tmp_path / "fio.json", "seq", "rand")
    _, results = import_results(tmp_path / "fio.json", tmp_path / "out")
    assert [run.factors["section"] for run in results.runs] == ["seq", "rand"]


def test_files_alone_are_compared_section_by_section(tmp_path: Path) -> None:
    _sections(tmp_path / "x" / "before.json", "seq", "rand")
    _sections(tmp_path / "y" / "after.json", "rand", "seq", rate=1500.0)
    import_files(
        [tmp_path / "x" / "before.json", tmp_path / "y" / "after.json"], tmp_path / "out", link=True
    )
    results = Results(tmp_path / "out")
    assert results.manifest.variants == ["before", "after"]
    assert results.baseline == "before"
    comparison = compare(results.runs, "write.iops", baseline="before")
    changes = {cell.row: cell.change.value for cell in comparison.cells if cell.change is not None}
    assert changes == {("seq",): pytest.approx(2.0), ("rand",): pytest.approx(-0.25)}
    assert any(warning.code == "one-block" for warning in comparison.warnings)


def test_files_of_equal_names_have_different_variants(tmp_path: Path) -> None:
    for folder in ("x/one", "y/one"):
        put_result(tmp_path / folder / "fio.json", seed=len(folder))
    files = [tmp_path / "x/one/fio.json", tmp_path / "y/one/fio.json", tmp_path / "y/one/fio.json"]
    import_files(files, tmp_path / "out")
    assert Results(tmp_path / "out").manifest.variants == [
        "x-one-fio",
        "y-one-fio",
        "y-one-fio (2)",
    ]
    (tmp_path / "notes.txt").write_text("hello\n")
    with pytest.raises(FormatError, match="is not a fio result"):
        import_files([files[0], tmp_path / "notes.txt"], tmp_path / "more")
    with pytest.raises(ResultsError):
        import_files(files, tmp_path / "out")


# --- the archives of others


@pytest.mark.slow
def test_the_foreign_archive_whole(foreign_archive: Path, tmp_path: Path) -> None:
    found, results = import_results(foreign_archive, tmp_path / "out")
    assert sum(map(len, found.files.values())) == 283
    assert not found.skipped
    assert len(found.files["results"]) == 129
    assert "unmatched" not in found.files
    assert "damaged" not in found.files
    of_sections = [run for run in results.runs if run.variant == "sections-old-fio"]
    assert len(of_sections) == 5
    assert len({run.factors["section"] for run in of_sections}) == 5
    plots = [run for run in results.runs if run.variant == "fio-plot-tree"]
    assert len(plots) == 126
    assert len({(run.variant, *map(str, run.factors.items())) for run in results.runs}) == len(
        results.runs
    )
    assert not [run.id for run in plots if run.verdict.level is Level.INVALID]
    logs = [run for run in plots if run.factors["folder2"] == "FLOPPY"]
    assert all(len(list(run.evidence.glob("*.log"))) == 5 for run in logs)
    again, second = import_results(foreign_archive, tmp_path / "again", found.layouts)
    assert [run.plan for run in results.runs] == [run.plan for run in second.runs]
    assert dict(again.files) == dict(found.files)


@pytest.mark.slow
def test_the_published_study_without_a_layout(zol_archive: Path, tmp_path: Path) -> None:
    found, results = import_results(zol_archive, tmp_path / "out")
    assert found.layouts == (
        "{rate_submit}-rate-submit/{variant}/{disks:int}-{media}/fio-{numjobs:int}-jobs",
    )
    assert (found.runs, len(found.unmatched_files)) == (352, 88)
    assert all("/results/" in path for path in found.unmatched_files)
    assert found.suggestions == (
        "{rate_submit}-rate-submit/{variant}/{disks:int}-ssd/results/fio-{numjobs:int}-jobs",
    )
    assert {tuple(run.factors) for run in results.runs} == {
        ("rate_submit", "disks", "media", "numjobs")
    }
    assert results.baseline == "master"


def test_what_is_no_result_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    with pytest.raises(FormatError, match="neither a fio result nor"):
        import_tree(tmp_path / "notes.txt", None, tmp_path / "out")
    (tmp_path / "tree").mkdir()
    with pytest.raises(UsageError, match="0 files looked at"):
        import_tree(tmp_path / "tree", None, tmp_path / "out")


def test_each_variant_of_an_imported_tree_has_an_environment_of_its_own(tmp_path: Path) -> None:
    versions = [("old", "fio-3.1")] * 2 + [("new", "fio-3.37")] * 2 + [("new", "fio-3.38")]
    for number, (variant, version) in enumerate(versions):
        place = tmp_path / "tree" / variant / str(number) / "fio.json"
        put_result(place, seed=number)
        place.write_text(json.dumps({**json.loads(place.read_text()), "fio version": version}))
    _, results = import_results(
        tmp_path / "tree", tmp_path / "out", "{variant}/{repetition}/fio.json"
    )
    found = [
        (
            run.variant,
            run.environment["fio"],
            [reason.text for reason in run.verdict.reasons if reason.code == "environment-drift"],
        )
        for run in results.runs
    ]
    assert sorted(found) == [
        ("new", "fio-3.37", []),
        ("new", "fio-3.37", []),
        ("new", "fio-3.38", ["fio was 'fio-3.37' in the first run and is 'fio-3.38' here"]),
        ("old", "fio-3.1", []),
        ("old", "fio-3.1", []),
    ]
    warnings = [each.text for each in compare(results.runs, "write.iops", baseline="old").warnings]
    assert any(
        "fio of the host differs between runs (fio-3.1, fio-3.37, fio-3.38)" in text
        for text in warnings
    ), warnings
