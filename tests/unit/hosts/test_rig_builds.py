# SPDX-License-Identifier: Apache-2.0
"""Builds of the user's own in a rig, with a compiler that only copies: sources, patches, what is
compiled again, and every failure."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import IolabError, RunError, UsageError
from iolab.base.files import write_atomically
from iolab.cli.main import run
from iolab.hosts.kinds.rig import cache_home
from iolab.hosts.rigs.build import Builder, first_error, own_builds
from iolab.hosts.rigs.builds import BuildMaker, BuildRecord, delete_build, records
from iolab.hosts.rigs.recipe import find_rig
from iolab.hosts.rigs.source_tree import parse_request, update_tree

RECIPE = """
name = "small"
suite = "bookworm"
[builds]
directory = "/opt/openzfs"
fetch = ["fetch.sh"]
run = ["build.sh"]
"""
PATCH = """--- a/module/zil.c
+++ b/module/zil.c
@@ -1,2 +1,2 @@
-one
+patched
 two
"""
USERLAND = PATCH.replace("module/zil.c", "cmd/zpool.c")


class Maker:
    """A rig with the build 2.3, and what was done in it. `fail`: what the compiler says before it
    fails."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory, self.fail, self.fetched = directory, "", 0
        self.compiled: list[str] = []
        (directory / "rig").mkdir()
        for name, text in (("rig.toml", RECIPE), ("fetch.sh", ""), ("build.sh", "")):
            (directory / "rig" / name).write_text(text)
        self.rig = find_rig(str(directory / "rig"))
        self.home = cache_home() / "small"
        known = self.home / "tree/opt/openzfs/2.3"
        known.mkdir(parents=True)
        (known / "version").write_text("2.3.2-2\n")
        maker = self

        def inside(
            self: Builder,
            command: Sequence[str],
            what: str,
            mounts: Mapping[Path, str] | None = None,
            log: Path | None = None,
        ) -> None:
            place = next(outer for outer, inner in (mounts or {}).items() if inner == "/build")
            if command[1] == "/rig/fetch.sh":
                maker.fetched += 1
                source(place / "fetched")
                return
            assert log is not None
            if maker.fail:
                (place / "said").write_text(maker.fail)
                self._run(["sh", "-c", 'cat "$0" >&2; exit 1', str(place / "said")], what, log)
            maker.compile(place, list(command[2:]))

        monkeypatch.setattr(Builder, "inside", inside)
        monkeypatch.setattr(Builder, "open_packages", lambda self: None)
        monkeypatch.setattr(Builder, "close_packages", lambda self: None)

    def compile(self, place: Path, words: list[str]) -> None:
        """Copy each source that is newer than its object."""
        (place / "new").mkdir()
        (place / "new/version").write_text("2.3.2\n")
        for path in sorted(place.glob("source/**/*.c")):
            made = path.with_suffix(".o")
            if not made.exists() or made.stat().st_mtime_ns < path.stat().st_mtime_ns:
                made.write_text(path.read_text())
                self.compiled.append(f"{words[0]} {path.name}")
        text = (place / "source/module/zil.o").read_text().split()[0]
        (place / "facts").write_text(
            f"kernel 6.1\ncompiler gcc 12\nmodule zfs {text.upper()} id-{text}\nprogram zpool id\n"
        )

    def make(self, text: str) -> BuildRecord:
        self.compiled.clear()
        return BuildMaker(self.rig, Builder(self.rig, lambda said: None), lambda said: None).make(
            parse_request(text)
        )


def source(place: Path) -> Path:
    for name, text in (
        ("module/zil.c", "one\ntwo\n"),
        ("module/arc.c", "arc\n"),
        ("configure", "#!/bin/sh\n"),
    ):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


@pytest.fixture
def maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maker:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    (tmp_path / "fix.patch").write_text(PATCH)
    return Maker(tmp_path, monkeypatch)


