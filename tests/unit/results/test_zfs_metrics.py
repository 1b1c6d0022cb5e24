# SPDX-License-Identifier: Apache-2.0
"""Numbers of a run from what OpenZFS's sources left: within the window, weighted by what happened,
nothing where nothing is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.metrics import find
from iolab.base.registry import load
from iolab.studies.results.facts.host_metrics import observations
from iolab.studies.results.facts.series import cut
from support.zfs_machine import HEAD, group, named

START = 1_700_000_000
SECOND = 10**9


def log(kind: str, *readings: str) -> str:
    return f"# iolab {kind} 1\n" + "".join(
        f"@ {(START + k) * SECOND} {(50 + k) * SECOND}\n{text}" for k, text in enumerate(readings)
    )


def values(window: tuple[int, int] | None = None, **logs: str) -> dict[str, float]:
    tables = {
        kind: cut(load("format", kind)().read(text.encode(), kind), window)
        for kind, text in ((name.replace("zpool_", "zpool-"), text) for name, text in logs.items())
    }
    found = list(observations(tables, {kind: f"{kind}.log" for kind in tables}))
    for one in found:
        metric = find(one.metric)
        assert metric is not None
        assert (metric.unit, Path(one.source_file).stem in tables) == (one.unit, True)
    return {one.metric: one.value for one in found}


def lines(**counters: int) -> str:
    return named(**counters).removeprefix(HEAD)


def test_the_hit_ratio_is_over_all_that_was_asked() -> None:
    text = log(
        "arcstats",
        lines(hits=0, misses=0, size=10),
        lines(hits=99, misses=0, size=20),
        lines(hits=99, misses=1, size=40),
    )
    assert values(arcstats=text) == {"zfs.arc.hit_ratio": pytest.approx(0.99), "zfs.arc.size": 30}


def test_nothing_is_said_of_what_is_not_known() -> None:
    some = {
        "arcstats": log("arcstats", lines(hits=1), lines(hits=2)),
        "zil": log("zil", lines(zil_itx_count=1), lines(zil_itx_count=2)),
    }
    assert values(None, **some) == {}
    assert (
        values(arcstats=log("arcstats", lines(hits=1, misses=1), lines(hits=1, misses=1))) == {}
    )  # nobody asked
    assert values(txgs=log("txgs", "end\n", "end\n")) == {}


def test_groups_count_that_were_done_within_the_window() -> None:
    text = log(
        "txgs",
        "end\n",
        *(f"p\t{group(txg, dirty=txg, sync_ns=txg * SECOND)}end\n" for txg in (1, 2, 9, 30)),
    )
    assert values(txgs=text)["zfs.txg.sync.max"] == 30
    found = values((START * SECOND, (START + 3) * SECOND), txgs=text)
    assert found == {"zfs.txg.sync.p50": 2, "zfs.txg.sync.max": 9, "zfs.dirty.max": 9}


def test_rates_are_means_over_the_window() -> None:
    found = values(
        zil=log(
            "zil", lines(zil_commit_count=0), lines(zil_commit_count=10), lines(zil_commit_count=40)
        ),
        dmu_tx=log("dmu_tx", lines(dmu_tx_dirty_delay=5), lines(dmu_tx_dirty_delay=5)),
    )
    assert found == {"zfs.zil.commits": 20, "zfs.tx.delayed": 0}


def test_waits_weigh_as_much_as_there_were_ios() -> None:
    def report(k: int, ios: int, wait: object) -> str:
        return f"{START + k}\n" + "".join(
            f"{name}\t1\t2\t0\t{ios}\t0\t8\t-\t{wait}" + "\t-" * 8 + "\n"
            for name in ("tank", "vdb")
        )

    rows = "".join(
        report(k, ios, wait)
        for k, (ios, wait) in enumerate(((99, 1_000_000), (1, 101_000_000), (0, "-")), 1)
    )
    text = f"# iolab zpool-iostat 1\n@ {START}000000000 1\npool\ttank\n{START}\n{rows}"
    found = values(zpool_iostat=text)
    assert found == {
        "vdev.write.wait": pytest.approx(2e-3),
        "vdev.write.wait[vdb]": pytest.approx(2e-3),
    }
