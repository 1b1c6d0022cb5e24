# SPDX-License-Identifier: Apache-2.0
"""`series.parquet` and `histograms.parquet`: what runs show per second and in their tails, kept
next to the observations.

Caches like `observations.parquet`, under the same key; removing them loses nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..evidence.model import Derived, Histogram, Series
from .cache import cached_table

SERIES = "series.parquet"
HISTOGRAMS = "histograms.parquet"

Details = dict[str, tuple[tuple[Series, ...], tuple[Histogram, ...]]]
"""Run to its series and histograms."""


def detail_tables(derived: Mapping[str, Derived]) -> dict[str, Any]:
    """Both as `pyarrow.Table`, by file name."""
    import pyarrow as pa

    series = [(run, line) for run, details in derived.items() for line in details.series]
    histograms = [
        (run, histogram) for run, details in derived.items() for histogram in details.histograms
    ]
    return {
        SERIES: pa.table(
            {
                "run": pa.array([run for run, _ in series], pa.string()),
                "name": pa.array([line.name for _, line in series], pa.string()),
                "unit": pa.array([line.unit for _, line in series], pa.string()),
                "time": _lists([line.time for _, line in series], pa.float64()),
                "values": _lists([line.values for _, line in series], pa.float64()),
                "reading": pa.array([line.reading for _, line in series], pa.float64()),
            }
        ),
        HISTOGRAMS: pa.table(
            {
                "run": pa.array([run for run, _ in histograms], pa.string()),
                "name": pa.array([histogram.name for _, histogram in histograms], pa.string()),
                "bits": pa.array([histogram.bits for _, histogram in histograms], pa.int8()),
                "indices": _lists([histogram.indices for _, histogram in histograms], pa.uint32()),
                "counts": _lists([histogram.counts for _, histogram in histograms], pa.uint64()),
            }
        ),
    }


def _lists(arrays: list[Any], kind: Any) -> Any:
    import pyarrow as pa

    offsets = np.concatenate(([0], np.cumsum([len(array) for array in arrays]))).astype(np.int32)
    joined = np.concatenate(arrays) if arrays else np.empty(0)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(joined, kind))


def read_details(directory: Path, key: str) -> Details | None:
    """What was kept under that key, or None."""
    series, histograms = (cached_table(directory, name, key) for name in (SERIES, HISTOGRAMS))
    if series is None or histograms is None:
        return None
    lines: dict[str, list[Series]] = {}
    for run, name, unit, reading, time, values in _rows(
        series, ("run", "name", "unit", "reading"), ("time", "values")
    ):
        lines.setdefault(run, []).append(Series(name, unit, time, values, reading))
    counts: dict[str, list[Histogram]] = {}
    for run, name, bits, indices, numbers in _rows(
        histograms, ("run", "name", "bits"), ("indices", "counts")
    ):
        counts.setdefault(run, []).append(Histogram(name, bits, indices, numbers))
    return {
        run: (tuple(lines.get(run, ())), tuple(counts.get(run, ()))) for run in {*lines, *counts}
    }


def _rows(table: Any, plain: tuple[str, ...], lists: tuple[str, ...]) -> Any:
    """Rows of plain columns and of list columns as arrays, views into one buffer each."""
    table = table.combine_chunks()
    pieces = []
    for name in lists:
        column = table.column(name)
        if not len(column):
            return zip()
        chunk = column.chunk(0)
        offsets = chunk.offsets.to_numpy()
        flat = chunk.values.to_numpy()
        pieces.append([flat[start:end] for start, end in itertools.pairwise(offsets)])
    return zip(*(table.column(name).to_pylist() for name in plain), *pieces, strict=True)
