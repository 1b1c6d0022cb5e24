# SPDX-License-Identifier: Apache-2.0
"""Colours of names in pictures: those of the page, by the vectors that its own tests read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.output.charts import series
from iolab.output.charts.base.hues import HUES, REST, colours_of, place_of, places_of
from iolab.studies.results.evidence.model import Series

VECTORS = json.loads(
    (Path(__file__).parents[2] / "vectors" / "hues.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["field"])
def test_names_have_the_places_that_the_page_gives_them(case: dict[str, Any]) -> None:
    assert VECTORS["hues"] == list(HUES)
    assert [place_of(case["field"], name) for name in case["names"]] == case["alone"]
    assert places_of(case["field"], case["names"]) == case["places"]


def test_names_beyond_the_hues_are_grey() -> None:
    colours = colours_of("file", [f"/data/{number}" for number in range(14)])
    assert len(set(colours.values())) == 13
    assert list(colours.values())[12:] == [REST, REST]


def test_a_device_and_an_operation_have_one_colour_in_all_panels() -> None:
    def line(name: str, unit: str, value: float) -> Series:
        times = np.arange(4.0)
        return Series(name, unit, times, np.full(4, value))

    lines = [
        line("write.iops", "1/s", 5),
        line("read.iops", "1/s", 500),
        line("write.bw", "B/s", 4096),
        line("device.util[sdb]", "1", 0.4),
        line("device.util[sda]", "1", 0.9),
        line("device.util", "1", 0.6),
        line("device.iops[sda]", "1/s", 7),
    ]
    found: dict[str, set[str]] = {}

    def walk(part: Any) -> None:
        if isinstance(part, list):
            for each in part:
                walk(each)
        elif isinstance(part, dict):
            scale = part.get("scale")
            if isinstance(scale, dict) and isinstance(scale.get("range"), list):
                for name, colour in zip(scale["domain"], scale["range"], strict=True):
                    found.setdefault(name, set()).add(colour)
            for each in part.values():
                walk(each)

    walk(series(lines).spec)
    device = colours_of("device", ["sda", "sdb"])
    assert found == {
        "write.iops": {HUES[1]},
        "write.bw": {HUES[1]},
        "read.iops": {HUES[0]},
        "device.util[sda]": {device["sda"]},
        "device.iops[sda]": {device["sda"]},
        "device.util[sdb]": {device["sdb"]},
        "device.util": {REST},
    }