def test_a_patched_build_compiles_what_the_patch_changes(maker: Maker) -> None:
    base = maker.make("base=2.3")
    assert maker.compiled == ["base arc.c", "base zil.c"]
    assert base.modules == {"zfs": ["ONE", "id-one"]}
    assert (base.userland, base.version, base.kernel) == ("2.3", "2.3.2", "6.1")
    patched = maker.make(f"patched=2.3+{maker.directory}/fix.patch")
    assert maker.compiled == ["patched zil.c"]
    assert patched.modules["zfs"] == ["PATCHED", "id-patched"]
    assert list(patched.patches) == ["fix.patch"]
    assert patched.digest != base.digest
    assert maker.make("again=2.3").digest == base.digest
    assert maker.compiled == []
    assert maker.fetched == 1
    maker.make("patched=2.3")  # without the patch again
    assert maker.compiled == ["patched zil.c"]
    assert [record.name for record in records(maker.home)] == ["again", "base", "patched"]


def test_a_changed_file_of_a_tree_is_compiled_again(maker: Maker) -> None:
    tree = source(maker.directory / "tree")
    (tree / "module/arc.o").write_text("an object of the user's own")
    assert maker.make(f"own={tree}").userland == ""
    assert maker.compiled == ["own arc.c", "own zil.c"]
    (tree / "module/arc.c").write_text("changed\n")
    (tree / "configure").unlink()
    maker.make(f"own={tree}")
    assert maker.compiled == ["own arc.c"]
    assert not (maker.home / "builds/own/source/configure").exists()


