# SPDX-License-Identifier: Apache-2.0
"""The diffs of CONTRIBUTING.md, applied to a copy of the tree: what they add works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DIFF = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDED = re.compile(r"^\+\+\+ (tests/\S+)$", re.MULTILINE)
CONTRACTS = ("formats", "gates", "sources")


@pytest.mark.slow
def test_what_the_diffs_add_works(root: Path, tmp_path: Path) -> None:
    diffs = DIFF.findall((root / "CONTRIBUTING.md").read_text())
    assert len(diffs) == 4
    ignored = shutil.ignore_patterns("__pycache__", "static", "_probe", ".pytest_cache")
    for folder in ("python", "tests", "docs"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(root / "pyproject.toml", tmp_path)
    for diff in diffs:
        done = subprocess.run(
            ["git", "apply", "-p0", "--whitespace=error", "-"],
            input=diff,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    added = [file for diff in diffs for file in ADDED.findall(diff)]
    assert len(added) == 3
    contracts = [f"tests/contract/test_contract_{name}.py" for name in CONTRACTS]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            "descriptors or swapping or mpstat",
            *added,
            *contracts,
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > 30
