# SPDX-License-Identifier: Apache-2.0
"""What is on disk may rot: every changed, missing or additional file of results is noticed, and
caches are made anew."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from iolab.base.clock import SystemClock
from iolab.base.errors import ResultsError
from iolab.base.integrity import Finding, has_own_digest, with_own_digest
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.evidence.journal import FILE as JOURNAL
from iolab.studies.results.evidence.journal import read_journal
from iolab.studies.results.evidence.manifest import FILE as MANIFEST
from iolab.studies.results.evidence.manifest import Manifest, read_manifest, write_manifest
from iolab.studies.results.imports.table import import_table
from iolab.studies.results.imports.tree import import_tree
from iolab.studies.results.open.cache import FILE as OBSERVATIONS
from iolab.studies.results.open.cache import LIST
from iolab.studies.results.open.cache_details import HISTOGRAMS, SERIES
from iolab.studies.results.open.multi_host import Hosts, read_hosts, write_hosts
from iolab.studies.results.open.results import Results
from iolab.studies.results.open.verify import verify_results
from iolab.studies.run.resuming.journal import Journal
from support.fio_files import job, output

LAYOUT = "{variant}/rep{repetition:int}"
IOSTAT = "Device r/s w/s rkB/s wkB/s\nsda 1.0 2.0 4.0 8.0\n\nDevice r/s w/s rkB/s wkB/s\nsda 1.0 2.0 4.0 8.0\n"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for variant, iops in (("old", 1000.0), ("new", 1200.0)):
        for repetition in (1, 2):
            place = tmp_path / "tree" / variant / f"rep{repetition}"
            place.mkdir(parents=True)
            (place / "fio.json").write_text(output(job(jobs=1, iops=iops + repetition)))
            (place / "stderr.txt").write_text("words\n")
    import_tree(tmp_path / "tree", LAYOUT, tmp_path / "out")
    return tmp_path / "out"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def flip(path: Path, place: int | None = None) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if place is None else place] ^= 1
    path.write_bytes(data)


def without_caches(directory: Path) -> Results:
    for name in (LIST, OBSERVATIONS, SERIES, HISTOGRAMS):
        (directory / name).unlink(missing_ok=True)
    return Results(directory)


def findings(directory: Path) -> list[tuple[str, str]]:
    return [(each.path, each.kind) for each in verify_results(directory).findings]


def test_a_document_carries_its_own_digest() -> None:
    for text in (
        '{"a": 1}',
        json.dumps({"a": {"b": [1, 2]}}, indent=1),
        json.dumps({"é": "\x00"}, indent=2, ensure_ascii=False) + "\n",
    ):
        document = with_own_digest(text).encode()
        assert has_own_digest(document) is True
        assert {**json.loads(document), "sha256": ""} == {**json.loads(text), "sha256": ""}
        for place in range(len(document)):
            changed = document[:place] + bytes([document[place] ^ 1]) + document[place + 1 :]
            assert has_own_digest(changed) is not True
    assert has_own_digest(b'{"a": 1}') is None


def test_a_run_has_the_digests_of_its_files(results: Path) -> None:
    run_dir = next(run_directories(results))
    plan = read_plan(run_dir)
    assert plan.files is not None
    assert sorted(plan.files) == ["fio.json", "stderr.txt"]
    assert plan.files["fio.json"].sha256 == sha256(run_dir / "fio.json")
    assert verify_results(results).findings == ()
    checked = verify_results(results)
    assert (checked.kind, checked.unverified, checked.files) == ("results", 0, 4 * 3 + 1)
    Results(results)
    checked = verify_results(results)
    assert (checked.findings, checked.files) == ((), 4 * 3 + 1 + 4)
    assert checked.size_bytes == sum(
        path.stat().st_size for path in results.rglob("*") if path.is_file()
    )


def test_evidence_that_changed_costs_its_run_and_names_the_file(results: Path) -> None:
    first, second, *_ = run_directories(results)
    status = (first / "fio.json").stat()
    flip(first / "fio.json")
    os.utime(
        first / "fio.json", ns=(status.st_atime_ns, status.st_mtime_ns)
    )  # as a disk changes it
    flip(second / "stderr.txt")
    for opened in (without_caches(results), Results(results)):
        assert [run.verdict.level.value for run in opened.runs] == [
            "INVALID",
            "SUSPECT",
            "OK",
            "OK",
        ]
        assert [each.text for each in opened.runs[0].verdict.blames] == [
            "fio.json can't be used: its content changed after the run ended"
        ]
        assert [each.text for each in opened.runs[1].verdict.blames] == [
            "stderr.txt is not as the run left it: its content changed after the run ended"
        ]
        assert not any(name.startswith("write") for name in opened.runs[0].observations)
        assert (
            opened.runs[1].value("write.iops") == 1202.0
            if opened.runs[1].variant == "new"
            else 1002.0
        )
    assert findings(results) == [
        (f"runs/{first.name}/fio.json", "damaged"),
        (f"runs/{second.name}/stderr.txt", "damaged"),
    ]


def test_a_missing_and_an_additional_file_are_told(results: Path) -> None:
    first, second, *_ = run_directories(results)
    (first / "stderr.txt").unlink()
    (second / "another.json").write_text(output(job(jobs=1, iops=5000.0)))
    opened = Results(results)
    assert [run.verdict.level.value for run in opened.runs] == ["SUSPECT", "SUSPECT", "OK", "OK"]
    assert (
        opened.runs[0].verdict.blames[0].text
        == "stderr.txt is not as the run left it: it is missing"
    )
    assert (
        opened.runs[1].verdict.blames[0].text
        == "another.json is not as the run left it: it was not there when the run ended"
    )
    assert opened.runs[1].value("write.iops") != 5000.0
    assert findings(results) == [
        (f"runs/{first.name}/stderr.txt", "missing"),
        (f"runs/{second.name}/another.json", "unexpected"),
    ]
    (first / "fio.json").unlink()
    assert Results(results).runs[0].verdict.level.value == "INVALID"


def test_a_plan_that_changed_is_no_plan(results: Path) -> None:
    first = next(run_directories(results))
    Results(results)
    text = (first / "run.json").read_text()
    status = (first / "run.json").stat()
    (first / "run.json").write_text(text.replace('"repetition": 1', '"repetition": 2'))
    os.utime(first / "run.json", ns=(status.st_atime_ns, status.st_mtime_ns))
    run = Results(results).runs[0]
    assert (run.verdict.level.value, run.verdict.has("no-plan")) == ("INVALID", True)
    assert {"run.json", "digest"} <= set(run.verdict.blames[0].text.split())
    assert (f"runs/{first.name}/run.json", "damaged") in findings(results)


def test_results_of_an_older_version_are_read_as_before(results: Path) -> None:
    for run_dir in run_directories(results):
        data = json.loads((run_dir / "run.json").read_text())
        del data["files"], data["sha256"]
        (run_dir / "run.json").write_text(json.dumps(data | {"schema": 1}))
    manifest = json.loads((results / MANIFEST).read_text())
    del manifest["files"], manifest["sha256"]
    (results / MANIFEST).write_text(json.dumps(manifest | {"schema_version": 1}))
    assert {run.verdict.level.value for run in Results(results).runs} == {"OK"}
    checked = verify_results(results)
    assert (checked.findings, checked.unverified) == ((), 4 * 3 + 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", [OBSERVATIONS, SERIES, HISTOGRAMS, LIST])
def test_a_cache_that_changed_is_made_anew(name: str, results: Path) -> None:
    before = Results(results)
    written = {
        each: (results / each).read_bytes() for each in (OBSERVATIONS, SERIES, HISTOGRAMS, LIST)
    }
    size = len(written[name])
    for place in sorted({*range(0, size, max(1, size // 40)), *range(max(0, size - 12), size)}):
        flip(results / name, place)
        assert [(run.plan, run.verdict, run.observations) for run in Results(results).runs] == [
            (run.plan, run.verdict, run.observations) for run in before.runs
        ]
        assert {each: (results / each).read_bytes() for each in written} == written, (
            "it is not written anew"
        )
    flip(results / name)
    assert {each.is_derived for each in verify_results(results).findings} == {True}
    repaired = verify_results(results, repair=True).findings
    assert repaired
    assert all(each.is_repaired for each in repaired)
    assert verify_results(results).findings == ()


def test_a_cache_that_tells_of_other_runs_or_of_nonsense_is_not_believed(results: Path) -> None:
    Results(results)
    listed = json.loads((results / LIST).read_text())
    del listed["sha256"]
    changes: tuple[dict[str, Any], ...] = (
        {"files": 3},
        {"files": {OBSERVATIONS: "x"}},
        {"key": None},
        {"files": {}},
    )
    for wrong in changes:
        (results / LIST).write_text(with_own_digest(json.dumps(listed | wrong, indent=1)))
        assert {run.verdict.level.value for run in Results(results).runs} == {"OK"}
    (results / OBSERVATIONS).write_bytes(b"PAR1 no table")
    digest = f"{sha256(results / OBSERVATIONS)} {len(b'PAR1 no table')}"
    (results / LIST).write_text(
        with_own_digest(
            json.dumps(listed | {"files": {**listed["files"], OBSERVATIONS: digest}}, indent=1)
        )
    )
    assert {run.verdict.level.value for run in Results(results).runs} == {"OK"}


def test_a_stale_cache_is_a_finding_that_repair_mends(results: Path) -> None:
    Results(results)
    os.utime(next(run_directories(results)) / "stderr.txt", ns=(1, 1))
    assert verify_results(results).findings == (
        Finding(LIST, "stale", "evidence or iolab changed since", is_derived=True),
    )
    [mended] = verify_results(results, repair=True).findings
    assert mended.is_repaired
    assert verify_results(results).findings == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make directories of another user")
def test_nothing_is_written_into_a_directory_of_another_user(results: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    for name in (OBSERVATIONS, SERIES, HISTOGRAMS, LIST, f".{OBSERVATIONS}.{os.getpid()}"):
        (results / name).symlink_to(victim)
    os.chown(results, 12345, 12345)
    before = {path: path.lstat().st_mtime_ns for path in results.rglob("*")}
    assert {run.verdict.level.value for run in Results(results).runs} == {"OK"}
    verify_results(results, repair=True)
    assert {path: path.lstat().st_mtime_ns for path in results.rglob("*")} == before
    os.chown(results, os.geteuid(), os.getegid())
    Results(results)
    assert not (results / OBSERVATIONS).is_symlink()
    assert victim.read_text() == "kept"


def test_a_manifest_that_changed_is_refused(results: Path) -> None:
    whole = (results / MANIFEST).read_bytes()
    for place in range(0, len(whole), 7):
        flip(results / MANIFEST, place)
        with pytest.raises(ResultsError):
            Results(results)
        (results / MANIFEST).write_bytes(whole)
    flip(results / MANIFEST, whole.index(b"old"))
    with pytest.raises(ResultsError, match="its content is not what its digest is of"):
        read_manifest(results)
    assert (MANIFEST, "damaged") in findings(results)


def test_a_study_and_tables_are_among_the_digests_of_the_manifest(tmp_path: Path) -> None:
    table = "variant,numjobs,metric,value,unit\nmaster,1,write.iops,100,1/s\nproject,1,write.iops,120,1/s\n"
    (tmp_path / "t.csv").write_text(table)
    import_table(tmp_path / "t.csv", tmp_path / "out")
    assert len(Results(tmp_path / "out").runs) == 2
    copy = tmp_path / "out/tables/t.csv"
    copy.write_text(table.replace("120", "130"))
    with pytest.raises(ResultsError, match="is not as it was imported: its content changed"):
        Results(tmp_path / "out")
    assert findings(tmp_path / "out") == [("tables/t.csv", "damaged")]
    copy.rename(copy.with_name("other.csv"))
    with pytest.raises(ResultsError, match="is not as it was imported"):
        Results(tmp_path / "out")
    assert findings(tmp_path / "out") == [
        ("tables/other.csv", "unexpected"),
        ("tables/t.csv", "missing"),
    ]
    (tmp_path / "study").mkdir()
    (tmp_path / "study/study.toml").write_text("name = 'x'")
    write_manifest(tmp_path / "study", Manifest(name="x", origin="run", created_ns=0, iolab="0"))
    assert sorted(read_manifest(tmp_path / "study").files or ()) == ["study.toml"]


def test_hosts_that_changed_are_refused(results: Path, tmp_path: Path) -> None:
    both = tmp_path / "both"
    both.mkdir()
    shutil.copytree(results, both / "here")
    write_hosts(both, Hosts({"here": "local"}))
    assert read_hosts(both) == Hosts({"here": "local"}, [])
    assert verify_results(both).findings == ()
    flip(both / "hosts.json", (both / "hosts.json").read_bytes().index(b"local"))
    with pytest.raises(ResultsError, match="its content is not what its digest is of"):
        Results(both)
    assert findings(both) == [("hosts.json", "damaged")]


def test_every_changed_missing_or_moved_line_of_a_journal_is_told(tmp_path: Path) -> None:
    journal = Journal(tmp_path, SystemClock())
    journal.write_all(
        [("opened", {}), *(("planned", {"run": f"{number:04d}-aa"}) for number in range(1, 5))]
    )
    journal.write("closed")
    assert [event["event"] for event in read_journal(tmp_path)[0]] == [
        "opened",
        *["planned"] * 4,
        "closed",
    ]
    assert read_journal(tmp_path)[1] == []
    whole = (tmp_path / JOURNAL).read_bytes()
    for place in range(len(whole)):
        flip(tmp_path / JOURNAL, place)
        assert read_journal(tmp_path)[1], f"byte {place} changed in silence"
        (tmp_path / JOURNAL).write_bytes(whole)
    lines = whole.splitlines(keepends=True)
    for gone in range(len(lines) - 1):
        (tmp_path / JOURNAL).write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
        assert read_journal(tmp_path)[1] == [gone + 1]
    (tmp_path / JOURNAL).write_bytes(b"".join([lines[0], lines[2], lines[1], *lines[3:]]))
    assert read_journal(tmp_path)[1]


def test_a_line_of_a_journal_without_a_checksum_is_damaged(tmp_path: Path) -> None:
    Journal(tmp_path, SystemClock()).write("opened")
    with (tmp_path / JOURNAL).open("a") as file:
        file.write('{"event": "planned", "run": "0002-bb"}\n')
    events, wrong = read_journal(tmp_path)
    assert ([event["event"] for event in events], wrong) == (["opened"], [2])


def test_only_results_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="not a results directory"):
        verify_results(tmp_path)


def test_a_check_tells_how_far_it_is(results: Path) -> None:
    told: list[tuple[int, int]] = []
    checked = verify_results(results, progress=lambda done, of: told.append((done, of)))
    assert told == [(number, checked.files) for number in range(1, checked.files + 1)]
