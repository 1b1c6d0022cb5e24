# SPDX-License-Identifier: Apache-2.0
"""No device is overwritten by accident: each way of being in use, of lacking leave, and of being
misnamed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from iolab.base.errors import RunError
from iolab.hosts.base.host import Completed
from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from iolab.hosts.kinds.local import LocalHost
from iolab.studies.targets.base import Permissions
from iolab.studies.targets.device import DeviceOptions, DeviceTarget
from iolab.studies.targets.filesystem import FilesystemOptions, FilesystemTarget
from iolab.studies.targets.safety import check_may_overwrite, find_device
from support.acting import fake_host
from support.disks import call, loop_device, need_loops

DISK = "/dev/disk/by-id/ata-DISK-1"
ALL = Permissions(destructive=True, force=True)
LEAVE = Permissions(destructive=True)


def wipefs(found: str = "", code: int = 0) -> FakeProgram:
    def answer(command: Sequence[str]) -> Completed:
        return Completed(tuple(command), code, found, "wipefs: error: cannot open" if code else "")

    return FakeProgram(output=answer)


@pytest.fixture
def host() -> FakeHost:
    """A machine whose root is on sda1, with an empty disk sdb of two partitions and a stable name."""
    made = fake_host()
    made.programs["wipefs"] = wipefs()
    for name, number in (
        ("sdb", "8:16"),
        ("sdb/sdb1", "8:17"),
        ("sdb/sdb2", "8:18"),
        ("sdc", "8:32"),
    ):
        base = f"/sys/devices/pci/block/{name}"
        made.files[f"{base}/dev"] = number
        made.files[f"{base}/size"] = "2048"
        if "/" in name:
            made.files[f"{base}/partition"] = "1"
        kernel = name.rpartition("/")[2]
        made.links[f"/sys/class/block/{kernel}"] = base
        made.links[f"/sys/dev/block/{number}"] = base
        made.directories.add(f"/dev/{kernel}")
    made.directories.add("/dev/disk/by-id")
    made.links[DISK] = "/dev/sdb"
    made.links["/dev/disk/by-id/ata-SYSTEM"] = "/dev/sda"
    made.links["/dev/disk/by-uuid/1234"] = "/dev/sdb"
    made.links["/dev/disk/by-partuuid/5678"] = "/dev/sdb2"
    return made


def check(
    host: FakeHost,
    named: str = DISK,
    permissions: Permissions = ALL,
    results: str = "/home/results",
) -> None:
    check_may_overwrite(host, [find_device(host, named)], permissions, results)


def refusal(
    host: FakeHost,
    named: str = DISK,
    permissions: Permissions = ALL,
    results: str = "/home/results",
) -> RunError:
    with pytest.raises(RunError) as caught:
        check(host, named, permissions, results)
    assert caught.value.hint
    assert caught.value.where == named
    return caught.value


def test_an_idle_blank_disk_may_be_had_with_leave(host: FakeHost) -> None:
    check(host, permissions=LEAVE)
    check(host, "/dev/disk/by-partuuid/5678", LEAVE)


def test_without_leave_nothing_may(host: FakeHost) -> None:
    error = refusal(host, permissions=Permissions())
    assert "--destructive" in str(error)
    assert "--destructive" in str(refusal(host, permissions=Permissions(force=True)))


def test_known_data_needs_force(host: FakeHost) -> None:
    host.programs["wipefs"] = wipefs("ext4 1c0e\ngpt \ngpt \n")
    assert "carries data: ext4, gpt" in str(refusal(host, permissions=LEAVE))
    check(host, permissions=ALL)


def test_a_device_that_cannot_be_looked_at_is_refused(host: FakeHost) -> None:
    host.programs["wipefs"] = wipefs(code=1)
    with pytest.raises(RunError, match="can't be looked at"):
        check(host)
    del host.programs["wipefs"]
    with pytest.raises(RunError, match="util-linux"):
        check(host)


@pytest.mark.parametrize(
    "source",
    [
        "8:16 / /mnt rw - ext4 /dev/sdb rw",
        "8:18 / /mnt rw - xfs /dev/other rw",
        "0:44 / /mnt rw - btrfs /dev/sdb2 rw",
    ],
)
def test_what_is_mounted_stays_whatever_is_allowed(host: FakeHost, source: str) -> None:
    host.files["/proc/self/mountinfo"] += f"50 1 {source}\n"
    assert "mounted at /mnt" in str(refusal(host))


def test_a_member_of_a_mounted_btrfs_stays(host: FakeHost) -> None:
    host.files["/sys/fs/btrfs/uuid-1/devices/sdb1"] = ""
    assert "part of the mounted btrfs uuid-1" in str(refusal(host))


def test_swap_stays(host: FakeHost) -> None:
    host.files["/proc/swaps"] = "Filename Type Size Used Priority\n/dev/sdb2 partition 100 0 -2\n"
    assert "its partition sdb2): swapped to" in str(refusal(host))


@pytest.mark.parametrize("part", ["sdb", "sdb/sdb2"])
def test_what_something_is_built_on_stays(host: FakeHost, part: str) -> None:
    host.files[f"/sys/devices/pci/block/{part}/holders/dm-3"] = ""
    assert "part of dm-3" in str(refusal(host))


def test_what_backs_a_loop_device_stays(host: FakeHost) -> None:
    host.files["/sys/class/block/loop5/loop/backing_file"] = "/dev/sdb\n"
    assert "attached as loop5" in str(refusal(host))


def test_the_disk_of_root_stays_its_free_partitions_do_not(host: FakeHost) -> None:
    assert "holds the root file system" in str(refusal(host, "/dev/disk/by-id/ata-SYSTEM"))
    base = "/sys/devices/pci/block/sda/sda3"
    host.files.update({f"{base}/partition": "3", f"{base}/dev": "8:3"})
    host.links.update(
        {"/sys/class/block/sda3": base, "/dev/disk/by-id/ata-SYSTEM-part3": "/dev/sda3"}
    )
    check(host, "/dev/disk/by-id/ata-SYSTEM-part3", LEAVE)


def test_the_disk_of_the_results_stays(host: FakeHost) -> None:
    base = "/sys/devices/virtual/block/dm-0"
    host.files.update({f"{base}/dev": "253:0", f"{base}/slaves/sdb2": ""})
    host.links.update({"/sys/class/block/dm-0": base, "/sys/dev/block/253:0": base})
    host.files["/proc/self/mountinfo"] += "50 1 253:0 / /data rw - xfs /dev/mapper/data rw\n"
    assert "holds the results" in str(refusal(host, results="/data/results"))


@pytest.mark.parametrize(
    ("named", "words", "hint"),
    [
        ("/dev/sdb", "not a stable name", f"write {DISK}"),
        ("/dev/disk/by-uuid/1234", "named by what is on it", f"write {DISK}"),
        ("/dev/sdc", "not a stable name", "no stable name there"),
    ],
)
def test_names_that_may_mean_another_disk_are_refused_with_a_better_one(
    host: FakeHost, named: str, words: str, hint: str
) -> None:
    error = refusal(host, named)
    assert words in error.message
    assert hint in str(error.hint)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        *(
            (name, "does not exist")
            for name in ("/dev/disk/by-id/gone", "/etc/passwd", "/dev/null", "sdb", "/tmp/sdb")
        ),
        *((name, "is not a block device") for name in ("/dev", "/dev/disk")),
    ],
)
def test_a_name_of_no_device_is_refused(host: FakeHost, named: str, message: str) -> None:
    """The host of these tests has directories, and no file below /etc and /tmp."""
    with pytest.raises(RunError, match=message):
        check(host, named)


class Renamed(LocalHost):
    """This machine, where `/dev/disk/by-id/mine` is some device."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self._node = node

    def resolve(self, path: str) -> str:
        return self._node if path == "/dev/disk/by-id/mine" else super().resolve(path)


