# SPDX-License-Identifier: Apache-2.0
"""fio as a workload: what its options mean before it runs, and its window afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from iolab.hosts.base.host import Place
from iolab.studies.workloads.fio.sections import FioOptions
from iolab.studies.workloads.fio.workload import FioWorkload
from support.fio_files import job, output


def workload(runtime: Any = 2, ramp: Any = 0, **options: Any) -> FioWorkload:
    return FioWorkload(FioOptions(runtime=runtime, ramp=ramp, options={"size": "1m", **options}))


def text(load: FioWorkload, directory: str = "/x") -> dict[str, str]:
    made = load.job(Place(directory))
    lines = made.files[made.main].splitlines()
    assert lines[0] == "[iolab]"
    return dict(line.split("=", 1) for line in lines[1:])


def test_the_job_file_has_what_was_given_and_what_iolab_adds() -> None:
    assert text(
        workload("90s", "500ms", rw="randwrite", direct=True, overwrite=False, bs="4k", numjobs=4)
    ) == {
        "directory": "/x",
        "runtime": "90s",
        "time_based": "1",
        "group_reporting": "1",
        "write_bw_log": "fio",
        "write_iops_log": "fio",
        "log_avg_msec": "1000",
        "log_unix_epoch": "1",
        "per_job_logs": "0",
        "ramp_time": "500ms",
        "write_lat_log": "fio",
        "disable_slat": "1",
        "size": "1048576",
        "rw": "randwrite",
        "direct": "1",
        "overwrite": "0",
        "bs": "4096",
        "numjobs": "4",
    }


def test_a_colon_in_the_directory_is_no_separator() -> None:
    assert text(workload(), "/a:b\\c")["directory"] == "/a\\:b\\\\c"


def test_what_a_study_sets_wins_where_it_may() -> None:
    assert text(workload(group_reporting=0, log_avg_msec=500))["group_reporting"] == "0"


def test_runs_too_short_for_a_second_have_no_logs_that_would_be_empty() -> None:
    assert text(workload(0.0015)) == {
        "directory": "/x",
        "runtime": "1500us",
        "time_based": "1",
        "group_reporting": "1",
        "size": "1048576",
    }


@pytest.mark.parametrize(
    ("options", "jobs", "depth"),
    [
        ({}, 1, 1),
        ({"numjobs": 8, "iodepth": 32}, 8, 1),
        ({"ioengine": "libaio", "iodepth": "32", "numjobs": "2"}, 2, 32),
        ({"ioengine": "io_uring"}, 1, 1),
        ({"ioengine": "mmap", "iodepth": 4}, 1, 1),
    ],
)
def test_depth_is_what_the_engine_does(options: dict[str, Any], jobs: int, depth: int) -> None:
    load = workload(**options).load()
    assert (load.jobs, load.depth) == (jobs, depth)


@pytest.mark.parametrize(
    ("options", "offered"),
    [
        ({}, None),
        ({"rw": "write", "rate_iops": 100}, 400.0),
        ({"rw": "randrw", "rate_iops": "1k"}, 8192.0),
        ({"rw": "randrw", "rate_iops": "100,50"}, 600.0),
        ({"rw": "randwrite", "rate_iops": "100,50"}, 200.0),
        ({"rw": "randread", "rate_iops": ",50"}, None),
        ({"rw": "nonsense", "rate_iops": 5}, None),
        ({"rate_iops": "fast"}, None),
    ],
)
def test_the_offered_rate_counts_jobs_and_directions(
    options: dict[str, Any], offered: float | None
) -> None:
    assert workload(numjobs=4, **options).load().offered_iops == offered


def test_room_is_size_times_jobs_unless_they_share_a_file() -> None:
    assert workload(numjobs=4, size="8k").load().space_bytes == 4 * 8192
    assert workload(numjobs=4, size="8k", filename="shared").load().space_bytes == 8192


def test_the_limit_leaves_time_for_ramp_layout_and_a_minute() -> None:
    assert workload(10, 5, size="100m").job(Place("/x")).limit == pytest.approx(
        10 + 5 + 60 + 104_857_600 / 10e6
    )


@pytest.mark.parametrize(
    "factor", ["numjobs", "bs", "iodepth", "rw", "buffer_compress_percentage", "rate_iops"]
)
def test_factors_named_as_options_are_placed(factor: str) -> None:
    assert FioWorkload.place_of(factor) == ("options", factor)


@pytest.mark.parametrize("factor", ["colour", "runtime", "directory", "exec_prerun", "disks"])
def test_others_are_not(factor: str) -> None:
    assert FioWorkload.place_of(factor) is None


@pytest.mark.parametrize(
    "options",
    [
        {"size": "0"},
        {"numjobs": 0},
        {"numjobs": "many"},
        {"iodepth": -1},
        {"bs": "a\nb"},
        {"filename": "/etc/passwd"},
        {"a b": 1},
        {"x]": 1},
        {"fill_device": 1},
        {"ioscheduler": "none"},
    ],
)
def test_unsound_options_never_become_a_job(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        workload(**options)


def test_the_window_is_told_by_the_end_where_fio_tells_no_start(tmp_path: Path) -> None:
    (tmp_path / "fio.json").write_text(output(job(runtime=2.0), minute=0))
    assert workload(ramp=5).window(tmp_path) == (
        1_699_999_998_000_000_000,
        1_700_000_000_000_000_000,
    )


def test_the_window_is_told_by_the_start_and_ramp_where_fio_tells_it(tmp_path: Path) -> None:
    started = {**job(runtime=2.0), "job_start": 1_699_999_990_000}
    (tmp_path / "fio.json").write_text(output(started))
    assert workload(ramp=5).window(tmp_path) == (
        1_699_999_995_000_000_000,
        1_699_999_997_000_000_000,
    )


@pytest.mark.parametrize("content", [None, "", "{", "fio: killed\n", '{"jobs": []}'])
def test_without_a_result_there_is_no_window(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "fio.json").write_text(content)
    assert workload().window(tmp_path) is None


@pytest.mark.parametrize(
    ("options", "has_note"),
    [
        ({"iodepth": 8}, True),
        ({"iodepth": 8, "ioengine": "pvsync2"}, True),
        ({"iodepth": 1}, False),
        ({}, False),
        ({"iodepth": 8, "ioengine": "io_uring"}, False),
        ({"iodepth": 8, "io_submit_mode": "offload"}, False),
    ],
)
def test_a_depth_without_effect_is_noted(options: dict[str, Any], has_note: bool) -> None:
    load = workload(rw="randread", bs="4k", **options)
    notes = [note for note in load.notes() if "has no effect" in note]
    assert bool(notes) is has_note
