# SPDX-License-Identifier: Apache-2.0
"""What was lost and where nothing was recorded, by column of a drawing: counted apart from the
I/Os, drawn under them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..store.base.counts import HeatCounts, LostKind, of_columns, of_kinds
from .words import lost, number

Span = tuple[float, float]


@dataclass(frozen=True)
class Lost:
    """Records lost, by column of the drawing.

    Attributes:
        columns: (column, records), ascending; 0 records for a loss of unknown
        size. kinds: (kind, records) of all of them together.
    """

    columns: tuple[tuple[int, int], ...] = ()
    kinds: tuple[tuple[LostKind, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.columns)

    def levels(self) -> dict[int, float]:
        """Column to its height in the strip, above 0 and up to 1: by the logarithm of the records,
        an unknown number lowest."""
        most = math.log2(1 + max((records for _, records in self.columns), default=0))
        return {
            column: 0.3 + 0.7 * (math.log2(1 + records) / most if most else 0.0)
            for column, records in self.columns
        }

    def words(self) -> str:
        """The strip's legend, empty without losses."""
        if not self.columns:
            return ""
        total, most = (
            sum(records for _, records in self.columns),
            max(records for _, records in self.columns),
        )
        count = len(self.columns)
        where = f"in {number(count)} column{'' if count == 1 else 's'}"
        if any(kind != "lost" for kind, _ in self.kinds):
            return f"{', '.join(lost(kind, records) for kind, records in self.kinds)}: {where}"
        unknown = sum(not records for _, records in self.columns)
        if unknown == count:
            return f"lost: an unknown number of records {where}"
        parts = [f"lost: {number(total)} record{'' if total == 1 else 's'} {where}"]
        if count > 1 and most < total:
            parts.append(f"at most {number(most)} in one")
        if unknown:
            parts.append(f"in {number(unknown)} the number is unknown")
        return ", ".join(parts)


NOTHING_LOST = Lost()


def lost_of(counts: HeatCounts, columns: int, factor: int = 1) -> Lost:
    """The losses of a map in a drawing of `columns` columns, each `factor` of the map's. Losses
    outside the drawing are left out."""
    inside = [
        (column // factor, kind, records)
        for column, kind, records in counts.lost_at
        if 0 <= column // factor < columns
    ]
    kinds = (
        (kind, sum(records for _, records in spans_of_kind))
        for kind, _, spans_of_kind in of_kinds(inside, {})
    )
    return Lost(of_columns(inside), tuple(kinds))


def unrecorded_spans(counts: HeatCounts, columns: int, factor: int = 1) -> tuple[Span, ...]:
    """Spans in which nothing was recorded, in columns of the drawing."""
    cut = (
        (max(0.0, first / factor), min(float(columns), past / factor))
        for first, past in counts.gaps
    )
    return tuple((first, past) for first, past in cut if first < past)


def without(spans: tuple[Span, ...], covers: tuple[Span, ...]) -> tuple[Span, ...]:
    """Spans without their parts in `covers`."""
    pieces = list(spans)
    for low, high in covers:
        pieces = [
            part
            for start, end in pieces
            for part in ((start, min(end, low)), (max(start, high), end))
            if part[0] < part[1]
        ]
    return tuple(pieces)
