# SPDX-License-Identifier: Apache-2.0
"""Traces through the Python binding: shapes, counts against logs that fio itself made, and what
users are told."""

from __future__ import annotations

import gzip
import itertools
import json
import lzma
import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab import _core

LOG = "0, 29105, 0, 8192, 1007616, 0\n0, 1242815, 1, 8192, 12419072, 0\n1, 145088, 0, 4096, 8192, 0\n1500, 9000, 2, 65536, 14139392, 0\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "x_lat.1.log"
    path.write_text(LOG)
    return path


def cells(found: dict[str, Any]) -> list[tuple[int, int, int]]:
    column, index = (np.frombuffer(found[name], "<u4").tolist() for name in ("column", "index"))
    return list(zip(column, index, np.frombuffer(found["count"], "<u8").tolist(), strict=True))


def test_formats_and_detection(log: Path, tmp_path: Path) -> None:
    assert _core.trace_detect(str(log)) == "fio-lat"
    assert {"fio-lat", "fio-hist", "blktrace", "blkparse", "biosnoop", "iosnoop", "csv"} <= set(
        _core.trace_formats()
    )
    noise = tmp_path / "noise"
    noise.write_bytes(bytes(range(256)) * 20)
    assert _core.trace_detect(str(noise)) is None


def test_summary(log: Path) -> None:
    found = _core.trace_summary(str(log), None, None, {})
    assert found["format"] == "fio-lat"
    assert found["events"] == 4
    assert found["ops"] == {"read": 2, "write": 1, "trim": 1}
    assert (found["first_ns"], found["last_ns"], found["backwards"]) == (0, 1_500_000_000, 0)
    assert found["has"] == ["time", "latency", "offset", "size", "op"]
    assert found["percentiles"]["latency"]["max"] == 1_242_815
    assert found["mean"]["latency"] == pytest.approx((29105 + 1242815 + 145088 + 9000) / 4)
    assert found["latency_by"]["op"]["write"]["count"] == 1
    assert found["damaged"] == found["losses"] == found["unpaired"] == 0