def device(
    host: LocalHost, tmp_path: Path, permissions: Permissions, writes: bool = True
) -> DeviceTarget:
    return DeviceTarget(
        DeviceOptions(device="/dev/disk/by-id/mine"),
        host,
        f"{tmp_path}/scratch",
        permissions,
        writes,
    )


@pytest.mark.loops
def test_a_real_device_passes_through_the_same_checks(tmp_path: Path) -> None:
    need_loops()
    with loop_device(tmp_path) as node:
        host = Renamed(node)
        with pytest.raises(RunError, match="--destructive"):
            device(host, tmp_path, Permissions()).open(1)
        free = device(host, tmp_path, LEAVE)
        free.open(1)
        free.close()
        descriptor = os.open(node, os.O_RDONLY | os.O_EXCL)
        with pytest.raises(RunError, match="can't be had for oneself"):
            device(host, tmp_path, ALL).open(1)
        os.close(descriptor)
        call("mkfs.ext4", "-q", node)
        with pytest.raises(RunError, match="carries data: ext4"):
            device(host, tmp_path, LEAVE).open(1)
        device(host, tmp_path, ALL).open(1)
        point = tmp_path / "point"
        point.mkdir()
        call("mount", node, str(point))
        try:
            with pytest.raises(RunError, match=f"mounted at {point}"):
                device(host, tmp_path, ALL).open(1)
            only_reads = device(host, tmp_path, Permissions(), writes=False)
            only_reads.open(1)  # reading disturbs nobody
            assert only_reads.destroys() == ()
        finally:
            call("umount", str(point))
        assert (
            call("blkid", "-p", "-s", "TYPE", "-o", "value", node) == "ext4"
        )  # none of that touched it


@pytest.mark.loops
def test_a_file_system_of_iolab_goes_off_a_users_device_again(tmp_path: Path) -> None:
    need_loops()
    with loop_device(tmp_path) as node:
        options = FilesystemOptions(fs="ext4", device="/dev/disk/by-id/mine", fresh="study")
        target = FilesystemTarget(options, Renamed(node), f"{tmp_path}/scratch", LEAVE)
        assert target.destroys() == ("everything on /dev/disk/by-id/mine, by mkfs.ext4",)
        target.open(1 << 20)
        assert "ext4" in call("wipefs", "--no-act", "--noheadings", node)
        target.close()
        assert call("wipefs", "--no-act", "--noheadings", node) == ""
        call("mkfs.ext4", "-q", node)  # by somebody else, while a record of ours still stands
        Path(f"{tmp_path}/scratch.made").write_text(
            f'{{"made": "filesystem", "device": "{node}", "uuid": "1c0e-not-theirs"}}\n'
        )
        target.close()
        assert "ext4" in call("wipefs", "--no-act", "--noheadings", node)
