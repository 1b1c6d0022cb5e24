# SPDX-License-Identifier: Apache-2.0
"""Columns of bytes, as the native core yields them, to record batches of the one schema. Never
loops over events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iolab import _core
from iolab.base.errors import FormatError

from ..base.schema import EVENTS, NAMED, NUMBERS, SAMPLES

_OPS = _core.trace_ops()


class NameTables:
    """Names by their numbers, of one stream of batches: each batch has the names that are new.
    Numbers continue, unless the batch restarts them."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def learn(self, raw: Mapping[str, Any], column: str) -> list[str]:
        """All names of a column so far, those new in this batch included."""
        if raw.get(f"{column}_restarted"):
            self._names[column] = []
        names = self._names.setdefault(column, [])
        names.extend(raw.get(f"{column}_names", ()))
        return names


def events_of(raw: Mapping[str, Any], names: NameTables, source: str) -> pa.RecordBatch:
    """A batch of `_core.trace_events`, or a frame of events, with every column of `schema.EVENTS`;
    what it lacks is null.

    ValueError where columns differ in length, or a number has no name.
    """
    rows = int(raw["rows"])
    arrays: dict[str, pa.Array] = {
        "source": _constant(source, rows),
        "time_ns": _plain(raw["time_ns"], pa.int64(), rows),
        "latency_bucket": _optional(
            raw, "latency_bucket", pa.uint16(), rows, valid="latency_ns_valid"
        ),
        "op": pa.DictionaryArray.from_arrays(
            _numbers(raw["op"], "<u1", rows).astype(np.int32), _OPS
        ),
        "count": _plain(raw["count"], pa.uint64(), rows)
        if "count" in raw
        else pa.array(np.ones(rows, dtype=np.uint64)),
    }
    for name, kind in NUMBERS.items():
        arrays[name] = _optional(raw, name, kind, rows)
    for name in NAMED:
        arrays[name] = _name_column(raw, name, names, rows)
    return pa.RecordBatch.from_arrays([arrays[field.name] for field in EVENTS], schema=EVENTS)


def samples_of(raw: Mapping[str, Any], names: NameTables, source: str) -> pa.RecordBatch:
    """A frame of samples with the columns of `schema.SAMPLES`. ValueError as in `events_of`."""
    rows = int(raw["rows"])
    columns = [
        _constant(source, rows),
        _plain(raw["time_ns"], pa.int64(), rows),
        _name_column(raw, "object", names, rows),
        _name_column(raw, "field", names, rows),
        _plain(raw["value"], pa.int64(), rows),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SAMPLES)


def _constant(name: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), [name])


def _numbers(data: bytes, kind: str, rows: int) -> Any:
    values = np.frombuffer(data, dtype=kind)
    if len(values) != rows:
        raise ValueError(f"a column has {len(values)} values, not {rows}")
    return values


def _plain(
    data: bytes, kind: pa.DataType, rows: int, bitmap: pa.Buffer | None = None, nulls: int = 0
) -> pa.Array:
    """Values taken over without copying."""
    if len(data) * 8 != rows * kind.bit_width:
        raise ValueError(f"a column has {len(data)} bytes, not {rows * kind.bit_width // 8}")
    return pa.Array.from_buffers(kind, rows, [bitmap, pa.py_buffer(data)], nulls)


def _optional(
    raw: Mapping[str, Any], name: str, kind: pa.DataType, rows: int, valid: str | None = None
) -> pa.Array:
    if name not in raw:
        return pa.nulls(rows, kind)
    bitmap, nulls = _bitmap(raw.get(valid or f"{name}_valid"), rows)
    return _plain(raw[name], kind, rows, bitmap, nulls)


def _bitmap(valid: bytes | None, rows: int) -> tuple[pa.Buffer | None, int]:
    """(a bit for each row, rows without a value) of a byte for each row; (None, 0) where every row
    has one."""
    if valid is None:
        return None, 0
    is_valid = _numbers(valid, "<u1", rows)
    nulls = rows - int(np.count_nonzero(is_valid))
    return (
        (pa.py_buffer(np.packbits(is_valid != 0, bitorder="little").tobytes()), nulls)
        if nulls
        else (None, 0)
    )


def _name_column(raw: Mapping[str, Any], name: str, names: NameTables, rows: int) -> pa.Array:
    """Names by a dictionary of those alone that this batch uses: what was seen hours ago is not
    written with each batch."""
    all_names = names.learn(raw, name)
    if name not in raw:
        return _no_names(rows)
    ids = _numbers(raw[name], "<u4", rows)
    valid = raw.get(f"{name}_valid")
    is_valid = np.ones(rows, dtype=bool) if valid is None else _numbers(valid, "<u1", rows) != 0
    valid_ids = ids[is_valid]
    if not len(valid_ids):
        return _no_names(rows)
    if int(valid_ids.max()) >= len(all_names):
        raise ValueError(
            f"column {name}: number {int(valid_ids.max())} has no name, {len(all_names)} are known"
        )
    used = np.zeros(len(all_names), dtype=bool)
    used[valid_ids] = True
    places = np.cumsum(used, dtype=np.int32) - 1
    indices = np.where(is_valid, places[np.where(is_valid, ids, 0)], 0).astype(np.int32, copy=False)
    dictionary = pa.array([all_names[number] for number in np.flatnonzero(used)], pa.string())
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, mask=None if len(valid_ids) == rows else ~is_valid), dictionary
    )


def _no_names(rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.nulls(rows, pa.int32()), pa.array([], pa.string()))


def overridden(batch: pa.RecordBatch, job: str | None, shift_ns: int) -> pa.RecordBatch:
    """Events with `shift_ns` added to their times, and `job` as the job of those that have none.

    FormatError where a time leaves the range of 64 bits.
    """
    if shift_ns:
        times = batch.column("time_ns").to_numpy()
        if (
            len(times)
            and not -(2**63) <= int(times.min()) + shift_ns <= int(times.max()) + shift_ns < 2**63
        ):
            raise FormatError(
                "a time leaves the range of 64 bits",
                hint="the trace's times are not what they were taken for",
            )
        batch = batch.set_column(
            batch.schema.get_field_index("time_ns"),
            EVENTS.field("time_ns"),
            pa.array(times + shift_ns),
        )
    if job is not None:
        jobs = batch.column("job")
        if jobs.null_count == len(jobs):
            filled = _constant(job, len(jobs))
        else:
            filled = pc.fill_null(jobs.cast(pa.string()), job).dictionary_encode()
        batch = batch.set_column(batch.schema.get_field_index("job"), EVENTS.field("job"), filled)
    return batch
