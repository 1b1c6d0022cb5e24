# SPDX-License-Identifier: Apache-2.0
"""Knees, scalability and equal-load comparisons as tables of finished text."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.base.metrics import Metric
from iolab.base.stats.curves.knee import KneeEstimate
from iolab.base.stats.curves.scalability import UslFit
from iolab.base.units import format_number, format_quantity, readable_unit
from iolab.studies.compare.axes import level_text
from iolab.studies.compare.load.curve_model import Curve, Curves, EqualLoad, Matched
from iolab.studies.compare.model import Change

from ..model.payload import Table, TableCell, TableColumn, TableGroup, TableRow, Tone
from ..words.phrases import place_text, signed_text


def knee_table(curves: Curves) -> Table:
    """A row per curve: where it bends, and the Universal Scalability Law through it, or why there
    is neither."""
    columns = [
        TableColumn(title=title, kind="text")
        for title in (
            f"knee at {curves.load}",
            "throughput there",
            "latency there",
            "repetitions",
            "USL peak",
            "contention σ",
            "coherency κ",
            "fit error",
        )
    ]
    rows = [
        TableRow(
            title=_curve_text(curves, curve),
            summary=False,
            cells=[*_knee(curves, curve), *_usl(curves, curve)],
        )
        for curve in curves.curves
    ]
    return Table(
        title="Knee and scalability",
        row_title="variant",
        groups=[TableGroup(title="", columns=columns)],
        rows=rows,
    )


def _curve_text(curves: Curves, curve: Curve) -> str:
    return ", ".join(
        part for part in (curve.variant, place_text(curves.tables, curve.table)) if part
    )


def _knee(curves: Curves, curve: Curve) -> list[TableCell | None]:
    knee = curve.knee
    if not isinstance(knee, KneeEstimate):
        return [TableCell(text="no clear knee", sub=knee.reason), None, None, None]
    return [
        TableCell(text=level_text(knee.load), sub=_range(knee.load_range, "")),
        TableCell(
            text=format_quantity(knee.throughput, curves.throughput.unit),
            sub=_range(knee.throughput_range, curves.throughput.unit),
        ),
        TableCell(
            text=format_quantity(knee.latency, curves.latency.unit),
            sub=_range(knee.latency_range, curves.latency.unit),
        ),
        TableCell(text=f"{knee.with_knee} of {knee.repetitions}"),
    ]


def _range(ends: tuple[float, float] | None, base: str) -> str:
    """The span over repetitions, in one unit."""
    if ends is None:
        return ""
    _, scale = readable_unit([ends[1]], base)
    return f"[{format_number(ends[0] / scale)}, {format_number(ends[1] / scale)}]"


def _usl(curves: Curves, curve: Curve) -> list[TableCell | None]:
    fit = curve.usl
    if not isinstance(fit, UslFit):
        return [TableCell(text="no fit", sub=fit.reason), None, None, None]
    return [
        _peak(curves, fit),
        _parameter(fit.sigma, fit.sigma_error),
        _parameter(fit.kappa, fit.kappa_error),
        TableCell(text=f"{100 * fit.relative_error:.1f} %"),
    ]


def _peak(curves: Curves, fit: UslFit) -> TableCell:
    limit = (
        ""
        if fit.peak_throughput is None
        else format_quantity(fit.peak_throughput, curves.throughput.unit)
    )
    if fit.peak_concurrency is None:
        return TableCell(
            text="none", sub=f"levels out at {limit}" if limit else "grows without limit"
        )
    beyond = ", beyond what was measured" if fit.peak_concurrency > fit.highest else ""
    return TableCell(
        text=f"{limit} at {format_number(fit.peak_concurrency, 3)}", sub=beyond.lstrip(", ")
    )


def _parameter(value: float, error: float | None) -> TableCell:
    return TableCell(text=f"{value:.3g}", sub="" if error is None else f"± {error:.2g}")


def equal_tables(curves: Curves) -> list[Table]:
    """Latency at equal throughput and throughput at equal latency, where the arms have a range in
    common."""
    tables = [
        _equal_table(
            curves,
            [(equal, equal.latency_at) for equal in curves.equal],
            curves.throughput,
            curves.latency,
            "Latency at equal throughput",
        ),
        _equal_table(
            curves,
            [(equal, equal.throughput_at) for equal in curves.equal],
            curves.latency,
            curves.throughput,
            "Throughput at equal latency",
        ),
    ]
    return [table for table in tables if table.rows]


def _equal_table(
    curves: Curves,
    matched: Sequence[tuple[EqualLoad, tuple[Matched, ...]]],
    at: Metric,
    read: Metric,
    title: str,
) -> Table:
    numbers = [
        number
        for _, points in matched
        for point in points
        for number in (point.baseline, point.variant)
    ]
    symbol, scale = readable_unit(numbers, read.unit)
    rows = []
    for equal, points in matched:
        name = ", ".join(
            part
            for part in (
                equal.variant if len(curves.variants) > 2 else "",
                place_text(curves.tables, equal.table),
            )
            if part
        )
        for point in points:
            cells: list[TableCell | None] = [
                TableCell(text=format_number(point.baseline / scale)),
                TableCell(text=format_number(point.variant / scale)),
                _change(point.change, read),
            ]
            rows.append(
                TableRow(
                    title=" · ".join(
                        part for part in (name, format_quantity(point.at, at.unit, 3)) if part
                    ),
                    summary=False,
                    cells=cells,
                )
            )
    columns = [
        TableColumn(title=curves.baseline, kind="value"),
        TableColumn(title=_other(curves), kind="value"),
        TableColumn(title="change", kind="change"),
    ]
    return Table(
        title=f"{title} ({symbol})",
        row_title="at",
        groups=[TableGroup(title="", columns=columns)],
        rows=rows,
    )


def _other(curves: Curves) -> str:
    return curves.variants[1] if len(curves.variants) == 2 else "variant"


def _change(change: Change, read: Metric) -> TableCell:
    """A ratio with its interval; what comes from mean curves has none. Better or worse only where
    zero is excluded."""
    text = f"{signed_text(100 * change.value)} %"
    if change.low is None or change.high is None:
        return TableCell(text=text)
    excluded = change.low > 0 or change.high < 0
    tone: Tone = "plain"
    if excluded and read.better is not None:
        tone = "better" if (change.value > 0) == (read.better == "higher") else "worse"
    return TableCell(
        text=text,
        sub=f"[{signed_text(100 * change.low)}, {signed_text(100 * change.high)}]",
        tone=tone,
        decided=excluded,
    )
