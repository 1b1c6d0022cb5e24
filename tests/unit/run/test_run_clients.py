# SPDX-License-Identifier: Apache-2.0
"""A load from several client hosts, in memory: one start, one sum, and failures that name the
client."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from iolab.base.clock import FakeClock
from iolab.base.errors import RunError
from iolab.base.verdict import Level
from iolab.hosts.base.host import Offset
from iolab.hosts.kinds.fake import FakeHost, FakeProcess, FakeProgram
from iolab.studies.results.evidence.clients import clients_of
from iolab.studies.results.open.results import Results
from iolab.studies.run.load.clients import LEAD, path_on_clients
from iolab.studies.run.logs.recording import Wanted
from iolab.studies.run.resuming.interrupts import Interrupts
from iolab.studies.run.study import run_study
from support.acting import Listener, fake_host, split_how
from support.fio_files import job, output

STUDY = """
[study]
name = "many"
repetitions = 1
order = "as-written"
[target]
path = "/srv"
[load]
hosts = ["ssh:a", "ssh:b", "ssh:c"]
path = "/mnt"
[workload]
kind = "fio"
runtime = "2s"
options = {rw = "randwrite", bs = "4k", size = "1m", numjobs = 2}
[factors]
clients = [1, 3]
"""
PYTHON = Path(sys.executable).name


def client_host(name: str, clock: FakeClock, ahead_ns: int = 0, **fio: Any) -> FakeHost:
    """A host whose fio does 1000 I/Os a second, and ends when the run does."""
    host = fake_host(clock)
    host.name = name
    host.offset = Offset(ahead_ns, 1000, 2000, 0.0)
    host.programs[PYTHON] = FakeProgram()

    def work(command: Sequence[str], directory: Path) -> None:
        if any("job.fio" in word for word in command):
            end_ns = clock.realtime_ns() + ahead_ns
            text = output(job(jobs=2, iops=1000.0, runtime=2.0), minute=0, numjobs="2")
            text = re.sub(r'"timestamp_ms": \d+', f'"timestamp_ms": {end_ns // 1_000_000}', text)
            (directory / "fio.json").write_text(text, "utf-8")

    host.programs["fio"] = FakeProgram(
        **{"seconds": 4.0, "output": host.programs["fio"].output, "work": work, **fio}
    )
    host.directories.add("/mnt")
    return host


class Lab:
    """A server and its clients; what the server makes below /srv the clients see below /mnt."""

    def __init__(self, tmp_path: Path) -> None:
        self.server = fake_host()
        self.server.directories.add("/srv")
        del self.server.programs["fio"]  # the server needs none
        self.clients = {
            name: client_host(name, self.server.clock, ahead)
            for name, ahead in (("a", 0), ("b", 3_000_000_000), ("c", 0))
        }
        for client in self.clients.values():
            seen = client.is_directory
            client.is_directory = self._shared(seen)  # type: ignore[method-assign, assignment]
        self.opened: list[str] = []
        self.listener = Listener()
        self.path = tmp_path / "many.toml"
        self.path.write_text(STUDY, "utf-8")
        self.out = tmp_path / "out"

    def _shared(self, seen: Callable[[str], bool]) -> Callable[[str], bool]:
        def is_directory(path: str) -> bool:
            return seen(path) or self.server.is_directory(path.replace("/mnt", "/srv", 1))

        return is_directory

    def open(self, word: str) -> FakeHost:
        self.opened.append(word)
        return self.clients[word.removeprefix("ssh:")]

    def run(self, **more: Any) -> Results:
        run_study(
            self.path,
            self.out,
            split_how(more := {"trusted": True, **more}),
            listener=self.listener,
            host=self.server,
            clock=self.server.clock,
            open_host=self.open,
            **more,
        )
        return Results(self.out)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_the_run_is_the_sum_of_its_clients(lab: Lab) -> None:
    results = lab.run()
    assert lab.opened == ["ssh:a", "ssh:b", "ssh:c"]
    one, three = results.runs
    assert [run.value("write.iops") for run in (one, three)] == [1000.0, 3000.0]
    assert three.value("write.ios") == 6000
    assert three.value("write.lat.mean") == pytest.approx(one.value("write.lat.mean"))
    assert (one.plan.jobs, three.plan.jobs) == (2, 6)
    assert three.value("littles_law") == pytest.approx(1.0)
    assert [run.plan.repetition for run in results.runs] == [1, 1]
    assert [client.name for client in clients_of(three.plan)] == ["a", "b", "c"]
    assert [run.verdict.level for run in results.runs] == [Level.OK, Level.OK]
    names = {path.name for path in (three.evidence / "clients" / "b").iterdir()}
    assert {"fio.json", "job.fio", "command.txt", "stderr.txt", "layout-stderr.txt"} <= names
    parts = [part for part in results.client_runs() if part.factors["clients"] == 3]
    assert {part.factors["client"]: part.value("write.iops") for part in parts} == {
        "a": 1000.0,
        "b": 1000.0,
        "c": 1000.0,
    }
    assert [part.plan.jobs for part in parts] == [2, 2, 2]


def test_all_begin_at_one_time_by_their_own_clocks(lab: Lab) -> None:
    three = lab.run().runs[1]
    begins = {
        name: int(
            re.search(r"\((\d+)-", (three.evidence / f"clients/{name}/job.fio").read_text())[1]  # type: ignore[index]
        )
        for name in "abc"
    }
    assert begins["b"] - begins["a"] == 3_000_000_000
    assert begins["c"] == begins["a"]
    assert begins["a"] - lab.server.clock.realtime_ns() < 0
    windows = [client.window for client in clients_of(three.plan)]
    assert len(set(windows)) == 1  # the clock that is 3 s ahead is corrected
    assert three.plan.window == windows[0]
    codes = [reason.code for reason in three.verdict.reasons]
    assert codes.count("client-clock") == 1
    begun = lab.server.clock.realtime_ns() - lab.server.clock.monotonic() * 1e9
    assert (begins["a"] - begun) / 1e9 > LEAD


class FakeRecorder:
    """Notes what a study asks of the recorder of a host."""

    calls: ClassVar[list[tuple[str, ...]]] = []
    windows: ClassVar[dict[str, object]] = {}

    def __init__(self, wanted: Wanted, host: FakeHost, *_: object) -> None:
        assert wanted == Wanted(("counters",), (), ())
        self.host = host.name

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: self.calls.append((name, self.host))

    def end(self, run: str, window: object, facts: object) -> dict[str, Any]:
        self.calls.append(("end", self.host))
        self.windows[self.host] = window
        return {"path": f"recordings/{self.host}", "lost": {"counters": 2 * (self.host == "c")}}


def test_each_client_host_is_recorded_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolab.studies.run.load.client_recordings.StudyRecorder", FakeRecorder)
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(FakeRecorder, "calls", calls)
    hosts = '["ssh:a", "ssh:b", "ssh:c", "ssh:b"]\nsources = ["counters"]'
    lab.path.write_text(
        STUDY.replace('["ssh:a", "ssh:b", "ssh:c"]', hosts).replace("[1, 3]", "[4]"), "utf-8"
    )
    lab.clients["b-2"] = lab.clients["b"]
    [run] = lab.run().runs
    steps = [calls[begin : begin + 3] for begin in range(0, len(calls), 3)]
    assert [{name for name, _ in step} for step in steps] == [
        {"check"}, {"start"}, {"begin"}, {"end"}, {"stop"},
    ]  # fmt: skip
    assert all({host for _, host in step} == {"a", "b", "c"} for step in steps)
    clients = {client.name: client for client in clients_of(run.plan)}
    assert {name: client.recording["path"] for name, client in clients.items()} == {
        "a": "recordings/a",
        "b": "recordings/b",
        "b-2": "recordings/b",
        "c": "recordings/c",
    }
    # the window of a recording is by its own host's clock, and b is 3 s ahead
    window = clients["b"].window
    assert window is not None
    assert FakeRecorder.windows["b"] == tuple(end + 3_000_000_000 for end in window)
    [lost] = [reason for reason in run.verdict.reasons if reason.code == "events-lost"]
    assert "client c" in lost.text


def test_a_client_that_cannot_be_recorded_is_named_before_the_first_run(lab: Lab) -> None:
    lab.path.write_text(STUDY.replace('path = "/mnt"', 'sources = ["syscall"]'), "utf-8")
    with pytest.raises(RunError, match="client a: syscall can't be recorded"):
        lab.run()
    assert not lab.out.exists()


def test_each_client_makes_and_removes_its_own_directory(lab: Lab) -> None:
    lab.run()
    for name, host in lab.clients.items():
        removed = [path for path in host.removed if path.endswith(f"/{name}")]
        assert len(removed) == (2 if name == "a" else 1)
        assert all(path.startswith("/mnt/iolab-") for path in removed)
        assert not [path for path in host.directories if path.startswith("/mnt/")]
    assert not any(path.startswith("/srv/iolab") for path in lab.server.directories)


def test_a_client_that_fails_costs_the_run_and_ends_the_others(lab: Lab) -> None:
    def fails(command: Sequence[str]) -> int:
        return 137 if any("job.fio" in word for word in command) else 0

    lab.clients["b"] = client_host("b", lab.server.clock, seconds=1.0, fails=fails)
    lab.clients["b"].is_directory = lab.clients["a"].is_directory  # type: ignore[method-assign]
    results = lab.run()
    assert lab.listener.runs[1][1:] == ("failed", "client b: exit code 137")
    run = results.runs[1]
    assert run.verdict.level is Level.INVALID
    failed = [reason for reason in run.verdict.reasons if reason.code == "client-failed"]
    assert failed[0].data["client"] == "b"
    assert {name: host.ended != [] for name, host in lab.clients.items() if name != "b"} == {
        "a": True,
        "c": True,
    }
    assert run.value("write.iops") is None  # never the sum of fewer clients
    assert results.runs[0].value("write.iops") == 1000.0


def test_a_client_that_is_lost_costs_the_run(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    wait = FakeProcess.wait

    def lost(self: FakeProcess, seconds: float) -> int | None:
        if self._host.name == "c" and "job.fio" in self._command:
            raise RunError("the connection to the host is lost")
        return wait(self, seconds)

    monkeypatch.setattr(FakeProcess, "wait", lost)
    lab.run()
    assert lab.listener.runs[1][1:] == (
        "failed",
        "client c: the connection to the host is lost",
    )
    plan = json.loads(next((lab.out / "runs").glob("0002*/run.json")).read_text())
    status = {one["name"]: one["status"] for one in plan["extra"]["clients"]}
    assert status == {"a": "ended", "b": "ended", "c": "failed"}
    reasons = {one["name"]: one["reason"] for one in plan["extra"]["clients"]}
    assert reasons["a"] == "ended because client c failed"


def test_a_client_that_does_not_see_the_target_is_told_so(lab: Lab) -> None:
    lab.clients["c"] = client_host("c", lab.server.clock)
    lab.run()
    assert [status for _, status, _ in lab.listener.runs] == ["finished", "failed"]
    assert re.match(r"client c: does not see the target: /mnt/iolab-", lab.listener.runs[1][2])


def test_a_client_without_the_path_or_without_fio_is_refused_before_the_first_run(
    lab: Lab,
) -> None:
    del lab.clients["b"].programs["fio"]
    with pytest.raises(RunError, match="client b: fio is not installed"):
        lab.run()
    assert not lab.out.exists()
    lab.clients["b"] = client_host("b", lab.server.clock)
    lab.clients["b"].directories.discard("/mnt")
    with pytest.raises(RunError, match="client b: /mnt is not a directory there"):
        lab.run()


@pytest.mark.parametrize(
    "extra", ["log_ios = true", "steps = {factor = 'iodepth', levels = [1, 2], every = '2s'}"]
)
def test_loads_of_one_host_are_refused(lab: Lab, extra: str) -> None:
    text = STUDY.replace(
        'runtime = "2s"', extra if "steps" in extra else f'runtime = "2s"\n{extra}'
    )
    lab.path.write_text(text, "utf-8")
    with pytest.raises(RunError, match="is of one host"):
        lab.run()


def test_two_presses_of_ctrl_c_end_all_clients(lab: Lab) -> None:
    stops = Interrupts()

    class Presser(Listener):
        def update_run(self, *_: object) -> None:
            stops.press(2)

    lab.listener = Presser()
    lab.run(interrupts=stops)
    assert [status for _, status, _ in lab.listener.runs] == ["interrupted"]
    assert lab.clients["a"].ended


def test_files_of_a_client_that_changed_cost_the_run(lab: Lab) -> None:
    lab.run()
    run_dir = next((lab.out / "runs").glob("0002*"))
    (run_dir / "clients/b/fio.json").write_text("{}")
    run = Results(lab.out).runs[1]
    assert run.verdict.level is Level.INVALID
    assert "clients/b/fio.json" in {reason.data.get("file") for reason in run.verdict.reasons}
    assert run.value("write.iops") is None


@pytest.mark.parametrize(
    ("place", "export", "path", "expected"),
    [
        ("/srv/x/1", "/srv", "/mnt", "/mnt/x/1"),
        ("/srv/x/1", "/srv", None, "/srv/x/1"),
        ("/srv", "/srv", "/mnt", "/mnt/."),
        ("/srv2/x", "/srv", "/mnt", None),
        ("/srv/x", None, "/mnt", None),
    ],
)
def test_paths_of_the_server_are_found_on_the_client(
    place: str, export: str | None, path: str | None, expected: str | None
) -> None:
    if expected is None:
        with pytest.raises(RunError, match=r"load\.export"):
            path_on_clients(place, export, path)
    else:
        assert path_on_clients(place, export, path) == expected
