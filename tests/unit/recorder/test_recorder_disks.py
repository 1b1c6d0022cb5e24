# SPDX-License-Identifier: Apache-2.0
"""Places of disks: what the script prints of made-up sysfs trees and pools, what is made of it where
it is damaged or foreign, and since when it counts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from iolab.base.clock import FakeClock
from iolab.recordings.record.sinks.disks import (
    AGAIN_S,
    LONGEST,
    MOST,
    PERIOD_S,
    SCRIPT,
    DiskPlaces,
    DiskSink,
    parse_places,
)
from iolab.recordings.record.sinks.intake import Sink
from iolab.recordings.store.base.metadata import DiskPeriod, periods_of, places_within
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.waiting import until

SECOND = 10**9
STATUS = """  pool: tank
 state: DEGRADED
  scan: resilver in progress
>a line of another part
config:

>NAME                     STATE     READ WRITE CKSUM
>tank                     DEGRADED     0     0     0
>  mirror-0               DEGRADED     0     0     0
>    /dev/sda1            ONLINE       0     0     0
>    spare-1              DEGRADED     0     0     0
>      7293659126542      UNAVAIL      0     0     0  was /dev/sdx1
>      /dev/sdc1          ONLINE       0     0     0
>  /dev/dm-0              ONLINE       0     0     0
>  /srv/file              ONLINE       0     0     0
>  /dev/sdf1              ONLINE       0     0     0
>logs
>  mirror-1               ONLINE       0     0     0
>    /dev/nvme0n1p1       ONLINE       0     0     0
>    /dev/sdh             ONLINE       0     0     0
>cache
>  /dev/nvme0n1p2         ONLINE       0     0     0
>spares
>  /dev/sdc1              INUSE     currently in use
>  /dev/sdg1              AVAIL

errors: No known data errors

  pool: two words
 state: ONLINE
config:

>NAME         STATE     READ WRITE CKSUM
>two words    ONLINE       0     0     0
>  /dev/sdh   ONLINE       0     0     0

