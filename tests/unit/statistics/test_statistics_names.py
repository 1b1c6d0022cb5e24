# SPDX-License-Identifier: Apache-2.0
"""Names of statistics: what is read is printed the same, and what is wrong is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from iolab.base.errors import UsageError
from iolab.recordings.ask.language.catalogue import CATALOGUE, Entry
from iolab.recordings.ask.language.fields import ANY, UTILIZATION
from iolab.recordings.ask.language.quantities import parse_whole, print_whole
from iolab.recordings.ask.question import Between, Filter, Statistic, Value, parse
from support.golden import Golden

VECTORS = json.loads((Path(__file__).parents[2] / "vectors/statistics.json").read_text())


def plain(value: Value) -> Any:
    if isinstance(value, str):
        return value
    return [None if end is None else str(end) for end in (value.low, value.high)]


@pytest.mark.parametrize("case", VECTORS["parsed"], ids=lambda case: case["text"])
def test_what_is_read(case: dict[str, Any]) -> None:
    found = parse(case["text"])
    assert str(found) == case["printed"]
    assert f"{found.group}.{found.name}" == case["name"]
    assert found.breakdown == case["breakdown"]
    assert [
        {"field": each.field, "sign": each.sign, "values": [plain(value) for value in each.values]}
        for each in found.filters
    ] == case["filters"]


@pytest.mark.parametrize("case", VECTORS["refused"], ids=lambda case: case["text"])
def test_what_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as error:
        parse(case["text"])
    assert case["says"] in error.value.message
    assert error.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "io.opps",
        "io.ops[latencey]",
        "io.ops[op=wrte]",
        "app.ops[proces]",
        "IO.OPS",
        "txg",
        "ZIL.x[op]",
        "memory",
        "io.nothing",
        "nosuch.thing",
    ],
)
def test_what_is_near(text: str, golden: Golden) -> None:
    with pytest.raises(UsageError) as error:
        parse(text)
    golden("statistics/near", str(error.value))


whole = some.integers(0, 2**64 - 1)


@some.composite
def ranges(draw: some.DrawFn) -> Between:
    low, high = draw(some.none() | whole), draw(some.none() | whole)
    if low is not None and high is not None and low >= high:
        low, high = high, low + 1
    return Between(low, high) if (low, high) != (None, None) else Between(0, 1)


@some.composite
def filters(draw: some.DrawFn, entry: Entry) -> Filter:
    field = ANY[draw(some.sampled_from(entry.filters))]
    if field.kind == "name":
        known = entry.words(field.name)
        words = some.sampled_from(known) if known else some.text(max_size=12)
        return Filter(
            field.name,
            draw(some.sampled_from(("=", "!="))),
            tuple(draw(some.lists(words, min_size=1, max_size=3))),
        )
    sign = draw(some.sampled_from(("=", "!=", ">=", ">", "<", "<=")))
    if sign in ("=", "!="):
        return Filter(field.name, sign, tuple(draw(some.lists(ranges(), min_size=1, max_size=3))))
    value = draw(whole)
    return Filter(field.name, sign, (Between(value, value + 1),))


@some.composite
def statistics(draw: some.DrawFn) -> Statistic:
    entry = CATALOGUE[draw(some.sampled_from(sorted(CATALOGUE)))]
    group, _, name = entry.name.partition(".")
    return Statistic(
        group,
        name,
        tuple(draw(some.lists(filters(entry), max_size=4))) if entry.filters else (),
        draw(some.sampled_from((None, *entry.breakdowns))),
    )


@given(statistics())
def test_printed_and_read_again_it_is_the_same(statistic: Statistic) -> None:
    assert parse(str(statistic)) == statistic


@given(some.text(alphabet='io.ps[]=!<>,"\\ latency0123ms', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse("io.ops[" + text)
    except UsageError:
        return
    assert parse(str(found)) == found


@given(whole, some.sampled_from(("time", "size", "number")))
def test_quantities_are_exact(value: int, kind: Any) -> None:
    assert parse_whole(print_whole(value, kind), kind) == value


def test_a_breakdown_is_a_field_that_can_be_filtered() -> None:
    for entry in CATALOGUE.values():
        assert set(entry.breakdowns) - {UTILIZATION.name} <= set(entry.filters) <= set(ANY)
