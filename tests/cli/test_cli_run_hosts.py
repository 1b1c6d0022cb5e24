# SPDX-License-Identifier: Apache-2.0
"""`iolab run --resume` goes on where a study was begun: on its one host, or on all of several, and
never on another unnoticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.base.clock import FakeClock
from iolab.cli.main import run
from iolab.hosts.kinds.fake import FakeHost
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.open.multi_host import host_words
from support.acting import fake_host, study_text

RUNS = 8


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeHost]:
    """What the words of a command line name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(study_text(), "utf-8")
    found = {}
    for word in ("local", "root@a", "root@b"):
        found[word] = host = fake_host(FakeClock())
        host.name = word
        if word != "local":
            host.words = word  # type: ignore[attr-defined]
    monkeypatch.setattr("iolab.hosts.kinds.parse.host_named", found.__getitem__)
    return found


def fails_from(host: FakeHost, number: int) -> None:
    host.programs["fio"].fails = lambda command: int(len(host.started) >= number)


def statuses(out: Path) -> list[tuple[str, str]]:
    return [(plan.status, plan.host) for plan in map(read_plan, run_directories(out))]


@pytest.mark.parametrize("where", [(), ("-o", "there")])
def test_a_study_of_one_far_host_goes_on_over_there(
    where: tuple[str, ...], machines: dict[str, FakeHost]
) -> None:
    out = Path(where[-1] if where else "results/small")
    fails_from(machines["root@a"], 3)
    assert run(["run", "s.toml", *where, "--host", "root@a", "--fail-fast"]) == 5
    (out / "scratch.made").write_text(json.dumps({"made": "directory", "path": "."}) + "\n")
    machines["root@a"].programs["fio"].fails = None
    assert run(["run", "s.toml", *where, "--resume"]) == 0
    assert statuses(out) == [("finished", "root@a")] * RUNS
    assert not (out / "scratch.made").exists()
    assert machines["local"].started == []
    assert machines["local"].removed == []


def test_one_killed_before_its_first_line_goes_on_over_there(
    machines: dict[str, FakeHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("iolab.studies.run.runner.gather", killed)
        patch.setattr("iolab.studies.targets.directory.DirectoryTarget.close", lambda target: None)
        with pytest.raises(Killed):
            run(["run", "s.toml", "--host", "root@a"])
    out = Path("results/small")
    assert not (out / "journal.jsonl").exists()
    assert host_words(out) == ("root@a",)
    assert run(["run", "s.toml", "--resume", "--host", "local"]) == 2
    assert run(["run", "s.toml", "--resume"]) == 0
    assert statuses(out) == [("finished", "root@a")] * RUNS
    assert machines["local"].started == []
    assert machines["local"].removed == []


def test_a_study_of_several_hosts_in_the_default_place_goes_on_on_all(
    machines: dict[str, FakeHost],
) -> None:
    fails_from(machines["root@b"], 2)
    assert run(["run", "s.toml", "--host", "root@a", "--host", "root@b"]) == 5
    machines["root@b"].programs["fio"].fails = None
    assert run(["run", "s.toml", "--resume"]) == 0
    for name in ("root@a", "root@b"):
        assert statuses(Path("results/small") / name) == [("finished", name)] * RUNS
    assert machines["local"].started == []


def test_one_of_several_hosts_can_be_named(machines: dict[str, FakeHost]) -> None:
    fails_from(machines["root@b"], 2)
    assert run(["run", "s.toml", "--host", "root@a", "--host", "root@b"]) == 5
    machines["root@b"].programs["fio"].fails = None
    assert run(["run", "s.toml", "--resume", "--host", "root@b"]) == 0
    assert statuses(Path("results/small/root@b")) == [("finished", "root@b")] * RUNS


def test_another_host_is_refused(
    machines: dict[str, FakeHost], capsys: pytest.CaptureFixture[str]
) -> None:
    fails_from(machines["root@a"], 3)
    assert run(["run", "s.toml", "--host", "root@a", "--fail-fast"]) == 5
    capsys.readouterr()
    assert run(["run", "s.toml", "--resume", "--host", "local"]) == 2
    assert (
        "begun on host 'root@a', not on 'local'; continue there: name that host with --host"
        in capsys.readouterr().err
    )
    assert machines["local"].started == []


def test_where_nothing_was_begun_a_study_begins_here(machines: dict[str, FakeHost]) -> None:
    assert run(["run", "s.toml", "--resume"]) == 0
    assert statuses(Path("results/small")) == [("finished", "local")] * RUNS
    assert host_words(Path("results/small")) == ()


@pytest.mark.parametrize("name", ["7", '"a b"'])
def test_a_name_that_is_none_is_told_by_the_study(
    name: str, machines: dict[str, FakeHost], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("s.toml").write_text(study_text().replace('"small"', name))
    assert run(["run", "s.toml", "--resume"]) == 4
    assert "study.name" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{", '{"schema_version": 1, "reproduce": 7}'])
def test_with_a_damaged_manifest_no_host_is_guessed(
    text: str, machines: dict[str, FakeHost], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("results/small").mkdir(parents=True)
    Path("results/small/manifest.json").write_text(text)
    assert run(["run", "s.toml", "--resume"]) == 3
    assert "manifest.json" in capsys.readouterr().err
    assert machines["local"].started == []
