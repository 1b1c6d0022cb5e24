# SPDX-License-Identifier: Apache-2.0
"""A transaction of PyIceberg that leaves the retry to its caller."""

from __future__ import annotations

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Transaction


class CheckedTransaction(Transaction):
    """A transaction that fails where another writer committed first.

    PyIceberg puts the same snapshot on top of the other one. It would add rows that the other writer
    added too. PyIceberg still checks first whether its own commit arrived with a lost answer.
    """

    def _rebuild_snapshot_updates(self) -> None:
        raise CommitFailedException("another writer committed first")
