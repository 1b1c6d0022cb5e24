# SPDX-License-Identifier: Apache-2.0
"""Looking into specifications: rows by kind, layers, scales; and whether altair takes the whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from iolab.output.charts import Chart


def rows(chart: Chart, kind: str, **where: object) -> list[dict[str, Any]]:
    """Drawn rows of a kind."""
    return [
        row
        for row in chart.spec["datasets"]["rows"]
        if row.get("kind") == kind and all(row.get(name) == value for name, value in where.items())
    ]


def layers(chart: Chart) -> list[dict[str, Any]]:
    """Layers of the one panel that all panels repeat, those of groups of layers among them."""
    outer = chart.spec.get("spec", chart.spec)["layer"]
    return [layer for group in outer for layer in group.get("layer", [group])]


def channel(chart: Chart, name: str) -> list[dict[str, Any]]:
    """That channel of every layer that has it with a scale."""
    found = (layer["encoding"].get(name, {}) for layer in layers(chart))
    return [one for one in found if one.get("scale")]


def domains(chart: Chart, name: str) -> set[tuple[Any, ...]]:
    """Distinct domains of a channel over all layers."""
    return {tuple(one["scale"]["domain"]) for one in channel(chart, name)}


def validate(chart: Chart) -> None:
    """Raise where the specification is not Vega-Lite."""
    spec = chart.with_config()
    alt.Chart.from_dict(spec, validate=True).to_dict(validate=True)


def words(part: Any) -> Iterator[str]:
    """Every string of a specification without its data."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name not in ("datasets", "$schema"):
                yield str(name)
                yield from words(value)
    elif isinstance(part, list):
        for value in part:
            yield from words(value)
    elif isinstance(part, str):
        yield part
