# SPDX-License-Identifier: Apache-2.0
"""What a killed study left is removed by its record, and only that."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import iolab
from iolab.hosts.kinds.local import LocalHost
from iolab.studies.targets.made import Made, clean_leftovers, elsewhere
from support.disks import attached, call, loop_device, mounted, need_loops
from support.waiting import until

HOST = LocalHost()


def test_a_torn_last_line_stands_for_nothing(tmp_path: Path) -> None:
    made = Made(f"{tmp_path}/scratch")
    made.make_directory(HOST, f"{tmp_path}/scratch")
    (tmp_path / "precious").mkdir()
    with Path(f"{tmp_path}/scratch.made").open("a") as file:
        file.write(json.dumps({"made": "directory", "path": f"{tmp_path}/precious"}))  # no line end
    assert made.undo(HOST) == []
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_of_the_record_raises(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "scratch.made").write_bytes(damage.replace(b"/", b""))
    assert clean_leftovers(HOST, tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_results_may_be_moved_before_they_are_cleaned(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    Made(f"{old}/scratch").make_directory(HOST, f"{old}/scratch")
    (old / "scratch" / "file").write_text("x")
    old.rename(new)
    assert clean_leftovers(HOST, new) == []
    assert list(new.iterdir()) == []


@pytest.mark.loops
def test_a_mount_of_others_at_our_point_is_left_alone(tmp_path: Path) -> None:
    need_loops()
    point = tmp_path / "scratch" / "mnt"
    made = Made(f"{tmp_path}/scratch")
    made.make_directory(HOST, f"{tmp_path}/scratch")
    point.mkdir()
    made.note_mount(str(point), ["/dev/loop-of-long-ago"])
    with loop_device(tmp_path) as node:
        call("mkfs.ext4", "-q", node)
        call("mount", node, str(point))
        try:
            (point / "theirs").write_text("x")
            left = clean_leftovers(HOST, tmp_path)
            assert len(left) == 1
            assert "which iolab did not make" in left[0]
            assert (point / "theirs").exists()
            assert Path(f"{tmp_path}/scratch.made").exists()
        finally:
            call("umount", str(point))
        assert attached(tmp_path)
        assert clean_leftovers(HOST, tmp_path) == []
        assert attached(tmp_path)  # the loop device is not ours either


def record(path: Path, *lines: dict[str, object]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def tree(path: Path) -> Path:
    (path / "below").mkdir(parents=True)
    (path / "below" / "file").write_text("x")
    return path


TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize("name", ["home", "iolab-0123456789ab"])
def test_a_record_alone_removes_no_tree(tmp_path: Path, name: str) -> None:
    theirs, results = tree(tmp_path / name), tmp_path / "results"
    (results / "scratch").mkdir(parents=True)
    for line in (
        {"path": str(theirs)},
        {"path": str(theirs), "token": TOKEN},
        {"path": str(theirs), "token": "../below"},
        {"path": f"../../{name}"},
        {"path": f"../../{name}/below", "token": TOKEN},
    ):
        record(results / "scratch.made", {"made": "directory", **line})
        left = clean_leftovers(HOST, results)
        assert len(left) == 1
        assert "is left alone" in left[0]
        assert (theirs / "below" / "file").exists()


def test_a_link_in_the_results_leads_nowhere(tmp_path: Path) -> None:
    theirs, results = tree(tmp_path / "home"), tmp_path / "results"
    results.mkdir()
    (theirs / f".iolab-{TOKEN}").mkdir()  # as though its owner had copied the mark
    (results / "scratch").symlink_to(theirs)
    record(
        results / "scratch.made",
        {"made": "directory", "path": ".", "token": TOKEN},
        {"made": "directory", "path": "below", "token": TOKEN},
        {"made": "directory", "path": "empty", "token": TOKEN},
    )
    (theirs / "empty").mkdir()
    left = clean_leftovers(HOST, results)
    assert len(left) == 3
    assert all("a symbolic link leads there" in word for word in left)
    assert (theirs / "below" / "file").exists()
    assert (theirs / "empty").exists()


def test_links_inside_of_what_was_made_are_removed_and_not_what_they_lead_to(
    tmp_path: Path,
) -> None:
    theirs, results = tree(tmp_path / "home"), tmp_path / "results"
    results.mkdir()
    Made(f"{results}/scratch").make_directory(HOST, f"{results}/scratch")
    (results / "scratch" / "link").symlink_to(theirs)
    assert clean_leftovers(HOST, results) == []
    assert list(results.iterdir()) == []
    assert (theirs / "below" / "file").exists()


def test_what_was_made_elsewhere_is_removed_by_its_mark(tmp_path: Path) -> None:
    parent, results = tmp_path / "parent", tmp_path / "results"
    parent.mkdir()
    results.mkdir()
    path = Path(elsewhere(str(parent)))
    Made(f"{results}/scratch").make_directory(HOST, str(path))
    (path / "file").write_text("x")
    other = tree(parent / "iolab-0123456789ab")
    assert clean_leftovers(HOST, results) == []
    assert list(parent.iterdir()) == [other]


def test_a_kill_before_the_mark_leaves_nothing_either(tmp_path: Path) -> None:
    record(tmp_path / "scratch.made", {"made": "directory", "path": ".", "token": TOKEN})
    (tmp_path / "scratch").mkdir()
    assert clean_leftovers(HOST, tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_records_that_are_no_files_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.made")
    (tmp_path / "b.made").symlink_to("/dev/zero")
    (tmp_path / "c.made").mkdir()
    assert len(clean_leftovers(HOST, tmp_path)) == 3
    with pytest.raises(OSError, match=r"."):
        Made(f"{tmp_path}/a").note_mount("/x", [])


@pytest.mark.loops
def test_a_record_alone_unmounts_detaches_and_wipes_nothing(tmp_path: Path) -> None:
    need_loops()
    results, point = tmp_path / "results", tmp_path / "point"
    results.mkdir()
    point.mkdir()
    with loop_device(tmp_path) as node:
        call("mkfs.ext4", "-q", node)
        uuid = subprocess.run(
            ["blkid", "-o", "value", "-s", "UUID", node], capture_output=True, text=True, check=True
        ).stdout.strip()
        image = next(tmp_path.glob("*.img"))
        call("mount", node, str(point))
        try:
            # a directory in the results that bears the mark, with a link to an image of theirs in
            # it
            (results / "scratch" / f".iolab-{TOKEN}").mkdir(parents=True)
            (results / "scratch" / "disk-0.img").symlink_to(image)
            record(
                results / "scratch.made",
                {"made": "directory", "path": ".", "token": TOKEN},
                {"made": "mount", "path": str(point), "sources": [node], "token": TOKEN},
                {"made": "filesystem", "device": node, "uuid": uuid},
                {"made": "filesystem", "devices": [node], "uuid": uuid, "token": TOKEN},
            )
            clean_leftovers(HOST, results)
            assert mounted(tmp_path)
            assert attached(tmp_path)
            assert (
                uuid
                in subprocess.run(
                    ["wipefs", "--no-act", node], capture_output=True, text=True, check=True
                ).stdout
            )
        finally:
            call("umount", str(point))


@pytest.mark.loops
def test_a_tree_that_something_is_mounted_in_is_left_alone(tmp_path: Path) -> None:
    need_loops()
    theirs = tree(tmp_path / "home")
    Made(f"{tmp_path}/scratch").make_directory(HOST, f"{tmp_path}/scratch")
    (tmp_path / "scratch" / "point").mkdir()
    call("mount", "--bind", str(theirs), str(tmp_path / "scratch" / "point"))
    try:
        left = clean_leftovers(HOST, tmp_path)
        assert len(left) == 1
        assert "is mounted in it" in left[0]
        assert (theirs / "below" / "file").exists()
    finally:
        call("umount", str(tmp_path / "scratch" / "point"))
    assert clean_leftovers(HOST, tmp_path) == []


_WORKER = """
import sys
from iolab.hosts.kinds.local import LocalHost
from iolab.studies.targets.base import RunContext
from iolab.studies.targets.filesystem import FilesystemOptions, FilesystemTarget
options = FilesystemOptions.model_validate({"fs": "ext4", "loop": {"size": "16m", "directory": sys.argv[2]}})
target = FilesystemTarget(options, LocalHost(), sys.argv[1])
target.open(1)
print("open", flush=True)
for number in range(1000):
    target.begin(RunContext(f"{number:04d}", "cell", number, 1))
    target.end(f"{number:04d}")
