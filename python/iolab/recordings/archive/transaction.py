# SPDX-License-Identifier: Apache-2.0
"""A transaction of PyIceberg that leaves the retry to its caller, and costs the same in a table with a
long history."""

from __future__ import annotations

from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Transaction
from pyiceberg.table.update.snapshot import ExpireSnapshots

SNAPSHOTS = 100
"""Snapshots that a table names. Each commit reads and writes the list of them."""


class CheckedTransaction(Transaction):
    """A transaction that fails where another writer committed first.

    PyIceberg puts the same snapshot on top of the other one. It would add rows that the other writer
    added too. PyIceberg still checks first whether its own commit arrived with a lost answer.
    """

    _metadata: tuple[Any, Any, Any] | None = None

    @property
    def table_metadata(self) -> Any:
        """The metadata with the staged changes. PyIceberg copies all of it at each of about 15 uses in
        a commit; here it is copied once for each change."""
        base, updates = self._table.metadata, self._updates
        if (
            self._metadata is None
            or self._metadata[0] is not base
            or self._metadata[1] is not updates
        ):
            self._metadata = base, updates, super().table_metadata
        return self._metadata[2]

    def drop_old_snapshots(self) -> None:
        """Leave out the oldest snapshots of more than `SNAPSHOTS`, but for those that a branch or tag
        names. Their files stay: `maintenance.expire` finds and deletes them at their age."""
        if not self._updates:
            return
        metadata = self.table_metadata
        heads = {reference.snapshot_id for reference in metadata.refs.values()}
        ordered = sorted(metadata.snapshots, key=lambda item: item.sequence_number or 0)
        old = [
            snapshot.snapshot_id
            for snapshot in ordered[:-SNAPSHOTS]
            if snapshot.snapshot_id not in heads
        ]
        if old:
            ExpireSnapshots(self).by_ids(old).commit()

    def _rebuild_snapshot_updates(self) -> None:
        raise CommitFailedException("another writer committed first")
