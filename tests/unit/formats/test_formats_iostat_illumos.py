# SPDX-License-Identifier: Apache-2.0
"""illumos iostat -x and -xn: columns by name, waiting and active added up."""

from __future__ import annotations

import numpy as np
import pytest

from iolab.base.errors import FormatError
from iolab.formats.core.tables import DeviceTable
from iolab.formats.detect import detect
from iolab.formats.iostat.illumos import IostatIllumos

HEADING = "                    extended device statistics              \n"
NAMED = HEADING + "    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device\n"
ROW = "  100.0  200.0  800.0 3200.0  0.5  1.0    1.5    3.5   5  40 c1t0d0\n"
SECOND = ROW.replace("c1t0d0", "c1t1d0")
PLAIN = HEADING + "device    r/s    w/s   kr/s   kw/s wait actv  svc_t  %w  %b \n"
PLAIN_ROW = "sd0     100.0  200.0  800.0 3200.0  0.5  1.0    5.0   5  40 \n"


def read(text: str) -> DeviceTable:
    return IostatIllumos().read(text.encode(), "iostat.txt")


EXPECTED = {
    "read.iops": 100,
    "write.iops": 200,
    "read.bw": 819200,
    "write.bw": 3276800,
    "queue": 1.5,
    "await": 0.005,
    "util": 0.4,
}


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ((NAMED + ROW) * 3, "c1t0d0"),
        ((PLAIN + PLAIN_ROW) * 3, "sd0"),
        (
            (
                HEADING + "r/s,w/s,kr/s,kw/s,wait,actv,wsvc_t,asvc_t,%w,%b,device\n"
                "100.0,200.0,800.0,3200.0,0.5,1.0,1.5,3.5,5,40,c1t0d0\n"
            )
            * 3,
            "c1t0d0",
        ),
    ],
    ids=["-xn", "-x", "-xnr"],
)
def test_columns_by_name(text: str, device: str) -> None:
    table = read(text)
    assert table.skipped_first
    for name, value in EXPECTED.items():
        assert table.devices[device].columns[name] == pytest.approx([value] * 2), name
    assert table.damaged == ()


def test_time_stamps_since_the_epoch_and_cpu_blocks() -> None:
    cpu = "     cpu\n us sy wt id\n  1  2  0 97\n"
    text = "".join(f"{1700000000 + 5 * k}\n{cpu}{NAMED}{ROW}" for k in range(3))
    samples = read(text).devices["c1t0d0"]
    assert samples.interval == 5.0
    assert samples.time_ns is not None
    assert samples.time_ns.tolist() == [1700000005 * 10**9, 1700000010 * 10**9]
    dated = "".join(
        f"Tuesday,  2 January 2024 at 10:00:0{2 * k} CET\n{NAMED}{ROW}" for k in range(3)
    )
    assert read(dated).devices["c1t0d0"].interval == 2.0


def test_megabytes() -> None:
    text = (
        NAMED.replace("kr/s", "Mr/s").replace("kw/s", "Mw/s")
        + ROW.replace("800.0 3200.0", "  0.8    3.1")
    ) * 2
    assert read(text).devices["c1t0d0"].columns["write.bw"] == pytest.approx([3.1 * 2**20])


def test_a_cut_last_report_is_left_out() -> None:
    whole = (NAMED + ROW + SECOND) * 3
    assert len(read(whole).devices["c1t1d0"].columns["util"]) == 2
    for cut in (whole[:-1], whole[:-3], whole[: -len(SECOND)]):
        assert len(read(cut).devices["c1t1d0"].columns["util"]) == 1


def test_a_damaged_row_is_unknown() -> None:
    table = read((NAMED + ROW) * 2 + NAMED + ROW.replace("200.0", "2oo.0") + NAMED + ROW)
    values = table.devices["c1t0d0"].columns["write.iops"].tolist()
    assert values[0] == values[2] == 200
    assert values[1] != values[1]
    assert len(table.damaged) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "file is empty"),
        (HEADING, "no header"),
        (NAMED, "no reading"),
        ("r/s w/s device\n", "no header"),
    ],
)
def test_a_file_without_readings_says_why(text: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(text)
    assert words in str(caught.value)


FREEBSD = (
    HEADING + "device       r/s     w/s     kr/s     kw/s  ms/r  ms/w  ms/o  ms/t qlen  %b  \n"
)
OLD_FREEBSD = HEADING + "device     r/s   w/s    kr/s    kw/s qlen svc_t  %b  \n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            FREEBSD
            + "ada0         100     200    800.0   3200.0     2     5     0     4    1  40 \n",
            {"read.await": 0.002, "write.await": 0.005, "await": 0.004, "queue": 1},
        ),
        (
            OLD_FREEBSD + "ada0     100.0 200.0   800.0  3200.0    1   4.0  40 \n",
            {"await": 0.004, "queue": 1},
        ),
    ],
)
def test_freebsd(text: str, expected: dict[str, float]) -> None:
    assert detect((text * 3).encode(), "x.txt") == "iostat-illumos"
    table = read(text * 3)
    samples = table.devices["ada0"]
    assert (table.skipped_first, table.damaged, samples.has_interval) == (True, (), False)
    for name, value in {**EXPECTED, **expected}.items():
        if name in expected or name in ("read.iops", "write.iops", "read.bw", "write.bw", "util"):
            assert samples.columns[name] == pytest.approx([value] * 2), name


def test_counts_since_boot_are_no_rates() -> None:
    heading = (
        "device           r/i         w/i         kr/i         kw/i qlen   tsvc_t/i      sb/i  \n"
    )
    table = read(
        (
            HEADING
            + heading
            + "ada0             100.0       200.0        800.0       3200.0    1        4.0      40.0 \n"
        )
        * 3
    )
    assert not table.devices
    assert "iostat -I" in table.assumptions[0]


def test_a_cut_freebsd_report_costs_itself() -> None:
    text = (
        FREEBSD + "ada0         100     200    800.0   3200.0     2     5     0     4    1  40 \n"
    ) * 4
    for cut in range(1, len(text)):
        try:
            table = read(text[:cut])
        except FormatError:
            continue
        # a number that is cut off is unknown, and no other
        assert all(
            len(set(values[~np.isnan(values)])) <= 1
            for samples in table.devices.values()
            for values in samples.columns.values()
        )
