# SPDX-License-Identifier: Apache-2.0
"""Axes that read well: values in one readable unit, ticks at round numbers, the same scale for all
that is compared.

Domains are computed here from everything that is drawn (intervals and reference lines too) and
written into the specification, so that panels and variants that are compared have the same
scale in every renderer.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from iolab.base.units import readable_unit

from .drawing import Spec, channel

WIDE = 8.0
"""Largest over smallest from which an axis is logarithmic: three doublings."""

NUMBER = (
    "abs(datum.value) < 10000 ? format(datum.value, '.6~g') : "
    "replace(format(datum.value, ',.12~g'), regexp(',', 'g'), '\\u2009')"
)
"""Vega expression of a tick's label: digits, grouped by thin spaces from 10 000 on, never an
exponent."""

CHANGE = (
    "(datum.value > 1 ? '+' : datum.value < 1 ? '−' : '') + "
    "replace(format(abs(datum.value - 1) * 100, ',.6~r'), regexp(',', 'g'), '\\u2009')"
)
"""Vega expression that writes a ratio as the change it is, in per cent."""


@dataclass(frozen=True)
class ValueAxis:
    """The axis of what was measured.

    Attributes:
        title: with the unit in parentheses.
        symbol, scale: the readable unit; values are divided by `scale` before they are drawn.
        kind: `log`, `linear`, or `symlog` (linear near zero, logarithmic beyond) where zeros meet a
        wide range. low, high: domain in the readable unit.
        linear_below: where a symlog axis stops being linear, else 1.
        shift: added to a value before it is divided: 1 makes a change of +50 % the ratio 1.5, which
        a log axis can draw. notes: what a reader must know about the axis, in words.
    """

    title: str
    symbol: str
    scale: float
    kind: Literal["log", "linear", "symlog"]
    low: float
    high: float
    linear_below: float = 1.0
    notes: tuple[str, ...] = ()
    shift: float = 0.0

    @property
    def zero(self) -> float:
        """Where no change is drawn."""
        return self.shift / self.scale

    def place(self, value: float | None) -> float | None:
        """A value in the axis's unit, at six digits (finer than any pixel); None where there is
        nothing to draw."""
        if value is None or not math.isfinite(value):
            return None
        number = float(f"{(value + self.shift) / self.scale:.6g}")
        return None if self.kind == "log" and number <= 0 else number

    def within(self, value: float | None) -> float | None:
        """As `drawn`, moved to just inside the nearer edge where it is outside the domain."""
        if value is None or math.isnan(value):
            return None
        if self.kind == "log":
            margin = (self.high / self.low) ** 0.02
            low, high = self.low * margin, self.high / margin
        else:
            margin = 0.02 * (self.high - self.low)
            low, high = self.low + margin, self.high - margin
        number = (value + self.shift) / self.scale
        return float(f"{min(max(number, low), high):.6g}")

    def pixel(self, drawn: float, length: int) -> float:
        """Pixels from the axis's start of a drawn value on an axis of that length."""
        if self.kind == "log":
            return length * math.log(drawn / self.low) / math.log(self.high / self.low)
        if self.kind == "symlog":
            shape = [math.log1p(end / self.linear_below) for end in (self.low, drawn, self.high)]
            return length * (shape[1] - shape[0]) / (shape[2] - shape[0])
        return length * (drawn - self.low) / (self.high - self.low)

    def _options(self, ticks: int) -> tuple[Spec, Spec]:
        domain = [self.low, self.high]
        if self.kind == "log":
            scale = Spec(type="log", base=2, domain=domain, nice=False)
            values = log_ticks(self.low, self.high, ticks)
            return scale, Spec(values=values, labelExpr=CHANGE if self.shift else NUMBER)
        if self.kind == "symlog":
            values = [0.0, *log_ticks(self.linear_below, self.high, max(ticks - 1, 2))]
            scale = Spec(type="symlog", constant=self.linear_below, domain=domain, nice=False)
            return scale, Spec(values=values, labelExpr=NUMBER)
        return Spec(domain=domain, nice=False, zero=False), Spec(tickCount=ticks, labelExpr=NUMBER)

    def encode_y(self, height: int, field: str = "y", *, is_right: bool = False) -> Spec:
        """The channel for a vertical axis; a second one is at the right, without a grid."""
        scale, axis = self._options(max(3, height // 32))
        if is_right:
            axis = {**axis, "orient": "right", "grid": False}
        return channel(f"{field}:Q", title=_lines(self.title, height), scale=scale, axis=axis)

    def encode_x(self, width: int, field: str = "x") -> Spec:
        """The channel for a horizontal axis."""
        scale, axis = self._options(max(3, width // 64))
        return channel(f"{field}:Q", title=_lines(self.title, width), scale=scale, axis=axis)


def value_axis(
    title: str,
    base: str,
    values: Iterable[float | None],
    *,
    log: bool = True,
    wide: float = WIDE,
    shown: tuple[str, float] | None = None,
) -> ValueAxis:
    """The axis of these values (everything that will be drawn on it), given in the base unit.

    `shown` is the unit to show them in, as (symbol, scale), where it isn't to be chosen here.

    Logarithmic where `log` allows and the largest is `wide` times the smallest positive value;
    shares are always linear. Zeros can't be shown on a logarithmic axis: with a wide range they
    make it symlog, and the axis says so in its notes.
    """
    finite = [value for value in values if value is not None and math.isfinite(value)]
    symbol, scale = shown or readable_unit(finite, base)
    words = f"{title} ({symbol})" if symbol else title
    if not finite:
        return ValueAxis(words, symbol, scale, "linear", 0.0, 1.0, notes=("nothing to draw",))
    numbers = [value / scale for value in finite]
    low, high = min(numbers), max(numbers)
    positive = [number for number in numbers if number > 0]
    if log and base != "1" and low >= 0 and positive and high / min(positive) >= wide:
        if low > 0:
            margin = (high / low) ** 0.04
            return ValueAxis(words, symbol, scale, "log", low / margin, high * margin)
        note = f"zeros have no place on a logarithmic axis: it is linear below {min(positive):.3g} {symbol}".rstrip()
        margin = (high / min(positive)) ** 0.04
        return ValueAxis(words, symbol, scale, "symlog", 0.0, high * margin, min(positive), (note,))
    if base == "1" and low >= 0 and 0.5 / scale < high <= 1.05 / scale:
        # sampled shares overshoot by a clock tick; the axis ends at the whole all the same
        return ValueAxis(words, symbol, scale, "linear", 0.0, max(1 / scale, high))
    bottom, top = round_domain(min(low, 0.0), max(high, 0.0))
    return ValueAxis(words, symbol, scale, "linear", bottom, top)


def ratio_axis(title: str, changes: Sequence[float]) -> ValueAxis:
    """A logarithmic axis of ratios, labelled as changes in per cent, for changes (fractions) too
    wide for a linear one.

    A change to nothing at all (-1) has no place on it; the notes say so.
    """
    ratios = [1.0, *(1 + change for change in changes if math.isfinite(change) and change > -1)]
    margin = (max(ratios) / min(ratios)) ** 0.04
    notes: tuple[str, ...] = ("logarithmic axis of ratios",)
    if any(change <= -1 for change in changes):
        notes = (*notes, "a change of −100 % can't be drawn on it")
    return ValueAxis(
        f"{title} (%)",
        "%",
        1.0,
        "log",
        min(ratios) / margin,
        max(ratios) * margin,
        notes=notes,
        shift=1.0,
    )


def round_domain(low: float, high: float) -> tuple[float, float]:
    """A linear domain that holds both ends, widened to round numbers; never empty."""
    largest = max(abs(low), abs(high))
    if largest == 0:
        return 0.0, 1.0
    if high - low < 1e-9 * largest:  # nothing that an axis could tell apart
        low, high = low - abs(low) * 0.1, high + abs(high) * 0.1
    step = float(10 ** math.floor(math.log10((high - low) / 4)))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 8)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers within [low, high] for a logarithmic axis, at most about `most`: 1-2-5, else
    1-3, else powers of ten."""
    if low <= 0 or high <= low:
        return []
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [
            float(f"{factor}e{power}") for power in range(first, last + 1) for factor in factors
        ]
        inside = [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(inside) <= most:
            return inside
    return inside[:: math.ceil(len(inside) / most)]


def _lines(title: str, pixels: int) -> str | list[str]:
    """A title in as many lines as it needs along an axis of that length."""
    lines = textwrap.wrap(title, max(pixels // 6, 12))
    return title if len(lines) < 2 else lines
