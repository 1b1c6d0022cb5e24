# SPDX-License-Identifier: Apache-2.0
"""Labels of hosts in an archive: set by a push, asked as conditions and breakdowns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import UsageError
from iolab.cli.main import run
from iolab.recordings.archive.labels import LONGEST, parse_label
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import START, events

RACKS = {"db1": "r1", "db2": "r1", "web": "r2"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An archive of three hosts in two racks, with 100, 200 and 300 rows of I/Os."""
    home = tmp_path_factory.mktemp("labels")
    for seed, (host, rack) in enumerate(RACKS.items(), 1):
        with RecordingWriter.create(
            home / host, host=host, clock="realtime", origin={"kind": "record"},
            sources={"block": {}}, live=False,
        ) as writer:  # fmt: skip
            writer.append_events(events(100 * seed, seed, start_ns=START, per_s=50))
        words = ["--label", f"rack={rack}", "--label", "role=storage"]
        assert run(["archive", "push", str(home / host), str(home / "archive"), *words]) == 0
    return str(home / "archive")


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert run([*words, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_label_is_a_condition_and_a_breakdown(
    fleet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"archive:{fleet}"

    def totals(statistic: str) -> dict[str, int]:
        return {row["key"]: row["total"] for row in ask(capsys, "query", path, statistic)["keys"]}

    hosts = totals("io.ops[host]")
    racks = {"r1": hosts["db1"] + hosts["db2"], "r2": hosts["web"]}
    assert totals("io.ops[rack]") == racks
    assert ask(capsys, "query", path, "io.ops[rack=r1]")["total"] == racks["r1"]
    assert ask(capsys, "query", path, "io.ops[rack!=r1]")["total"] == racks["r2"]
    maps = ask(capsys, "query", path, "io.ops[latency][rack]")["hosts"]
    assert [item["rack"] for item in maps] == sorted(racks, key=lambda rack: -racks[rack])
    assert run(["query", path, "io.ops[op][rack]", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("rack,time_s,op,value")
    assert run(["heatmap", path, "--where", "rack=r1,op=read", "--screen", "text"]) == 0
    for words in (
        ["query", path, "io.ops[rack=r9]"],
        ["query", path, "io.ops[rack>r1]"],
        ["query", path, "io.ops[row=1]"],
        ["query", path, "io.ops[rack][host]"],
        ["heatmap", path, "--where", "rack=r9"],
    ):
        capsys.readouterr()
        assert run(words) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.slow
def test_outliers_within_a_rack(fleet: str, capsys: pytest.CaptureFixture[str]) -> None:
    ranked = ask(capsys, "archive", "outliers", fleet, "--within", "rack")["hosts"]
    assert {(item["host"], item["rack"]) for item in ranked} == {("db1", "r1"), ("db2", "r1")}
    # of two hosts, each is the others of the other one
    assert ranked[0]["distance"] == ranked[1]["distance"]
    assert ranked[0]["quantiles"] == ranked[1]["others"]
    assert {item["host"] for item in ask(capsys, "archive", "outliers", fleet)["hosts"]} == {*RACKS}
    assert run(["archive", "outliers", fleet, "--within", "rack"]) == 0
    assert "note: rack r2 has one host" in capsys.readouterr().err
    assert run(["archive", "outliers", fleet, "--within", "row"]) == 2


@pytest.mark.slow
def test_a_later_push_changes_labels(fleet: str, capsys: pytest.CaptureFixture[str]) -> None:
    recording = Path(fleet).parent / "web"
    words = ["archive", "push", str(recording), fleet]
    assert run([*words, "--label", "role=", "--label", "site=a b"]) == 0
    listed = {
        item["host"]: item["labels"] for item in ask(capsys, "archive", "list", fleet)["recordings"]
    }
    assert listed["web"] == {"rack": "r2", "site": "a b"}
    assert listed["db1"] == {"rack": "r1", "role": "storage"}
    assert run(["archive", "list", fleet]) == 0
    assert "rack=r2,site=a b" in capsys.readouterr().out
    for label in ("host=a", "op=read", "Rack=r1", "rack", "=r1"):
        assert run([*words, "--label", label]) == 2


def test_a_recorder_refuses_labels_without_an_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["record", "counters", "-o", str(tmp_path / "rec"), "--label"]
    assert run([*words, "rack=r1"]) == 2
    assert run([*words, "op=r1", "--archive", str(tmp_path / "archive")]) == 2
    assert not (tmp_path / "rec").exists()


@pytest.mark.parametrize("words", ["a" * 40 + "=1", "rack=\x1b[31m", "rack=" + "x" * (LONGEST + 1)])
def test_a_label_that_can_not_be(words: str) -> None:
    with pytest.raises(UsageError):
        parse_label(words)
