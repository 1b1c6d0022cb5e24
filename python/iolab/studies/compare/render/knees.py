# SPDX-License-Identifier: Apache-2.0
"""Curves for the terminal and for programs: where each variant bends, how it scales, what it does
at equal load."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from iolab.base.errors import UsageError
from iolab.base.metrics import joint_title
from iolab.base.stats.curves.knee import KneeEstimate
from iolab.base.stats.curves.scalability import UslFit
from iolab.base.units import format_number, format_quantity
from iolab.base.untrusted_text import json_text

from ..axes import axis_text, level_text
from ..load.curve_model import Curve, Curves, EqualLoad, Matched
from .grids import grid

FORMATS = ("text", "json")


def render_knees(curves: Curves, style: str) -> str:
    """Knees, Universal Scalability Law fits and equal-load comparisons.

    Raises UsageError for a format that has no such shape.
    """
    if style not in FORMATS:
        raise UsageError(
            f"knees can't be written as {style}",
            where="--format",
            hint=f"one of {', '.join(FORMATS)}",
        )
    return _json(curves) if style == "json" else _text(curves)


def _text(curves: Curves) -> str:
    fixed = axis_text(curves.fixed.keys(), tuple(curves.fixed.values()))
    lines = [
        f"{joint_title(curves.throughput.title, curves.latency_title, 'against')}, over {curves.load}{f', {fixed}' if fixed else ''}"
    ]
    heads = [
        " ".join(("variant", *curves.tables)),
        f"knee at {curves.load}",
        "throughput",
        "latency",
        "repetitions",
        "USL peak",
        "sigma",
        "kappa",
        "error",
    ]
    lines += ["", *grid([heads, *(_row(curves, curve) for curve in curves.curves)])]
    reasons = dict.fromkeys(
        f"{_name(curves, curve)}: {what}: {result.reason}"
        for curve in curves.curves
        for what, result in (("no clear knee", curve.knee), ("no fit", curve.usl))
        if hasattr(result, "reason")
    )
    lines += ["", *reasons] if reasons else []
    if any(_beyond(curve.usl) for curve in curves.curves):
        lines += ["", f"* beyond the highest {curves.load} that was measured: extrapolated"]
    for equal in curves.equal:
        lines += _equal(curves, equal)
    lines += (
        ["", *(f"note: {warning.text}" for warning in curves.warnings)] if curves.warnings else []
    )
    return "\n".join(lines) + "\n"


def _name(curves: Curves, curve: Curve) -> str:
    return " ".join(part for part in (curve.variant, axis_text(curves.tables, curve.table)) if part)


def _row(curves: Curves, curve: Curve) -> list[str]:
    fields = [_name(curves, curve)]
    knee, fit = curve.knee, curve.usl
    if isinstance(knee, KneeEstimate):
        span = (
            ""
            if knee.load_range is None
            else f" [{level_text(knee.load_range[0])}, {level_text(knee.load_range[1])}]"
        )
        fields += [
            f"{level_text(knee.load)}{span}",
            format_quantity(knee.throughput, curves.throughput.unit),
            format_quantity(knee.latency, curves.latency.unit),
            f"{knee.with_knee} of {knee.repetitions}",
        ]
    else:
        fields += ["no clear knee", "", "", ""]
    if isinstance(fit, UslFit):
        peak = "none" if fit.peak_concurrency is None else format_number(fit.peak_concurrency, 3)
        fields += [
            peak + "*" * _beyond(fit),
            _parameter(fit.sigma, fit.sigma_error),
            _parameter(fit.kappa, fit.kappa_error),
            f"{100 * fit.relative_error:.1f} %",
        ]
    else:
        fields += ["no fit", "", "", ""]
    return fields


def _beyond(fit: object) -> bool:
    return (
        isinstance(fit, UslFit)
        and fit.peak_concurrency is not None
        and fit.peak_concurrency > fit.highest
    )


def _parameter(value: float, error: float | None) -> str:
    return f"{value:.3g}" if error is None else f"{value:.3g} ± {error:.2g}"


def _equal(curves: Curves, equal: EqualLoad) -> list[str]:
    place = " ".join(
        part
        for part in (
            f"{equal.variant} against {curves.baseline}",
            axis_text(curves.tables, equal.table),
        )
        if part
    )
    lines = []
    for title, matched, at, unit in (
        (
            "latency at equal throughput",
            equal.latency_at,
            curves.throughput.unit,
            curves.latency.unit,
        ),
        (
            "throughput at equal latency",
            equal.throughput_at,
            curves.latency.unit,
            curves.throughput.unit,
        ),
    ):
        if matched:
            body = [
                [
                    format_quantity(match.at, at),
                    format_quantity(match.baseline, unit),
                    format_quantity(match.variant, unit),
                    *_change(match),
                ]
                for match in matched
            ]
            lines += [
                "",
                f"{title}, {place}",
                *grid([["at", curves.baseline, equal.variant, "change", "interval"], *body]),
            ]
    return lines


def _change(matched: Matched) -> list[str]:
    change = matched.change
    interval = (
        "no interval"
        if change.low is None or change.high is None
        else f"[{100 * change.low:+.1f}, {100 * change.high:+.1f}]"
    )
    return [f"{100 * change.value:+.1f} %", interval]


def _json(curves: Curves) -> str:
    def result(value: Any) -> dict[str, Any]:
        return {"found": not hasattr(value, "reason"), **asdict(value)}

    def match_document(each: Matched) -> dict[str, Any]:
        return {
            "at": each.at,
            "baseline": each.baseline,
            "variant": each.variant,
            "change": each.change.value,
            "low": each.change.low,
            "high": each.change.high,
            "pairs": each.change.pairs,
        }

    document = {
        "schema": 1,
        "kind": "curves",
        "throughput": curves.throughput.name,
        "latency": curves.latency.name,
        "load": curves.load,
        "baseline": curves.baseline,
        "variants": list(curves.variants),
        "fixed": curves.fixed,
        "confidence": curves.confidence,
        "curves": [
            {
                "variant": curve.variant,
                "factors": dict(zip(curves.tables, curve.table, strict=True)),
                "points": [
                    {
                        "load": point.load,
                        "throughput": point.throughput.value,
                        "latency": point.latency.value,
                        "n": point.n,
                        "verdict": point.level.value,
                        "saturated": point.saturated,
                    }
                    for point in curve.points
                ],
                "knee": result(curve.knee),
                "usl": result(curve.usl),
                "left_out": list(curve.left_out),
            }
            for curve in curves.curves
        ],
        "equal_load": [
            {
                "variant": equal.variant,
                "factors": dict(zip(curves.tables, equal.table, strict=True)),
                "latency_at_throughput": [match_document(match) for match in equal.latency_at],
                "throughput_at_latency": [match_document(match) for match in equal.throughput_at],
            }
            for equal in curves.equal
        ],
        "warnings": [{"code": warning.code, "text": warning.text} for warning in curves.warnings],
    }
    return json_text(document, indent=1) + "\n"
