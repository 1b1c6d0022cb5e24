# SPDX-License-Identifier: Apache-2.0
"""A history of a thousand studies of 200 cells: how long its answers take, and one more result.

The index is written from values with known changes; results directories do not exist.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from iolab.studies.history.store import Entry, Row, _Index, _write_entries, series_name

STUDIES, CELLS, CHANGED = 1000, 200, 20
METRICS = (("write.iops", "1/s"), ("write.bw", "B/s"), ("write.lat.mean", "s"))
LIMIT_SECONDS = 1.0


def write(directory: Path) -> None:
    """The history; a tenth of the cells changes in the middle."""
    random = np.random.default_rng(1)
    day = 86_400 * 10**9
    directory.mkdir()
    entries = [
        Entry(number, f"../{number}", "nightly", number * day, 0, str(number), f"r{number}", {}, {})
        for number in range(1, STUDIES + 1)
    ]
    _write_entries(directory, entries)
    names = [series_name("", {"cell": cell}) for cell in range(CELLS)]
    index = _Index()
    for entry in entries:
        rows = []
        for metric, unit in METRICS:
            values = 1000 * np.exp(random.normal(0, 0.02, CELLS))
            if entry.number > STUDIES // 2:
                values[:CHANGED] *= 0.9
            rows += [
                Row(entry.number, name, metric, unit, float(value), 3)
                for name, value in zip(names, values, strict=True)
            ]
        index.add(entry.number, rows)
    index.write(directory)


def seconds(directory: Path, style: str) -> tuple[float, float]:
    """Of one answer, the start of Python included: elapsed, and of CPUs."""
    command = ["history", "show", "--history", str(directory), "--metric", "write.iops"]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "iolab", *command, "--format", style],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, cpu


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "history"
        write(directory)
        size = (directory / "index.parquet").stat().st_size
        first = seconds(directory, "text")
        text, table = (
            min(seconds(directory, style) for _ in range(5)) for style in ("text", "csv")
        )
    print(
        f"history of {STUDIES} studies, {CELLS} cells, {len(METRICS)} metrics: index {size / 1e6:.1f} MB; "
        f"show --metric write.iops with the search for changes {_words(first)}, then {_words(text)}, "
        f"as CSV of {STUDIES * CELLS} values {_words(table)}"
    )
    # elapsed time is that of other load as well
    if text[1] > LIMIT_SECONDS:
        sys.exit(f"history show takes {text[1]:.2f} s of a CPU, more than {LIMIT_SECONDS:g} s")


def _words(taken: tuple[float, float]) -> str:
    return f"{taken[0]:.2f} s ({taken[1]:.2f} s of a CPU)"


if __name__ == "__main__":
    main()
