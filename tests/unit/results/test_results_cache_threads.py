# SPDX-License-Identifier: Apache-2.0
"""Reading a cache leaves no thread behind: one that is alive when the process exits may abort it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet
from iolab.studies.results.open.cache import cached_table, write_caches
tasks = lambda: len(os.listdir("/proc/self/task"))
before, place = tasks(), Path(sys.argv[1])
table = pa.table({"run": ["a", "b"] * 5000, "value": [1.5] * 10000})
write_caches(place, {"t.parquet": table.replace_schema_metadata({"k": "v"})}, "key")
found = cached_table(place, "t.parquet", "key")
print(before, tasks(), found.equals(table), found.schema.metadata)
"""


def test_a_cache_is_read_without_threads(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=True
    )
    before, after, *rest = done.stdout.split(maxsplit=2)
    assert rest == ["True {b'k': b'v'}\n"]
    assert before == after