"""


def carrying(mark: str) -> list[str]:
    """Live processes with a word in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes().split(
                b"\0"
            ):
                found.append(entry.name)
    return found


@pytest.mark.loops
@pytest.mark.parametrize("seconds", [0.03, 0.17, 0.31, 0.44])
def test_after_a_kill_at_any_moment_nothing_is_left(tmp_path: Path, seconds: float) -> None:
    need_loops()
    results, other = tmp_path / "results", tmp_path / "other"
    results.mkdir()
    other.mkdir()
    python_path = str(Path(iolab.__file__).parent.parent)
    mark = f"IOLAB_TEST={tmp_path}"
    worker = subprocess.Popen(
        [sys.executable, "-c", _WORKER, f"{results}/scratch", str(other)],
        stdout=subprocess.PIPE,
        env={
            "PYTHONPATH": python_path,
            "PATH": "/usr/bin:/usr/sbin:/bin:/sbin",
            "IOLAB_TEST": str(tmp_path),
        },
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"open\n"
    time.sleep(seconds)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    worker.stdout.close()
    until(lambda: not carrying(mark), "a command that was under way")
    assert attached(tmp_path)
    assert clean_leftovers(HOST, results) == []
    until(lambda: attached(tmp_path) == [], "loop devices to be detached")
    assert mounted(tmp_path) == []
    assert list(results.iterdir()) == []
    assert list(other.iterdir()) == []
