# SPDX-License-Identifier: Apache-2.0
"""`iolab history bisect` on a repository with a known change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMITS, CHANGED = 8, 5
"""Commits, numbered from 0; from the sixth on the program is 20 % slower."""

MEASURE = """
import os, shutil, sys
from pathlib import Path
import numpy as np
from iolab.cli.main import run
from support.fio_files import job, output

rate = float(Path("rate").read_text())
shutil.rmtree("tree", ignore_errors=True)
random = np.random.default_rng(int(Path("number").read_text()))
for block in range(8):
    for place, (variant, level) in enumerate((("good", 1000.0), ("now", rate))):
        folder = Path("tree") / variant / f"rep{block + 1}"
        folder.mkdir(parents=True, exist_ok=True)
        value = level * float(np.exp(random.normal(0, 0.01)))
        (folder / "fio.json").write_text(output(job(iops=value), minute=2 * block + place))
sys.exit(run(["import", "tree", "--layout", "{variant}/rep{repetition:int}", "-o", os.environ["IOLAB_RESULTS"]]))
"""


def git(place: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words],
        cwd=place,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", ".")
    (tmp_path / ".gitignore").write_text("measure.py\ntree\nresults\n")
    (tmp_path / "measure.py").write_text(MEASURE)
    for number in range(COMMITS):
        (tmp_path / "number").write_text(str(number))
        (tmp_path / "rate").write_text("800" if number >= CHANGED else "1000")
        (tmp_path / "broken").unlink(missing_ok=True)
        if number == 3:
            (tmp_path / "broken").touch()
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-q", "-m", f"commit {number}")
    return tmp_path


def bisect(repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command, from the first commit to the last."""
    first = git(repository, "rev-list", "--max-parents=0", "HEAD").strip()
    rule = "write.iops >= -5 %"
    return subprocess.run(
        [sys.executable, "-m", "iolab", "history", "bisect", first, "--rule", rule, *words],
        cwd=repository,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


def tree_state(repository: Path) -> tuple[str, str]:
    return git(repository, "status", "--short", "--branch"), git(repository, "branch", "--all")


MEASURED = ("--measure", f"{sys.executable} measure.py")


@pytest.mark.slow
def test_the_commit_of_a_change_is_found(repository: Path) -> None:
    """A commit that cannot be built is on the way, and is skipped."""
    before = tree_state(repository)
    done = bisect(repository, *MEASURED, "--build", "test ! -e broken", "--format", "json")
    assert done.returncode == 0, done.stderr
    bisection = json.loads(done.stdout)
    assert [commit["subject"] for commit in bisection["candidates"]] == [f"commit {CHANGED}"]
    assert bisection["first_bad"] == bisection["candidates"][0]["revision"]
    verdicts = {step["subject"]: step["verdict"] for step in bisection["steps"]}
    assert verdicts["commit 3"] == "skip"
    assert verdicts[f"commit {CHANGED}"] == "bad"
    assert tree_state(repository) == before
    # measured results are used again
    (repository / "measure.py").write_text("import sys; sys.exit(1)")
    again = bisect(repository, *MEASURED, "--build", "test ! -e broken")
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith(
        f"first bad commit: {bisection['first_bad'][:12]} commit {CHANGED}"
    )


def test_commits_that_are_all_skipped_leave_candidates(repository: Path) -> None:
    before = tree_state(repository)
    done = bisect(repository, *MEASURED, "--build", "false", "--format", "json")
    assert done.returncode == 7
    bisection = json.loads(done.stdout)
    assert bisection["first_bad"] is None
    subjects = {commit["subject"] for commit in bisection["candidates"]}
    assert subjects == {f"commit {number}" for number in range(1, COMMITS)}
    assert tree_state(repository) == before


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "--study"),
        (("--study", "missing.toml"), 4, "missing.toml"),
        (("--measure", "no-such-program"), 2, "no-such-program"),
        (("--measure", "true"), 2, "wrote no results"),
    ],
)
def test_an_error_ends_the_bisection(
    repository: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    before = tree_state(repository)
    done = bisect(repository, *words)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert tree_state(repository) == before


def test_a_tree_with_changes_is_refused(repository: Path) -> None:
    (repository / "rate").write_text("900")
    done = bisect(repository, *MEASURED)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert (repository / "rate").read_text() == "900"


@pytest.mark.parametrize("revision", ["no-such-name", "--all", "HEAD"])
def test_a_bad_name_of_a_commit_is_refused(repository: Path, revision: str) -> None:
    words = [*MEASURED, "--rule", "write.iops >= -5 %"]
    command = [sys.executable, "-m", "iolab", "history", "bisect", *words, "--", revision, "HEAD"]
    done = subprocess.run(
        command,
        cwd=repository,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert git(repository, "status", "--short") == ""
