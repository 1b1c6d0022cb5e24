# SPDX-License-Identifier: Apache-2.0
"""Names of devices, as users type them, to the kernel's numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from iolab.base.errors import RunError, UsageError
from iolab.hosts.kinds.fake import FakeHost
from iolab.recordings.record.devices import devices_behind, find_devices
from iolab.recordings.record.probe.privilege import Caller, caller, need_root_for
from support.acting import fake_host


@pytest.fixture
def host() -> FakeHost:
    made = fake_host()
    base = "/sys/devices/pci/block"
    made.files |= {
        f"{base}/sda/dev": "8:0\n",
        f"{base}/sda/sda1/dev": "8:1\n",
        "/sys/devices/virtual/block/dm-0/dev": "253:0\n",
        "/sys/devices/virtual/block/dm-0/size": "8\n",
        f"{base}/nvme0n1/dev": "259:0\n",
        f"{base}/nvme0n1/nvme0n1p2/dev": "259:2\n",
        f"{base}/nvme0n1/nvme0n1p2/partition": "2\n",
        f"{base}/cciss!c0d0/dev": "104:0\n",
        "/sys/block/sda/size": "100\n",
        "/sys/block/loop0/size": "0\n",
    }
    made.links |= {
        "/sys/class/block/dm-0": "/sys/devices/virtual/block/dm-0",
        "/dev/mapper/data": "/dev/dm-0",
        "/dev/disk/by-id/ata-FAKE": "/dev/sda",
        "/dev/disk/by-id/ata-FAKE-part1": "/dev/sda1",
        "/sys/class/block/nvme0n1": f"{base}/nvme0n1",
        "/sys/class/block/nvme0n1p2": f"{base}/nvme0n1/nvme0n1p2",
        "/sys/class/block/cciss!c0d0": f"{base}/cciss!c0d0",
        "/sys/dev/block/8:0": f"{base}/sda",
        "/sys/dev/block/8:1": f"{base}/sda/sda1",
    }
    return made


@pytest.mark.parametrize(
    ("named", "name", "number"),
    [
        ("sda", "sda", "8:0"),
        ("/dev/sda", "sda", "8:0"),
        ("8:0", "sda", "8:0"),
        ("/dev/disk/by-id/ata-FAKE", "sda", "8:0"),
        ("dm-0", "dm-0", "253:0"),
        ("/dev/mapper/data", "dm-0", "253:0"),
        ("nvme0n1", "nvme0n1", "259:0"),
        ("/dev/cciss/c0d0", "cciss!c0d0", "104:0"),
    ],
)
def test_a_disk_by_any_name(named: str, name: str, number: str, host: FakeHost) -> None:
    [device] = find_devices(host, [named])
    assert (device.name, device.number, device.said) == (name, number, "")


@pytest.mark.parametrize(
    ("named", "disk"),
    [
        ("sda1", "sda"),
        ("/dev/disk/by-id/ata-FAKE-part1", "sda"),
        ("8:1", "sda"),
        ("nvme0n1p2", "nvme0n1"),
    ],
)
def test_a_partition_stands_for_its_disk_and_it_is_said(
    named: str, disk: str, host: FakeHost
) -> None:
    [device] = find_devices(host, [named])
    assert device.name == disk
    assert f"its disk {disk} is recorded" in device.said


def test_a_disk_named_twice_is_one(host: FakeHost) -> None:
    assert len(find_devices(host, ["sda", "/dev/sda", "sda1"])) == 1


@pytest.mark.parametrize("named", ["sdz", "/dev/null", "/etc/passwd", "9:9", "", "/"])
def test_what_is_no_device_is_one_line_with_what_there_is(named: str, host: FakeHost) -> None:
    host.directories.add("/sys/block/loop0")
    with pytest.raises(UsageError, match="no such block device") as error:
        find_devices(host, [named])
    assert "sda" in str(error.value)
    assert "loop0" not in str(error.value)  # nothing is attached


def test_the_disk_behind_a_mount(host: FakeHost) -> None:
    [device] = devices_behind(host, "/home")
    assert (device.name, device.number) == ("sda", "8:0")
    host.files["/proc/self/mountinfo"] += "2 1 0:30 / /mnt\\040x rw - btrfs /dev/sdb rw\n"
    assert devices_behind(host, "/mnt x/y") == []


def test_who_called_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert caller({}) is None
    assert caller({"SUDO_UID": "0"}) is None
    assert caller({"SUDO_UID": ""}) is None
    assert caller({"SUDO_UID": "x; rm"}) is None
    found = caller({"SUDO_UID": "65534", "SUDO_GID": "65534"})
    assert isinstance(found, Caller)
    assert (found.uid, found.gid) == (65534, 65534)
    assert caller({"SUDO_UID": "54321", "SUDO_GID": "7"}) == Caller(54321, 7, "", "/", (7,))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert caller({"SUDO_UID": "65534"}) is None
    with pytest.raises(RunError, match=r"block needs root.*sudo .*iolab record"):
        need_root_for(("block", "counters"))
    need_root_for(("counters",))


def test_root_is_given_up_for_good(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving up root needs root")
    code = """
import os
from iolab.recordings.record.probe.privilege import become, caller
become(caller(os.environ))
assert os.getresuid() == os.getresgid() == (65534,) * 3, os.getresuid()
assert set(os.getgroups()) <= {65534}
assert "SUDO_UID" not in os.environ
for attempt in (lambda: os.setuid(0), lambda: os.seteuid(0), lambda: os.setgroups([0]), lambda: open("/etc/shadow")):
    try:
        attempt()
    except PermissionError:
        continue
    raise SystemExit("root is back")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SUDO_UID": "65534", "SUDO_GID": "65534"},
        cwd="/",
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
