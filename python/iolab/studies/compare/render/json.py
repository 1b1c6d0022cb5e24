# SPDX-License-Identifier: Apache-2.0
"""A comparison as JSON: everything, base units, unrounded; the shape that programs may rely on."""

from __future__ import annotations

from typing import Any

from iolab.base.untrusted_text import json_text

from ..load.achieved import AchievedLevel
from ..model import Cell, Change, Comparison, Key
from .words import change_number, change_unit


class JsonRenderer:
    """`{"schema": 1, "kind": "comparison", "metric": ..., "cells": [...], "summaries": [...],
    ...}`.

    `precision` rounds values and changes; without it every digit is there.
    """

    name = "json"

    def render(self, comparison: Comparison, *, precision: int | None = None) -> str:
        """One document, indented."""
        return json_text(as_json(comparison, precision), indent=1) + "\n"


def as_json(comparison: Comparison, precision: int | None = None) -> dict[str, Any]:
    """The comparison as plain data."""
    metric = comparison.metric
    floor = comparison.noise_floor
    return {
        "schema": 1,
        "kind": "comparison",
        "metric": {
            "name": metric.name,
            "title": metric.title,
            "unit": metric.unit,
            "better": metric.better,
            "change": metric.change,
        },
        "baseline": comparison.baseline,
        "variants": list(comparison.variants),
        "rows": list(comparison.rows),
        "cols": list(comparison.cols),
        "tables": list(comparison.tables),
        "fixed": plain(comparison.fixed),
        "confidence": comparison.confidence,
        "alpha": comparison.alpha,
        "change_unit": change_unit(comparison),
        "cells": [_cell(cell, comparison, precision) for cell in comparison.cells],
        "summaries": [
            {
                "factors": _factors(comparison, summary.table, (), summary.col),
                "variant": summary.variant,
                "cells": summary.cells,
                "of": summary.of,
                "worst": None
                if summary.worst is None
                else plain(dict(zip(comparison.rows, summary.worst, strict=True))),
                "change": _change(summary.change, comparison, precision),
            }
            for summary in comparison.summaries
        ],
        "detectable": None
        if comparison.detectable is None
        else change_number(comparison.detectable, comparison),
        "noise_floor": None if floor is None else [change_number(end, comparison) for end in floor],
        "again": dict(zip(("false_alarms", "cells"), comparison.false_alarms, strict=True))
        if floor is not None
        else None,
        "arms": [arm.as_data() for arm in comparison.arms],
        "footnotes": comparison.footnotes,
        "warnings": [
            {"code": warning.code, "text": warning.text} for warning in comparison.warnings
        ],
        **_several(comparison),
    }


def _several(comparison: Comparison) -> dict[str, Any]:
    """Keys of a comparison of several results, in which there is something to state."""
    document = {
        "differences": [
            {
                "name": difference.name,
                "values": {arm: list(texts) for arm, texts in difference.values.items()},
            }
            for difference in comparison.differences
        ],
        "unmatched": [
            {"variants": list(cell.variants), "factors": plain(cell.factors)}
            for cell in comparison.unmatched
        ],
    }
    return {key: value for key, value in document.items() if value}


def _factors(comparison: Comparison, table: Key, row: Key, col: Key) -> dict[str, object]:
    names = [*comparison.tables, *(comparison.rows if row else ()), *comparison.cols]
    return plain({**comparison.fixed, **dict(zip(names, (*table, *row, *col), strict=True))})


def plain(levels: dict[str, object]) -> dict[str, object]:
    """Levels as JSON has them: an achieved level by its nominal value."""
    return {
        name: level.requested if isinstance(level, AchievedLevel) else level
        for name, level in levels.items()
    }


def _cell(cell: Cell, comparison: Comparison, precision: int | None) -> dict[str, Any]:
    estimate = cell.estimate
    return {
        "variant": cell.variant,
        "factors": _factors(comparison, cell.table, cell.row, cell.col),
        "value": _round(estimate.value, precision),
        "low": _round(estimate.low, precision),
        "high": _round(estimate.high, precision),
        "n": len(estimate.values),
        "values": list(estimate.values),
        "runs": list(estimate.runs),
        "left_out": list(estimate.left_out),
        "verdict": estimate.level.value,
        "saturated": cell.saturated,
        "footnotes": list(cell.footnotes),
        "change": _change(cell.change, comparison, precision),
    }


def _change(
    change: Change | None, comparison: Comparison, precision: int | None
) -> dict[str, Any] | None:
    if change is None:
        return None

    def end(value: float | None) -> float | None:
        return None if value is None else _round(change_number(value, comparison), precision)

    return {
        "value": end(change.value),
        "low": end(change.low),
        "high": end(change.high),
        "unit": change_unit(comparison),
        "pairs": change.pairs,
        "dropped": change.dropped,
        "without": change.without,
        "df": change.df,
        "pooled": change.pooled,
        "p": change.p,
        "p_exact": change.p_exact,
        "q": change.q,
        "decided": change.decided,
        "improves": change.improves,
        "blocks_needed": change.blocks_needed,
        "excluded": end(change.excluded),
        **(
            {}
            if change.sessions is None
            else {"sessions": list(change.sessions), "reason": change.reason}
        ),
    }


def _round(value: float | None, precision: int | None) -> float | None:
    return value if value is None or precision is None else round(value, precision)
