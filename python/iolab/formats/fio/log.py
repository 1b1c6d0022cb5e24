# SPDX-License-Identifier: Apache-2.0
"""fio's logs over time: `write_bw_log`, `write_iops_log`, `write_lat_log` (fio(1), "Log File
Formats").

Columns, by version: time in milliseconds, value, operation, block size; then the offset with
`log_offset` (2.2), the command's priority (3.19; hexadecimal with `log_prio`, 3.29), the issue time
with `log_issue_time` (3.38). With `log_window_value=both` (3.37) the window's maximum follows
its mean.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iolab.base.errors import FormatError

from ..core.tables import FioLogTable
from ..core.text import decode, looks_binary

_ROW = re.compile(r"\s*-?\d+\s*(?:,\s*-?(?:0x[0-9a-fA-F]+|\d+)\s*){3,7}", re.ASCII)
_BINARY_ROWS = re.compile(
    rb"(?:[ \t]*\d+(?:[ \t]*,[ \t]*-?(?:0x[0-9a-fA-F]+|\d+)){3,7}[ \t]*\r?\n)+"
)
_PLAIN = re.compile(r"[-0-9, \t\r\n]*")
_NAME = re.compile(r"_(?:bw|iops|lat|clat|slat)(?:\.\d+)?\.log$")
_OPERATIONS = 7
"""fio's directions: read, write, trim, sync, datasync, sync_file_range, wait."""

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class _Layout:
    """Where the columns are; None for a column that the file lacks."""

    operation: int
    block_size: int
    offset: int | None
    width: int
    has_priority: bool


class FioLog:
    """One log of one job, or of all jobs with `per_job_logs=0`. A damaged line costs itself and is
    listed."""

    name = "fio-log"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Rows of whole numbers could be anyone's: None, so that the name decides; no where a line
        is something else."""
        if not head.strip():
            return None
        complete_lines = head[: head.rfind(b"\n") + 1]
        if looks_binary(head) or not _BINARY_ROWS.match(complete_lines):
            return False
        return True if _NAME.search(file_name) else None

    def read(self, data: bytes, where: str) -> FioLogTable:
        """The rows of a log, in the file's order.

        Raises FormatError for a file that is empty or has no row at all.
        """
        text = decode(
            data,
            where,
            when_empty="the job logged nothing, or fio was killed before it wrote its logs",
        )
        rows, layout, damaged = _fast(text) or _careful(text, where)
        block_size = rows[:, layout.block_size]
        return FioLogTable(
            time=rows[:, 0] / 1000,
            value=rows[:, 1].astype(np.float64),
            operation=rows[:, layout.operation].astype(np.int8),
            block_size_bytes=np.ascontiguousarray(block_size),
            offset_bytes=None
            if layout.offset is None
            else np.ascontiguousarray(rows[:, layout.offset]),
            averaged=_is_averaged(block_size),
            has_priority=layout.has_priority,
            damaged=damaged,
        )


def _is_averaged(block_size: Rows) -> bool | None:
    """A window's row has block size 0, a single I/O's its own; fio(1) says so of log_avg_msec."""
    if not block_size.any():
        return True
    return False if block_size.all() else None


def _fast(text: str) -> tuple[Rows, _Layout, tuple[tuple[int, str], ...]] | None:
    """All rows at once where every line is as it should be, else None."""
    if not text.endswith("\n") or not _PLAIN.fullmatch(text):
        return None
    width = text[: text.index("\n")].count(",") + 1
    # an odd line must not be made good by another one
    if not 4 <= width <= 8 or text.count(",") != (width - 1) * text.count("\n"):
        return None
    try:
        rows = np.loadtxt(io.StringIO(text), delimiter=",", dtype=np.int64, ndmin=2, comments=None)
    except (ValueError, OverflowError):
        return None
    if rows.shape != (text.count("\n"), width):
        return None
    layout = _layout(rows)
    return (rows, layout, ()) if layout is not None and _sensible(rows, layout).all() else None


def _careful(text: str, where: str) -> tuple[Rows, _Layout, tuple[tuple[int, str], ...]]:
    lines = text.split("\n")
    damaged: list[tuple[int, str]] = []
    if lines[-1].strip():
        damaged.append((len(lines), "cut off: no line end"))
    rows_by_line: list[tuple[int, list[int]]] = []
    for number, line in enumerate(lines[:-1], 1):
        if _ROW.fullmatch(line):
            values = [
                int(field, 0) if "x" in field else int(field)
                for field in line.split(",")
                if len(field) < 30
            ]
            if (
                all(-(2**63) <= value < 2**63 for value in values)
                and len(values) == line.count(",") + 1
            ):
                rows_by_line.append((number, values))
                continue
        if line.strip():
            damaged.append((number, "not a row of numbers"))
    if not rows_by_line:
        raise FormatError(
            "no row of a fio log in the file",
            where=where,
            hint="rows are 'time, value, operation, ...'",
        )
    widths = [len(values) for _, values in rows_by_line]
    width = max(set(widths), key=widths.count)
    damaged += [
        (number, f"{len(values)} columns instead of {width}")
        for number, values in rows_by_line
        if len(values) != width
    ]
    rows_by_line = [(number, values) for number, values in rows_by_line if len(values) == width]
    rows = np.array([values for _, values in rows_by_line], dtype=np.int64)
    hexadecimal = any("0x" in lines[number - 1] for number, _ in rows_by_line)
    layout = _layout(rows, hexadecimal=hexadecimal)
    if layout is None:
        raise FormatError("no fio log: its third column is not an operation", where=where)
    good = _sensible(rows, layout)
    damaged += [
        (number, "operation or time out of range")
        for (number, _), fine in zip(rows_by_line, good, strict=True)
        if not fine
    ]
    if not good.any():
        raise FormatError("no row of a fio log in the file", where=where)
    return rows[good], layout, tuple(sorted(damaged))


def _sensible(rows: Rows, layout: _Layout) -> NDArray[np.bool_]:
    operation = rows[:, layout.operation]
    return (
        (operation >= 0)
        & (operation < _OPERATIONS)
        & (rows[:, 0] >= 0)
        & (rows[:, layout.block_size] >= 0)
    )


def _layout(rows: Rows, *, hexadecimal: bool = False) -> _Layout | None:
    """Which columns a file has, from their number and their values."""
    width = rows.shape[1]
    third, fourth = (_share_of_operations(rows[:, place]) for place in (2, 3))
    # with log_window_value=both the maximum is third; a block size is never an operation but for
    # averages, which are 0
    both = width >= 5 and third < 0.9 <= fourth
    operation = 3 if both else 2
    if not both and third < 0.5:
        return None
    rest = width - operation - 2
    offset = None
    if rest >= 2:
        offset = operation + 2
    elif rest == 1 and not hexadecimal and (rows[:, operation + 2] > 1).any():
        offset = (
            operation + 2
        )  # before 3.19 there was no priority, which is 0 or 1 unless hexadecimal
    # a lone column of zeros may be either
    return _Layout(operation, operation + 1, offset, width, rest >= 2 or hexadecimal)


def _share_of_operations(column: Rows) -> float:
    return float(np.mean((column >= 0) & (column < _OPERATIONS)))
