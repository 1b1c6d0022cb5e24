# SPDX-License-Identifier: Apache-2.0
"""Every source of OpenZFS alive on a real pool, under both builds, and what becomes of what it
wrote."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from iolab.base.registry import load
from iolab.formats.zfs.histograms import HistogramTable
from iolab.hosts.kinds.rig import RigHost
from iolab.hosts.ssh.remote_paths import scratch_on
from iolab.studies.results.open.results import Results
from iolab.studies.run.study import How, run_study
from iolab.studies.targets.base import Permissions, RunContext
from iolab.studies.targets.zpool.options import ZpoolOptions
from iolab.studies.targets.zpool.target import ZpoolTarget
from support.acting import Listener

DEVICES = "/dev/disk/by-id/virtio-disk*"
KINDS = (
    "arcstats",
    "zil",
    "dmu_tx",
    "dmu_tx_assign",
    "txgs",
    "objset",
    "zpool-iostat",
    "zpool-latency",
    "zpool-sizes",
)
pytestmark = pytest.mark.rig


def totals(host: RigHost, pool: str, kind: str) -> list[int]:
    """What zpool itself has counted for the pool in each queue since its import."""
    said = host.run(["zpool", "iostat", "-Hp", kind, pool], timeout=60).stdout
    rows = [
        [int(field) for field in line.split("\t")[1:]] for line in said.splitlines() if "\t" in line
    ]
    return [sum(column) for column in zip(*rows, strict=True)]


def watch(host: RigHost, directory: Path, path: str) -> dict[str, Any]:
    """All sources while a load writes and syncs for some seconds, and until everything of it is on
    the disks and read."""
    directory.mkdir()
    sources = {
        kind: load("source", kind)(load("source", kind).options(), host, host.clock, ())
        for kind in KINDS
    }
    assert {kind: source.unfit() for kind, source in sources.items()} == dict.fromkeys(KINDS)
    for source in sources.values():
        source.start(directory)
    begin = time.monotonic()
    fio = host.start(
        [
            "fio",
            "--name=x",
            f"--directory={path}",
            "--rw=randrw",
            "--bs=8k",
            "--size=2m",
            "--sync=1",
            "--runtime=5",
            "--time_based",
        ],
        cwd=directory,
        stdout=directory / ".fio",
        stderr=directory / ".fio.stderr",
    )
    synced = False
    while time.monotonic() - begin < 16:
        if not synced and fio.wait(0) is not None:
            host.run(["zpool", "sync"], timeout=60)
            synced = True
        for source in sources.values():
            source.poll()
        time.sleep(0.1)
    fio.end()
    for source in sources.values():
        source.stop()
    assert synced
    return sources


@pytest.mark.parametrize("build", ["2.1", "2.3"])
def test_every_source_lives_and_no_io_is_lost(host: RigHost, tmp_path: Path, build: str) -> None:
    options = ZpoolOptions.model_validate(
        {
            "layout": "mirror:2 + log stripe:1",
            "devices": DEVICES,
            "build": build,
            "pool": {"ashift": 12},
        }
    )
    target = ZpoolTarget(
        options, host, scratch_on(host, tmp_path / "scratch"), Permissions(destructive=True)
    )
    try:
        target.open(1 << 20)
        place = target.begin(RunContext("0001-aa", "cell", 1, 1 << 20))
        pool = target._pool
        host.run(["zpool", "sync"], timeout=60)
        before = {kind: totals(host, pool, kind) for kind in ("-w", "-r")}
        sources = watch(host, tmp_path / "run", place.path)
        after = {kind: totals(host, pool, kind) for kind in ("-w", "-r")}
        tables = {}
        for kind, source in sources.items():
            assert source.trouble == "", kind
            assert source.readings >= 8, kind  # an emulated CPU is late at times
            log = tmp_path / "run" / f"{kind}.log"
            tables[kind] = load("format", kind)().read(log.read_bytes(), log.name)
            assert tables[kind].damaged == (), kind
        for kind, flag, queues in (
            ("zpool-latency", "-w", ("read.wait", "write.wait")),
            (
                "zpool-sizes",
                "-r",
                ("sync_read.alone", "sync_read.merged", "sync_write.alone", "sync_write.merged"),
            ),
        ):
            table = tables[kind]
            assert isinstance(table, HistogramTable)
            for place_of, queue in enumerate(queues):
                assert (
                    sum(table.total("pool", queue).values())
                    == after[flag][place_of] - before[flag][place_of]
                ), (kind, queue)
        assert sum(tables["zpool-latency"].total("pool", "write.wait").values()) > 20
        owners = {column.partition("[")[2].rstrip("]") for column in tables["zpool-iostat"].columns}
        assert owners == {"pool", "mirror-0", *target.devices()}
        assert ("vdev.rebuild.wait[pool]" in tables["zpool-iostat"].columns) == (build == "2.3")
        assert len(tables["txgs"].txg) >= 1
        assert tables["txgs"].lost == 0
        assert (tables["txgs"].sync_time > 0).all()
        assert tables["zil"].columns["zil.commits"].sum() > 5
        assert ("zil.stalls" in tables["zil"].columns) == (build == "2.3")
        assert "arc.demand.data.hits" in tables["arcstats"].columns
        assert tables["objset"].columns[f"objset.write.bw[{pool}/0001-aa]"].sum() > 8192
        target.end("0001-aa")
    finally:
        target.close()


def test_a_studys_runs_have_their_numbers_and_a_verdict_on_the_sources(
    host: RigHost, tmp_path: Path
) -> None:
    (tmp_path / "study.toml").write_text(f"""
sources = {json.dumps(["diskstats", *KINDS])}
[study]
name = "watched"
repetitions = 1
[target]
kind = "zpool"
layout = "mirror:2"
devices = "{DEVICES}"
pool = {{ ashift = 12 }}
[workload]
kind = "fio"
runtime = "12s"
[workload.options]
rw = "randwrite"
bs = "8k"
size = "4m"
sync = 1
[variants.one]
""")
    listener = Listener()
    results = run_study(
        tmp_path / "study.toml",
        tmp_path / "results",
        listener=listener,
        host=host,
        clock=host.clock,
        how=How(destructive=True, trusted=True),
    )
    assert [run[1:] for run in listener.runs] == [("finished", "")]
    [run] = Results(results).runs
    assert not [reason for reason in run.verdict.reasons if reason.code.startswith("monitor")]
    found = {name: observation.value for name, observation in run.observations.items()}
    assert found["zfs.arc.size"] > 1 << 20
    assert 0 < found["zfs.txg.sync.p50"] <= found["zfs.txg.sync.max"] < 60
    assert found["zfs.dirty.max"] > 8192
    assert found["zfs.zil.commits"] > 1
    assert 0 < found["vdev.write.wait"] < 10
    assert 0 < found["vdev.write.wait[mirror-0]"] < 10
