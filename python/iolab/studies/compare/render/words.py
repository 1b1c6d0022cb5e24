# SPDX-License-Identifier: Apache-2.0
"""How a comparison's numbers are written wherever text is: units, changes, intervals, tests,
labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from iolab.base.metrics import Metric
from iolab.base.units import format_number, readable_unit

from ..arms import runs_text
from ..axes import axis_text, level_text
from ..model import (
    CONFOUNDED,
    NOT_ALTERNATING,
    TAIL,
    UNBALANCED,
    ZERO_VALUE,
    Cell,
    Change,
    Comparison,
    Difference,
    Key,
)

REASONS = {
    CONFOUNDED: "confounded with time",
    NOT_ALTERNATING: "arms not alternating",
    TAIL: "tail of the sample",
    UNBALANCED: "unequal numbers of sessions",
    ZERO_VALUE: "zero",
}
"""Why a change has no test, by code."""


class Renderer(Protocol):
    """Draws a comparison as text. `precision` is digits after the point; None chooses readable
    ones."""

    name: str

    def render(self, comparison: Comparison, *, precision: int | None = None) -> str:
        """The whole text, with a final newline."""


@dataclass(frozen=True)
class Scale:
    """The unit in which a comparison's values are written: `value / scale` in `symbol`."""

    symbol: str
    scale: float
    precision: int | None

    def value(self, value: float | None) -> str:
        """A value without its unit; an em dash for none."""
        if value is None:
            return "—"
        scaled = value / self.scale
        return format_number(scaled) if self.precision is None else f"{scaled:.{self.precision}f}"

    def brief(self, value: float) -> str:
        """A value for a crowded cell: 45, not 45.00, unless a precision was requested."""
        return short(value / self.scale, 4) if self.precision is None else self.value(value)


