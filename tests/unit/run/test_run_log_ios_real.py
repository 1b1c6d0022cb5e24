# SPDX-License-Identifier: Apache-2.0
"""`log_ios` with the real fio: the recording holds what fio counted, to the last I/O and the last
bucket; and outlives kills."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import iolab
from iolab import _core
from iolab.formats.core.tables import FioDirection
from iolab.formats.fio.json_output import FioJson
from iolab.formats.fio.pool import pool_jobs
from iolab.recordings.ask.query import heat
from iolab.recordings.ask.question import Question
from iolab.recordings.store.read.recording import Recording
from iolab.studies.results.evidence.files import read_io_log, read_plan, run_directories
from iolab.studies.results.open.results import Results
from iolab.studies.run.study import run_study
from support.acting import Listener
from support.depth import depth
from support.probe import need_tracing
from support.waiting import PATIENCE

pytestmark = pytest.mark.fio

CODE = (
    "import sys; from pathlib import Path; from iolab.studies.run.study import How, run_study; "
    "run_study(Path(sys.argv[1]), Path(sys.argv[2]), How(resume=True, trusted=True))"
)


def study(
    folder: Path, *, runtime: str = "2s", extra: str = "", options: str = "", factors: str = ""
) -> Path:
    path = folder / "study.toml"
    path.write_text(
        f"""
[study]
name = "ios"
repetitions = 1

[workload]
kind = "fio"
runtime = "{runtime}"
log_ios = true
{extra}

[workload.options]
rw = "randrw"
size = "8m"
{options}

[factors]
{factors}

