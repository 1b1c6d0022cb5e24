# SPDX-License-Identifier: Apache-2.0
"""What the installed fio writes is what the readers read."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from iolab.formats.detect import detect
from iolab.formats.fio.json_output import FioJson
from iolab.formats.fio.log import FioLog
from iolab.formats.fio.pool import pool_jobs
from iolab.formats.fio.seconds import per_second
from iolab.formats.fio.terse import FioTerse

pytestmark = [
    pytest.mark.fio,
    pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
]


def run_fio(directory: Path, *options: str) -> bytes:
    subprocess.run(
        [
            "fio",
            f"--directory={directory}",
            "--name=load",
            "--size=1m",
            "--bs=4k",
            "--ioengine=psync",
            "--numjobs=2",
            "--output=out",
            *options,
        ],
        cwd=directory,
        check=True,
        capture_output=True,
        timeout=60,
    )
    return (directory / "out").read_bytes()


def test_pooled_jobs_are_what_group_reporting_reports(tmp_path: Path) -> None:
    # a fixed number of I/Os at a fixed rate: two invocations do the same, but for an I/O or two
    # that come out as the other kind
    options = (
        "--rw=randrw",
        "--randseed=7",
        "--number_ios=300",
        "--rate_iops=400,400",
        "--output-format=json+",
    )
    apart = FioJson().read(run_fio(tmp_path, *options), "apart")
    grouped = FioJson().read(run_fio(tmp_path, *options, "--group_reporting"), "grouped")
    assert (len(apart.jobs), len(grouped.jobs)) == (2, 1)
    pooled, truth = pool_jobs(apart.jobs), grouped.jobs[0]
    assert pooled.directions.keys() == truth.directions.keys() == {"read", "write"}
    for each in (pooled, truth):
        assert (
            sum(direction.ios for direction in each.directions.values()) == 2 * 256
        )  # 1 MiB of 4 KiB, two jobs
    for name, direction in truth.directions.items():
        mine = pooled.directions[name]
        assert mine.ios == pytest.approx(direction.ios, rel=0.1)
        assert mine.size_bytes == 4096 * mine.ios
        # rates of two invocations; of jobs that are not added up they would be half
        assert mine.iops == pytest.approx(direction.iops, rel=0.3)
        assert mine.bw == pytest.approx(direction.bw, rel=0.3)
        assert mine.latencies.keys() == direction.latencies.keys()
        for kind, latency in direction.latencies.items():
            assert mine.latencies[kind].count == mine.ios
            assert mine.latencies[kind].percentiles.keys() == latency.percentiles.keys()
        assert sum(mine.latencies["clat"].bins.values()) == mine.ios


def test_pooled_percentiles_are_fios_own(tmp_path: Path) -> None:
    result = FioJson().read(
        run_fio(
            tmp_path,
            "--rw=randrw",
            "--number_ios=1000",
            "--group_reporting",
            "--unified_rw_reporting=both",
            "--output-format=json+",
            "--percentile_list=1:50:90:99:99.9:100",
        ),
        "both",
    )
    parts = result.jobs[0].directions
    halves = [
        replace(result.jobs[0], directions={"mixed": parts[name]}) for name in ("read", "write")
    ]
    pooled = pool_jobs(halves).directions["mixed"].latencies["clat"]
    assert pooled.percentiles == pytest.approx(
        parts["mixed"].latencies["clat"].percentiles, rel=1e-12
    )
    assert pooled.stddev == pytest.approx(parts["mixed"].latencies["clat"].stddev, rel=1e-5)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_terse_says_the_same_as_json(tmp_path: Path, version: int) -> None:
    text = run_fio(
        tmp_path,
        "--rw=randrw",
        "--number_ios=400",
        "--output-format=json,terse",
        f"--terse-version={version}",
    )
    assert detect(text, "out") == "fio-json"
    exact, terse = FioJson().read(text, "json"), FioTerse().read(text, "terse")
    assert terse.version == exact.version
    for mine, truth in zip(terse.jobs, exact.jobs, strict=True):
        assert (mine.name, mine.error, mine.group) == (truth.name, truth.error, truth.group)
        assert mine.directions.keys() == truth.directions.keys()
        assert mine.system_cpu == pytest.approx(truth.system_cpu, abs=1e-6)
        for name, direction in truth.directions.items():
            assert mine.directions[name].iops == int(direction.iops)
            assert mine.directions[name].runtime == direction.runtime
            assert mine.directions[name].size_bytes == direction.size_bytes
            assert mine.directions[name].ios == pytest.approx(direction.ios, abs=1)
            for kind, latency in direction.latencies.items():
                assert mine.directions[name].latencies[kind].mean == pytest.approx(
                    latency.mean, abs=1e-9
                )
            mine_percentiles = mine.directions[name].latencies["clat"].percentiles
            assert mine_percentiles == pytest.approx(
                direction.latencies["clat"].percentiles, abs=1e-6
            )


def test_logs_add_up_to_what_the_summary_says(tmp_path: Path) -> None:
    text = run_fio(
        tmp_path,
        "--rw=write",
        "--time_based",
        "--runtime=3",
        "--rate_iops=500",
        "--log_avg_msec=1000",
        "--write_bw_log=load",
        "--write_iops_log=load",
        "--output-format=json",
        "--group_reporting",
    )
    write = FioJson().read(text, "out").jobs[0].directions["write"]
    for kind, expected in (("iops", write.iops), ("bw", write.bw)):
        files = [tmp_path / f"load_{kind}.{job}.log" for job in (1, 2)]
        assert {detect(path.read_bytes(), path.name) for path in files} == {"fio-log"}
        tables = [FioLog().read(path.read_bytes(), path.name) for path in files]
        rates = per_second(tables, kind).rates["write"]  # type: ignore[arg-type]
        assert len(rates) >= 2
        # fio can be late by a part of a second; a log of one job is half
        assert rates == pytest.approx([expected] * len(rates), rel=0.35)
    single = run_fio(
        tmp_path, "--rw=write", "--number_ios=200", "--write_iops_log=one", "--output-format=json"
    )
    rows = [FioLog().read((tmp_path / f"one_iops.{job}.log").read_bytes(), "log") for job in (1, 2)]
    assert [len(table.time) for table in rows] == [
        job.directions["write"].ios for job in FioJson().read(single, "o").jobs
    ]
    assert [table.averaged for table in rows] == [False, False]


def test_a_failing_job_is_told_in_the_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            "fio",
            "--name=full",
            "--filename=/dev/full",
            "--rw=write",
            "--bs=4k",
            "--size=64k",
            "--ioengine=psync",
            "--thread",
            "--output-format=json",
            "--output=out",
        ],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    result = FioJson().read((tmp_path / "out").read_bytes(), "out")
    assert result.jobs[0].error == 28
