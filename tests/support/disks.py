# SPDX-License-Identifier: Apache-2.0
"""Loop devices for tests that need real block devices, and whether this machine can have them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest


def call(*command: str) -> str:
    """What a command says; CalledProcessError where it fails."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@cache
def why_no_loops() -> str | None:
    """Why this machine can't attach and mount loop devices, or None where it can; tried for real,
    once."""
    if os.geteuid() != 0:
        return "loop devices need root"
    missing = [
        tool
        for tool in ("losetup", "mount", "umount", "mkfs.ext4", "wipefs", "fincore")
        if shutil.which(tool) is None
    ]
    if missing:
        return f"{', '.join(missing)} are missing"
    with tempfile.TemporaryDirectory() as directory:
        image, point = Path(directory, "image"), Path(directory, "point")
        point.mkdir()
        image.write_bytes(bytes(4 << 20))
        try:
            node = call("losetup", "--find", "--show", str(image))
        except subprocess.CalledProcessError as error:
            return f"losetup fails: {error.stderr.strip()}"
        try:
            call("mkfs.ext4", "-q", node)
            call("mount", node, str(point))
            call("umount", str(point))
        except subprocess.CalledProcessError as error:
            return f"loop devices can't be mounted: {error.stderr.strip()}"
        finally:
            call("losetup", "--detach", node)
    return None


def need_loops(*programs: str) -> None:
    """Leave the test out, with the reason, where loop devices or programs are not to be had."""
    reason = why_no_loops()
    missing = [program for program in programs if shutil.which(program) is None]
    if reason or missing:
        pytest.skip(reason or f"{', '.join(missing)} are missing")


@contextlib.contextmanager
def loop_device(directory: Path, size: int = 32 << 20) -> Iterator[str]:
    """The node of a loop device over a fresh file, gone afterwards."""
    image = directory / f"user-{os.urandom(4).hex()}.img"
    with image.open("wb") as file:
        file.truncate(size)
    node = call("losetup", "--find", "--show", str(image))
    try:
        yield node
    finally:
        subprocess.run(["losetup", "--detach", node], check=False, capture_output=True)
        image.unlink()


def attached(directory: Path) -> list[str]:
    """Loop devices over files below a directory, with their files."""
    lines = call(
        "losetup", "--list", "--noheadings", "--raw", "--output", "NAME,BACK-FILE"
    ).splitlines()
    return [line for line in lines if f" {directory}" in line]


def mounted(directory: Path) -> list[str]:
    """Mount points below a directory."""
    points = [line.split(" ")[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if point.startswith(f"{directory}/")]
