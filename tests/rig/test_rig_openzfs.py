# SPDX-License-Identifier: Apache-2.0
"""Real OpenZFS on the rig: pools from their making to their end, two builds compared, and what goes
wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import RunError
from iolab.cli.main import run as iolab
from iolab.hosts.kinds.rig import RigHost, RigOptions, running_machine
from iolab.hosts.rigs.builds import BuildRecord
from iolab.hosts.rigs.host_builds import HostBuildMaker, HostBuilds
from iolab.hosts.rigs.host_directory import HostDirectory
from iolab.hosts.rigs.recipe import find_rig
from iolab.hosts.ssh.remote_paths import scratch_on
from iolab.studies.plan.cells.plan import PlannedRun
from iolab.studies.run.study import run_study
from iolab.studies.targets.base import Permissions, RunContext
from iolab.studies.targets.zpool.modules import builds
from iolab.studies.targets.zpool.options import ZpoolOptions
from iolab.studies.targets.zpool.target import ZpoolTarget
from support.acting import Listener, split_how

DEVICES = "/dev/disk/by-id/virtio-disk*"
MAY = Permissions(destructive=True)
pytestmark = pytest.mark.rig


def pool(
    host: RigHost, tmp_path: Path, permissions: Permissions = MAY, **options: Any
) -> ZpoolTarget:
    found = ZpoolOptions.model_validate({"layout": "stripe:1", "devices": DEVICES, **options})
    return ZpoolTarget(found, host, scratch_on(host, tmp_path / "scratch"), permissions)


def study(tmp_path: Path, variants: str, **more: str) -> Path:
    text = f"""
[study]
name = "on-the-rig"
repetitions = {more.get("repetitions", "1")}
[target]
kind = "zpool"
layout = "mirror:2"
devices = "{DEVICES}"
fresh = "block"
pool = {{ ashift = 12 }}
properties = {{ recordsize = "8k", compression = "lz4" }}
[workload]
kind = "fio"
runtime = "{more.get("runtime", "3s")}"
[workload.options]
rw = "randwrite"
bs = "8k"
size = "4m"
sync = 1
{variants}
"""
    (tmp_path / "study.toml").write_text(text)
    return tmp_path / "study.toml"


def done(host: RigHost, path: Path, listener: Listener, **more: Any) -> Path:
    return run_study(
        path,
        path.parent / "results",
        split_how(more := {"destructive": True, "trusted": True, **more}),
        listener=listener,
        host=host,
        clock=host.clock,
        **more,
    )


@pytest.mark.parametrize("layout", ["stripe:2", "mirror:2", "raidz2:4 + log stripe:1"])
def test_a_pool_from_its_making_to_its_end(host: RigHost, tmp_path: Path, layout: str) -> None:
    target = pool(
        host,
        tmp_path,
        layout=layout,
        pool={"ashift": 12},
        properties={"recordsize": "128k", "compression": "lz4"},
    )
    try:
        target.open(1 << 20)
        place = target.begin(RunContext("0001-aa", "cell", 1, 1 << 20))
        # 8 MiB, half of it zeros in every record: lz4 makes half of them, and ZFS's books say so
        half = f"f=open('{place.path}/file','wb'); import os; [f.write(os.urandom(65536)+bytes(65536)) for _ in range(64)]; f.close()"
        assert host.run(["python3", "-c", half], timeout=120).exit_code == 0
        said = target.observe()
        assert said["written_bytes"] == 8 << 20
        assert 1.7 < said["compressratio"] < 2.2
        assert 0 < said["fill"] < 0.5
        assert said["pool"]["properties"]["ashift"] == "12"
        assert said["dataset"]["recordsize"] == "131072"
        assert len(said["module_parameters"]) > 100
        assert any("ONLINE" in line for line in said["pool"]["status"])
        assert (
            len(target.devices()) == len(target.facts().facts["devices"]) == target._layout.devices
        )
        target.chill()
        assert host.run(["ls", place.path]).stdout == "file\n"
        target.end("0001-aa")
    finally:
        target.close()
    assert not (tmp_path / "scratch.made").exists()


def test_two_builds_are_compared_each_under_its_own_modules(host: RigHost, tmp_path: Path) -> None:
    before = [build.branch for build in builds(host) if build.loaded]
    path = study(
        tmp_path,
        """
