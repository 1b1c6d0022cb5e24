# SPDX-License-Identifier: Apache-2.0
"""A setting that `benchmarks/bench_nfs.py` changes on a host is restored however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from iolab.hosts.kinds.local import LocalHost
from support.waiting import until

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import bench_nfs  # noqa: E402

PROGRAM = """
import sys, time
sys.path.append(sys.argv[1])
import bench_nfs
with bench_nfs.setting(bench_nfs.host_named("local"), sys.argv[2], "0"):
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_setting_is_restored_after_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    file = tmp_path / "max_user_groups"
    file.write_text("128\n")
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, BENCHMARKS, file])
    try:
        until(lambda: file.read_text() == "0\n", "the value of the benchmark", 30)
        os.kill(program.pid, number)
        until(lambda: file.read_text() == "128\n", "the former value", 30)
    finally:
        program.kill()
        program.wait()


def test_a_setting_that_cannot_be_changed_is_named(tmp_path: Path) -> None:
    file = tmp_path / "missing"
    with (
        pytest.raises(SystemExit, match=str(file)),
        bench_nfs.setting(LocalHost(), str(file), "0"),
    ):
        pass
