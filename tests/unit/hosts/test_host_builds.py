# SPDX-License-Identifier: Apache-2.0
"""Builds on a host by ssh, with a script that only copies: what is sent and compiled again, every
failure, and what is left."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.base.errors import IolabError, RunError, UsageError
from iolab.cli.main import run
from iolab.hosts.rigs.builds import BuildRecord
from iolab.hosts.rigs.host_builds import HostBuildMaker, HostBuilds
from iolab.hosts.rigs.host_directory import HostDirectory
from iolab.hosts.rigs.recipe import find_rig
from iolab.hosts.rigs.source_tree import parse_request
from iolab.hosts.ssh.host import SshHost, SshOptions
from iolab.studies.targets.zpool.modules import SWITCH, build_record, builds
from support.sshd import sshd

RECIPE = """
name = "small"
suite = "bookworm"
[builds]
directory = "/opt/openzfs"
fetch = ["fetch.sh"]
run = ["build.sh"]
programs = ["openzfs-use", "openzfs-program"]
"""
SCRIPT = """
cd "$BUILD_DIRECTORY"
rm -rf new
mkdir new
: > compiled
for file in $(find source -name '*.c' | sort); do
  if [ ! -e "${file%.c}.o" ] || [ "$file" -nt "${file%.c}.o" ]; then
    if grep error "$file" >&2; then exit 1; fi
    cp "$file" "${file%.c}.o"
    echo "${file##*/}" >> compiled
  fi
done
if [ -n "${2-}" ]; then cp -a "$BUILD_BASE/." new/; fi
echo 2.3.4 > new/version
ln -sf openzfs-program "$BUILD_PROGRAMS/zpool"
echo "kernel $BUILD_KERNEL" > facts
echo "module zfs $(cat source/module/zil.o) id" >> facts
"""
PATCH = """--- a/module/zil.c
+++ b/module/zil.c
@@ -1 +1 @@
-one
+patched
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("host")


@pytest.fixture(scope="module")
def far_side(place: Path) -> Iterator[SshOptions]:
    with sshd(place / "sshd", f"SetEnv IOLAB_BUILDS={place}/opt/builds") as options:
        yield options


class Machine:
    """The host, a rig for its scripts, and a source tree."""

    def __init__(self, root: Path, place: Path, directory: Path, host: SshHost) -> None:
        self.host, self.directory, self.builds = host, directory, place / "opt/builds"
        shutil.rmtree(place / "opt", ignore_errors=True)
        rig = directory / "rig"
        rig.mkdir()
        (rig / "rig.toml").write_text(RECIPE)
        (rig / "build.sh").write_text(SCRIPT)
        for name in ("openzfs-use", "openzfs-program"):
            shutil.copy(root / "rigs/openzfs" / name, rig / name)
        self.tree = directory / "tree"
        (self.tree / "module").mkdir(parents=True)
        for name, text in (("module/zil.c", "one\n"), ("module/arc.c", "two\n"), ("old", "x")):
            (self.tree / name).write_text(text)
        (self.tree / "link").symlink_to("module/zil.c")
        (directory / "fix.patch").write_text(PATCH)

    def make(self, text: str) -> BuildRecord:
        maker = HostBuildMaker(find_rig(str(self.directory / "rig")), self.host, lambda said: None)
        return maker.make(parse_request(text))

    @property
    def compiled(self) -> list[str]:
        return (self.builds / ".work/new/compiled").read_text().split()


@pytest.fixture
def machine(
    root: Path,
    place: Path,
    tmp_path: Path,
    far_side: SshOptions,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Machine]:
    # a container has no headers of a kernel
    monkeypatch.setattr(HostBuildMaker, "_check", lambda self: "6.1.0-9")
    with SshHost(far_side) as host:
        yield Machine(root, place, tmp_path, host)


def test_a_build_is_made_below_one_directory_and_deleted(machine: Machine) -> None:
    record = machine.make(f"new={machine.tree}")
    assert (record.version, record.kernel, record.userland) == ("2.3.4", "6.1.0-9", "")
    assert record.modules == {"zfs": ["one", "id"]}
    assert machine.compiled == ["arc.c", "zil.c"]
    assert (machine.builds / ".work/new/source/link").is_symlink()
    assert machine.host.which(SWITCH) == f"{machine.builds}/.bin/{SWITCH}"
    assert machine.host.which("zpool") == f"{machine.builds}/.bin/zpool"
    assert [(build.branch, build.loaded) for build in builds(machine.host)] == [("new", False)]
    assert build_record(machine.host, "new")["digest"] == record.digest
    assert HostBuilds(machine.host).records() == [record]
    patched = machine.make(f"new={machine.tree}+{machine.directory}/fix.patch")
    assert machine.compiled == ["zil.c"]
    assert patched.modules == {"zfs": ["patched", "id"]}
    assert list(patched.patches) == ["fix.patch"]
    (machine.tree / "old").unlink()
    machine.make(f"new={machine.tree}+{machine.directory}/fix.patch")
    assert machine.compiled == []
    assert not (machine.builds / ".work/new/source/old").exists()
    HostBuilds(machine.host).delete("new")
    assert not machine.builds.parent.exists()


