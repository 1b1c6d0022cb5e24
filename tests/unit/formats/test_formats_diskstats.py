# SPDX-License-Identifier: Apache-2.0
"""iolab's log of /proc/diskstats: differences as rates, counters that go back, torn ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.base.errors import FormatError
from iolab.formats.core.tables import DeviceTable
from iolab.formats.host.diskstats import HEADER, DiskstatsLog

START = 1_700_000_000_000_000_000
SECOND = 10**9


def line(
    name: str = "sda", *, reads: int = 0, writes: int = 0, busy_ms: int = 0, width: int = 17
) -> str:
    """Reads of 8 KiB at 2 ms, writes of 16 KiB at 5 ms, as many discards and flushes as writes."""
    values = [
        reads,
        0,
        reads * 16,
        reads * 2,
        writes,
        0,
        writes * 32,
        writes * 5,
        3,
        busy_ms,
        busy_ms * 2,
        writes,
        0,
        writes * 8,
        writes * 1,
        writes,
        7,
    ]
    return f"   8       0 {name} " + " ".join(map(str, values[:width])) + "\n"


def reading(second: float, *lines: str) -> str:
    return f"@ {START + round(second * SECOND)} {round((50 + second) * SECOND)}\n" + "".join(lines)


def read(text: str) -> DeviceTable:
    return DiskstatsLog().read(text.encode(), "diskstats.log")


def log(*readings: str) -> str:
    return HEADER + "\n" + "".join(readings)


@pytest.mark.parametrize("width", [11, 15, 17])
def test_differences_are_rates(width: int) -> None:
    table = read(
        log(
            *[
                reading(
                    2 * k,
                    line(reads=1000 + 200 * k, writes=500 + 400 * k, busy_ms=800 * k, width=width),
                )
                for k in range(4)
            ]
        )
    )
    samples = table.devices["sda"]
    assert samples.interval == 2.0
    assert samples.time_ns is not None
    assert samples.time_ns.tolist() == [START + 2 * k * SECOND for k in (1, 2, 3)]
    expected = {
        "read.iops": 100,
        "write.iops": 200,
        "read.bw": 100 * 8192,
        "write.bw": 200 * 16384,
        "read.await": 0.002,
        "write.await": 0.005,
        "queue": 0.8,
        "util": 0.4,
    }
    expected["await"] = (
        (200 * 2 + 400 * 5) / 600 / 1000 if width == 11 else (200 * 2 + 400 * 5 + 400) / 1000 / 1000
    )
    if width > 11:
        expected |= {"discard.iops": 200, "discard.bw": 200 * 4096}
    if width > 15:
        expected["flush.iops"] = 200
    assert samples.columns.keys() == expected.keys()
    for name, value in expected.items():
        assert samples.columns[name] == pytest.approx([value] * 3), name
    assert samples.source_fields.keys() == expected.keys()
    assert (table.damaged, table.skipped_first) == ((), False)


def test_uneven_readings_are_divided_by_their_own_time() -> None:
    table = read(
        log(reading(0, line(writes=0)), reading(1, line(writes=100)), reading(4, line(writes=400)))
    )
    assert table.devices["sda"].columns["write.iops"].tolist() == [100, 100]


def test_idle_is_zero_and_busy_at_most_one() -> None:
    idle = (
        read(log(reading(0, line()), reading(1, line()), reading(2, line(busy_ms=1020))))
        .devices["sda"]
        .columns
    )
    assert [idle[name][0] for name in ("read.iops", "await", "util", "queue")] == [0, 0, 0, 0]
    assert idle["util"][1] == 1.0


def test_a_counter_that_goes_back_costs_its_interval_alone() -> None:
    table = read(
        log(
            reading(0, line(writes=100)),
            reading(1, line(writes=200)),
            reading(2, line(writes=5)),
            reading(3, line(writes=105)),
        )
    )
    for name, values in table.devices["sda"].columns.items():
        assert np.isnan(values).tolist() == [False, True, False], name


def test_a_device_that_comes_or_goes_is_unknown_meanwhile() -> None:
    table = read(
        log(
            reading(0, line()),
            reading(1, line(writes=1), line("sdb")),
            reading(2, line(writes=2)),
            reading(3, line(writes=3), line("sdb", writes=9)),
            reading(4, line(writes=4), line("sdb", writes=19)),
        )
    )
    assert table.devices["sda"].columns["write.iops"].tolist() == [1, 1, 1, 1]
    assert np.isnan(table.devices["sdb"].columns["write.iops"]).tolist() == [
        True,
        True,
        True,
        False,
    ]


def test_a_torn_end_is_dropped() -> None:
    whole = log(*[reading(k, line(writes=k), line("sdb", writes=k)) for k in range(4)])
    last = whole.rindex("@")
    for cut in (len(whole) - 1, len(whole) - 30, whole.rindex("   8"), last + 10, last + 1):
        table = read(whole[:cut])
        assert len(table.devices["sdb"].columns["util"]) == 2
        assert table.damaged
    assert read(whole[:last]).damaged == ()


def test_a_clock_that_stands_still_is_no_interval() -> None:
    table = read(
        log(reading(0, line(writes=0)), reading(0, line(writes=5)), reading(1, line(writes=10)))
    )
    assert table.devices["sda"].columns["write.iops"].tolist() == [10]
    assert len(table.damaged) == 1


def test_a_single_reading_has_devices_and_no_interval() -> None:
    samples = read(log(reading(0, line()))).devices["sda"]
    assert all(len(values) == 0 for values in samples.columns.values())
    assert samples.time_ns is not None
    assert len(samples.time_ns) == 0


def test_damaged_lines_are_listed() -> None:
    table = read(
        log(reading(0, line()), "noise\n", "@ x y\n", "8 0 sda 1 2\n", reading(1, line(writes=5)))
    )
    assert [number for number, _ in table.damaged] == [4, 5, 6]
    assert table.devices["sda"].columns["write.iops"].tolist() == [5]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 5000)),
        min_size=1,
        max_size=30,
    )
)
def test_no_io_is_lost_between_readings(steps: list[tuple[int, int, int]]) -> None:
    at, reads, writes = 0.0, 0, 0
    readings = [reading(0, line())]
    for more_reads, more_writes, milliseconds in steps:
        at, reads, writes = at + milliseconds / 1000, reads + more_reads, writes + more_writes
        readings.append(reading(at, line(reads=reads, writes=writes)))
    samples = read(log(*readings)).devices["sda"]
    lengths = np.array([milliseconds / 1000 for _, _, milliseconds in steps])
    assert (samples.columns["read.iops"] * lengths).sum() == pytest.approx(reads)
    assert (samples.columns["write.bw"] * lengths).sum() == pytest.approx(writes * 16384)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "file is empty"),
        ("something else\n", "is not a header of this log"),
        ("# iolab diskstats 2\n@ 1 2\n", "log of a newer kind"),
        (HEADER + "\n", "no whole reading"),
        (HEADER + "\n@ 1 2\n", "no whole reading"),
    ],
)
def test_a_log_without_readings_says_why(text: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(text)
    assert words in str(caught.value)
