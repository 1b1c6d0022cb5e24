# SPDX-License-Identifier: Apache-2.0
"""The sources of the host's own counters: which lines they keep, what they show live, when they
have nothing to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iolab.base.registry import load
from iolab.hosts.kinds.fake import FakeHost
from support.acting import STAT, fake_host


def make(kind: str, host: FakeHost, **options: Any) -> Any:
    plugin = load("source", kind)
    return plugin(plugin.options(**options), host, host.clock, ["sda"])


def kept(directory: Path, kind: str) -> list[str]:
    return [
        line
        for line in (directory / f"{kind}.log").read_text().splitlines()
        if not line.startswith(("#", "@"))
    ]


def read(kind: str, directory: Path) -> Any:
    file = directory / f"{kind}.log"
    return load("format", kind)().read(file.read_bytes(), file.name)


@pytest.mark.parametrize(
    ("kind", "first", "absent"),
    [
        ("cpu", "cpu  100 10 50 800 40 5 5 0 0 0", "btime"),
        ("memory", "MemTotal:       16384000 kB", "HugePages"),
        ("vmstat", "nr_dirty 12", "nothing"),
        ("pressure", "io some avg10=0.00 avg60=0.00 avg300=0.00 total=1000", "nothing"),
    ],
)
def test_the_kernels_lines_are_kept_as_they_are(
    kind: str, first: str, absent: str, tmp_path: Path
) -> None:
    source = make(kind, fake_host())
    source.start(tmp_path)
    source.stop()
    lines = kept(tmp_path, kind)
    assert lines[0] == first
    assert not any(line.startswith(absent) for line in lines)
    assert (tmp_path / f"{kind}.log").read_text().startswith(f"# iolab {kind} 1\n@ ")


def test_interfaces_of_devices_alone_are_kept_with_their_known_speed(tmp_path: Path) -> None:
    host = fake_host()
    host.files |= load("counter-set", "network").example
    host.files["/sys/class/net/eth1/device/uevent"] = ""
    host.files["/sys/class/net/eth1/speed"] = "-1\n"
    host.files["/proc/net/dev"] += "  eth1: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n"
    source = make("network", host)
    source.start(tmp_path)
    source.stop()
    lines = kept(tmp_path, "network")
    assert [line.split()[0] for line in lines] == ["eth0:", "eth1:", "speed"]
    assert lines[2] == "speed eth0 1000"


def test_of_interrupts_the_total_alone_is_kept(tmp_path: Path) -> None:
    source = make("cpu", fake_host())
    source.start(tmp_path)
    source.stop()
    assert "intr 5000" in kept(tmp_path, "cpu")


def test_busy_is_shown_live_and_read_back_the_same(tmp_path: Path) -> None:
    host = fake_host()
    source = make("cpu", host)
    source.start(tmp_path)
    # 200 ticks of two CPUs: 50 user, 30 system, 100 idle, 20 waiting for I/O
    host.files["/proc/stat"] = STAT.replace(
        "cpu  100 10 50 800 40 5 5 0", "cpu  150 10 80 900 60 5 5 0"
    )
    host.clock.sleep(1.0)
    source.poll()
    assert source.latest() == {"host.cpu.busy": pytest.approx(0.4)}
    source.stop()
    columns = read("cpu", tmp_path).columns
    assert columns["cpu.busy"].tolist() == pytest.approx([0.4])
    assert columns["cpu.user"].tolist() == pytest.approx([0.25])
    assert columns["cpu.system"].tolist() == pytest.approx([0.15])
    assert columns["cpu.iowait"].tolist() == pytest.approx([0.1])


def test_dirty_memory_is_shown_live(tmp_path: Path) -> None:
    host = fake_host()
    source = make("memory", host)
    source.start(tmp_path)
    host.clock.sleep(1.0)
    source.poll()
    assert source.latest() == {"host.memory.dirty": 400 * 1024.0}


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("cpu", "/proc/stat"),
        ("memory", "/proc/meminfo"),
        ("vmstat", "/proc/vmstat"),
        ("pressure", "/proc/pressure/io"),
        ("network", "/proc/net/dev"),
    ],
)
def test_a_kernel_that_does_not_tell_makes_it_unfit(kind: str, path: str) -> None:
    host = fake_host()
    host.files.pop(path, None)
    assert f"{path} can't be read" in make(kind, host).unfit()


def test_readings_that_the_kernel_refuses_are_lost_and_the_rest_counts(tmp_path: Path) -> None:
    host = fake_host()
    source = make("vmstat", host)
    source.start(tmp_path)
    text = host.files.pop("/proc/vmstat")
    host.clock.sleep(1.0)
    source.poll()
    host.files["/proc/vmstat"] = text
    host.clock.sleep(1.0)
    source.poll()
    source.stop()
    assert (source.readings, source.lost) == (2, 1)
    assert len(read("vmstat", tmp_path).time_ns) == 1


@pytest.mark.parametrize("kind", ["diskstats", "iostat"])
def test_devices_can_be_named(kind: str) -> None:
    host = fake_host()
    plugin = load("source", kind)
    assert "no block devices" in plugin(plugin.options(), host, host.clock, []).unfit()
    assert plugin(plugin.options(devices=["sdb"]), host, host.clock, []).unfit() is None
