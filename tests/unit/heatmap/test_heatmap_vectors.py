# SPDX-License-Identifier: Apache-2.0
"""The rules that the page has as well: both are held to the same vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.recordings.heatmap.model import densities_of, joined_rows
from iolab.recordings.heatmap.scale import scale_of
from iolab.recordings.heatmap.ticks import linear_ticks, log_ticks, quantity

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "vectors/heatmap.json").read_text("utf-8")
)


@pytest.mark.parametrize("case", VECTORS["quantity"], ids=lambda case: case["text"])
def test_quantities(case: dict[str, Any]) -> None:
    assert quantity(case["value"], case["unit"]) == case["text"]


@pytest.mark.parametrize(
    ("make", "name"),
    [(linear_ticks, "linear_ticks"), (log_ticks, "log_ticks")],
    ids=["linear", "log"],
)
def test_ticks(make: Any, name: str) -> None:
    for case in VECTORS[name]:
        more = {"at": case["at"]} if "at" in case else {}
        found = make(case["low"], case["high"], case["most"], case["unit"], **more)
        assert [[tick.value, tick.label] for tick in found] == case["ticks"]
        assert len(found) <= case["most"]
        assert all(case["low"] <= tick.value <= case["high"] for tick in found)


@pytest.mark.parametrize(
    "case", VECTORS["scale"], ids=lambda case: f"{case['kind']} of {case['cells']}"
)
def test_scales(case: dict[str, Any]) -> None:
    scale = scale_of([case["cells"]], case["kind"])
    assert scale.counts.tolist() == case["counts"]
    assert scale.levels.tolist() == pytest.approx(case["levels"])


@pytest.mark.parametrize("case", VECTORS["joined_rows"], ids=lambda case: str(case["edges"]))
def test_joined_rows(case: dict[str, Any]) -> None:
    assert joined_rows(case["edges"], case["least"]) == case["starts"]


@pytest.mark.parametrize("case", VECTORS["densities"], ids=lambda case: str(case["edges"]))
def test_densities(case: dict[str, Any]) -> None:
    assert densities_of(np.array(case["edges"], dtype=float)).tolist() == case["densities"]