[variants.plain]
""",
        "utf-8",
    )
    return path


def fio_of(run_dir: Path) -> dict[str, FioDirection]:
    fio = FioJson().read((run_dir / "fio.json").read_bytes(), "fio.json")
    return {
        name: each
        for name, each in pool_jobs(fio.jobs).directions.items()
        if name in ("read", "write")
    }


def recorded(run_dir: Path) -> list[dict[str, Any]]:
    said = read_io_log(run_dir)
    segments = [
        each
        for each in Recording(run_dir.parent.parent / said["recording"]).segments()
        if each.facts["label"] == said["label"]
    ]
    return [row for each in segments for row in pq.read_table(each.path).to_pylist()]


def test_the_recording_holds_what_fio_counted(fio: str, tmp_path: Path) -> None:
    heard = Listener()
    out = run_study(
        study(
            tmp_path,
            options='ioengine = "libaio"\niodepth = 4\nnumjobs = 2',
            factors='bs = ["4k", "64k"]',
        ),
        tmp_path / "out",
        listener=heard,
    )
    results = Results(out)
    assert [run.plan.status for run in results.runs] == ["finished"] * 2
    for run, run_dir in zip(results.runs, run_directories(out), strict=True):
        rows, counted = recorded(run_dir), fio_of(run_dir)
        said = read_io_log(run_dir)
        assert said["kept"] is None, said
        assert not (run_dir / "ios").exists()
        assert Counter(row["op"] for row in rows) == {
            name: each.ios for name, each in counted.items()
        }
        assert {row["size_bytes"] for row in rows} == {4096 if run.factors["bs"] == "4k" else 65536}
        assert {row["job"] for row in rows} == {"iolab.0", "iolab.1"}
        assert max(row["offset_bytes"] for row in rows) < 8 << 20
        for name, each in counted.items():
            # one grid: fio's histogram is the recording's, bucket by bucket
            buckets = Counter(row["latency_bucket"] for row in rows if row["op"] == name)
            indices, counts = _core.take_over_fio_bins(sorted(each.latencies["lat"].bins.items()))
            assert buckets == dict(zip(indices, counts, strict=True))
            exact = sorted(row["latency_ns"] for row in rows if row["op"] == name)
            assert said["latency"][name]["99"] == pytest.approx(
                exact[int(np.ceil(0.99 * len(exact))) - 1], rel=1 / 64
            )
        assert run.plan.window is not None
        begin, end = run.plan.window
        assert end - begin == pytest.approx(2e9, rel=0.1)
        assert abs(min(row["time_ns"] for row in rows) - begin) < 0.1e9
        assert 0 <= end - max(row["time_ns"] for row in rows) < 2e6, (
            "the window ends with the last I/O"
        )
        (mark,) = [
            mark
            for mark in Recording(out / said["recording"]).marks()
            if mark["label"] == said["label"]
        ]
        drawn = heat(
            Recording(out / said["recording"]),
            "latency",
            Question(span=(mark["from_ns"], mark["until_ns"]), source="fio"),
        )
        assert drawn.total == len(rows)
        series = {each.name: each for each in results.series(run.id)}
        for name, each in counted.items():
            assert series[f"{name}.iops"].values.sum() == pytest.approx(each.ios, rel=0.02)
            assert np.mean(series[f"{name}.lat"].values) == pytest.approx(
                each.latencies["lat"].mean, rel=0.5
            )
        assert "io-log" not in {reason.code for reason in run.verdict.reasons}
    assert any("bytes of memory for each I/O" in note for note in heard.notes)


def test_after_a_ramp_nothing_is_missing_either(fio: str, tmp_path: Path) -> None:
    out = run_study(
        study(
            tmp_path,
            runtime="1s",
            extra='ramp = "500ms"',
            options='bs = "4k"\nioengine = "libaio"\niodepth = 8',
        ),
        tmp_path / "out",
        listener=Listener(),
    )
    (run_dir,) = run_directories(out)
    counted = {name: each.latencies["lat"].count for name, each in fio_of(run_dir).items()}
    assert Counter(row["op"] for row in recorded(run_dir)) == counted
    assert read_io_log(run_dir)["kept"] is None


def test_steps_are_told_by_the_recordings_own_sums(fio: str, tmp_path: Path) -> None:
    steps = '\n[workload.steps]\nfactor = "numjobs"\nlevels = [1, 2]\nevery = "2s"\n'
    path = study(tmp_path, options='bs = "4k"\nrate_iops = 300\nioengine = "psync"')
    path.write_text(
        path.read_text("utf-8")
        .replace('runtime = "2s"\n', "")
        .replace("\n[factors]\n", f"{steps}"),
        "utf-8",
    )
    out = run_study(path, tmp_path / "out", listener=Listener())
    (run_dir,) = run_directories(out)
    assert read_io_log(run_dir)["kept"] is None
    assert {row["job"] for row in recorded(run_dir)} == {"step1.0", "step2.0"}
    one, two = Results(out).step_runs()
    assert one.value("read.iops") == pytest.approx(300, rel=0.15)
    assert two.value("read.iops") == pytest.approx(600, rel=0.15)


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a recorder"])
def test_kills_leave_each_run_once(fio: str, tmp_path: Path, beside: bool) -> None:
    path = study(
        tmp_path,
        runtime="600ms",
        options='bs = "4k"\nioengine = "psync"',
        factors="iodepth = [1, 2, 3, 4]",
    )
    if beside:
        need_tracing()
        path.write_text('sources = ["counters"]\n' + path.read_text("utf-8"), "utf-8")
    out = tmp_path / "out"
    rng = random.Random(7)
    environment = {**os.environ, "PYTHONPATH": str(Path(iolab.__file__).parent.parent)}
    for _ in range(depth(2, 8)):
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, str(path), str(out)],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        limit, wait = time.monotonic() + PATIENCE, rng.uniform(0.0, 0.25)
        while time.monotonic() < limit and process.poll() is None:
            # around the moment when fio has ended and its logs are taken in
            if any(
                result.stat().st_size
                for result in out.glob("runs/*/fio.json")
                if not (result.parent / "run.json").exists()
            ):
                time.sleep(wait)
                break
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(path), str(out)],
        env=environment,
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    every = list(run_directories(out))
    assert [read_plan(run_dir).status for run_dir in every] == ["finished"] * 4
    for run_dir in every:
        assert Counter(row["op"] for row in recorded(run_dir)) == {
            name: each.ios for name, each in fio_of(run_dir).items()
        }
        assert not (run_dir / "ios").exists()
    assert len([each for each in (out / "recordings").iterdir() if each.is_dir()]) == 1, (
        "one recording of the host"
    )
    labels = [json.loads((run_dir / "log_ios.json").read_text())["label"] for run_dir in every]
    assert len(set(labels)) == 4
    total = sum(
        sum(segment.sources.values())
        for segment in Recording(out / read_io_log(every[0])["recording"]).segments()
    )
    assert total == sum(len(recorded(run_dir)) for run_dir in every), (
        "nothing of a killed attempt is left"
    )
