"""Axes that read well: loads on a log2 axis ticked where they were measured, values in one readable unit.

Domains are computed here from everything that is drawn (intervals and reference lines too) and written into the
specification, so that panels and variants that are compared stand on the same scale whoever renders them.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import altair as alt

from ..compare.model import Key
from ..units import readable_unit

WIDE = 8.0
"""Largest over smallest from which an axis is logarithmic: three doublings."""

NUMBER = ("abs(datum.value) < 10000 ? format(datum.value, '.6~g') : "
          "replace(format(datum.value, ',.12~g'), regexp(',', 'g'), '\u2009')")
"""Vega expression of a tick's label: digits, grouped by thin spaces from 10 000 on, never an exponent."""

CHANGE = ("(datum.value > 1 ? '+' : datum.value < 1 ? '−' : '') + "
          "replace(format(abs(datum.value - 1) * 100, ',.6~r'), regexp(',', 'g'), '\u2009')")
"""Vega expression that writes a ratio as the change it is, in per cent."""


def level_text(level: object) -> str:
    """A factor's level as an axis prints it."""
    if isinstance(level, bool):
        return "on" if level else "off"
    if isinstance(level, float):
        return f"{level:.12g}"
    return str(level)


def key_text(key: Key) -> str:
    """Levels of an axis as one label."""
    return " · ".join(level_text(level) for level in key)


def named_text(names: Sequence[str], key: Key) -> str:
    """Levels with their factors, as a panel's heading: `disks = 4, media = hdd`."""
    return ", ".join(f"{name} = {level_text(level)}" for name, level in zip(names, key, strict=True))


@dataclass(frozen=True)
class LoadAxis:
    """The axis of what was swept.

    Attributes:
        kind: `log2` for positive numbers over at least three doublings, `linear` for other numbers, `ordinal` for the
            rest and for a single level.
        levels: in order; each is a tick.
    """

    title: str
    kind: Literal["log2", "linear", "ordinal"]
    levels: tuple[Key, ...]

    def place(self, key: Key) -> float | str:
        """Where a level stands: a number, or the label of an ordinal axis."""
        level = key[0] if self.kind != "ordinal" else None
        return level if isinstance(level, int | float) else key_text(key)

    def encode(self, width: int, field: str = "x") -> alt.X:
        """The altair channel; labels that would collide at this width are turned, or left out where turning is not enough."""
        labels = [key_text(key) for key in self.levels]
        angle, overlap = _fit(self._positions(width), labels)
        if self.kind == "ordinal":
            limit = 160 if angle else 0
            return alt.X(f"{field}:N", title=self.title, sort=labels, scale=alt.Scale(domain=labels),
                         axis=alt.Axis(labelAngle=angle, grid=False, labelLimit=limit))
        ticks = [float(self.place(key)) for key in self.levels]
        axis = alt.Axis(values=ticks, labelExpr=NUMBER, labelAngle=angle, labelOverlap=overlap, grid=True)
        low, high = self._domain()
        if self.kind == "log2":
            return alt.X(f"{field}:Q", title=self.title, axis=axis,
                         scale=alt.Scale(type="log", base=2, domain=[low, high], nice=False))
        return alt.X(f"{field}:Q", title=self.title, axis=axis,
                     scale=alt.Scale(domain=[low, high], nice=False, zero=False))

    def _domain(self) -> tuple[float, float]:
        numbers = [float(self.place(key)) for key in self.levels]
        low, high = min(numbers), max(numbers)
        if self.kind == "log2":
            margin = (high / low) ** 0.03
            return low / margin, high * margin
        margin = (high - low) * 0.03
        return low - margin, high + margin

    def _positions(self, width: int) -> list[float]:
        """Pixels from the axis's start at which the levels stand."""
        count = len(self.levels)
        if self.kind == "ordinal":
            return [width * (place + 0.5) / count for place in range(count)]
        shape = math.log if self.kind == "log2" else float
        low, high = (shape(end) for end in self._domain())
        return [width * (shape(float(self.place(key))) - low) / (high - low) for key in self.levels]


def load_axis(names: Sequence[str], levels: Sequence[Key]) -> LoadAxis:
    """The axis of one or several factors; several, words or a single level make an ordinal one."""
    title = ", ".join(names)
    plain = [key[0] for key in levels if len(key) == 1]
    numbers = [float(level) for level in plain if isinstance(level, int | float) and not isinstance(level, bool)]
    numeric = len(numbers) == len(levels) and all(math.isfinite(number) for number in numbers)
    if not numeric or len(set(numbers)) < 2:
        return LoadAxis(title, "ordinal", tuple(levels))
    log = min(numbers) > 0 and max(numbers) / min(numbers) >= WIDE
    return LoadAxis(title, "log2" if log else "linear", tuple(levels))


