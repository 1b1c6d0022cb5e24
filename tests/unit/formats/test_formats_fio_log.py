# SPDX-License-Identifier: Apache-2.0
"""fio's logs over time: columns of all versions, damage by the line, rates per second."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.base.errors import FormatError
from iolab.formats.core.tables import FioLogTable
from iolab.formats.fio.log import FioLog
from iolab.formats.fio.seconds import per_second

DATA = Path(__file__).parents[2] / "data" / "formats"


def read(text: str | bytes) -> FioLogTable:
    return FioLog().read(text if isinstance(text, bytes) else text.encode(), "x_bw.1.log")


@pytest.mark.parametrize(
    ("rows", "offsets", "averaged"),
    [
        (["1000, 800, 1, 0", "2000, 900, 0, 0"], None, True),
        (["1, 45, 1, 4096", "2, 46, 0, 8192"], None, False),
        (["1, 45, 1, 4096, 81920", "2, 46, 0, 4096, 0"], [81920, 0], False),
        (["1000, 800, 1, 0, 0", "2000, 900, 0, 0, 1"], None, True),
        (["1000, 800, 1, 0, 0x2004", "2000, 900, 0, 0, 0x0000"], None, True),
        (["1, 45, 1, 4096, 81920, 0", "2, 46, 0, 4096, 0, 1"], [81920, 0], False),
        (["1, 45, 1, 4096, 81920, 0x2004", "2, 46, 0, 4096, 0, 0x0000"], [81920, 0], False),
        (
            ["1, 45, 1, 4096, 81920, 0, 12345678", "2, 46, 0, 4096, 0, 1, 12345699"],
            [81920, 0],
            False,
        ),
        (["1000, 800, 1900, 1, 0, 0", "2000, 900, 3000, 0, 0, 0"], None, True),
        (["1000, 800, 1900, 1, 0, 0, 0", "2000, 900, 3000, 0, 0, 0, 0"], [0, 0], True),
    ],
    ids=[
        "4",
        "per I/O",
        "offset before 3.19",
        "priority",
        "log_prio",
        "offset",
        "offset, log_prio",
        "issue time",
        "both",
        "both, offset",
    ],
)
def test_columns_of_every_version(
    rows: list[str], offsets: list[int] | None, averaged: bool
) -> None:
    table = read("\n".join(rows) + "\n")
    assert table.operation.tolist() == [1, 0]
    assert table.value.tolist() == ([800.0, 900.0] if averaged else [45.0, 46.0])
    assert (None if table.offset_bytes is None else table.offset_bytes.tolist()) == offsets
    assert table.averaged is averaged
    assert table.damaged == ()
    assert table.time.tolist() == ([1.0, 2.0] if averaged else [0.001, 0.002])


def test_logs_of_fio_3_33_with_epoch_and_with_offsets() -> None:
    table = read((DATA / "fio-3.33-epoch_bw.1.log").read_bytes())
    assert table.averaged
    assert np.diff(table.time) == pytest.approx([1.0], abs=0.01)
    assert 1.7e9 < table.time[0] < 1e10
    offset = read((DATA / "fio-3.33-offset_lat.1.log").read_bytes())
    assert len(offset.time) == 40
    assert offset.offset_bytes is not None
    assert set(offset.offset_bytes % 4096) == {0}
    assert not offset.averaged


def test_both_ways_through_the_reader_agree() -> None:
    text = "".join(f"{k}, {k * 7 % 100}, {k % 2}, 4096, {k * 4096}, 0\n" for k in range(200))
    fast, careful = read(text), read(text.replace(", 0\n", ", 0x0000\n", 1))
    for column in ("time", "value", "operation", "block_size_bytes", "offset_bytes"):
        assert getattr(fast, column).tolist() == getattr(careful, column).tolist()


def test_damaged_lines_cost_themselves_and_are_listed() -> None:
    table = read(
        "1, 45, 1, 4096\nnonsense\n2, 46, 1\n3, 47, 99, 4096\n4, 48, 1, 4096, 7\n-5, 1, 1, 4096\n"
        "6, 50, 1, 4096\n7, 51, 1, 40"
    )
    assert table.value.tolist() == [45.0, 50.0]
    assert [number for number, _ in table.damaged] == [2, 3, 4, 5, 6, 8]
    assert table.damaged[-1][1] == "cut off: no line end"


def test_lines_that_make_up_for_each_other_are_not_taken() -> None:
    # six fields and two where there should be four and four
    table = read("1, 45, 1, 4096\n2, 46, 1, 4096, 3, 47\n1, 4096\n4, 48, 1, 4096\n")
    assert table.value.tolist() == [45.0, 48.0]
    assert len(table.damaged) == 2


@pytest.mark.parametrize(
    "text", ["", "\n", "a, b, c, d\n", "1, 2, 3\n", "1, 2, 99, 4\n2, 3, 98, 4\n", "1, 2, 1, 4096"]
)
def test_a_file_without_a_row_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        read(text)


def windows(window_ms: int, seconds: int, rate: int, jitter: int = 0) -> str:
    ends = range(window_ms, seconds * 1000 + 1, window_ms)
    return "".join(
        f"{end + (jitter if k % 2 else -jitter)}, {rate}, 1, 0, 0\n" for k, end in enumerate(ends)
    )


@pytest.mark.parametrize("window_ms", [100, 250, 500, 1000, 2000])
@pytest.mark.parametrize("jitter", [0, 2])
def test_a_steady_rate_is_that_rate_in_every_second(window_ms: int, jitter: int) -> None:
    result = per_second([read(windows(window_ms, 10, 800, jitter))], "bw")
    assert result.time.tolist() == list(range(10))
    assert result.rates["write"] == pytest.approx([800 * 1024] * 10, rel=0.02)


def test_jobs_add_up_and_operations_stay_apart() -> None:
    one = read(windows(1000, 5, 100))
    two = read(
        windows(500, 5, 50) + "".join(f"{end}, 7, 0, 0, 0\n" for end in range(500, 5001, 500))
    )
    result = per_second([one, two], "iops")
    assert result.rates["write"] == pytest.approx([150.0] * 5)
    assert result.rates["read"] == pytest.approx([7.0] * 5)


def test_seconds_without_a_row_are_zero_and_the_row_after_them_is_not_stretched() -> None:
    text = "".join(f"{end}, 100, 1, 0, 0\n" for end in (1000, 2000, 3000, 8000, 9000, 10000))
    assert per_second([read(text)], "iops").rates["write"].tolist() == [
        100,
        100,
        100,
        0,
        0,
        0,
        0,
        100,
        100,
        100,
    ]


def test_one_file_for_all_jobs_holds_one_job_after_the_other() -> None:
    assert per_second([read(windows(1000, 4, 100) * 3)], "iops").rates["write"] == pytest.approx(
        [300.0] * 4
    )


def test_epoch_times_count_from_the_first_window() -> None:
    text = "".join(f"{1_700_000_000_250 + end}, 100, 1, 0, 0\n" for end in range(1000, 5001, 1000))
    result = per_second([read(text)], "iops")
    assert result.origin == pytest.approx(1_700_000_000.25)
    assert result.rates["write"] == pytest.approx([100.0] * 5)


def test_a_short_last_second_is_left_out() -> None:
    assert len(per_second([read(windows(500, 4, 100) + "4300, 100, 1, 0, 0\n")], "iops").time) == 4


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 9999), st.integers(0, 2), st.integers(1, 2**20)),
        min_size=1,
        max_size=200,
    )
)
def test_of_single_ios_none_is_lost(ios: list[tuple[int, int, int]]) -> None:
    rows = [*sorted(ios), (10_000, 0, 1)]
    table = read("".join(f"{time}, 1, {operation}, {size}, 0\n" for time, operation, size in rows))
    count, size = per_second([table], "iops"), per_second([table], "bw")
    for number, name in enumerate(("read", "write", "trim")):
        mine = [size for _, operation, size in sorted(ios) if operation == number]
        assert sum(count.rates.get(name, np.zeros(1))) == pytest.approx(len(mine))
        assert sum(size.rates.get(name, np.zeros(1))) == pytest.approx(sum(mine))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3000), st.integers(1, 10**6)), min_size=3, max_size=60))
def test_what_windows_moved_is_spread_without_loss(steps: list[tuple[int, int]]) -> None:
    time, rows = 0, []
    for step, rate in steps:
        time += step
        rows.append((time, rate))
    table = read("".join(f"{end}, {rate}, 1, 0, 0\n" for end, rate in rows))
    result = per_second([table], "iops")
    spacing = float(np.median(np.diff([end for end, _ in rows])))
    lengths = [min(rows[0][0], spacing)] + [
        step if step <= 1.5 * spacing else spacing for step, _ in steps[1:]
    ]
    moved = sum(length / 1000 * rate for length, (_, rate) in zip(lengths, rows, strict=True))
    assert sum(result.rates["write"]) <= moved * (1 + 1e-9)
    if rows[-1][0] % 1000 == 0:
        assert sum(result.rates["write"]) == pytest.approx(moved)


def test_times_that_cannot_be_one_run_are_refused() -> None:
    with pytest.raises(FormatError, match="span"):
        per_second([read("1000, 1, 1, 0\n"), read("1700000000000, 1, 1, 0\n")], "iops")
    with pytest.raises(FormatError, match="span"):
        per_second([read("1, 1, 1, 4096\n9000000000000000000, 1, 1, 4096\n")], "iops")


def test_no_rows_are_no_seconds() -> None:
    assert len(per_second([], "bw").time) == 0


def test_a_job_that_lacks_its_last_window_is_no_slump_and_one_that_ended_early_is() -> None:
    whole, late, early = (read(windows(1000, seconds, 100)) for seconds in (10, 9, 4))
    assert per_second([whole, late], "iops").rates["write"] == pytest.approx([200.0] * 9)
    assert per_second([whole, early], "iops").rates["write"] == pytest.approx(
        [200.0] * 4 + [100.0] * 6
    )
