# SPDX-License-Identifier: Apache-2.0
"""Limits as one table, for the terminal, for Markdown and for programs."""

from __future__ import annotations

import csv
import io

from iolab.base.errors import UsageError
from iolab.base.units import format_quantity
from iolab.base.untrusted_text import json_text, markdown
from iolab.base.verdict import Level

from ..axes import level_text
from ..load.limits import BUSY, NEAR, Limit, Limits
from .grids import grid

FORMATS = ("text", "csv", "json", "markdown")


def render_limits(limits: Limits, style: str) -> str:
    """The table. UsageError for a format that has no such shape."""
    if style not in FORMATS:
        raise UsageError(
            f"limits can't be written as {style}",
            where="--format",
            hint=f"one of {', '.join(FORMATS)}",
        )
    if style == "json":
        return _json(limits)
    if style == "csv":
        return _csv(limits)
    heads, rows = _table(limits)
    notes = _notes(limits)
    if style == "markdown":
        lines = [
            f"| {' | '.join(map(markdown, row))} |" for row in (heads, ["---"] * len(heads), *rows)
        ]
        return "\n".join([*lines, "", *(f"{markdown(note)}  " for note in notes)]) + "\n"
    texts = {*limits.factors, "operation", "system", "saturated"}
    text_columns = [place for place, head in enumerate(heads) if head in texts]
    return "\n".join([*grid([heads, *rows], left=text_columns), "", *notes]) + "\n"


def _table(limits: Limits) -> tuple[list[str], list[list[str]]]:
    """Head and rows. A system is named if there are several."""
    has_several = len({limit.system for limit in limits.limits}) > 1
    busy = [name for name, *_ in BUSY if any(name in limit.busy for limit in limits.limits)]
    heads = [
        *limits.factors,
        "operation",
        "system",
        "MB/s",
        "IOPS",
        "range of IOPS",
        f"at {limits.load}",
        *busy,
        "saturated",
    ]
    rows = [
        [
            *map(level_text, limit.cell),
            limit.operation,
            limit.system if has_several else "",
            "" if limit.bw is None else _throughput(limit.bw),
            _rate(limit.iops),
            f"{_rate(limit.low)} to {_rate(limit.high)}" if limit.count > 1 else "one run",
            level_text(limit.level),
            *(f"{100 * limit.busy[name]:.0f} %" if name in limit.busy else "" for name in busy),
            _saturation_text(limit, limits.load),
        ]
        for limit in limits.limits
    ]
    if has_several:
        return heads, rows
    place = heads.index("system")
    return heads[:place] + heads[place + 1 :], [row[:place] + row[place + 1 :] for row in rows]


def _throughput(bytes_per_s: float) -> str:
    megabytes = bytes_per_s / 1e6
    return format_quantity(megabytes, "", 3 if megabytes < 1000 else 0).strip()


def _rate(value: float) -> str:
    return format_quantity(value, "", 3).strip()


def _saturation_text(limit: Limit, load: str) -> str:
    words = [" and ".join(limit.saturation) or "not seen"]
    if limit.is_growing:
        words.append("still growing")
    if limit.unknown_levels:
        words.append(f"{load} {' '.join(map(level_text, limit.unknown_levels))} INVALID")
    if limit.verdict is not Level.OK:
        words.append(limit.verdict.name)
    return ", ".join(words)


def _notes(limits: Limits) -> list[str]:
    notes = [
        f"Each row is at the least {limits.load} with {100 * NEAR:.0f} % of the largest mean IOPS. MB/s is 10^6 bytes/s."
    ]
    if any(limit.is_growing for limit in limits.limits):
        notes.append(
            f"still growing: the largest {limits.load} has the largest rate; add levels to find the limit."
        )
    if any(limit.unknown_levels for limit in limits.limits):
        notes.append(
            f"{limits.load} ... INVALID: all runs at this load are INVALID, so that the limit may be larger. 'iolab show' has the reasons."
        )
    return notes


def _records(limits: Limits) -> list[dict[str, object]]:
    return [
        {
            **dict(zip(limits.factors, limit.cell, strict=True)),
            "operation": limit.operation,
            "system": limit.system,
            "bytes_per_s": limit.bw,
            "iops": limit.iops,
            "iops_low": limit.low,
            "iops_high": limit.high,
            "runs": limit.count,
            limits.load: limit.level,
            "still_growing": limit.is_growing,
            "unknown_loads": list(limit.unknown_levels),
            **{f"busy {name}": limit.busy.get(name) for name, *_ in BUSY},
            "saturated": list(limit.saturation),
            "verdict": limit.verdict.name,
        }
        for limit in limits.limits
    ]


def _json(limits: Limits) -> str:
    document = {"schema": 1, "kind": "limits", "load": limits.load, "limits": _records(limits)}
    return json_text(document, indent=1) + "\n"


def _csv(limits: Limits) -> str:
    out = io.StringIO()
    records = [
        {
            **record,
            "saturated": " ".join(limit.saturation),
            "unknown_loads": " ".join(map(level_text, limit.unknown_levels)),
        }
        for record, limit in zip(_records(limits), limits.limits, strict=True)
    ]
    writer = csv.DictWriter(out, list(records[0]))
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()
