# SPDX-License-Identifier: Apache-2.0
"""The report shows what was measured: pools as they say themselves, settings, devices, controllers;
and no raw JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from iolab.output.report.sections.hosts.environment import environment
from iolab.output.report.sections.hosts.target import MOST_STATES, target_part
from iolab.output.report.sections.hosts.zfs_settings import settings
from iolab.studies.results.evidence.model import Run
from support.report_data import HandMade, run

DISK = {
    "size_bytes": 4 << 30,
    "rotational": 1,
    "scheduler": "none",
    "logical_block_bytes": 512,
    "merges_off": 0,
}


def pool(
    name: str,
    *tree: str,
    recordsize: int = 131072,
    dirty: int = 400,
    version: str = "2.1.11",
    **dataset: str,
) -> dict[str, Any]:
    """`target.json` of a pool."""
    return {
        "kind": "zfs",
        "version": version,
        "pool": {
            "status": [
                f"  pool: {name}",
                " state: ONLINE",
                "config:",
                "",
                f"\t{name}  ONLINE",
                *(f"\t{line}" for line in tree),
            ],
            "properties": {
                "ashift": "0",
                "guid": name,
                "failmode": "wait",
                "autotrim": "on",
                "feature@draid": "enabled",
            },
        },
        "dataset": {
            "recordsize": str(recordsize),
            "compression": "off",
            "mountpoint": f"/{name}",
            "copies": "1",
            **dataset,
        },
        "module_parameters": {"zfs_dirty_data_max": str(dirty), "zfs_txg_timeout": "5"},
    }


def runs(folder: Path, *targets: tuple[str, dict[str, Any], dict[str, Any]]) -> list[Run]:
    """A run of each (variant, factors, target.json)."""
    found = []
    for number, (variant, factors, target) in enumerate(targets, 1):
        evidence = folder / str(number)
        evidence.mkdir()
        (evidence / "target.json").write_text(json.dumps(target))
        found.append(
            run(
                number,
                variant,
                factors,
                {"write.iops": 1.0},
                evidence=evidence,
                extra={"devices": ["vdb"]},
            )
        )
    return found


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_each_layout_is_shown_once_and_settings_beside_each_other(tmp_path: Path) -> None:
    made = runs(
        tmp_path,
        ("usual", {"pool": "mirror"}, pool("iolab-1", "  mirror-0  ONLINE")),
        ("small", {"pool": "mirror"}, pool("iolab-2", "  mirror-0  ONLINE", dirty=16)),
        ("usual", {"pool": "raidz2"}, pool("iolab-3", "  raidz2-0  ONLINE")),
        ("usual", {"pool": "mirror"}, pool("iolab-4", "  mirror-0  ONLINE")),
    )
    asked = [{"target": {"kind": "zpool", "module_parameters": {"zfs_dirty_data_max": "16"}}}]
    part = target_part(HandMade(made, environment={"facts": {"targets": asked}}))
    assert [plain(block.title) for block in part.states] == [
        "pool mirror (3 runs)",
        "usual, pool raidz2 (1 run)",
    ]
    assert "          raidz2-0  ONLINE" in part.states[1].text
    table = next(grid for grid in part.tables if grid.title == "Settings")
    assert [plain(title) for title in table.head[1:]] == [
        "usual, pool mirror (2 runs)",
        "usual, pool raidz2 (1 run)",
        "small, pool mirror (1 run)",
    ]
    rows = {row[0]: row[1:] for row in table.rows}
    assert table.rows[0] == ["zfs_dirty_data_max, module", "400", "400", "16"], (
        "what differs stands first"
    )
    assert rows["OpenZFS"] == ["2.1.11"] * 3
    assert rows["recordsize, file system"] == ["128 KiB"] * 3
    assert rows["autotrim, pool"] == ["on"] * 3
    assert not {
        "zfs_txg_timeout, module",
        "guid, pool",
        "mountpoint, file system",
        "failmode, pool",
        "copies, file system",
    } & set(rows)


def test_only_what_is_not_as_usual_is_shown_beside_what_people_ask_about() -> None:
    found = settings(pool("p", sync="always", volmode="default", mystery="7"), {"copies": None})
    assert found == {
        "ashift, pool": "0",
        "autotrim, pool": "on",
        "recordsize, file system": "128 KiB",
        "compression, file system": "off",
        "sync, file system": "always",
        "copies, file system": "1",
        "mystery, file system": "7",
    }


def test_devices_are_rows_and_controllers_have_their_driver() -> None:
    facts = {
        "block_devices": {
            "vda": {**DISK, "serial": ""},
            "vdb": {**DISK, "serial": "disk0", "read_ahead_bytes": 131072},
        },
        "storage_controllers": [
            {
                "address": f"0000:00:0{number}.0",
                "kind": "SCSI",
                "name": "Virtio",
                "driver": "virtio-pci",
            }
            for number in (2, 4)
        ],
        "target": {"kind": "filesystem", "fs": "ext4", "mkfs_options": ["-F"], "loop": None},
        "filesystem": {"type": "ext4", "mount_options": "rw,noatime"},
        "odd": [{"name": "x", "size": 3}, {"name": "y", "size": 4}],
    }
    results = HandMade(
        [run(1, "a", {}, {"write.iops": 1.0}, extra={"devices": ["vdb"]})],
        environment={"facts": facts},
    )
    part = target_part(results)
    grids = {grid.title: grid for grid in part.tables}
    devices = grids["Block devices"]
    assert devices.head == [
        "device",
        "in the target",
        "serial",
        "size",
        "rotational",
        "scheduler",
        "logical block",
        "read ahead",
        "merges",
    ]
    assert devices.rows == [
        ["vdb", "yes", "disk0", "4 GiB", "yes", "none", "512 B", "128 KiB", "on"],
        ["vda", "no", "", "4 GiB", "yes", "none", "512 B", "", "on"],
    ]
    assert grids["Controllers"].rows == [
        ["SCSI", "Virtio (virtio-pci)", "2", "0000:00:02.0 and 0000:00:04.0"]
    ]
    assert grids["As the study has it"].rows == [
        ["kind", "filesystem"],
        ["fs", "ext4"],
        ["mkfs_options", "-F"],
        ["filesystem type", "ext4"],
        ["filesystem mount_options", "rw,noatime"],
    ]
    told = {fact.name: fact.values for fact in environment(results)}
    assert told["odd"] == ["name x, size 3; name y, size 4"]
    assert not any(
        name.startswith(("block_devices", "storage_controllers", "target")) for name in told
    )


def hosts_facts(**models: str) -> dict[str, Any]:
    """Environments of hosts whose `sda` are of these models."""
    return {
        name: {
            "facts": {
                "memory_bytes": 1024,
                "cpus": len(model),
                "block_devices": {"sda": {**DISK, "model": model}},
                "target": {"kind": "block", "devices": [f"/dev/disk/{model}"]},
                "storage_controllers": [
                    {"address": "0000:00:02.0", "kind": "NVMe", "name": "Fast", "driver": "nvme"}
                ],
            }
        }
        for name, model in models.items()
    }


def on_hosts(*places: tuple[str, str]) -> list[Run]:
    """A run of each (host, device)."""
    made = [
        run(number, "a", {}, {"write.iops": 1.0}, extra={"devices": [device]})
        for number, (_, device) in enumerate(places, 1)
    ]
    return [
        replace(one, plan=replace(one.plan, run=f"{host}/{one.plan.run}"))
        for one, (host, _) in zip(made, places, strict=True)
    ]


def test_facts_of_a_host_are_told_as_its_own() -> None:
    results = HandMade(
        on_hosts(("a", "sda"), ("a", "sda"), ("b", "sda"), ("b", "sdb")),
        environments=hosts_facts(a="FAKE", b="OTHER NVME"),
    )
    grids = {grid.title: grid for grid in target_part(results).tables}
    devices = grids["Block devices"]
    assert devices.head[:4] == ["device", "host", "in the target", "model"]
    assert [row[:4] for row in devices.rows] == [
        ["sda", "a", "yes", "FAKE"],
        ["sda", "b", "1 run", "OTHER NVME"],
    ]
    assert grids["Controllers"].head[2] == "host"
    assert [row[1:4] for row in grids["Controllers"].rows] == [
        ["Fast (nvme)", "a", "1"],
        ["Fast (nvme)", "b", "1"],
    ]
    assert grids["As the study has it"].head == ["", "a", "b"]
    assert grids["As the study has it"].rows[0] == [
        "devices",
        "/dev/disk/FAKE",
        "/dev/disk/OTHER NVME",
    ]
    told = {fact.name: (fact.values, fact.runs) for fact in environment(results)}
    assert told["cpus"] == (["4", "10"], [2, 2])
    assert told["memory_bytes"] == (["1024"], [])


def test_what_was_asked_of_all_hosts_alike_is_told_once() -> None:
    results = HandMade(
        on_hosts(("a", "sda"), ("b", "sda")), environments=hosts_facts(a="SAME", b="SAME")
    )
    asked = next(
        grid for grid in target_part(results).tables if grid.title == "As the study has it"
    )
    assert (asked.head, asked.rows) == (
        ["", ""],
        [["kind", "block"], ["devices", "/dev/disk/SAME"]],
    )


def test_settings_of_one_host_alone_name_it(tmp_path: Path) -> None:
    made = runs(tmp_path, ("a", {}, pool("p", version="2.1")), ("a", {}, pool("p", version="2.2")))
    made = [
        replace(one, plan=replace(one.plan, run=f"{host}/{one.plan.run}"))
        for one, host in zip(made, ("left", "right"), strict=True)
    ]
    part = target_part(HandMade(made, environments={"left": {}, "right": {}}))
    assert part.tables[0].head == ["", "left (1 run)", "right (1 run)"]


def test_a_host_without_runs_has_nothing_in_the_target() -> None:
    results = HandMade(on_hosts(("a", "sda")), environments=hosts_facts(a="FAKE", b="OTHER"))
    devices = next(grid for grid in target_part(results).tables if grid.title == "Block devices")
    assert [row[:3] for row in devices.rows] == [["sda", "a", "yes"], ["sda", "b", "no"]]


def test_targets_stand_in_order_of_their_levels_in_both_tables(tmp_path: Path) -> None:
    made = runs(
        tmp_path,
        *(
            ("a", {"disks": n}, pool("p", f"  raidz-{n}  ONLINE", version=str(n)))
            for n in (2, 1, 8, 4)
        ),
    )
    wanted = [{"target": {"kind": "zpool", "layout": f"stripe:{n}"}} for n in (1, 2, 4, 8)]
    grids = {
        grid.title: grid
        for grid in target_part(HandMade(made, environment={"facts": {"targets": wanted}})).tables
    }
    assert [plain(title) for title in grids["Settings"].head[1:]] == [
        f"disks {n} (1 run)" for n in (1, 2, 4, 8)
    ]
    assert grids["As the study has it"].rows[0] == [
        "layout",
        *(f"stripe:{n}" for n in (1, 2, 4, 8)),
    ]


def test_many_targets_asked_for_are_cut_with_a_word() -> None:
    wanted = [{"target": {"kind": "zpool", "layout": f"stripe:{n}"}} for n in range(100)]
    [asked] = target_part(
        HandMade([run(1, "a", {}, {})], environment={"facts": {"targets": wanted}})
    ).tables
    assert {len(asked.head), *map(len, asked.rows)} == {1 + MOST_STATES}
    assert asked.note == "These are the first 12 of 100 targets."


def test_many_targets_are_cut_with_a_word(tmp_path: Path) -> None:
    made = runs(
        tmp_path,
        *(
            ("a", {"n": n}, pool("p", f"  raidz{n}-0  ONLINE", version=str(n)))
            for n in range(MOST_STATES + 3)
        ),
    )
    part = target_part(HandMade(made))
    assert part.states[-1].text.startswith("3 further layouts")
    assert part.tables[0].note.endswith("These are the first 12 of 15 targets.")


def test_nothing_known_shows_nothing(tmp_path: Path) -> None:
    damaged = runs(
        tmp_path, ("a", {}, {"kind": "zfs", "pool": 3, "dataset": [], "module_parameters": None})
    )
    odd = {"facts": {"targets": "none", "block_devices": 4, "storage_controllers": {}}}
    part = target_part(HandMade([run(9, "a", {}, {})], environment=odd))
    assert (part.states, part.tables) == ([], [])
    assert target_part(HandMade(damaged)).states == []