@dataclass(frozen=True)
class ValueAxis:
    """The axis of what was measured.

    Attributes:
        title: with the unit in parentheses.
        symbol, scale: the readable unit; values are divided by `scale` before they are drawn.
        kind: `log`, `linear`, or `symlog` (linear near zero, logarithmic beyond) where zeros meet a wide range.
        low, high: domain in the readable unit.
        linear_below: where a symlog axis stops being linear, else 1.
        shift: added to a value before it is divided: 1 makes a change of +50 % the ratio 1.5, which a log axis can draw.
        notes: what a reader must know about the axis, in words.
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

    def drawn(self, value: float | None) -> float | None:
        """A value in the axis's unit, at six digits (finer than any pixel); None where there is nothing to draw."""
        if value is None or not math.isfinite(value):
            return None
        number = float(f"{(value + self.shift) / self.scale:.6g}")
        return None if self.kind == "log" and number <= 0 else number

    def within(self, value: float | None) -> float | None:
        """As `drawn`, moved to just inside the nearer edge where it lies beyond the domain."""
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
        """Pixels from the axis's start at which a drawn value stands on an axis of that length."""
        if self.kind == "log":
            return length * math.log(drawn / self.low) / math.log(self.high / self.low)
        if self.kind == "symlog":
            shape = [math.log1p(end / self.linear_below) for end in (self.low, drawn, self.high)]
            return length * (shape[1] - shape[0]) / (shape[2] - shape[0])
        return length * (drawn - self.low) / (self.high - self.low)

    def _options(self, ticks: int) -> tuple[alt.Scale, alt.Axis]:
        domain = [self.low, self.high]
        if self.kind == "log":
            scale = alt.Scale(type="log", base=2, domain=domain, nice=False)
            values = log_ticks(self.low, self.high, ticks)
            return scale, alt.Axis(values=values, labelExpr=CHANGE if self.shift else NUMBER)
        if self.kind == "symlog":
            values = [0.0, *log_ticks(self.linear_below, self.high, max(ticks - 1, 2))]
            scale = alt.Scale(type="symlog", constant=self.linear_below, domain=domain, nice=False)
            return scale, alt.Axis(values=values, labelExpr=NUMBER)
        return alt.Scale(domain=domain, nice=False, zero=False), alt.Axis(tickCount=ticks, labelExpr=NUMBER)

    def encode_y(self, height: int, field: str = "y") -> alt.Y:
        """The altair channel for a vertical axis."""
        scale, axis = self._options(max(3, height // 32))
        return alt.Y(f"{field}:Q", title=_lines(self.title, height), scale=scale, axis=axis)

    def encode_x(self, width: int, field: str = "x") -> alt.X:
        """The altair channel for a horizontal axis."""
        scale, axis = self._options(max(3, width // 64))
        return alt.X(f"{field}:Q", title=self.title, scale=scale, axis=axis)


def value_axis(title: str, base: str, values: Iterable[float | None], *, log: bool = True,
               wide: float = WIDE) -> ValueAxis:
    """The axis of these values (everything that will be drawn on it), given in the base unit.

    Logarithmic where `log` allows and the largest is `wide` times the smallest positive value; shares are always linear.
    Zeros can't stand on a logarithmic axis: with a wide range they make it symlog, and the axis says so in its notes.
    """
    finite = [value for value in values if value is not None and math.isfinite(value)]
    symbol, scale = readable_unit(finite, base)
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
    if base == "1" and low >= 0 and 50 < high <= 100:
        return ValueAxis(words, symbol, scale, "linear", 0.0, 100.0)
    bottom, top = round_domain(min(low, 0.0), max(high, 0.0))
    return ValueAxis(words, symbol, scale, "linear", bottom, top)


def ratio_axis(title: str, changes: Sequence[float]) -> ValueAxis:
    """A logarithmic axis of ratios, labelled as changes in per cent, for changes (fractions) too wide for a linear one.

    A change to nothing at all (-1) has no place on it; the notes say so.
    """
    ratios = [1.0, *(1 + change for change in changes if math.isfinite(change) and change > -1)]
    margin = (max(ratios) / min(ratios)) ** 0.04
    notes = ("logarithmic axis of ratios",)
    if any(change <= -1 for change in changes):
        notes = (*notes, "a change of −100 % can't be drawn on it")
    return ValueAxis(f"{title} (%)", "%", 1.0, "log", min(ratios) / margin, max(ratios) * margin, notes=notes, shift=1.0)


def round_domain(low: float, high: float) -> tuple[float, float]:
    """A linear domain that holds both ends, widened to round numbers; never empty."""
    if high - low <= 0:
        return (0.0, 1.0) if high == 0 else (low - abs(low) * 0.1, high + abs(high) * 0.1)
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 8)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers within [low, high] for a logarithmic axis, at most about `most`: 1-2-5, else 1-3, else powers of ten."""
    if low <= 0 or high <= low:
        return []
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [float(f"{factor}e{power}") for power in range(first, last + 1) for factor in factors]
        inside = [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(inside) <= most:
            return inside
    return inside[:: math.ceil(len(inside) / most)]


def _lines(title: str, pixels: int) -> str | list[str]:
    """A title in as many lines as it needs along an axis of that length."""
    lines = textwrap.wrap(title, max(pixels // 6, 12))
    return title if len(lines) < 2 else lines


def _fit(positions: Sequence[float], labels: Sequence[str]) -> tuple[int, bool | str]:
    """Angle of labels, and what to do with those that still collide."""
    gaps = [after - before for before, after in pairwise(positions)]
    if not gaps:
        return 0, False
    widths = [6.4 * len(label) + 4 for label in labels]
    pairs = zip(gaps, widths, widths[1:], strict=False)
    if all(gap >= (one + other) / 2 for gap, one, other in pairs):
        return 0, False
    return -45, False if min(gaps) >= 12 else "greedy"
