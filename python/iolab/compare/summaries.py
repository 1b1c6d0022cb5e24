# SPDX-License-Identifier: Apache-2.0
"""One change for a whole column: the geometric mean over the cells that are valid on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..metrics import Metric
from ..stats.blocks import t_intervals
from ..stats.sessions import SessionInterval, session_interval
from .axes import BLOCK_SIZES, Axes, Grid
from .cells import BlockKey, Pairing
from .changes import change_of
from .model import Change, Key, Summary

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
    dropped = sum(pairing.dropped for pairing in pairings)
    if any(pairing.sessions is not None for pairing in pairings):
        return change_of(
            _session_mean(pairings, values, metric, confidence),
            metric,
            is_alternating=all(pairing.is_alternating for pairing in pairings),
            dropped=dropped,
        )
    common = [
        block
        for block in pairings[0].blocks
        if all(block in pairing.blocks for pairing in pairings)
    ]
    if common:
        per_block = np.array(
            [np.mean([_at(pairing, block) for pairing in pairings]) for block in common]
        )
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


def _at(pairing: Pairing, block: BlockKey) -> float:
    return float(pairing.differences[pairing.blocks.index(block)])


def _worst(changes: Mapping[Key, Change], metric: Metric) -> Key:
    """The row that changed most for the worse, or most at all where there is no worse."""
    if metric.better is None:
        return max(changes, key=lambda row: abs(changes[row].value))
    sign = -1 if metric.better == "lower" else 1
    return min(changes, key=lambda row: sign * changes[row].value)
