# SPDX-License-Identifier: Apache-2.0
"""Whatever JSON is asked for as a mark: it is kept so that everyone can read it again, or refused
in words."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from iolab.recordings.record.control import Mark, mark_of
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter

NESTED: Any = []
for _ in range(200):
    NESTED = [NESTED]
NUMBERS = [
    0,
    -1,
    5,
    2**63 - 1,
    2**63,
    2**64,
    10**25,
    1.0,
    1.5,
    -0.0,
    1e308,
    math.inf,
    -math.inf,
    math.nan,
]
TEXTS = ["", "x", "1", "\ud800bad", "ünï\0\n"]
OBJECTS = [
    {},
    {"a": 1},
    {"\udc80": ["\udfff", {"b": None}]},
    {"a": math.nan},
    {"a": 10**25},
    {"a": NESTED},
]
VALUES: list[Any] = [None, True, False, *NUMBERS, *TEXTS, [], [1], NESTED, *OBJECTS]
GIVEN = {
    "label": "x",
    "from_ns": 1,
    "until_ns": 2,
    "kind": "user",
    "link": "y",
    "facts": {"a": [1, 2.5, "b", None, True]},
}


@pytest.mark.parametrize("field", [*GIVEN, "word", "more"])
def test_every_value_at_each_field(field: str, tmp_path: Path) -> None:
    kept = 0
    with RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}
    ) as writer:
        for value in VALUES:
            try:
                mark = mark_of(json.loads(json.dumps({**GIVEN, field: value})))
            except ValueError:
                continue
            writer.mark(mark.label, mark.from_ns, mark.until_ns, mark.kind, mark.link, mark.facts)
            kept += 1
    marks = Recording(tmp_path / "r").marks()
    assert len(marks) == kept > 0
    json.dumps(marks, ensure_ascii=False, allow_nan=False).encode()


def test_without_a_label_or_a_time_it_is_none() -> None:
    assert mark_of({"label": "x", "from_ns": 5}) == Mark("x", 5, None)
    for lacking in ("label", "from_ns"):
        with pytest.raises(ValueError, match=f"{lacking} is no"):
            mark_of({name: value for name, value in GIVEN.items() if name != lacking})


def test_a_name_that_is_no_text_is_spelt() -> None:
    assert mark_of({**GIVEN, "label": "\ud800bad", "link": "a\udc80"}).label == "\\ud800bad"
