# SPDX-License-Identifier: Apache-2.0
"""A load that rises within a run: sections, times, rates and marks, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from iolab.base.errors import RunError
from iolab.hosts.base.host import Place
from iolab.studies.workloads.fio.sections import FioOptions
from iolab.studies.workloads.fio.workload import FioWorkload
from support.golden import Golden, validation_text


def workload(factor: str, levels: list[Any], every: Any = "10s", **given: Any) -> FioWorkload:
    steps = {"factor": factor, "levels": levels, **({} if every is None else {"every": every})}
    options = {"size": "1m", "rw": "randread", **given.pop("options", {})}
    return FioWorkload(FioOptions.model_validate({"steps": steps, "options": options, **given}))


DIRECTORY = Place("/x")


def sections(load: FioWorkload, place: Place = DIRECTORY) -> list[dict[str, str]]:
    made = load.job(place)
    text = made.files[made.main]
    return [
        dict(line.split("=", 1) for line in part.splitlines()[1:])
        for part in text.strip().split("\n\n")
    ]


def test_more_threads_are_added_to_those_that_run() -> None:
    load = workload("numjobs", [1, 2, 8], ramp="500ms")
    made = sections(load)
    assert [each["numjobs"] for each in made] == ["1", "1", "6"]
    assert [each["runtime"] for each in made] == ["30s", "20s", "10s"]
    assert [each.get("startdelay") for each in made] == [None, "10500ms", "20500ms"]
    assert [each.get("ramp_time") for each in made] == ["500ms", None, None]
    found = load.load()
    assert (found.jobs, found.runtime, found.ramp, found.space_bytes) == (8, 30.0, 0.5, 8 << 20)
    assert found.facts["concurrency"] == pytest.approx((1 + 2 + 8) / 3)
    assert [step["sections"] for step in found.facts["steps"]] == [
        ["step1"],
        ["step1", "step2"],
        ["step1", "step2", "step3"],
    ]


@pytest.mark.parametrize(
    ("factor", "levels"), [("iodepth", [1, 4]), ("numjobs", [4, 1]), ("bs", [4096, 65536])]
)
def test_whatever_else_changes_takes_over_on_the_same_files(factor: str, levels: list[Any]) -> None:
    load = workload(factor, levels, options={"ioengine": "libaio"})
    made = sections(load)
    assert [each[factor] for each in made] == [str(level) for level in levels]
    assert [each["runtime"] for each in made] == ["10s", "10s"]
    assert len({each["filename_format"] for each in made}) == 1
    assert load.load().space_bytes == (4 << 20 if factor == "numjobs" else 1 << 20)
    assert [step["sections"] for step in load.load().facts["steps"]] == [["step1"], ["step2"]]


def test_an_open_loop_offers_the_mean_of_its_steps() -> None:
    load = workload("rate_iops", [100, 300], options={"numjobs": 2, "rate_process": "poisson"})
    assert load.load().offered_iops == pytest.approx(2 * 200)
    assert load.load().jobs == 2
    added = workload("numjobs", [1, 3], options={"rate_iops": 10})
    assert added.load().offered_iops == pytest.approx((10 + 30) / 2)


def test_data_may_become_less_compressible() -> None:
    made = sections(workload("compressibility", [0, 50, 100], options={"rw": "write"}))
    assert [each.get("buffer_compress_percentage") for each in made] == [None, "50", None]
    assert [each.get("buffer_pattern") for each in made] == [None, None, "0xdeadbeef"]


def test_devices_are_lit_up_one_after_the_other() -> None:
    load = workload("devices", [1, 2, 4], options={"size": "100%", "rw": "read"})
    place = Place("/dev/a:/dev/b:/dev/c:/dev/d", "device")
    assert [each["filename"] for each in sections(load, place)] == [
        "/dev/a",
        "/dev/b",
        "/dev/c:/dev/d",
    ]
    with pytest.raises(RunError, match="up to 4 devices, the target has 2"):
        load.job(Place("/dev/a:/dev/b", "device"))
    with pytest.raises(RunError, match="the target is a directory"):
        load.job(Place("/x"))


def test_steps_are_marks_in_the_window() -> None:
    marks = workload("numjobs", [1, 2]).marks((1_000_000_000, 21_000_000_000))
    assert [(mark.time_ns, mark.kind, mark.label, dict(mark.levels)) for mark in marks] == [
        (1_000_000_000, "step", "numjobs=1", {"numjobs": 1}),
        (11_000_000_000, "step", "numjobs=2", {"numjobs": 2}),
    ]


def test_a_runtime_is_divided_among_the_steps() -> None:
    assert [each["runtime"] for each in sections(workload("numjobs", [1, 2], runtime="6s"))] == [
        "6s",
        "3s",
    ]
    assert workload("numjobs", [1, 2], every=None, runtime="6s").load().runtime == 6.0


@pytest.mark.parametrize(
    ("factor", "levels", "more"),
    [
        ("numjobs", [1], {}),
        ("numjobs", [0, 2], {}),
        ("numjobs", [1, "x"], {}),
        ("numjobs", [2, 2], {}),
        ("runtime", [1, 2], {}),
        ("nonsense", [1, 2], {}),
        ("devices", [2, 1], {}),
        ("compressibility", [0, 200], {}),
        ("iodepth", [1, "x"], {}),
        ("bs", ["4k", "8k"], {"options": {"bs": "4k"}}),
        ("numjobs", [1, 2], {"runtime": "3s"}),
        ("numjobs", [1, 2], {"every": None}),
    ],
)
def test_steps_that_make_no_sense_are_told(
    factor: str, levels: list[Any], more: dict[str, Any], golden: Golden
) -> None:
    with pytest.raises(ValidationError) as caught:
        workload(factor, levels, **more)
    golden("fio/steps-refused", validation_text(caught.value))


def test_only_one_section_of_a_job_file_can_rise() -> None:
    job = "[a]\nsize=1m\n[b]\nsize=1m\n"
    with pytest.raises(ValidationError, match="the job file has 2 sections"):
        FioOptions.model_validate(
            {"job": job, "steps": {"factor": "numjobs", "levels": [1, 2], "every": 5}}
        )
    steps = {"factor": "numjobs", "levels": [1, 2], "every": 5}
    load = FioWorkload(FioOptions.model_validate({"job": job, "section": "b", "steps": steps}))
    assert load.load().jobs == 2


def test_options_survive_being_written_and_read() -> None:
    given = FioOptions.model_validate(
        {
            "steps": {"factor": "numjobs", "levels": [1, 2], "every": "5s"},
            "options": {"size": "1m"},
            "compressibility": 50,
        }
    )
    assert FioOptions.model_validate(given.model_dump(mode="json")) == given