def short(value: float, digits: int = 3) -> str:
    """A number with at most `digits` significant digits, without zeros at its end: 0.09, 1.6, 12
    000."""
    text = format_number(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def scale_for(comparison: Comparison, precision: int | None) -> Scale:
    """One unit for all values of a comparison."""
    return Scale(*comparison.written_unit, precision)


def cell_scale(comparison: Comparison, precision: int | None) -> Scale:
    """As `scale_for`; for bytes the next smaller unit where that gives two to four digits: 1641
    MiB/s, not 1.603 GiB/s.

    1.603 GiB is not written as 1641 MiB, but 4.2 ms may be written as 4200 µs.
    """
    scale = scale_for(comparison, precision)
    values = [cell.estimate.value for cell in comparison.cells if cell.estimate.value]
    if (
        comparison.shown_unit is None
        and comparison.metric.unit in ("B", "B/s")
        and values
        and min(values) / scale.scale < 10
    ):
        smaller, step = readable_unit([0.999 * scale.scale], comparison.metric.unit)
        if step < scale.scale and max(values) / step < 10_000:
            return Scale(smaller, step, precision)
    return scale


def change_text(change: Change | None, comparison: Comparison, precision: int | None = None) -> str:
    """`+12.3 %`, `-3.1 points`, `+2 s`; an em dash where there is no ratio."""
    return "—" if change is None else signed_change(change.value, comparison, precision)


class HasDifferences(Protocol):
    """Arms with differences of their environments, such as a comparison."""

    @property
    def differences(self) -> tuple[Difference, ...]: ...


class OfMetric(Protocol):
    """Changes of one metric, such as a comparison."""

    @property
    def metric(self) -> Metric: ...


def change_unit(comparison: OfMetric) -> str:
    """What a change is in: per cent, percentage points, or the metric's unit."""
    if comparison.metric.change == "ratio":
        return "%"
    return "points" if comparison.metric.unit == "1" else comparison.metric.unit


def change_number(value: float, comparison: OfMetric) -> float:
    """A change in the unit of `change_unit`: 0.12 is 12."""
    return 100 * value if change_unit(comparison) in ("%", "points") else value


def signed_change(value: float, comparison: OfMetric, precision: int | None) -> str:
    """`+12.3 %`, `-3.1 points`, `+2 s`."""
    number = change_number(value, comparison)
    digits = precision if precision is not None else (1 if abs(number) < 1000 else 0)
    return f"{signed_text(number, digits)} {change_unit(comparison)}".rstrip()


def signed_text(number: float, digits: int) -> str:
    """A number that bears its sign, grouped as `format_number` does from 10 000 on; what rounds to
    zero bears none."""
    text = f"{number:+.{digits}f}"
    if not float(text):
        return text[1:]
    return (
        f"{text[0]}{format_number(abs(number))}" if digits == 0 and abs(number) >= 10_000 else text
    )


def interval_text(
    change: Change | None, comparison: Comparison, precision: int | None = None
) -> str:
    """`[+10.2, +14.4]`; `no interval` for a single pair, nothing without a change."""
    if change is None:
        return ""
    if change.low is None or change.high is None:
        return "no interval"
    label = " within session only" if change.reason == CONFOUNDED else ""
    return f"{_ends_text(change, comparison, precision)}{label}"


def _ends_text(change: Change, comparison: Comparison, precision: int | None) -> str:
    assert change.low is not None
    assert change.high is not None
    if precision is None and (factors := factors_text(change, comparison)):
        return factors
    low, high = (change_number(end, comparison) for end in (change.low, change.high))
    digits = precision if precision is not None else (1 if max(abs(low), abs(high)) < 1000 else 0)
    return f"[{signed_text(low, digits)}, {signed_text(high, digits)}]"


def factors_text(change: Change, comparison: Comparison) -> str:
    """`[x 0.011, x 250]`: the interval of a ratio that reaches beyond tenfold; empty for any other.

    In per cent its lower end would round to an impossible -100. An end beyond a thousandfold says
    only that the interval is as good as open there: `[< x 0.001, > x 1000]`.
    """
    if (
        comparison.metric.change != "ratio"
        or change.low is None
        or change.high is None
        or _tells(change.high, comparison)
    ):
        return ""
    low, high = (_factor_text(1 + end) for end in (change.low, change.high))
    return f"[{low}, {high}]"


def _factor_text(factor: float) -> str:
    if factor > MOST_FACTOR:
        return f"> x {MOST_FACTOR}"
    return f"< x {1 / MOST_FACTOR}" if factor < 1 / MOST_FACTOR else f"x {short(factor, 2)}"


MOST_FACTOR = 1000
"""A change by more than this, or by less than its inverse, is not written as a number."""


def test_text(change: Change | None) -> str:
    """The test column: `~` where not significant, else q (and n)."""
    if change is None:
        return ""
    if change.reason is not None:
        return f"~ {REASONS[change.reason]}"
    if not change.decided:
        return "~"
    return "q<0.001" if change.q is not None and change.q < 0.001 else f"q={change.q:.3f}"


def undecided_text(change: Change, comparison: Comparison) -> str:
    """What a change that is not significant still says: the change that is ruled out, and the
    blocks that would confirm one."""
    parts = []
    if change.excluded is not None and _tells(change.excluded, comparison):
        number = change_number(change.excluded, comparison)
        parts.append(
            f"a change beyond ±{format_number(number, 2)} {change_unit(comparison)}".rstrip()
            + " is ruled out"
        )
    unit = "blocks" if change.sessions is None else "sessions of each arm"
    if change.blocks_needed is not None:
        parts.append(f"about {change.blocks_needed} {unit} would confirm one of this size")
    elif change.low is not None and change.sessions is None:
        parts.append("more than 1000 blocks would be needed to confirm one of this size")
    return "; ".join(parts)


def undecided_cells(comparison: Comparison) -> list[tuple[Cell, str]]:
    """Cells with a change that was tested and is not significant, with `undecided_text`."""
    return [
        (cell, undecided_text(cell.change, comparison))
        for cell in comparison.cells
        if cell.change is not None
        and not cell.change.decided
        and cell.change.low is not None
        and cell.change.reason is None
    ]


def _tells(size: float, comparison: Comparison) -> bool:
    """Whether saying a change of this size is useful: a ratio beyond tenfold comes from two
    blocks and much noise."""
    return comparison.metric.change != "ratio" or size <= 10


def key_text(key: Key) -> str:
    """`4 hdd`, for rows and columns with the axis named above."""
    return " ".join(level_text(level) for level in key)


def title_text(comparison: Comparison, scale: Scale) -> str:
    """`write.iops: IOPS, writes (1/s)`, with the factors that don't vary."""
    metric = comparison.metric
    symbol = f" ({scale.symbol})" if scale.symbol else ""
    title = (
        f"{metric.name}: {comparison.title}{symbol}"
        if comparison.title != metric.name
        else f"{metric.name}{symbol}"
    )
    fixed = axis_text(comparison.fixed.keys(), tuple(comparison.fixed.values()))
    return f"{title}, {fixed}" if fixed else title


def mark(cell: Cell, codes: dict[str, str]) -> str:
    """Footnote marks of a cell: `¹ ²`, in the order of the comparison's footnotes."""
    return "".join(codes[code] for code in cell.footnotes if code in codes)


_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def marks(comparison: Comparison) -> dict[str, str]:
    """Footnote code to its mark."""
    return {code: superscript(number) for number, code in enumerate(comparison.footnotes, 1)}


def superscript(number: int) -> str:
    """A footnote's mark: `¹²` for 12."""
    return str(number).translate(_SUPERSCRIPT)


def opening_lines(comparison: HasDifferences, most: int = 4) -> list[str]:
    """In what the environments of arms from several results differ, a line each."""

    def side(texts: tuple[str, ...]) -> str:
        more = f" and {len(texts) - most} more" if len(texts) > most else ""
        return f"{', '.join(texts[:most])}{more}"

    lines = [
        f"  {difference.name}: "
        + "; ".join(f"{arm} {side(texts)}" for arm, texts in difference.values.items())
        for difference in comparison.differences
    ]
    return ["environments differ:", *lines] if lines else []


def _unmatched_lines(comparison: Comparison, most: int = 12) -> list[str]:
    lines = [
        f"unmatched cell, in {' and '.join(cell.variants)} only: "
        + (axis_text(cell.factors.keys(), tuple(cell.factors.values())) or "no factors")
        for cell in comparison.unmatched[:most]
    ]
    more = len(comparison.unmatched) - most
    return [
        *lines,
        *([f"and {more} more unmatched cells (--format json has them all)"] if more > 0 else []),
    ]


def closing_lines(comparison: Comparison) -> list[str]:
    """Footnotes, noise floor, method and warnings, a line each: the lines under the tables in
    every text format."""
    lines = [f"{sign} {comparison.footnotes[code]}" for code, sign in marks(comparison).items()]
    if comparison.arms:
        lines.append(runs_text(comparison.arms))
    if comparison.noise_floor is not None:
        low, high = (signed_change(end, comparison, None) for end in comparison.noise_floor)
        alarms, cells = comparison.false_alarms
        said = f"; false alarms: {alarms} of {cells} cells (stated: any at all in at most {100 * comparison.alpha:g} % of studies)"
        lines.append(f"noise floor (A/A): {low} to {high}{said if cells else ''}")
    changes = [cell.change for cell in comparison.cells if cell.change is not None]
    counts = sorted({change.sessions for change in changes if change.sessions is not None})
    if counts:
        listed = ", ".join(f"{first} against {second}" for first, second in counts)
        lines.append(
            f"unit of repetition: the session ({listed}), with intervals over session means"
        )
    if any(change.low is not None for change in changes):
        pooled = sum(change.pooled for change in changes)
        decided = sum(change.decided for change in changes)
        lines.append(
            f"{100 * comparison.confidence:.0f} % intervals, variance pooled over {pooled} of {len(changes)} cells; "
            f"{decided} of {len(changes)} changes significant at q <= {comparison.alpha:g} (Benjamini-Hochberg)"
        )
    if size := size_text(comparison):
        lines.append(f"minimum detectable change: {size} (80 % power)")
    return lines + note_lines(comparison)


def size_text(comparison: Comparison) -> str:
    """The smallest change that the comparison can detect; empty where that isn't known."""
    if comparison.detectable is None:
        return ""
    if not _tells(comparison.detectable, comparison):
        return "more than tenfold"
    size = format_number(change_number(comparison.detectable, comparison), 2)
    return f"about {size} {change_unit(comparison)}".rstrip()


def note_lines(comparison: Comparison) -> list[str]:
    """Unmatched cells and warnings, a line each."""
    notes = [f"note: {warning.text}" for warning in comparison.warnings]
    return _unmatched_lines(comparison) + notes
