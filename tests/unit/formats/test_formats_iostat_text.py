# SPDX-License-Identifier: Apache-2.0
"""sysstat's iostat as text: every era's columns by name, rows without header by their number,
damage, time stamps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.errors import FormatError
from iolab.formats.core.tables import DeviceTable
from iolab.formats.detect import detect
from iolab.formats.iostat.text_output import LAYOUTS, IostatText
from support.golden import Golden

DATA = Path(__file__).parents[2] / "data" / "formats"

BANNER = "Linux 5.10.0 (box) \t01/02/24 \t_x86_64_\t(8 CPU)\n\n"
CPU = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           1.00    0.00    2.00    0.50    0.00   96.50\n\n"

OLD = "Device:         rrqm/s   wrqm/s     r/s     w/s    {r}    {w} avgrq-sz avgqu-sz   await r_await w_await  svctm  %util\n"
# one second: 100 reads of 8 KiB at 2 ms, 200 writes of 16 KiB at 5 ms, 1.2 in flight, 40 % busy
IN_KB = "sda 0.00 0.00 100.00 200.00 800.00 3200.00 26.67 1.20 4.00 2.00 5.00 1.33 40.00\n"
IN_MB = "sda 0.00 0.00 100.00 200.00 0.78 3.12 26.67 1.20 4.00 2.00 5.00 1.33 40.00\n"
IN_SECTORS = "sda 0.00 0.00 100.00 200.00 1600.00 6400.00 26.67 1.20 4.00 2.00 5.00 1.33 40.00\n"
SEPARATE = (
    "Device r/s w/s rkB/s wkB/s rrqm/s wrqm/s %rrqm %wrqm r_await w_await aqu-sz rareq-sz wareq-sz svctm %util\n",
    "sda 100.00 200.00 800.00 3200.00 0.00 0.00 0.00 0.00 2.00 5.00 1.20 8.00 16.00 1.33 40.00\n",
)
GROUPED = (
    "Device r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz "
    "d/s dkB/s drqm/s %drqm d_await dareq-sz aqu-sz %util\n",
    "sda 100.00 800.00 0.00 0.00 2.00 8.00 200.00 3200.00 0.00 0.00 5.00 16.00 "
    "3.00 12.00 0.00 0.00 1.00 4.00 1.20 40.00\n",
)
FLUSHES = (
    GROUPED[0].replace("aqu-sz %util", "f/s f_await aqu-sz %util"),
    GROUPED[1].replace("1.20 40.00", "7.00 0.50 1.20 40.00"),
)
ERAS = {
    "kB until 11.5.6": (OLD.format(r="rkB/s", w="wkB/s"), IN_KB),
    "MB until 11.5.6": (OLD.format(r="rMB/s", w="wMB/s"), IN_MB),
    "sectors until 11.5.6": (OLD.format(r="rsec/s", w="wsec/s"), IN_SECTORS),
    "11.5.7 to 12.1.1": SEPARATE,
    "12.1.2 on": GROUPED,
    "12.3.1 on": FLUSHES,
}


def read(text: str) -> DeviceTable:
    return IostatText().read(text.encode(), "iostat.txt")


def reports(header: str, *rows: str, stamps: tuple[str, ...] = (), cpu: bool = False) -> str:
    middle = CPU if cpu else ""
    parts = [f"{stamps[k] if stamps else ''}{middle}{header}{row}\n" for k, row in enumerate(rows)]
    return BANNER + "".join(parts)


@pytest.mark.parametrize("era", list(ERAS))
def test_every_era_means_the_same(era: str) -> None:
    header, row = ERAS[era]
    table = read(reports(header, row, row, row, cpu=True))
    samples = table.devices["sda"]
    assert table.skipped_first
    assert any("since boot" in note for note in table.assumptions)
    tolerance = 0.005 if "MB" in era else 1e-9
    expected = {
        "read.iops": 100,
        "write.iops": 200,
        "read.bw": 800 * 1024,
        "write.bw": 3200 * 1024,
        "read.await": 0.002,
        "write.await": 0.005,
        "await": 0.004,
        "queue": 1.2,
        "util": 0.4,
    }
    for name, value in expected.items():
        assert samples.columns[name] == pytest.approx([value] * 2, rel=tolerance), name
    if "12." in era and "on" in era:
        assert samples.columns["discard.bw"] == pytest.approx([12 * 1024] * 2)
    if era == "12.3.1 on":
        assert samples.columns["flush.iops"].tolist() == [7, 7]
    assert samples.source_fields["util"] == ("%util", "%")


def test_files_of_sysstat_12_6_1() -> None:
    table = IostatText().read((DATA / "iostat-12.6.1-x.txt").read_bytes(), "x")
    samples = table.devices["vda"]
    assert samples.interval == 1.0
    assert samples.time_ns is not None
    assert np.diff(samples.time_ns).tolist() == [10**9, 10**9]
    assert samples.columns["write.iops"].tolist() == [2872.0, 6478.0, 5362.0]
    assert samples.columns["util"] == pytest.approx([0.296, 0.58, 0.464])
    plain = IostatText().read((DATA / "iostat-12.6.1-plain.txt").read_bytes(), "x").devices["vda"]
    assert plain.columns["write.bw"] == pytest.approx([58780 * 1024, 103584 * 1024])
    short = IostatText().read((DATA / "iostat-12.6.1-short.txt").read_bytes(), "x").devices["vda"]
    assert set(short.columns) == {"await", "queue", "util"}


def test_human_output_has_a_table_per_operation_and_units_on_numbers() -> None:
    samples = IostatText().read((DATA / "iostat-12.6.1-human.txt").read_bytes(), "x").devices["vda"]
    assert samples.columns["read.iops"].tolist() == [2846.0]
    assert samples.columns["read.bw"] == pytest.approx([42.8 * 2**20])
    assert samples.columns["util"] == pytest.approx([0.3])
    assert samples.columns["queue"].tolist() == [0.52]


def test_a_single_report_is_kept_with_a_note() -> None:
    table = read(reports(*FLUSHES))
    assert not table.skipped_first
    assert len(table.devices["sda"].columns["util"]) == 1
    assert any("only report" in note for note in table.assumptions)


@pytest.mark.parametrize(
    ("stamps", "interval", "known"),
    [
        (("01/02/24 10:59:58\n", "01/02/24 11:00:03\n", "01/02/24 11:00:08\n"), 5.0, False),
        (
            ("01/02/2024 11:59:58 PM\n", "01/03/2024 12:00:00 AM\n", "01/03/2024 12:00:02 AM\n"),
            2.0,
            False,
        ),
        (("Time: 10:00:00\n", "Time: 10:00:01\n", "Time: 10:00:02\n"), 1.0, False),
        (
            (
                "2024-01-02T10:00:00+0100\n",
                "2024-01-02T10:00:10+0100\n",
                "2024-01-02T10:00:20+0100\n",
            ),
            10.0,
            True,
        ),
    ],
    ids=["24 hours", "12 hours over midnight", "old", "ISO"],
)
def test_time_stamps_give_the_interval_and_with_a_zone_the_time(
    stamps: tuple[str, ...], interval: float, known: bool
) -> None:
    samples = read(reports(*FLUSHES, FLUSHES[1], FLUSHES[1], stamps=stamps)).devices["sda"]
    assert samples.interval == interval
    if known:
        assert samples.time_ns is not None
        assert samples.time_ns.tolist() == [1704186010 * 10**9, 1704186020 * 10**9]
    else:
        assert samples.time_ns is None


def test_a_device_left_out_was_idle_and_a_damaged_row_is_unknown() -> None:
    header, row = SEPARATE
    other = row.replace("sda", "sdb")
    broken = other.replace("1.20", "1.2o")
    table = read(reports(header, row + other, row + other, row, row + broken, row + other))
    assert table.devices["sda"].columns["write.iops"].tolist() == [200] * 4
    values = table.devices["sdb"].columns["write.iops"]
    assert values[[0, 1, 3]].tolist() == [200, 0, 200]
    assert np.isnan(values[2])
    assert len(table.damaged) == 1
    assert any("sdb is missing from 1 reports" in note for note in table.assumptions)


def test_a_report_cut_off_by_the_end_of_the_file_is_left_out() -> None:
    header, row = SEPARATE
    whole = reports(
        header,
        row + row.replace("sda", "sdb"),
        row + row.replace("sda", "sdb"),
        row + row.replace("sda", "sdb"),
    )
    assert len(read(whole).devices["sdb"].columns["util"]) == 2
    assert len(read(whole.rstrip("\n")).devices["sdb"].columns["util"]) == 2, (
        "only the line ends were taken away"
    )
    for cut in (whole[: whole.rindex("sdb")], whole.rstrip("\n")[:-1], whole.rstrip("\n")[:-20]):
        table = read(cut)
        assert len(table.devices["sdb"].columns["util"]) == 1
        assert len(table.damaged) >= 1


def test_decimal_commas_and_windows_line_ends() -> None:
    header, row = SEPARATE
    samples = read(reports(header, row, row).replace(".", ",").replace("\n", "\r\n")).devices["sda"]
    assert samples.columns["queue"].tolist() == [1.2]


def test_long_names_on_a_line_of_their_own() -> None:
    header, row = SEPARATE
    long = row.replace("sda", "a-very-long-device-mapper-name\n           ")
    assert read(reports(header, long, long)).devices["a-very-long-device-mapper-name"].columns[
        "queue"
    ].tolist() == [1.2]


ROWS = {
    12: "sda 0.00 0.00 100.00 200.00 {r} {w} 26.67 1.20 4.00 1.33 40.00\n",
    14: "sda 0.00 0.00 100.00 200.00 {r} {w} 26.67 1.20 4.00 2.00 5.00 1.33 40.00\n",
    16: SEPARATE[1].replace("800.00", "{r}").replace("3200.00", "{w}").replace("3{r}", "{w}"),
    21: GROUPED[1].replace(" 800.00", " {r}").replace("3200.00", "{w}"),
    23: FLUSHES[1].replace(" 800.00", " {r}").replace("3200.00", "{w}"),
}


@pytest.mark.parametrize("width", list(LAYOUTS))
def test_rows_without_a_header_may_have_decimal_commas(width: int) -> None:
    row = ROWS[width].format(r="800.00", w="3200.00")
    points, commas = (
        read(text * 3).devices["sda"].columns for text in (row, row.replace(".", ","))
    )
    assert {name: values.tolist() for name, values in commas.items()} == {
        name: values.tolist() for name, values in points.items()
    }


@pytest.mark.parametrize("width", list(LAYOUTS))
@pytest.mark.parametrize(
    ("r", "w"),
    [("800.00", "3200.00"), ("1600.00", "6400.00"), ("0.78", "3.12")],
    ids=["kB", "sectors", "MB"],
)
def test_rows_without_header_are_told_by_their_number_and_sizes(width: int, r: str, w: str) -> None:
    row = ROWS[width].format(r=r, w=w)
    assert len(row.split()) == width
    table = read(row * 5)
    samples = table.devices["sda"]
    assert not table.skipped_first
    assert samples.columns["write.iops"].tolist() == [200] * 5
    assert samples.columns["write.bw"] == pytest.approx([3200 * 1024] * 5, rel=0.005)
    assert samples.columns["await"] == pytest.approx([0.004] * 5)
    assert any(f"{width} fields" in note for note in table.assumptions)
    assert not samples.has_interval
    assert any("doesn't say the time between rows" in note for note in table.assumptions)


def test_rows_of_several_devices_without_header() -> None:
    one = ROWS[14].format(r="800.00", w="3200.00")
    table = read((one + one.replace("sda", "sdb")) * 4)
    assert [len(table.devices[name].columns["util"]) for name in ("sda", "sdb")] == [4, 4]


def test_a_damaged_row_without_header_leaves_its_second_unknown() -> None:
    row = ROWS[14].format(r="800.00", w="3200.00")
    table = read(row * 2 + "sda 0.00 0.0" + "\n" + row + "???\n" + row[:-2])
    values = table.devices["sda"].columns["util"]
    assert values[[0, 1, 3]].tolist() == [0.4] * 3
    assert np.isnan(values[2])
    assert len(values) == 4, "the row without its last digit is cut off"
    assert [number for number, _ in table.damaged] == [3, 5, 6]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "file is empty"),
        (BANNER, "nothing but iostat's first line"),
        (BANNER + SEPARATE[0], "no reading of a device"),
    ],
)
def test_a_file_without_readings_says_why(text: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(text)
    assert words in str(caught.value)


BARE = "0.00 12.00 0.00 3200.00 1.20\n" * 5


@pytest.mark.parametrize(
    "text",
    [
        BANNER + CPU * 3,
        BARE,
        BARE.replace(".", ","),
        "sda 1.0 2.0 3.0\n",
        "Device: a b c\nsda 1 2 3\n\n",
        (
            "       tty             ada0              cpu\n"
            " tin  tout  KB/t  tps  MB/s  us ni sy in id\n   0  3 22.1  12 0.26  1  0  1  0 98\n"
        ),
        "              capacity     operations     bandwidth\npool        alloc   free   read  write   read  write\n",
        "Filesystem:              rkB_nor/s    wkB_nor/s\nserver:/home 1.0 2.0\n",
        "what I did on Monday\nran fio\nwent home\n",
    ],
)
def test_what_tells_of_no_device_is_named_for_what_it_is(text: str, golden: Golden) -> None:
    assert detect(text.encode(), "iostat.txt") == "iostat-text"
    table = read(text)
    assert (dict(table.devices), table.damaged) == ({}, ())
    golden("formats/iostat-no-device", "\n".join(table.assumptions))


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ("sda 5.00 20.00 30.00 100 150\n", ["read.bw", "write.bw"]),
        ("sda 5.00 20.00 30.00 0.00 100 150 0\n", ["read.bw", "write.bw", "discard.bw"]),
        ("sda 5,00 20,00 30,00 100 150\n", ["read.bw", "write.bw"]),
        ("sda 5.00 20.00 0.00 1.50 0.01 4.00 0.75\n", ["await", "queue", "util"]),
    ],
)
def test_rows_without_header_and_without_x_are_read_where_the_file_is_called_iostat(
    row: str, names: list[str]
) -> None:
    assert detect((row * 5).encode(), "iostat-sda.txt") == "iostat-text"
    assert detect((row * 5).encode(), "other.txt") is None
    samples = read(row * 5).devices["sda"]
    assert set(samples.columns) == set(names)
    if "read.bw" in names:
        assert samples.columns["read.bw"] == pytest.approx([20 * 1024] * 5)


@given(
    st.lists(
        st.sampled_from(
            [
                CPU,
                BARE,
                "sda 1.0 2.0\n",
                "\n",
                BANNER,
                "Device x y\n",
                ROWS[12].format(r="800.00", w="3200.00"),
                "sda 5.00 20.00 30.00 100 150\n",
            ]
        ),
        min_size=1,
        max_size=6,
    ),
    st.integers(0, 400),
)
def test_any_mixture_is_read_or_named(parts: list[str], cut: int) -> None:
    text = "".join(parts)[: cut or None]
    try:
        table = read(text)
    except FormatError:
        return
    assert table.devices or "left out" in table.assumptions[0]


def test_a_time_stamp_beyond_64_bits_is_none() -> None:
    table = read(
        "".join(
            f"9999-01-02T10:00:0{place}+00:00\n{SEPARATE[0]}{SEPARATE[1]}\n" for place in range(3)
        )
    )
    assert (table.devices["sda"].time_ns, table.devices["sda"].interval) == (None, 1.0)
