# SPDX-License-Identifier: Apache-2.0
"""Segments of which a table has rows, for pushes: read once, then followed.

The first question about a table reads all metadata that can hold the recording. A later one reads
what was committed since: the manifests with a higher sequence number than that of the snapshot that
was read before (Iceberg's specification, "Sequence numbers"). Where nothing was committed, it reads
nothing. So the cost of a commit does not grow with the files of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..faults import explain_errors
from ..store import Archive, expressions
from ..tables import Table


@dataclass
class _State:
    """What is known of a recording in a table: its rows of segments from number `first` in a snapshot
    (None: the table had none)."""

    first: int
    snapshot: int | None
    sequence: int
    segments: set[tuple[str, int]]


class PresentSegments:
    """Segments of recordings of which tables of one archive have rows, as (kind, number). The kind is
    "" in tables that have no column of that name.

    Segments that were deleted meanwhile may remain in the answers.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._states: dict[tuple[str, str], _State] = {}

    def read(self, table: Table, host: str, key: str, first: int = 0) -> set[tuple[str, int]]:
        """Segments from number `first` of a recording of a host of which a table has rows now.
        ResultsError where it can't be read."""
        iceberg = self._archive.table(table)
        with explain_errors(self._archive.url, f"read table {table.name}"):
            snapshot = iceberg.current_snapshot()
            state = self._states.get((table.name, key))
            if state is not None and first < state.first:
                state = None
            if snapshot is None:
                state = _State(first, None, 0, set())
            elif state is None or not _follows(iceberg.metadata, snapshot, state):
                segments = _read(iceberg, table, snapshot, host, key, first, 0)
                state = _State(first, snapshot.snapshot_id, snapshot.sequence_number, segments)
            elif snapshot.snapshot_id != state.snapshot:
                new = _read(iceberg, table, snapshot, host, key, state.first, state.sequence)
                state = _State(
                    state.first,
                    snapshot.snapshot_id,
                    snapshot.sequence_number,
                    state.segments | new,
                )
        self._states[table.name, key] = state
        return {item for item in state.segments if item[1] >= first}

    def add(self, table: Table, key: str, segments: set[tuple[str, int]], snapshot: Any) -> None:
        """Rows of segments were added by a commit that made `snapshot`, the current one. Where others
        committed since the last `read`, it is left to the next one."""
        state = self._states.get((table.name, key))
        if (
            state is not None
            and snapshot is not None
            and snapshot.parent_snapshot_id == state.snapshot
        ):
            state.snapshot, state.sequence = snapshot.snapshot_id, snapshot.sequence_number
            state.segments |= segments


def _follows(metadata: Any, snapshot: Any, state: _State) -> bool:
    """Whether a snapshot came of the known one by commits of which the table has the list."""
    if state.snapshot is None:
        return True
    while snapshot is not None and snapshot.snapshot_id != state.snapshot:
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else metadata.snapshot_by_id(parent)
    return snapshot is not None


def _read(
    iceberg: Any, table: Table, snapshot: Any, host: str, key: str, first: int, after: int
) -> set[tuple[str, int]]:
    """Segments in files that were added after a sequence number."""
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.table import ManifestGroupPlanner

    of = expressions()
    where = of.And(
        # a partition: manifests of other hosts need not be read
        of.EqualTo("host", host),
        of.EqualTo("recording", key),
        of.GreaterThanOrEqual("segment", first),
    )
    columns = [name for name in ("kind", "segment") if name in table.columns.names]
    planner = ManifestGroupPlanner(iceberg.metadata, iceberg.io, where)
    manifests = [item for item in snapshot.manifests(iceberg.io) if item.sequence_number > after]
    files = planner.plan_files(manifests, lambda entry: (entry.sequence_number or 0) > after)
    schema = iceberg.schema().select(*columns)
    rows = ArrowScan(iceberg.metadata, iceberg.io, schema, where).to_table(files)
    distinct = rows.group_by(columns).aggregate([]).to_pylist()
    return {(row.get("kind", ""), row["segment"]) for row in distinct}
