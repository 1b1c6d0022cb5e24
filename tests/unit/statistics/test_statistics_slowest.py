# SPDX-License-Identifier: Apache-2.0
"""The slowest I/Os: from which value on, in which columns of time, and their bursts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from iolab.base.errors import UsageError
from iolab.cli.main import run
from iolab.recordings.ask.slowest import find_bursts, slowest, uppermost
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.grids import LogLinear


def counts_of(cells: list[tuple[int, int, int]]) -> HeatCounts:
    """A map of (column, latency in ns, I/Os), columns of 1 s."""
    grid = LogLinear(6)
    rows = sorted((column, grid.index(latency), count) for column, latency, count in cells)
    column, index, count = (np.array(part, dtype=np.int64) for part in zip(*rows, strict=True))
    return HeatCounts("latency", 0, 10**9, grid, column, index, count, events=int(count.sum()))


def columns_of(times: list[int]) -> tuple[np.ndarray, np.ndarray]:
    filled = np.bincount(times)
    return np.flatnonzero(filled), filled[np.flatnonzero(filled)]


def test_the_slowest_percent_begins_at_a_bucket() -> None:
    counts = counts_of([(0, 100_000, 980), (1, 5_000_000, 12), (3, 90_000_000, 8)])
    one = slowest(counts, 0.005)
    two = slowest(counts, 0.01)
    assert one is not None
    assert two is not None
    assert (one.inside, one.columns.numbers, one.total) == (8, (3,), 1000)
    assert 89_000_000 <= one.low <= 90_000_000
    assert (two.inside, two.columns.numbers) == (20, (1, 3))
    assert 4_900_000 <= two.low <= 5_000_000


def test_a_map_without_ios_has_no_slowest() -> None:
    empty = np.array([], dtype=np.int64)
    assert slowest(HeatCounts("latency", 0, 1, LogLinear(6), empty, empty, empty), 0.01) is None


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, float("nan")])
def test_a_share_is_a_part(share: float) -> None:
    with pytest.raises(UsageError):
        slowest(counts_of([(0, 1000, 1)]), share)


@pytest.mark.parametrize(
    ("begins", "count", "period_ns"),
    [
        ([5, 15, 25, 35, 45, 55], 6, 10 * 10**9),
        ([5, 30], 2, None),
        ([3, 8, 30, 36, 58], 5, None),
    ],
)
def test_bursts_are_counted(begins: list[int], count: int, period_ns: int | None) -> None:
    times = [begin + place % 2 for begin in begins for place in range(40)]
    bursts = find_bursts(*columns_of([*times, *range(0, 60, 7)]), 60, 10**9)
    assert bursts is not None
    assert (bursts.count, bursts.period_ns) == (count, period_ns)
    assert bursts.share >= 0.8


@pytest.mark.parametrize("amount", [20, 50, 100, 200, 400, 1000, 5000])
def test_random_ios_are_no_bursts(amount: int) -> None:
    random = np.random.default_rng(447)
    found = [
        find_bursts(*columns_of(random.integers(0, 300, amount).tolist()), 300, 10**9)
        for _ in range(100)
    ]
    assert sum(bursts is not None for bursts in found) <= 1


@pytest.mark.parametrize(
    ("sources", "statistic"),
    [
        ({"block"}, "io.ops"),
        ({"block", "syscall"}, "file.ops"),
        ({"block", "nfs"}, "nfs.ops"),
        ({"fio", "syscall", "block"}, "app.ops"),
        (set(), "io.ops"),
    ],
)
def test_the_uppermost_layer_is_asked(sources: set[str], statistic: str) -> None:
    assert uppermost(sources) == statistic


@pytest.fixture
def bursts_trace(tmp_path: Path) -> Path:
    """A minute of reads by `victim`, and every ten seconds a second of slow writes by `copy`. During
    them the victim is as slow as before."""
    lines = ["time:ms,latency:us,op,process,file"]
    for second in range(60):
        lines += [f"{second * 1000 + place * 10},100,read,victim,db" for place in range(100)]
        if second % 10 == 5:
            lines += [f"{second * 1000 + place * 50},9000,write,copy,bulk" for place in range(20)]
    path = tmp_path / "bursts.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_who_names_the_process_of_periodic_bursts(
    bursts_trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["who", str(bursts_trace), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["statistic"] == "io.ops[latency]"
    assert document["bursts"]["count"] == 6
    assert document["bursts"]["period_ns"] == 10 * 10**9
    # others are those of the same columns of 0.2 s, not of the whole minute
    assert (document["inside"], document["outside"]) == (120, 6 * 100)
    [process] = [item for item in document["dimensions"] if item["field"] == "process"]
    assert process["values"][0]["value"] == "copy"
    assert run(["who", str(bursts_trace)]) == 0
    text = capsys.readouterr().out
    assert "6 bursts, every 10 s" in text
    fields = [line.split()[0] for line in text.splitlines() if "apart)" in line]
    assert fields[:2] == ["process", "file"]
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--slowest", "0%"], "is not a part of all I/Os"),
        (["--slowest", "x"], "is not a part of all I/Os"),
        (["--slowest", "1%", "--range", "1ms.."], "--slowest cannot be combined with --range"),
        (["io.ops[op]"], "needs a map"),
        (["io.ops[latency>=1h]"], "there is no I/O"),
    ],
)
def test_what_who_refuses(
    bursts_trace: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["who", str(bursts_trace), *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1


def test_own_processes_are_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["time:ms,latency:us,op,process"]
    for place in range(1000):
        lines.append(f"{place},100,read,app")
        if place % 10 == 0:
            lines.append(
                f"{place},{9000 if place % 20 else 8000},write,{'iolab' if place % 20 else 'dd'}"
            )
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    assert run(["import", str(tmp_path / "t.csv"), "-o", str(tmp_path / "r")]) == 0
    capsys.readouterr()

    def who(*options: str) -> tuple[list[str], list[str]]:
        assert run(["who", str(tmp_path / "r"), *options, "--format", "json"]) == 0
        document = json.loads(capsys.readouterr().out)
        [process] = [item for item in document["dimensions"] if item["field"] == "process"]
        return sorted(item["value"] for item in process["values"]), document["notes"]

    names, notes = who("--range", "5ms..")
    assert names == ["app", "dd"]
    assert any(note.startswith("50 I/Os of iolab's own processes are left out") for note in notes)
    for options in (
        ("--range", "5ms..", "--all"),
        ("io.ops[process=iolab,dd,app]", "--range", "5ms.."),
    ):
        names, notes = who(*options)
        assert "iolab" in names
        assert not any("own processes" in note for note in notes)
