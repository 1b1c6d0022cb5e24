# SPDX-License-Identifier: Apache-2.0
"""Where tracefs is not mounted, the probe mounts it for itself alone; instances of dead probes are
removed, those of others never."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from iolab import _core
from support.probe import PROBE, TRACEFS, Probe, instances_of, need_tracing
from support.waiting import PATIENCE, until

pytestmark = [pytest.mark.tracing, pytest.mark.exclusive]


@pytest.fixture(autouse=True)
def tracing() -> None:
    need_tracing()


def without_tracefs(*command: str) -> subprocess.CompletedProcess[bytes]:
    """A command in a mount namespace in which tracefs is mounted nowhere; then what is mounted
    there, after a line of its own."""
    script = (
        "umount -l /sys/kernel/debug/tracing 2>/dev/null; umount -l /sys/kernel/tracing; "
        '[ -e /sys/kernel/tracing/events ] && exit 99; mount > "$0"; "$@"; code=$?; mount | diff "$0" - >&2 && exit $code; exit 98'
    )
    place = f"/tmp/iolab-mounts-{os.getpid()}"
    try:
        found = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, place, *command],
            capture_output=True,
            check=False,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
    finally:
        Path(place).unlink(missing_ok=True)
    if found.returncode == 99:
        pytest.skip("tracefs can't be unmounted in a namespace of its own here")
    return found


def test_tracefs_that_is_not_mounted_is_mounted_for_the_probe_alone() -> None:
    done = without_tracefs(str(PROBE), "--source", "block", "--source", "syscall")
    assert done.returncode == 0, done.stderr
    frames: list[dict[str, Any]] = _core.FrameReader().feed(done.stdout)
    assert frames[0]["kind"] == "hello"
    assert set(frames[0]["sources"]) == {"block", "syscall"}
    assert instances_of(frames[0]["pid"]) == []


def test_the_check_says_that_it_can_be_recorded() -> None:
    done = without_tracefs(str(PROBE), "--check")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sources"]["block"]["available"]


def killed_probe() -> tuple[int, list[str]]:
    """Number and instances of a probe that was killed."""
    probe = Probe.start("--source", "block")
    os.kill(probe.process.pid, signal.SIGKILL)
    probe.ended()
    return probe.process.pid, instances_of(probe.process.pid)


def clean() -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(
        subprocess.run([PROBE, "--clean"], capture_output=True, check=True).stdout
    )
    return found


def test_instances_of_dead_probes_are_removed_and_those_of_living_ones_are_not() -> None:
    living = Probe.start("--source", "block")
    try:
        pid, left = killed_probe()
        assert len(left) == 1
        told = json.loads(
            subprocess.run([PROBE, "--check"], capture_output=True, check=True).stdout
        )["instances"]
        assert left[0] in told["dead"]
        assert set(instances_of(living.process.pid)) <= set(told["alive"])
        cleaned = clean()
        assert left[0] in cleaned["removed"]
        assert instances_of(pid) == []
        assert len(instances_of(living.process.pid)) == 1
    finally:
        assert living.stop() == 0


def test_a_probe_that_records_counters_alone_removes_them_as_well() -> None:
    pid, left = killed_probe()
    assert left
    probe = Probe.start("--source", "counters")
    assert probe.stop() == 0
    assert instances_of(pid) == []


def test_an_instance_whose_rings_are_open_stays_though_its_owner_is_not_known() -> None:
    """As that of a probe in a container, whose number means nothing outside."""
    place = TRACEFS / "instances/iolab-4194304-7-block"
    place.mkdir()
    try:
        with (place / "trace_pipe").open("rb"):
            (place / "events/block/enable").write_text("1")
            assert place.name in clean()["kept"]
            assert (place / "events/block/enable").read_text().strip() == "1"
        until(lambda: place.name in clean()["removed"] or not place.exists(), "the instance's end")
    finally:
        if place.exists():
            place.rmdir()
