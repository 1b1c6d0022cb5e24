# SPDX-License-Identifier: Apache-2.0
"""The iostat source: how it is called, how it is ended, and how it is seen that it died."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from iolab.base.clock import SystemClock
from iolab.base.errors import RunError
from iolab.formats.iostat.json_output import IostatJson
from iolab.hosts.kinds.fake import FakeHost
from iolab.hosts.kinds.local import LocalHost
from iolab.studies.sources.iostat import FILE, IostatOptions, IostatSource
from support.acting import fake_host, fake_iostat
from support.waiting import until


def make(host: FakeHost, **options: int) -> IostatSource:
    return IostatSource(IostatOptions(**options), host, host.clock, ["sda", "sdb"])


def watch(source: IostatSource, host: FakeHost, directory: Path, seconds: int) -> None:
    source.start(directory)
    for _ in range(seconds):
        host.clock.sleep(1.0)
        source.poll()
    source.stop()


def test_it_watches_the_targets_devices_in_json_with_stamps(tmp_path: Path) -> None:
    host = fake_host()
    watch(make(host, interval=2), host, tmp_path, 4)
    assert host.started == [(("iostat", "-o", "JSON", "-xdt", "2", "sda", "sdb"), tmp_path)]
    assert [path.name for path in tmp_path.iterdir()] == [
        FILE
    ]  # nothing was said on standard error


def test_one_that_dies_says_when_and_how(tmp_path: Path) -> None:
    host = fake_host()
    host.programs["iostat"] = fake_iostat(seconds=4.5, exit_code=137)
    source = make(host)
    watch(source, host, tmp_path, 10)
    assert source.trouble == "ended early, within 5 s, exit code 137"
    assert (source.readings, source.lost) == (5, 5)
    assert (
        len(IostatJson().read((tmp_path / FILE).read_bytes(), FILE).devices["sda"].columns["util"])
        == 4
    )


def test_missing_sysstat_is_said_with_the_way_to_get_it(tmp_path: Path) -> None:
    host = fake_host()
    del host.programs["iostat"]
    source = make(host)
    assert "apt install sysstat" in (source.unfit() or "")
    with pytest.raises(RunError, match="can't be started"):
        source.start(tmp_path)
    source.stop()


@pytest.mark.parametrize("killed", [False, True])
def test_real_iostat_leaves_whole_json_unless_it_is_killed(tmp_path: Path, killed: bool) -> None:
    device = next(
        (path.name for path in sorted(Path("/sys/block").iterdir()) if "ram" not in path.name), None
    )
    if shutil.which("iostat") is None or device is None:
        pytest.skip("iostat or a block device is absent")
    source, clock = (
        IostatSource(IostatOptions(devices=[]), LocalHost(), SystemClock(), [device]),
        SystemClock(),
    )
    before = clock.monotonic()
    source.start(tmp_path)
    # the report since boot, and one or two more
    until(
        lambda: (tmp_path / FILE).read_text().count('"util"') >= (2 if killed else 3),
        "iostat's reports",
    )
    if killed:
        assert source._process is not None
        os.kill(source._process.pid, signal.SIGKILL)
        until(lambda: source._process is None or source._process.wait(0) is not None, "its end")
    source.stop()
    passed = clock.monotonic() - before
    written = (tmp_path / FILE).read_text()
    table = IostatJson().read(written.encode(), FILE)
    assert table.skipped_first
    assert (
        len(table.devices[device].columns["util"])
        == written.count('"util"') - 1
        >= (1 if killed else 2)
    )
    assert ("isn't closed" in " ".join(table.assumptions)) is killed
    assert re.fullmatch(
        r"ended early, within \d+ s, exit code 137" if killed else "", source.trouble
    )
    assert source.readings == written.count('"timestamp"') <= 2 + passed
    # what is late by more than a second counts as lost
    assert source.lost <= max(0, passed - source.readings)
