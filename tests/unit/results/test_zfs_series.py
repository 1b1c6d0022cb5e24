# SPDX-License-Identifier: Apache-2.0
"""Series of a run from what OpenZFS's sources left: cut to the window, a point for each group,
nothing where nothing is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iolab.base.metrics import find
from iolab.base.registry import load
from iolab.base.verdict import Verdict
from iolab.studies.results.evidence.model import Derived, Series
from iolab.studies.results.facts.host_metrics import host_series
from iolab.studies.results.facts.series import cut
from iolab.studies.results.open.cache import write_caches
from iolab.studies.results.open.cache_details import detail_tables, read_details
from support.zfs_machine import HEAD, group, named

START = 1_700_000_000
SECOND = 10**9


def log(kind: str, *readings: str) -> str:
    return f"# iolab {kind} 1\n" + "".join(
        f"@ {(START + k) * SECOND} {(50 + k) * SECOND}\n{text}" for k, text in enumerate(readings)
    )


def lines(**counters: int) -> str:
    return named(**counters).removeprefix(HEAD)


def drawn(window: tuple[int, int] | None = None, **logs: str) -> dict[str, Series]:
    named_logs = {name.replace("zpool_", "zpool-"): text for name, text in logs.items()}
    tables = {
        kind: cut(load("format", kind)().read(text.encode(), kind), window)
        for kind, text in named_logs.items()
    }
    found = host_series(tables, window)
    for name, one in found.items():
        metric = find(name)
        assert metric is not None
        assert (metric.unit, len(one.time)) == (one.unit, len(one.values))
    return found


def test_readings_are_points_in_seconds_since_the_window_began() -> None:
    text = log(
        "arcstats",
        lines(hits=0, misses=0, size=10),
        lines(hits=3, misses=1, size=20),
        lines(hits=3, misses=1, size=40),
    )
    found = drawn(((START + 1) * SECOND, (START + 2) * SECOND), arcstats=text)
    assert found["zfs.arc.size"].time.tolist() == [1]
    assert found["zfs.arc.size"].values.tolist() == [40]
    assert "zfs.arc.hit_ratio" not in found  # nobody asked in that second


def test_a_group_is_a_point_when_it_was_committed() -> None:
    text = log(
        "txgs",
        "end\n",
        f"p\t{group(1, dirty=5, sync_ns=2 * SECOND)}end\n",
        "end\n",
        f"p\t{group(3, dirty=7, sync_ns=SECOND)}p\t{group(4, dirty=9, sync_ns=3 * SECOND)}end\n",
    )
    found = drawn((START * SECOND, (START + 3) * SECOND), txgs=text)
    assert found["zfs.txg.sync"].time.tolist() == [1, 3, 3]
    assert found["zfs.txg.sync"].values.tolist() == [2, 1, 3]
    assert found["zfs.txg.dirty"].values.tolist() == [5, 7, 9]
    assert {found[name].reading for name in ("zfs.txg.sync", "zfs.txg.dirty")} == {1}
    assert found["zfs.txg.sync"].steps.tolist() == [1, 1, 1]
    assert drawn((START * SECOND, (START + 2) * SECOND), txgs=text)[
        "zfs.txg.dirty"
    ].values.tolist() == [5]


def test_that_values_are_of_groups_outlives_the_cache(tmp_path: Path) -> None:
    one = np.array([1.0])
    kept = (Series("zfs.txg.sync", "s", one, one, 0.5), Series("write.iops", "1/s", one, one))
    write_caches(tmp_path, detail_tables({"1": Derived((), Verdict.of([]), series=kept)}), "key")
    found = read_details(tmp_path, "key")
    assert found is not None
    assert [(each.name, each.reading) for each in found["1"][0]] == [
        ("zfs.txg.sync", 0.5),
        ("write.iops", None),
    ]


def test_waits_for_a_group_are_told_by_the_bucket_that_99_of_100_lie_below() -> None:
    def reading(short: int, long: int) -> str:
        return f"p\t1024 ns                         4    {short}\np\t1048576 ns                      4    {long}\nend\n"

    found = drawn(
        dmu_tx_assign=log(
            "dmu_tx_assign", reading(0, 0), reading(99, 1), reading(197, 3), reading(197, 3)
        )
    )
    assert found["zfs.tx.wait.p99"].values[:2].tolist() == [
        pytest.approx(1.024e-6),
        pytest.approx(1.048576e-3),
    ]
    assert np.isnan(found["zfs.tx.wait.p99"].values[2])
    assert found["zfs.tx.waited"].values.tolist() == [100, 100, 0]


def test_each_vdev_has_its_line_and_the_pool_the_plain_name() -> None:
    rows = "".join(
        f"{START + k}\n"
        + "".join(
            f"{name}\t1\t2\t0\t5\t0\t8\t-\t1000000" + "\t-" * 8 + "\n" for name in ("tank", "vdb")
        )
        for k in (1, 2)
    )
    found = drawn(
        zpool_iostat=f"# iolab zpool-iostat 1\n@ {START}000000000 1\npool\ttank\n{START}\n{rows}"
    )
    assert set(found) == {"vdev.write.wait", "vdev.write.wait[vdb]"}
    assert found["vdev.write.wait"].values[0] == pytest.approx(1e-3)


def test_nothing_is_drawn_of_what_is_not_known() -> None:
    assert (
        drawn(
            arcstats=log("arcstats", lines(mfu_size=1), lines(mfu_size=2)),
            txgs=log("txgs", "end\n", "end\n"),
        )
        == {}
    )


def test_the_l2arc_is_drawn_where_there_is_one() -> None:
    readings = [
        lines(hits=at, misses=at, size=1, l2_hits=5 * at, l2_size=100 * at, l2_hdr_size=7 * at)
        for at in range(3)
    ]
    found = drawn(arcstats=log("arcstats", *readings))
    assert found["zfs.l2arc.hits"].values.tolist() == [5, 5]
    assert found["zfs.l2arc.size"].values.tolist() == [100, 200]
    assert found["zfs.l2arc.headers"].values.tolist() == [7, 14]
    none = [
        lines(hits=at, misses=at, size=1, l2_hits=0, l2_size=0, l2_hdr_size=0) for at in range(3)
    ]
    assert not any("l2arc" in name for name in drawn(arcstats=log("arcstats", *none)))