def test_a_failure_is_one_line_and_the_older_build_stays(machine: Machine) -> None:
    record = machine.make(f"new={machine.tree}")
    tree, patch = machine.tree, machine.directory / "fix.patch"
    patch.write_text(PATCH.replace("-one", "-other"))
    (tree / "module/bad.c").write_text("/x/module/bad.c:3:1: error: expected ';'\n")
    (tree / "module/arc.c").write_text("cc: error: No space left on device\n")
    failures = [
        ("new=2.3", UsageError, "nor a build of the rig"),
        (f"new={tree}+{patch}", RunError, "does not apply to module/zil.c"),
        (f"new={tree}", RunError, "the disk is full"),
    ]
    for text, kind, words in failures:
        with pytest.raises(kind) as error:
            machine.make(text)
        assert words in str(error.value)
        assert "\n" not in str(error.value)
    (tree / "module/arc.c").write_text("two\n")
    with pytest.raises(RunError) as error:
        machine.make(f"new={tree}")
    assert "'new' failed: /x/module/bad.c:3: expected ';'" in str(error.value)
    assert f"{machine.builds}/.work/new/build.log" in str(error.value)
    assert HostBuilds(machine.host).records() == [record]
    (tree / "module/bad.c").unlink()
    assert machine.make(f"new={tree}").digest == record.digest


def test_a_build_of_the_rig_gets_its_userland_from_here(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = machine.directory / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.delenv("SUDO_UID", raising=False)
    home = cache / "iolab/rigs/small"
    userland = home / "tree/opt/openzfs/2.3"
    for name, text in (("version", "2.3.2-2\n"), ("sbin/zpool", "x"), ("lib/modules/6/m.ko", "x")):
        (userland / name).parent.mkdir(parents=True, exist_ok=True)
        (userland / name).write_text(text)
    (userland / "sbin/zfs").symlink_to("zpool")
    shutil.copytree(machine.tree, home / "fetched/2.3-2.3.2-2", symlinks=True)
    record = machine.make(f"new=2.3+{machine.directory}/fix.patch")
    assert (record.userland, list(record.patches)) == ("2.3", ["fix.patch"])
    assert record.modules == {"zfs": ["patched", "id"]}
    new = machine.builds / "new"
    assert (new / "sbin/zfs").readlink() == Path("zpool")
    assert not (new / "lib").exists()
    patch = machine.directory / "fix.patch"
    patch.write_text(PATCH.replace("module/zil.c", "cmd/zpool.c"))
    with pytest.raises(RunError, match="the userland of this build comes from"):
        machine.make(f"new=2.3+{patch}")
    (userland / "build.json").write_text("{}")  # a build of the user is no build of the rig
    with pytest.raises(UsageError, match="nor a build of the rig"):
        machine.make("new=2.3")


def test_files_of_others_are_not_touched(machine: Machine) -> None:
    machine.builds.mkdir(parents=True)
    (machine.builds / "data").write_text("mine")
    with pytest.raises(RunError, match="has files of other programs"):
        machine.make(f"new={machine.tree}")
    (machine.builds / ".work").mkdir()
    with pytest.raises(RunError, match="is not a build of iolab"):
        machine.make(f"data={machine.tree}")
    host_builds = HostBuilds(machine.host)
    for name in ("data", "..", "../data", ".bin", ""):
        with pytest.raises(UsageError, match="there is no build"):
            host_builds.delete(name)
    assert (machine.builds / "data").read_text() == "mine"
    # a damaged list of files names others
    machine.make(f"new={machine.tree}")
    manifest = machine.builds / ".work/new/files.json"
    files = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**files, "../../../data": "x", f"{machine.builds}/data": "x"}))
    machine.make(f"new={machine.tree}")
    assert (machine.builds / "data").read_text() == "mine"
    for damage in ("{", "[]", '{"name": "new"}', '{"name": 1, "sources": {}}'):
        (machine.builds / "new/build.json").write_text(damage)
        assert host_builds.records() == []
    host_builds.delete("new")
    assert (machine.builds / "data").read_text() == "mine"


def test_a_loaded_build_and_a_lock_are_refused(machine: Machine) -> None:
    machine.make(f"new={machine.tree}")
    switch = machine.builds / ".bin/openzfs-use"
    original = switch.read_text()
    switch.write_text(f"#!/bin/sh\necho {machine.builds}/new\n")
    with pytest.raises(RunError, match="is loaded"):
        HostBuilds(machine.host).delete("new")
    switch.write_text(original)
    with HostDirectory(machine.host).lock(machine.directory):
        for action in (
            lambda: machine.make(f"new={machine.tree}"),
            lambda: HostBuilds(machine.host).delete("new"),
        ):
            with pytest.raises(RunError, match="another iolab makes or deletes builds"):
                action()
    assert (machine.builds / "new/build.json").exists()


