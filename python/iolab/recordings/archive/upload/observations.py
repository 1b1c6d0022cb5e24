# SPDX-License-Identifier: Apache-2.0
"""Observations of studies in an archive: a row for each metric of each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import tables
from ..store import Archive, expressions


@dataclass(frozen=True)
class PushedObservations:
    """What a push of results did: their key in the archive, rows now, and rows that were replaced."""

    results: str
    rows: int
    replaced: int


def push_observations(
    archive: Archive, key: str, rows: Sequence[Mapping[str, Any]]
) -> PushedObservations:
    """Replace the observations of some results in one commit; nothing is written where they are the
    same. `rows`: of the columns of `tables.OBSERVATIONS`, without `results`. ResultsError where the
    archive can't be read or written."""
    import pyarrow as pa

    new = pa.Table.from_pylist(
        [{**row, "results": key} for row in rows], schema=tables.OBSERVATIONS.columns
    )
    of_these = expressions().EqualTo("results", key)
    return PushedObservations(
        key, new.num_rows, archive.replace(tables.OBSERVATIONS, of_these, new)
    )
