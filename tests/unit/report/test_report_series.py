# SPDX-License-Identifier: Apache-2.0
"""Series are packed without losing what a reader could see."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from iolab.output.report.sections.series import (
    TimeBases,
    round_values,
    strips,
    thin,
    without_devices,
)
from iolab.studies.results.evidence.model import Series
from support.report_data import seconds


def test_series_are_grouped_by_quantity_with_devices_in_one_unit() -> None:
    bases = TimeBases()
    made = strips(seconds(), bases)
    assert [strip.name for strip in made] == ["device.util", "device.write.bw"]
    assert made[0].unit == "%"
    assert [line.device for line in made[1].lines] == ["", "sda", "sdb"]
    assert made[1].lines[0].values[5] is None
    assert made[1].lines[0].values[20:24] == [0, 0, 0, 0]
    assert bases.times == [list(range(1, 31))]


@pytest.mark.parametrize(
    ("total", "prefix", "title"),
    [
        ("device.bw", "device.", "device throughput"),
        ("load.bw", "", "throughput of the load"),
    ],
)
def test_total_throughput_is_kept_where_reads_and_writes_both_happen(
    total: str, prefix: str, title: str
) -> None:
    time = np.arange(1.0, 4.0)
    names = {total, f"{prefix}read.bw", f"{prefix}write.bw"}
    both = [Series(name, "B/s", time, time) for name in names]
    made = strips(both, TimeBases())
    assert {strip.name for strip in made} == names
    assert [strip.title for strip in made if strip.name == total] == [title]
    writes = [one for one in both if one.name != f"{prefix}read.bw"]
    assert [strip.name for strip in strips(writes, TimeBases())] == [f"{prefix}write.bw"]


def test_devices_can_be_left_out() -> None:
    time = np.arange(1.0, 4.0)
    made = without_devices(
        strips([*seconds(), Series("device.read.bw[sda]", "B/s", time, time)], TimeBases())
    )
    assert {strip.name for strip in made} == {"device.bw", "device.util", "device.write.bw"}
    assert {line.device for strip in made for line in strip.lines} == {""}


def test_empty_zero_and_unknown_series_are_left_out() -> None:
    none = np.array([])
    quiet = [
        Series("a", "", none, none),
        Series("b", "", np.ones(3), np.zeros(3)),
        Series("c", "", np.ones(3), np.full(3, np.nan)),
    ]
    assert strips(quiet, TimeBases()) == []


@given(arrays.arrays(np.float64, st.integers(0, 40), elements=st.floats(-1e15, 1e15)))
def test_rounding_keeps_four_digits(values: np.ndarray) -> None:
    for short, value in zip(round_values(values), values, strict=True):
        assert short is not None
        assert abs(short - value) <= 6e-4 * abs(value) + 1e-290


def test_rounding_of_what_is_not_finite() -> None:
    assert round_values(np.array([np.nan, np.inf, -np.inf, 0.0, 5.0])) == [None, None, None, 0, 5]


@pytest.mark.slow
@given(st.integers(1, 9000), st.integers(0, 8999))
def test_thinning_keeps_the_peak_and_the_order(count: int, peak: int) -> None:
    values = np.zeros(count)
    values[peak % count] = 7
    time, kept = thin(np.arange(float(count)), values, 2000)
    assert len(time) <= 2000
    assert kept.max() == 7
    assert time[kept.argmax()] == peak % count
    assert np.all(np.diff(time) > 0)


def test_a_long_series_says_that_it_was_thinned() -> None:
    time = np.arange(1.0, 5001.0)
    strip = strips([Series("write.iops", "1/s", time, time)], TimeBases())[0]
    assert strip.note.startswith("5000 readings")
    assert len(strip.lines[0].values) <= 2000
