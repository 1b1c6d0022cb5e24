# SPDX-License-Identifier: Apache-2.0
"""What an answer lacks is told by kind: at its column, and all in all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab.base.clock import FakeClock
from iolab.output.server.base.store import Store
from iolab.output.server.queries.answers import ask, ask_binary
from iolab.recordings.heatmap.words import lost
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events

VECTORS = json.loads((Path(__file__).parents[2] / "vectors/losses.json").read_text("utf-8"))["lost"]
LOSSES = [
    ("unpaired", 2, 0),
    ("overrun", 1200, 3),
    ("missed", 4, 4),
    ("damaged", 3, 4),
    ("overrun", None, 6),
]
BY_KIND = [
    {"kind": "lost", "count": 1204, "columns": [(3, 1200), (4, 4), (6, 0)]},
    {"kind": "damaged", "count": 3, "columns": [(4, 3)]},
    {"kind": "unpaired", "count": 2, "columns": [(0, 2)]},
]


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Eight seconds in which something of each kind was lost, and 7 records of nobody knows when."""
    path, clock = tmp_path_factory.mktemp("lossy") / "rec", FakeClock(START)
    with RecordingWriter.create(
        path,
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        system=clock,
        sources={"block": {}},
    ) as writer:
        clock.sleep(8)
        writer.append_events(events(800, start_ns=START, per_s=100))
        for kind, count, second in LOSSES:
            writer.loss(
                kind, "block", START + second * SECOND, START + second * SECOND + SECOND // 2, count
            )
        writer.loss("overrun", "block", None, None, 7)
        writer.tick(START + 8 * SECOND)
    return Store([path])


def asked(store: Store, words: dict[str, str]) -> Any:
    return ask(store, words)


def told(found: Any) -> list[dict[str, Any]]:
    return [each.model_dump() for each in found]


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["words"])
def test_words_of_kinds(case: dict[str, Any]) -> None:
    assert ", ".join(lost(kind, count) for kind, count in case["kinds"]) == case["words"]


@pytest.mark.parametrize(
    ("statistic", "words"),
    [
        ("io.ops", {}),
        ("io.ops[op]", {}),
        ("io.ops[latency]", {}),
        ("io.ops[latency]", {"drawn": "percentiles"}),
    ],
)
def test_answers_tell_losses_by_kind(lossy: Store, statistic: str, words: dict[str, str]) -> None:
    found = asked(lossy, {"statistic": statistic, "interval": "1s", **words})
    first, *rest = BY_KIND
    assert told(found.losses) == [{**first, "count": 1211}, *rest], (
        "those without a time are in the count alone"
    )
    sums: dict[int, int] = {}
    for each in found.losses:
        for column, count in each.columns:
            sums[column] = sums.get(column, 0) + count
    assert dict(found.lost_by_column) == sums


def test_a_map_for_the_page_tells_in_its_strip_what_has_a_time_and_else_in_a_note(
    lossy: Store,
) -> None:
    found = asked(lossy, {"statistic": "io.ops[latency]", "interval": "1s", "drawn": "true"})
    [one] = found.group.maps
    assert told(one.lost) == BY_KIND
    assert [
        note for note in one.notes if "lost" in note or "damaged" in note or "half" in note
    ] == ["the tracer lost 7 records"]
    head = ask_binary(lossy, {"statistic": "io.ops[latency]", "interval": "1s", "drawn": "true"})
    assert isinstance(head, bytes)
    assert json.dumps({"kind": "damaged", "count": 3, "columns": [[4, 3]]}).encode() in head


def test_all_of_the_time_as_one_column_and_a_part_of_it(lossy: Store) -> None:
    whole = asked(lossy, {"statistic": "io.ops", "interval": "whole"})
    sums = {"lost": (1211, 1204), "damaged": (3, 3), "unpaired": (2, 2)}
    assert told(whole.losses) == [
        {"kind": kind, "count": count, "columns": [(0, timed)]}
        for kind, (count, timed) in sums.items()
    ]
    part = asked(lossy, {"statistic": "io.ops", "interval": "1s", "from": "4s", "to": "5s"})
    assert told(part.losses) == [
        {"kind": "lost", "count": 11, "columns": [(0, 4)]},
        {"kind": "damaged", "count": 3, "columns": [(0, 3)]},
    ]
