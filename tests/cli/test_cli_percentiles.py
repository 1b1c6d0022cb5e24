# SPDX-License-Identifier: Apache-2.0
"""`iolab query --percentiles`: values are those of a count by hand, and every mistake is one line."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest

from iolab.cli.main import run

LATENCIES_US = [100 + 7 * (place * 37 % 100) for place in range(4000)]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four seconds with 1000 I/Os each; the third one has none of process dd."""
    path = tmp_path_factory.mktemp("trace") / "t.csv"
    lines = [
        f"{place},{latency},4096,read,{'fio' if place // 1000 == 2 or place % 2 else 'dd'}\n"
        for place, latency in enumerate(LATENCIES_US)
    ]
    path.write_text("start:ms,latency:us,size:bytes,op,process\n" + "".join(lines))
    return path


def test_each_second(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["query", str(trace), "io.ops[latency]", "--percentiles", "--interval", "1s"]
    assert run([*words, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) >= 4
    for second, row in enumerate(rows[:4]):
        # an I/O counts when it ends
        latencies = sorted(
            1000 * latency
            for place, latency in enumerate(LATENCIES_US)
            if int(place + latency / 1000) // 1000 == second
        )
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
            exact = latencies[math.ceil(share * len(latencies)) - 1]
            assert exact <= float(row[name]) <= exact * (1 + 1 / 64)
        assert float(row["mean"]) == pytest.approx(sum(latencies) / len(latencies), rel=1 / 64)


def test_a_time_without_ios_is_null(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    statistic = "io.ops[process=dd][latency]"
    words = ["query", str(trace), statistic, "--percentiles", "--interval", "1s"]
    assert run([*words, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["unit"]) == ("percentiles", "ns")
    lines = {line["key"]: line["values"] for line in document["lines"]}
    assert lines["p50"][2] is None
    assert lines["p50"][1] is not None
    assert run(words) == 0
    out = capsys.readouterr().out
    assert "╱" in out
    assert "p99.9" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["io.ops"], "--percentiles: needs a map"),
        (["io.ops[op]"], "--percentiles: needs a map"),
        (["io.bytes[latency]"], "percentiles are of I/Os, not of bytes"),
        (["io.ops[latency]", "--follow"], "--follow cannot be combined with"),
        (["io.ops[latency]", "--explain"], "--explain cannot be combined with"),
    ],
)
def test_mistakes(
    trace: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run(["query", str(trace), *arguments, "--percentiles"]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert words in captured.err
    assert len(captured.err.splitlines()) == 1


def test_nothing_is_one_line(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", str(trace), "io.ops[op=write][latency]", "--percentiles"]) == 0
    assert "percentiles of 0 I/Os" in capsys.readouterr().out
