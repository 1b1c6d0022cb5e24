# SPDX-License-Identifier: Apache-2.0
"""`log_ios`: the job that logs every I/O, what may not stand beside it, what it costs, and whose
I/Os each log holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from iolab.hosts.base.host import Place
from iolab.studies.workloads.fio.ios import io_logs, span_ns
from iolab.studies.workloads.fio.sections import FioOptions
from iolab.studies.workloads.fio.workload import FioWorkload


def workload(runtime: Any = "10s", *, log_ios: bool = True, **given: Any) -> FioWorkload:
    options = {"size": "1m", "rw": "randrw", **given.pop("options", {})}
    made = {
        "log_ios": log_ios,
        "options": options,
        **({} if runtime is None else {"runtime": runtime}),
        **given,
    }
    return FioWorkload(FioOptions.model_validate(made))


def sections(load: FioWorkload) -> list[dict[str, str]]:
    made = load.job(Place("/x"))
    return [
        dict(line.split("=", 1) for line in part.splitlines()[1:])
        for part in made.files[made.main].strip().split("\n\n")
    ]


def test_every_io_is_logged_with_its_offset_in_a_folder_of_its_own() -> None:
    (section,) = sections(workload())
    assert section["write_lat_log"] == "ios/fio"
    assert (
        section["log_offset"],
        section["log_unix_epoch"],
        section["per_job_logs"],
        section["lat_percentiles"],
    ) == ("1",) * 4
    assert not {"log_avg_msec", "write_bw_log", "write_iops_log"} & section.keys()
    assert workload().job(Place("/x")).folders == ("ios",)
    assert workload().load().facts["log_ios"] is True


def test_without_it_rates_and_latencies_are_means_over_seconds() -> None:
    (section,) = sections(workload(log_ios=False))
    assert (section["log_avg_msec"], section["write_lat_log"], section["write_iops_log"]) == (
        "1000",
        "fio",
        "fio",
    )
    assert "log_offset" not in section
    assert workload(log_ios=False).job(Place("/x")).folders == ()
    assert "log_ios" not in workload(log_ios=False).load().facts
    assert workload(log_ios=False).notes() == ()


@pytest.mark.parametrize(
    ("options", "logged"),
    [
        ({"disable_lat": 1}, False),
        ({"disable_clat": True}, False),
        ({"gtod_reduce": 1}, False),
        ({"gtod_reduce": 0}, True),
    ],
)
def test_where_fio_measures_no_latency_there_is_no_log_of_it(
    options: dict[str, Any], logged: bool
) -> None:
    (section,) = sections(workload(log_ios=False, options=options))
    assert ("write_lat_log" in section, section["write_bw_log"]) == (logged, "fio")


def test_short_runs_are_logged_too_and_layouts_never() -> None:
    assert "write_lat_log" in sections(workload("500ms"))[0]
    layout = workload().layout(Place("/x"))
    assert layout is not None
    assert "write_lat_log" not in layout.files[layout.main]
    assert layout.folders == ()


@pytest.mark.parametrize(
    ("size", "block"),
    [
        ("4m", 1 << 20),
        ("1m", 1 << 20),
        ("512k", 512 << 10),
        (524288, 512 << 10),
        ("524288", 512 << 10),
        (10_000, 8192),
        (100, 100),
    ],
)
def test_files_are_laid_out_in_blocks_that_they_can_have(size: int | str, block: int) -> None:
    layout = workload(options={"rw": "randread", "bs": 1, "size": size}).layout(Place("/x"))
    assert layout is not None
    lines = layout.files[layout.main].splitlines()
    assert f"bs={block}" in lines


def test_memory_for_the_logs_of_many_jobs_is_shared_out() -> None:
    entries = [
        int(sections(workload(options={"numjobs": jobs}))[0]["log_entries"])
        for jobs in (1, 64, 1_000_000)
    ]
    assert entries == [1 << 20, (1 << 24) // 64, 1024]


@pytest.mark.parametrize(
    "options",
    [
        {"log_avg_msec": 100},
        {"log_hist_msec": 1000},
        {"write_lat_log": "x"},
        {"disable_lat": True},
        {"gtod_reduce": 1},
        {"log_max_value": 1},
        {"unified_rw_reporting": "both"},
    ],
)
def test_options_that_keep_ios_out_of_the_log_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(
        ValidationError, match=rf"options\.{next(iter(options))}: cannot be combined with log_ios"
    ):
        workload(options=options)


def test_options_that_are_switched_off_may_stand() -> None:
    assert workload(options={"gtod_reduce": 0, "disable_lat": False}).load().depth == 1


def test_a_job_file_is_held_to_the_same() -> None:
    job = "[a]\nsize=1m\nrw=read\n[b]\nsize=1m\nrw=write\ndisable_lat=1\n"
    with pytest.raises(
        ValidationError, match=r"disable_lat: cannot be combined with log_ios \(of \[b\]\)"
    ):
        workload(job=job, options={})


def test_what_it_costs_is_said_before_it_runs() -> None:
    (closed,) = workload().notes()
    assert "80 bytes of memory for each I/O" in closed
    assert "80 MB for every million" in closed
    (offered,) = workload(options={"rate_iops": 5000, "numjobs": 2, "ioengine": "libaio"}).notes()
    assert "120 bytes" in offered
    assert "about 22.89 MiB for the 200000 I/Os" in offered, (
        "5000 reads and as many writes of 2 jobs over 10 s"
    )


def test_steps_one_after_the_other_share_the_time() -> None:
    steps = {"factor": "rate_iops", "levels": [1000, 3000]}
    (note,) = workload("20s", steps=steps, options={"rw": "randread"}).notes()
    assert "for the 40000 I/Os" in note, "10 s of 1000 and 10 s of 3000"


def test_logs_are_named_after_their_jobs(tmp_path: Path) -> None:
    for name in (
        "fio-a_lat.1.log",
        "fio-a_lat.2.log",
        "fio-b-c_lat.10.log",
        "fio-b-c_lat.9.log",
        "fio-a_clat.1.log",
        "notes.txt",
    ):
        (tmp_path / name).write_text("")
    found = io_logs(tmp_path, "only")
    assert [(each.path.name, each.prefix, each.job) for each in found] == [
        ("fio-a_lat.1.log", "fio-a", "a.0"),
        ("fio-a_lat.2.log", "fio-a", "a.1"),
        ("fio-b-c_lat.9.log", "fio-b-c", "b-c.0"),
        ("fio-b-c_lat.10.log", "fio-b-c", "b-c.1"),
    ]
    assert io_logs(tmp_path / "none", "only") == []


def test_a_single_section_has_the_name_that_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "fio_lat.1.log").write_text("")
    assert io_logs(tmp_path, "iolab")[0].job == "iolab.0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "1700000000000, 5, 0, 8192, 0, 0\n1700000003999, 5, 0, 8192, 0, 0\n",
            (1700000000000, 1700000004000),
        ),
        ("1700000000000, 5, 0, 8192, 0, 0\n", (1700000000000, 1700000000001)),
        ("5, 5, 0, 8192, 0, 0\n", None),
        ("", None),
        ("\0\1\2", None),
        (
            "99999999999999999999, 1, 0\n1700000000000, 5, 0, 8192, 0, 0\n",
            (1700000000000, 1700000000001),
        ),
    ],
)
def test_the_span_is_told_by_the_first_and_last_lines(
    tmp_path: Path, text: str, expected: tuple[int, int] | None
) -> None:
    (tmp_path / "fio_lat.1.log").write_text(text)
    wanted = None if expected is None else (expected[0] * 10**6, expected[1] * 10**6)
    assert span_ns(io_logs(tmp_path, "x")) == wanted


def test_the_span_is_that_of_all_logs_however_long(tmp_path: Path) -> None:
    for number, start in ((1, 1700000000000), (2, 1699999999000)):
        (tmp_path / f"fio_lat.{number}.log").write_text(
            "".join(f"{start + at}, {at}, 1, 4096, {at}, 0\n" for at in range(5000))
        )
    assert span_ns(io_logs(tmp_path, "x")) == (1699999999000 * 10**6, 1700000005000 * 10**6)


def test_the_window_ends_with_the_last_io_not_with_the_writing_of_logs(tmp_path: Path) -> None:
    (tmp_path / "fio.json").write_text(
        '{"fio version": "fio-3.33", "timestamp_ms": 1700000020000, "jobs": [{"jobname": "iolab", '
        '"error": 0, "read": {"io_bytes": 8192, "runtime": 10000, "total_ios": 1, "iops": 0.1}}]}'
    )
    before = workload().window(tmp_path)
    (tmp_path / "ios").mkdir()
    (tmp_path / "ios" / "fio_lat.1.log").write_text(
        "1700000000001, 5, 0, 8192, 0, 0\n1700000009999, 5, 0, 8192, 0, 0\n"
    )
    assert before is not None
    assert before[1] == 1700000020000 * 10**6
    assert workload().window(tmp_path) == (1700000000000 * 10**6, 1700000010000 * 10**6)
