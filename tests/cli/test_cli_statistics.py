# SPDX-License-Identifier: Apache-2.0
"""`iolab catalog statistics` and `iolab who`, and counters in every style, as a user types
them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

from iolab.base.clock import FakeClock
from iolab.cli.main import run
from iolab.recordings.ask.language.catalogue import CATALOGUE
from iolab.recordings.store.base.schema import SAMPLES
from iolab.recordings.store.write.writer import RecordingWriter

SECOND = 10**9
START = 1_700_000_000 * SECOND


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A thousand reads; each tenth is slow, and dd's."""
    path = tmp_path / "t.csv"
    lines = [
        f"{at},{5000 if at % 10 == 0 else 100},8192,read,{'dd' if at % 10 == 0 else 'fio'}\n"
        for at in range(1000)
    ]
    path.write_text("time:ms,latency:us,size:bytes,op,process\n" + "".join(lines))
    return path


@pytest.fixture
def counters(tmp_path: Path) -> Path:
    """Ten seconds of a disk with two partitions, and of two processors."""
    rows = []
    for at in range(11):
        rows += [
            ("diskstats", at, thing, "reads", 10 * at * part)
            for thing, part in (("sda", 3), ("sda1", 2), ("sda2", 1))
        ]
        rows += [("diskstats", at, "sda", "io_ms", 250 * at)]
        rows += [
            ("cpu", at, thing, field, at * step)
            for thing, many in (("", 2), ("cpu0", 1), ("cpu1", 1))
            for field, step in (("user", 30 * many), ("idle", 70 * many))
        ]
    columns = list(
        zip(
            *(
                (source, START + at * SECOND, thing, field, value)
                for source, at, thing, field, value in rows
            ),
            strict=True,
        )
    )
    clock = FakeClock(START)
    with RecordingWriter.create(
        tmp_path / "r", host="here", clock="realtime", origin={"kind": "record"}, system=clock
    ) as writer:
        writer.append_samples(
            pa.RecordBatch.from_arrays(
                [
                    pa.array(column, field.type)
                    for column, field in zip(columns, SAMPLES, strict=True)
                ],
                schema=SAMPLES,
            )
        )
        clock.sleep(10)
    return tmp_path / "r"


def done(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    assert run([str(arg) for arg in args]) == 0
    out, _ = capsys.readouterr()
    return out


def test_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(done(capsys, "catalog", "statistics", "--format", "json"))["entries"]
    assert [each["name"] for each in found] == list(CATALOGUE)
    assert all(each["answered_by"] or each["why_not"] for each in found)
    assert all(each["about"] and each["covers"] for each in found)
    assert [each["name"] for each in found if not each["breakdowns"]] == [
        "arc.hit_ratio",
        "l2arc.headers",
        "zil.commits",
    ]
    out = done(capsys, "catalog", "statistics")
    assert "from events or counters" in out


def test_the_catalogue_of_a_recording_and_a_trace(
    counters: Path, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {
        each["name"]: each
        for each in json.loads(done(capsys, "catalog", "statistics", counters, "--format", "json"))[
            "entries"
        ]
    }
    assert (found["io.ops"]["answered_by"], found["io.ops"]["answered_breakdowns"]) == (
        "diskstats",
        ["op", "device"],
    )
    assert found["net.bytes"]["why_not"] == "there are no counters of network"
    out = done(capsys, "catalog", "statistics", trace)
    assert "from events or counters, by csv; by op, process, latency, size\n" in out
    assert (
        "not by device, file, mount, client, job, pid, thread, error, flags, queue, offset, enclosure, slot, pool, vdev: "
        "what was recorded does not tell them" in out
    )
    found = {
        each["name"]: each
        for each in json.loads(done(capsys, "catalog", "statistics", trace, "--format", "json"))[
            "entries"
        ]
    }
    assert (
        found["io.ops"]["lacking"]["client"]
        == "only a table with a column of that name has the client"
    )
    assert (
        found["io.ops"]["lacking"]["file"]
        == "csv events have no file; file.ops has it, where it was recorded"
    )
    assert "not here: there are no counters of cpu" in out
    assert run(["catalog", "metrics", str(trace)]) == 2
    assert "a path is for statistics alone" in capsys.readouterr().err


def test_counters_in_every_style(counters: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = done(capsys, "query", counters, "io.ops[device]")
    assert "r: io.ops[device]: 300 I/Os over 10 s, 30.00 1/s on average" in out
    assert "66.7 %" in out
    assert "counters of diskstats" in out
    assert (
        "note: the sum holds sda; not sda1, sda2, which are partitions, stacked devices, or no disks"
        in out
    )
    assert "30.00 % on average" in done(capsys, "query", counters, "cpu.utilization")
    rows = list(
        csv.DictReader(
            io.StringIO(
                done(
                    capsys,
                    "query",
                    counters,
                    "cpu.utilization[cpu]",
                    "--format",
                    "csv",
                    "--interval",
                    "5s",
                )
            )
        )
    )
    assert [row["cpu"] for row in rows[:2]] == ["cpu0", "cpu1"]
    assert [float(row["value"]) for row in rows[:2]] == pytest.approx([0.3, 0.3])
    found = json.loads(
        done(capsys, "query", counters, "cpu.utilization[cpu]", "--format", "json", "--top", "1")
    )
    assert (found["unit"], found["source"], found["mean"]) == ("1", "cpu", pytest.approx(0.3))
    assert found["others"]["mean"] == pytest.approx(0.3)
    heat = json.loads(
        done(
            capsys,
            "query",
            counters,
            "io.utilization[utilization]",
            "--format",
            "json",
            "--interval",
            "5s",
        )
    )
    assert (heat["y"], heat["low"], heat["high"], heat["count"], heat["lost"]) == (
        "utilization",
        [25, 25],
        [26, 26],
        [5, 5],
        0,
    )
    # the last reading, at ten seconds, begins a third column
    assert "10 readings over 15 s" in done(
        capsys, "query", counters, "io.utilization[utilization]", "--interval", "5s"
    )


@pytest.mark.slow
def test_who(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = done(capsys, "who", trace, "io.ops[latency]", "--range", "1ms..1s", "--to", "0.5s")
    assert "t.csv: io.ops[latency]: 50 I/Os within 1ms..1s, 950 I/Os outside" in out
    assert "the same inside and outside: device, file, client, op" in out
    rows = list(
        csv.DictReader(
            io.StringIO(
                done(
                    capsys, "who", trace, "io.ops[latency]", "--range", "1ms..1s", "--format", "csv"
                )
            )
        )
    )
    assert [
        (row["dimension"], row["value"], row["inside"], row["outside"], row["share_inside"])
        for row in rows[:2]
    ] == [("process", "dd", "100", "0", "1.0"), ("process", "fio", "0", "900", "0.0")]
    found = json.loads(
        done(capsys, "who", trace, "io.ops[latency]", "--range", "1ms..", "--format", "json")
    )
    assert (found["kind"], found["inside"], found["outside"], found["dimensions"][0]["field"]) == (
        "who",
        100,
        900,
        "process",
    )
    assert "nothing is inside" in done(capsys, "who", trace, "io.ops[latency]", "--range", "1h..2h")
    for statistic, values, says in (
        ("io.ops[op]", "1ms..", "needs a map"),
        ("io.ops[latency]", "1ms", "is not a range"),
        ("io.utilization[utilization]", "5..", "needs a map"),
    ):
        assert run(["who", str(trace), statistic, "--range", values]) == 2
        assert says in capsys.readouterr().err
