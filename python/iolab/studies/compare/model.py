# SPDX-License-Identifier: Apache-2.0
"""A comparison as values: what renderers and charts draw, and nothing else.

Values are in the metric's base unit. A change is a fraction (0.12 is +12 %) where the metric
compares by ratio, and a difference in the base unit where it compares by difference (a share of
0.03 is three percentage points).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from iolab.base.metrics import WITHOUT_SYNCS, Metric
from iolab.base.registry import load
from iolab.base.units import readable_unit, unit
from iolab.base.verdict import Level

from .arms import ArmRuns

AGAIN = "-again"
"""Suffix of the arm that runs the baseline a second time (`--a-a`)."""

CONFOUNDED = "confounded-with-time"
"""Reason of a change without a test: an arm has a single session, so that the change contains the
difference of the sessions."""

NOT_ALTERNATING = "not-alternating"
"""Reason of a change without a test: all sessions of one arm were before those of the other, so
that the change contains any trend over that time."""

UNBALANCED = "unbalanced-sessions"
"""Reason of a change without a test: no distribution is assumed of the metric, and the permutation
test needs as many sessions of one arm as of the other."""

TAIL = "tail-of-sample"
"""Reason of a change without a test. In an arm fewer than `LEAST_BEYOND` I/Os of a run are beyond
the percentile, so that its value depends on the number of I/Os."""

ZERO_VALUE = "zero"
"""Reason of a change without a test: a value is zero, which has no logarithm. The change is that of
the arithmetic means."""

SYNCS_APART = "syncs-apart"
"""Code of the warning that a latency of writes leaves out the time in fsync and fdatasync."""

SYNCS_DIFFER = "syncs-differ"
"""Code of the same warning where the arms sync differently: then no direction is better."""

WITHOUT_METRIC = "without-metric"
"""Code of the warning that levels at which no run has the metric are left out."""

Key = tuple[object, ...]
"""Levels of the factors of one axis, in the order of the axis's names."""


@dataclass(frozen=True)
class Estimate:
    """One variant's value in one cell.

    Attributes:
        value: geometric mean over the runs that count (arithmetic for a metric compared by
        difference), None without any. low, high: its own interval at the comparison's level, None
        below two runs. values, runs: its data: the values and their runs, in block order.
        level: the worst verdict among those runs.
        left_out: runs that were INVALID, or without this metric; left_out_values: what they
        observed (None where
            they did not), in the same order, so that charts can show what was refused; may be
            empty.
    """

    value: float | None
    low: float | None
    high: float | None
    values: tuple[float, ...]
    runs: tuple[str, ...]
    level: Level
    left_out: tuple[str, ...] = ()
    left_out_values: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Change:
    """A variant against the baseline in one cell.

    Attributes:
        value: the estimate; low, high: its interval, None where there is none (one pair).
        pairs: blocks that count; dropped: blocks that left because one side was INVALID, missing or
        without the metric;
            without: those of them that left for the metric alone.
        df: degrees of freedom of the interval; pooled: whether its variance is the sweep's.
        p: of the t test; p_exact: of the exact test, from six pairs on; q: Benjamini-Hochberg over
        the sweep. decided: whether q is at most the comparison's alpha.
        improves: whether the direction of the estimate is the metric's better one; None without
        direction. blocks_needed: blocks at which a change as large as the estimate would be found
        with 80 % power among the tests that
            q is taken over, where undecided.
        excluded: the interval's far end as a size: a change beyond it, up or down, is excluded.
        None without interval.
        sessions: sessions of the baseline and of the variant, where these are the unit of
        repetition; None where blocks are. Then `pairs` and `blocks_needed` count sessions of each
        arm, and p_exact is of the permutation test. reason: code of the reason why no test was
        made (`CONFOUNDED`: then the interval is that within sessions only; `NOT_ALTERNATING`;
        `UNBALANCED`; `ZERO_VALUE`; `TAIL`: then there is no interval either), else None.
    """

    value: float
    low: float | None
    high: float | None
    pairs: int
    dropped: int
    df: float | None = None
    pooled: bool = False
    p: float | None = None
    p_exact: float | None = None
    q: float | None = None
    decided: bool = False
    improves: bool | None = None
    blocks_needed: int | None = None
    excluded: float | None = None
    without: int = 0
    sessions: tuple[int, int] | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Cell:
    """One variant at one place of one table. `change` is None for the baseline itself and where no
    ratio exists.

    Attributes:
        footnotes: codes into `Comparison.footnotes`.
        saturated: whether an offered rate was not reached in a run of the cell (drawn dashed).
    """

    table: Key
    row: Key
    col: Key
    variant: str
    estimate: Estimate
    change: Change | None
    footnotes: tuple[str, ...] = ()
    saturated: bool = False


