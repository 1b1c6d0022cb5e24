# SPDX-License-Identifier: Apache-2.0
"""Disk I/O by enclosure, slot, pool and vdev: the sums of their disks, from events and counters, and
`unknown` where a disk's place is unknown or changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import UsageError
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.attribution import Rectangle, who
from iolab.recordings.ask.available import available
from iolab.recordings.ask.drill import hierarchy, narrow
from iolab.recordings.ask.kept.manage import parse_name
from iolab.recordings.ask.plan import plan
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import Question, parse
from iolab.recordings.ask.single_ios import list_ios
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.metadata import DiskPeriod
from iolab.recordings.store.ledger import sign
from iolab.recordings.store.read.recording import Recording
from support.counters import SECOND, START, disk, kept
from support.plans import explain
from support.statistics_data import Event

DISKS = {"sda": ("0x5", 3), "sdb": ("0x5", 5), "sdc": ("0x6", 7), "sdd": ("", 11)}
"""The enclosure and the number of I/Os of each disk."""


def periods(after_ns: int = 0, vdev: str = "tank/mirror-0") -> list[DiskPeriod]:
    return [
        DiskPeriod(
            name,
            after_ns,
            after_ns,
            {"enclosure": enclosure, "slot": f"{enclosure}/{name}", "vdev": vdev, "pool": "tank"},
        )
        for name, (enclosure, _) in DISKS.items()
        if enclosure
    ]


def with_disks(recording: Recording, lines: Sequence[Any]) -> Recording:
    """The recording with places of disks, as `recording.json` has them."""
    path = recording.path / "recording.json"
    facts = json.loads(path.read_text("utf-8"))
    facts["origin"]["disks"] = list(lines)
    facts.pop("crc32", None)
    path.write_text(json.dumps(sign(facts)), "utf-8")
    return Recording(recording.path)


def events_of_disks(tmp_path: Path) -> Recording:
    events = [
        Event(START + place * SECOND, latency=1000 * number, device=name, size=512)
        for number, (name, (_, count)) in enumerate(DISKS.items(), 1)
        for place in range(count)
    ]
    readings = {"diskstats": disk("sda", "reads", [0] * 12)}
    return kept(tmp_path, readings, events=events)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    made = events_of_disks(tmp_path_factory.mktemp("groups"))
    return with_disks(made, [period.as_json() for period in periods()])


def totals(recording: Recording, name: str, **ends: int) -> dict[str, int]:
    answer = query(recording, name, **ends)  # type: ignore[arg-type]
    assert isinstance(answer, Stack)
    assert str(answer.statistic) == name
    return dict(zip(answer.keys, answer.totals, strict=True))


def total(recording: Recording, name: str) -> int:
    answer = query(recording, name)
    assert isinstance(answer, Series)
    return answer.total


def test_sums_of_enclosures_are_those_of_their_disks(recording: Recording) -> None:
    assert totals(recording, "io.ops[enclosure]") == {"unknown": 11, "0x5": 8, "0x6": 7}
    assert totals(recording, "io.bytes[vdev]") == {"tank/mirror-0": 15 * 512, "unknown": 11 * 512}
    assert totals(recording, "io.ops[slot=0x5/sda,0x6/sdc][pool]") == {"tank": 10}
    answer = query(recording, "io.ops[enclosure]", interval_ns=SECOND)
    assert isinstance(answer, Stack)
    assert answer.values[1].tolist()[:8] == [2, 2, 2, 1, 1, 0, 0, 0]
    assert (answer.total, answer.adds_up) == (26, True)


def test_an_enclosure_leads_to_its_disks(recording: Recording) -> None:
    enclosure = narrow(parse("io.ops[enclosure]"), "0x5")
    assert totals(recording, f"{enclosure}[device]") == {"sdb": 5, "sda": 3}
    assert totals(recording, f"{enclosure}[slot]") == {"0x5/sdb": 5, "0x5/sda": 3}
    heat = query(recording, f"{enclosure}[latency]")
    assert isinstance(heat, HeatCounts)
    assert heat.events == 8


def test_slots_and_vdevs_are_trees(recording: Recording) -> None:
    tree = hierarchy(recording, "io.ops[slot]")
    enclosures = {
        branch.name: [slot.name for slot in branch.children] for branch in tree.root.children
    }
    assert enclosures == {"0x5": ["sdb", "sda"], "0x6": ["sdc"]}
    assert (tree.total, tree.unnamed, tree.root.total) == (26, 11, 15)
    [pool] = hierarchy(recording, "io.ops[vdev]").root.children
    assert [(vdev.name, vdev.total) for vdev in pool.children] == [("mirror-0", 15)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("[enclosure=0x5]", 8),
        ("[enclosure=0x5,0x6]", 15),
        ("[enclosure!=0x5]", 18),
        ("[enclosure=unknown]", 11),
        ("[enclosure!=unknown]", 15),
        ("[enclosure=0x6,unknown]", 18),
        ("[enclosure!=0x6,unknown]", 8),
        ("[enclosure!=0x5,0x6]", 11),
        ("[enclosure!=0x9]", 26),
        ("[enclosure!=0x5,0x6,unknown]", 0),
        ("[enclosure=0x5,0x6,unknown]", 26),
        ("[enclosure=0x5][device=sda,sdc]", 3),
        ("[enclosure=0x5][slot=0x6/sdc]", 0),
        ("[vdev=tank/mirror-0][enclosure=0x6]", 7),
    ],
)
def test_conditions_hold_for_disks(recording: Recording, condition: str, expected: int) -> None:
    assert total(recording, f"io.ops{condition}") == expected


def test_an_enclosure_that_does_not_exist_has_a_note(recording: Recording) -> None:
    answer = query(recording, "io.ops[enclosure=0x7]")
    assert isinstance(answer, Series)
    assert answer.total == 0
    assert answer.notes == ("there was no enclosure '0x7' then; there were 0x5, 0x6",)


def test_who_and_lists_know_enclosures(recording: Recording) -> None:
    slow = Rectangle(low=3000)
    answer = who(recording, "latency", slow, filters=parse("io.ops[vdev!=unknown]").filters)
    shares = {
        dimension.field: {share.value: share.inside for share in dimension.values}
        for dimension in answer.dimensions
    }
    assert shares["enclosure"] == {"0x6": 7, "0x5": 0}
    assert shares["vdev"] == {"tank/mirror-0": 7}
    assert (answer.inside, answer.outside) == (7, 8)
    ios = list_ios(recording, parse("io.ops[enclosure=0x6]"), Rectangle())
    assert (ios.total, {io.values["device"] for io in ios.ios}) == (7, {"sdc"})
    assert list_ios(recording, parse("io.ops[enclosure]"), Rectangle()).total == 26


def test_a_place_that_changed_is_unknown(tmp_path: Path) -> None:
    later = periods(START + 2 * SECOND, "tank/mirror-1")
    later[0] = replace(later[0], places={**later[0].places, "vdev": "tank/mirror-0"})
    lines = [period.as_json() for period in [*periods(), *later]]
    recording = with_disks(events_of_disks(tmp_path), lines)
    assert totals(recording, "io.ops[vdev]") == {"unknown": 23, "tank/mirror-0": 3}
    assert query(recording, "io.ops[vdev]").notes[-1:] == (  # type: ignore[union-attr]
        "the vdev of sdb, sdc changed in this time and is unknown; ask about a shorter time",
    )
    assert totals(recording, "io.ops[vdev]", from_ns=START + 2 * SECOND) == {
        "unknown": 9,
        "tank/mirror-1": 8,
        "tank/mirror-0": 1,
    }
    assert totals(recording, "io.ops[enclosure]")["0x5"] == 8


@pytest.mark.parametrize("lines", [[], ["sda"], [{"disk": "sda"}], [{"disk": 7, "vdev": {}}]])
def test_a_recording_without_places_says_so(tmp_path: Path, lines: list[Any]) -> None:
    recording = with_disks(events_of_disks(tmp_path), lines)
    assert totals(recording, "io.ops[enclosure]") == {"unknown": 26}
    answer = query(recording, "io.ops[enclosure=0x5]")
    assert isinstance(answer, Series)
    assert (answer.total, answer.notes) == (0, ("the enclosure of no disk is known",))
    [ops] = [one for one in available(recording) if one.entry.name == "io.ops"]
    assert "enclosure" not in ops.breakdowns
    assert ops.lacking["enclosure"] == "the enclosure of no disk is known"


def test_what_is_known_is_offered(recording: Recording) -> None:
    by_name = {one.entry.name: one for one in available(recording)}
    assert by_name["io.ops"].breakdowns[-4:] == ("enclosure", "slot", "pool", "vdev")
    assert by_name["io.ops"].sources[0].fields[-4:] == ("enclosure", "slot", "pool", "vdev")
    assert "vdev" not in by_name["io.utilization"].breakdowns
    assert "vdev" in by_name["zpool.ops"].entry.breakdowns


def test_counters_know_enclosures(tmp_path: Path) -> None:
    readings = (
        disk("sda", "reads", [0, 10, 20])
        + disk("sda1", "reads", [0, 9, 18])
        + disk("sdb", "reads", [0, 1, 2])
        + disk("sdd", "reads", [0, 5, 10])
        + disk("dm-0", "reads", [0, 11, 22])
        + disk("sda", "weighted_io_ms", [0, 2000, 4000])
        + disk("sdb", "weighted_io_ms", [0, 1000, 2000])
    )
    lines = [period.as_json() for period in periods()]
    recording = with_disks(kept(tmp_path, {"diskstats": readings}), lines)
    ends = {"from_ns": START, "until_ns": START + 2 * SECOND}
    answer = query(recording, "io.ops[enclosure]", interval_ns=SECOND, **ends)  # type: ignore[arg-type]
    assert isinstance(answer, Stack)
    assert (answer.keys, answer.totals, answer.averages) == (["0x5", "unknown"], [22, 10], [11, 5])
    assert answer.values.tolist() == [[11, 11], [5, 5]]
    assert (answer.total, answer.mean, answer.adds_up) == (32, 16, True)
    assert totals(recording, "io.ops[enclosure=0x5][device]", **ends) == {"sda": 20, "sdb": 2}
    queue = query(recording, "io.queue[enclosure=0x5]", **ends)  # type: ignore[arg-type]
    assert isinstance(queue, Series)
    assert queue.mean == 3


def test_what_has_no_places_is_refused(recording: Recording) -> None:
    with pytest.raises(UsageError, match="cannot be kept: no event has the vdev"):
        parse_name("io.ops[vdev]")
    assert str(parse_name("zpool.ops[vdev]")) == "zpool.ops[vdev]"
    with pytest.raises(UsageError, match=r"file\.ops has no field 'enclosure'"):
        parse("file.ops[enclosure]")
    with pytest.raises(UsageError, match="can't be broken down by 'slot'"):
        parse("io.utilization[slot]")
    question = Question.of(parse("io.ops[pool=tank]"), (None, None), None, 1, None)
    with pytest.raises(UsageError, match="no event has the pool"):
        plan(question, [])
    assert explain(recording, "io.ops[pool=tank][vdev]").lead == "events"
