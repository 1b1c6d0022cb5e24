# SPDX-License-Identifier: Apache-2.0
"""When an alert is raised, said again and clear: decided from values alone, and from the time of
day."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.errors import UsageError
from iolab.output.server.alerts.alert import Alert
from iolab.output.server.alerts.alert_rule import (
    SECOND,
    Reading,
    Standing,
    beyond,
    parse_hours,
    sentence,
    step,
)

START = 1_700_000_000 * SECOND


def alert(**changes: Any) -> Alert:
    return Alert.model_validate(
        {
            "name": "slow",
            "recording": "",
            "statistic": "io.ops[latency>=10ms]",
            "exceeds": 5,
            "falls_below": None,
            "for_seconds": 3,
            "only_during": "",
            "repost_minutes": 0,
            "also_when_clear": True,
            "actions": [],
            **changes,
        }
    )


def told(
    watched: Alert, values: Sequence[float | None], during: list[bool] | None = None
) -> list[tuple[int, str]]:
    """(second at whose end it was said, what) for a value each second."""
    standing, found = Standing(), list[tuple[int, str]]()
    for second, value in enumerate(values):
        reading = Reading(
            START + second * SECOND,
            START + (second + 1) * SECOND,
            value,
            during is None or during[second],
        )
        standing, event = step(watched, standing, reading)
        if event is not None:
            found.append((second, event))
    return found


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 6, 6, 6], [(3, "raised")]),
        ([6, 6, 6, 6, 6, 6], [(2, "raised")]),
        ([6, 6, 1, 6, 6], []),
        ([5, 5, 5, 5], []),
        ([6, 6, None, 6, 6], []),
        ([6, 6, None, 6, 6, 6], [(5, "raised")]),
        ([6, 6, 6, 1, 1, 1], [(2, "raised"), (5, "clear")]),
        ([6, 6, 6, 1, 1, 6, 1, 1, 1], [(2, "raised"), (8, "clear")]),
        ([6, 6, 6, 1, 1, None, 1, 1, 1], [(2, "raised"), (8, "clear")]),
        ([6, 6, 6, None, None, None, 6], [(2, "raised")]),
        ([6] * 3 + [1] * 3 + [6] * 3, [(2, "raised"), (5, "clear"), (8, "raised")]),
    ],
)
def test_it_takes_as_long_to_be_raised_as_to_be_clear(
    values: list[float | None], expected: list[tuple[int, str]]
) -> None:
    assert told(alert(), values) == expected
    mirrored = alert(exceeds=None, falls_below=-5)
    assert told(mirrored, [None if value is None else -value for value in values]) == expected


def test_it_is_said_again_after_so_many_minutes() -> None:
    assert told(alert(repost_minutes=1), [6] * 200) == [
        (2, "raised"),
        (62, "again"),
        (122, "again"),
        (182, "again"),
    ]
    assert told(alert(repost_minutes=1), [6] * 50 + [1, 6] * 70) == [
        (2, "raised"),
        *((second, "again") for second in (63, 123, 183)),
    ]


def test_out_of_hours_it_is_quiet() -> None:
    during = [True] * 2 + [False] * 3 + [True] * 5
    assert told(alert(), [6] * 10, during) == [(7, "raised")], "what was pending begins anew"
    assert told(alert(), [6] * 10, [True] * 5 + [False] * 5) == [(2, "raised")]


@given(st.lists(st.one_of(st.none(), st.floats(0, 10)), max_size=80), st.integers(1, 5))
def test_raised_and_clear_alternate_and_each_has_its_reason(
    values: list[float | None], seconds: int
) -> None:
    watched = alert(for_seconds=seconds)
    found = told(watched, values)
    assert [event for _, event in found] == ["raised", "clear"] * (len(found) // 2) + ["raised"] * (
        len(found) % 2
    )
    for second, event in found:
        run = values[second - seconds + 1 : second + 1]
        assert len(run) == seconds
        assert all(
            value is not None and beyond(watched, value) == (event == "raised") for value in run
        )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "io.ops[latency>=10ms] exceeds 5 for at least 3 s, also when clear"),
        (
            {
                "exceeds": None,
                "falls_below": 0.5,
                "only_during": "08:00-18:00 mon-fri",
                "repost_minutes": 10,
                "also_when_clear": False,
                "actions": [
                    {"do": "log"},
                    {"do": "command", "name": "page"},
                    {"do": "record", "statistic": "io.ops[process]", "minutes": 5},
                ],
            },
            "io.ops[latency>=10ms] falls below 0.5 for at least 3 s, only during 08:00-18:00 mon-fri, said again every 10 min; "
            "runs page and keeps io.ops[process] for 5 min",
        ),
    ],
)
def test_an_alert_is_a_sentence(changes: dict[str, Any], words: str) -> None:
    assert sentence(alert(**changes)) == words


@pytest.mark.parametrize(
    "changes",
    [
        {"exceeds": None},
        {"falls_below": 3},
        {"exceeds": float("nan")},
        {"for_seconds": 0},
        {"for_seconds": 10**6},
        {"name": "../x"},
        {"name": ""},
        {"actions": [{"do": "shell", "words": "rm"}]},
        {"actions": [{"do": "log"}] * 9},
        {"repost_minutes": -1},
        {"actions": [{"do": "command", "name": "a;b"}]},
        {"actions": [{"do": "record", "statistic": "io.ops", "minutes": 0}]},
    ],
)
def test_what_is_no_alert(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Alert"):
        alert(**changes)


def at(text: str) -> datetime.datetime:
    """Friday is 2026-03-06."""
    return datetime.datetime.fromisoformat(f"2026-03-{text}")


@pytest.mark.parametrize(
    ("hours", "inside", "outside"),
    [
        (
            "08:00-18:00 mon-fri",
            ["06T08:00", "06T17:59:59", "02T12:00"],
            ["06T07:59:59", "06T18:00", "07T12:00", "08T12:00"],
        ),
        ("08:00-18:00", ["07T12:00"], ["07T18:00"]),
        ("00:00-24:00 weekends", ["07T00:00", "08T23:59"], ["06T23:59", "09T00:00"]),
        (
            "22:00-06:00 fri",
            ["06T22:00", "06T23:59", "07T05:59"],
            ["06T05:59", "06T21:59", "07T06:00", "07T22:00"],
        ),
        ("09:30-09:31  SAT,sun ", ["07T09:30"], ["07T09:31", "06T09:30"]),
        ("12:00-13:00 sat-mon", ["07T12:00", "08T12:00", "09T12:00"], ["06T12:00", "10T12:00"]),
        ("00:00-00:00 all", ["03T00:00", "03T23:59"], []),
    ],
)
def test_hours_hold_their_times(hours: str, inside: list[str], outside: list[str]) -> None:
    found = parse_hours(hours)
    assert found is not None
    assert all(found.hold(at(each)) for each in inside)
    assert not any(found.hold(at(each)) for each in outside)


@pytest.mark.parametrize(
    "text",
    [
        "8-18",
        "08:00",
        "08:00-18:00 someday",
        "25:00-26:00",
        "08:60-09:00",
        "08:00-18:00 mon-",
        "08:00-18:00 -fri",
        "08:00-18:00 mon fri",
        "\u0661\u0662:00-13:00",
        "08:00-24:01",
        "x" * 60,
    ],
)
def test_what_is_no_time_of_day(text: str) -> None:
    with pytest.raises(UsageError):
        parse_hours(text)


def test_always_is_empty() -> None:
    assert parse_hours("") is None
    assert parse_hours("  ") is None


@given(st.text(max_size=30))
def test_whatever_is_written_is_hours_or_refused(text: str) -> None:
    try:
        found = parse_hours(text)
    except UsageError:
        return
    assert found is None or found.days
