# SPDX-License-Identifier: Apache-2.0
"""A recorder keeps freed memory for its next batch and returns it on request."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pyarrow as pa
import pytest

from iolab.recordings.store.base.memory import POOL_CHOICE


@pytest.mark.parametrize(
    ("environment", "pool"), [({}, "jemalloc"), ({"ARROW_DEFAULT_MEMORY_POOL": "system"}, "system")]
)
def test_arrow_keeps_freed_memory_unless_the_user_chooses_a_pool(
    environment: dict[str, str], pool: str
) -> None:
    if "jemalloc" not in pa.supported_memory_backends():
        pytest.skip("this build of Arrow has no jemalloc")
    code = (
        "import pyarrow as pa; from iolab.recordings.store.base.memory import keep_freed_memory; "
        "keep_freed_memory(); print(pa.default_memory_pool().backend_name)"
    )
    inherited = {name: value for name, value in os.environ.items() if name != POOL_CHOICE}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == pool


def test_freed_memory_is_used_again_and_returned_on_request() -> None:
    code = """
import resource
from pathlib import Path
import numpy as np
from iolab.recordings.store.base.memory import keep_freed_memory, return_freed_memory

keep_freed_memory()

def faults_of_arrays():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(2**17) for _ in range(16)]
    del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

faults_of_arrays()
again, kept = faults_of_arrays(), resident()
return_freed_memory()
print(again, kept - resident())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")},
        capture_output=True,
        text=True,
        check=True,
    )
    faults, returned = map(int, done.stdout.split())
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("the C library is not glibc")
    # 16 MiB are 4,096 pages
    assert faults < 400
    assert returned > 12 << 20
