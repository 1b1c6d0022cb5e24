# SPDX-License-Identifier: Apache-2.0
"""The comparison: every variant against the baseline over a sweep, block by block (DESIGN.md,
"Measuring honestly").

A change comes from the interval of its unit of repetition: blocks, or sessions. A whole column has
one: the geometric mean over the cells that are valid on both sides.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from iolab.base.errors import UsageError
from iolab.base.metrics import Metric, of, sort_key
from iolab.base.stats.blocks import MeanInterval, t_intervals
from iolab.base.stats.exact import sign_flip_p
from iolab.base.stats.multiple import benjamini_hochberg
from iolab.base.stats.sessions import SessionInterval, session_interval
from iolab.base.units import BASE, unit

from ..results.evidence.model import Run
from .arms import arm_runs
from .axes import BLOCK_SIZES, Axes, Grid, Layout, Where, choose, levels, select, with_metric
from .cells import Pairing, collect, estimate, pair, scale_of
from .load.achieved import with_achieved
from .model import (
    AGAIN,
    CONFOUNDED,
    NOT_ALTERNATING,
    SYNCS_DIFFER,
    TAIL,
    UNBALANCED,
    ZERO_VALUE,
    Cell,
    Change,
    Comparison,
    Key,
    Summary,
    Warning,
)
from .remarks import footnotes_of, syncs_warning, warnings_of
from .rules import planning
from .several import differences_of, unmatched_of


def change_of(
    interval: MeanInterval | SessionInterval,
    metric: Metric,
    *,
    dropped: int = 0,
    without: int = 0,
    is_alternating: bool = True,
) -> Change:
    """The change behind an interval of differences, with the counts that `Change` has.

    An interval within sessions excludes nothing, nor does one of sessions that do not alternate;
    neither has a test.
    """
    back = scale_of(metric)
    value = back(interval.mean)
    low = None if interval.low is None else back(interval.low)
    high = None if interval.high is None else back(interval.high)
    sessions = interval.sessions if isinstance(interval, SessionInterval) else None
    reason = None
    if isinstance(interval, SessionInterval):
        reason = CONFOUNDED if interval.is_within else None if is_alternating else NOT_ALTERNATING
    return Change(
        value=value,
        low=low,
        high=high,
        pairs=min(interval.sessions) if isinstance(interval, SessionInterval) else interval.n,
        dropped=dropped,
        without=without,
        df=interval.df,
        pooled=isinstance(interval, MeanInterval) and interval.pooled,
        p=interval.p if reason is None else None,
        improves=None
        if metric.better is None or value == 0
        else (value > 0) == (metric.better == "higher"),
        excluded=None
        if reason is not None or low is None or high is None
        else max(abs(low), abs(high)),
        sessions=sessions,
        reason=reason,
    )


def zero_change_of(pairing: Pairing, metric: Metric) -> Change:
    """The change of arithmetic means where a value is zero: no throughput is a loss of 100 %."""
    value = pairing.zero_change
    assert value is not None
    return Change(
        value=value,
        low=None,
        high=None,
        pairs=0,
        dropped=pairing.dropped,
        without=pairing.without,
        improves=None
        if metric.better is None or value == 0
        else (value > 0) == (metric.better == "higher"),
        reason=ZERO_VALUE,
    )


Place = tuple[Key, Key, Key]


def summaries(
    pairings: Mapping[tuple[Place, str], Pairing],
    variants: Sequence[str],
    axes: Axes,
    grid: Grid,
    metric: Metric,
    changes: Mapping[tuple[Place, str], Change],
    confidence: float,
) -> tuple[Summary, ...]:
    """Per table, column and variant: the mean over rows, its interval over blocks.

    The interval comes from one mean per block over the common cells, because cells of one block
    share its luck; with a single block there is none. Nothing is summed up over block sizes, or
    over a single cell.
    """
    if BLOCK_SIZES & set(axes.rows):
        return ()
    summary_list = []
    for table in grid.tables:
        for col in grid.cols:
            for variant in variants:
                rows = [row for row in grid.rows if ((table, row, col), variant) in pairings]
                keyed = {row: pairings[(table, row, col), variant] for row in rows}
                measured = {row: pairing for row, pairing in keyed.items() if pairing.has_change}
                expected = [
                    row
                    for row, pairing in keyed.items()
                    if pairing.has_change or pairing.dropped or pairing.zero
                ]
                if len(expected) < 2 or not measured:
                    continue
                worst = _worst(
                    {row: changes[(table, row, col), variant] for row in measured}, metric
                )
                summary_list.append(
                    Summary(
                        table,
                        col,
                        variant,
                        _mean(
                            list(measured.values()),
                            [changes[(table, row, col), variant].value for row in measured],
                            metric,
                            confidence,
                        ),
                        len(measured),
                        len(expected),
                        worst,
                    )
                )
    return tuple(summary_list)


def _mean(
    pairings: Sequence[Pairing], values: Sequence[float], metric: Metric, confidence: float
) -> Change:
    change = _tested_mean(pairings, values, metric, confidence)
    return without_test(change) if any(pairing.is_tail for pairing in pairings) else change


def _tested_mean(
    pairings: Sequence[Pairing], values: Sequence[float], metric: Metric, confidence: float
) -> Change:
    dropped = sum(pairing.dropped for pairing in pairings)
    if any(pairing.sessions is not None for pairing in pairings):
        return change_of(
            _session_mean(pairings, values, metric, confidence),
            metric,
            is_alternating=all(pairing.is_alternating for pairing in pairings),
            dropped=dropped,
        )
    by_block = [
        dict(zip(pairing.blocks, pairing.differences.tolist(), strict=True)) for pairing in pairings
    ]
    common = [block for block in by_block[0] if all(block in cell for cell in by_block)]
    if common:
        per_block = np.array([np.mean([cell[block] for cell in by_block]) for block in common])
    else:
        # no block is whole: the mean of the cells' own means, without an interval
        per_block = np.array(
            [np.mean([float(np.mean(pairing.differences)) for pairing in pairings])]
        )
    interval = t_intervals([per_block], confidence=confidence)[0]
    return change_of(replace(interval, pooled=False), metric, dropped=dropped)


def _session_mean(
    pairings: Sequence[Pairing], values: Sequence[float], metric: Metric, confidence: float
) -> SessionInterval:
    """One value per session, the mean over all cells, where all cells have the same sessions; else
    the mean of the cells' changes, without an interval."""
    arms = [
        [pairing.sessions[arm] for pairing in pairings if pairing.sessions is not None]
        for arm in (0, 1)
    ]
    if len(arms[0]) < len(pairings) or any(
        cell.keys() != arm[0].keys() for arm in arms for cell in arm
    ):
        scaled = values if metric.change == "difference" else np.log1p(values)
        return SessionInterval(
            float(np.mean(scaled)), None, None, None, None, (1, 1), None, None, is_within=True
        )
    means = [
        [[float(np.mean([np.mean(cell[name]) for cell in arm]))] for name in arm[0]] for arm in arms
    ]
    return session_interval(means[0], means[1], confidence=confidence)


