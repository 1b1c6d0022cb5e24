# SPDX-License-Identifier: Apache-2.0
"""The workflows of docs/guides/ci.md on a project whose commits change real I/O: how often it
syncs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.depth import depth

pytestmark = [pytest.mark.fio, pytest.mark.exclusive]

COMMITS, CHANGED = 5, 2
"""Commits, numbered from 0; from the third on the program syncs every write, not each 128th."""

STUDY = """
[study]
name = "NAME"
repetitions = 4
baseline = "good"

[target]
kind = "directory"

[workload]
kind = "fio"
runtime = "500ms"

[workload.options]
rw = "randwrite"
bs = "4k"
size = "4m"
ioengine = "psync"

[variants.good]
workload.options.fdatasync = 128

[variants.now]
workload.options.fdatasync = EVERY
"""

MAKEFILE = """
all:
\tmkdir -p studies
\tfor name in bisect pull-request nightly; do \\
\t  sed "s/EVERY/$$(cat every)/; s/NAME/$$name/" study.in >studies/$$name.toml; done
"""


def git(place: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words],
        cwd=place,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def blocks(root: Path) -> list[str]:
    """Shell texts of the guide, for this iolab. A sync costs several times a write, so the bound is
    a fifth of the rate: other load on the machine does not reach it."""
    text = (root / "docs/guides/ci.md").read_text()
    return [
        re.sub(r"\biolab (?=run|check|history)", f"{sys.executable} -m iolab ", block).replace(
            ">= -5 %", ">= -80 %"
        )
        for block in re.findall(r"```sh\n(.*?)```", text, re.S)
    ]


def script(place: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in the project."""
    return subprocess.run(
        ["sh", "-c", text],
        cwd=place,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=400,
    )


@pytest.fixture(scope="module")
def project() -> Iterator[Path]:
    """On a disk: a sync to memory costs nothing."""
    place = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="iolab-project-"))
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", place], capture_output=True, text=True, check=True
    ).stdout.strip()
    if kind == "tmpfs":
        place.rmdir()
        pytest.skip("/var/tmp is in memory, where a sync costs nothing")
    git(place, "init", "-q", "-b", "master", ".")
    (place / ".gitignore").write_text("studies\nresults\nhistory\ncomment.md\ncheck.xml\n")
    (place / "Makefile").write_text(MAKEFILE)
    (place / "study.in").write_text(STUDY)
    for number in range(COMMITS):
        (place / "every").write_text("1" if number >= CHANGED else "128")
        (place / "number").write_text(str(number))
        git(place, "add", "-A")
        git(place, "commit", "-q", "-m", f"commit {number}")
    yield place
    shutil.rmtree(place)


def at(project: Path, number: int) -> None:
    git(project, "checkout", "-q", f"master~{COMMITS - 1 - number}")
    subprocess.run(["make", "-s"], cwd=project, check=True)


@pytest.mark.parametrize(("number", "code", "sign"), [(1, 0, "✅"), (3, 6, "❌")])
def test_a_pull_request_is_checked(
    project: Path, root: Path, number: int, code: int, sign: str
) -> None:
    at(project, number)
    shutil.rmtree(project / "results", ignore_errors=True)
    [gate] = [
        block for block in blocks(root) if block.count("--rule") == 1 and "comment.md" in block
    ]
    done = script(project, gate + "\nexit $code")
    assert done.returncode == code, done.stderr
    comment = (project / "comment.md").read_text()
    assert comment.startswith(f"### {sign} ")
    assert re.search(r"^\| .*now", comment, re.M)
    done = script(
        project,
        f"{sys.executable} -m iolab check results/pr --rule 'write.iops >= -80 %' --format junit",
    )
    assert done.returncode == code
    suite = ElementTree.fromstring(done.stdout)
    # the cell, and the case that states which runs count
    assert (suite.get("tests"), suite.get("failures")) == ("2", str(int(code == 6)))


def test_a_pull_request_ends_once_it_is_decided(project: Path, root: Path) -> None:
    at(project, 3)
    shutil.rmtree(project / "results", ignore_errors=True)
    [gate] = [block for block in blocks(root) if "--until-decided" in block]
    done = script(project, "code=0\n" + gate + "\nexit $code")
    assert done.returncode == 6, done.stderr
    assert "look 1 of 5" in done.stderr
    assert len(list((project / "results/pr/runs").iterdir())) < 40
    assert "sequential: look" in (project / "comment.md").read_text()


@pytest.mark.slow
def test_the_commit_that_syncs_more_is_found(project: Path, root: Path) -> None:
    [text] = [block for block in blocks(root) if "history bisect" in block]
    git(project, "checkout", "-q", "master")
    shutil.rmtree(project / "results", ignore_errors=True)
    done = script(project, text.replace("GOOD BAD", f"master~{COMMITS - 1} master"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(f"^first bad commit: [0-9a-f]{{12}} commit {CHANGED}$", done.stdout, re.M)
    assert git(project, "status", "--short") == ""


@pytest.mark.slow
def test_a_night_is_checked_and_added_to_the_history(project: Path, root: Path) -> None:
    """The script of the guide, night after night; the last measures the slower program."""
    [nightly] = [block for block in blocks(root) if "# nightly" in block]
    for name in ("history", "results"):
        shutil.rmtree(project / name, ignore_errors=True)
    nights = depth(2, 3)
    for night in range(nights):
        at(project, 3 if night == nights - 1 else 1)
        done = script(project, nightly.replace("$(date +%F)", f"night-{night}"))
        assert done.returncode in ((0,) if night == 0 else (0, 6, 7)), done.stdout + done.stderr
        assert (project / "check.xml").exists() == (night > 0)
        if night:
            suite = ElementTree.parse(project / "check.xml").getroot()
            is_failed = any(int(each.get("failures", "0")) for each in suite.iter())
            assert is_failed == (done.returncode == 6)
            (project / "check.xml").unlink()
        assert "significant change" in done.stdout
    listed = script(project, f"{sys.executable} -m iolab history list --format json")
    revisions = [entry["revision"] for entry in json.loads(listed.stdout)["entries"]]
    assert len(revisions) == nights
    assert len(set(revisions)) == 2
