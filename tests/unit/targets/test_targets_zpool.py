# SPDX-License-Identifier: Apache-2.0
"""The target zpool on a machine in memory: layouts, what is made when, builds and parameters, and
that nothing is left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from iolab.base.errors import RunError
from iolab.hosts.base.host import Completed
from iolab.hosts.kinds.fake import FakeProgram
from iolab.studies.run.study import How, run_study
from iolab.studies.targets.base import Permissions, RunContext
from iolab.studies.targets.made import clean_leftovers
from iolab.studies.targets.zpool.options import CLASSES, ZpoolOptions, parse_layout
from iolab.studies.targets.zpool.pool import remove
from iolab.studies.targets.zpool.target import ZpoolTarget
from support.acting import SYS, Listener, fake_fio, write_result
from support.zfs import FREE, FakeZfs

ALL = "/dev/disk/by-id/virtio-*"
MAY = Permissions(destructive=True)


def make(
    zfs: FakeZfs, tmp_path: Path, number: int = 1, *, permissions: Permissions = MAY, **more: Any
) -> ZpoolTarget:
    options = ZpoolOptions.model_validate({"layout": "mirror:2", "devices": ALL, **more})
    host = zfs.machine if hasattr(zfs, "machine") else zfs.host()
    host.directories.update(str(parent) for parent in [tmp_path, *tmp_path.parents])
    return ZpoolTarget(options, host, str(tmp_path / f"scratch-{number}"), permissions)


def context(run: str, cell: str = "c", block: int = 1) -> RunContext:
    return RunContext(run, cell, block, 1 << 20)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stripe:3", "a b c"),
        ("mirror:2 x 2", "mirror a b mirror c d"),
        ("raidz:3", "raidz1 a b c"),
        ("raidz2:4 + log mirror:2 + cache stripe:1", "raidz2 a b c d log mirror e f cache g"),
        ("mirror:2+special mirror:2x2", "mirror a b special mirror c d mirror e f"),
    ],
)
def test_layouts_become_words(text: str, words: str) -> None:
    layout = parse_layout(text)
    assert " ".join(layout.words(list("abcdefg"))) == words
    assert layout.devices == sum(len(word) == 1 for word in words.split())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mirror",
        "mirror:1",
        "raidz2:2",
        "raid5:4",
        "mirror:2 x 0",
        "log stripe:1",
        "mirror:2 +",
        "mirror:2; rm",
        "cache mirror:2",
    ],
)
def test_what_is_no_layout_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        ZpoolOptions.model_validate({"layout": text, "devices": ALL})


GROUPS = st.tuples(
    st.sampled_from(["", *CLASSES]),
    st.sampled_from(("stripe", "mirror", "raidz1", "raidz2", "raidz3")),
    st.integers(4, 12),
    st.integers(1, 5),
)


@given(st.lists(GROUPS, min_size=1, max_size=4))
def test_every_device_of_a_layout_is_used_once_and_in_order(
    groups: list[tuple[str, str, int, int]],
) -> None:
    flat = ("cache", "spare")
    wanted = [
        ("", "stripe", 1, 1),
        *(
            (of, "stripe" if of in flat else kind, width, count)
            for of, kind, width, count in groups
        ),
    ]
    layout = parse_layout(
        " + ".join(f"{of} {kind}:{width} x {count}".strip() for of, kind, width, count in wanted)
    )
    devices = [f"/dev/d{number}" for number in range(layout.devices)]
    assert [word for word in layout.words(devices) if word.startswith("/")] == devices


def test_devices_come_in_natural_order_and_without_partitions(tmp_path: Path) -> None:
    zfs = FakeZfs()
    target = make(zfs, tmp_path, layout="raidz2:10")
    zfs.machine.links["/dev/disk/by-id/virtio-disk0-part1"] = "/dev/vdb1"
    zfs.machine.files["/sys/class/block/vdb1/partition"] = "1"
    target.open(1)
    target.begin(context("0001-aa"))
    ((_, words),) = zfs.pools.values()
    assert words == ["raidz2", *(f"/dev/disk/by-id/virtio-disk{number}" for number in range(10))]
    assert target.devices() == tuple(f"vd{letter}" for letter in "bcdefghijk")
    target.close()


def test_a_run_gets_a_file_system_and_says_what_it_took(tmp_path: Path) -> None:
    zfs = FakeZfs()
    target = make(
        zfs, tmp_path, pool={"ashift": 12}, properties={"recordsize": "8k", "atime": False}
    )
    target.open(1)
    assert not zfs.pools
    place = target.begin(context("0001-aa"))
    ((name, (point, _)),) = zfs.pools.items()
    assert place.path == f"{point}/0001-aa"
    assert zfs.datasets == {f"{name}/0001-aa"}
    (create,) = [words for words in zfs.said if words[:2] == ["zpool", "create"]]
    assert {"ashift=12", "cachefile=none", "recordsize=8k", "atime=off"} <= set(create)
    said = target.observe()
    assert (said["taken_bytes"], said["compressratio"], said["fill"]) == (1000, 1.96, 0.25)
    target.end("0001-aa")
    assert not zfs.datasets
    target.close()
    assert not zfs.pools
    assert not zfs.labels
    assert list(tmp_path.iterdir()) == []


def test_the_labels_of_all_disks_are_wiped_by_one_command() -> None:
    zfs = FakeZfs(labels={"/dev/vdb": "iolab-x", "/dev/vdc": "iolab-x", "/dev/vdd": "tank"})
    assert remove(zfs.host(), ["iolab-x", "tank"], ["/dev/vdb", "/dev/vdc", "/dev/vdd"]) == []
    assert zfs.labels == {"/dev/vdd": "tank"}
    assert [words[:2] for words in zfs.said if words[0] == "wipefs"] == [
        ["wipefs", "--no-act"],
        ["wipefs", "--all"],
    ]


def test_a_disk_that_cannot_be_read_keeps_no_label_of_the_others() -> None:
    zfs = FakeZfs(labels={"/dev/vdb": "iolab-x", "/dev/vdc": "iolab-x"}, unreadable={"/dev/vdd"})
    assert remove(zfs.host(), ["iolab-x"], ["/dev/vdb", "/dev/vdc", "/dev/vdd"]) == []
    assert zfs.labels == {}


def test_a_label_that_cannot_be_wiped_is_named() -> None:
    zfs = FakeZfs(labels={"/dev/vdb": "iolab-x", "/dev/vdc": "iolab-x"})
    host = zfs.host()
    answer = host.programs["wipefs"].output
    assert callable(answer)

    def read_only(command: Sequence[str]) -> Completed:
        zfs.unreadable = {"/dev/vdc"} if "--all" in command else set()
        return answer(command)

    host.programs["wipefs"] = FakeProgram(seconds=0.0, output=read_only)
    [message] = remove(host, ["iolab-x"], ["/dev/vdb", "/dev/vdc"])
    assert "/dev/vdc can't be wiped" in message
    assert zfs.labels == {"/dev/vdc": "iolab-x"}


@pytest.mark.parametrize(("fresh", "count"), [("run", 4), ("cell", 3), ("block", 2), ("study", 1)])
def test_pools_are_made_anew_as_often_as_asked(tmp_path: Path, fresh: str, count: int) -> None:
    zfs = FakeZfs()
    target = make(zfs, tmp_path, fresh=fresh)
    target.open(1)
    for run, cell, block in (("1", "a", 1), ("2", "a", 1), ("3", "b", 1), ("4", "a", 2)):
        target.begin(context(run, cell, block))
        target.end(run)
    target.close()
    assert sum(words[:2] == ["zpool", "create"] for words in zfs.said) == count
    assert not zfs.labels


def test_two_builds_take_turns_on_the_same_devices(tmp_path: Path) -> None:
    zfs = FakeZfs()
    old = make(zfs, tmp_path, 1, build="2.1", fresh="study")
    new = make(
        zfs,
        tmp_path,
        2,
        build="2.3",
        fresh="study",
        module_parameters={"zfs_dirty_data_max": 1 << 26},
    )
    for target in (old, new):
        target.open(1)
    seen = []
    for run, target in enumerate((old, new, new, old)):
        target.begin(context(str(run)))
        seen.append(zfs.loaded)
        assert len(zfs.pools) == 1
        target.end(str(run))
    assert seen == ["2.1", "2.3", "2.3", "2.1"]
    assert zfs.reloads == [["2.3", f"zfs_dirty_data_max={1 << 26}"], ["2.1"]]
    assert old.facts().fingerprint["openzfs"] == "2.1.9-1"
    for target in (old, new):
        target.close()
    assert not zfs.pools
    assert zfs.loaded == "2.1"


def test_parameters_of_one_variant_do_not_stay_for_the_next(tmp_path: Path) -> None:
    zfs = FakeZfs()
    plain = make(zfs, tmp_path, 1)
    small = make(zfs, tmp_path, 2, module_parameters={"zfs_dirty_data_max": 1})
    for target in (plain, small):
        target.open(1)
    for run, target in enumerate((plain, small, plain, plain)):
        target.begin(context(str(run)))
        target.end(str(run))
    assert zfs.reloads == [["2.1", "zfs_dirty_data_max=1"], ["2.1"]]
    plain.close()
    small.close()


def test_a_cold_cache_exports_the_pool_and_brings_it_back(tmp_path: Path) -> None:
    zfs = FakeZfs()
    target = make(zfs, tmp_path, cache="cold")
    target.open(1)
    target.begin(context("1"))
    target.chill()
    assert [
        words[1] for words in zfs.said if words[0] == "zpool" and words[1] in ("export", "import")
    ] == ["export", "import"]
    assert not zfs.exported
    target.close()


def test_delays_are_put_on_every_device_and_taken_off(tmp_path: Path) -> None:
    zfs = FakeZfs()
    target = make(zfs, tmp_path, delay="10ms:4")
    target.open(1)
    target.begin(context("1"))
    target.end("1")
    on = [words for words in zfs.said if words[:2] == ["zinject", "-d"]]
    assert [words[4] for words in on] == ["10:4", "10:4"]
    assert sum(words[:2] == ["zinject", "-c"] for words in zfs.said) == 2
    target.close()


def test_a_killed_study_leaves_a_record_by_which_its_pool_goes(tmp_path: Path) -> None:
    zfs = FakeZfs()
    target = make(zfs, tmp_path)
    target.open(1)
    target.begin(context("1"))
    zfs.pools["tank"] = ("/tank", [])
    zfs.labels["/dev/vdk"] = "tank"
    del target
    assert clean_leftovers(zfs.machine, tmp_path) == []
    assert zfs.pools == {"tank": ("/tank", [])}
    assert zfs.labels == {"/dev/vdk": "tank"}
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_names_a_pool_of_others_touches_nothing(tmp_path: Path) -> None:
    zfs = FakeZfs()
    host = zfs.host()
    zfs.pools["tank"] = ("/tank", [])
    (tmp_path / "scratch.made").write_text(
        '{"made": "pool", "name": "tank", "devices": ["/dev/disk/by-id/virtio-disk0"]}\n'
    )
    clean_leftovers(host, tmp_path)
    assert "tank" in zfs.pools


def test_pools_of_others_stand_in_nobodys_way_and_stay(tmp_path: Path) -> None:
    zfs = FakeZfs()
    target = make(zfs, tmp_path, build="2.3")
    target.open(1)
    zfs.pools["tank"] = ("/tank", [])
    with pytest.raises(RunError, match="pools are imported: tank"):
        target.begin(context("1"))
    target.close()
    assert "tank" in zfs.pools


@pytest.mark.parametrize("has_builds", [True, False])
@pytest.mark.parametrize("before", ["", "installed", "2.1"])
def test_the_modules_are_as_before_at_the_end(
    tmp_path: Path, before: str, has_builds: bool
) -> None:
    zfs = FakeZfs()
    zfs.directories = {f"/srv/zfs/{name}.ko": f"{name}-OWN" for name in ("zfs", "spl")}
    build = "2.3" if has_builds else "/srv/zfs"
    target = make(zfs, tmp_path, build=build)
    if not has_builds:
        zfs.machine.programs.pop("openzfs-use")
        before = before and "installed"
    zfs.unload()
    if before:
        zfs.load(before)
    other = make(zfs, tmp_path, 2, build=build)
    for one in (target, other):
        one.open(1)
    target.begin(context("1"))
    assert zfs.loaded == ("2.3" if has_builds else "zfs-OWN")
    target.end("1")
    other.close()
    target.close()
    assert zfs.loaded == before


def test_modules_stay_loaded_while_pools_of_others_use_them(tmp_path: Path) -> None:
    zfs = FakeZfs()
    target = make(zfs, tmp_path, build="2.3")
    zfs.unload()
    target.open(1)
    target.begin(context("1"))
    zfs.pools["tank"] = ("/tank", [])
    with pytest.raises(RunError, match=r"not as they were.*pools are imported: tank"):
        target.close()
    assert (zfs.loaded, list(zfs.pools)) == ("2.3", ["tank"])


def test_refusals(tmp_path: Path) -> None:
    zfs = FakeZfs()
    for wrong, words in (
        ({"layout": "raidz2:12"}, "takes 12 devices.*are 11"),
        ({"build": "9.9"}, r"has no OpenZFS 9\.9.*2\.1, 2\.3"),
        ({"devices": "/dev/vdb"}, "takes 2 devices"),
        ({"devices": ["/dev/vdb", "/dev/vdc"]}, "is not a stable name"),
        ({"devices": ["/dev/disk/by-id/none", "/dev/disk/by-id/no"]}, "does not exist"),
    ):
        with pytest.raises(RunError, match=words):
            make(zfs, tmp_path, **wrong).open(1)
    zfs.machine.links["/dev/disk/by-path/pci-1"] = "/dev/vdb"
    with pytest.raises(RunError, match="names the same device as"):
        make(
            zfs, tmp_path, devices=["/dev/disk/by-id/virtio-disk0", "/dev/disk/by-path/pci-1"]
        ).open(1)
    with pytest.raises(RunError, match="--destructive"):
        make(zfs, tmp_path, permissions=Permissions()).open(1)
    with pytest.raises(RunError, match="free"):
        make(zfs, tmp_path).open(3 * FREE)
    zfs.machine.files["/proc/self/mountinfo"] += "2 1 254:16 / /mnt rw - ext4 /dev/vdb rw\n"
    with pytest.raises(RunError, match="in use: mounted at /mnt"):
        make(zfs, tmp_path).open(1)
    assert not zfs.pools
    assert list(tmp_path.iterdir()) == []


def test_a_pool_that_cannot_be_made_says_zpools_words(tmp_path: Path) -> None:
    zfs = FakeZfs(refuse="cannot create 'x': invalid argument for this pool operation")
    target = make(zfs, tmp_path)
    target.open(1)
    with pytest.raises(RunError, match="invalid argument for this pool operation"):
        target.begin(context("1"))
    target.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"devices": []},
        {"layout": ["mirror", "/dev/disk/by-id/a", "/dev/disk/by-id/b"]},
        {"properties": {"mountpoint": "/x"}},
        {"pool": {"-f": 1}},
        {"module_parameters": {"a": "b c"}},
        {"delay": "5us"},
        {"build": "../x"},
        {"build": "/a b"},
        {"layout": ["-f", "/dev/x"], "devices": []},
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ZpoolOptions.model_validate({"layout": "mirror:2", "devices": ALL, **wrong})


def test_words_of_ones_own_are_taken_as_they_stand(tmp_path: Path) -> None:
    zfs = FakeZfs()
    words = ["mirror", "/dev/disk/by-id/virtio-disk3", "/dev/disk/by-id/virtio-disk1"]
    options = ZpoolOptions.model_validate({"layout": words})
    target = ZpoolTarget(options, zfs.host(), str(tmp_path / "scratch"), MAY)
    zfs.machine.directories.update(str(parent) for parent in [tmp_path, *tmp_path.parents])
    target.open(1)
    target.begin(context("1"))
    assert next(iter(zfs.pools.values()))[1] == words
    assert target.devices() == ("vde", "vdc")
    target.close()


def test_a_host_of_one_build_loads_its_own_modules_anew(tmp_path: Path) -> None:
    zfs = FakeZfs()
    zfs.host(builds=False)
    zfs.machine.files["/sys/module/zfs/parameters/zfs_dirty_data_max"] = "1\n"
    with pytest.raises(RunError, match="no builds of OpenZFS to choose from"):
        make(zfs, tmp_path, build="2.3").open(1)
    target = make(zfs, tmp_path, module_parameters={"zfs_dirty_data_max": 1})
    target.open(1)
    zfs.pools["tank"] = ("/tank", [])
    with pytest.raises(RunError, match="can't be reloaded: pools are imported: tank"):
        target.begin(context("1"))
    del zfs.pools["tank"]
    target.begin(context("2"))
    loading = [words for words in zfs.said if words[0] == "modprobe"]
    assert loading == [["modprobe", "-r", "zfs"], ["modprobe", "zfs", "zfs_dirty_data_max=1"]]
    target.end("2")
    zfs.machine.files["/sys/module/zfs/parameters/zfs_dirty_data_max"] = (
        "2\n"  # a module that keeps limits of its own
    )
    other = make(zfs, tmp_path, 2, module_parameters={"zfs_dirty_data_max": 3})
    other.open(1)
    with pytest.raises(RunError, match="is 2 instead of 3"):
        other.begin(context("3"))
    for one in (target, other):
        one.close()
    assert not zfs.pools


def test_what_a_setup_loaded_is_never_replaced_by_the_installed_build(tmp_path: Path) -> None:
    zfs = FakeZfs()
    zfs.host(builds=False)
    zfs.load("installed")
    zfs.machine.files["/sys/module/zfs/parameters/zfs_txg_timeout"] = "1\n"
    target = make(zfs, tmp_path, reload=True)
    target.open(1)
    zfs.load("PATCHED")  # a set-up
    with pytest.raises(
        RunError,
        match=r"is not the installed one, which would be loaded in its place.*target\.build",
    ):
        target.begin(context("1"))
    assert zfs.loaded == "PATCHED"
    plain = make(zfs, tmp_path, 2)
    plain.open(1)
    plain.begin(context("2"))  # needs no loading
    assert zfs.loaded == "PATCHED"
    for one in (target, plain):
        one.close()
    assert not zfs.pools


def test_a_directory_of_modules_is_a_build(tmp_path: Path) -> None:
    zfs = FakeZfs()
    zfs.host(builds=False)
    zfs.directories = {f"/srv/zfs/module/{name}.ko": f"{name}-PATCHED" for name in ("zfs", "spl")}
    with pytest.raises(RunError, match=r"/srv/none: has no modules zfs\.ko and spl\.ko"):
        make(zfs, tmp_path, build="/srv/none").open(1)
    target = make(zfs, tmp_path, build="/srv/zfs", reload=True, fresh="run")
    target.open(1)
    for run in ("1", "2"):
        target.begin(context(run))
        assert zfs.loaded == "zfs-PATCHED"
        target.end(run)
        target.release(again=True)
    once = [["insmod", f"/srv/zfs/module/{name}.ko"] for name in ("spl", "zfs")]
    assert [words for words in zfs.said if words[0] == "insmod"] == once * 2
    assert not [words for words in zfs.said if words[0] == "modprobe"]
    target.close()


@pytest.mark.parametrize(("fresh", "count"), [("run", 3), ("cell", 3), ("block", 1), ("study", 1)])
def test_a_pool_that_outlives_a_run_is_exported_while_modules_may_change(
    tmp_path: Path, fresh: str, count: int
) -> None:
    zfs = FakeZfs()
    target = make(zfs, tmp_path, fresh=fresh)
    target.open(1)
    for run, build in (("1", "2.3"), ("2", "2.1"), ("3", "2.3")):
        target.release(again=True)
        zfs.load(build)  # fails while a pool is imported
        target.begin(context(run))
        assert zfs.loaded == build
        target.end(run)
    target.release(again=False)
    zfs.load("2.1")
    target.close()
    assert not zfs.pools
    assert not zfs.labels
    assert sum(words[:2] == ["zpool", "create"] for words in zfs.said) == count


STUDY = """
[study]
name = "set-ups"
repetitions = 2
[target]
kind = "zpool"
layout = "mirror:2"
devices = "/dev/disk/by-id/virtio-*"
fresh = "{fresh}"
{more}
[workload]
kind = "fio"
runtime = "2s"
options = {{rw = "randwrite", bs = "4k", size = "1m"}}
[hooks.variant]
before = "before"
after = "after"
[variants.base]
setup = "use base"
teardown = "leave base"
[variants.patched]
setup = "use patched"
teardown = "leave patched"
"""


@pytest.mark.parametrize("fresh", ["run", "study"])
def test_the_order_of_a_change_of_variant(tmp_path: Path, fresh: str) -> None:
    zfs = FakeZfs()
    host = zfs.host()
    host.files |= SYS
    host.programs |= {"fio": fake_fio(), "sync": FakeProgram(seconds=0.0)}
    host.directories.update(str(parent) for parent in [tmp_path, *tmp_path.parents])

    def shell(command: Sequence[str], directory: Path) -> None:
        zfs.said.append(["hook", command[-1]])
        if command[-1].startswith("use "):
            zfs.load(command[-1].removeprefix("use "))

    host.programs["sh"].work = shell

    def fio(command: Sequence[str], directory: Path) -> None:
        zfs.said.append(["fio", zfs.loaded])
        write_result(command, directory)

    host.programs["fio"].work = fio
    (tmp_path / "study.toml").write_text(STUDY.format(fresh=fresh, more=""))
    heard = Listener()
    run_study(
        tmp_path / "study.toml",
        tmp_path / "out",
        listener=heard,
        clock=host.clock,
        host=host,
        how=How(trusted=True, destructive=True),
    )
    assert [run[1:] for run in heard.runs] == [("finished", "")] * 4, heard.notes
    said = [
        words[:2]
        for words in zfs.said
        if words[0] in ("hook", "fio")
        or words[:2]
        in (
            ["zpool", "create"],
            ["zpool", "destroy"],
            ["zpool", "export"],
            ["zpool", "import"],
            ["zfs", "create"],
            ["zfs", "destroy"],
        )
    ]
    made, kept = [["zpool", "create"]], fresh == "study"

    def stay(variant: str, runs: int, first: bool = False, last: bool = False) -> list[list[str]]:
        each = [["zfs", "create"], ["fio", variant], ["zfs", "destroy"]]
        again = [] if kept else [["zpool", "destroy"], *made]
        come = made if first or not kept else [["zpool", "import"]]
        leave = ["zpool", "export"] if kept and not last else ["zpool", "destroy"]
        return [
            ["hook", "before"],
            ["hook", f"use {variant}"],
            *come,
            *each,
            *(again + each) * (runs - 1),
            leave,
            ["hook", f"leave {variant}"],
            ["hook", "after"],
        ]

    # base, patched in block 1, patched, base in block 2: patched is not left between them
    assert said == [*stay("base", 1, first=True), *stay("patched", 2), *stay("base", 1, last=True)]
    assert not zfs.pools
    assert not zfs.labels
