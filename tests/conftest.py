"""What all tests share: where data of others lies, and results made from published tables."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def zol_archive() -> Path:
    """The published ZFS on Linux #6566 study, never committed; the test is left out where it is absent."""
    path = Path(os.environ.get("IOLAB_DATA", ROOT.parent / "shared" / "data")) / "zfsonlinux-6566-perf-v2.tar.xz"
    if not path.exists():
        pytest.skip(f"{path.name} is absent (set IOLAB_DATA to its directory)")
    return path


@pytest.fixture(scope="session")
def fio() -> str:
    """Path of fio; the test is left out where it is absent."""
    found = shutil.which("fio")
    if found is None:
        pytest.skip("fio is absent")
    return found
