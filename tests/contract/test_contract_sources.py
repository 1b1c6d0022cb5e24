# SPDX-License-Identifier: Apache-2.0
"""What every source must do: start, be polled, stop, count what it got and lost, and leave a file
that a format reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from iolab.base import registry
from iolab.base.clock import FakeClock
from iolab.base.errors import FormatError, RunError
from iolab.formats.core.tables import DeviceTable, HostTable
from iolab.formats.detect import detect
from iolab.hosts.kinds.fake import FakeHost
from iolab.studies.sources.recorded import RecordedSource
from support.acting import fake_host
from support.zfs_machine import with_zfs

STATUS = "/recording/status.json"


@pytest.fixture(params=registry.names("source"))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def host(kind: str) -> FakeHost:
    made = with_zfs(fake_host(), kind)
    if kind in registry.names("counter-set"):
        made.files |= registry.load("counter-set", kind).example
    made.files = RecorderFiles(made.files, made.clock)
    return made


class RecorderFiles(dict[str, str]):
    """The host's files, and the status of a recorder that takes in 100 events a second and loses
    one."""

    def __init__(self, files: Mapping[str, str], clock: FakeClock) -> None:
        super().__init__({**files, STATUS: ""})
        self._clock = clock

    def __getitem__(self, path: str) -> str:
        if path != STATUS:
            return super().__getitem__(path)
        seconds = int(self._clock.monotonic())
        counts = {
            name: dict.fromkeys(("block", "syscall"), seconds * number)
            for name, number in (("events", 100), ("lost", 1))
        }
        return json.dumps(
            {
                "schema": 1,
                "state": "recording",
                "deaths": 0,
                "written_ns": self._clock.realtime_ns(),
                **counts,
                "samples": 100 * seconds,
            }
        )


def make(kind: str, host: FakeHost, *devices: str) -> Any:
    plugin = registry.load("source", kind)
    source = plugin(plugin.options(), host, host.clock, devices)
    if isinstance(source, RecordedSource):
        source.attach("/recording")
    return source


def files(directory: Path) -> list[Path]:
    """What readers look at: hidden files are nobody's measurement."""
    return [path for path in directory.iterdir() if not path.name.startswith(".")]


def lengths(table: object) -> set[int]:
    """How many values the columns of a table have."""
    assert isinstance(table, DeviceTable | HostTable)
    parts = table.devices.values() if isinstance(table, DeviceTable) else [table]
    return {len(values) for part in parts for values in part.columns.values()}


def test_it_names_itself_has_defaults_and_forbids_unknown_options(kind: str) -> None:
    plugin = registry.load("source", kind)
    assert plugin.name == kind
    assert plugin.__doc__
    assert all(field.description for field in plugin.options.model_fields.values())
    with pytest.raises(ValidationError, match="no_such_option"):
        plugin.options.model_validate({"no_such_option": 1})


def test_a_run_of_ten_seconds_is_covered(kind: str, host: FakeHost, tmp_path: Path) -> None:
    source = make(kind, host, "sda")
    assert source.unfit() is None
    source.start(tmp_path)
    end = host.clock.monotonic() + 10.0
    while (now := host.clock.monotonic()) < end:
        assert source.due() > now - 1e-6
        host.clock.sleep(min(source.due(), end) - now)
        source.poll()
        source.poll()  # not due again yet: nothing is read twice
    source.stop()
    assert (source.readings, source.lost, source.trouble) == (11, 0, "")
    [file] = files(tmp_path)
    assert file.name.startswith(f"{kind}.")  # by this the gates know whose it is
    name = detect(file.read_bytes(), file.name)
    assert name is not None
    assert lengths(registry.load("format", name)().read(file.read_bytes(), file.name)) == {10}


@pytest.mark.slow
def test_a_torn_file_is_read_as_far_as_it_goes_or_refused(
    kind: str, host: FakeHost, tmp_path: Path
) -> None:
    source = make(kind, host, "sda")
    source.start(tmp_path)
    for _ in range(5):
        host.clock.sleep(1.0)
        source.poll()
    [file] = files(tmp_path)  # before the stop: what a kill would leave
    data = file.read_bytes()
    name = detect(data, file.name)
    assert name is not None
    rows = set()
    for cut in range(len(data)):
        try:
            rows |= lengths(registry.load("format", name)().read(data[:cut], file.name))
        except FormatError:
            continue
    assert max(rows) >= 4
    source.stop()


def test_an_empty_file_of_a_source_is_told_by_its_name(
    kind: str, host: FakeHost, tmp_path: Path
) -> None:
    source = make(kind, host, "sda")
    source.start(tmp_path)
    source.stop()
    [file] = files(tmp_path)
    name = detect(b"", file.name)
    assert name is not None
    with pytest.raises(FormatError, match="empty"):
        registry.load("format", name)().read(b"", file.name)


def test_stopping_is_safe_at_any_time(kind: str, host: FakeHost, tmp_path: Path) -> None:
    source = make(kind, host, "sda")
    source.stop()
    source.poll()
    source.start(tmp_path)
    source.stop()
    source.stop()
    assert source.readings == 1


def test_what_it_shows_live_is_finite_and_empty_at_first(
    kind: str, host: FakeHost, tmp_path: Path
) -> None:
    source = make(kind, host, "sda")
    assert source.latest() == {}
    source.start(tmp_path)
    for _ in range(3):
        host.clock.sleep(1.0)
        source.poll()
        assert all(
            isinstance(value, float) and abs(value) < 1e300 for value in source.latest().values()
        )
    source.stop()


def test_a_host_that_tells_nothing_makes_it_unfit_or_lossy(
    kind: str, host: FakeHost, tmp_path: Path
) -> None:
    host.files.clear()
    host.programs.clear()
    source = make(kind, host, "sda")
    assert source.unfit()
    try:
        source.start(tmp_path)
    except RunError:  # a program that can't be started is the run's failure, said at once
        source.stop()
        return
    host.clock.sleep(1.0)
    source.poll()
    source.stop()
    assert source.readings == 0
    assert source.lost >= 2
