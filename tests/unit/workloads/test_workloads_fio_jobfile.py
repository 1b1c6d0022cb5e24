# SPDX-License-Identifier: Apache-2.0
"""Job files as people have them: read, trimmed to what a study may run, laid over by the study's
options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from iolab.hosts.base.host import Place
from iolab.studies.workloads.fio.jobfile import read_job_file
from iolab.studies.workloads.fio.sections import FioOptions
from iolab.studies.workloads.fio.workload import FioWorkload
from support.golden import Golden

WRITE_TEST = """\
; seq_write test
[global]
rw=write
kb_base=1024
bs=128k
size=2m
runtime=180
iodepth=1
directory=/sec_stor/backup/fiotest/
numjobs=1
buffer_compress_percentage=100
refill_buffers
buffer_compress_chunk=131072
buffer_pattern=0xdeadbeef
end_fsync=true
group_reporting

[test1]
"""
"""The job of a published study, as it stands there."""


def workload(job: str, **given: Any) -> FioWorkload:
    return FioWorkload(FioOptions.model_validate({"job": job, **given}))


def sections(load: FioWorkload) -> dict[str, dict[str, str]]:
    made = load.job(Place("/x"))
    found: dict[str, dict[str, str]] = {}
    for line in made.files[made.main].splitlines():
        if line.startswith("["):
            current = found[line[1:-1]] = {}
        elif line:
            name, value = line.split("=", 1)
            current[name] = value
    return found


def wrong(**given: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        FioOptions.model_validate(given)
    return [
        ".".join((*map(str, each["loc"]), *problem.key)) + ": " + problem.wrong
        for each in caught.value.errors()
        for problem in each["ctx"]["option_problems"]
    ]


def test_sections_have_what_the_globals_before_them_say() -> None:
    read, problems = read_job_file(
        "[global]\nbs=4k ; small\n# a comment\n[a]\nrw = write\nstonewall\n[global]\nsize=1m\n[b b]\nblocksize=8k\n"
    )
    assert problems == []
    assert [(each.name, dict(each.options)) for each in read] == [
        ("a", {"bs": "4k", "rw": "write", "stonewall": 1}),
        ("b b", {"bs": "8k", "size": "1m"}),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[global]\nbs=4k\n",
        "bs=4k\n[a]\n",
        "[a\nbs=4k\n",
        "[a]\ninclude x.fio\n",
        "[a]\nsize=${SIZE}\n",
        "[a]\n=5\n",
        "[a]\nbs=\n",
    ],
)
def test_what_is_wrong_with_a_job_file_is_told_with_its_line(text: str, golden: Golden) -> None:
    problems = wrong(job=text, runtime=1, options={"size": "1m"})
    assert problems
    golden("fio/jobfile-wrong", "\n".join(problems))


@given(st.text(alphabet="[]=;#$ {}\nabgloszie14k", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    read, problems = read_job_file(text)
    assert read or problems
    for section in read:
        assert all("\n" not in str(value) for value in section.options.values())


def test_a_published_job_runs_as_it_is_but_for_what_fio_and_the_target_decide() -> None:
    load = workload(WRITE_TEST)
    assert sections(load) == {
        "test1": {
            "directory": "/x",
            "runtime": "180s",
            "group_reporting": "1",
            "rw": "write",
            "kb_base": "1024",
            "bs": "128k",
            "size": "2m",
            "iodepth": "1",
            "numjobs": "1",
            "buffer_compress_percentage": "100",
            "refill_buffers": "1",
            "buffer_compress_chunk": "131072",
            "buffer_pattern": "0xdeadbeef",
            "end_fsync": "1",
            "write_bw_log": "fio",
            "write_iops_log": "fio",
            "log_avg_msec": "1000",
            "log_unix_epoch": "1",
            "per_job_logs": "0",
            "write_lat_log": "fio",
            "disable_slat": "1",
        }
    }
    assert load.load().runtime == 180.0
    assert load.load().facts["time_based"] is False
    assert load.job(Place("/x")).files["given.fio"] == WRITE_TEST
    assert [note.partition(" of the job file")[0] for note in load.notes()] == [
        "directory",
        "end_fsync=true",
    ]


def test_what_the_study_says_goes_over_the_file() -> None:
    options = sections(
        workload(
            WRITE_TEST,
            runtime="2s",
            ramp="1s",
            time_based=True,
            compressibility=50,
            options={"blocksize": "8k", "numjobs": 3},
        )
    )["test1"]
    assert [options[name] for name in ("bs", "numjobs", "runtime", "ramp_time", "time_based")] == [
        "8192",
        "3",
        "2s",
        "1s",
        "1",
    ]
    assert (options["buffer_compress_percentage"], options["buffer_compress_chunk"]) == (
        "50",
        "131072",
    )
    assert "buffer_pattern" not in options
    assert "blocksize" not in options


def test_several_sections_run_together_each_with_logs_and_a_group_of_its_own() -> None:
    load = workload(
        "[global]\nsize=1m\nruntime=5\n[r]\nrw=randread\nnumjobs=3\n[w]\nrw=write\nioengine=libaio\niodepth=4\nrate_iops=10\n"
    )
    made = sections(load)
    assert [options["write_bw_log"] for options in made.values()] == ["fio-r", "fio-w"]
    assert ["new_group" in options for options in made.values()] == [False, True]
    found = load.load()
    assert (found.jobs, found.depth, found.space_bytes, found.writes) == (4, 4, 4 << 20, True)
    assert found.facts["concurrency"] == 3 + 4
    assert found.offered_iops == 10.0


STONEWALLED = "[global]\nsize=1m\nruntime=3\n[read]\nrw=read\n[write]\nstonewall\nrw=write\n"


def test_sections_that_follow_each_other_are_chosen_by_name() -> None:
    assert any("[write] runs after the others" in each for each in wrong(job=STONEWALLED))
    made = sections(workload(STONEWALLED, section="write"))
    assert list(made) == ["write"]
    assert "stonewall" not in made["write"]
    assert FioWorkload.place_of("section") == ("section",)
    assert wrong(job=STONEWALLED, section="trim") == ["section: the job file has no section 'trim'"]


@pytest.mark.parametrize(
    "options",
    [
        "rw=write",
        "size=1m\nexec_prerun=ls",
        "size=1m\nioengine=net",
        "size=1m\nfilename=../x",
        "size=1m\nioengine=http",
        "size=1m\nioengine=libblkio",
        "size=1m\nioengine=external:/tmp/x.so",
        "size=1m\nioengine=/tmp/x.so",
        "size=1m\nread_iolog=/etc/passwd",
        "size=1m\nexec_postrun=ls",
        "size=1m\nnumjobs=many",
        "size=1m\nruntime=soon",
    ],
)
def test_a_job_file_may_do_no_more_than_a_study(options: str, golden: Golden) -> None:
    problems = wrong(job=f"[a]\n{options}\n", runtime=1)
    assert problems
    golden("fio/jobfile-not-allowed", "\n".join(problems))


def test_options_of_old_are_left_out_with_a_note_wherever_they_stand() -> None:
    load = FioWorkload(FioOptions(runtime=1, options={"size": "1m", "use_os_rand": 1}))
    assert "use_os_rand" not in sections(load)["iolab"]
    assert load.notes() == (
        "use_os_rand is left out: fio knows it no longer, and does the same without; see random_generator",
    )
    assert "use_os_rand" not in sections(workload("[a]\nsize=1m\nuse_os_rand=1\n", runtime=1))["a"]


def test_a_job_file_is_read_where_the_study_is_and_kept_in_the_options(tmp_path: Path) -> None:
    (tmp_path / "x.fio").write_text(WRITE_TEST)
    read = FioOptions.model_validate({"job_file": "x.fio"}, context={"directory": tmp_path})
    assert read.job == WRITE_TEST
    (tmp_path / "x.fio").unlink()
    assert FioOptions.model_validate(read.model_dump(mode="json")) == read
    assert any("x.fio can't be read" in each for each in _file_problems(tmp_path, "x.fio"))
    (tmp_path / "x.fio").write_bytes(b"\xff\xfe")
    assert any("is not UTF-8" in each for each in _file_problems(tmp_path, "x.fio"))
    (tmp_path / "x.fio").write_text("[a]\n")
    assert _file_problems(tmp_path, "x.fio")[0].startswith("options.size")


def _file_problems(directory: Path, name: str) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        FioOptions.model_validate(
            {"job_file": name, "runtime": 1}, context={"directory": directory}
        )
    return [
        f"{'.'.join(problem.key)}: {problem.wrong}"
        for each in caught.value.errors()
        for problem in each["ctx"]["option_problems"]
    ]


def test_without_any_runtime_it_is_asked_for() -> None:
    assert wrong(job="[a]\nsize=1m\n") == ["runtime: is missing"]


def test_a_share_of_a_device_is_no_size_in_a_directory() -> None:
    from iolab.base.errors import RunError

    load = FioWorkload(FioOptions(runtime=1, options={"size": "100%", "rw": "randread"}))
    job = load.job(Place("/dev/loop0", "device"))
    assert job.command[1] == "--readonly"
    assert "filename=/dev/loop0" in job.files[job.main]
    with pytest.raises(RunError, match="a share of a device"):
        load.job(Place("/x"))