def test_a_revision_and_a_tarball(maker: Maker) -> None:
    tree = source(maker.directory / "tree")
    git = ["git", "-C", str(tree), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    (tree / "module/zil.c").write_text("uncommitted\n")
    committed = maker.make(f"one={tree}@HEAD")
    assert (committed.revision, committed.modules["zfs"][0]) == (head, "ONE")
    changed = maker.make(f"two={tree}")
    assert (changed.revision, changed.modules["zfs"][0]) == (f"{head}-modified", "UNCOMMITTED")
    with pytest.raises(UsageError, match="has no revision 'none'"):
        maker.make(f"three={tree}@none")
    with tarfile.open(maker.directory / "zfs.tar.gz", "w:gz") as file:
        for name in ("module", "configure"):
            file.add(tree / name, f"zfs-9/{name}")
    assert maker.make(f"four={maker.directory}/zfs.tar.gz").modules["zfs"][0] == "UNCOMMITTED"
    (maker.directory / "zfs.tar.gz").write_bytes(b"damaged")
    with pytest.raises(RunError, match="can't be unpacked"):
        maker.make(f"four={maker.directory}/zfs.tar.gz")


FAILURES: list[tuple[str, Callable[[Maker], object], str, str]] = [
    (
        "a patch that doesn't apply",
        lambda maker: (maker.directory / "fix.patch").write_text(PATCH.replace("-one", "-other")),
        "patched=2.3+{}/fix.patch",
        r"fix\.patch: does not apply to module/zil\.c: .*FAILED",
    ),
    (
        "a patch of userland",
        lambda maker: (maker.directory / "fix.patch").write_text(USERLAND),
        "patched=2.3+{}/fix.patch",
        r"changes cmd/zpool\.c, but the userland.*from a source tree",
    ),
    (
        "a patch of nothing",
        lambda maker: (maker.directory / "fix.patch").write_text("nothing\n"),
        "patched=2.3+{}/fix.patch",
        "changes no file of these sources",
    ),
    (
        "a patch that isn't there",
        lambda maker: (maker.directory / "fix.patch").unlink(),
        "patched=2.3+{}/fix.patch",
        "is not a file",
    ),
    (
        "no sources",
        lambda maker: None,
        "patched=9.9",
        r"9\.9: is neither a directory, a tarball nor a build of the rig; the rig has: 2\.3",
    ),
    ("the rig's own name", lambda maker: None, "2.3=2.3", "is a build of the rig itself"),
    ("a bad name", lambda maker: None, "../x=2.3", "is not a build"),
    (
        "an error of the compiler",
        lambda maker: setattr(
            maker,
            "fail",
            "  CC x.o\n/build/source/module/zfs/zil.c:12:3: error: expected ';'\nb.c:1: error: two\n",
        ),
        "patched=2.3",
        r"the build 'patched' failed: module/zfs/zil\.c:12: expected ';'",
    ),
    (
        "a full disk",
        lambda maker: setattr(
            maker, "fail", "a.c:1: error: x\ncc1: fatal error: closing: No space left on device\n"
        ),
        "patched=2.3",
        "the disk is full",
    ),
    (
        "words",
        lambda maker: setattr(maker, "fail", "configure: error: no headers\n"),
        "patched=2.3",
        "failed: no headers",
    ),
]


@pytest.mark.parametrize(
    ("before", "text", "words"), [each[1:] for each in FAILURES], ids=[each[0] for each in FAILURES]
)
def test_what_fails_is_one_clear_line_and_leaves_the_older_build(
    maker: Maker, before: Callable[[Maker], None], text: str, words: str
) -> None:
    maker.make(f"patched=2.3+{maker.directory}/fix.patch")
    kept = own_builds(maker.home)
    before(maker)
    with pytest.raises(IolabError, match=words) as error:
        maker.make(text.format(maker.directory))
    assert "\n" not in str(error.value)
    assert own_builds(maker.home) == kept
    assert not list((maker.home / "builds").glob("*/fresh-*"))


def test_a_failure_after_the_sources_changed_is_made_good_by_the_next_call(maker: Maker) -> None:
    maker.make("base=2.3")
    maker.fail = "a.c:1: error: x\n"
    with pytest.raises(RunError):
        maker.make(f"base=2.3+{maker.directory}/fix.patch")
    maker.fail = ""
    assert maker.make(f"base=2.3+{maker.directory}/fix.patch").modules["zfs"][0] == "PATCHED"


def test_a_disk_that_is_full_before_compiling_leaves_no_half_copy(
    maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker.make("base=2.3")
    real = shutil.copytree

    def full(one: Any, other: Any, *rest: Any, **more: Any) -> Any:
        if Path(one).name != "source":
            return real(one, other, *rest, **more)
        other.mkdir()
        raise shutil.Error(
            [
                (
                    str(one / "arc.o"),
                    str(other / "arc.o"),
                    "[Errno 28] No space left on device: 'a' -> 'b'",
                ),
                ("b", "b", "the same"),
            ]
        )

    monkeypatch.setattr("shutil.copytree", full)
    with pytest.raises(
        RunError, match=r"^patched: can't be built: No space left on device; make room and run"
    ) as error:
        maker.make(f"patched=2.3+{maker.directory}/fix.patch")
    assert "\n" not in str(error.value)
    assert not (maker.home / "builds/patched/source").exists()
    assert list(own_builds(maker.home)) == ["base"]


def test_parts_of_a_patch_that_a_packages_sources_lack_are_left_out(maker: Maker) -> None:
    (maker.directory / "fix.patch").write_text(
        PATCH.replace("module/zil.c", "man/man8/zfs.8") + PATCH
    )
    assert maker.make(f"patched=2.3+{maker.directory}/fix.patch").modules["zfs"][0] == "PATCHED"


def test_the_image_changes_with_its_builds(maker: Maker) -> None:
    before = Builder(maker.rig, lambda said: None)._digests()["image"]
    maker.make("base=2.3")
    builder = Builder(maker.rig, lambda said: None)
    assert builder._digests()["image"] != before
    builder._take_own_builds()
    builder._take_own_builds()
    place = maker.home / "tree/opt/openzfs"
    assert (place / "base/version").read_text() == "2.3.2\n"
    delete_build(maker.home, "base")
    builder._take_own_builds()
    assert [path.name for path in place.iterdir()] == ["2.3"]
    assert builder._digests()["image"] == before
    with pytest.raises(UsageError, match="there is no build 'base'"):
        delete_build(maker.home, "base")


def test_builds_are_listed(maker: Maker, capsys: pytest.CaptureFixture[str]) -> None:
    rig = str(maker.directory / "rig")
    assert run(["rig", "builds", rig]) == 0
    assert "no build of your own" in capsys.readouterr().out
    maker.make(f"patched=2.3+{maker.directory}/fix.patch")
    (maker.home / "builds/odd/root").mkdir(parents=True)
    (maker.home / "builds/odd/root/build.json").write_text("damaged")
    assert run(["rig", "builds", rig]) == 0
    assert "patched         2.3.2; 2.3+" in capsys.readouterr().out
    assert run(["rig", "builds", rig, "--format", "json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["builds"]
    assert found["modules"] == {"zfs": ["PATCHED", "id-patched"]}


def test_a_name_with_a_plus_is_no_patch() -> None:
    assert parse_request("a=/src/zfs-2.3.2+deb12.tar.gz").base == "/src/zfs-2.3.2+deb12.tar.gz"
    assert parse_request("a=2.3").patches == ()


def test_files_that_are_equal_keep_their_time(tmp_path: Path) -> None:
    fresh = source(tmp_path / "fresh")
    (fresh / "link").symlink_to("configure")
    digest = update_tree(fresh, tmp_path / "at", tmp_path / "files.json")
    times = {path: path.lstat().st_mtime_ns for path in (tmp_path / "at").rglob("*")}
    (fresh / "module/arc.c").touch()
    assert update_tree(fresh, tmp_path / "at", tmp_path / "files.json") == digest
    assert {path: path.lstat().st_mtime_ns for path in (tmp_path / "at").rglob("*")} == times


def test_files_of_a_call_that_was_killed_are_not_taken_for_those_of_the_call_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh, at, manifest = source(tmp_path / "fresh"), tmp_path / "at", tmp_path / "files.json"
    digest = update_tree(fresh, at, manifest)
    original = (fresh / "module/zil.c").read_text()
    (fresh / "module/zil.c").write_text("patched")
    (fresh / "module/added.c").write_text("added")
    writes: list[Path] = []

    def killed(path: Path, content: str) -> None:
        writes.append(path)
        if len(writes) == 2:
            raise KeyboardInterrupt
        write_atomically(path, content)

    monkeypatch.setattr("iolab.hosts.rigs.source_tree.write_atomically", killed)
    with pytest.raises(KeyboardInterrupt):
        update_tree(fresh, at, manifest)
    assert (at / "module/zil.c").read_text() == "patched"
    monkeypatch.undo()
    (fresh / "module/zil.c").write_text(original)
    (fresh / "module/added.c").unlink()
    assert update_tree(fresh, at, manifest) == digest
    assert (at / "module/zil.c").read_text() == original
    assert not (at / "module/added.c").exists()


def test_what_a_killed_call_left_is_deleted(maker: Maker) -> None:
    leftover = maker.home / "builds/base/fresh-killed/module"
    leftover.mkdir(parents=True)
    maker.make("base=2.3")
    assert not leftover.parent.exists()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_the_compiler_ends_with_its_caller(tmp_path: Path) -> None:
    """Killed by SIGKILL, which leaves no time to end it."""
    script = (
        "import pathlib, sys\n"
        "from iolab.hosts.rigs.build import Builder\n"
        "builder = Builder.__new__(Builder)\n"
        "builder._run(['sh', '-c', 'echo $$ > pid; exec sleep 60'], 'x', pathlib.Path('log'))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path) as caller:
        path = tmp_path / "pid"
        while not (path.exists() and path.read_text().strip()):
            assert caller.poll() is None
            time.sleep(0.02)
        compiler = int(path.read_text())
        caller.kill()
    deadline = time.monotonic() + 30
    while is_alive(compiler) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(compiler)


def test_objects_of_a_killed_compiler_are_made_again(tmp_path: Path) -> None:
    """With the line of the scripts that deletes them."""
    for script in ("build.sh", "kernel.sh"):
        place = tmp_path / script
        place.mkdir()
        old, torn = ("a.o", "a.c"), ("b.o", "b.ko", "libb.a", "b.c")
        marker = place / ".iolab-compiling"
        for number, name in enumerate((*old, marker.name, *torn)):
            (place / name).touch()
            os.utime(place / name, (1000 + number, 1000 + number))
        text = (find_rig("openzfs").directory / script).read_text()
        start = text.index("if [ -f .iolab-compiling ]")
        line = text[start : text.index("touch .iolab-compiling")]
        subprocess.run(["sh", "-ec", line], cwd=place, check=True)
        assert {path.name for path in place.iterdir()} == {*old, marker.name, "b.c"}


def test_the_first_error_is_the_compilers() -> None:
    assert (
        first_error("/build/source/a.c:3:1: warning: x\n/build/source/b.h:4: error: y\n")
        == "b.h:4: y"
    )
    assert first_error("nothing\n") == ""
