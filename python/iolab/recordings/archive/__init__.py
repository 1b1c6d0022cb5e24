# SPDX-License-Identifier: Apache-2.0
"""Archives: sealed segments of many recordings as Apache Iceberg tables, in a directory or an object
store, readable by every engine that reads Iceberg."""

from __future__ import annotations

from .fetch import Fetched, choose, fetch
from .maintenance import compact, expire
from .retention import delete_by_age, delete_replaced
from .store import Archive, ArchivedRecording
from .upload.push import Pushed, push

__all__ = [
    "Archive",
    "ArchivedRecording",
    "Fetched",
    "Pushed",
    "choose",
    "compact",
    "delete_by_age",
    "delete_replaced",
    "expire",
    "fetch",
    "push",
]
