# SPDX-License-Identifier: Apache-2.0
"""A history as text with sparklines, JSON and CSV."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from iolab.base.units import format_number, readable_unit
from iolab.base.untrusted_text import json_text

from ..compare.axes import axis_text
from ..compare.render.grids import grid
from ..compare.render.words import signed_text
from .changes import (
    Course,
    Finding,
    NoiseFinding,
    TrendFinding,
    environment_changes,
    is_ratio,
)
from .store import Entry, History

SPARKS = "▁▂▃▄▅▆▇█"
MOST_SPARKS = 40
"""Values in a sparkline, the latest ones."""

MOST_SERIES = 30
"""Series that text lists, those with changes first."""


def moment(time_ns: int) -> str:
    """`2026-03-01 12:00`, UTC."""
    time = datetime.datetime.fromtimestamp(time_ns / 1e9, datetime.UTC)
    return time.strftime("%Y-%m-%d %H:%M")


def sparkline(values: Sequence[float]) -> str:
    """The latest values as bars from the lowest to the highest; bars of one height for values that
    differ by less than 1 %."""
    latest = np.asarray(values[-MOST_SPARKS:], np.float64)
    low, high = float(latest.min()), float(latest.max())
    if high - low <= 0.01 * abs(high):
        return SPARKS[3] * len(latest)
    heights = np.minimum(((latest - low) / (high - low) * len(SPARKS)).astype(int), len(SPARKS) - 1)
    return "".join(SPARKS[height] for height in heights)


def list_text(history: History) -> str:
    """The entries, a line each, in order of time."""
    rows = [["number", "measured", "revision", "study", "results", "tags"]]
    rows += [
        [
            str(entry.number),
            moment(entry.measured_ns),
            entry.revision or "-",
            entry.name,
            entry.results,
            " ".join(f"{name}={value}" for name, value in entry.tags.items()),
        ]
        for entry in history.entries
    ]
    return "\n".join(grid(rows, left=(1, 2, 3, 4, 5))) + "\n"


def list_json(history: History) -> str:
    """The entries, in order of time."""
    entries = [_entry_json(entry) for entry in history.entries]
    return _document({"schema": 1, "kind": "history-list", "entries": entries})


def render(history: History, courses: Sequence[Course], style: str) -> str:
    """Series with their changes as `text`, `json` or `csv`."""
    if style == "json":
        return _document(history_data(history, courses))
    return _csv(history, courses) if style == "csv" else _text(history, courses)


def _text(history: History, courses: Sequence[Course]) -> str:
    lines: list[str] = []
    for metric in dict.fromkeys(course.metric for course in courses):
        members = [course for course in courses if course.metric == metric]
        ordered = sorted(members, key=lambda course: not course.has_change)
        listed = ordered[:MOST_SERIES]
        symbol, scale = readable_unit(
            [float(value) for course in members for value in course.series.values[-1:]], metric.unit
        )
        rows = [["cell", "variant", "results", "latest", f"last {MOST_SPARKS}", "changes"]]
        rows += [_row(course, scale) for course in listed]
        if not any(course.series.variant for course in listed):
            rows = [[field for place, field in enumerate(row) if place != 1] for row in rows]
        text_columns = range(len(rows[0]) - 2, len(rows[0]))
        title = f"{metric.name}: {metric.title}" + (f" ({symbol})" if symbol else "")
        lines += [title, *grid(rows, left=(0, *((1,) if len(rows[0]) > 5 else ()), *text_columns))]
        if len(members) > len(listed):
            lines.append(f"and {len(members) - len(listed)} more series (--format json has all)")
        lines.append("")
    changed = sum(bool(course.findings) for course in courses)
    noisy = sum(bool(course.noise) for course in courses)
    trending = sum(course.trend is not None for course in courses)
    lines.append(
        f"{len(history.entries)} results, {len(courses)} series, {changed} with a significant change"
        f"{f', {trending} with a significant trend' if trending else ''}"
        f"{f', {noisy} with a significant change of the noise' if noisy else ''} "
        "(q <= 0.05 over all series)"
    )
    return "\n".join([*lines, *_events(courses)]) + "\n"


def _row(course: Course, scale: float) -> list[str]:
    values = course.series.values
    return [
        axis_text(course.series.factors.keys(), tuple(course.series.factors.values())) or "all",
        course.series.variant,
        str(len(values)),
        format_number(float(values[-1]) / scale),
        sparkline([float(value) for value in values]),
        "; ".join(
            [
                *([] if course.trend is None else [trend_text(course, course.trend)]),
                *(_finding_text(course, finding) for finding in course.findings),
                *(_noise_text(finding) for finding in course.noise),
            ]
        ),
    ]


def _unit(course: Course) -> str:
    if is_ratio(course.metric, course.series.values):
        return "%"
    return "points" if course.metric.unit == "1" else course.metric.unit


def _number(value: float, course: Course) -> float:
    return 100 * value if _unit(course) in ("%", "points") else value


def _finding_text(course: Course, finding: Finding) -> str:
    low, change, high = (
        signed_text(_number(value, course), 1)
        for value in (finding.low, finding.change, finding.high)
    )
    return f"{change} {_unit(course)} [{low}, {high}] at {finding.after.label}".replace("  ", " ")


def trend_text(course: Course, trend: TrendFinding) -> str:
    """`trend -9.5 % [-10.1, -8.9] from n0 to n19`."""
    low, change, high = (
        signed_text(_number(value, course), 1) for value in (trend.low, trend.change, trend.high)
    )
    places = f"from {trend.first.label} to {trend.last.label}"
    return f"trend {change} {_unit(course)} [{low}, {high}] {places}".replace("  ", " ")


def _noise_text(finding: NoiseFinding) -> str:
    numbers = [format_number(value) for value in (finding.ratio, finding.low, finding.high)]
    return f"noise x {numbers[0]} [{numbers[1]}, {numbers[2]}] at {finding.after.label}"


def _effect(finding: Finding | NoiseFinding) -> str:
    if isinstance(finding, NoiseFinding):
        return "noisier" if finding.ratio > 1 else "less noisy"
    return {True: "better", False: "worse", None: "changed"}[finding.improves]


def _events(courses: Sequence[Course]) -> list[str]:
    """The entries at which series changed, with what else changed there."""
    events: dict[tuple[int, int], list[Finding | NoiseFinding]] = {}
    for course in courses:
        changes: list[Finding | NoiseFinding] = [*course.findings, *course.noise]
        for finding in changes:
            key = (finding.before.number, finding.after.number)
            events.setdefault(key, []).append(finding)
    lines = []
    ordered = sorted(events.values(), key=lambda members: members[0].after.measured_ns)
    for members in ordered:
        finding = members[0]
        effects = [_effect(member) for member in members]
        counts = [
            f"{effects.count(effect)} {effect}"
            for effect in ("worse", "better", "changed", "noisier", "less noisy")
            if effect in effects
        ]
        lines += [
            "",
            f"between {finding.before.label} ({moment(finding.before.measured_ns)}) and "
            f"{finding.after.label} ({moment(finding.after.measured_ns)}): {', '.join(counts)} of "
            f"{len(courses)} series",
        ]
        first = min((member.earliest for member in members), key=lambda entry: entry.measured_ns)
        last = max((member.latest for member in members), key=lambda entry: entry.measured_ns)
        if first != last:
            lines.append(f"  first results after it, 95 %: {first.label} to {last.label}")
        facts = environment_changes(finding.before, finding.after)
        lines += [f"  {name}: {before or '-'} -> {after or '-'}" for name, before, after in facts]
    return lines


def history_data(history: History, courses: Sequence[Course]) -> dict[str, Any]:
    """Entries and series with their changes, as JSON documents have them."""
    return {
        "schema": 1,
        "kind": "history",
        "notes": list(history.notes),
        "entries": [_entry_json(entry) for entry in history.entries],
        "series": [
            {
                "metric": course.metric.name,
                "unit": course.metric.unit,
                "better": course.metric.better,
                "variant": course.series.variant,
                "factors": course.series.factors,
                "entries": list(course.series.entries),
                "values": [float(value) for value in course.series.values],
                "runs": list(course.series.runs),
                "changes": [_finding_json(course, finding) for finding in course.findings],
                "trend": None if course.trend is None else _trend_json(course, course.trend),
                "noise_changes": [_noise_json(finding) for finding in course.noise],
            }
            for course in courses
        ],
    }


def _finding_json(course: Course, finding: Finding) -> dict[str, Any]:
    return {
        "change": _number(finding.change, course),
        "low": _number(finding.low, course),
        "high": _number(finding.high, course),
        "unit": _unit(course),
        "improves": finding.improves,
        **_place_json(finding),
    }


def _trend_json(course: Course, trend: TrendFinding) -> dict[str, Any]:
    return {
        "change": _number(trend.change, course),
        "low": _number(trend.low, course),
        "high": _number(trend.high, course),
        "unit": _unit(course),
        "improves": trend.improves,
        "p": trend.p,
        "q": trend.q,
        "first": trend.first.number,
        "last": trend.last.number,
    }


def _noise_json(finding: NoiseFinding) -> dict[str, Any]:
    return {
        "ratio": finding.ratio,
        "low": finding.low,
        "high": finding.high,
        **_place_json(finding),
    }


def _place_json(finding: Finding | NoiseFinding) -> dict[str, Any]:
    return {
        "p": finding.p,
        "q": finding.q,
        "before": finding.before.number,
        "after": finding.after.number,
        "revisions": [finding.before.revision, finding.after.revision],
        "earliest": finding.earliest.number,
        "latest": finding.latest.number,
        "environment": [
            {"name": name, "before": before, "after": after}
            for name, before, after in environment_changes(finding.before, finding.after)
        ],
    }


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "results": entry.results,
        "study": entry.name,
        "revision": entry.revision,
        "tags": entry.tags,
        "measured_ns": entry.measured_ns,
    }


def _csv(history: History, courses: Sequence[Course]) -> str:
    """A line per value. `change` is that of a change that begins with it, in `change_unit`,
    `noise_ratio` that of a change of the noise, and `trend` that of the whole series."""
    text = io.StringIO()
    factors = list(dict.fromkeys(name for course in courses for name in course.series.factors))
    times = {entry.number: moment(entry.measured_ns) for entry in history.entries}
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            *("metric", "variant", *factors, "entry", "measured", "revision", "value", "unit"),
            *("change", "change_unit", "q", "noise_ratio", "noise_q"),
            *("trend", "trend_unit", "trend_q"),
        ]
    )
    for course in courses:
        findings = {finding.after.number: finding for finding in course.findings}
        noise = {finding.after.number: finding for finding in course.noise}
        for number, value in zip(course.series.entries, course.series.values, strict=True):
            entry, finding, noisier = history.entry(number), findings.get(number), noise.get(number)
            writer.writerow(
                [
                    course.metric.name,
                    course.series.variant,
                    *(course.series.factors.get(name, "") for name in factors),
                    number,
                    times[number],
                    entry.revision,
                    repr(float(value)),
                    course.metric.unit,
                    "" if finding is None else repr(_number(finding.change, course)),
                    "" if finding is None else _unit(course),
                    "" if finding is None else repr(finding.q),
                    "" if noisier is None else repr(noisier.ratio),
                    "" if noisier is None else repr(noisier.q),
                    "" if course.trend is None else repr(_number(course.trend.change, course)),
                    "" if course.trend is None else _unit(course),
                    "" if course.trend is None else repr(course.trend.q),
                ]
            )
    return text.getvalue()


def _document(document: dict[str, Any]) -> str:
    return json_text(document, indent=1) + "\n"
