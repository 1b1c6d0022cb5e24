# SPDX-License-Identifier: Apache-2.0
"""The sources of OpenZFS: which pools they watch, what they keep, what they say when something is
missing, and that they lived."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import RunError
from iolab.base.registry import load
from iolab.hosts.kinds.fake import FakeHost
from iolab.studies.sources.zpool_iostat import ZpoolLatencySource
from support.acting import fake_host
from support.zfs_machine import FILES, HEAD, POOL, ROOT, TXGS, group, named, with_zfs

GLOBAL = ("arcstats", "zil", "dmu_tx")
OF_POOLS = ("txgs", "dmu_tx_assign", "objset")
PROCESSES = ("zpool-iostat", "zpool-latency", "zpool-sizes")


def make(kind: str, host: FakeHost, **options: Any) -> Any:
    plugin = load("source", kind)
    return plugin(plugin.options(**options), host, host.clock, ["sda"])


def kept(directory: Path, kind: str) -> list[str]:
    return [
        line
        for line in (directory / f"{kind}.log").read_text().splitlines()
        if not line.startswith(("#", "@"))
    ]


def read(kind: str, directory: Path) -> Any:
    return load("format", kind)().read((directory / f"{kind}.log").read_bytes(), f"{kind}.log")


@pytest.mark.parametrize("kind", [*GLOBAL, *OF_POOLS])
def test_without_openzfs_there_is_nothing_to_read(kind: str) -> None:
    assert "OpenZFS is not loaded" in make(kind, fake_host()).unfit()


def test_a_counter_that_this_release_lacks_is_said() -> None:
    host = with_zfs(fake_host())
    del host.files[f"{ROOT}/zil"]
    assert f"{ROOT}/zil can't be read" in make("zil", host).unfit()


@pytest.mark.parametrize("kind", OF_POOLS)
def test_a_pool_may_come_after_the_source_was_asked(kind: str, tmp_path: Path) -> None:
    host = with_zfs(fake_host())
    pools = {
        path: host.files.pop(path)
        for path in list(host.files)
        if path.startswith(f"{ROOT}/{POOL}/")
    }
    source = make(kind, host)
    assert source.unfit() is None
    source.start(tmp_path)
    assert (source.readings, source.lost) == (0, 1)
    host.files |= pools
    host.clock.sleep(1.0)
    source.poll()
    source.stop()
    assert (source.readings, source.lost) == (1, 1)


@pytest.mark.parametrize("kind", PROCESSES)
def test_zpool_without_a_pool_or_a_program_says_so(kind: str, tmp_path: Path) -> None:
    host = with_zfs(fake_host(), kind)
    host.files = {path: text for path, text in host.files.items() if POOL not in path}
    with pytest.raises(RunError, match="no pool is imported"):
        make(kind, host).start(tmp_path)
    with pytest.raises(RunError, match="no such pool is imported"):
        make(kind, with_zfs(fake_host(), kind), pool="tank").start(tmp_path)
    del host.programs["zpool"]
    assert "apt install zfsutils-linux" in make(kind, host).unfit()


@pytest.mark.parametrize(("named_pool", "expected"), [("", (POOL,)), ("tank", ("tank",))])
def test_iolabs_own_pools_are_watched_unless_one_is_named(
    named_pool: str, expected: tuple[str, ...], tmp_path: Path
) -> None:
    host = with_zfs(fake_host())
    host.files[f"{ROOT}/tank/txgs"] = TXGS
    source = make("zpool-iostat", host, pool=named_pool)
    source.start(tmp_path)
    source.stop()
    [(command, directory)] = host.started
    assert (command[:2], command[3:], directory) == (
        ("sh", "-c"),
        ("zpool-iostat", "1", *expected),
        tmp_path,
    )
    assert 'exec zpool iostat -HpyL -T u -l -v "$@" "$every"' in command[2]
    assert [path.name for path in tmp_path.iterdir()] == ["zpool-iostat.log"]


def test_without_a_pool_of_iolabs_all_are_watched(tmp_path: Path) -> None:
    host = with_zfs(fake_host())
    host.files = {path.replace(POOL, "tank"): text for path, text in host.files.items()} | {
        f"{ROOT}/other/txgs": TXGS
    }
    source = make("zpool-latency", host)
    source.start(tmp_path)
    source.stop()
    assert host.started[0][0][4:] == ("1", "other", "tank")


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_zpool_that_dies_says_when_and_how(kind: str, tmp_path: Path) -> None:
    host = with_zfs(fake_host(), kind, seconds=4.5, exit_code=1)
    source = make(kind, host)
    source.start(tmp_path)
    for _ in range(10):
        host.clock.sleep(1.0)
        source.poll()
    source.stop()
    assert source.trouble == "ended early, within 5 s, exit code 1"
    assert (source.readings, source.lost) == (5, 5)
    assert len(read(kind, tmp_path).time_ns) == 4


def test_txgs_are_kept_until_they_are_done_and_a_jump_is_a_loss(tmp_path: Path) -> None:
    host = with_zfs(fake_host())
    source = make("txgs", host)
    source.start(tmp_path)
    for ring in ((6, 7, 8), (7, 8, 9), (107, 108, 109)):
        host.files[f"{ROOT}/{POOL}/txgs"] = TXGS + "".join(
            group(txg, "C" if txg < ring[-1] else "O") for txg in ring
        )
        host.clock.sleep(1.0)
        source.poll()
    assert source.lost == 97
    assert "missed 97 transaction groups" in source.trouble
    source.stop()
    txgs = " ".join(line.split()[1] if line != "end" else "|" for line in kept(tmp_path, "txgs"))
    assert txgs == "5 6 7 | 6 7 8 | 7 8 9 | 107 108 109 |"
    table = read("txgs", tmp_path)
    assert table.lost == 97
    assert table.txg.tolist() == [7, 8, 107, 108]


def test_a_pool_made_anew_is_no_loss(tmp_path: Path) -> None:
    host = with_zfs(fake_host())
    host.files[f"{ROOT}/{POOL}/txgs"] = TXGS + group(900) + group(901, "O")
    source = make("txgs", host)
    source.start(tmp_path)
    host.files[f"{ROOT}/{POOL}/txgs"] = TXGS + group(5) + group(6, "O")
    host.clock.sleep(1.0)
    source.poll()
    source.stop()
    assert (source.lost, source.trouble) == (0, "")
    assert read("txgs", tmp_path).txg.tolist() == [5]


def test_without_a_history_of_groups_there_is_nothing_to_read() -> None:
    host = with_zfs(fake_host())
    host.files["/sys/module/zfs/parameters/zfs_txg_history"] = "0\n"
    assert "zfs_txg_history is 0" in make("txgs", host).unfit()


def test_a_data_set_is_known_by_its_name_and_may_come_and_go(tmp_path: Path) -> None:
    host = with_zfs(fake_host())
    source = make("objset", host)
    source.start(tmp_path)
    host.files[f"{ROOT}/{POOL}/objset-0x99"] = (
        HEAD + "dataset_name                    7    x/new\n" + named(writes=1).removeprefix(HEAD)
    )
    for _ in range(2):
        host.clock.sleep(1.0)
        source.poll()
    del host.files[f"{ROOT}/{POOL}/objset-0x99"]
    host.clock.sleep(1.0)
    source.poll()
    source.stop()
    table = read("objset", tmp_path)
    assert table.damaged == ()
    assert table.columns[f"objset.write.bw[{POOL}/a b]"].tolist() == [0, 0, 0]
    assert str(table.columns["objset.write.calls[x/new]"].tolist()) == "[nan, 0.0, nan]"


def test_what_shows_live(tmp_path: Path) -> None:
    host = with_zfs(fake_host())
    sources = {kind: make(kind, host) for kind in ("arcstats", "zil")}
    for source in sources.values():
        source.start(tmp_path)
    host.files[f"{ROOT}/zil"] = FILES[f"{ROOT}/zil"].replace("418", "450")
    host.clock.sleep(2.0)
    for source in sources.values():
        source.poll()
    assert sources["arcstats"].latest() == {"zfs.arc.size": 11294736.0}
    assert sources["zil"].latest() == {"zfs.zil.commits": pytest.approx(16.0)}


def test_the_shell_asks_on_its_beat_leaves_rows_of_zeros_out_and_ends_with_zpool(
    tmp_path: Path,
) -> None:
    """The script itself, with a zpool of three answers: the fourth fails."""
    if shutil.which("sed") is None:
        pytest.skip("no sed here")
    fake = tmp_path / "zpool"
    fake.write_text(f"""#!/bin/sh
echo x >>{tmp_path}/asked
n=$(wc -l <{tmp_path}/asked)
[ "$n" -gt 3 ] && {{ echo "cannot open 'tank': no such pool" >&2; exit 1; }}
printf '\\ntank\\n1\\t0\\t0\\n3\\t0\\t0\\n7\\t0\\t%d\\n15\\t0\\t0\\n' "$n"
""")
    fake.chmod(0o755)
    script = ZpoolLatencySource.script.replace("* 100", "* 10")  # a tenth of a second
    said = subprocess.run(
        ["sh", "-c", script, "x", "1", "tank"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert said.returncode == 1
    assert "no such pool" in said.stderr
    lines = said.stdout.splitlines()
    assert [line for line in lines if not line.startswith("@")] == [
        line
        for n in (1, 2, 3)
        for line in ("pool\ttank", "", "tank", "1\t0\t0", f"7\t0\t{n}", "end")
    ]
    times = [int(line.split()[1]) for line in lines if line.startswith("@")]
    assert len(times) == 3
    assert 0.15e9 < times[2] - times[0] < 5e9