[variants.old]
target.build = "2.1"
[variants.new]
target.build = "2.3"
target.module_parameters = { zfs_dirty_data_max = 67108864 }
""",
    )
    listener = Listener()
    results = done(host, path, listener)
    assert [run[1:] for run in listener.runs] == [("finished", "")] * 2
    seen: dict[str, Mapping[str, Any]] = {}
    for run_dir in (results / "runs").iterdir():
        plan, said = (
            json.loads((run_dir / "run.json").read_text()),
            json.loads((run_dir / "target.json").read_text()),
        )
        seen[plan["variant"]] = said
        assert plan["host"] == host.name
        assert plan["window"][1] > plan["window"][0]
        assert {"diskstats.log", "fio.json", "fio_iops.log"} <= {
            file.name for file in run_dir.iterdir()
        }
    assert seen["old"]["version"].startswith("2.1.")
    assert seen["new"]["version"].startswith("2.3.")
    assert seen["new"]["module_parameters"]["zfs_dirty_data_max"] == "67108864"
    assert seen["old"]["module_parameters"]["zfs_dirty_data_max"] != "67108864"
    environment = json.loads((results / "environment.json").read_text())["facts"]
    assert environment["rig"]["accelerator"] in ("kvm", "tcg")
    assert abs(environment["clock_offset_ns"]) < 3600e9
    assert iolab(["compare", str(results)]) == 0
    if before:
        assert [build.branch for build in builds(host) if build.loaded] == before


def test_a_build_below_its_own_directory_is_loaded_and_deleted(
    root: Path, host: RigHost, tmp_path: Path
) -> None:
    host.run(["openzfs-use", "--none"], timeout=300)
    directory = HostDirectory(host)
    HostBuildMaker(find_rig(str(root / "rigs/openzfs")), host, lambda said: None)._prepare("own")
    directory.run('cp -a /opt/openzfs/2.3 "$1/own"', "can't be copied")
    directory.run('ln -s openzfs-program "$1/.bin/zpool"', "can't be linked")
    record = BuildRecord("own", "2.3", "d", "", {}, "", "2.3")
    directory.put(f"{directory.path}/own/build.json", json.dumps(record.as_data()))
    host_builds = HostBuilds(host)
    try:
        assert host_builds.records() == [record]
        target = pool(host, tmp_path, layout="mirror:2", build="own")
        try:
            target.open(1 << 20)
            target.begin(RunContext("0001-aa", "cell", 1, 1 << 20))
            assert host.which("zpool") == f"{directory.path}/.bin/zpool"
            facts = target.observe()
            assert (facts["build"]["loaded"], facts["build"]["record"]["name"]) == ("own", "own")
            assert (
                facts["build"]["modules"]["zfs"]["srcversion"] == facts["build"]["expected"]["zfs"]
            )
            with pytest.raises(RunError, match="is loaded"):
                host_builds.delete("own")
            refused = host.run([f"{directory.path}/.bin/openzfs-use", "--none"], timeout=300)
            assert (refused.exit_code, "pools are imported" in refused.stderr) == (1, True)
            target.end("0001-aa")
        finally:
            target.close()
        assert not host.is_directory("/sys/module/zfs")
        broken = 'printf x > "$1/own/lib/modules/$(uname -r)/extra/spl.ko"'
        directory.run(broken, "can't be damaged")
        failed = host.run(["openzfs-use", "own"], timeout=300)
        assert failed.stderr.startswith("openzfs-use: the modules of build own can't be loaded")
        assert failed.stderr.count("\n") == 1
    finally:
        host_builds.delete("own")
    assert not host.is_directory("/opt/iolab")
    assert host.run(["openzfs-use", "2.1"], timeout=300).exit_code == 0


def test_a_pool_that_cannot_be_made_fails_with_zpools_words(host: RigHost, tmp_path: Path) -> None:
    target = pool(host, tmp_path, pool={"ashift": 99})
    try:
        target.open(1)
        with pytest.raises(RunError, match="ashift"):
            target.begin(RunContext("0001-aa", "cell", 1, 1))
    finally:
        target.close()


def test_a_device_in_use_or_with_data_is_refused(host: RigHost, tmp_path: Path) -> None:
    disk = "/dev/disk/by-id/virtio-disk0"
    assert (
        host.run(
            ["sh", "-ec", f"mkfs.ext4 -q {disk}; mkdir -p /mnt/x; mount {disk} /mnt/x"], timeout=120
        ).exit_code
        == 0
    )
    try:
        with pytest.raises(RunError, match="in use: mounted at /mnt/x"):
            pool(host, tmp_path, Permissions(destructive=True, force=True)).open(1)
        host.run(["umount", "/mnt/x"])
        with pytest.raises(RunError, match=r"carries data: ext4.*--force"):
            pool(host, tmp_path).open(1)
    finally:
        host.run(["sh", "-c", f"umount /mnt/x; wipefs -qa {disk}"])
    with pytest.raises(RunError, match="--destructive"):
        pool(host, tmp_path, Permissions()).open(1)
    paths = {
        host.resolve(f"/dev/disk/by-path/{name}"): f"/dev/disk/by-path/{name}"
        for name in host.list_directory("/dev/disk/by-path")
    }
    root, same = paths["/dev/vda"], paths[host.resolve(disk)]
    with pytest.raises(RunError, match="holds the root file system"):
        pool(host, tmp_path, devices=root).open(1)
    with pytest.raises(RunError, match="names the same device as"):
        pool(host, tmp_path, devices=[disk, same], layout="stripe:2").open(1)


def test_a_host_without_fio_is_told_before_the_first_run(host: RigHost, tmp_path: Path) -> None:
    assert host.run(["mv", "/usr/bin/fio", "/usr/bin/fio.away"]).exit_code == 0
    try:
        with pytest.raises(RunError, match=r"fio is not installed on host 'rig:.*apt install fio"):
            done(host, study(tmp_path, "[variants.one]"), Listener())
    finally:
        host.run(["mv", "/usr/bin/fio.away", "/usr/bin/fio"])
    assert not (tmp_path / "results").exists()


class _Cutter(Listener):
    """Kills the far end of the connection once, in the middle of the first run."""

    def __init__(self, host: RigHost) -> None:
        super().__init__()
        self._far, self.cut = int(host.channel().far["pid"]), False
        self._other = RigHost(RigOptions(name=host.name.partition(":")[2]))

    def update_run(
        self, run: PlannedRun, seconds: float, expected: float, latest: Mapping[str, float]
    ) -> None:
        if seconds > 1 and not self.cut:
            self.cut = True
            with self._other:
                assert (
                    self._other.run(
                        ["sh", "-c", f"kill -9 $(ps -o ppid= -p {self._far})"]
                    ).exit_code
                    == 0
                )


def test_a_connection_killed_in_mid_run_is_a_judged_failure(host: RigHost, tmp_path: Path) -> None:
    listener = _Cutter(host)
    results = done(
        host,
        study(
            tmp_path, "[variants.one]\n[variants.two]\nworkload.options.fdatasync = 1", runtime="6s"
        ),
        listener,
    )
    assert listener.cut
    assert [status for _, status, _ in listener.runs] == ["failed", "finished"]
    assert "the connection to the host is lost" in listener.runs[0][2]
    assert host.run(["pgrep", "-x", "fio"]).exit_code == 1
    assert iolab(["show", str(results)]) == 0


def test_a_disk_does_what_it_was_given(host: RigHost) -> None:
    state = running_machine(host.name.partition(":")[2])
    if state.disk_iops is None:
        pytest.skip("this machine's disks have no limit")
    said = host.run(
        [
            "fio",
            "--name=x",
            "--filename=/dev/disk/by-id/virtio-disk1",
            "--readonly",
            "--rw=randread",
            "--bs=4k",
            "--direct=1",
            "--ioengine=libaio",
            "--iodepth=8",
            "--runtime=8",
            "--time_based",
            "--output-format=json",
        ],
        timeout=120,
    )
    iops = json.loads(said.stdout)["jobs"][0]["read"]["iops"]
    assert iops == pytest.approx(state.disk_iops, rel=0.15)


def test_delays_of_devices_are_felt(host: RigHost, tmp_path: Path) -> None:
    target = pool(host, tmp_path, delay="50ms")
    try:
        target.open(1)
        place = target.begin(RunContext("0001-aa", "cell", 1, 1))
        said = host.run(
            [
                "fio",
                "--name=x",
                f"--directory={place.path}",
                "--rw=write",
                "--bs=8k",
                "--size=1m",
                "--sync=1",
                "--runtime=4",
                "--time_based",
                "--output-format=json",
            ],
            timeout=120,
        )
        assert json.loads(said.stdout)["jobs"][0]["write"]["lat_ns"]["mean"] > 45e6
        target.end("0001-aa")
        assert "No handlers" in host.run(["zinject"]).stdout
    finally:
        target.close()


def test_words_are_run_in_the_machine(host: RigHost, capfd: pytest.CaptureFixture[str]) -> None:
    name = host.name.partition(":")[2]
    assert iolab(["rig", "ssh", name, "cat", "/etc/hostname"]) == 0
    # machines of a network have names of their own
    assert capfd.readouterr().out in ("rig\n", f"{name}\n")