errors: No known data errors
""".replace("\n>", "\n\t")


def made_up_disk(
    sysfs: Path, name: str, enclosure: str = "", slot: str = "", bay: str = ""
) -> Path:
    """A disk, with a link to a component of an enclosure where that has a name."""
    device = sysfs / "devices" / name
    device.mkdir(parents=True)
    block = sysfs / "block" / name
    block.mkdir(parents=True)
    (block / "device").symlink_to(device)
    if enclosure:
        component = sysfs / "devices/ses" / enclosure / (bay or f"Slot {slot}")
        component.mkdir(parents=True)
        if slot:
            (component / "slot").write_text(f"{slot}\n")
        (device / f"enclosure_device:{component.name}").symlink_to(component)
    return block


def answer_of(sysfs: Path, programs: Path, **zpool: str) -> str:
    """What the script prints for one question."""
    for name, text in zpool.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    environment = {"PATH": f"{programs}:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-c", SCRIPT, "sh", str(sysfs)],
        input="\n",
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout.endswith("=end\n")
    return done.stdout.removesuffix("=end\n")


def test_the_script_prints_bays_partitions_and_layers(tmp_path: Path) -> None:
    sysfs = tmp_path / "sys"
    for number in (1, 2):
        block = made_up_disk(sysfs, f"sd{number}", "6:0:0:0", str(number))
        (block / f"sd{number}p1").mkdir()
        (block / f"sd{number}p1/partition").write_text("1\n")
    (sysfs / "devices/ses/6:0:0:0/id").write_text("0x500304801f2b3c3f\n")
    # names of directories where files are empty or missing; a bay without a disk
    made_up_disk(sysfs, "sd3", "7:0:0:0", bay="Bay\tA")
    (sysfs / "devices/ses/7:0:0:0/id").write_text("\n")
    removed = made_up_disk(sysfs, "sd4")
    (removed / "device/enclosure_device:Slot 9").symlink_to(tmp_path / "removed")
    (sysfs / "block/dm-0/slaves").mkdir(parents=True)
    (sysfs / "block/dm-0/slaves/sd1").symlink_to(sysfs / "block/sd1")
    text = answer_of(sysfs, tmp_path)
    assert text.splitlines() == [
        "bay\tsd1\t0x500304801f2b3c3f\t1",
        "bay\tsd2\t0x500304801f2b3c3f\t2",
        "bay\tsd3\t7:0:0:0\tBay\tA",
        "on\tsd1p1\tsd1",
        "on\tsd2p1\tsd2",
        "on\tdm-0\tsd1",
        "=pools",
    ]
    # a name that has tabs is not understood
    assert parse_places(text) == {
        f"sd{number}": {"enclosure": "0x500304801f2b3c3f", "slot": f"0x500304801f2b3c3f/{number}"}
        for number in (1, 2)
    }


def test_the_script_answers_without_disks_and_on_this_machine(tmp_path: Path) -> None:
    assert answer_of(tmp_path / "nothing", tmp_path) == "=pools\n"
    assert "=pools\n" in answer_of(Path("/sys"), tmp_path)


def test_disks_have_the_top_vdev_of_their_pool() -> None:
    sysfs = (
        "bay\tsda\t0x5\t1\nbay\tsda\t0x5\t1\nbay\tsdb\t0x5\t2\nbay\tsdb\t0x6\t2\n"
        "on\tsda1\tsda\non\tsdc1\tsdc\non\tsdg1\tsdg\non\tdm-0\tsdd\non\tdm-0\tsde\n"
        "on\tnvme0n1p1\tnvme0n1\non\tnvme0n1p2\tnvme0n1\non\tdm-0\tdm-0\non\tsdf1\tsdf\n"
    )
    places = parse_places(f"{sysfs}=pools\n{STATUS}")
    vdevs = {disk: own["vdev"] for disk, own in places.items() if "vdev" in own}
    # only disks, as counters of a partition are in those of its disk
    assert vdevs == {
        "sda": "tank/mirror-0",
        "sdc": "tank/mirror-0",
        "sdd": "tank/dm-0",
        "sde": "tank/dm-0",
        "sdf": "tank/sdf",
    }
    # two vdevs on one disk, two pools, two enclosures: none of them
    assert places["nvme0n1"] == {"pool": "tank"}
    assert "sdh" not in places
    assert "sdb" not in places
    assert places["sda"]["slot"] == "0x5/1"


@given(some.text(), some.lists(some.sampled_from(STATUS.splitlines(keepends=True))))
def test_any_text_is_an_answer(text: str, lines: list[str]) -> None:
    for each in (text, f"{text}=pools\n{text}", f"=pools\n{''.join(lines)}{text}"):
        for disk, places in parse_places(each).items():
            assert disk
            assert all(places.values())


def test_places_count_from_the_reading_that_has_them() -> None:
    mirror, stripe = {"vdev": "tank/mirror-0", "pool": "tank"}, {"vdev": "tank/sda", "pool": "tank"}
    places = DiskPlaces([], 100)
    assert places.learn({"sda": mirror}, 110, 111)
    assert not places.learn({"sda": mirror}, 120, 121)
    assert places.learn({"sda": stripe, "sdb": stripe}, 130, 131)
    assert places.learn({"sdb": stripe}, 140, 141)
    assert places.periods == [
        DiskPeriod("sda", 0, 0, mirror),
        DiskPeriod("sda", 120, 131, stripe),
        DiskPeriod("sdb", 120, 131, stripe),
        DiskPeriod("sda", 130, 141, {}),
    ]

    def within(field: str, *ends: int | None) -> tuple[dict[str, str], list[str]]:
        return places_within(places.periods, field, *ends)

    assert within("vdev", None, 120) == ({"sda": "tank/mirror-0"}, [])
    assert within("vdev", None, 121) == ({}, ["sda", "sdb"])
    assert within("pool", None, 121) == ({"sda": "tank"}, ["sdb"])
    assert within("vdev", 130, 131) == ({}, ["sda", "sdb"])
    assert within("vdev", 131, 131) == ({"sdb": "tank/sda"}, ["sda"])
    assert within("vdev", 141, None) == ({"sdb": "tank/sda"}, [])
    assert within("pool", None, None) == ({}, ["sda", "sdb"])
    # another session of the recording: what differs does from its start
    again = DiskPlaces(places.periods, 500)
    assert not again.learn({"sdb": stripe}, 510, 511)
    assert again.learn({"sdb": mirror}, 520, 521)
    other = DiskPlaces(places.periods, 500)
    assert other.learn({}, 510, 511)
    assert other.periods[-1] == DiskPeriod("sdb", 500, 500, {})


def test_the_newest_periods_are_kept() -> None:
    places = DiskPlaces([], 0)
    for time_ns in range(MOST + 10):
        places.learn({"sda": {"pool": str(time_ns)}}, time_ns, time_ns)
    assert len(places.periods) == MOST
    assert places_within(places.periods, "pool", 0, 5) == ({}, [])
    assert places_within(places.periods, "pool", MOST + 9, None) == (
        {"sda": str(MOST + 9)},
        [],
    )


@pytest.mark.parametrize(
    "lines",
    [
        None,
        "sda",
        [None, 7, "sda", {}, {"disk": 7, "after_ns": 0, "from_ns": 0}],
        [{"disk": "sda", "after_ns": 0}],
        [{"disk": "sda", "after_ns": "0", "from_ns": 0}],
        [{"disk": "sda", "after_ns": 1 << 64, "from_ns": 0, "vdev": "tank/sda"}],
        [{"disk": "sda", "after_ns": True, "from_ns": 0, "vdev": "tank/sda"}],
    ],
)
def test_damaged_periods_are_left_out(lines: object) -> None:
    assert list(periods_of({"disks": lines})) == []
    assert list(periods_of({})) == []


def test_damaged_places_are_left_out() -> None:
    line = {"disk": "sda", "after_ns": 0, "from_ns": 0, "vdev": ["tank"], "pool": "tank"}
    assert list(periods_of({"disks": [line]})) == [DiskPeriod("sda", 0, 0, {"pool": "tank"})]


class Shells:
    """Shells for a sink: each is a script of its own."""

    def __init__(self, *scripts: str) -> None:
        self.scripts = list(scripts)

    def __call__(self) -> Sequence[str]:
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        if not script:
            raise FileNotFoundError(2, "no such file")
        return ["sh", "-c", script]


def ticked(
    writer: RecordingWriter, begin: Callable[[], Sequence[str]], enough: Callable[[], bool]
) -> list[float]:
    """Tick until it is enough; times of the ticks."""
    now = [0.0]
    sink = DiskSink(Sink(writer), begin, DiskPlaces([], 0), writer.note_origin, lambda: now[0])
    try:

        def tick() -> bool:
            now[0] += 1.0
            sink.tick(round(now[0] * SECOND))
            return enough()

        until(tick, "an answer", 20)
    finally:
        sink.close()
    return now


LINE = r"bay\tsda\t0x5\t1\n=pools\n  pool: tank\nconfig:\n\ttank\n\t  /dev/sda\n=end\n"


@pytest.mark.parametrize(
    ("scripts", "at_least_s"),
    [
        ([f"while read -r _; do printf '{LINE}'; done"], 0.0),
        # an answer in two pieces
        ([f"while read -r _; do printf bay; sleep 0.1; printf '{LINE[3:]}'; done"], 0.0),
        # a shell that cannot be started, ends, or prints without end: another one later
        (["", f"while read -r _; do printf '{LINE}'; done"], AGAIN_S),
        (["exit 3", f"while read -r _; do printf '{LINE}'; done"], AGAIN_S),
        ([f"head -c {LONGEST + 9} /dev/zero; cat", f"while read -r _; do printf '{LINE}'; done"], AGAIN_S),
        # an answer that says nothing: the next one counts
        ([f"read -r _; echo =end; while read -r _; do printf '{LINE}'; done"], PERIOD_S),
    ],
)  # fmt: skip
def test_the_sink_notes_places_in_the_recording(
    scripts: list[str], at_least_s: float, tmp_path: Path
) -> None:
    clock = FakeClock(1_700_000_000 * SECOND)
    writer = RecordingWriter.create(
        tmp_path / "r", host="here", clock="realtime", origin={"kind": "record"}, system=clock
    )
    path = tmp_path / "r"
    now = ticked(writer, Shells(*scripts), lambda: "disks" in writer.facts.origin)
    assert now[0] >= at_least_s
    writer.close()
    certain = places_within(
        periods_of(Recording(path).facts.origin), "slot", round(now[0] * SECOND), None
    )
    assert certain == ({"sda": "0x5/1"}, [])
