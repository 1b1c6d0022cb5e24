# SPDX-License-Identifier: Apache-2.0
"""Going on with a study: nothing lost, nothing twice. No time passes."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import IolabError, ResultsError, RunError, StudyError, UsageError
from iolab.hosts.kinds.fake import FakeHost
from iolab.studies.plan.adapt import Changes
from iolab.studies.results.evidence.files import read_plan, run_directories, write_plan
from iolab.studies.results.evidence.journal import read_journal
from iolab.studies.results.evidence.manifest import Manifest, read_manifest, write_manifest
from iolab.studies.run import execute
from iolab.studies.run.resuming.interrupts import Interrupts
from support.acting import Listener, study_text
from support.resuming import Do, agreed, names, stop_after


def test_what_is_missing_is_done_in_the_same_order_under_the_same_names(
    do: Do, host: FakeHost, heard: Listener, tmp_path: Path
) -> None:
    whole = names(do(output=tmp_path / "whole"))
    heard.runs.clear()
    out = do(interrupts=stop_after(3, host))
    assert names(out) == whole[:3]
    before = {
        path: path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and "runs" in path.parts
    }
    do(resume=True)
    assert names(out) == whole
    assert [number for number, _, _ in heard.runs] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert all(path.read_bytes() == data for path, data in before.items())
    agreed(out)
    assert "resumed: 3 of 8 runs exist, 5 remain" in heard.notes
    assert heard.end is not None
    assert (heard.end.finished, heard.end.failed, heard.end.remaining) == (8, 0, 0)
    kinds = [event["event"] for event in read_journal(out)[0]]
    assert (kinds.count("planned"), kinds.count("resumed"), kinds[-1]) == (8, 1, "closed")


def test_a_resumed_study_keeps_the_name_of_its_file(
    do: Do, study: Path, host: FakeHost, heard: Listener
) -> None:
    text = study.read_text().replace('name = "small"\n', "")
    path = study.with_name("nightly.toml")
    path.write_text(text)
    do(path=path, interrupts=stop_after(3, host))
    do(path=path, resume=True)
    assert heard.study is not None
    assert heard.study.name == "nightly"


def test_resuming_nothing_begins(do: Do) -> None:
    out = do(resume=True)
    assert len(names(out)) == 8
    agreed(out)


def test_a_complete_study_is_left_as_it_is(do: Do, host: FakeHost, heard: Listener) -> None:
    out = do()
    before = {
        path: path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.name != ".lock"
    }
    done = len(host.started)
    do(resume=True)
    assert len(host.started) == done
    assert {
        path: path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.name != ".lock"
    } == before
    assert heard.notes[-1] == "all 8 runs are there; nothing is left to do"


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_runs_that_failed_are_done_again_and_kept_aside(
    do: Do, host: FakeHost, heard: Listener, status: str
) -> None:
    fio = host.programs["fio"]
    stops = Interrupts()
    if status == "failed":
        fio.fails = lambda command: int(len(host.started) == 2)
    else:

        class Impatient(Listener):
            def update_run(self, run: Any, seconds: float, expected: float, latest: Any) -> None:
                if run.number == 2:
                    stops.press(2)

        heard = Impatient()
    out = do(listener=heard, interrupts=stops)
    [second] = [run for run in run_directories(out) if run.name.startswith("0002")]
    assert read_plan(second).status == status
    fio.fails = None
    do(resume=True)
    assert read_plan(second).status == "finished"
    assert read_plan(out / "aside" / f"{second.name}.1").status == status
    assert len(names(out)) == 8
    agreed(out)


def test_changes_of_foreign_results_add_nothing_that_was_not_agreed_to(
    do: Do, host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    out = do(interrupts=stop_after(2, host))
    manifest = read_manifest(out)
    assert manifest.study is not None
    changes = {"workload": {"options.uid": "0"}}
    study = {**manifest.study, "changes": changes}
    write_manifest(out, manifest.model_copy(update={"study": study}))
    for trusted in (False, True):
        with pytest.raises(StudyError, match="uid=0"):
            do(resume=True, trusted=trusted)
    assert len(names(out)) == 2


def test_changes_are_kept_with_the_results(do: Do, host: FakeHost, heard: Listener) -> None:
    out = do(
        changes=Changes(repetitions=3, only={"numjobs": ("4",)}), interrupts=stop_after(2, host)
    )
    with pytest.raises(
        UsageError, match="begun with --only numjobs=4 --repetitions 3, not with --repetitions 2"
    ):
        do(resume=True, changes=Changes(repetitions=2))
    do(resume=True)
    assert len(names(out)) == 6
    do(resume=True, changes=Changes(repetitions=3, only={"numjobs": ("4",)}))
    agreed(out)


def test_another_study_is_no_continuation(do: Do, host: FakeHost, study: Path) -> None:
    out = do(interrupts=stop_after(2, host))
    study.write_text(study_text() + "# changed\n")
    with pytest.raises(
        UsageError, match=r"is not the study that these results were begun with; .*study\.toml is"
    ):
        do(resume=True)
    do(resume=True, path=out / "study.toml")
    assert len(names(out)) == 8


def test_imported_results_are_no_study(do: Do, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_manifest(tmp_path / "out", Manifest(name="x", origin="tree", created_ns=1, iolab="0"))
    with pytest.raises(UsageError, match="imported"):
        do(resume=True)


def test_runs_without_a_manifest_are_not_touched(do: Do, tmp_path: Path) -> None:
    (tmp_path / "out" / "runs" / "0001-x").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"no manifest\.json"):
        do(resume=True)


def test_a_damaged_journal_costs_nothing_that_was_measured(do: Do, host: FakeHost) -> None:
    out = do(interrupts=stop_after(3, host))
    journal = (out / "journal.jsonl").read_text()
    (out / "journal.jsonl").write_text("\x00garbage\n" + journal[:-25])
    do(resume=True)
    assert len(names(out)) == 8
    (out / "journal.jsonl").unlink()
    do(resume=True)
    assert len(names(out)) == 8


def test_without_its_study_the_results_are_not_gone_on_with(do: Do, host: FakeHost) -> None:
    out = do(interrupts=stop_after(1, host))
    (out / "study.toml").unlink()
    with pytest.raises(ResultsError, match="can't be read"):
        do(resume=True)


def test_fail_fast_stops_and_resume_goes_on_with_the_run_that_failed(
    do: Do, host: FakeHost, heard: Listener
) -> None:
    host.programs["fio"].fails = lambda command: int(len(host.started) == 3)
    out = do(fail_fast=True)
    assert [status for _, status, _ in heard.runs] == ["finished", "finished", "failed"]
    assert heard.end is not None
    assert (heard.end.finished, heard.end.failed, heard.end.remaining, heard.end.interrupted) == (
        2,
        1,
        5,
        False,
    )
    assert read_journal(out)[0][-1]["event"] == "stopped"
    host.programs["fio"].fails = None
    do(resume=True)
    agreed(out)
    assert len(names(out)) == 8


def test_a_full_disk_under_the_results_ends_the_study_which_can_go_on(
    do: Do, host: FakeHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(directory: Path, plan: Any) -> None:
        if plan.run.startswith("0003"):
            raise OSError(28, "No space left on device", str(directory / "run.json"))
        write_plan(directory, plan)

    with monkeypatch.context() as patch:
        patch.setattr(execute, "write_plan", full)
        with pytest.raises(
            RunError,
            match=r"run\.json: can't be written: No space left on device; what was measured is kept",
        ):
            do()
    out = tmp_path / "out"
    assert not (out / "scratch").exists()
    do(resume=True)
    assert len(names(out)) == 8
    agreed(out)


def test_evidence_that_cannot_be_written_fails_its_run_alone(
    do: Do, host: FakeHost, heard: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    from iolab.studies.sources.diskstats import DiskstatsSource

    real = DiskstatsSource.poll

    def poll(source: DiskstatsSource) -> None:
        if len(host.started) == 2:
            raise OSError(28, "No space left on device")
        real(source)

    monkeypatch.setattr(DiskstatsSource, "poll", poll)
    out = do()
    assert [status for _, status, _ in heard.runs] == ["finished", "failed", *["finished"] * 6]
    assert heard.runs[1][2] == "its evidence can't be written: No space left on device"
    assert len(host.ended) == 1  # the load of that run
    assert len(names(out)) == 8


def test_a_source_that_dies_leaves_the_run_to_its_gate(
    do: Do, heard: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    from iolab.studies.sources.diskstats import DiskstatsSource

    def poll(source: DiskstatsSource) -> None:
        raise RunError("was killed", where="diskstats")

    monkeypatch.setattr(DiskstatsSource, "poll", poll)
    do()
    assert [status for _, status, _ in heard.runs] == ["finished"] * 8
    assert heard.notes.count("diskstats stopped: diskstats: was killed") == 8


def test_journal_lines_are_plain_json(do: Do) -> None:
    out = do()
    opened = json.loads((out / "journal.jsonl").read_text().splitlines()[0])
    assert opened["surroundings"]["tools"] == {"fio": "fio-3.33"}


@pytest.mark.parametrize(
    "name",
    [
        "journal.jsonl",
        "study.toml",
        "manifest.json",
        "runs/{run}/run.json",
        "scratch.made",
        ".lock",
    ],
)
@pytest.mark.parametrize("kind", ["fifo", "zeros"])
def test_what_is_no_file_is_neither_waited_for_nor_read_without_end(
    do: Do, host: FakeHost, tmp_path: Path, name: str, kind: str
) -> None:
    out = do()
    place = out / name.format(run=next(iter(run_directories(out))).name)
    place.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    said: list[object] = []
    thread = threading.Thread(target=lambda: said.append(_outcome(do)), daemon=True)
    thread.start()
    thread.join(30)
    assert said, "it waits"


def _outcome(do: Do) -> object:
    try:
        return do(resume=True)
    except IolabError as error:
        return str(error)
