# SPDX-License-Identifier: Apache-2.0
"""The files at the root of the repository: a stray one is named."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

FILES = {
    ".git-blame-ignore-revs",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.toml",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "crates.lock",
    "mkdocs.yml",
    "pyproject.toml",
    "rustfmt.toml",
}


def test_the_root_has_no_stray_file(root: Path) -> None:
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("not a git repository")
    files = {name for name in done.stdout.split("\0") if name and "/" not in name}
    assert not files - FILES, "move them to where they belong, or list them here with a reason"
