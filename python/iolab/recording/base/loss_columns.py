# SPDX-License-Identifier: Apache-2.0
"""What was lost, by column of time and by kind: shown under the answers of statistics, in a strip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

LostKind: TypeAlias = Literal["lost", "damaged", "unpaired"]

LOST_KINDS: tuple[LostKind, ...] = ("lost", "damaged", "unpaired")
"""Records that the kernel or a buffer dropped, those that could not be read, and unmatched issue or
completion events."""

LostAt: TypeAlias = tuple[int, LostKind, int]
"""Column, kind, and how many; 0: nobody knows how many."""


def added(parts: Iterable[LostAt]) -> tuple[LostAt, ...]:
    """Ascending by column, then in the order of kinds; those of one column and kind added up."""
    found: dict[tuple[int, LostKind], int] = {}
    for column, kind, count in parts:
        found[column, kind] = found.get((column, kind), 0) + count
    return tuple(
        (column, kind, found[column, kind])
        for column, kind in sorted(found, key=lambda each: (each[0], LOST_KINDS.index(each[1])))
    )


def moved(parts: Iterable[LostAt], shift: int) -> tuple[LostAt, ...]:
    """The same in columns that lie `shift` further."""
    return tuple((column + shift, kind, count) for column, kind, count in parts)


def of_columns(parts: Iterable[LostAt]) -> tuple[tuple[int, int], ...]:
    """(column, how many of whatever kind), ascending."""
    found: dict[int, int] = {}
    for column, _, count in parts:
        found[column] = found.get(column, 0) + count
    return tuple(sorted(found.items()))


def of_kinds(
    parts: Iterable[LostAt], sums: Mapping[LostKind, int]
) -> list[tuple[LostKind, int, list[tuple[int, int]]]]:
    """(kind, how many there are, where: (column, how many)) of the kinds of which there are some;
    `sums` tells those without a time as well."""
    columns: dict[LostKind, list[tuple[int, int]]] = {}
    for column, kind, count in parts:
        columns.setdefault(kind, []).append((column, count))
    return [
        (kind, sums.get(kind, 0), columns.get(kind, []))
        for kind in LOST_KINDS
        if sums.get(kind) or kind in columns
    ]
