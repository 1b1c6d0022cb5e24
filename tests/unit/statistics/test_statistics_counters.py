# SPDX-License-Identifier: Apache-2.0
"""Statistics from counters: rates between readings, nothing where a counter began anew or a gap
lies, and sums without doubles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from iolab.base.clock import FakeClock
from iolab.base.errors import UsageError
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.available import available
from iolab.recordings.ask.language import fields
from iolab.recordings.ask.language.catalogue import CATALOGUE
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.schema import SAMPLES
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.trace import Trace
from iolab.recordings.store.write.writer import RecordingWriter
from support.counters import NAN, SECOND, START, disk, kept, same, series, stack
from support.depth import depth
from support.statistics_data import Event, trace_of


@pytest.mark.parametrize("hot", [False, True])
def test_rates_are_differences_per_second(tmp_path: Path, hot: bool) -> None:
    recording = kept(
        tmp_path,
        {"diskstats": disk("sda", "reads", [5, 15, 35, 35]) + disk("sda", "writes", [0, 1, 1, 4])},
        hot=hot,
    )
    same(series(recording, "io.ops", (0, 3)).values, [11, 20, 3])
    found = stack(recording, "io.ops[op]", (0, 3))
    assert (found.keys, found.totals, found.total, found.source) == (
        ["read", "write"],
        [30, 4],
        34,
        "diskstats",
    )
    assert "not reported there: trim, flush" in found.notes
    same(found.values[0], [10, 20, 0])
    assert found.mean == pytest.approx(34 / 3)
    assert series(recording, "io.ops[op=write]", (0, 3)).total == 4
    assert series(recording, "io.ops[op!=write][device=sda]", (0, 3)).total == 30
    same(series(recording, "io.ops", (0, 3), 0.5).values, [11, 11, 20, 20, 3, 3])
    # of a window within readings the part that lies in it
    assert series(recording, "io.ops[op=read]", (0.5, 2), 0.5).total == 25


def test_sectors_are_512_bytes(tmp_path: Path) -> None:
    recording = kept(
        tmp_path,
        {
            "diskstats": disk("sda", "read_sectors", [0, 8, 16])
            + disk("sda", "discard_sectors", [0, 0, 2])
        },
    )
    found = series(recording, "io.bytes", (0, 2))
    same(found.values, [4096, 5120])
    assert (found.total, found.unit) == (9216, "B/s")


def test_a_counter_that_begins_anew_tells_nothing_of_that_second(tmp_path: Path) -> None:
    recording = kept(
        tmp_path,
        {"diskstats": disk("sda", "reads", [100, 110, 3, 5]) + disk("sdb", "reads", [0, 1, 2, 3])},
    )
    same(series(recording, "io.ops", (0, 3)).values, [11, NAN, 3])
    found = stack(recording, "io.ops[device]", (0, 3))
    same(found.values[found.keys.index("sda")], [10, NAN, 2])
    same(found.values[found.keys.index("sdb")], [1, 1, 1])


def test_what_was_away_and_came_back_tells_nothing_of_that_time(tmp_path: Path) -> None:
    # an interface that gets this name brings its counters along
    away = [
        (0.0, "sdb", "reads", 100),
        (1.0, "sdb", "reads", 110),
        (5.0, "sdb", "reads", 5_000_000),
        (6.0, "sdb", "reads", 5_000_007),
    ]
    recording = kept(tmp_path, {"diskstats": disk("sda", "reads", [0, 1, 2, 3, 4, 5, 6]) + away})
    found = stack(recording, "io.ops[device]", (0, 6))
    same(found.values[found.keys.index("sda")], [1] * 6)
    same(found.values[found.keys.index("sdb")], [10, NAN, NAN, NAN, NAN, 7])
    same(series(recording, "io.ops", (0, 6)).values, [11, 1, 1, 1, 1, 8])


def test_a_peer_that_is_quiet_is_no_peer_that_left(tmp_path: Path) -> None:
    quiet = [
        (0.0, "10.0.0.9", "sent_bytes", 0),
        (1.0, "10.0.0.9", "sent_bytes", 10),
        (4.0, "10.0.0.9", "sent_bytes", 40),
    ]
    recording = kept(tmp_path, {"tcp": disk("others", "sent_bytes", [0] * 5) + quiet})
    assert series(recording, "ip.bytes[peer=10.0.0.9]", (0, 4)).total == 40


def test_a_gap_tells_nothing(tmp_path: Path) -> None:
    times = [0, 1, 2, 3, 60, 61]
    recording = kept(tmp_path, {"diskstats": [(at, "sda", "reads", 10 * at) for at in times]})
    found = series(recording, "io.ops", (0, 61))
    same(found.values, [10, 10, 10, *[NAN] * 57, 10])
    assert (found.total, found.covered_ns) == (40, 4 * SECOND)
    # beyond the readings nothing is known either
    same(series(recording, "io.ops", (60, 63)).values, [10, NAN, NAN])


def test_a_session_in_between_is_a_gap(tmp_path: Path) -> None:
    clock = FakeClock(START)
    folder = tmp_path / "r"

    def write(writer: RecordingWriter, at: int, value: int) -> None:
        rows = [["diskstats"], [START + at * SECOND], ["sda"], ["reads"], [value]]
        writer.append_samples(
            pa.RecordBatch.from_arrays(
                [pa.array(row, field.type) for row, field in zip(rows, SAMPLES, strict=True)],
                schema=SAMPLES,
            )
        )

    writer = RecordingWriter.create(
        folder, host="here", clock="realtime", origin={"kind": "record"}, system=clock
    )
    write(writer, 0, 0)
    clock.sleep(1)
    write(writer, 1, 7)
    writer.close()
    clock.sleep(1)
    writer = RecordingWriter.reopen(folder, system=clock)
    write(writer, 2, 100)
    clock.sleep(1)
    write(writer, 3, 101)
    writer.close()
    same(series(Recording(folder), "io.ops", (0, 3)).values, [7, NAN, 1])


def test_partitions_and_what_is_made_of_disks_are_no_part_of_the_sum(tmp_path: Path) -> None:
    held = [
        row
        for name, step in (
            ("sda", 10),
            ("sda1", 6),
            ("sda2", 4),
            ("dm-0", 10),
            ("nvme0n1", 5),
            ("nvme0n1p1", 5),
            ("loop0", 0),
        )
        for row in disk(name, "reads", [step * at for at in range(4)])
    ]
    recording = kept(tmp_path, {"diskstats": held})
    found = series(recording, "io.ops", (0, 3))
    same(found.values, [15, 15, 15])
    assert (
        "the sum holds nvme0n1, sda; not dm-0, loop0, nvme0n1p1, sda1, sda2, "
        "which are partitions, stacked devices, or no disks" in found.notes
    )
    every = stack(recording, "io.ops[device]", (0, 3))
    assert every.keys == ["dm-0", "sda", "sda1", "nvme0n1", "nvme0n1p1", "sda2"]
    assert (every.total, every.mean) == (45, 15)
    assert series(recording, "io.ops[device=sda1,dm-0]", (0, 3)).total == 48


@pytest.mark.parametrize(
    ("kind", "names", "expected"),
    [
        ("device", "sda sda1 sdb10 sdb", "sda sdb"),
        ("device", "dm-0 dm-1", "dm-0 dm-1"),
        ("device", "vda vda1 zram0 sr0 zd0 zd0p1", "vda"),
        ("device", "zram0 sr0", "zram0 sr0"),
        ("device", "loop0 zram0", "loop0"),
        ("device", "mmcblk0 mmcblk0p1 mmcblk0boot0", "mmcblk0 mmcblk0boot0"),
        ("device", "sda1", "sda1"),
        ("device", "md127 md127p1", "md127"),
        ("device", "nvme0n1 nvme1n1 nvme1n1p2", "nvme0n1 nvme1n1"),
        ("interface", "lo eth0 docker0 veth1a bond0 eth0.7", "eth0"),
        ("interface", "lo", "lo"),
        ("interface", "enp1s0 br0 br-ff wlan0 wg0", "enp1s0 wlan0"),
        ("cpu", "cpu0 cpu1", "cpu0 cpu1"),
    ],
)
def test_what_a_sum_holds(kind: str, names: str, expected: str) -> None:
    assert fields.objects_in_sum(kind, names.split()) == set(expected.split())


def test_utilization_is_a_share_and_a_map(tmp_path: Path) -> None:
    recording = kept(
        tmp_path,
        {"diskstats": disk("sda", "io_ms", [0, 500, 1500]) + disk("sdb", "io_ms", [7, 7, 17])},
    )
    found = series(recording, "io.utilization", (0, 2))
    same(found.values, [0.25, 0.505])
    assert (found.unit, found.total) == ("1", 0)
    assert found.mean == pytest.approx(1.51 / 4)
    by = stack(recording, "io.utilization[device]", (0, 2))
    assert by.keys == ["sda", "sdb"]
    same(by.values[0], [0.5, 1.0])
    counts = query(
        recording,
        "io.utilization[utilization]",
        from_ns=START,
        until_ns=START + 2 * SECOND,
        interval_ns=SECOND,
    )
    assert isinstance(counts, HeatCounts)
    assert list(
        zip(counts.column.tolist(), counts.index.tolist(), counts.count.tolist(), strict=True)
    ) == [(0, 0, 1), (0, 50, 1), (1, 1, 1), (1, 100, 1)]
    assert counts.events == 4


def busy_map(recording: Recording, seconds: int, interval_ns: int) -> HeatCounts:
    counts = query(
        recording,
        "io.utilization[utilization]",
        from_ns=START,
        until_ns=START + seconds * SECOND,
        interval_ns=interval_ns,
    )
    assert isinstance(counts, HeatCounts)
    return counts


def cells_of(counts: HeatCounts) -> dict[tuple[int, int], int]:
    """(start of the column in ns, percent) to count."""
    return {
        ((counts.t0_ns - START) + column * counts.interval_ns, index): count
        for column, index, count in zip(
            counts.column.tolist(), counts.index.tolist(), counts.count.tolist(), strict=True
        )
    }


def test_peaks_stay_in_longer_columns_of_a_map(tmp_path: Path) -> None:
    shares = [0, 760, 0, 0, 20, 0, 0, 0, 1000, 0]
    recording = kept(
        tmp_path, {"diskstats": disk("sda", "io_ms", [sum(shares[:at]) for at in range(11)])}
    )
    counts = busy_map(recording, 10, 10 * SECOND)
    assert cells_of(counts) == {(0, 0): 7, (0, 2): 1, (0, 76): 1, (0, 100): 1}
    assert (counts.events, counts.gaps) == (10, ())


def test_columns_between_readings_are_empty(tmp_path: Path) -> None:
    recording = kept(tmp_path, {"diskstats": disk("sda", "io_ms", [0, 500, 700])})
    counts = busy_map(recording, 2, SECOND // 10)
    assert cells_of(counts) == {(9 * SECOND // 10, 50): 1, (19 * SECOND // 10, 20): 1}
    assert (counts.events, counts.gaps) == (2, ())


@settings(max_examples=depth(8, 25), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    some.lists(
        some.tuples(some.integers(-300, 300), some.integers(0, 1000), some.integers(0, 1000)),
        min_size=30,
        max_size=30,
    ),
    some.sampled_from([SECOND // 4, SECOND, 2 * SECOND]),
)
@pytest.mark.slow
def test_a_longer_column_of_a_map_is_the_sum_of_shorter_ones(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int]], interval_ns: int
) -> None:
    times = [at + jitter / 1000 for at, (jitter, _, _) in enumerate(rows)]
    grown = np.cumsum([row[1:] for row in rows], axis=0)
    readings = [
        (max(0.0, at), name, "io_ms", int(grown[place, which]))
        for place, at in enumerate(times)
        for which, name in enumerate(("sda", "sdb"))
    ]
    recording = kept(tmp_path_factory.mktemp("coarse"), {"diskstats": readings})
    fine, coarse = busy_map(recording, 40, interval_ns), busy_map(recording, 40, 10 * SECOND)
    added: dict[tuple[int, int], int] = {}
    for (at, percent), count in cells_of(fine).items():
        added[at // (10 * SECOND) * 10 * SECOND, percent] = (
            added.get((at // (10 * SECOND) * 10 * SECOND, percent), 0) + count
        )
    assert added == cells_of(coarse)
    assert fine.events == coarse.events == 2 * (len(rows) - 1)
    # the same over windows of their own
    apart = [
        query(
            recording,
            "io.utilization[utilization]",
            from_ns=START + at * SECOND,
            until_ns=START + (at + 1) * SECOND,
            interval_ns=SECOND,
        )
        for at in range(10)
    ]
    assert sum(part.events for part in apart if isinstance(part, HeatCounts)) == sum(
        count for (at, _), count in cells_of(coarse).items() if at == 0
    )


def test_the_queue_is_what_waits_on_average(tmp_path: Path) -> None:
    recording = kept(tmp_path, {"diskstats": disk("sda", "weighted_io_ms", [0, 4000, 6000])})
    found = series(recording, "io.queue", (0, 2))
    same(found.values, [4, 2])
    assert found.mean == pytest.approx(3)


def test_processors_by_mode(tmp_path: Path) -> None:
    fields = {"user": 30, "guest": 10, "system": 10, "idle": 50, "iowait": 10}
    held = [
        row
        for name in ("", "cpu0", "cpu1")
        for field, step in fields.items()
        for row in disk(name, field, [(2 if name == "" else 1) * step * at for at in range(3)])
    ]
    recording = kept(tmp_path, {"cpu": held})
    same(series(recording, "cpu.utilization", (0, 2)).values, [0.4, 0.4])
    modes = stack(recording, "cpu.utilization[mode]", (0, 2))
    named = dict(zip(modes.keys, modes.averages or [], strict=True))
    assert named == pytest.approx({"user": 0.2, "guest": 0.1, "system": 0.1})
    same(modes.values.sum(axis=0), [0.4, 0.4])
    same(series(recording, "cpu.utilization[mode=idle,iowait]", (0, 2)).values, [0.6, 0.6])
    cpus = stack(recording, "cpu.utilization[cpu]", (0, 2))
    assert sorted(cpus.keys) == ["cpu0", "cpu1"]
    assert cpus.mean == pytest.approx(0.4)
    assert series(recording, "cpu.utilization[cpu=cpu1]", (0, 2)).mean == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("condition", "values", "note"),
    [
        ("[cpu=0]", [0.5, 0.5], ""),
        ("[cpu=cpu0]", [0.5, 0.5], ""),
        ("[cpu!=0]", [0.25, 0.25], ""),
        ("[cpu=7]", [NAN, NAN], "there was no cpu 'cpu7' then; there were cpu0, cpu1"),
        ("[cpu!=cpu7]", [0.375, 0.375], "there was no cpu 'cpu7' then; there were cpu0, cpu1"),
        ("[cpu=0,first]", [0.5, 0.5], "there was no cpu 'first' then; there were cpu0, cpu1"),
    ],
)
def test_a_processor_that_is_not_there(
    tmp_path: Path, condition: str, values: list[float], note: str
) -> None:
    ticks = [
        reading
        for thing, busy in (("", 75), ("cpu0", 50), ("cpu1", 25))
        for reading in (
            *disk(thing, "user", [0, busy, 2 * busy]),
            *disk(thing, "idle", [0, 100 - busy, 200 - 2 * busy]),
        )
    ]
    found = series(kept(tmp_path, {"cpu": ticks}), f"cpu.utilization{condition}", (0, 2))
    same(found.values, values)
    assert [each for each in found.notes if each.startswith("there was")] == (
        [note] if note else []
    )


def test_names_that_are_not_there() -> None:
    assert fields.missing("device", ["sdb"], []) == []
    [one] = fields.missing("interface", ["eth0", "eth0"], ["eth10", "eth2"])
    assert one == "there was no interface 'eth0' then; there were eth2, eth10"
    [many] = fields.missing(
        "peer", ["10.0.0.99"], [f"10.0.0.{place}" for place in range(90, 0, -1)] + ["10.0.0.98"]
    )
    assert many.startswith("there was no peer '10.0.0.99' then; did you mean '10.0.0.")
    assert many.endswith(
        "there were 10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4, 10.0.0.5, 10.0.0.6, 10.0.0.7, 10.0.0.8, 10.0.0.9, "
        "10.0.0.10, 10.0.0.11, 10.0.0.12 and 79 more"
    )


def test_waiting_that_falls_a_little_is_no_new_start(tmp_path: Path) -> None:
    held = (
        disk("", "user", [0, 50, 100])
        + disk("", "idle", [0, 50, 100])
        + disk("", "iowait", [9, 8, 7])
    )
    same(series(kept(tmp_path, {"cpu": held}), "cpu.utilization", (0, 2)).values, [0.5, 0.5])


def test_memory_is_what_is_used_unless_named(tmp_path: Path) -> None:
    sizes = {
        "MemTotal": 100,
        "MemFree": 30,
        "AnonPages": 20,
        "Cached": 25,
        "Buffers": 5,
        "Slab": 10,
        "Dirty": 3,
        "MemAvailable": 50,
    }
    recording = kept(
        tmp_path,
        {"memory": [row for field, size in sizes.items() for row in disk("", field, [size] * 3)]},
    )
    found = series(recording, "memory.bytes", (0, 2))
    same(found.values, [70, 70])
    assert found.mean == pytest.approx(70)
    assert (found.total, found.unit) == (0, "B")
    kinds = stack(recording, "memory.bytes[kind]", (0, 2))
    assert dict(zip(kinds.keys, kinds.averages or [], strict=True)) == pytest.approx(
        {"cached": 25, "anonymous": 20, "slab": 10, "other": 10, "buffers": 5}
    )
    same(series(recording, "memory.bytes[kind=dirty]", (0, 2)).values, [3, 3])


def test_levels_may_fall(tmp_path: Path) -> None:
    recording = kept(tmp_path, {"memory": disk("", "MemFree", [9, 5, 7])})
    same(series(recording, "memory.bytes[kind=free]", (0, 2)).values, [5, 7])


def test_interfaces_and_directions(tmp_path: Path) -> None:
    held = [
        row
        for name in ("lo", "eth0")
        for field, step in (("rx_bytes", 10), ("tx_bytes", 3))
        for row in disk(name, field, [step * at for at in range(3)])
    ]
    recording = kept(tmp_path, {"network": held})
    found = stack(recording, "net.bytes[direction]", (0, 2))
    assert (found.keys, found.totals) == (["in", "out"], [20, 6])
    assert series(recording, "net.bytes[interface=lo][direction=out]", (0, 2)).total == 6


def test_links_and_room_in_file_systems(tmp_path: Path) -> None:
    # a link that goes down tells no speed from then on
    held = [row for place in range(3) for row in disk("eth0", "speed_mbit", [1000], place)] + disk(
        "eth1", "speed_mbit", [100, 100]
    )
    room = [
        row
        for name, size in (("/", 100), ("/data", 1000))
        for field, share in (("size_bytes", 1.0), ("free_bytes", 0.4), ("available_bytes", 0.3))
        for row in disk(name, field, [round(size * share)] * 3)
    ]
    recording = kept(tmp_path, {"network": held, "filesystems": room})
    found = stack(recording, "net.link[interface]", (0, 2))
    same(found.values, [[125e6, 125e6], [12.5e6, NAN]])
    used = stack(recording, "fs.capacity[mount]", (0, 2))
    assert (used.keys, used.unit) == (["/data", "/"], "B")
    assert used.mean == pytest.approx(660)
    same(used.values, [[600, 600], [60, 60]])
    same(series(recording, "fs.capacity[kind=available][mount=/]", (0, 2)).values, [30, 30])


def test_events_are_preferred_but_for_those_far_from_the_device(tmp_path: Path) -> None:
    counted = {"diskstats": disk("sda", "reads", [0, 1000, 2000])}
    events = [Event(START + place * 10**8) for place in range(1, 11)]
    near = kept(tmp_path / "near", counted, events=events)
    assert series(near, "io.ops", (0, 2)).source == "block"
    found = query(
        near,
        "io.ops",
        from_ns=START,
        until_ns=START + 2 * SECOND,
        interval_ns=SECOND,
        source="diskstats",
    )
    assert isinstance(found, Series)
    assert (found.source, found.total) == ("diskstats", 2000)
    far = kept(tmp_path / "far", counted, events=events, source="syscall")
    assert series(far, "io.ops", (0, 2)).source == "diskstats"
    # what counters can't tell, events do
    assert stack(far, "io.ops[process]", (0, 2)).source == "syscall"


def test_what_cannot_be_asked_of_counters(tmp_path: Path) -> None:
    recording = kept(tmp_path, {"diskstats": disk("sda", "reads", [0, 1])})
    for name, source, says in (
        ("io.ops[process]", None, "do not tell the process"),
        ("cpu.utilization", None, "holds no counters of cpu"),
        ("io.queue", "block", "comes of the counters of diskstats alone"),
        ("io.ops[latency]", None, "latency"),
        ("file.ops", None, "holds no events of syscall"),
    ):
        with pytest.raises(UsageError) as error:
            query(recording, name, source=source)
        assert says in error.value.message
        assert error.value.hint
    with pytest.raises(UsageError, match="comes of counters, and a trace has none"):
        query(trace_of([Event(1)], tmp_path / "t.csv"), "cpu.utilization")


def test_what_is_available(tmp_path: Path) -> None:
    counted = kept(
        tmp_path / "c", {"diskstats": disk("sda", "reads", [0, 1]), "cpu": disk("", "user", [0, 1])}
    )
    found = {each.entry.name: each for each in available(counted)}
    assert set(found) == set(CATALOGUE)
    assert (found["io.ops"].source, found["io.ops"].breakdowns) == ("diskstats", ("op", "device"))
    assert found["cpu.utilization"].counted
    assert found["net.bytes"].why_not == "there are no counters of network"
    assert found["file.ops"].why_not == "syscall was not recorded"
    trace = Trace(trace_of([Event(1)], tmp_path / "t.csv").path)
    by_trace = {each.entry.name: each.source for each in available(trace)}
    assert by_trace["io.ops"] == "csv"
    assert by_trace["cpu.utilization"] == ""
    for each in found.values():
        if each.source:
            for field in each.breakdowns:
                query(counted, f"{each.entry.name}[{field}]")


growths = some.lists(some.integers(0, 10**6), min_size=1, max_size=20)


@pytest.mark.slow
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None
)
@given(growths, some.integers(1, 7), some.data())
def test_sums_of_columns_are_the_growth_of_the_counter(
    tmp_path_factory: pytest.TempPathFactory, growth: list[int], parts: int, data: some.DataObject
) -> None:
    """However a span is cut into columns and windows, what is counted adds up to the last reading
    less the first."""
    folder = tmp_path_factory.mktemp("growth")
    values = [0, *np.cumsum(growth).tolist()]
    recording = kept(folder, {"diskstats": disk("sda", "reads", values)})
    whole = series(recording, "io.ops", (0, len(growth)), parts / 3)
    assert whole.total == values[-1]
    cut = data.draw(some.integers(0, len(growth)))
    if 0 < cut < len(growth):
        assert series(recording, "io.ops", (0, cut)).total == values[cut]
        assert series(recording, "io.ops", (cut, len(growth))).total == values[-1] - values[cut]
    assert not (whole.values < 0).any()
