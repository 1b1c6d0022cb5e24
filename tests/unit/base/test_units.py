# SPDX-License-Identifier: Apache-2.0
"""Units: parsing, base units, readable writing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.errors import UsageError
from iolab.base.units import (
    UNITS,
    format_number,
    format_quantity,
    parse_fio_size,
    parse_fio_time,
    parse_quantity,
    readable_unit,
    to_base,
)


@pytest.mark.parametrize(
    ("value", "symbol", "expected"),
    [
        (45, "us", (45e-6, "s")),
        (45, "µs", (45e-6, "s")),
        (1623, "MiB/s", (1623 * 2**20, "B/s")),
        (10, "Gbit/s", (1.25e9, "B/s")),
        (98.5, "%", (0.985, "1")),
        (7, "1/s", (7, "1/s")),
        (8, "KiB", (8192, "B")),
        (3, "kB", (3000, "B")),
    ],
)
def test_to_base(value: float, symbol: str, expected: tuple[float, str]) -> None:
    base, unit = to_base(value, symbol)
    assert base == pytest.approx(expected[0])
    assert unit == expected[1]


def test_an_unknown_unit_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown unit 'furlong'; known units: .*MiB/s"):
        to_base(1, "furlong")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8k", 8192),
        ("8K", 8192),
        ("8kb", 8192),
        ("8ki", 8192),
        ("8192", 8192),
        ("1g", 2**30),
        ("128KiB", 131072),
        ("2m", 2**21),
    ],
)
def test_fio_sizes(text: str, size: int) -> None:
    assert parse_fio_size(text) == size


def test_fio_sizes_with_the_other_base() -> None:
    assert parse_fio_size("8k", kb_base=1000) == 8000
    assert parse_fio_size("8ki", kb_base=1000) == 8192


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60", 60),
        (60, 60),
        ("60s", 60),
        ("1m", 60),
        ("500ms", 0.5),
        ("2h", 7200),
        ("1.5s", 1.5),
        ("1min", 60),
        ("1h30m", 5400),
        ("1h 30min", 5400),
        ("2 hours", 7200),
        ("1m30s", 90),
    ],
)
def test_fio_times(text: str | int, seconds: float) -> None:
    assert parse_fio_time(text) == seconds


@pytest.mark.parametrize("text", ["", "8q", "k8", "-1k", "8 8", "1e3"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_fio_size(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "-5s",
        "1 fortnight",
        "30m1h",
        "1h1h",
        "1h30",
        "h",
        "1h-30m",
        "1" * 5000 + "x",
        "1h" * 5000,
    ],
)
def test_no_times(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        parse_fio_time(text)


def test_quantities_know_their_dimension() -> None:
    assert parse_quantity("1192 MiB/s", "bandwidth") == 1192 * 2**20
    assert parse_quantity("2.5", "time") == 2.5
    with pytest.raises(UsageError, match="is a time, not a bandwidth"):
        parse_quantity("5 ms", "bandwidth")
    with pytest.raises(UsageError, match="is not a quantity"):
        parse_quantity("fast", "rate")


@given(st.sampled_from(sorted(UNITS)), st.floats(1e-6, 1e12))
def test_every_unit_goes_to_base_and_back(symbol: str, value: float) -> None:
    base, _ = to_base(value, symbol)
    assert base / UNITS[symbol].scale == pytest.approx(value)


@pytest.mark.parametrize(
    ("values", "base", "symbol"),
    [
        ([0.000045], "s", "µs"),
        ([0.0085, 0.012, 0.14], "s", "ms"),
        ([1.7e9], "B/s", "GiB/s"),
        ([7000.0], "1/s", "1/s"),
        ([250_000.0], "1/s", "k/s"),
        ([0.5], "1", "%"),
        ([], "s", "s"),
        ([0.0], "s", "s"),
        ([float("nan")], "B", "B"),
    ],
)
def test_readable_units(values: list[float], base: str, symbol: str) -> None:
    assert readable_unit(values, base)[0] == symbol


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (167.258304, "167.3"),
        (12674.24, "12 674"),
        (0.0001234, "0.0001234"),
        (0, "0"),
        (float("nan"), "—"),
        (float("inf"), "∞"),
        (9999.6, "10000"),
        (-5.5, "-5.500"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert format_number(value) == text


def test_a_quantity_in_its_own_unit() -> None:
    assert format_quantity(0.000045, "s") == "45.00 µs"
    assert format_quantity(12, "") == "12.00"
