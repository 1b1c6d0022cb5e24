# SPDX-License-Identifier: Apache-2.0
"""Further kernels of a rig, with a script that only writes the files of one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from iolab.base.errors import IolabError, RunError, UsageError
from iolab.cli.main import run
from iolab.hosts.kinds.rig import OWN_KERNEL, cache_home, kernel_names
from iolab.hosts.rigs.build import Builder, own_kernels
from iolab.hosts.rigs.builds import BuildMaker
from iolab.hosts.rigs.kernels import KernelMaker, KernelRecord, kernel_records, parse_kernel
from iolab.hosts.rigs.qemu import Disks, MachineOptions, command
from iolab.hosts.rigs.recipe import find_rig
from iolab.hosts.rigs.source_tree import parse_request

RECIPE = """
name = "small"
suite = "bookworm"
[builds]
directory = "/opt/openzfs"
fetch = ["fetch.sh"]
run = ["build.sh"]
[kernels]
run = ["kernel.sh"]
"""
OWN, ADDED = "6.1.0-56-cloud-amd64", "6.12.95+deb12-cloud-amd64"
PACKAGE = "linux-image-cloud-amd64/bookworm-backports"


class KernelRig:
    """A rig with a kernel of its own. `release`: of the kernels that are added; `fail`: what the
    script writes before it fails."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.release, self.fail = ADDED, ""
        self.calls: list[list[str]] = []
        (directory / "rig").mkdir()
        for name, text in (("rig.toml", RECIPE), ("kernel.sh", ""), ("build.sh", "")):
            (directory / "rig" / name).write_text(text)
        self.rig = find_rig(str(directory / "rig"))
        self.home = cache_home() / "small"
        (self.home / "tree/usr/lib/modules" / OWN).mkdir(parents=True)
        known = self.home / "tree/opt/openzfs/2.3"
        known.mkdir(parents=True)
        (known / "version").write_text("2.3.2-2\n")
        (self.home / "fetched/2.3-2.3.2-2/module").mkdir(parents=True)
        (self.home / "fetched/2.3-2.3.2-2/module/zil.c").write_text("one\n")
        kernel_rig = self

        def inside(
            self: Builder,
            command: Sequence[str],
            what: str,
            mounts: Mapping[Path, str] | None = None,
            log: Path | None = None,
        ) -> None:
            assert mounts is not None
            kernel_rig.calls.append(list(command[1:]))
            if kernel_rig.fail:
                self._run(["sh", "-c", 'echo "$0" >&2; exit 100', kernel_rig.fail], what, log)
            by_place = {inner: outer for outer, inner in mounts.items()}
            if command[1] == "/rig/kernel.sh":
                kernel_rig.write_kernel(by_place["/build"])
            else:
                kernel_rig.write_modules(by_place)

        monkeypatch.setattr(Builder, "inside", inside)
        monkeypatch.setattr(Builder, "open_packages", lambda self: None)
        monkeypatch.setattr(Builder, "close_packages", lambda self: None)

    def write_kernel(self, place: Path) -> None:
        root = place / "root"
        modules = root / "usr/lib/modules" / self.release / "kernel"
        modules.mkdir(parents=True, exist_ok=True)
        (modules / "virtio.ko").write_text("module")
        (root / "boot").mkdir(exist_ok=True)
        for name in ("vmlinuz", "initrd.img"):
            (root / "boot" / f"{name}-{self.release}").write_text(name)
        (place / "release").write_text(f"{self.release}\n")

    def write_modules(self, by_place: Mapping[str, Path]) -> None:
        build, kernel = by_place["/build"], by_place.get("/build/kernel")
        release = OWN if kernel is None else next((kernel / "usr/lib/modules").iterdir()).name
        assert ("/build/source" in by_place) == (kernel is not None)
        (build / "new/lib/modules" / release).mkdir(parents=True)
        (build / "new/version").write_text("2.3.2\n")
        with (build / "facts").open("w" if kernel is None else "a") as facts:
            facts.write(f"kernel {release}\nmodule zfs {release.upper()} id\n")

    def add(self, text: str) -> KernelRecord:
        builder = Builder(self.rig, lambda text: None)
        return KernelMaker(self.rig, builder, lambda text: None).make(parse_kernel(text))


