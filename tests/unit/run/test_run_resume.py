"""Going on with a study: nothing lost, nothing twice, never on another machine unnoticed. No time passes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.errors import ResultsError, RunError, UsageError
from iolab.hosts.base import Completed
from iolab.hosts.fake import FakeHost, FakeProgram
from iolab.results.evidence import read_environment, read_plan, run_directories
from iolab.results.manifest import Manifest, write_manifest
from iolab.run import execute
from iolab.run.interrupts import Interrupts
from iolab.run.journal import Journal, read_journal
from iolab.study.adapt import Changes
from iolab.targets.made import Made
from support.acting import Listener, fake_host, study_text

Do = Callable[..., Path]
BOOT = "/proc/sys/kernel/random/boot_id"


class Killed(BaseException):
    """What a test throws for kill -9."""


def names(out: Path) -> list[str]:
    return [run.name for run in run_directories(out)]


def agreed(out: Path) -> None:
    """Every run that is there is finished, once, in evidence and in the journal; every number is there."""
    plans = [read_plan(run) for run in run_directories(out)]
    assert [plan.status for plan in plans] == ["finished"] * len(plans)
    assert [int(plan.run[:4]) for plan in plans] == list(range(1, len(plans) + 1))
    last: dict[str, str] = {}
    counted: dict[str, int] = {}
    for event in read_journal(out)[0]:
        if "run" in event and event["event"] != "planned":
            last[event["run"]] = event["event"]
        if event["event"] == "finished":
            counted[event["run"]] = counted.get(event["run"], 0) + 1
        elif event["event"] == "aside":
            counted.pop(event["run"], None)
    assert {run for run, event in last.items() if event == "finished"} == {plan.run for plan in plans}
    assert set(counted.values()) == {1}


def stop_after(number: int, host: FakeHost) -> Interrupts:
    """Ctrl-C while the run of that number is in flight."""
    stops = Interrupts()
    work = host.programs["fio"].work
    assert work is not None
    begun = len(host.started)

    def press(command: Any, directory: Path) -> None:
        work(command, directory)
        if len(host.started) - begun == number:
            stops.press()

    host.programs["fio"].work = press
    return stops


def test_what_is_missing_is_done_in_the_same_order_under_the_same_names(do: Do, host: FakeHost, heard: Listener, tmp_path: Path) -> None:
    whole = names(do(output=tmp_path / "whole"))
    heard.runs.clear()
    out = do(interrupts=stop_after(3, host))
    assert names(out) == whole[:3]
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and "runs" in path.parts}
    do(resume=True)
    assert names(out) == whole
    assert [number for number, _, _ in heard.runs] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert all(path.read_bytes() == data for path, data in before.items())
    agreed(out)
    assert "resumed: 3 of 8 runs are there, 5 are done now" in heard.notes
    assert heard.end is not None
    assert (heard.end.finished, heard.end.failed, heard.end.left) == (8, 0, 0)
    kinds = [event["event"] for event in read_journal(out)[0]]
    assert (kinds.count("planned"), kinds.count("resumed"), kinds[-1]) == (8, 1, "closed")


def test_resuming_nothing_begins(do: Do) -> None:
    out = do(resume=True)
    assert len(names(out)) == 8
    agreed(out)


def test_a_complete_study_is_left_as_it_is(do: Do, host: FakeHost, heard: Listener) -> None:
    out = do()
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name != ".lock"}
    done = len(host.started)
    do(resume=True)
    assert len(host.started) == done
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name != ".lock"} == before
    assert heard.notes[-1] == "all 8 runs are there; nothing is left to do"


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_runs_that_failed_are_done_again_and_kept_aside(do: Do, host: FakeHost, heard: Listener, status: str) -> None:
    fio = host.programs["fio"]
    stops = Interrupts()
    if status == "failed":
        fio.fails = lambda command: int(len(host.started) == 2)
    else:
        class Impatient(Listener):
            def waiting(self, run: Any, seconds: float, expected: float, latest: Any) -> None:
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


def test_a_run_killed_in_flight_is_set_aside_and_done_again(do: Do, host: FakeHost, heard: Listener) -> None:
    out = do(interrupts=stop_after(3, host))
    third = out / "runs" / names(out)[2]
    (third / "run.json").unlink()
    do(resume=True)
    assert not (out / "aside" / f"{third.name}.1" / "run.json").exists()
    assert (out / "aside" / f"{third.name}.1" / "fio.json").exists()
    assert f"run {third.name} (killed in flight) is done again; what it left is in aside/{third.name}.1" in heard.notes
    agreed(out)
    (third / "run.json").write_text("{")  # damaged counts as missing, and the next place is free
    do(resume=True)
    assert (out / "aside" / f"{third.name}.2").is_dir()
    agreed(out)


def _points(monkeypatch: pytest.MonkeyPatch, at: int, after: bool) -> Iterator[int]:
    """Kill at the so-many-eth durable write, before or after it; yields how many there were."""
    count = [0]

    def counted(write: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            count[0] += 1
            if count[0] == at and not after:
                raise Killed
            result = write(*given, **named)
            if count[0] == at:
                raise Killed
            return result

        return call

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write_all", counted(Journal.write_all))
        patch.setattr(execute, "write_plan", counted(execute.write_plan))
        patch.setattr("iolab.run.runner.write_manifest", counted(write_manifest))
        yield from count


@pytest.mark.parametrize("after", [False, True])
def test_a_death_at_any_durable_write_loses_at_most_the_run_in_flight(do: Do, study: Path, host: FakeHost, tmp_path: Path,
                                                                      monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    study.write_text(study_text(repetitions=1).replace("numjobs = [1, 4]", "numjobs = [1]"), "utf-8")
    whole = names(do(output=tmp_path / "whole"))
    at, done = 0, False
    while not done:
        at += 1
        out = tmp_path / f"killed-{at}"
        for _ in _points(monkeypatch, at, after):
            try:
                do(output=out)
                done = True
            except Killed:
                pass
        finished = [run.name for run in run_directories(out) if (run / "run.json").exists()] if out.exists() else []
        do(output=out, resume=True)
        assert names(out) == whole
        agreed(out)
        aside = list((out / "aside").iterdir()) if (out / "aside").exists() else []
        assert len(aside) <= 1
        assert not set(finished) & {path.stem for path in aside}
        assert not (out / "scratch").exists()
    assert at > 8


def test_a_death_during_the_resume_itself_is_no_different(do: Do, host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = do(interrupts=stop_after(3, host))
    whole_first = names(out)
    (out / "runs" / whole_first[2] / "run.json").unlink()
    shutil.copytree(out, tmp_path / "kept")
    for at in range(1, 8):
        for after in (False, True):
            shutil.rmtree(out)
            shutil.copytree(tmp_path / "kept", out)
            for _ in _points(monkeypatch, at, after):
                with pytest.raises(Killed):
                    do(resume=True)
            do(resume=True)
            assert len(names(out)) == 8
            agreed(out)


def test_a_process_left_over_is_ended_before_anything_else(do: Do, host: FakeHost, heard: Listener) -> None:
    host.files[BOOT] = "boot-1\n"
    out = do(interrupts=stop_after(1, host))
    started = Journal(out, host.clock)
    started.write("resumed", boot="boot-1")
    started.write("started", run="0002-00000000", pid=77, pid_started_ticks=700)
    started.write("hook", title="before block 1", pid=78, pid_started_ticks=701)
    started.write("hook", title="before run 2", pid=79, pid_started_ticks=702)
    started.write("hook-ended", title="before run 2", pid=79, exit_code=0)
    host.leftovers = {(77, 700), (78, 999), (79, 702), (5, 5)}  # the second is a stranger under a pid that was used again
    do(resume=True)
    assert host.ended == [77]
    assert host.leftovers == {(78, 999), (79, 702), (5, 5)}
    assert "ended 1 process that the killed study had left (of 0002-00000000)" in heard.notes
    [ended] = [event for event in read_journal(out)[0] if event["event"] == "ended-leftover"]
    assert (ended["of"], ended["pids"]) == ("0002-00000000", [77])


@pytest.mark.parametrize("boot", ["boot-2\n", None])
def test_after_another_boot_ids_mean_nothing(do: Do, host: FakeHost, boot: str | None) -> None:
    host.files[BOOT] = "boot-1\n"
    out = do(interrupts=stop_after(1, host))
    Journal(out, host.clock).write("started", run="0002-00000000", pid=77, pid_started_ticks=700)
    host.leftovers = {(77, 700)}
    del host.files[BOOT]
    if boot is not None:
        host.files[BOOT] = boot
    do(resume=True)
    assert host.ended == []


def test_scratch_of_a_killed_study_goes_and_nothing_else(do: Do, host: FakeHost, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study.write_text(study_text() + '\n[target]\npath = "/data"\n')
    host.files["/data/precious"] = "kept"
    monkeypatch.setattr("iolab.targets.directory.DirectoryTarget.close", lambda target: None)  # as after a kill
    do(interrupts=stop_after(1, host))
    assert len(host.list_directory("/data")) == 2
    monkeypatch.undo()
    do(resume=True)
    assert host.list_directory("/data") == ["precious"]


def test_another_kernel_is_no_silent_mix(do: Do, host: FakeHost, heard: Listener) -> None:
    out = do(interrupts=stop_after(3, host))
    host.files["/proc/sys/kernel/osrelease"] = "6.2.0-fake\n"
    host.programs["fio"].output = lambda command: Completed(tuple(command), 0, "fio-3.41\n" if "--version" in command else "", "")
    with pytest.raises(UsageError, match=r"fio: fio-3\.33 became fio-3\.41; kernel: 6\.1\.0-fake became 6\.2\.0-fake; put it back"):
        do(resume=True)
    assert len(names(out)) == 3
    do(resume=True, force=True)
    assert len(names(out)) == 8
    agreed(out)
    assert {read_environment(run)["fingerprint"]["kernel"] for run in run_directories(out)} == {"6.1.0-fake", "6.2.0-fake"}
    assert "another environment than the runs before: kernel: 6.1.0-fake became 6.2.0-fake" in heard.notes
    first, second = names(out)[2:4]
    assert first.split("-")[1] not in {name.split("-")[1] for name in names(out)[3:]}
    assert [event["run"] for event in read_journal(out)[0] if event["event"] == "planned"].count(second) == 1


def without_hosts(out: Path) -> None:
    """The journal as iolab wrote it when it noted the host of loads alone."""
    lines = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    for event in lines:
        if event["event"] != "started":
            event.pop("host", None)
    (out / "journal.jsonl").write_text("".join(json.dumps(event) + "\n" for event in lines))


@pytest.mark.parametrize("when", ["as a target is made", "once it is made", "before the first line"])
def test_a_study_killed_before_its_first_line_knows_its_host(do: Do, host: FakeHost, study: Path, tmp_path: Path, when: str,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    study.write_text(study_text() + '\n[target]\npath = "/data"\n')
    host.files["/data/precious"] = "kept"

    def killed(*_: object, **__: object) -> None:
        raise Killed

    made = Made.note

    def note(self: Made, kind: str, **data: Any) -> None:
        made(self, kind, **data)
        raise Killed

    with monkeypatch.context() as patch:
        if when == "as a target is made":
            patch.setattr(Made, "note", note)
        else:
            patch.setattr(*(("iolab.run.runner.gather", killed) if when == "once it is made" else (Journal, "write_all", killed)))
        patch.setattr("iolab.targets.directory.DirectoryTarget.close", lambda target: None)
        with pytest.raises(Killed):
            do()
    out = tmp_path / "out"
    assert not (out / "journal.jsonl").exists()
    assert len(list(out.glob("*.made"))) == 1
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    other = fake_host()
    other.name = "other"
    for force in (False, True):
        with pytest.raises(UsageError, match=r"begun on host 'fake', not on 'other', and what it left over there"):
            do(resume=True, host=other, clock=other.clock, force=force)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert other.started == other.removed == []
    with pytest.raises(UsageError, match="holds results already"):
        do()
    do(resume=True)
    assert len(names(out)) == 8
    assert host.list_directory("/data") == ["precious"]
    agreed(out)


def test_where_nothing_could_be_measured_nothing_is_left(do: Do, host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise RunError("no room")

    with monkeypatch.context() as patch:
        patch.setattr("iolab.run.runner.gather", refused)
        with pytest.raises(RunError, match="no room"):
            do()
        assert not (tmp_path / "out").exists()
        patch.setattr("iolab.targets.directory.DirectoryTarget.close", lambda target: None)
        with pytest.raises(RunError, match="no room"):
            do()
    assert (tmp_path / "out/manifest.json").exists(), "what could not be removed is removed on that host alone"
    do(resume=True)
    assert len(names(tmp_path / "out")) == 8


@pytest.mark.parametrize("journal", ["as it is", "of loads alone", "lost"])
def test_another_host_is_refused_before_anything_is_touched(do: Do, host: FakeHost, tmp_path: Path, journal: str) -> None:
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
        with pytest.raises(UsageError, match=r"begun on host 'fake', not on 'other', and what it left over there"):
            do(resume=True, host=other, clock=other.clock, force=force)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert other.started == other.removed == []
    do(resume=True)
    assert len(names(out)) == 8
    assert not (out / "scratch.made").exists()


def test_another_host_is_gone_on_with_by_force_where_nothing_is_left_over_there(do: Do, host: FakeHost) -> None:
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


def test_a_study_that_ended_before_its_first_load_knows_its_host(do: Do, host: FakeHost, study: Path) -> None:
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


def test_a_drift_within_a_study_is_seen_at_the_next_block(do: Do, host: FakeHost, heard: Listener) -> None:
    def drifts(command: Any, directory: Path) -> None:
        work(command, directory)
        if directory.name.startswith("0002"):
            host.files["/sys/devices/pci/block/sda/queue/scheduler"] = "[none] mq-deadline\n"

    work = host.programs["fio"].work
    assert work is not None
    host.programs["fio"].work = drifts
    out = do()
    assert "the environment changed: scheduler:sda: mq-deadline became none" in heard.notes
    schedulers = [read_environment(run)["fingerprint"]["scheduler:sda"] for run in run_directories(out)]
    assert schedulers == ["mq-deadline"] * 4 + ["none"] * 4
    assert len({name.split("-")[1] for name in names(out)}) == 8  # four cells, on two environments
    agreed(out)
    do(resume=True)
    assert heard.notes[-1].startswith("all 8 runs are there")


def test_changes_are_kept_with_the_results(do: Do, host: FakeHost, heard: Listener) -> None:
    out = do(changes=Changes(repetitions=3, only={"numjobs": ("4",)}), interrupts=stop_after(2, host))
    with pytest.raises(UsageError, match="begun with --only numjobs=4 --repetitions 3, not with --repetitions 2"):
        do(resume=True, changes=Changes(repetitions=2))
    do(resume=True)
    assert len(names(out)) == 6
    do(resume=True, changes=Changes(repetitions=3, only={"numjobs": ("4",)}))
    agreed(out)


def test_another_study_is_no_continuation(do: Do, host: FakeHost, study: Path) -> None:
    out = do(interrupts=stop_after(2, host))
    study.write_text(study_text() + "# changed\n")
    with pytest.raises(UsageError, match=r"is not the study that these results were begun with; .*study\.toml is"):
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


def test_fail_fast_stops_and_resume_goes_on_with_the_run_that_failed(do: Do, host: FakeHost, heard: Listener) -> None:
    host.programs["fio"].fails = lambda command: int(len(host.started) == 3)
    out = do(fail_fast=True)
    assert [status for _, status, _ in heard.runs] == ["finished", "finished", "failed"]
    assert heard.end is not None
    assert (heard.end.finished, heard.end.failed, heard.end.left, heard.end.interrupted) == (2, 1, 5, False)
    assert read_journal(out)[0][-1]["event"] == "stopped"
    host.programs["fio"].fails = None
    do(resume=True)
    agreed(out)
    assert len(names(out)) == 8


def test_a_full_disk_under_the_results_ends_the_study_which_can_go_on(do: Do, host: FakeHost, monkeypatch: pytest.MonkeyPatch,
                                                                      tmp_path: Path) -> None:
    real = execute.write_plan

    def full(directory: Path, plan: Any) -> None:
        if plan.run.startswith("0003"):
            raise OSError(28, "No space left on device", str(directory / "run.json"))
        real(directory, plan)

    with monkeypatch.context() as patch:
        patch.setattr(execute, "write_plan", full)
        with pytest.raises(RunError, match=r"run\.json: can't be written: No space left on device; what was measured is kept"):
            do()
    out = tmp_path / "out"
    assert not (out / "scratch").exists()
    do(resume=True)
    assert len(names(out)) == 8
    agreed(out)


def test_evidence_that_cannot_be_written_fails_its_run_alone(do: Do, host: FakeHost, heard: Listener,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    from iolab.sources.diskstats import DiskstatsSource

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


def test_a_source_that_dies_leaves_the_run_to_its_gate(do: Do, heard: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    from iolab.sources.diskstats import DiskstatsSource

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
