# SPDX-License-Identifier: Apache-2.0
"""Every number that iolab derives from published fio results, against a few lines that read the
JSON by themselves."""

from __future__ import annotations

import json
import math
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.formats.detect import detect
from iolab.formats.fio.groups import groups_of
from iolab.formats.fio.json_output import FioJson
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import RunPlan

DATA = Path(os.environ.get("IOLAB_DATA", Path(__file__).parents[3].parent / "shared" / "data"))
PLAN = RunPlan(run="0001-aaaaaaaa", variant="a", factors={}, status="imported")
SUMMARIES = {"mean": "mean", "min": "min", "max": "max", "stddev": "stddev"}


def results(archive: str) -> Iterator[tuple[str, bytes]]:
    path = DATA / archive
    if not path.exists():
        pytest.skip(f"{archive} is not beside the repository (../shared/data)")
    with tarfile.open(path) as opened:
        for member in opened:
            stream = opened.extractfile(member) if member.isfile() else None
            data = b"" if stream is None else stream.read()
            if b'"fio version"' in data:
                yield member.name, data


def expected(entries: list[dict[str, Any]]) -> dict[str, float]:
    """Metric to value of one group's entries, by the definitions in fio's HOWTO."""
    found: dict[str, float] = {}
    for operation in ("read", "write", "trim"):
        parts = [entry[operation] for entry in entries if entry[operation]["runtime"] > 0]
        if not parts:
            continue
        old = "io_kbytes" not in parts[0]  # io_bytes in KiB, latencies in us
        ios = [
            part.get("total_ios") or round(part["iops"] * part["runtime"] / 1000) for part in parts
        ]
        sizes = [part["io_bytes"] * (1024 if old else 1) for part in parts]
        found[f"{operation}.ios"] = sum(ios)
        found[f"{operation}.iops"] = sum(part["iops"] for part in parts)
        found[f"{operation}.bytes"] = sum(sizes)
        found[f"{operation}.bw"] = sum(
            part.get("bw_bytes") or size / part["runtime"] * 1000
            for part, size in zip(parts, sizes, strict=True)
        )
        for kind in ("lat", "clat", "slat"):
            name, unit = (kind, 1e-6) if kind in parts[0] else (f"{kind}_ns", 1e-9)
            pooled = [
                (part[name], part[name].get("N") or count)
                for part, count in zip(parts, ios, strict=True)
            ]
            if any(latency["max"] == 0 for latency, _ in pooled):
                continue
            total = sum(count for _, count in pooled)
            mean = sum(latency["mean"] * count for latency, count in pooled) / total
            squares = sum(
                latency["stddev"] ** 2 * (count - 1) + count * (latency["mean"] - mean) ** 2
                for latency, count in pooled
            )
            found[f"{operation}.{kind}.mean"] = mean * unit
            found[f"{operation}.{kind}.min"] = min(latency["min"] for latency, _ in pooled) * unit
            found[f"{operation}.{kind}.max"] = max(latency["max"] for latency, _ in pooled) * unit
            found[f"{operation}.{kind}.stddev"] = (
                pooled[0][0]["stddev"] if len(pooled) == 1 else math.sqrt(squares / (total - 1))
            ) * unit
            if len(pooled) == 1:
                for percent, value in pooled[0][0].get("percentile", {}).items():
                    if float(percent) > 0:
                        found[f"{operation}.{kind}.p{float(percent):g}"] = value * unit
    runtimes = [
        max(entry[operation]["runtime"] for operation in ("read", "write", "trim"))
        for entry in entries
    ]
    found["runtime"] = max(runtimes) / 1000
    for name in ("usr", "sys"):
        shares = [entry[f"{name}_cpu"] / 100 for entry in entries]
        found[f"cpu.{name}"] = sum(
            share * seconds for share, seconds in zip(shares, runtimes, strict=True)
        ) / sum(runtimes)
    return found


def compare(name: str, data: bytes, run_dir: Path) -> int:
    """Derive every group of a file by itself; returns how many values were compared."""
    text = data.decode()
    document = json.JSONDecoder(strict=False).raw_decode(text, text.index("{\n"))[0]
    entries = [
        entry
        for entry in document.get("jobs") or document["client_stats"]
        if entry["jobname"] != "All clients"
    ]
    groups = groups_of(FioJson().read(data, name))
    assert [number for group in groups for number in {job.group for job in group.jobs}] == sorted(
        {entry["groupid"] for entry in entries}
    )
    (run_dir / "fio.json").write_bytes(data)
    compared = 0
    for group in groups:
        extra = {"section": {"index": group.index, "name": group.name}}
        derived = derive(
            run_dir, RunPlan(run=PLAN.run, variant="a", factors={}, status="imported", extra=extra)
        )
        numbers = {job.group for job in group.jobs}
        wanted = expected([entry for entry in entries if entry["groupid"] in numbers])
        values = {each.metric: each.value for each in derived.observations}
        for metric, value in wanted.items():
            assert values[metric] == pytest.approx(value, rel=1e-9), (
                f"{name}, {group.name}, {metric}"
            )
        assert values.keys() - wanted.keys() <= {"littles_law", "offered.iops"} | {
            f"{each}.time" for each in ("read", "write", "trim")
        }
        assert not {reason.code for reason in derived.verdict.reasons} & {
            "littles-law",
            "job-count",
            "sections",
            "damaged-file",
        }
        compared += len(wanted)
    return compared


@pytest.mark.slow
@pytest.mark.parametrize(
    ("archive", "files", "values"),
    [("foreign-results.tar.xz", 129, 4800), ("zfsonlinux-6566-perf-v2.tar.xz", 440, 14_000)],
)
def test_every_value_of_the_published_results(
    archive: str, files: int, values: int, tmp_path: Path
) -> None:
    """And no run is INVALID for a concurrency or sections that only seem to be wrong."""
    found = [(name, data) for name, data in results(archive) if detect(data, name) == "fio-json"]
    assert len(found) >= files
    compared = sum(compare(name, data, tmp_path) for name, data in found)
    assert compared >= values
