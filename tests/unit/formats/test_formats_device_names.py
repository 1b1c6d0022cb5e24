# SPDX-License-Identifier: Apache-2.0
"""Which of the devices that are listed together a sum holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.formats.core.device_names import NO_DISK, PARTITION, STACKED, UNKNOWN, choose_devices


@pytest.mark.parametrize(
    ("listed", "counted"),
    [
        ("sda sda1 sda2 sdb dm-0 dm-1 loop0 zram0 sr0", "sda sdb"),
        ("nvme0n1 nvme0n1p1 nvme1n1 md0", "nvme0n1 nvme1n1"),
        ("mmcblk0 mmcblk0p1 mmcblk0boot0", "mmcblk0 mmcblk0boot0"),
        ("xvda1 xvdb", "xvda1 xvdb"),
        ("dm-0", "dm-0"),
        ("dm-0 dm-1 zram0", "dm-0 dm-1"),
        ("loop0", "loop0"),
        ("zram0", "zram0"),
        ("md0 md0p1 zram0", "md0"),
        ("c1t0d0 c1t0d0s0 c0t5000C500A1B2C3D4d0", "c1t0d0 c0t5000C500A1B2C3D4d0"),
        ("ada0 ada1 cd0 pass0", "ada0 ada1"),
        ("sda luks-ea06d19b-489f-4236-8918-c95c91e3417c fedora-swap fedora-root", "sda"),
        ("sda sdb mpatha mpathap1", "sda sdb"),
        ("nvme0c0n1 nvme0n1", "nvme0n1"),
        ("nvme0n1 nvme0n1p1 nvme0c0n1 nvme0c1n1 nvme1c0n2", "nvme0n1 nvme1c0n2"),
        ("fedora-swap fedora-root dm-3", "fedora-swap fedora-root"),
        ("sdc docker-253:1-4596-pool rhel7-root server:/export", "sdc"),
        ("sd1 sd10 sd100", "sd1 sd10 sd100"),
        ("sdaa sda", "sdaa sda"),
    ],
)
def test_disks_count_once(listed: str, counted: str) -> None:
    assert choose_devices(listed.split(), are_kernel_names=False).counted == tuple(counted.split())


@pytest.mark.parametrize(
    ("idle", "counted"),
    [
        ("nvme0n1 nvme0n1p1", "nvme0c0n1 nvme0c1n1"),
        ("nvme0n1 nvme0n1p1 nvme0c1n1", "nvme0c0n1 nvme0c1n1"),
        ("nvme0n1 nvme0n1p1 nvme0c0n1 nvme0c1n1", "nvme0n1"),
        ("nvme0c1n1", "nvme0n1"),
    ],
)
def test_paths_count_where_their_namespace_has_no_io(idle: str, counted: str) -> None:
    listed = ["nvme0n1", "nvme0n1p1", "nvme0c0n1", "nvme0c1n1"]
    assert choose_devices(listed, idle=idle.split()).counted == tuple(counted.split())


def test_a_kernel_name_of_no_known_kind_is_a_disk() -> None:
    assert choose_devices(["sda", "newdisk0"]).counted == ("sda", "newdisk0")
    assert choose_devices(["sda", "newdisk0"], are_kernel_names=False).left_out == {
        "newdisk0": UNKNOWN
    }


def test_why_others_are_left_out() -> None:
    assert choose_devices(["zram0", "sda1", "dm-0", "sda"]).left_out == {
        "zram0": NO_DISK,
        "sda1": PARTITION,
        "dm-0": STACKED,
    }


@given(
    st.lists(
        st.from_regex(r"(sd|nvme0n|dm-|md|loop|zram|vg-)[a-c0-2](p?[0-2])?", fullmatch=True),
        min_size=1,
    ),
    st.booleans(),
)
def test_every_device_is_counted_or_left_out_once_and_the_order_changes_nothing(
    names: list[str], kernel: bool
) -> None:
    found = choose_devices(names, are_kernel_names=kernel)
    assert found.counted
    assert sorted([*found.counted, *found.left_out]) == sorted(set(names))
    again = choose_devices(reversed(names), are_kernel_names=kernel)
    assert (set(again.counted), dict(again.left_out)) == (set(found.counted), dict(found.left_out))
