# SPDX-License-Identifier: Apache-2.0
"""What every workload must do: say what it needs and does, and make a job of it, without doing
anything yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from iolab.base import registry
from iolab.base.clock import FakeClock
from iolab.base.errors import RunError
from iolab.hosts.base.host import Place
from iolab.hosts.kinds.fake import FakeHost

OPTIONS: dict[str, dict[str, Any]] = {
    "fio": {"runtime": "3s", "ramp": "1s", "options": {"size": "1m", "numjobs": 2, "rw": "write"}},
    "files": {"runtime": "3s", "files": 4, "size": "1m", "parallel": 2, "op": "read"},
    "picture": {"runtime": "3s", "text": "io", "per_pixel": 30},
    "program": {"runtime": "5s", "command": ["tool", "--all"], "space": "1m"},
}
"""Sound options of each kind that last three seconds, or at most five."""

LOADS: dict[str, tuple[int, float, float, bool]] = {
    "fio": (2, 3.0, 1.0, False),
    "files": (2, 3.0, 0.0, False),
    "picture": (1, 3.0, 0.0, True),
    "program": (1, 5.0, 0.0, False),
}
"""What those options ask for: jobs, runtime, ramp, and whether I/Os come at a rate of their own."""

DEVICES = {"fio": "/dev/loop0:/dev/loop1", "picture": "/dev/loop0", "program": "/dev/loop0"}
"""Devices that each kind can take; a set of files takes none."""


@pytest.fixture(params=registry.names("workload"))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def workload(kind: str) -> Any:
    plugin = registry.load("workload", kind)
    return plugin(plugin.options.model_validate(OPTIONS[kind]))


def test_it_names_itself_and_forbids_unknown_options(kind: str) -> None:
    plugin = registry.load("workload", kind)
    assert plugin.name == kind
    assert plugin.__doc__
    assert all(field.description for field in plugin.options.model_fields.values())
    with pytest.raises(ValidationError, match="no_such_option"):
        plugin.options.model_validate({**OPTIONS[kind], "no_such_option": 1})
    with pytest.raises(ValidationError):
        plugin.options.model_validate({})


def test_options_survive_being_written_and_read(kind: str) -> None:
    plugin = registry.load("workload", kind)
    options = plugin.options.model_validate(OPTIONS[kind])
    assert plugin.options.model_validate(options.model_dump(mode="json")) == options


def test_it_says_what_it_will_do(kind: str, workload: Any) -> None:
    load = workload.load()
    assert (load.jobs, load.runtime, load.ramp, load.offered_iops is not None) == LOADS[kind]
    assert load.depth >= 1
    assert load.space_bytes > 0


def test_its_job_is_self_contained_and_stays_in_the_directory_given(workload: Any) -> None:
    job = workload.job(Place("/some/place"))
    assert job.command
    assert job.main in job.files
    assert "/some/place" in job.files[job.main]
    assert job.limit > 4.0
    assert all("/" not in name for name in job.files)
    assert not any(
        part.startswith("/") for part in job.command[1:]
    )  # so that the evidence can be moved and read again
    assert workload.job(Place("/some/place")) == job


def test_a_device_is_all_that_its_job_names(kind: str, workload: Any) -> None:
    if kind not in DEVICES:
        with pytest.raises(RunError, match="the target is a device"):
            workload.job(Place("/dev/loop0", "device"))
        return
    job = workload.job(Place(DEVICES[kind], "device"))
    assert DEVICES[kind] in job.files[job.main]
    assert "directory" not in job.files[job.main]
    assert workload.layout(Place("/dev/loop0", "device")) is None


def test_a_layout_measures_nothing_and_leaves_the_job_s_own_files_alone(
    kind: str, workload: Any
) -> None:
    job, layout = workload.job(Place("/some/place")), workload.layout(Place("/some/place"))
    if kind == "program":  # which makes its files itself
        assert layout is None
        return
    assert layout is not None
    assert layout.main in layout.files
    assert not layout.files.keys() & job.files.keys()
    assert "/some/place" in layout.files[layout.main]


def test_a_plain_load_has_neither_marks_nor_anything_to_tell(workload: Any) -> None:
    assert workload.marks((0, 1)) == ()
    assert workload.notes() == ()


def test_making_a_job_touches_nothing(
    workload: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workload.job(Place(str(tmp_path)))
    workload.layout(Place(str(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_tool_is_named_with_the_way_to_get_it(kind: str, workload: Any) -> None:
    host = FakeHost(FakeClock())
    arguments = (host, {"the cell": workload}) if kind == "program" else (host,)
    with pytest.raises(RunError) as caught:
        (workload.check if kind == "program" else workload.tools)(*arguments)
    assert "install" in (caught.value.hint or "")


def test_a_factor_of_no_meaning_has_no_place(kind: str) -> None:
    assert registry.load("workload", kind).place_of("no_such_thing_at_all") is None


def test_its_factors_are_those_that_have_a_place(kind: str) -> None:
    plugin = registry.load("workload", kind)
    assert plugin.factors()
    assert all(plugin.place_of(factor) is not None for factor in plugin.factors())


@pytest.mark.parametrize(
    "left", [{}, {"fio.json": b""}, {"fio.json": b"\x00\xff{"}, {"fio.json": b"[]"}]
)
def test_whatever_a_run_left_the_window_never_raises(
    workload: Any, tmp_path: Path, left: dict[str, bytes]
) -> None:
    for name, data in left.items():
        (tmp_path / name).write_bytes(data)
    assert workload.window(tmp_path) is None
