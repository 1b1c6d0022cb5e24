# SPDX-License-Identifier: Apache-2.0
"""`make` builds again whatever was made of a source that changed, wherever the source lies."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def prerequisites(root: Path, target: str) -> set[str]:
    """What a target is made of, as make has it."""
    done = subprocess.run(
        ["make", "--print-data-base", "--dry-run", "--no-builtin-rules", "help"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    [rule] = [line for line in done.stdout.splitlines() if line.startswith(f"{target}: ")]
    return set(rule.split()[1:])


@pytest.mark.parametrize(
    ("target", "places"),
    [
        (
            "python/iolab/output/report/static/report.js",
            ["web/src/**/*", "web/*.json", "web/*.ts", "web/.npmrc"],
        ),
        (
            "python/iolab/_probe/iolab-probe",
            ["crates/*/src/**/*", "crates/*/Cargo.toml", "Cargo.toml"],
        ),
        (
            ".stamps/core",
            ["crates/*/src/**/*", "crates/*/Cargo.toml", "Cargo.toml", "pyproject.toml"],
        ),
    ],
)
def test_every_source_is_one(target: str, places: list[str], root: Path) -> None:
    sources = {
        str(path.relative_to(root))
        for place in places
        for path in root.glob(place)
        if path.is_file()
    }
    assert len(sources) > 20
    assert sources <= prerequisites(root, target), "what is missing is not built again"
