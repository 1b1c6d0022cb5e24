# SPDX-License-Identifier: Apache-2.0
"""File systems made for a study on loop devices: fresh as often as asked, cold where asked, honest
about room."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from iolab.base.errors import RunError
from iolab.hosts.kinds.local import LocalHost
from iolab.studies.results.facts.target_metrics import compression
from iolab.studies.targets.base import RunContext
from iolab.studies.targets.cache import check_cold, drop_caches
from iolab.studies.targets.filesystem import (
    FilesystemOptions,
    FilesystemTarget,
    mkfs_command,
    mount_options,
)
from support.disks import attached, call, mounted, need_loops
from support.golden import Golden, validation_text
from support.waiting import until

MIB = 1 << 20


@pytest.mark.parametrize(
    "given",
    [
        {"fs": "ext4"},
        {"fs": "ext4", "loop": {"size": "1g"}, "device": "/dev/x"},
        {"fs": "zfs", "loop": {"size": "1g"}},
        {"fs": "xfs", "loop": {"size": "100m"}},
        {"fs": "ext4", "loop": {"size": "1g", "count": 2}},
        {"fs": "ext4", "loop": {"size": "1000001"}},
        {"fs": "ext4", "loop": {"size": "1g"}, "mkfs_options": "-O 'x"},
        {"fs": "ext4", "loop": {"size": "1g"}, "mkfs_options": {"m": 0}},
        {"fs": "ext4", "loop": {"size": "1g"}, "mount_options": "noatime, nodiratime"},
        {"fs": "ext4", "device": "sda"},
        {"fs": "btrfs", "device": ["/dev/a", "/dev/a"]},
        {"fs": "btrfs", "device": []},
        {"fs": "ext4", "loop": {"size": "1g"}, "fresh": "always"},
    ],
)
def test_nonsense_is_refused_with_what_would_be_right(
    given: dict[str, Any], golden: Golden
) -> None:
    with pytest.raises(ValidationError) as caught:
        FilesystemOptions.model_validate(given)
    golden("targets/filesystem-refused", validation_text(caught.value))


def test_mkfs_gets_the_studys_options_last_and_one_e() -> None:
    assert mkfs_command(
        "ext4", ["/dev/x"], ["-E", "stride=4", "-m0", "-Elazy_itable_init=0"], "u", keep=True
    ) == [
        "mkfs.ext4",
        "-q",
        "-F",
        "-U",
        "u",
        "-E",
        "nodiscard,stride=4,lazy_itable_init=0",
        "-m0",
        "/dev/x",
    ]
    assert mkfs_command("xfs", ["/dev/x"], ["-m", "crc=1"], "u", keep=False) == [
        "mkfs.xfs",
        "-q",
        "-f",
        "-m",
        "uuid=u",
        "-m",
        "crc=1",
        "/dev/x",
    ]
    assert mkfs_command("btrfs", ["/dev/x", "/dev/y"], ["-d", "raid1"], "u", keep=True)[-4:] == [
        "-d",
        "raid1",
        "/dev/x",
        "/dev/y",
    ]
    assert mount_options("ext4", "noatime") == "noatime,noinit_itable"
    assert mount_options("ext4", "init_itable=0") == "init_itable=0"
    assert mount_options("btrfs", "") == ""


@pytest.fixture
def area(tmp_path: Path) -> Iterator[Path]:
    need_loops()
    yield tmp_path
    # the kernel detaches a device that somebody else looks at once they are through
    until(lambda: attached(tmp_path) == [], "loop devices to be detached")
    assert mounted(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def make(area: Path, **given: Any) -> FilesystemTarget:
    return FilesystemTarget(FilesystemOptions.model_validate(given), LocalHost(), f"{area}/scratch")


def context(run: str, cell: str = "cell", block: int = 1, needed: int = 1) -> RunContext:
    return RunContext(run, cell, block, needed)


def uuid_of(target: FilesystemTarget) -> str:
    return call("blkid", "-p", "-s", "UUID", "-o", "value", f"/dev/{target.devices()[0]}")


@pytest.mark.loops
@pytest.mark.parametrize(
    ("fresh", "expected"), [("run", "0123"), ("cell", "0011"), ("block", "0001"), ("study", "0000")]
)
def test_a_new_file_system_comes_as_often_as_asked(area: Path, fresh: str, expected: str) -> None:
    target = make(area, fs="ext4", loop={"size": "16m", "allocate": "sparse"}, fresh=fresh)
    try:
        target.open(1)
        seen = [uuid_of(target)]  # the one that `open` made serves the first run
        found = ""
        for run, cell, block in (("1", "a", 1), ("2", "a", 1), ("3", "b", 1), ("4", "b", 2)):
            target.begin(context(run, cell, block))
            uuid = uuid_of(target)
            seen += [uuid] if uuid not in seen else []
            found += str(seen.index(uuid))
            target.end(run)
        assert found == expected
    finally:
        target.close()


@pytest.mark.loops
@pytest.mark.parametrize(("fs", "size"), [("ext4", "32m"), ("xfs", "300m"), ("btrfs", "128m")])
def test_room_taken_is_what_was_written(area: Path, fs: str, size: str) -> None:
    need_loops(f"mkfs.{fs}")
    target = make(area, fs=fs, loop={"size": size}, mount_options="noatime")
    try:
        target.open(MIB)
        assert "noatime" in target.facts().fingerprint["filesystem"]
        assert target.facts().facts["loops"][0]["direct_io"] in (True, False)
        place = Path(target.begin(context("run")).path)
        (place / "data").write_bytes(os.urandom(8 * MIB))
        seen = target.observe()
        assert seen["written_bytes"] == seen["apparent_bytes"] == 8 * MIB
        assert seen["taken_bytes"] == pytest.approx(8 * MIB, rel=0.02)
        assert compression(seen) == pytest.approx(1, rel=0.02)
        assert 8 * MIB / seen["size_bytes"] < seen["fill"] < 1
        target.end("run")
    finally:
        target.close()


def data(share: float) -> bytes:
    """16 MiB of which in every 4 KiB that share is zeros, as fio makes its compressible data."""
    random = round(4096 * (1 - share))
    return (
        b"".join(os.urandom(random) + bytes(4096 - random) for _ in range(16 * MIB // 4096))
        if share < 1
        else b"\xde\xad" * (8 * MIB)
    )


@pytest.mark.loops
@pytest.mark.parametrize(
    ("share", "ratio"), [(0.0, (0.97, 1.03)), (0.5, (1.8, 2.0)), (1.0, (20.0, 33.0))]
)
def test_btrfs_with_zstd_achieves_what_its_blocks_allow(
    area: Path, share: float, ratio: tuple[float, float]
) -> None:
    """Extents of 128 KiB in blocks of 4 KiB: 64 KiB and a little become 68 (1.88), and the least is
    one block (32)."""
    need_loops("mkfs.btrfs")
    target = make(area, fs="btrfs", loop={"size": "128m"}, mount_options="compress=zstd")
    try:
        target.open(MIB)
        (Path(target.begin(context("run")).path) / "data").write_bytes(data(share))
        achieved = compression(target.observe())
        assert achieved is not None
        assert ratio[0] <= achieved <= ratio[1]
    finally:
        target.close()


@pytest.mark.loops
def test_btrfs_spans_several_devices_with_its_profiles(area: Path) -> None:
    need_loops("mkfs.btrfs")
    target = make(
        area,
        fs="btrfs",
        loop={"size": "128m", "count": 2, "allocate": "sparse"},
        mkfs_options="-d raid1 -m raid1",
    )
    try:
        target.open(MIB)
        assert len(target.devices()) == 2
        place = Path(target.begin(context("run")).path)
        assert "Data, RAID1" in call("btrfs", "filesystem", "df", str(place))
        target.end("run")
        target.begin(context("again"))
    finally:
        target.close()


@pytest.mark.loops
def test_cold_means_that_no_page_of_a_run_is_in_memory(area: Path) -> None:
    target = make(area, fs="ext4", loop={"size": "32m"}, cache="cold")
    try:
        target.open(MIB)
        file = Path(target.begin(context("run")).path) / "data"
        file.write_bytes(os.urandom(8 * MIB))
        with pytest.raises(RunError, match=r"stayed in memory"):
            check_cold(LocalHost(), str(file.parent))
        target.chill()
        check_cold(LocalHost(), str(file.parent))
        assert (
            call("fincore", "--bytes", "--raw", "--noheadings", "--output", "RES", str(file)) == "0"
        )
        file.read_bytes()
        assert (
            int(call("fincore", "--bytes", "--raw", "--noheadings", "--output", "RES", str(file)))
            == 8 * MIB
        )
    finally:
        target.close()


def test_a_host_that_does_not_let_its_cache_go_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "iolab.studies.targets.cache._DROP", "echo 'Read-only file system' >&2; exit 1"
    )
    with pytest.raises(RunError, match="Read-only file system") as caught:
        drop_caches(LocalHost())
    assert "root" in str(caught.value.hint)


@pytest.mark.loops
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mount_options": "no-such-option"}, "'mount' failed"),
        ({"mkfs_options": "--no-such-option"}, "'mkfs.ext4' failed"),
        ({"loop": {"size": "16m", "directory": "/no/such/place"}}, "is not a directory"),
        ({"loop": {"size": "900t"}}, "is free"),
    ],
)
def test_what_cannot_be_made_is_said_and_leaves_nothing(
    area: Path, given: dict[str, Any], words: str
) -> None:
    target = make(area, **{"fs": "ext4", "loop": {"size": "16m"}, **given})
    with pytest.raises(RunError, match=words) as caught:
        target.open(1)
    assert caught.value.hint
    target.close()


def test_a_missing_mkfs_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = LocalHost()
    monkeypatch.setattr(
        host, "which", lambda program: None if program.startswith("mkfs") else f"/bin/{program}"
    )
    monkeypatch.setattr("iolab.studies.targets.filesystem.need_root", lambda host, what: None)
    target = FilesystemTarget(
        FilesystemOptions.model_validate({"fs": "xfs", "loop": {"size": "300m"}}),
        host,
        f"{tmp_path}/scratch",
    )
    with pytest.raises(RunError, match="apt install xfsprogs"):
        target.open(1)
    assert list(tmp_path.iterdir()) == []


def test_without_root_the_way_out_is_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = LocalHost()
    run = host.run
    monkeypatch.setattr(
        host,
        "run",
        lambda command, **more: run(["echo", "1000"] if command[0] == "id" else command, **more),
    )
    target = FilesystemTarget(
        FilesystemOptions.model_validate({"fs": "ext4", "loop": {"size": "16m"}}),
        host,
        f"{tmp_path}/scratch",
    )
    with pytest.raises(RunError, match="needs root; call iolab with sudo"):
        target.open(1)


@pytest.mark.loops
def test_an_unplugged_device_fails_the_next_run_and_is_cleaned_all_the_same(area: Path) -> None:
    target = make(area, fs="ext4", loop={"size": "16m"}, fresh="block")
    try:
        target.open(1)
        target.begin(context("1"))
        target.end("1")
        call("umount", f"{area}/scratch/mnt")
        call("losetup", "--detach", f"/dev/{target.devices()[0]}")
        with pytest.raises(RunError, match="no longer exists"):
            target.begin(context("2"))
    finally:
        target.close()