@dataclass(frozen=True)
class Summary:
    """Geometric mean change of a variant over the cells of one column that are valid on both sides.

    Attributes:
        cells: how many cells it covers; of: how many the column has.
        worst: row of the cell that changed most for the worse (or most, without a direction).
    """

    table: Key
    col: Key
    variant: str
    change: Change | None
    cells: int
    of: int
    worst: Key | None = None


@dataclass(frozen=True)
class Warning:
    """Something about the comparison as a whole that a reader must know; `code` for programs."""

    code: str
    text: str


@dataclass(frozen=True)
class Difference:
    """A fact in which the environment of the arms differs: the texts that each arm has, none where
    it was not recorded."""

    name: str
    values: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Unmatched:
    """A cell that not all arms of several results have: the arms that have it, and its factors."""

    variants: tuple[str, ...]
    factors: dict[str, object]


@dataclass(frozen=True)
class Comparison:
    """Every variant against the baseline over a sweep.

    Attributes:
        rows, cols, tables: factor names of each axis; *_levels: their levels in order (missing
        cells are simply absent). cells: in table, row, column, variant order, the baseline's first.
        fixed: factors with a single level, which head the table instead of an axis.
        footnotes: code to text, in order of first use.
        noise_floor: of an A/A arm: the range of change seen where nothing differs, as (lowest,
        highest). confidence: of every interval; alpha: of decisions after Benjamini-Hochberg.
        detectable: smallest change that the blocks of a typical cell find with 80 % power among the
        tests that q is taken
            over: half of the cells need less. None below two blocks.
        shown_unit: unit in which to write values where it is requested or published; None chooses
        a readable one.
        differences: of arms from several results: in what their environments differ.
        unmatched: of these, the cells that not all of them have.
        arms: the runs of each arm, those that do not count included.
    """

    metric: Metric
    baseline: str
    variants: tuple[str, ...]
    rows: tuple[str, ...]
    cols: tuple[str, ...]
    tables: tuple[str, ...]
    row_levels: tuple[Key, ...]
    col_levels: tuple[Key, ...]
    table_levels: tuple[Key, ...]
    cells: tuple[Cell, ...]
    summaries: tuple[Summary, ...]
    fixed: dict[str, object] = field(default_factory=dict)
    warnings: tuple[Warning, ...] = ()
    footnotes: dict[str, str] = field(default_factory=dict)
    noise_floor: tuple[float, float] | None = None
    confidence: float = 0.95
    alpha: float = 0.05
    detectable: float | None = None
    shown_unit: str | None = None
    differences: tuple[Difference, ...] = ()
    unmatched: tuple[Unmatched, ...] = ()
    arms: tuple[ArmRuns, ...] = ()

    def __str__(self) -> str:
        return str(load("renderer", "text")().render(self))

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str:
        return str(load("renderer", "markdown")().render(self))

    @property
    def title(self) -> str:
        """The metric's title; a latency of writes that leaves out their syncs says so."""
        is_without_syncs = any(
            warning.code in (SYNCS_APART, SYNCS_DIFFER) for warning in self.warnings
        )
        return f"{self.metric.title}{WITHOUT_SYNCS if is_without_syncs else ''}"

    @property
    def false_alarms(self) -> tuple[int, int]:
        """(false alarms, cells) of the A/A arm: decided changes where nothing differs, of those
        that could be decided."""
        changes = [
            cell.change
            for cell in self.cells
            if cell.variant == self.baseline + AGAIN and cell.change is not None
        ]
        testable = [change for change in changes if change.p is not None]
        return sum(change.decided for change in testable), len(testable)

    def cell(self, table: Key, row: Key, col: Key, variant: str) -> Cell | None:
        """The cell at a place, or None where it was not measured."""
        return self._by_place.get((table, row, col, variant))

    @cached_property
    def written_unit(self) -> tuple[str, float]:
        """(symbol, scale) in which all values are written: the requested or published unit, else a
        readable one."""
        if self.shown_unit is not None:
            return self.shown_unit, unit(self.shown_unit).scale
        values = [cell.estimate.value for cell in self.cells if cell.estimate.value is not None]
        return readable_unit(values, self.metric.unit)

    @cached_property
    def _by_place(self) -> dict[tuple[Key, Key, Key, str], Cell]:
        return {(cell.table, cell.row, cell.col, cell.variant): cell for cell in self.cells}
