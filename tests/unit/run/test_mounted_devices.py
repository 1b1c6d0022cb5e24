# SPDX-License-Identifier: Apache-2.0
"""The way from a directory to the disks under it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.hosts.base.host import Completed
from iolab.hosts.facts.mounted_devices import backing, device_facts
from iolab.hosts.facts.mounts import Mount, mount_of
from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from support.acting import fake_host

MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
30 22 0:25 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=100k
40 22 253:0 / /data rw,noatime shared:7 master:2 - xfs /dev/mapper/vg-data rw,attr2
41 22 253:1 / /data/with\040blank rw - ext4 /dev/mapper/vg-other rw
50 22 0:40 /sub /pool rw - btrfs /dev/sdc rw,compress=zstd:3
60 22 8:99 / /data rw - ext4 /dev/late rw
"""


def mounted(path: str) -> Mount:
    mount = mount_of(MOUNTS, path)
    assert mount is not None
    return mount


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("/home/me", "/dev/sda1"),
        ("/", "/dev/sda1"),
        ("/dev/shm/x", "tmpfs"),
        ("/database", "/dev/sda1"),
        ("/data", "/dev/late"),
        ("/data/a", "/dev/late"),
        ("/data/with blank/x", "/dev/mapper/vg-other"),
        ("/pool", "/dev/sdc"),
    ],
)
def test_the_longest_and_last_mount_holds_a_path(path: str, source: str) -> None:
    assert mounted(path).source == source


def test_options_of_mount_and_superblock_occur_once() -> None:
    assert mounted("/").options == "rw,relatime,errors=remount-ro"


@given(st.text(max_size=200))
def test_no_mountinfo_raises(text: str) -> None:
    mount_of(text + "\n" + MOUNTS[:100], "/x")


@given(st.integers(0, len(MOUNTS)))
def test_a_cut_mountinfo_never_raises(cut: int) -> None:
    mount_of(MOUNTS[:cut], "/data/x")


@pytest.fixture
def host() -> FakeHost:
    return fake_host()


def mount(device: str, kind: str = "ext4", source: str = "/dev/x") -> Mount:
    return Mount(device, "/", kind, source, "rw")


def test_a_partition_counts_as_its_disk(host: FakeHost) -> None:
    assert backing(host, mount("8:1")).devices == ("sda",)


def stack(host: FakeHost, name: str, number: str, slaves: tuple[str, ...]) -> None:
    base = f"/sys/devices/virtual/block/{name}"
    host.files[f"{base}/size"] = "1"
    host.directories.add(f"{base}/slaves")
    for slave in slaves:
        host.files[f"{base}/slaves/{slave}"] = ""
    host.links[f"/sys/class/block/{name}"] = base
    host.links[f"/sys/dev/block/{number}"] = base


def disk(host: FakeHost, name: str) -> None:
    host.files[f"/sys/devices/pci/block/{name}/size"] = "1"
    host.links[f"/sys/class/block/{name}"] = f"/sys/devices/pci/block/{name}"


def test_a_stack_of_devices_counts_as_what_is_at_its_bottom(host: FakeHost) -> None:
    disk(host, "sdb")
    stack(host, "md0", "9:0", ("sda1", "sdb"))
    stack(host, "dm-0", "253:0", ("md0",))
    assert backing(host, mount("253:0")).devices == ("sda", "sdb")


def test_a_loop_of_slaves_ends(host: FakeHost) -> None:
    stack(host, "dm-0", "253:0", ("dm-1",))
    stack(host, "dm-1", "253:1", ("dm-0",))
    assert len(backing(host, mount("253:0")).devices) == 1


def test_a_btrfs_counts_as_all_its_members(host: FakeHost) -> None:
    disk(host, "sdc")
    disk(host, "sdd")
    for name in ("sdc", "sdd"):
        host.files[f"/sys/fs/btrfs/some-uuid/devices/{name}"] = ""
    host.files["/sys/fs/btrfs/features/x"] = ""
    assert backing(host, mount("0:40", "btrfs", "/dev/sdc")).devices == ("sdc", "sdd")


POOL = """tank\t7.50G\t24.4M\t7.48G\t-\t-\t0%\t0%\t1.00x\tONLINE\t-
\tmirror-0\t3.75G\t12.7M\t3.74G\t-\t-\t0%\t0.33%\t-\tONLINE
\t/dev/sda1\t3.99G\t-\t-\t-\t-\t-\t-\t-\tONLINE
\t/dev/dm-0\t3.99G\t-\t-\t-\t-\t-\t-\t-\tONLINE
\t/srv/file\t3.99G\t-\t-\t-\t-\t-\t-\t-\tONLINE
cache\t-\t-\t-\t-\t-\t-\t-\t-\t-
\t/dev/removed1\t3.99G\t-\t-\t-\t-\t-\t-\t-\tUNAVAIL
"""


def pool(host: FakeHost, answer: str, code: int = 0) -> None:
    host.programs["zpool"] = FakeProgram(
        output=lambda command: Completed(tuple(command), code, answer, "")
    )


def test_a_zfs_counts_as_all_disks_of_its_pool(host: FakeHost) -> None:
    disk(host, "sdb")
    stack(host, "dm-0", "253:0", ("sdb",))
    pool(host, POOL)
    assert backing(host, mount("0:40", "zfs", "tank/data@monday")).devices == ("sda", "sdb")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("", 0),
        ("cannot open 'tank': no such pool\n", 1),
        (POOL, 1),
        ("\0\t\n\n/dev/\n/dev/..\n", 0),
    ],
)
def test_a_pool_that_zpool_does_not_list_has_no_devices(
    host: FakeHost, answer: str, code: int
) -> None:
    pool(host, answer, code)
    assert backing(host, mount("0:40", "zfs", "tank/data")).devices == ()


def test_an_anonymous_number_falls_back_on_the_source(host: FakeHost) -> None:
    host.links["/dev/mapper/vg-data"] = "/dev/sda1"
    assert backing(host, mount("0:77", "ext4", "/dev/mapper/vg-data")).devices == ("sda",)


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("overlay", "overlay"),
        ("tmpfs", "tmpfs"),
        ("zfs", "tank/data"),
        ("nfs4", "server:/x"),
        ("ext4", "/dev/gone"),
    ],
)
def test_where_no_device_is_known_the_reason_is_given(
    host: FakeHost, kind: str, source: str
) -> None:
    answer = backing(host, mount("0:99", kind, source))
    assert answer.devices == ()
    assert kind in answer.missing
    assert source in answer.missing


def test_device_facts_are_those_of_the_kernel(host: FakeHost) -> None:
    assert device_facts(host, "sda") == {
        "model": "FAKE DISK",
        "scheduler": "mq-deadline",
        "rotational": 1,
        "size_bytes": 512_000,
    }
    assert device_facts(host, "nothing") == {}
    host.files["/sys/devices/pci/block/sda/size"] = "a lot\n"
    assert "size_bytes" not in device_facts(host, "sda")
