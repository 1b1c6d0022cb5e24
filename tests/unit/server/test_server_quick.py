# SPDX-License-Identifier: Apache-2.0
"""What is left out of answers to be quick, and what is the same whichever way it is asked."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from iolab.base.errors import UsageError
from iolab.output.server.base.store import Store
from iolab.output.server.live.stream import Window, _window
from iolab.output.server.queries import answers
from iolab.output.server.queries.drill import who
from iolab.output.server.queries.parameters import request_of
from iolab.recordings.ask.attribution import FIRST
from iolab.recordings.heatmap import overlays
from iolab.recordings.heatmap.model import View, frame_of
from iolab.recordings.heatmap.wire import CROPS
from iolab.recordings.store.base.counts import HeatCounts
from support.recordings import SECOND, START

MAP = {"recording": "rec", "statistic": "io.ops[latency]", "interval": "10ms", "drawn": "true"}


def map_of(answer: Any) -> Any:
    [one] = answer["group"]["maps"]
    return one


@pytest.mark.parametrize("path", ["query", "layers"])
def test_without_lines_all_else_is_the_same(path: str, client: TestClient) -> None:
    words = {**MAP, "by": "op", "key": "read"} if path == "layers" else MAP
    words = {name: value for name, value in words.items() if path == "query" or name != "drawn"}
    full, less = (
        client.get(f"/api/v1/{path}", params={**words, "lines": lines}).json()
        for lines in ("true", "false")
    )
    default = client.get(f"/api/v1/{path}", params=words).json()
    assert full == default
    if path == "layers":
        full, less = full["map"], less["map"]
    assert map_of(full)["overlays"]
    assert map_of(less)["overlays"] == []
    assert less["group"]["lines"] == full["group"]["lines"] != []
    map_of(full)["overlays"] = []
    assert less == full


def test_crops_and_lines_are_those_of_all_counts(store: Store) -> None:
    counts = request_of(store, MAP).answer()
    assert isinstance(counts, HeatCounts)
    made = json.loads(answers.ask(store, MAP).model_dump_json())
    for share, high in made["group"]["crops"]:
        assert high == frame_of([counts], View("log", share)).high
    assert [share for share, _ in made["group"]["crops"]] == list(CROPS)
    levels = map_of(made)["overlays"]
    assert len(levels) > 3
    columns = made["group"]["columns"]
    for level in levels:
        lines = overlays.lines(
            counts.coarser(columns=level["joined"]), -(-columns // level["joined"])
        )
        assert level["values"] == [
            [None if math.isnan(value) else round(value) for value in line]
            for line in lines.tolist()
        ]


def test_all_is_counted_however_few_columns_are_asked_for(store: Store) -> None:
    """What the screen can show are sums, and none of them lacks anything."""
    fine, *coarse = (
        json.loads(answers.ask(store, {**MAP, "interval": each}).model_dump_json())
        for each in ("100ms", "1s", "4s")
    )
    total = sum(map_of(fine)["cells"]["counts"])
    assert total > 0
    for each in coarse:
        assert sum(map_of(each)["cells"]["counts"]) == total
    starts = np.array(map_of(coarse[0])["cells"]["starts"])
    assert len(starts) == coarse[0]["group"]["columns"] + 1


def test_outside_is_what_else_there_is_around(store: Store) -> None:
    asked = {"recording": "rec", "statistic": "io.ops[latency]"}
    box = {**asked, "from": str(START + 2 * SECOND), "to": str(START + 3 * SECOND), "low": "100us"}
    whole = who(store, box)
    around = who(
        store, {**box, "around_from": str(START + SECOND), "around_to": str(START + 4 * SECOND)}
    )
    shown = {
        **asked,
        "statistic": "io.ops",
        "from": str(START + SECOND),
        "to": str(START + 4 * SECOND),
    }
    seconds = request_of(store, shown).answer()
    assert not isinstance(seconds, HeatCounts)
    assert around.inside == whole.inside > 0
    assert around.inside + around.outside == seconds.total < whole.inside + whole.outside
    # the rectangle is looked at, though it was moved out of what is shown
    moved = who(
        store, {**box, "around_from": str(START + 3 * SECOND), "around_to": str(START + 4 * SECOND)}
    )
    assert moved.inside == whole.inside
    half = who(store, {**box, "around_from": str(START + SECOND)})
    assert around.outside < half.outside < whole.outside
    # what can be acted on is first, as in the command
    fields = [dimension.field for dimension in whole.dimensions]
    first = [field for field in fields if field in FIRST]
    assert fields[: len(first)] == first
    assert not {"error", "flags"} & set(fields[: len(fields) - 2])


@pytest.mark.parametrize(
    ("length", "interval", "last", "first", "until"),
    [
        (60, 1000, 100_500, 40_000, 101_000),
        (60, 1000, 99_999, 39_000, 100_000),
        (60, 1000, 100_000, 40_000, 101_000),
        (10, 20, 100_005, 90_000, 100_020),
        (600, 1000, 5000, 0, 6000),
    ],
)
def test_what_is_followed_is_of_whole_columns(
    length: int, interval: int, last: int, first: int, until: int
) -> None:
    """Times in ms. The page asks for the same: `snapped` of its window."""
    ms = 10**6
    words = Window(length * SECOND, interval * ms).words(last * ms)
    assert words == {
        "from": str(first * ms),
        "to": str(until * ms),
        "interval": f"{interval * ms}ns",
    }


def test_what_is_followed_before_anything_was_recorded() -> None:
    assert Window(60 * SECOND, SECOND).words(None) == {"interval": "1000000000ns"}


@pytest.mark.parametrize(
    ("words", "interval"),
    [
        ({}, "1s"),
        ({"seconds": "600"}, "1s"),
        ({"seconds": "601"}, "2s"),
        ({"seconds": "3600"}, "6s"),
        ({"seconds": "10", "interval": "20ms"}, "20ms"),
        ({"seconds": "3600", "interval": "1s"}, "1s"),
    ],
)
def test_columns_that_are_followed(words: dict[str, str], interval: str) -> None:
    found = _window(words)
    assert found.length_ns == int(words.get("seconds", "60")) * SECOND
    assert (
        found.interval_ns
        == {"1s": SECOND, "2s": 2 * SECOND, "6s": 6 * SECOND, "20ms": SECOND // 50}[interval]
    )


@pytest.mark.parametrize(
    "words",
    [
        {"seconds": "3600", "interval": "100ms"},
        {"interval": "0s"},
        {"interval": "a minute"},
        {"interval": "-1s"},
        {"interval": ""},
    ],
)
def test_columns_that_can_not_be_followed(words: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        _window(words)
