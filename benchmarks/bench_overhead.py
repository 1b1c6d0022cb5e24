# SPDX-License-Identifier: Apache-2.0
"""A study of 24 runs of two seconds against the same fio jobs in a bare loop on files laid out
beforehand.

What iolab adds is everything around fio: a fresh directory and its layout per run, sources,
journal, verdicts, clean-up. Where bench-fio (of fio-plot) is installed, the same sweep is run by it
as well.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

IOLAB = Path(sys.executable).parent / "iolab"
LEVELS = (1, 2, 4, 8)
REPETITIONS = 6
STUDY = f"""
[study]
repetitions = {REPETITIONS}

[workload]
kind = "fio"
runtime = "2s"

[workload.options]
rw = "randwrite"
bs = "4k"
size = "4m"
sync = "dsync"

[factors]
numjobs = {list(LEVELS)}
"""


def timed(*command: str, cwd: Path) -> float:
    start = time.perf_counter()
    subprocess.run(
        command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - start


def study(scratch: Path) -> float:
    (scratch / "study.toml").write_text(STUDY)
    return timed(str(IOLAB), "run", "study.toml", "-o", "results", cwd=scratch)


def bare_loop(scratch: Path) -> float:
    """The study's own jobs, in its order, on files that are there already."""
    place = scratch / "bare"
    place.mkdir()
    jobs = []
    for number, run in enumerate(sorted((scratch / "results" / "runs").iterdir())):
        text = re.sub(
            r"^directory=.*$",
            f"directory={place}",
            (run / "job.fio").read_text(),
            flags=re.MULTILINE,
        )
        job = scratch / f"{number:02d}.fio"
        job.write_text(text)
        jobs.append(job)
    subprocess.run(
        ["fio", "--create_only=1", str(jobs[0]), f"--numjobs={max(LEVELS)}"],
        cwd=scratch,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    for job in jobs:
        subprocess.run(
            ["fio", "--create_only=1", str(job)], cwd=scratch, stdout=subprocess.DEVNULL, check=True
        )
    loop = "; ".join(f"fio --output-format=json+ --output=fio.json {job.name}" for job in jobs)
    return timed("bash", "-ec", loop, cwd=scratch)


def bench_fio(scratch: Path) -> float | None:
    if shutil.which("bench-fio") is None:
        return None
    (scratch / "peer").mkdir()
    return timed(
        "bench-fio",
        "--target",
        str(scratch / "peer"),
        "--type",
        "directory",
        "--mode",
        "randwrite",
        "--size",
        "4m",
        "--runtime",
        "2",
        "--block-size",
        "4k",
        "--iodepth",
        "1",
        "--numjobs",
        *map(str, LEVELS),
        "--engine",
        "psync",
        "--extra-opts",
        "sync=dsync",
        "--destructive",
        "--time-based",
        "--output",
        str(scratch / "peer-results"),
        cwd=scratch,
    )


def main() -> None:
    if shutil.which("fio") is None:
        print("left out: fio is absent")
        return
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as directory:
        scratch = Path(directory)
        ours = study(scratch)
        loop = bare_loop(scratch)
        print(
            f"iolab run, {len(LEVELS) * REPETITIONS} runs of 2 s: {ours / loop:.3f} x the bare fio loop ({ours:.1f} s and {loop:.1f} s)"
        )
        peer = bench_fio(scratch)
        if peer is None:
            print("bench-fio: left out, it isn't installed (pip install fio-plot)")
        else:
            ratio = peer / len(LEVELS) / (loop / (len(LEVELS) * REPETITIONS))
            print(
                f"bench-fio, {len(LEVELS)} runs of 2 s: {ratio:.3f} x the bare loop per run ({peer:.1f} s)"
            )


if __name__ == "__main__":
    main()