def test_programs_that_others_can_replace_are_not_run(machine: Machine) -> None:
    machine.make(f"new={machine.tree}")
    machine.builds.chmod(0o777)
    try:
        assert machine.host.which(SWITCH) is None
    finally:
        machine.builds.chmod(0o755)
    assert machine.host.which(SWITCH) is not None


def test_a_host_that_cannot_build_is_one_line(
    far_side: SshOptions, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("iolab.hosts.rigs.host_builds._NEEDED", {"no-such-compiler": "compiler"})
    with SshHost(far_side) as host:
        maker = HostBuildMaker(find_rig(str(root / "rigs/openzfs")), host, lambda said: None)
        with pytest.raises(IolabError) as error:
            maker.make(parse_request(f"new={tmp_path}"))
    assert "does not have no-such-compiler" in str(error.value)
    assert "apt install compiler" in str(error.value)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["build", "--host", "local", "--build", "a=/tmp"], "--host: names no machine"),
        (["build", "--host", "root@x"], "--host: has no build to make"),
        (["build", "--host", "root@x", "--build", "a=/tmp", "--kernel", "k"], "--kernel"),
        (["builds", "--host", "local"], "--host: names no machine"),
    ],
)
def test_wrong_options_are_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    assert run(["rig", *words]) == 2
    assert reason in capsys.readouterr().err


class Programs:
    """`openzfs-use` next to a build, with programs that do what a test says."""

    def __init__(self, root: Path, directory: Path) -> None:
        self.builds, self._path = directory / "builds", directory / "programs"
        (self.builds / ".bin").mkdir(parents=True)
        for name in ("openzfs-use", "openzfs-program"):
            shutil.copy(root / "rigs/openzfs" / name, self.builds / ".bin" / name)
        (self.builds / "new/lib/modules/6.1").mkdir(parents=True)
        (self.builds / "new/version").write_text("2.3.4\n")
        self._path.mkdir()
        self.add("uname", "echo 6.1")
        self.add("modinfo", "echo zfs_txg_timeout:seconds")

    def add(self, name: str, text: str) -> None:
        (self._path / name).write_text(f"#!/bin/sh\n{text}\n")
        (self._path / name).chmod(0o755)

    def use(self, *words: str, program: str = "openzfs-use") -> tuple[int, str, str]:
        """Exit code and output of a call."""
        path = f"{self.builds}/.bin:{self._path}:/usr/bin:/bin"
        command = ["sh", str(self.builds / ".bin" / program), *words]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={"PATH": path}
        )
        return done.returncode, done.stdout.strip(), done.stderr.strip()


@pytest.fixture
def programs(root: Path, tmp_path: Path) -> Programs:
    return Programs(root, tmp_path)


LAYOUT = "[   12.5] zfs: disagrees about version of symbol module_layout"


def test_a_module_that_does_not_load_is_one_line(programs: Programs) -> None:
    programs.add(
        "modprobe", "echo \"modprobe: ERROR: could not insert 'zfs': Exec format error\"; exit 1"
    )
    programs.add("dmesg", f"echo '{LAYOUT}'; echo '[   13.0] eth0: up'")
    code, out, error = programs.use("new")
    assert (code, out) == (1, "")
    assert error == (
        "openzfs-use: the modules of build new can't be loaded: could not insert 'zfs': Exec format error "
        "(zfs: disagrees about version of symbol module_layout)"
    )
    assert not (programs.builds / ".loaded").is_symlink()
    assert programs.use("--list") == (0, "new 2.3.4", "")
    for words, reason in (
        (["other"], "there is no build other"),
        (["new", "txg"], "'txg' is not PARAMETER=VALUE"),
        (["new", "zfs_nothing=1"], "build new has no parameter zfs_nothing"),
    ):
        assert programs.use(*words)[0] == 1
        assert reason in programs.use(*words)[2]
    programs.add("uname", "echo 6.12")
    assert programs.use("new")[2].endswith("has no modules for the kernel 6.12")


def test_modules_are_loaded_from_the_directory_without_the_configuration_of_the_system(
    programs: Programs,
) -> None:
    programs.add("modprobe", f'echo "$@" >> {programs.builds}/calls')
    programs.use("new", "spl_hostid=1", "zfs_txg_timeout=2")
    calls = (programs.builds / "calls").read_text().splitlines()
    options = f"-C /dev/null -d {programs.builds}/new"
    assert calls == [f"{options} spl spl_hostid=1", f"{options} zfs zfs_txg_timeout=2"]


def test_a_program_is_of_the_system_unless_a_build_is_loaded(programs: Programs) -> None:
    (programs.builds / ".bin/zpool").symlink_to("openzfs-program")
    (programs.builds / "new/sbin").mkdir()
    (programs.builds / "new/sbin/zpool").write_text("#!/bin/sh\necho build $1\n")
    (programs.builds / "new/sbin/zpool").chmod(0o755)
    assert programs.use("list", program="zpool") == (0, "build list", "")
    programs.add("zpool", "echo system $1")
    assert programs.use("list", program="zpool") == (0, "system list", "")