def linux_tree(directory: Path) -> Path:
    tree = directory / "linux"
    tree.mkdir()
    for name in ("Kbuild", "Kconfig", "Makefile"):
        (tree / name).write_text("all:\n")
    return tree


@pytest.fixture
def kernel_rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelRig:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    return KernelRig(tmp_path, monkeypatch)


def test_a_kernel_of_packages_is_recorded(kernel_rig: KernelRig) -> None:
    record = kernel_rig.add(f"backport={PACKAGE}")
    assert kernel_rig.calls == [["/rig/kernel.sh", "linux-image-cloud-amd64", "bookworm-backports"]]
    assert (record.release, record.sources, record.digest) == (ADDED, PACKAGE, "")
    assert list(kernel_records(kernel_rig.home)) == [record]
    assert kernel_names(kernel_rig.home) == ["backport"]
    assert [path.name for path in (kernel_rig.home / "kernels").iterdir()] == ["backport"]


def test_a_kernel_of_a_tree_keeps_its_objects_and_its_configuration(
    kernel_rig: KernelRig, tmp_path: Path
) -> None:
    tree = linux_tree(tmp_path)
    (tree / ".config").write_text("CONFIG_EXT4_FS=y\n")
    first = kernel_rig.add(f"mine={tree}")
    source = kernel_rig.home / "kernels/mine/root/usr/src/linux"
    assert kernel_rig.calls == [["/rig/kernel.sh"]]
    assert (source / ".config").read_text() == "CONFIG_EXT4_FS=y\n"
    (source / "main.o").write_text("object")
    (tree / "Makefile").write_text("all: clean\n")
    second = kernel_rig.add(f"mine={tree}")
    assert first.digest != second.digest != ""
    assert (source / "main.o").exists()


def test_a_directory_of_other_sources_is_one_line(kernel_rig: KernelRig, tmp_path: Path) -> None:
    tree = linux_tree(tmp_path)
    (tree / "Kconfig").unlink()
    with pytest.raises(UsageError, match="has no Kconfig"):
        kernel_rig.add(f"mine={tree}")
    assert not kernel_rig.calls
    assert not kernel_names(kernel_rig.home)


def test_what_a_killed_call_left_is_deleted(kernel_rig: KernelRig, tmp_path: Path) -> None:
    kernels = kernel_rig.home / "kernels"
    for leftover in (kernels / ".new-killed/root", kernels / "mine/fresh-killed/kernel"):
        leftover.mkdir(parents=True)
    kernel_rig.add(f"mine={linux_tree(tmp_path)}")
    kernel_rig.release = "6.13"
    kernel_rig.add(f"backport={PACKAGE}")
    assert {path.name for path in kernels.iterdir()} == {"mine", "backport"}
    assert not list((kernels / "mine").glob("fresh-*"))


@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        ("E: Unable to locate package linux-image-x", "E: Unable to locate package"),
        ("mkinitramfs: No space left on device", "the disk is full"),
        ("kernel/fork.c:12:3: error: 'x' undeclared", "kernel/fork.c:12"),
        ("error: the configuration lacks it: CONFIG_PCI\nmake: *** [all] Error 1", "CONFIG_PCI"),
    ],
)
def test_a_failure_is_one_line_and_the_earlier_kernel_remains(
    kernel_rig: KernelRig, fail: str, reason: str
) -> None:
    before = kernel_rig.add(f"backport={PACKAGE}")
    kernel_rig.fail = fail
    with pytest.raises(RunError) as error:
        kernel_rig.add("backport=linux-image-x")
    assert reason in error.value.message
    assert "'backport'" in error.value.message
    assert list(kernel_records(kernel_rig.home)) == [before]