def test_map_on_the_grid(log: Path) -> None:
    found = _core.trace_heatmap(str(log), "latency", interval_ns=1_000_000_000)
    rows = [(0, 29105), (0, 1242815), (1, 145088), (1500, 9000)]
    expected = Counter((time // 1000, _core.grid_index(latency, 3)) for time, latency in rows)
    assert cells(found) == sorted(
        (column, index, count) for (column, index), count in expected.items()
    )
    assert (
        found["grid"],
        found["bits"],
        found["t0_ns"],
        found["column_count"],
        found["events"],
    ) == ("log", 3, 0, 2, 4)


def test_map_of_offsets_filter_and_weight(log: Path) -> None:
    found = _core.trace_heatmap(
        str(log), "offset", where={"op": ["read"]}, linear_buckets=256, weight="time"
    )
    assert (found["grid"], found["events"], found["skipped_by_filter"]) == ("linear", 2, 2)
    assert found["buckets"] <= 256
    lower = {found["low"] + index * found["width"]: count for _, index, count in cells(found)}
    assert lower == {
        1007616 // found["width"] * found["width"]: 29105,
        8192 // found["width"] * found["width"]: 145088,
    }


def test_map_with_an_interval_of_its_own_choice(log: Path) -> None:
    found = _core.trace_heatmap(str(log), "size", columns_wanted=100)
    assert found["interval_ns"] == 20_000_000
    assert found["column_count"] == 76


def test_range_and_nothing_left(log: Path) -> None:
    found = _core.trace_heatmap(str(log), "latency", y_low=10_000, y_high=200_000)
    assert (found["events"], found["outside"]) == (2, 2)
    found = _core.trace_heatmap(
        str(log), "latency", where={"device": ["sda"], "size": ["4096..8192"]}
    )
    assert (found["events"], found["column"], found["column_count"]) == (0, b"", 0)


def test_events(log: Path) -> None:
    batches = list(_core.trace_events(str(log), where={"latency": ["..1000000"]}))
    assert len(batches) == 1
    batch = batches[0]
    assert batch["rows"] == 3
    assert np.frombuffer(batch["time_ns"], "<i8").tolist() == [0, 1_000_000, 1_500_000_000]
    assert np.frombuffer(batch["offset_bytes"], "<u8").tolist() == [1007616, 8192, 14139392]
    assert [_core.trace_ops()[code] for code in batch["op"]] == ["read", "read", "trim"]
    assert batch["device_valid"] == b"\0\0\0"
    assert batch["skipped_by_filter"] == 1


def test_names_of_events_continue_over_batches(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(
        "time_us,device\n" + "".join(f"{time},d{time // 20_000}\n" for time in range(100_000))
    )
    names: list[str] = []
    devices: list[str] = []
    batches = list(_core.trace_events(str(table), batch=1000))
    for batch in batches:
        names += batch["device_names"]
        devices += [names[key] for key in np.frombuffer(batch["device"], "<u4")]
    assert len(batches) > 1
    assert devices == [f"d{time // 20_000}" for time in range(100_000)]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_compressed(log: Path, pack: Any) -> None:
    packed = log.with_name(log.name + (".gz" if pack is gzip.compress else ".xz"))
    packed.write_bytes(pack(log.read_bytes()))
    assert _core.trace_summary(str(packed)) == _core.trace_summary(str(log))
    packed.write_bytes(packed.read_bytes()[:-9])
    cut = _core.trace_summary(str(packed))
    assert cut["damaged"] == 1
    assert "damaged or truncated" in cut["damaged_examples"][0][1]


def test_standard_input(log: Path) -> None:
    code = "from iolab import _core; print(_core.trace_summary('-')['events'])"
    done = subprocess.run(
        [sys.executable, "-c", code], input=log.read_bytes(), capture_output=True, check=True
    )
    assert done.stdout == b"4\n"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda path: _core.trace_summary(str(path / "absent")), "no such file"),
        (lambda path: _core.trace_summary(str(path)), "is a directory"),
        (lambda path: _core.trace_summary(str(path / "empty")), "empty"),
        (lambda path: _core.trace_summary(str(path / "noise")), "unknown trace format"),
        (lambda path: _core.trace_summary(str(path / "log"), "fio"), "no format"),
        (lambda path: _core.trace_summary(str(path / "log"), None, "time:fortnight"), "no unit"),
        (
            lambda path: _core.trace_summary(str(path / "log"), where={"colour": ["red"]}),
            "no condition",
        ),
        (lambda path: _core.trace_heatmap(str(path / "log"), "colour"), "latency, offset, size"),
        (lambda path: _core.trace_heatmap(str(path / "log"), "latency", bits=12), "bits"),
        (
            lambda path: _core.trace_heatmap(str(path / "log"), "latency", y_low=5, y_high=5),
            "range",
        ),
        (
            lambda path: _core.trace_heatmap(
                str(path / "log"), "latency", where={"latency": ["1ms..2ms"]}
            ),
            "LOW..HIGH",
        ),
        (lambda path: _core.trace_detect("-"), "standard input"),
    ],
)
def test_errors_are_one_line(tmp_path: Path, call: Any, words: str) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "log").write_text(LOG)
    with pytest.raises(ValueError, match=words) as raised:
        call(tmp_path)
    assert "\n" not in str(raised.value)


def test_ctrl_c_is_obeyed_while_waiting_for_a_pipe() -> None:
    code = textwrap.dedent("""
        from iolab import _core
        try:
            print("ready", flush=True)
            _core.trace_summary("-")
        except KeyboardInterrupt:
            print("stopped", flush=True)
            import os; os._exit(0)
    """)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "stopped\n"


@given(st.lists(st.integers(0, 1 << 40), max_size=50), st.integers(0, 6), st.integers(0, 6))
def test_coarsening_is_as_if_counted_coarse(values: list[int], bits: int, fewer: int) -> None:
    fine, coarse = max(bits, fewer), min(bits, fewer)

    def counted(resolution: int) -> tuple[list[int], list[int]]:
        counts = sorted(Counter(_core.grid_index(value, resolution) for value in values).items())
        return [index for index, _ in counts], [count for _, count in counts]

    assert _core.coarsen(*counted(fine), fine, coarse) == counted(coarse)


def test_powers_of_two_move_whole() -> None:
    indices, counts = _core.take_over_log2([0, 3, 0, 7])
    assert ([_core.grid_bounds(index, 0) for index in indices], counts) == (
        [(2, 3), (8, 15)],
        [3, 7],
    )
    with pytest.raises(ValueError, match="64"):
        _core.take_over_log2([1] * 65)


