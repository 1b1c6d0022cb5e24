# SPDX-License-Identifier: Apache-2.0
"""The step of `git bisect run` as docs/guides/ci.md has it, on a repository with a known change."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

COMMITS, CHANGED = 8, 5
"""Commits, numbered from 0; from the sixth on the program is 20 % slower."""

MEASURE = """
import sys
from pathlib import Path
import numpy as np
from iolab.cli.main import run
from support.fio_files import job, output

rate = float(Path("rate").read_text())
random = np.random.default_rng(int(Path("number").read_text()))
for block in range(8):
    for place, (variant, level) in enumerate((("good", 1000.0), ("now", rate))):
        folder = Path("tree") / variant / f"rep{block + 1}"
        folder.mkdir(parents=True, exist_ok=True)
        value = level * float(np.exp(random.normal(0, 0.01)))
        (folder / "fio.json").write_text(output(job(iops=value), minute=2 * block + place))
sys.exit(run(["import", "tree", "--layout", "{variant}/rep{repetition:int}", "-o", "results/step"]))
"""


def git(place: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words],
        cwd=place,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def documented_step(root: Path) -> str:
    """The step of the guide, which measures a made-up program."""
    text = (root / "docs/guides/ci.md").read_text()
    match = re.search(r"```sh\n(#!/bin/sh\n# step:.*?)```", text, re.S)
    assert match
    python = sys.executable
    step = match[1].replace("make ||", "test ! -e broken ||")
    step = step.replace("rm -rf results/step", "rm -rf results/step tree")
    step = step.replace("iolab run studies/bisect.toml -o results/step", f"{python} measure.py")
    return step.replace("iolab check", f"{python} -m iolab check")


@pytest.fixture
def repository(tmp_path: Path, root: Path) -> Path:
    git(tmp_path, "init", "-q", ".")
    (tmp_path / ".gitignore").write_text("step\nmeasure.py\ntree\nresults\n")
    (tmp_path / "measure.py").write_text(MEASURE)
    step = tmp_path / "step"
    step.write_text(documented_step(root))
    step.chmod(0o755)
    for number in range(COMMITS):
        (tmp_path / "number").write_text(str(number))
        (tmp_path / "rate").write_text("800" if number >= CHANGED else "1000")
        (tmp_path / "broken").unlink(missing_ok=True)
        if number == 3:
            (tmp_path / "broken").touch()
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-q", "-m", f"commit {number}")
    return tmp_path


@pytest.mark.slow
def test_the_commit_of_a_change_is_found(repository: Path, root: Path) -> None:
    """A commit that cannot be built is on the way, and is skipped."""
    git(repository, "bisect", "start", "HEAD", f"HEAD~{COMMITS - 1}")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        ["git", "bisect", "run", "./step"],
        cwd=repository,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first = git(repository, "rev-parse", "refs/bisect/bad").strip()
    assert git(repository, "log", "-1", "--format=%s", first).strip() == f"commit {CHANGED}"


def test_an_error_ends_the_bisection(repository: Path) -> None:
    (repository / "measure.py").write_text("import sys; sys.exit(3)")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(["./step"], cwd=repository, env=environment, capture_output=True)
    assert done.returncode == 128
