# SPDX-License-Identifier: Apache-2.0
"""The soak of `benchmarks/bench_soak.py` in short: everything killed once, nothing lost but what
the gaps show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from iolab.base.errors import IolabError
from iolab.output.report.page.html import bundle_file
from support.disks import need_loops
from support.probe import need_tracing

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.fio, pytest.mark.loops, pytest.mark.tracing, pytest.mark.exclusive]


@pytest.mark.deep
def test_a_short_soak() -> None:
    need_tracing()
    need_loops("fio")
    try:
        bundle_file("live.js")
    except IolabError as error:
        pytest.skip(f"the page has not been built: {error.hint}")
    environment = {
        name: value for name, value in os.environ.items() if name not in ("SUDO_UID", "SUDO_GID")
    }
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/bench_soak.py"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**environment, "IOLAB_BENCH_SECONDS": "30", "IOLAB_BENCH_RATE": "1000"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gap of" in done.stdout
    assert json.loads(done.stdout.splitlines()[-1]) == {"problems": []}
