# SPDX-License-Identifier: Apache-2.0
"""Statistics of OpenZFS from its counters: each release has others, and one that is not there is
null, never 0."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iolab.recordings.ask.answers.json_form import as_data
from support.counters import NAN, Reading, disk, kept, same, series, stack


def grown(steps: dict[str, int], thing: str = "", readings: int = 3) -> list[Reading]:
    return [
        row
        for field, step in steps.items()
        for row in disk(thing, field, [1000 + step * at for at in range(readings)])
    ]


NEW = {
    "hits": 160,
    "iohits": 10,
    "misses": 30,
    "demand_data_hits": 100,
    "demand_data_iohits": 7,
    "demand_data_misses": 20,
    "demand_metadata_hits": 40,
    "demand_metadata_iohits": 0,
    "demand_metadata_misses": 5,
    "prefetch_data_hits": 20,
    "prefetch_data_iohits": 3,
    "prefetch_data_misses": 5,
    "prefetch_metadata_hits": 0,
    "prefetch_metadata_iohits": 0,
    "prefetch_metadata_misses": 0,
}
OLD = {name: step for name, step in NEW.items() if "iohits" not in name}


@pytest.mark.slow
def test_accesses_by_result_access_and_kind(tmp_path: Path) -> None:
    recording = kept(tmp_path, {"arcstats": grown(NEW)})
    found = stack(recording, "arc.accesses[result]", (0, 2))
    assert (found.keys, found.totals, found.total, found.notes) == (
        ["hit", "miss", "iohit"],
        [320, 60, 20],
        400,
        (),
    )
    assert stack(recording, "arc.accesses[result=miss][access]", (0, 2)).totals == [50, 10]
    assert stack(recording, "arc.accesses[result=hit][access=demand][kind]", (0, 2)).keys == [
        "data",
        "metadata",
    ]
    assert series(recording, "arc.accesses[result!=miss][access=prefetch]", (0, 2)).total == 46
    same(series(recording, "arc.hit_ratio", (0, 2)).values, [0.8, 0.8])
    outcomes = stack(recording, "arc.accesses[outcome]", (0, 2))
    totals = dict(zip(outcomes.keys, outcomes.totals, strict=True))
    assert sum(totals.values()) == 400
    for result, access, kind in (("hit", "demand", "data"), ("miss", "prefetch", "metadata")):
        of_parts = f"arc.accesses[result={result}][access={access}][kind={kind}]"
        assert totals[f"{result} {access} {kind}"] == series(recording, of_parts, (0, 2)).total
        of_outcome = f'arc.accesses[outcome="{result} {access} {kind}"]'
        assert series(recording, of_outcome, (0, 2)).total == totals[f"{result} {access} {kind}"]


def test_what_a_release_lacks_is_not_known(tmp_path: Path) -> None:
    recording = kept(tmp_path, {"arcstats": grown(OLD)})
    found = stack(recording, "arc.accesses[result]", (0, 2))
    assert (found.keys, found.total) == (["hit", "miss"], 380)
    assert found.notes == (
        "not reported there: iohit demand data, iohit demand metadata, iohit prefetch data, iohit prefetch metadata",
    )
    lacking = series(recording, "arc.accesses[result=iohit]", (0, 2))
    same(lacking.values, [NAN, NAN])
    data = as_data(lacking.statistic, lacking, None)
    assert (data["values"], data["mean"]) == ([None, None], None)
    # of hits and misses alone, as that release counts
    same(series(recording, "arc.hit_ratio", (0, 2)).values, [160 / 190, 160 / 190])
    same(series(recording, "l2arc.size", (0, 2)).values, [NAN, NAN])


def test_no_access_has_no_ratio(tmp_path: Path) -> None:
    idle = kept(tmp_path, {"arcstats": grown(dict.fromkeys(NEW, 0))})
    same(series(idle, "arc.hit_ratio", (0, 2)).values, [NAN, NAN])
    same(series(idle, "arc.accesses", (0, 2)).values, [0, 0])


@pytest.mark.slow
def test_sizes_are_levels_of_which_parts_make_the_whole(tmp_path: Path) -> None:
    held = {
        "data_size": 70,
        "metadata_size": 20,
        "hdr_size": 5,
        "l2_hdr_size": 5,
        "size": 100,
        "c": 120,
        "c_max": 200,
        "l2_asize": 900,
        "l2_size": 1000,
    }
    recording = kept(
        tmp_path,
        {
            "arcstats": [
                row for field, value in held.items() for row in disk("", field, [value] * 3)
            ]
        },
    )
    same(series(recording, "arc.size", (0, 2)).values, [100, 100])
    assert stack(recording, "arc.size[kind]", (0, 2)).keys == [
        "data",
        "metadata",
        "headers",
        "l2arc-headers",
    ]
    for name, value in (
        ("arc.size[kind=total]", 100),
        ("arc.target", 120),
        ("arc.target[kind=most]", 200),
        ("l2arc.size", 900),
        ("l2arc.size[kind=logical]", 1000),
        ("l2arc.headers", 5),
    ):
        assert series(recording, name, (0, 2)).mean == pytest.approx(value), name


def test_evictions_by_eligibility(tmp_path: Path) -> None:
    steps = {
        "evict_l2_cached": 100,
        "evict_l2_eligible": 60,
        "evict_l2_eligible_mru": 50,
        "evict_l2_eligible_mfu": 10,
        "evict_l2_ineligible": 7,
        "evict_l2_skip": 1000,
    }
    recording = kept(tmp_path, {"arcstats": grown(steps)})
    evictions = stack(recording, "arc.evictions[kind]", (0, 2))
    assert dict(zip(evictions.keys, evictions.totals, strict=True)) == {
        "stored": 200,
        "eligible": 120,
        "ineligible": 14,
    }
    assert series(recording, "arc.evictions", (0, 2)).total == 334
    assert series(recording, "arc.evictions[kind=recent,frequent]", (0, 2)).total == 120


def test_groups_by_pool_and_phase(tmp_path: Path) -> None:
    steps = {
        "groups": 1,
        "written_bytes": 4096,
        "dirty_bytes": 9000,
        "read_bytes": 0,
        "open_ns": 10**9,
        "sync_ns": 250_000_000,
    }
    recording = kept(
        tmp_path, {"txgs": grown(steps, "tank") + grown({**steps, "groups": 3}, "dozer")}
    )
    assert stack(recording, "txg.groups[pool]", (0, 2)).keys == ["dozer", "tank"]
    same(series(recording, "txg.groups", (0, 2)).values, [4, 4])
    same(series(recording, "txg.bytes[pool=tank]", (0, 2)).values, [4096, 4096])
    same(series(recording, "txg.bytes[pool=tank][kind=dirty]", (0, 2)).values, [9000, 9000])
    phases = stack(recording, "txg.time[phase]", (0, 2))
    assert dict(zip(phases.keys, phases.averages or [], strict=True)) == pytest.approx(
        {"open": 2.0, "sync": 0.5}
    )


def test_records_of_the_intent_log(tmp_path: Path) -> None:
    steps = {
        "zil_commit_count": 5,
        "zil_itx_indirect_count": 1,
        "zil_itx_copied_count": 2,
        "zil_itx_metaslab_slog_bytes": 512,
    }
    recording = kept(tmp_path, {"zil": grown(steps)})
    assert series(recording, "zil.commits", (0, 2)).total == 10
    assert stack(recording, "zil.records[kind]", (0, 2)).keys == ["copied", "indirect"]
    logged = stack(recording, "zil.bytes[kind]", (0, 2))
    assert (logged.keys, logged.notes) == (["log"], ("not reported there: pool",))


def peers(rows: dict[str, list[tuple[float, int]]]) -> list[Reading]:
    """Bytes received of each peer; others are in every reading."""
    beat = [
        (float(at), "others", field, 0)
        for at in range(11)
        for field in ("sent_bytes", "received_bytes")
    ]
    return beat + [
        (at, name, field, value)
        for name, held in rows.items()
        for at, value in held
        for field, value in (("received_bytes", value), ("sent_bytes", 0))
    ]


def test_a_peer_that_does_nothing_is_left_out_of_readings_and_yet_known(tmp_path: Path) -> None:
    held = peers(
        {
            "10.0.0.1": [(at, 100 * at) for at in range(11)],
            "10.0.0.2": [(2, 0), (3, 50), (4, 50), (8, 50), (9, 80), (10, 80)],
            "127.0.0.1": [(at, 10**6 * at) for at in range(11)],
        }
    )
    recording = kept(tmp_path, {"tcp": held})
    found = stack(recording, "ip.bytes[peer]", (0, 10))
    assert (found.keys, found.totals) == (["127.0.0.1", "10.0.0.1", "10.0.0.2"], [10**7, 1000, 80])
    same(found.values[2], [0, 0, 50, 0, 0, 0, 0, 0, 30, 0])
    assert found.total == 1080
    assert found.notes == (
        "the sum holds all others; not 127.0.0.1, this machine itself, which is at both ends of those connections",
    )
    assert stack(recording, "ip.bytes[direction][peer!=127.0.0.1]", (0, 10)).totals == [1080, 0]
    same(series(recording, "ip.bytes[peer=10.0.0.2]", (4, 8)).values, [0, 0, 0, 0])
    # one that never moved anything: that is known as well
    same(series(recording, "ip.bytes[peer=10.9.9.9]", (0, 10)).values, [0] * 10)


def test_without_any_peer_nothing_was_moved(tmp_path: Path) -> None:
    recording = kept(tmp_path, {"tcp": peers({})})
    same(series(recording, "ip.bytes", (0, 10)).values, [0] * 10)
    found = stack(recording, "ip.bytes[peer]", (0, 10))
    assert (found.keys, found.total, found.values.shape) == ([], 0, (0, 10))
    local = kept(tmp_path / "l", {"tcp": peers({"::1": [(0, 0), (10, 70)]})})
    # there is nothing else
    assert stack(local, "ip.bytes[peer]", (0, 10)).keys in ([], ["::1"])
    assert not np.isnan(series(local, "ip.bytes", (0, 10)).values).any()