def test_a_kernel_that_the_rig_has_is_refused(kernel_rig: KernelRig) -> None:
    kernel_rig.release = OWN
    with pytest.raises(RunError) as error:
        kernel_rig.add("again=linux-image-cloud-amd64")
    assert OWN_KERNEL in error.value.message
    kernel_rig.release = ADDED
    kernel_rig.add(f"backport={PACKAGE}")
    with pytest.raises(RunError) as error:
        kernel_rig.add(f"second={PACKAGE}")
    assert "'backport'" in error.value.message
    assert kernel_names(kernel_rig.home) == ["backport"]


@pytest.mark.parametrize(
    "text", ["", "=x", "a=", "../a=linux-image-x", "default=linux-image-x", "a=nothing"]
)
def test_what_is_not_a_kernel_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_kernel(text)


def test_a_build_has_modules_for_each_kernel(kernel_rig: KernelRig) -> None:
    kernel_rig.add(f"backport={PACKAGE}")
    builder = Builder(kernel_rig.rig, lambda text: None)
    maker = BuildMaker(kernel_rig.rig, builder, lambda text: None, ["backport"])
    record = maker.make(parse_request("zfs=2.3"))
    assert (record.kernel, record.modules) == (OWN, {"zfs": [OWN.upper(), "id"]})
    added = record.kernels["backport"]
    assert (added.release, added.modules) == (ADDED, {"zfs": [ADDED.upper(), "id"]})
    place = kernel_rig.home / "builds/zfs"
    assert {path.name for path in (place / "root/lib/modules").iterdir()} == {OWN, ADDED}
    assert (place / "source.backport/module/zil.c").read_text() == "one\n"
    stored = json.loads((place / "root/build.json").read_text())
    assert stored["kernels"]["backport"]["release"] == ADDED
    with pytest.raises(UsageError):
        BuildMaker(kernel_rig.rig, builder, lambda text: None, ["other"])


def test_the_image_has_the_modules_of_each_kernel_and_the_tree_does_not(
    kernel_rig: KernelRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel_rig.add(f"backport={PACKAGE}")
    builder = Builder(kernel_rig.rig, lambda text: None)
    modules = builder.tree / "usr/lib/modules"
    (modules / "6.5").mkdir()  # of an image that was interrupted
    os.link(kernel_rig.home / "kernels/backport/root/kernel.json", modules / "6.5/kernel.json")
    with builder._kernel_modules():
        assert {path.name for path in modules.iterdir()} == {OWN, ADDED}
        assert (modules / ADDED / "kernel/virtio.ko").read_text() == "module"
    assert [path.name for path in modules.iterdir()] == [OWN]
    before = own_kernels(kernel_rig.home)
    assert run(["rig", "kernels", str(kernel_rig.rig.directory), "--delete", "backport"]) == 0
    assert (list(before), own_kernels(kernel_rig.home)) == (["backport"], {})
    assert run(["rig", "kernels", str(kernel_rig.rig.directory), "--delete", "backport"]) != 0


def test_a_machine_boots_the_kernel_that_is_named(kernel_rig: KernelRig, tmp_path: Path) -> None:
    kernel_rig.add(f"backport={PACKAGE}")
    for kernel, image in (("default", "small/vmlinuz"), ("backport", f"boot/vmlinuz-{ADDED}")):
        options = MachineOptions(Disks(1, 1 << 30), 1 << 30, kernel=kernel)
        words = command("small", "tcg", options, port=2222, home=tmp_path)
        assert words[words.index("-kernel") + 1].endswith(image)
        assert words.count("-initrd") == 1
    with pytest.raises(IolabError):
        command(
            "small",
            "tcg",
            MachineOptions(Disks(0, 1), 1 << 30, kernel="other"),
            port=2222,
            home=tmp_path,
        )
