# SPDX-License-Identifier: Apache-2.0
"""Never on another machine unnoticed: a study that is gone on with knows its host, and what has
changed there. No time passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import RunError, UsageError
from iolab.hosts.base.host import Completed
from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from iolab.studies.results.evidence.files import read_environment, read_plan, run_directories
from iolab.studies.results.evidence.journal import read_journal
from iolab.studies.run.resuming.journal import Journal
from iolab.studies.targets.made import Made
from support.acting import Listener, fake_host, study_text
from support.narrow import present
from support.resuming import Do, Killed, agreed, names, stop_after


def test_another_kernel_is_no_silent_mix(do: Do, host: FakeHost, heard: Listener) -> None:
    out = do(interrupts=stop_after(3, host))
    host.files["/proc/sys/kernel/osrelease"] = "6.2.0-fake\n"
    host.programs["fio"].output = lambda command: Completed(
        tuple(command), 0, "fio-3.41\n" if "--version" in command else "", ""
    )
    with pytest.raises(
        UsageError,
        match=r"fio: fio-3\.33 became fio-3\.41; kernel: 6\.1\.0-fake became 6\.2\.0-fake; put it back",
    ):
        do(resume=True)
    assert len(names(out)) == 3
    do(resume=True, force=True)
    assert len(names(out)) == 8
    agreed(out)
    assert {read_environment(run)["fingerprint"]["kernel"] for run in run_directories(out)} == {
        "6.1.0-fake",
        "6.2.0-fake",
    }
    assert (
        "another environment than the runs before: kernel: 6.1.0-fake became 6.2.0-fake"
        in heard.notes
    )
    first, second = names(out)[2:4]
    assert first.split("-")[1] not in {name.split("-")[1] for name in names(out)[3:]}
    assert [event["run"] for event in read_journal(out)[0] if event["event"] == "planned"].count(
        second
    ) == 1


def without_hosts(out: Path) -> None:
    """The journal as iolab wrote it when it noted the host of loads alone."""
    lines = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    for event in lines:
        if event["event"] != "started":
            event.pop("host", None)
    (out / "journal.jsonl").write_text("".join(json.dumps(event) + "\n" for event in lines))


@pytest.mark.parametrize(
    "when", ["as a target is made", "once it is made", "before the first line"]
)
def test_a_study_killed_before_its_first_line_knows_its_host(
    do: Do, host: FakeHost, study: Path, tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.write_text(study_text() + '\n[target]\npath = "/data"\n')
    host.files["/data/precious"] = "kept"

    def killed(*_: object, **__: object) -> None:
        raise Killed

    made = Made._note

    def note(self: Made, kind: str, **data: Any) -> str:
        made(self, kind, **data)
        raise Killed

    with monkeypatch.context() as patch:
        if when == "as a target is made":
            patch.setattr(Made, "_note", note)
        else:
            patch.setattr(
                *(
                    ("iolab.studies.run.runner.gather", killed)
                    if when == "once it is made"
                    else (Journal, "write_all", killed)
                )
            )
        patch.setattr("iolab.studies.targets.directory.DirectoryTarget.close", lambda target: None)
        with pytest.raises(Killed):
            do()
    out = tmp_path / "out"
    assert not (out / "journal.jsonl").exists()
    assert len(list(out.glob("*.made"))) == 1
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    other = fake_host()
    other.name = "other"
    for force in (False, True):
        with pytest.raises(
            UsageError, match=r"begun on host 'fake', not on 'other', and what it left over there"
        ):
            do(resume=True, host=other, clock=other.clock, force=force)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert other.started == []
    assert other.removed == []
    with pytest.raises(UsageError, match="holds results already"):
        do()
    do(resume=True)
    assert len(names(out)) == 8
    assert host.list_directory("/data") == ["precious"]
    agreed(out)


def test_where_nothing_could_be_measured_nothing_is_left(
    do: Do, host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise RunError("no room")

    with monkeypatch.context() as patch:
        patch.setattr("iolab.studies.run.runner.gather", refused)
        with pytest.raises(RunError, match="no room"):
            do()
        assert not (tmp_path / "out").exists()
        patch.setattr("iolab.studies.targets.directory.DirectoryTarget.close", lambda target: None)
        with pytest.raises(RunError, match="no room"):
            do()
    assert (tmp_path / "out/manifest.json").exists(), (
        "what could not be removed is removed on that host alone"
    )
    do(resume=True)
    assert len(names(tmp_path / "out")) == 8


@pytest.mark.parametrize("journal", ["as it is", "of loads alone", "lost"])
def test_another_host_is_refused_before_anything_is_touched(
    do: Do, host: FakeHost, tmp_path: Path, journal: str
) -> None:
    out = do(interrupts=stop_after(3, host))
    (out / "runs" / names(out)[2] / "run.json").unlink()
    if journal == "of loads alone":
        without_hosts(out)
    elif journal == "lost":
        (out / "journal.jsonl").unlink()
    (out / "scratch.made").write_text(json.dumps({"made": "directory", "path": "."}) + "\n")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    other = fake_host()
    other.name = "other"
    for force in (False, True):
        with pytest.raises(
            UsageError, match=r"begun on host 'fake', not on 'other', and what it left over there"
        ):
            do(resume=True, host=other, clock=other.clock, force=force)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert other.started == []
    assert other.removed == []
    do(resume=True)
    assert len(names(out)) == 8
    assert not (out / "scratch.made").exists()


def test_another_host_is_gone_on_with_by_force_where_nothing_is_left_over_there(
    do: Do, host: FakeHost
) -> None:
    out = do(interrupts=stop_after(3, host))
    other = fake_host()
    other.name = "other"
    with pytest.raises(UsageError, match=r"begun on host 'fake', not on 'other'; .*--force"):
        do(resume=True, host=other, clock=other.clock)
    do(resume=True, host=other, clock=other.clock, force=True, interrupts=stop_after(1, other))
    assert [read_plan(run).host for run in run_directories(out)] == ["fake"] * 3 + ["other"]
    # by now it is that host's study
    with pytest.raises(UsageError, match="begun on host 'other', not on 'fake'"):
        do(resume=True)
    do(resume=True, host=other, clock=other.clock)
    assert len(names(out)) == 8


def test_a_study_that_ended_before_its_first_load_knows_its_host(
    do: Do, host: FakeHost, study: Path
) -> None:
    study.write_text(study_text() + '\n[hooks.study]\nbefore = "no"\n')
    host.programs["sh"] = FakeProgram(seconds=0.0, exit_code=1)
    with pytest.raises(RunError):
        do()
    other = fake_host()
    other.name = "other"
    with pytest.raises(UsageError, match="begun on host 'fake', not on 'other'"):
        do(resume=True, host=other, clock=other.clock)


def test_back_on_the_machine_as_it_was_nothing_is_asked(do: Do, host: FakeHost) -> None:
    out = do(interrupts=stop_after(3, host))
    host.files["/proc/sys/kernel/osrelease"] = "6.2.0-fake\n"
    do(resume=True, force=True, interrupts=stop_after(2, host))
    host.files["/proc/sys/kernel/osrelease"] = "6.1.0-fake\n"
    do(resume=True)
    assert len(names(out)) == 8


def test_a_drift_within_a_study_is_seen_at_the_next_block(
    do: Do, host: FakeHost, heard: Listener
) -> None:
    def drifts(command: Any, directory: Path) -> None:
        work(command, directory)
        if directory.name.startswith("0002"):
            host.files["/sys/devices/pci/block/sda/queue/scheduler"] = "[none] mq-deadline\n"

    work = present(host.programs["fio"].work)
    assert work is not None
    host.programs["fio"].work = drifts
    out = do()
    assert "the environment changed: scheduler:sda: mq-deadline became none" in heard.notes
    schedulers = [
        read_environment(run)["fingerprint"]["scheduler:sda"] for run in run_directories(out)
    ]
    assert schedulers == ["mq-deadline"] * 4 + ["none"] * 4
    assert len({name.split("-")[1] for name in names(out)}) == 8  # four cells, on two environments
    agreed(out)
    do(resume=True)
    assert heard.notes[-1].startswith("all 8 runs are there")
