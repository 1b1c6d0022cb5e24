# SPDX-License-Identifier: Apache-2.0
"""What the service answers of two ranges of time beside each other, as data; see `models`."""

from __future__ import annotations

from typing import Literal

from ...documents import Model
from ...heatmap.wire import HeatMapGroup
from .models import Value, VersionedModel


class SignedCells(Model):
    """Values by column: those of column c are `rows[k]`, `values[k]` for k from `starts[c]` to
    `starts[c + 1]`."""

    starts: list[int]
    rows: list[int]
    values: list[float]


class TwoRanges(VersionedModel):
    """What every comparison of two ranges of time says: both of equal length, widened to whole
    columns; covered_ns, other_covered_ns: how much of each was recorded."""

    statistic: str
    interval_ns: int
    columns: int
    from_ns: int
    until_ns: int
    other_from_ns: int
    other_until_ns: int
    covered_ns: int
    other_covered_ns: int


class Difference(TwoRanges):
    """Two ranges of time of one heat map on one grid, of equal length, both widened to whole
    columns.

    `group` has two maps, the other range first; column 0 of one begins at other_from_ns, of the
    other at from_ns; null where neither holds anything. `cells`: the range's counts less the
    other's, per second recorded, in the group's rows; columns of which one was not recorded at all
    are in `gaps` instead: (first, one past the last).
    """

    kind: Literal["difference"] = "difference"
    group: HeatMapGroup | None
    cells: SignedCells
    gaps: list[tuple[int, int]]
    notes: list[str]


class Change(Model):
    """A value over one range of time and over another one: mean and other_mean over what was
    recorded of them; change: the first less the second; ratio: the first by the second, null where
    that is 0. values, other_values: by column from the begin of each range."""

    key: str
    mean: Value
    other_mean: Value
    change: Value
    ratio: Value
    values: list[Value]
    other_values: list[Value]


class Changes(TwoRanges):
    """Two ranges of time of a number, or of a number for each key, of equal length and both widened
    to whole columns.

    `whole`: of all keys together, its key is empty; `keys`: those that changed most first, `left`
    how many more there are. Values are per second (levels and shares: on average), null where
    nothing was recorded, or where a key is among those that are not told apart.
    """

    kind: Literal["changes"] = "changes"
    unit: str
    adds_up: bool
    whole: Change
    keys: list[Change]
    left: int
    notes: list[str]


COMPARED: dict[str, type[Model]] = {model.__name__: model for model in (Difference, Changes)}
"""Every such answer, by name."""