def _worst(changes: Mapping[Key, Change], metric: Metric) -> Key:
    """The row that changed most for the worse, or most at all where there is no worse."""
    if metric.better is None:
        return max(changes, key=lambda row: abs(changes[row].value))
    sign = -1 if metric.better == "lower" else 1
    return min(changes, key=lambda row: sign * changes[row].value)


CONFIDENCE = 0.95
ALPHA = 0.05


def compare(
    runs: Sequence[Run],
    metric_name: str,
    *,
    baseline: str | None = None,
    layout: Layout | None = None,
    where: Where | None = None,
    shown_unit: str | None = None,
    confidence: float = CONFIDENCE,
    notes: Sequence[Warning] = (),
) -> Comparison:
    """Compare every variant with the baseline.

    Args:
        runs: of one results directory, INVALID ones included: they are left out here, and counted.
        baseline: an arm's name; default the first in order of appearance.
        layout: the factors of each axis, where they are not inferred.
        where: conditions on factors, variants or hosts.
        shown_unit: unit to write values in; default the published one, where all runs are published
        in the same. notes: further notes on the numbers (see `remarks.study_notes`).

    Per cell and block the logarithms of both arms are subtracted (plain values for metrics compared
    by difference); the t interval of their mean pools its variance over the sweep where
    homogeneous; q is Benjamini-Hochberg's over every cell of the sweep. Metrics with unknown
    distribution are decided by the exact test. Arms that did not take turns are
    compared by their session means; with a single session of an arm there is no test
    (`CONFOUNDED`), nor where all sessions of one arm were before those of the other
    (`NOT_ALTERNATING`), nor of metrics with unknown distribution where the arms have unequal numbers of sessions
    (`UNBALANCED`). Percentiles with too few I/Os beyond them, minima and maxima are shown and not
    tested (`TAIL`).

    Raises UsageError for a metric, factor, level or baseline that isn't there.
    """
    selected = with_achieved(select(runs, where or {}))
    if not selected:
        raise UsageError("no run meets the conditions", where="--where")
    # a run without a readable run.json has no factors and no host: notes name it
    selected = [run for run in selected if run.plan.variant != "?"] or selected
    metric = metric_of(metric_name, selected)
    if any(warning.code == SYNCS_DIFFER for warning in syncs_warning(selected, metric)):
        metric = dataclasses.replace(metric, better=None)
    variants = [name for name in dict.fromkeys(run.variant for run in selected) if name != "?"]
    base = baseline_of(baseline, variants, runs)
    has_several = len({run.results for run in selected}) > 1
    differences = differences_of(selected) if has_several else ()
    unmatched = unmatched_of(selected) if has_several else ()
    axes = choose(selected, layout or Layout())
    selected, without_metric = with_metric(selected, metric, axes)
    arms = collect(selected, metric, axes)
    variants_to_compare = [variant for variant in variants if variant != base]
    grid = Grid(
        levels(selected, axes.tables), levels(selected, axes.rows), levels(selected, axes.cols)
    )
    places = [(table, row, col) for table in grid.tables for row in grid.rows for col in grid.cols]
    pairings = {
        (place, variant): pair(arms.get((*place, base)), arms.get((*place, variant)), metric)
        for place in places
        for variant in variants_to_compare
        if (*place, base) in arms or (*place, variant) in arms
    }
    changes, planned = _changes(pairings, metric, confidence, ALPHA)
    changes |= {
        key: zero_change_of(pairing, metric)
        for key, pairing in pairings.items()
        if pairing.zero and pairing.zero_change is not None
    }
    cells, footnotes = [], dict[str, str]()
    for place in places:
        for variant in (base, *variants_to_compare):
            arm = arms.get((*place, variant))
            if arm is None:
                continue
            codes = footnotes_of(arm, pairings.get((place, variant)), metric, footnotes)
            cells.append(
                Cell(
                    *place,
                    variant,
                    estimate(arm, metric, confidence),
                    changes.get((place, variant)),
                    codes,
                    arm.is_saturated,
                )
            )
    repeated_changes = [
        change.value for (_, variant), change in changes.items() if variant == base + AGAIN
    ]
    return Comparison(
        metric=metric,
        baseline=base,
        variants=(base, *variants_to_compare),
        rows=axes.rows,
        cols=axes.cols,
        tables=axes.tables,
        row_levels=grid.rows,
        col_levels=grid.cols,
        table_levels=grid.tables,
        cells=tuple(cells),
        summaries=summaries(pairings, variants_to_compare, axes, grid, metric, changes, confidence),
        fixed=axes.fixed,
        warnings=(
            *warnings_of(
                selected, metric, axes, base, variants_to_compare, pairings, changes, differences
            ),
            *without_metric,
            *notes,
        ),
        footnotes=footnotes,
        noise_floor=(min(repeated_changes), max(repeated_changes)) if repeated_changes else None,
        confidence=confidence,
        alpha=ALPHA,
        detectable=_detectable(
            planned,
            metric,
            ALPHA / _tests(changes, all(_is_again(variant) for variant in variants_to_compare)),
        ),
        shown_unit=_shown_unit(shown_unit, metric, selected),
        differences=differences,
        unmatched=unmatched,
        arms=arm_runs(selected, (base, *variants_to_compare)),
    )


