"""What a killed study left is removed by its record, and only that."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import iolab
from iolab.hosts.local import LocalHost
from iolab.targets.made import Made, clean_leftovers
from support.disks import attached, call, loop_device, mounted, need_loops
from support.waiting import until

HOST = LocalHost()


def test_a_torn_last_line_stands_for_nothing(tmp_path: Path) -> None:
    made = Made(f"{tmp_path}/scratch")
    made.note("directory", path=f"{tmp_path}/scratch")
    (tmp_path / "scratch").mkdir()
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
    Made(f"{old}/scratch").note("directory", path=f"{old}/scratch")
    (old / "scratch").mkdir()
    old.rename(new)
    assert clean_leftovers(HOST, new) == []
    assert list(new.iterdir()) == []


@pytest.mark.real
def test_a_mount_of_others_at_our_point_is_left_alone(tmp_path: Path) -> None:
    need_loops()
    point = tmp_path / "scratch" / "mnt"
    point.mkdir(parents=True)
    made = Made(f"{tmp_path}/scratch")
    made.note("directory", path=f"{tmp_path}/scratch")
    made.note("mount", path=str(point), sources=["/dev/loop-of-long-ago"])
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


_WORKER = """
import sys
from iolab.hosts.local import LocalHost
from iolab.targets.base import RunContext
from iolab.targets.filesystem import FilesystemTarget
from iolab.targets.filesystem_options import FilesystemOptions
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
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(entry.name)
    return found


@pytest.mark.real
@pytest.mark.parametrize("seconds", [0.03, 0.17, 0.31, 0.44])
def test_after_a_kill_at_any_moment_nothing_is_left(tmp_path: Path, seconds: float) -> None:
    need_loops()
    results, other = tmp_path / "results", tmp_path / "other"
    results.mkdir()
    other.mkdir()
    python_path = str(Path(iolab.__file__).parent.parent)
    mark = f"IOLAB_TEST={tmp_path}"
    worker = subprocess.Popen([sys.executable, "-c", _WORKER, f"{results}/scratch", str(other)], stdout=subprocess.PIPE,
                              env={"PYTHONPATH": python_path, "PATH": "/usr/bin:/usr/sbin:/bin:/sbin", "IOLAB_TEST": str(tmp_path)})
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
