# SPDX-License-Identifier: Apache-2.0
"""fio's terse output: versions 2 to 5, one line per job, against the JSON's meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.errors import FormatError
from iolab.formats.fio.pool import pool_jobs
from iolab.formats.fio.terse import FioTerse

DATA = Path(__file__).parents[2] / "data" / "formats"


def block(kibibytes: int, iops: int, runtime_ms: int, version: int) -> list[str]:
    bandwidth = str(kibibytes * 1000 // runtime_ms if runtime_ms else 0)
    fields = [str(kibibytes), bandwidth, str(iops), str(runtime_ms)]
    fields += (
        ["0", "0", "0.0", "0.0", "10", "900", "45.5", "5.25"]
        + ["50.000000%=44", "99.000000%=120"]
        + ["0%=0"] * 18
    )
    fields += ["11", "901", "46.5", "5.5", "1", "2", "50.0%", "1.5", "0.5"]
    return fields + (["3", "1", "2", "1.5", "0.5", "3"] if version == 5 else [])


def line(
    version: int, *blocks: list[str], name: str = "load", error: int = 0, tail: tuple[str, ...] = ()
) -> str:
    head = [str(version), *(() if version == 2 else ("fio-3.33",)), name, "0", str(error)]
    cpu = ["1.5%", "12.5%", "100", "0", "5"] + ["100.0%"] + ["0.0%"] * 6 + ["0.00%"] * 22
    return ";".join(head + [field for one in blocks for field in one] + cpu + list(tail)) + "\n"


def read(text: str) -> object:
    return FioTerse().read(text.encode(), "terse.txt")


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_every_version_has_its_fields_at_the_same_meaning(version: int) -> None:
    empty = block(0, 0, 0, version)
    empty[4:32] = ["0"] * 8 + ["0%=0"] * 20
    blocks = [block(8000, 100, 10000, version), block(16000, 200, 10000, version)] + (
        [] if version == 3 else [empty]
    )
    result = FioTerse().read(line(version, *blocks).encode(), "t")
    job = result.jobs[0]
    assert result.version == (None if version == 2 else "fio-3.33")
    assert list(job.directions) == ["read", "write"]
    write = job.directions["write"]
    assert (write.iops, write.ios, write.size_bytes, write.runtime) == (
        200,
        2000,
        16000 * 1024,
        10.0,
    )
    assert write.bw == pytest.approx(1600 * 1024)
    assert write.bw_unit == "KiB/s"
    assert write.latencies["lat"].mean == pytest.approx(46.5e-6)
    assert write.latencies["clat"].percentiles == pytest.approx({50.0: 44e-6, 99.0: 120e-6})
    assert "slat" not in write.latencies
    assert (job.user_cpu, job.system_cpu, job.group) == pytest.approx((0.015, 0.125, 0))


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_files_of_fio_3_33_give_a_job_per_line(version: int) -> None:
    result = FioTerse().read((DATA / f"fio-3.33-terse-v{version}.txt").read_bytes(), "t")
    assert len(result.jobs) == 2
    assert result.documents == 1
    assert (
        sum(direction.size_bytes for job in result.jobs for direction in job.directions.values())
        == 300 * 4096
    )
    pooled = pool_jobs(result.jobs)
    assert pooled.directions["read"].iops == sum(job.directions["read"].iops for job in result.jobs)
    assert pooled.directions["read"].latencies["clat"].percentiles == {}, (
        "no bins, no pooled percentiles"
    )


def test_unified_reporting_is_one_block_and_both_adds_one() -> None:
    result = FioTerse().read((DATA / "fio-3.33-terse-v5-mixed.txt").read_bytes(), "t")
    assert [list(job.directions) for job in result.jobs] == [["mixed"], ["mixed"]]
    both = FioTerse().read(line(3, *[block(8000, 100, 10000, 3)] * 3).encode(), "t")
    assert list(both.jobs[0].directions) == ["read", "write", "mixed"]


def test_cumulative_reports_are_not_taken_for_jobs() -> None:
    result = FioTerse().read((DATA / "fio-3.33-terse-status-interval.txt").read_bytes(), "t")
    assert (len(result.jobs), result.documents) == (2, 4)
    assert pool_jobs(result.jobs).directions["write"].iops == pytest.approx(400, abs=4)
    assert any("cumulative" in note for note in result.assumptions)


def test_jobs_of_one_name_with_like_runtimes_are_all_jobs() -> None:
    text = "".join(
        line(3, block(8000 + k, 100, 10000 + 300 * k, 3), block(0, 0, 0, 3)) for k in range(6)
    )
    result = FioTerse().read(text.encode(), "t")
    assert (len(result.jobs), result.documents) == (6, 1)


def test_disks_errors_and_a_description_follow() -> None:
    disk = ("sda", "1", "2", "0", "0", "3", "4", "7", "55.0%")
    failed = line(
        3,
        block(8000, 100, 10000, 3),
        block(0, 0, 0, 3),
        error=5,
        tail=(*disk, *disk, "17", "5", "a description"),
    )
    job = FioTerse().read(failed.encode(), "t").jobs[0]
    assert (job.error, job.total_errors) == (5, 17)
    assert (
        FioTerse()
        .read(line(3, block(8, 1, 1000, 3), block(0, 0, 0, 3), tail=disk).encode(), "t")
        .jobs[0]
        .total_errors
        == 0
    )


def test_less_than_one_io_per_second_is_still_an_operation() -> None:
    job = FioTerse().read(line(3, block(4, 0, 10000, 3), block(0, 0, 0, 3)).encode(), "t").jobs[0]
    assert (job.directions["read"].iops, job.directions["read"].ios) == (0, 1)


def test_text_before_the_lines_is_kept() -> None:
    result = FioTerse().read(
        ("fio: something\n" + line(3, block(8, 1, 1000, 3), block(0, 0, 0, 3))).encode(), "t"
    )
    assert result.leading_text == "fio: something"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "file is empty"),
        ("hello\n", "no terse line"),
        (line(3, block(8, 1, 1000, 3), block(0, 0, 0, 3))[:200], "t:1: terse line cut short"),
        (
            line(3, block(8, 1, 1000, 3), block(0, 0, 0, 3)).replace(";8;", ";x;", 1),
            "t:1: terse line damaged",
        ),
        (
            line(3, block(8, 1, 1000, 3), block(0, 0, 0, 3)).replace("45.5", "nan"),
            "is not a number",
        ),
        (line(3, *[block(8, 1, 1000, 3)] * 5), "cut short or damaged"),
        ("3;fio-3.33;\n", "cut short"),
    ],
)
def test_a_damaged_line_costs_the_file_with_its_number(text: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        FioTerse().read(text.encode(), "t")
    assert words in str(caught.value)
