# SPDX-License-Identifier: Apache-2.0
"""A load that doubles step by step: a staircase in what the load generator saw, and every one of
its I/Os in the latency map below."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording
from support.waiting import PATIENCE

SECOND = 10**9
LEVELS, EVERY, RATE = (1, 2, 4), 3, 100
STUDY = f"""
[study]
description = "random reads by a number of jobs that doubles, each asking for {RATE} a second"
repetitions = 1
[workload]
kind = "fio"
log_ios = true
[workload.options]
rw = "randread"
bs = "4k"
size = "4m"
rate_iops = {RATE}
[workload.steps]
factor = "numjobs"
levels = {list(LEVELS)}
every = "{EVERY}s"
"""


@pytest.mark.fio
@pytest.mark.exclusive
@pytest.mark.usefixtures("fio")
def test_a_staircase_in_what_the_load_saw_and_its_latency(tmp_path: Path) -> None:
    (tmp_path / "steps.toml").write_text(STUDY)
    (tmp_path / "target").mkdir()
    words = ["run", "steps.toml", "--target", f"path={tmp_path}/target", "-o", "results"]
    done = subprocess.run(
        [sys.executable, "-m", "iolab.cli", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    recording = Recording(tmp_path / "results/recordings/local")
    first, last = recording.span() or (0, 0)
    assert last - first > (len(LEVELS) * EVERY - 1) * SECOND
    rates = []
    for place, level in enumerate(LEVELS):
        # the middle of the step: its jobs begin and end within a few tenths of a second
        begin = first + (place * EVERY * 10 + 5) * SECOND // 10
        step = query(
            recording, "app.ops", from_ns=begin, until_ns=begin + 2 * SECOND, interval_ns=SECOND
        )
        assert isinstance(step, Series)
        assert step.source == "fio"
        rates.append(step.total)
        assert step.total == pytest.approx(2 * RATE * level, rel=0.25)
    assert rates == sorted(rates)
    whole = query(recording, "app.ops", interval_ns=SECOND)
    latency = query(recording, "app.ops[latency]", interval_ns=SECOND)
    assert isinstance(whole, Series)
    assert isinstance(latency, HeatCounts)
    (counted,) = [
        json.loads(path.read_text())["jobs"]
        for path in (tmp_path / "results").glob("runs/*/fio.json")
    ]
    assert latency.events == whole.total == sum(job["read"]["total_ios"] for job in counted)
    assert whole.total == pytest.approx(RATE * EVERY * sum(LEVELS), rel=0.15)
    moved = query(recording, "app.bytes[op]", interval_ns=SECOND)
    assert isinstance(moved, Stack)
    assert (moved.keys, moved.total) == (["read"], 4096 * whole.total)
    jobs = query(recording, "app.ops[job]", interval_ns=SECOND)
    assert isinstance(jobs, Stack)
    assert len(jobs.keys) == max(LEVELS)