def _shown_unit(asked: str | None, metric: Metric, runs: Sequence[Run]) -> str | None:
    if asked is not None:
        unit_of_user = unit(asked)
        if BASE[unit_of_user.dimension] != metric.unit:
            raise UsageError(
                f"{metric.name} can't be written in {asked}",
                where="--unit",
                hint=f"it is stored in {metric.unit or 'numbers'}",
            )
        return _symbol_of(unit_of_user.symbol)
    published = {
        run.observations[metric.name].source_unit for run in runs if metric.name in run.observations
    }
    judged = any(run.plan.status != "published" for run in runs)
    return None if judged or len(published) != 1 else _symbol_of(published.pop())


def _symbol_of(symbol: str) -> str:
    """A unit as texts and charts write it: a microsecond with its Greek letter."""
    return "µs" if symbol == "us" else symbol


def metric_of(name: str, runs: Sequence[Run]) -> Metric:
    """The metric of that name, as the runs have it; UsageError where none has it."""
    measured = next(
        (run.observations[name] for run in reversed(runs) if name in run.observations), None
    )
    if measured is None:
        have = {metric for run in runs for metric in run.observations}
        suggested_metrics = [
            metric for metric in sorted(have, key=sort_key) if of(metric).headline
        ] or sorted(have, key=sort_key)[:8]
        near = difflib.get_close_matches(name, sorted(have), n=1)
        guess = f"did you mean '{near[0]}'? " if near else ""
        remedy = (
            f"there are {', '.join(suggested_metrics)}"
            if suggested_metrics
            else "no run has any valid evidence"
        )
        raise UsageError(f"no run has the metric '{name}'", hint=f"{guess}{remedy}")
    return of(name, measured.unit)


