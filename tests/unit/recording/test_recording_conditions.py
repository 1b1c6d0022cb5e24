# SPDX-License-Identifier: Apache-2.0
"""Conditions and ranges as users write them."""

from __future__ import annotations

import pytest

from iolab.base.errors import UsageError
from iolab.recordings.store.base.conditions import parse_range, parse_where


@pytest.mark.parametrize(
    ("texts", "where"),
    [
        (["op=write,device=sda"], {"op": ["write"], "device": ["sda"]}),
        (["op=read,write"], {"op": ["read", "write"]}),
        (["op=read", "op=trim"], {"op": ["read", "trim"]}),
        (["latency>=10ms"], {"latency": ["10000000.."]}),
        (["latency<1.5us"], {"latency": ["..1500"]}),
        (["latency=1ms..10ms"], {"latency": ["1000000..10000000"]}),
        (["size=8KiB"], {"size": ["8192..8193"]}),
        (["size>4096,op=read"], {"size": ["4097.."], "op": ["read"]}),
        (["offset<=1GiB"], {"offset": ["..1073741825"]}),
        (["process=my db"], {"process": ["my db"]}),
        ([], {}),
    ],
)
def test_conditions(texts: list[str], where: dict[str, list[str]]) -> None:
    assert parse_where(texts) == where


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("write", "is not a condition"),
        ("planet=mars", "there is no dimension 'planet'; there are op, device"),
        ("op>read", "is a name"),
        ("latency>=10", "has no unit"),
        ("latency>=10KiB", "is a size, not a time"),
        ("size=1ms", "is a time, not a size"),
        ("op=", "names no value"),
        ("latency=10ms..1ms", "is empty"),
        ("size>=-5", "negative"),
    ],
)
def test_wrong_conditions(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_where([text])


@pytest.mark.parametrize(
    ("text", "dimension", "ends"),
    [
        ("0..10ms", "time", (0, 10**7)),
        ("1ms..", "time", (10**6, None)),
        ("..8KiB", "size", (None, 8192)),
        ("4096..1MiB", "size", (4096, 2**20)),
    ],
)
def test_ranges(text: str, dimension: str, ends: tuple[int | None, int | None]) -> None:
    assert parse_range(text, dimension) == ends


@pytest.mark.parametrize("text", ["10ms", "..", "", "5ms..2ms", "1..2", "a..b"])
def test_wrong_ranges(text: str) -> None:
    with pytest.raises(UsageError):
        parse_range(text, "time")
