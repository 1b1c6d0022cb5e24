# SPDX-License-Identifier: Apache-2.0
"""Revisions of work trees are told without running what their repositories name."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from iolab.base.errors import RunError
from iolab.hosts.kinds.local import LocalHost
from iolab.studies.run.builds.revisions import revision

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is absent")
HOST = LocalHost()


def git(tree: Path, *words: str) -> str:
    return subprocess.run(
        [
            "git",
            "-C",
            str(tree),
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.org",
            "-c",
            "protocol.file.allow=always",
            *words,
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    place = tmp_path / "work tree"
    place.mkdir()
    git(place, "init")
    (place / "sub").mkdir()
    (place / "file").write_text("1\n")
    (place / "sub" / "other").write_text("2\n")
    git(place, "add", ".")
    git(place, "commit", "-m", "one")
    return place


def test_it_tells_the_commit_and_whether_it_was_changed(tree: Path) -> None:
    clean = revision(HOST, "x", str(tree))
    assert clean == git(tree, "rev-parse", "HEAD")
    assert revision(HOST, "x", str(tree / "sub")) == clean
    (tree / "file").touch()
    (tree / "untracked").write_text("x")
    assert revision(HOST, "x", str(tree)) == clean
    (tree / "sub" / "other").write_text("3\n")
    assert revision(HOST, "x", str(tree)) == f"{clean}-dirty"
    (tree / "sub" / "other").write_text("2\n")
    assert revision(HOST, "x", str(tree)) == clean
    git(tree, "rm", "file")
    assert revision(HOST, "x", str(tree)) == f"{clean}-dirty"


def test_linked_work_trees_split_indexes_and_other_hashes(tree: Path, tmp_path: Path) -> None:
    git(tree, "worktree", "add", str(tmp_path / "linked"))
    (tmp_path / "linked" / "file").write_text("9\n")
    clean = git(tree, "rev-parse", "HEAD")
    assert revision(HOST, "x", str(tmp_path / "linked")) == f"{clean}-dirty"
    git(tree, "update-index", "--split-index")
    assert revision(HOST, "x", str(tree)) == clean
    new = tmp_path / "sha256"
    new.mkdir()
    git(new, "init", "--object-format=sha256")
    (new / "file").write_text("1")
    git(new, "add", "file")
    git(new, "commit", "-m", "one")
    assert revision(HOST, "x", str(new)) == git(new, "rev-parse", "HEAD")


def test_modes_count_as_the_repository_says(tree: Path) -> None:
    clean = git(tree, "rev-parse", "HEAD")
    (tree / "file").chmod(0o755)
    assert revision(HOST, "x", str(tree)) == f"{clean}-dirty"
    git(tree, "config", "core.fileMode", "false")
    assert revision(HOST, "x", str(tree)) == clean


def test_the_callers_own_repository_plays_no_part(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    head = (
        (
            tree
            / ".git"
            / "refs"
            / "heads"
            / (tree / ".git" / "HEAD").read_text().strip().rpartition("/")[2]
        )
        .read_text()
        .strip()
    )
    assert revision(HOST, "x", str(tree)) == head


def test_what_is_no_work_tree_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match=r"revision of 'x' cannot be determined: \w"):
        revision(HOST, "x", str(tmp_path / "empty"))
    with pytest.raises(RunError, match="revision of 'x' cannot be determined"):
        revision(HOST, "x", str(tmp_path / "missing"))
    git(tmp_path / "empty", "init")
    with pytest.raises(RunError, match="revision of 'x' cannot be determined"):
        revision(HOST, "x", str(tmp_path / "empty"))


@pytest.fixture
def hostile(tree: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A work tree whose repository names a program wherever git takes one, and the file that any of
    these programs would leave."""
    marker = tmp_path / "marker"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{marker}'\ncat\n")
    program.chmod(0o755)
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init")
    (inner / "file").write_text("1\n")
    git(inner, "add", ".")
    git(inner, "commit", "-m", "one")
    git(tree, "submodule", "add", str(inner), "module")
    (tree / ".gitattributes").write_text("* filter=bad diff=bad merge=bad\n")
    git(tree, "add", ".gitattributes")
    git(tree, "commit", "-m", "two")
    for place in (tree / ".git", tree / ".git" / "modules" / "module"):
        hooks = place / "hooks"
        hooks.mkdir(exist_ok=True)
        for name in (
            "post-index-change",
            "reference-transaction",
            "post-checkout",
            "pre-commit",
            "fsmonitor-watchman",
        ):
            shutil.copy(program, hooks / name)
        for key in (
            "core.fsmonitor",
            "core.pager",
            "pager.diff-index",
            "core.editor",
            "core.sshCommand",
            "core.gitProxy",
            "core.askPass",
            "core.alternateRefsCommand",
            "filter.bad.clean",
            "filter.bad.smudge",
            "filter.bad.process",
            "diff.external",
            "diff.bad.command",
            "diff.bad.textconv",
            "merge.bad.driver",
            "credential.helper",
            "gpg.program",
            "uploadpack.packObjectsHook",
            "remote.origin.uploadpack",
        ):
            git(tree, "config", "-f", str(place / "config"), key, str(program))
        git(tree, "config", "-f", str(place / "config"), "alias.rev-parse", f"!{program}")
        git(tree, "config", "-f", str(place / "config"), "core.hooksPath", str(hooks))
        (place / "info" / "attributes").write_text("* filter=bad\n")
    return tree, marker


@pytest.mark.slow
def test_no_program_of_a_hostile_repository_runs(hostile: tuple[Path, Path]) -> None:
    tree, marker = hostile
    head = (tree / ".git" / "logs" / "HEAD").read_text().splitlines()[-1].split()[1]
    assert not marker.exists()
    before = (tree / ".git" / "index").read_bytes()
    assert revision(HOST, "x", str(tree)) == head
    for name in ("file", "sub/other", "module/file"):
        (tree / name).touch()
    assert revision(HOST, "x", str(tree)) == head
    (tree / "file").write_text("changed\n")
    (tree / "module" / "file").write_text("changed\n")
    assert revision(HOST, "x", str(tree)) == f"{head}-dirty"
    assert not marker.exists()
    assert (tree / ".git" / "index").read_bytes() == before
    subprocess.run(
        ["git", "-C", str(tree), "status"], capture_output=True, check=False
    )  # the programs do run where git is asked plainly
    assert marker.exists()


def test_objects_that_a_partial_clone_lacks_are_not_fetched(hostile: tuple[Path, Path]) -> None:
    tree, marker = hostile
    config = tree / ".git" / "config"
    for key, value in {
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "core.repositoryformatversion": "1",
        "remote.origin.url": f"ext::{marker.parent}/program",
        "protocol.ext.allow": "always",
    }.items():
        git(tree, "config", "-f", str(config), key, value)
    commit = (tree / ".git" / "logs" / "HEAD").read_text().splitlines()[-1].split()[1]
    (tree / ".git" / "objects" / commit[:2] / commit[2:]).unlink()
    with pytest.raises(RunError, match="revision of 'x' cannot be determined"):
        revision(HOST, "x", str(tree))
    assert not marker.exists()


def test_another_users_work_tree_is_told(tree: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root")
    head = git(tree, "rev-parse", "HEAD")
    for place in (tree, *tree.rglob("*")):
        os.chown(place, 65534, 65534, follow_symlinks=False)
    assert revision(HOST, "x", str(tree)) == head