def baseline_of(asked: str | None, variants: Sequence[str], runs: Sequence[Run]) -> str:
    """The requested baseline, else the first variant; UsageError for an unknown one."""
    if asked is None:
        return variants[0]
    if asked not in variants:
        everywhere = list(dict.fromkeys(run.variant for run in runs))
        raise UsageError(
            f"there is no variant '{asked}' to be the baseline",
            hint=f"variants are {', '.join(everywhere)}",
        )
    return asked


def _changes(
    pairings: dict[tuple[Place, str], Pairing], metric: Metric, confidence: float, alpha: float
) -> tuple[dict[tuple[Place, str], Change], list[planning.Basis]]:
    """The change of every pairing that has one, and the basis that decided each. The A/A arm is a
    family of its own: it tests the test."""
    changes: dict[tuple[Place, str], Change] = {}
    bases: dict[tuple[Place, str], planning.Basis] = {}
    by_variant: dict[str, list[tuple[Place, str]]] = {}
    for key, pairing in pairings.items():
        if pairing.has_change:
            by_variant.setdefault(key[1], []).append(key)
    for of_variant in by_variant.values():
        keys = [key for key in of_variant if pairings[key].sessions is None]
        intervals = t_intervals(
            [pairings[key].differences for key in keys],
            confidence=confidence,
            blocks=[pairings[key].blocks for key in keys],
        )
        for key, interval in zip(keys, intervals, strict=True):
            pairing = pairings[key]
            exact = sign_flip_p(pairing.differences)
            changes[key] = _add_exact_test(
                change_of(interval, metric, dropped=pairing.dropped, without=pairing.without),
                exact,
                metric,
            )
            bases[key] = planning.Basis(
                interval, pairing.differences, exact=metric.assumption != "normal"
            )
        for key in of_variant:
            pairing = pairings[key]
            if pairing.sessions is not None:
                first, second = (list(arm.values()) for arm in pairing.sessions)
                sessions = session_interval(first, second, confidence=confidence)
                change = change_of(
                    sessions,
                    metric,
                    dropped=pairing.dropped,
                    without=pairing.without,
                    is_alternating=pairing.is_alternating,
                )
                if (
                    change.reason is None
                    and sessions.p_exact is None
                    and metric.assumption != "normal"
                ):
                    change = dataclasses.replace(change, p=None, reason=UNBALANCED)
                changes[key] = change
                if change.reason is None:
                    changes[key] = _add_exact_test(change, sessions.p_exact, metric)
                    basis = planning.basis_of_sessions(sessions)
                    if basis is not None and metric.assumption == "normal":
                        bases[key] = basis
    for key, change in changes.items():
        if pairings[key].is_tail:
            changes[key] = without_test(change)
            bases.pop(key, None)
    for of_baseline_copy in (False, True):
        family = [key for key in changes if _is_again(key[1]) is of_baseline_copy]
        tests = _tests(changes, of_baseline_copy)
        q_values = benjamini_hochberg([changes[key].p for key in family])
        # the level that one more change must pass in addition to the decided ones
        level = alpha * min(tests, 1 + sum(q is not None and q <= alpha for q in q_values)) / tests
        for key, q in zip(family, q_values, strict=True):
            decided = q is not None and q <= alpha
            changes[key] = dataclasses.replace(
                changes[key],
                q=q,
                decided=decided,
                blocks_needed=None
                if decided or key not in bases
                else planning.blocks_needed(bases[key], level),
            )
    return changes, list(bases.values())


def without_test(change: Change) -> Change:
    """A change of the tail of a sample: its estimate, without interval and test."""
    return dataclasses.replace(
        change,
        low=None,
        high=None,
        df=None,
        pooled=False,
        p=None,
        p_exact=None,
        excluded=None,
        reason=change.reason or TAIL,
    )


def _add_exact_test(change: Change, exact: float | None, metric: Metric) -> Change:
    """With p of the exact test, which decides where no distribution is assumed."""
    p = change.p if metric.assumption == "normal" else exact
    return dataclasses.replace(change, p=p, p_exact=exact)


def _is_again(variant: str) -> bool:
    return variant.endswith(AGAIN)


def _tests(changes: dict[tuple[Place, str], Change], again: bool) -> int:
    """How many tests q is taken over: of all variants together, or of the A/A arm alone. At
    least 1."""
    return max(
        1,
        sum(
            change.p is not None
            for (_, variant), change in changes.items()
            if _is_again(variant) is again
        ),
    )


def _detectable(bases: Sequence[planning.Basis], metric: Metric, level: float) -> float | None:
    effect = planning.detectable(bases, level)
    return None if effect is None else scale_of(metric)(effect)
