# SPDX-License-Identifier: Apache-2.0
"""A study on several hosts side by side: whole results for each, and what befalls one stops no
other."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from iolab.api import open_results
from iolab.base.clock import FakeClock
from iolab.base.errors import ResultsError, RunError, UsageError
from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from iolab.recordings.store.write.writer import RecordingWriter
from iolab.studies.results.evidence.lock import lock
from iolab.studies.results.open.multi_host import FILE, parts_of, read_hosts
from iolab.studies.run.hosts import forget_if_unused, run_on_hosts
from iolab.studies.run.resuming.interrupts import Interrupts
from iolab.studies.run.study import How, run_study
from support.acting import Listener, fake_host, study_text

RUNS = 8


def named(name: str, **programs: FakeProgram) -> FakeHost:
    host = fake_host(FakeClock())
    host.name = name
    host.programs.update(programs)
    host.clock.sleep(0.0)
    return host


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "s.toml"
    path.write_text(study_text(), "utf-8")
    return path


def done(
    study: Path,
    output: Path,
    hosts: list[FakeHost],
    how: How | None = None,
    interrupts: Interrupts | None = None,
    listeners: dict[str, Any] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    heard = listeners or {host.name: Listener() for host in hosts}
    return heard, dict(
        run_on_hosts(
            study,
            output,
            {host.name: host for host in hosts},
            heard,
            how or How(),
            interrupts or Interrupts(),
        )
    )


def test_each_host_does_all_cells_and_keeps_its_own_results(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    heard, ends = done(study, out, [named("a"), named("b")])
    assert ends == {}
    for name in ("a", "b"):
        assert [run[1] for run in heard[name].runs] == ["finished"] * RUNS
        assert (out / name / "manifest.json").exists()
        assert (out / name / "journal.jsonl").read_text().count('"finished"') >= RUNS
    found = read_hosts(out)
    assert found is not None
    assert dict(found.words) == {"a": "a", "b": "b"}
    assert list(found.reproduce)[-4:] == ["--host", "a", "--host", "b"]


def test_the_directory_of_all_hosts_opens_as_one(study: Path, tmp_path: Path) -> None:
    """Machines that are alike give runs of the same names: each is known by its host."""
    out = tmp_path / "out"
    done(study, out, [named("a"), named("b")])
    results, alone = open_results(out), open_results(out / "b")
    assert len(results.runs) == len({run.id for run in results.runs}) == 2 * RUNS
    assert {run.id.partition("/")[0] for run in results.runs} == {"a", "b"}
    assert {run.id.partition("/")[2] for run in results.runs} == {run.id for run in alone.runs}
    assert results.manifest.variants == ["plain", "synced"]
    assert results.baseline == alone.baseline
    run = results.run(f"b/{alone.runs[0].id}")
    assert run is not None
    assert run.plan.host == "b"
    one = run.observations["write.iops"]
    assert (run.evidence / one.source_file).exists()
    assert one.value == alone.runs[0].observations["write.iops"].value
    assert [each.name for each in results.series(run.id)] == [
        each.name for each in alone.series(alone.runs[0].id)
    ]
    assert len(results.histograms(run.id)) == len(alone.histograms(alone.runs[0].id))
    assert results.environment() == open_results(out / "a").environment()
    assert results.environments() == {
        name: open_results(out / name).environment() for name in ("a", "b")
    }
    assert alone.environments() == {"": alone.environment()}
    assert results.observations().num_rows == 2 * alone.observations().num_rows
    comparison = results.compare("write.iops")
    assert any("several hosts" in warning.text for warning in comparison.warnings)
    assert parts_of(out) == [out / "a", out / "b"]
    assert parts_of(out / "a") == [out / "a"]
    assert parts_of(out / "no") == [out / "no"]
    only = results.compare("write.iops", where={"host": "b"})
    assert not any("several hosts" in warning.text for warning in only.warnings)


def test_a_host_without_fio_stops_no_other(study: Path, tmp_path: Path) -> None:
    without = named("bare")
    del without.programs["fio"]
    out = tmp_path / "out"
    heard, ends = done(study, out, [without, named("good")])
    assert [type(error) for error in ends.values()] == [RunError]
    assert "fio is not installed on host 'bare'" in str(ends["bare"])
    assert len(heard["good"].runs) == RUNS
    assert not (out / "bare").exists()
    assert {run.plan.host for run in open_results(out).runs} == {"good"}
    # once it is there, that host's part is done and the other's stays
    repaired = named("bare")
    heard, ends = done(study, out, [repaired, named("good")], How(resume=True))
    assert ends == {}
    assert len(heard["bare"].runs) == RUNS
    assert heard["good"].runs == []
    assert {run.plan.host for run in open_results(out).runs} == {"bare", "good"}


def test_runs_that_fail_on_one_host_are_done_again_there_alone(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    bad = named("bad")
    bad.programs["fio"].exit_code = 1
    heard, ends = done(study, out, [bad, named("good")])
    assert ends == {}
    assert {run[1] for run in heard["bad"].runs} == {"failed"}
    assert {run[1] for run in heard["good"].runs} == {"finished"}
    heard, _ = done(study, out, [named("bad"), named("good")], How(resume=True))
    assert [run[1] for run in heard["bad"].runs] == ["finished"] * RUNS
    assert heard["good"].end.remaining == 0


class Presser(Listener):
    """Asks to stop, as Ctrl-C does, in its first run; waits until the other host is in one as well."""

    def __init__(self, stops: Interrupts, meet: threading.Barrier, presses: int) -> None:
        super().__init__()
        self._stops, self._meet, self._presses = stops, meet, presses

    def begin_run(self, run: Any, name: str) -> None:
        if self._presses >= 0:
            self._meet.wait(20)
            self._stops.press(self._presses)
            self._presses = -1
            self._meet.wait(20)


@pytest.mark.parametrize(("presses", "status"), [(1, "finished"), (2, "interrupted")])
def test_ctrl_c_ends_all(presses: int, status: str, study: Path, tmp_path: Path) -> None:
    out, stops, meet = tmp_path / "out", Interrupts(), threading.Barrier(2)
    listeners = {"a": Presser(stops, meet, presses), "b": Presser(stops, meet, 0)}
    done(study, out, [named("a"), named("b")], interrupts=stops, listeners=listeners)
    for listener in listeners.values():
        assert [run[1] for run in listener.runs] == [status]
        assert listener.end is not None
        assert listener.end.interrupted
    heard, _ = done(study, out, [named("a"), named("b")], How(resume=True))
    assert all(listener.end.remaining == 0 for listener in heard.values())
    assert len(open_results(out).runs) == 2 * RUNS


def test_a_second_study_says_which_process_writes_there(study: Path, tmp_path: Path) -> None:
    done(study, tmp_path / "out", [named("a"), named("b")])
    with (
        lock(tmp_path / "out/b"),
        pytest.raises(ResultsError, match="out/b: is being written by process"),
    ):
        done(study, tmp_path / "out", [named("a"), named("b")])
    with pytest.raises(UsageError, match="holds results already"):
        done(study, tmp_path / "out", [named("a"), named("b")])


def test_results_of_one_host_and_of_several_are_kept_apart(study: Path, tmp_path: Path) -> None:
    run_study(study, tmp_path / "one", listener=Listener(), clock=FakeClock(), host=named("a"))
    with pytest.raises(UsageError, match="holds results of one host"):
        done(study, tmp_path / "one", [named("a"), named("b")])
    done(study, tmp_path / "two", [named("a"), named("b")])
    with pytest.raises(UsageError, match=r"holds results already.*--resume"):
        done(study, tmp_path / "two", [named("a"), named("b")])
    with pytest.raises(UsageError, match="holds results of several hosts"):
        run_study(study, tmp_path / "two", listener=Listener(), clock=FakeClock(), host=named("a"))
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        done(study, tmp_path / "file", [named("a"), named("b")])
    with RecordingWriter.create(
        tmp_path / "rec", host="a", clock="realtime", origin={"kind": "record"}
    ):
        pass
    with pytest.raises(UsageError, match="rec: is a recording, not a results directory"):
        done(study, tmp_path / "rec", [named("a"), named("b")])


def test_a_study_that_was_begun_on_no_host_leaves_nothing(study: Path, tmp_path: Path) -> None:
    hosts = [named("a"), named("b")]
    for host in hosts:
        del host.programs["fio"]
    _, ends = done(study, tmp_path / "out", hosts)
    assert set(ends) == {"a", "b"}
    with pytest.raises(ResultsError, match="begun on none"):
        open_results(tmp_path / "out")
    forget_if_unused(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_fault_of_its_own_is_raised_once_all_have_ended(study: Path, tmp_path: Path) -> None:
    class Broken(Listener):
        def begin_run(self, run: Any, name: str) -> None:
            raise ZeroDivisionError

    good = Listener()
    with pytest.raises(ZeroDivisionError):
        done(
            study, tmp_path / "out", [named("a"), named("b")], listeners={"a": Broken(), "b": good}
        )
    assert len(good.runs) == RUNS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": 1}',
        '{"schema": 1, "hosts": {}, "reproduce": []}',
        '{"schema": 1, "hosts": {"../x": "x"}, "reproduce": []}',
        '{"schema": 1, "hosts": 7, "reproduce": []}',
        '{"schema": "1", "hosts": {"a": "a"}, "reproduce": []}',
        "[" * 100_000,
    ],
)
def test_damaged_lists_of_hosts_are_told(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ResultsError, match="is damaged"):
        read_hosts(tmp_path)


def test_a_newer_list_of_hosts_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps({"schema": 99, "hosts": {"a": "a"}, "reproduce": []}))
    with pytest.raises(ResultsError, match="newer iolab"):
        read_hosts(tmp_path)
