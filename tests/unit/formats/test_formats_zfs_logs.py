# SPDX-License-Identifier: Apache-2.0
"""iolab's logs of OpenZFS: what each release tells, what it doesn't, histograms that lose no count,
torn and damaged files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab._core import grid_bounds
from iolab.base.errors import FormatError
from iolab.base.registry import load
from iolab.formats.detect import detect
from support.zfs_machine import HEAD, group, named

DATA = Path(__file__).parents[2] / "data" / "formats"
START = 1_700_000_000
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


def log(kind: str, *readings: str, end: str = "") -> str:
    return f"# iolab {kind} 1\n" + "".join(
        f"@ {(START + k) * 10**9} {(50 + k) * 10**9}\n{text}{end}"
        for k, text in enumerate(readings)
    )


def read(kind: str, text: str) -> Any:
    return load("format", kind)().read(text.encode(), f"{kind}.log")


def lines(**counters: int) -> str:
    return named(**counters).removeprefix(HEAD)


def near(*values: float) -> Any:
    return pytest.approx(values, nan_ok=True)


def test_hits_of_both_releases_mean_the_same() -> None:
    """2.1 counts a buffer whose read is under way as a hit, 2.3 by itself."""
    old = read(
        "arcstats",
        log(
            "arcstats",
            lines(hits=10, misses=0),
            lines(hits=40, misses=10),
            lines(hits=40, misses=10),
        ),
    )
    new = read(
        "arcstats",
        log(
            "arcstats",
            lines(hits=10, iohits=0, misses=0),
            lines(hits=30, iohits=10, misses=10),
            lines(hits=30, iohits=10, misses=10),
        ),
    )
    for table in (old, new):
        assert table.columns["arc.hits"].tolist() == near(30, 0)
        assert table.columns["arc.hit_ratio"].tolist() == near(
            0.75, np.nan
        )  # nobody asked: unknown, not 0


def test_what_a_release_does_not_tell_is_missing_never_0() -> None:
    columns = read("arcstats", log("arcstats", lines(hits=1), lines(hits=2))).columns
    assert set(columns) == {"arc.hits"}
    assert set(
        read("zil", log("zil", lines(zil_commit_count=1), lines(zil_commit_count=5))).columns
    ) == {"zil.commits"}
    one_lacks = read(
        "arcstats",
        log("arcstats", lines(hits=1, size=4096), lines(hits=2), lines(hits=3, size=8192)),
    )
    assert one_lacks.columns["arc.size"].tolist() == near(np.nan, 8192)


def test_each_way_into_the_arc_and_the_sizes() -> None:
    counters = {
        f"{way}_{what}": 0
        for way in ("demand_data", "demand_metadata", "prefetch_data", "prefetch_metadata")
        for what in ("hits", "misses")
    }
    after = {name: 2 * place for place, name in enumerate(counters, 1)}
    columns = read(
        "arcstats", log("arcstats", lines(**counters), lines(**after, l2_hdr_size=96, c=1 << 40))
    ).columns
    assert [
        columns[f"arc.{way}.{what}"][0]
        for way in ("demand.data", "demand.metadata", "prefetch.data", "prefetch.metadata")
        for what in ("hits", "misses")
    ] == [2, 4, 6, 8, 10, 12, 14, 16]
    assert (columns["l2arc.headers"][0], columns["arc.target"][0]) == (96, 1 << 40)


def test_counters_below_zero_are_counters_and_others_are_damage() -> None:
    text = log(
        "arcstats",
        "memory_available_bytes          3    -4096\nhits 4 1\n",
        "hits 4 2\nhits four 3\nhits 7 words\n",
    )
    table = read("arcstats", text + f"@ {(START + 2) * 10**9} {52 * 10**9}\nhits 4 3\n")
    assert [reason for _, reason in table.damaged] == [
        "neither a reading's time nor a counter of arcstats"
    ] * 2
    assert table.columns["arc.hits"].tolist() == near(1, 1)


def test_a_counter_that_goes_back_is_unknown() -> None:
    assert np.isnan(
        read(
            "dmu_tx", log("dmu_tx", lines(dmu_tx_dirty_delay=9), lines(dmu_tx_dirty_delay=1))
        ).columns["tx.delayed"]
    ).all()


def test_groups_are_told_once_with_their_last_numbers() -> None:
    a, b, c = (
        f"tank\t{group(8, 'S')}",
        f"tank\t{group(8, 'C', dirty=0)}",
        f"tank\t{group(8, 'C', dirty=4096, sync_ns=2 * 10**9)}",
    )
    table = read(
        "txgs",
        log(
            "txgs",
            f"tank\t{group(7)}" + a,
            b,
            c,
            f"tank\t{group(9)}tank\t{group(10, 'O')}",
            end="end\n",
        ),
    )
    assert (table.pool, table.txg.tolist(), table.lost) == (("tank", "tank"), [8, 9], 0)
    assert table.dirty_bytes.tolist() == [4096, 688128]
    assert table.sync_time.tolist() == near(2.0, 0.09199575)
    assert table.seen_ns.tolist() == [(START + 1) * 10**9, (START + 3) * 10**9]
    assert table.columns["txg.committed"].tolist() == [1, 0, 1]
    assert table.columns["txg.dirty"].tolist() == near(4096, np.nan, 688128)


def test_pools_have_groups_of_their_own() -> None:
    table = read(
        "txgs",
        log("txgs", f"a\t{group(7)}b\t{group(90)}", f"a\t{group(8)}b\t{group(95)}", end="end\n"),
    )
    assert (table.txg.tolist(), table.lost) == ([8, 95], 4)


@pytest.mark.parametrize("kind", ["txgs", "objset", "dmu_tx_assign"])
def test_a_reading_without_its_end_is_left_out(kind: str) -> None:
    text = log(kind, "", "", end="end\n") + f"@ {(START + 2) * 10**9} {52 * 10**9}\n"
    table = read(kind, text)
    assert (len(table.time_ns), table.damaged) == (
        1,
        ((6, "the last reading is cut off and left out"),),
    )


def test_waits_for_a_group_are_upper_ends_to_the_kernel() -> None:
    """Its bucket `8 ns` holds 5 to 8 ns: on the grid [4, 8)."""
    table = read(
        "dmu_tx_assign",
        log(
            "dmu_tx_assign", "", "p\t1 ns 4 2\np\t2 ns 4 3\np\t4 ns 4 0\np\t8 ns 4 5\n", end="end\n"
        ),
    )
    assert {
        grid_bounds(index, 0): count for index, count in table.total("pool", "wait").items()
    } == {(1, 1): 5, (4, 7): 5}
    assert table.columns["dmu_tx_assign.wait[pool]"].tolist() == [10]


def zpool(rows: dict[int, list[int]], name: str = "tank") -> str:
    return f"pool\ttank\n\n{name}\n" + "".join(
        f"{label}\t" + "\t".join(map(str, counts)) + "\n" for label, counts in rows.items()
    )


@given(st.lists(st.lists(st.integers(0, 2**50), min_size=37, max_size=37), min_size=2, max_size=4))
def test_no_count_is_lost_on_the_way_to_the_grid(grown: list[list[int]]) -> None:
    so_far = np.cumsum(np.array(grown, dtype=object), axis=0)
    readings = [
        zpool({2 ** (n + 1) - 1: [0, int(count), *[0] * 8] for n, count in enumerate(row)})
        for row in so_far
    ]
    table = read("zpool-latency", log("zpool-latency", *readings, end="end\n"))
    expected: dict[int, int] = {}
    for row in grown[1:]:
        for n, count in enumerate(row):
            if count:
                expected[2**n] = expected.get(2**n, 0) + count
    assert {
        grid_bounds(index, 0)[0]: count
        for index, count in table.total("pool", "write.wait").items()
    } == expected
    assert table.total("pool", "read.wait") == {}


def test_rows_that_are_not_there_are_zeros_and_an_import_is_unknown() -> None:
    readings = [
        zpool(rows)
        for rows in (
            {512: [0] * 12},
            {4096: [3] + [0] * 11},
            {512: [0] * 12},
            {8192: [0, 7] + [0] * 10},
        )
    ]
    table = read("zpool-sizes", log("zpool-sizes", *readings, end="end\n"))
    assert table.columns["zpool-sizes.sync_read.alone[pool]"].tolist() == near(3, np.nan, 0)
    assert table.total("pool", "sync_read.merged") == {14: 7}
    assert grid_bounds(14, 0) == (8192, 16383)
    assert "zpool-sizes.rebuild.alone[pool]" not in table.columns


def test_two_pools_are_told_apart() -> None:
    text = (
        "pool\ta\npool\tb\na\n1\t"
        + "\t".join("0" * 10)
        + "\nvdb\n3\t0\t1"
        + "\t0" * 8
        + "\nb\n1\t"
        + "\t".join("0" * 10)
        + "\nvdb\n"
    )
    table = read("zpool-latency", log("zpool-latency", text, text, end="end\n"))
    assert {owner for owner, _ in table.histograms} == {"a", "a/vdb", "b", "b/vdb"}


@pytest.mark.parametrize(
    "row", ["5\t1" + "\t0" * 9, "3\tx" + "\t0" * 9, "3\t1\t2", "3\t-1" + "\t0" * 9]
)
def test_a_row_that_is_none_is_damage(row: str) -> None:
    good = zpool({1: [0] * 10})
    table = read("zpool-latency", log("zpool-latency", good, good + row + "\n", good, end="end\n"))
    assert [reason for _, reason in table.damaged] == [
        "neither a reading's time nor a row of zpool iostat"
    ]


RATES = (
    "# iolab zpool-iostat 1\n@ {start}600000000 5000000000\npool\ttank\n{start}\n"
    "{one}\ntank\t10\t90\t0\t5\t0\t4096\t-\t1000\t-\t900{more}\n\n"
)


@pytest.mark.parametrize(("more", "last"), [("\t-" * 6, "trim"), ("\t-" * 6 + "\t7", "rebuild")])
def test_rates_of_both_releases_and_a_dash_is_null(more: str, last: str) -> None:
    table = read("zpool-iostat", RATES.format(start=START, one=START + 1, more=more))
    columns = {name: values.tolist() for name, values in table.columns.items()}
    assert (columns["vdev.write.iops[pool]"], columns["vdev.write.wait[pool]"]) == ([5], near(1e-6))
    assert np.isnan(columns["vdev.read.wait[pool]"]).all()
    assert list(columns)[-1] == f"vdev.{last}.wait[pool]"
    assert table.time_ns.tolist() == [(START + 1) * 10**9 + 600_000_000]
    assert table.damaged == ()


@pytest.mark.parametrize(
    "text",
    [
        "# iolab zpool-iostat 1\n",
        f"# iolab zpool-iostat 1\n@ 1 2\npool\ttank\n{START}\n",
        "# iolab zpool-iostat 2\n1\n",
    ],
)
def test_a_log_without_a_report_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match=r"no whole report|not a header of this log"):
        read("zpool-iostat", text)


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_is_known_by_its_first_line_and_a_newer_one_is_refused(kind: str) -> None:
    assert detect(f"# iolab {kind} 1\n".encode(), "x") == kind
    assert detect(b"", f"{kind}.log") == kind
    with pytest.raises(FormatError, match=r"newer|not a header"):
        read(kind, f"# iolab {kind} 2\n@ 1 1\n")


@pytest.mark.parametrize("release", ["2.1", "2.3"])
def test_what_real_releases_wrote(release: str) -> None:
    """A mirror of vdb and vdc with a log device vdd and a cache vde under 8 KiB sync reads and
    writes."""

    def real(kind: str) -> Any:
        return read(kind, (DATA / f"{kind}-{release}.log").read_text())

    newer = release == "2.3"
    rates = real("zpool-iostat")
    assert rates.damaged == ()
    assert {name.partition("[")[2] for name in rates.columns} == {
        "pool]",
        "mirror-0]",
        "vdb]",
        "vdc]",
        "vdd]",
        "vde]",
    }
    assert rates.columns["vdev.write.iops[pool]"].tolist() == (
        [1188, 107, 76] if newer else [787, 252, 104]
    )
    assert ("vdev.rebuild.wait[vdb]" in rates.columns) is newer
    assert np.isnan(rates.columns["vdev.write.wait[vdb]"]).tolist() == (
        [False, True, True] if newer else [False, False, True]
    )
    latency, sizes = real("zpool-latency"), real("zpool-sizes")
    writes = sum(latency.total("pool", "write.wait").values())
    assert writes == (2183 if newer else 1849)
    assert sum(sizes.total("pool", "sync_write.alone").values()) == (395 if newer else 483)
    assert (len(latency.histograms), len(sizes.histograms)) == (
        3 * (11 if newer else 10),
        3 * (14 if newer else 12),
    )
    txgs = real("txgs")
    assert (txgs.txg.tolist(), txgs.lost) == ([7, 8, 9, 10], 0)
    assert txgs.dirty_bytes.tolist() == [0, 0, 0, 5735936]
    assert txgs.sync_time[-1] == pytest.approx(0.28582979 if newer else 0.31010549)
    arc = real("arcstats").columns
    assert arc["arc.hit_ratio"][0] > 0.9
    assert "l2arc.headers" in arc


def test_a_count_beyond_64_bits_is_damage() -> None:
    def reading(count: int) -> str:
        return "pool\ttp\n\ntp\n2047" + f"\t{count}" * 11 + "\n"

    counts = (0, 5, 2**64 - 1, 2**64)
    table = read("zpool-latency", log("zpool-latency", *map(reading, counts), end="end\n"))
    assert [next(iter(table.total(*key).values())) for key in table.histograms] == [2**64 - 1] * 11
    assert table.damaged
