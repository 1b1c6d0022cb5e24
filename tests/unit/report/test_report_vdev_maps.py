# SPDX-License-Identifier: Apache-2.0
"""Maps of what OpenZFS counted at its vdevs: every I/O of the window in its second and bucket,
vdevs on one scale, damage said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.output.report.build import build_report
from iolab.output.report.model.map_payload import CellMaps, Maps
from iolab.output.report.sections.hosts.environment import environment
from iolab.output.report.sections.maps import run_maps
from iolab.studies.results.evidence.model import Run
from support import report_data

START, SECOND = 1_700_000_000, 10**9
QUEUES = 10
READ, WRITE = 0, 1


def reading(second: int, rows: dict[str, dict[tuple[int, int], int]]) -> str:
    """A reading: counts so far of each vdev by (bucket's label, queue)."""
    text = f"@ {(START + second) * SECOND} {(50 + second) * SECOND}\npool\ttank\n"
    for name, counts in rows.items():
        text += f"\n{name}\n"
        for label in sorted({label for label, _ in counts}):
            text += (
                "\t".join(
                    str(value)
                    for value in (
                        label,
                        *(counts.get((label, queue), 0) for queue in range(QUEUES)),
                    )
                )
                + "\n"
            )
    return text + "end\n"


FAST, SLOW = 2**10 - 1, 2**20 - 1


def log(*readings: str) -> str:
    return "# iolab zpool-latency 1\n" + "".join(readings)


def results(tmp_path: Path, *texts: str, name: str = "zpool-latency.log") -> report_data.HandMade:
    runs: list[Run] = []
    for number, text in enumerate(texts, 1):
        evidence = tmp_path / "runs" / f"{number:04d}-00000000"
        evidence.mkdir(parents=True)
        (evidence / name).write_text(text)
        window = ((START + 1) * SECOND, (START + 4) * SECOND)
        runs.append(
            report_data.run(
                number,
                "rig",
                {"disks": 2},
                {"write.iops": 1000.0},
                block=number,
                evidence=evidence,
                window=window,
            )
        )
    found = report_data.HandMade(runs)
    found.path = tmp_path
    return found


def grown(k: int) -> str:
    """After k seconds: k fast writes and 2k slow reads at vdb, nothing at vdc, both at the pool."""
    return reading(
        k,
        {
            "tank": {(FAST, WRITE): k, (SLOW, READ): 2 * k},
            "vdb": {(FAST, WRITE): k, (SLOW, READ): 2 * k},
            "vdc": {},
        },
    )


def made(found: report_data.HandMade) -> Maps:
    maps = run_maps(found)
    assert maps is not None
    return maps


def only(maps: Maps) -> CellMaps:
    [cell] = maps.cells
    [part] = cell.maps
    return part


def test_each_vdev_with_io_has_its_map_of_the_window(tmp_path: Path) -> None:
    maps = made(results(tmp_path, log(*(grown(k) for k in range(7)))))
    assert maps.cells[0].title == "disks=2"
    part = only(maps)
    assert [each.label for each in part.group.maps] == [
        "pool, rig (run 0001)",
        "vdb, rig (run 0001)",
    ]
    assert [one.seen for one in part.of] == ["zfs", "zfs"]
    for each in part.group.maps:
        assert (each.columns, each.events, sum(each.cells.counts)) == (3, 9, 9)
        assert [[(p.name, sum(p.cells.counts)) for p in d.parts] for d in each.dimensions] == [
            [("read", 6), ("write", 3)]
        ]
    rows = part.group.maps[1].cells
    lower = [part.group.bounds[row] for row in rows.rows]
    assert lower == [2**9, 2**19] * 3
    assert part.group.title.startswith("Latency at each vdev")
    assert not part.group.difference


def test_runs_of_a_cell_share_their_axes(tmp_path: Path) -> None:
    text = log(*(grown(k) for k in range(7)))
    part = only(made(results(tmp_path, text, text)))
    # runs next to each other, vdev by vdev
    assert [one.repetition for one in part.of] == [1, 2, 1, 2]
    assert [named.label for named in part.group.maps] == [
        "pool, rig (run 0001)",
        "pool, rig (run 0002)",
        "vdb, rig (run 0001)",
        "vdb, rig (run 0002)",
    ]


def test_a_pool_that_was_imported_anew_has_no_counts_in_that_second(tmp_path: Path) -> None:
    part = only(
        made(results(tmp_path, log(grown(0), grown(1), grown(2), grown(1), grown(2), grown(3))))
    )
    assert [sum(each.cells.counts) for each in part.group.maps] == [6, 6]


def test_a_damaged_log_costs_its_maps_and_is_said(tmp_path: Path) -> None:
    maps = made(
        results(
            tmp_path, "# iolab zpool-latency 1\n@ nonsense\n", log(*(grown(k) for k in range(7)))
        )
    )
    assert len(only(maps).group.maps) == 2
    assert any("0001" in note for note in maps.notes)


@pytest.mark.parametrize("text", ["", "# iolab zpool-latency 1\n", log(grown(1))])
def test_nothing_counted_is_no_map(tmp_path: Path, text: str) -> None:
    maps = run_maps(results(tmp_path, text))
    assert maps is None or (maps.cells == [] and maps.notes != [])


def test_the_environment_tells_which_openzfs_each_run_had(tmp_path: Path) -> None:
    found = results(tmp_path, log(grown(0), grown(1)), log(grown(0), grown(1)), log(grown(0)))
    for run, version in zip(found.runs, ("2.1.11", "2.3.2", "2.3.2"), strict=True):
        (run.evidence / "target.json").write_text(json.dumps({"kind": "zfs", "version": version}))
    [fact] = [fact for fact in environment(found) if fact.name == "openzfs, as loaded"]
    assert (fact.values, fact.runs) == (["2.1.11 (rig)", "2.3.2 (rig)"], [1, 2])


def test_the_report_carries_them(tmp_path: Path) -> None:
    page = build_report(results(tmp_path, log(*(grown(k) for k in range(7)))))
    assert 'id="iolab-maps"' in page
