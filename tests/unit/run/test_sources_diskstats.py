# SPDX-License-Identifier: Apache-2.0
"""The diskstats source: on time, counted, and readable by its format's reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.clock import FakeClock
from iolab.formats.host.diskstats import DiskstatsLog
from iolab.hosts.kinds.fake import FakeHost
from iolab.studies.sources.diskstats import FILE, DiskstatsOptions, DiskstatsSource
from support.acting import DISKSTATS, fake_host


@pytest.fixture
def host() -> FakeHost:
    return fake_host()


def source(host: FakeHost, *devices: str, interval: float = 1.0) -> DiskstatsSource:
    return DiskstatsSource(
        DiskstatsOptions(interval=interval, devices=[]), host, host.clock, devices
    )


def times(directory: Path) -> list[float]:
    lines = (directory / FILE).read_text().splitlines()
    return [int(line.split()[2]) / 1e9 for line in lines if line.startswith("@")]


def watch(watched: DiskstatsSource, clock: FakeClock, directory: Path, steps: list[float]) -> None:
    watched.start(directory)
    for step in steps:
        clock.sleep(step)
        watched.poll()
    watched.stop()


def test_readings_keep_their_beat_however_the_loop_staggers(host: FakeHost, tmp_path: Path) -> None:
    watched = source(host, "sda")
    watch(watched, host.clock, tmp_path, [0.3, 0.8, 0.5, 0.6, 0.9, 0.7])
    assert times(tmp_path) == pytest.approx([0.0, 1.1, 2.2, 3.1, 3.8])
    assert (watched.readings, watched.lost) == (5, 0)


def test_missed_readings_are_counted_not_made_up(host: FakeHost, tmp_path: Path) -> None:
    watched = source(host, "sda")
    watch(watched, host.clock, tmp_path, [1.0, 3.2, 0.8])
    assert times(tmp_path) == pytest.approx([0.0, 1.0, 4.2, 5.0])
    assert watched.lost == 2


def test_the_last_reading_is_left_out_right_after_another(host: FakeHost, tmp_path: Path) -> None:
    watch(source(host, "sda"), host.clock, tmp_path, [1.0, 0.4])
    assert times(tmp_path) == [0.0, 1.0]


def test_a_read_that_fails_is_lost_and_the_rest_goes_on(host: FakeHost, tmp_path: Path) -> None:
    watched = source(host, "sda")
    watched.start(tmp_path)
    text = host.files.pop("/proc/diskstats")
    host.clock.sleep(1)
    watched.poll()
    host.files["/proc/diskstats"] = text
    host.clock.sleep(1)
    watched.poll()
    watched.stop()
    assert (watched.readings, watched.lost) == (2, 1)


def test_lines_are_the_kernels_own(host: FakeHost, tmp_path: Path) -> None:
    watch(source(host, "sda", "sdb"), host.clock, tmp_path, [1.0])
    kept = [
        line
        for line in (tmp_path / FILE).read_text().splitlines(keepends=True)
        if not line.startswith(("#", "@"))
    ]
    wanted = [
        line for line in DISKSTATS.splitlines(keepends=True) if " sda " in line or " sdb " in line
    ]
    assert kept == 2 * wanted


def test_the_reader_reads_what_the_source_writes(host: FakeHost, tmp_path: Path) -> None:
    watched = source(host, "sda")
    watched.start(tmp_path)
    host.files["/proc/diskstats"] = DISKSTATS.replace("20 0 160 9", "120 0 2208 59")
    host.clock.sleep(1.0)
    watched.poll()
    watched.stop()
    table = DiskstatsLog().read((tmp_path / FILE).read_bytes(), FILE)
    device = table.devices["sda"]
    assert device.columns["write.iops"].tolist() == pytest.approx([100.0])
    assert device.columns["write.bw"].tolist() == pytest.approx([2048 * 512])


def test_what_cannot_be_watched_says_why(host: FakeHost) -> None:
    assert "no block devices" in (source(host).unfit() or "")
    assert "doesn't list nvme0n1" in (source(host, "sda", "nvme0n1").unfit() or "")
    assert source(host, "sda").unfit() is None
    del host.files["/proc/diskstats"]
    assert "can't be read" in (source(host, "sda").unfit() or "")
