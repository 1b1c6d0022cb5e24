# SPDX-License-Identifier: Apache-2.0
"""fio results written by hand, healthy until told otherwise."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

from iolab.studies.results.evidence.files import write_plan
from iolab.studies.results.evidence.model import RunPlan


def latency(mean_ns: float) -> dict[str, Any]:
    """A latency object around a mean."""
    return {
        "min": round(mean_ns / 2),
        "max": round(mean_ns * 10),
        "mean": mean_ns,
        "stddev": mean_ns / 4,
        "N": 1000,
        "percentile": {"50.000000": round(mean_ns), "99.000000": round(mean_ns * 3)},
    }


def idle() -> dict[str, Any]:
    """A direction without I/O."""
    zero = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    return {
        "io_bytes": 0,
        "io_kbytes": 0,
        "bw_bytes": 0,
        "bw": 0,
        "iops": 0.0,
        "runtime": 0,
        "total_ios": 0,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": zero,
        "clat_ns": zero,
        "lat_ns": zero,
    }


def job(
    *,
    jobs: int = 4,
    iops: float = 4000.0,
    runtime: float = 10.0,
    error: int = 0,
    latency_ns: float | None = None,
    name: str = "job",
    block: int = 8192,
    cpu: float = 5.0,
    group: int = 0,
) -> dict[str, Any]:
    """An entry of `jobs`: `iops` writes a second by `jobs` jobs that obey Little's law unless a
    latency is given."""
    mean = jobs / iops * 1e9 if latency_ns is None else latency_ns
    ios = round(iops * runtime)
    write = {
        **idle(),
        "io_bytes": ios * block,
        "io_kbytes": ios * block // 1024,
        "bw_bytes": round(iops * block),
        "bw": round(iops * block / 1024),
        "iops": iops,
        "runtime": round(runtime * 1000),
        "total_ios": ios,
        "clat_ns": latency(mean * 0.99),
        "lat_ns": latency(mean),
    }
    return {
        "jobname": name,
        "groupid": group,
        "error": error,
        "eta": 0,
        "elapsed": round(runtime) + 1,
        "read": idle(),
        "write": write,
        "trim": idle(),
        "usr_cpu": cpu / 2,
        "sys_cpu": cpu / 2,
        "ctx": 1,
        "majf": 0,
        "minf": 0,
    }


def output(*entries: dict[str, Any], minute: int | None = None, **options: str) -> str:
    """fio's JSON file with these entries and `global options`, which ended at that minute. Without
    one, files of other contents end at other minutes, in no order."""
    if minute is None:
        minute = zlib.crc32(json.dumps([entries, options]).encode()) % 1_000_000
    return json.dumps(
        {
            "fio version": "fio-3.33",
            "timestamp": 1700000000 + 60 * minute,
            "timestamp_ms": (1700000000 + 60 * minute) * 1000,
            "time": "Tue Nov 14 22:13:20 2023",
            "global options": options,
            "jobs": list(entries),
        },
        indent=1,
    )


def write_run(
    run_dir: Path, text: str | bytes | None, *, plan: RunPlan | None = None, **files: str
) -> RunPlan:
    """A run directory with `fio.json` (left out for None), further files by name (`_` is `.`...
    `iostat_txt`) and a plan."""
    run_dir.mkdir(parents=True, exist_ok=True)
    used = plan or RunPlan(
        run=run_dir.name, variant="master", factors={"numjobs": 4}, jobs=4, runtime=10.0
    )
    if text is not None:
        (run_dir / "fio.json").write_bytes(text.encode() if isinstance(text, str) else text)
    for name, content in files.items():
        (run_dir / name.replace("__", "-").replace("_", ".")).write_text(content)
    write_plan(run_dir, used, durable=False)
    return used


def iostat(rows: list[tuple[float, float]], device: str = "sdb") -> str:
    """Headerless `iostat -x` rows of one device: (kB/s written, % busy) a second each."""
    return "".join(
        f"{device}  0.00 0.00 0.00 {kb / 8:.2f} 0.00 {kb:.2f} 16.00 1.00 5.00 0.00 5.00 5.00 {busy:.2f}\n"
        for kb, busy in rows
    )


def reports(many: int, *devices: str, seconds: int | None = None, writes: float = 100.0) -> str:
    """So many reports of `iostat -x`, the first since boot; each device writes as much. With time
    stamps so many seconds apart."""
    text = "Linux 5.10.0 (box) \t01/02/24 \t_x86_64_\t(8 CPU)\n\n"
    for place in range(many):
        if seconds is not None:
            at = place * seconds
            text += f"01/02/24 10:{at // 60:02}:{at % 60:02}\n"
        text += "Device            r/s     w/s     rkB/s     wkB/s   await  aqu-sz  %util\n"
        text += (
            "".join(
                f"{device}     0.00 {writes:.2f}  0.00 {8 * writes:.2f}  1.00  0.50  40.00\n"
                for device in devices
            )
            + "\n"
        )
    return text