@pytest.fixture(scope="module")
def made_by_fio(fio: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("fio")
    command = [
        fio,
        "--name=a",
        "--filename=" + str(folder / "data"),
        "--size=16M",
        "--bsrange=4k-64k",
        "--rw=randrw",
        "--ioengine=psync",
        f"--write_lat_log={folder / 'run'}",
        f"--write_bw_log={folder / 'run'}",
        f"--write_iops_log={folder / 'run'}",
        f"--write_hist_log={folder / 'run'}",
        "--log_hist_msec=10",
        "--log_offset=1",
        "--lat_percentiles=1",
        "--output-format=json+",
    ]
    done = subprocess.run(command, capture_output=True, check=True, cwd=folder, text=True)
    return folder, json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]


@pytest.mark.fio
def test_events_of_a_latency_log_are_fios_total(made_by_fio: tuple[Path, dict[str, Any]]) -> None:
    folder, job = made_by_fio
    for name, form in [
        ("lat", "fio-lat"),
        ("clat", "fio-lat"),
        ("bw", "fio-bw"),
        ("iops", "fio-iops"),
    ]:
        found = _core.trace_summary(str(folder / f"run_{name}.1.log"))
        assert found["format"] == form
        assert found["assumptions"] == []
        assert found["ops"] == {op: job[op]["total_ios"] for op in ("read", "write")}
        assert found["damaged"] == 0


@pytest.mark.fio
def test_bytes_and_latencies_of_a_log_are_fios(made_by_fio: tuple[Path, dict[str, Any]]) -> None:
    folder, job = made_by_fio
    path = str(folder / "run_lat.1.log")
    for op in ("read", "write"):
        sizes = [
            np.frombuffer(batch["size_bytes"], "<u8").sum()
            for batch in _core.trace_events(path, where={"op": [op]})
        ]
        assert sum(sizes) == job[op]["io_bytes"]
        found = _core.trace_summary(path, where={"op": [op]})
        assert found["mean"]["latency"] == pytest.approx(job[op]["lat_ns"]["mean"], rel=1e-6)
        # fio counts on the grid of 6 bits as well, so its bins are the map's
        bins = _core.take_over_fio_bins(
            [(int(key), count) for key, count in job[op]["lat_ns"]["bins"].items()]
        )
        heat = _core.trace_heatmap(path, "latency", bits=6, where={"op": [op]}, interval_ns=1 << 60)
        assert [(index, count) for _, index, count in cells(heat)] == list(zip(*bins, strict=True))


@pytest.mark.fio
def test_a_histogram_log_counts_what_its_lines_say(
    made_by_fio: tuple[Path, dict[str, Any]],
) -> None:
    folder, _ = made_by_fio
    path = folder / "run_clat_hist.1.log"
    rows = [[int(word) for word in line.split(",")] for line in path.read_text().splitlines()]
    if not rows:
        pytest.skip("fio was done before its first histogram")
    found = _core.trace_summary(str(path))
    assert found["format"] == "fio-hist"
    assert found["events"] == sum(sum(row[3:]) for row in rows)
    heat = _core.trace_heatmap(str(path), "latency", bits=6, interval_ns=1 << 60)
    per_bin = [(index, sum(row[3 + index] for row in rows)) for index in range(len(rows[0]) - 3)]
    assert [(index, count) for _, index, count in cells(heat)] == [
        entry for entry in per_bin if entry[1]
    ]


@pytest.mark.fio
def test_maps_of_a_real_log_agree_with_its_lines(made_by_fio: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made_by_fio
    path = folder / "run_lat.1.log"
    rows = [[int(word, 0) for word in line.split(",")] for line in path.read_text().splitlines()]
    for y, place in [("latency", 1), ("size", 3), ("offset", 4)]:
        heat = _core.trace_heatmap(str(path), y)
        interval = heat["interval_ns"]

        def bucket(value: int, heat: dict[str, Any] = heat) -> int:
            return (
                _core.grid_index(value, 3)
                if heat["grid"] == "log"
                else int((value - heat["low"]) // heat["width"])
            )

        expected = Counter(
            (row[0] * 1_000_000 // interval - heat["t0_ns"] // interval, bucket(row[place]))
            for row in rows
        )
        assert cells(heat) == sorted(
            (column, index, count) for (column, index), count in expected.items()
        ), y
        assert sum(count for _, _, count in cells(heat)) == heat["events"] == len(rows)
        assert list(itertools.islice(cells(heat), 1))
