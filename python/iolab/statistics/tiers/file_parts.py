# SPDX-License-Identifier: Apache-2.0
"""Parquet files as a part of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import FormatError
from ...files import map_regular
from ..engine.snapshot import Span
from ..plan import Part


def files_part(name: str, paths: Sequence[Path], times: Sequence[Span]) -> Part:
    """A part of some files, each with its time. FormatError if one can't be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = sum(pq.read_metadata(pa.BufferReader(map_regular(path))).num_rows for path in paths)
        size = sum(path.stat().st_size for path in paths)
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"can't be read: {error}", where=paths[0].parent) from None
    first_ns, until_ns = min(first for first, _ in times), max(until for _, until in times)
    return Part(name, first_ns, until_ns, len(paths), rows, size)
