# SPDX-License-Identifier: Apache-2.0
"""Native core; built from crates/iolab-py."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

def version() -> str: ...
def fio_bits() -> int: ...
def crc32(data: bytes, value: int = 0) -> int:
    """CRC-32 (that of zlib) of bytes; `value`: that of the bytes before them."""

def crc32_of_file(path: Path) -> tuple[int, int]:
    """CRC-32 (that of zlib) of a file's content, and its bytes. OSError where it can't be read."""

def sealed_statuses(folder: Path, after: int) -> tuple[dict[int, tuple[int, int, int]], bool]:
    """Statuses of the sealed files of a folder with numbers beyond `after`, by number (inode, size,
    ns of the last change), and whether one vanished meanwhile. OSError where it can't be read."""

def sum_maps(
    maps: list[tuple[Path | bytes, int]],
    source: str,
    interval_ns: int,
    span: tuple[int, int],
    *,
    by: list[str],
    is_timed: bool,
    threads: int,
) -> tuple[list[bytes], list[tuple[str | None, str | None]]]:
    """Sums of default maps, each a file or its content, with the number of its group.

    Args:
        source: of the I/Os. interval_ns: of columns of time. span: of the starts of seconds.
        by: what is distinguished of `index`, `op`, `device`. is_timed: whether time is summed.
    Returns:
        Columns (little-endian) of rows that add up: group (uint32), column (int64, a multiple of
        the interval), bucket (uint32), key (uint32), I/Os, ns spent in them (int64); and the keys
        (operation, device).
    Raises:
        OSError: a file can't be opened. ValueError(place, reason): a map can't be read here.
    """

def grid_index(value: int, bits: int) -> int: ...
def grid_bounds(index: int, bits: int) -> tuple[int, int]: ...
def take_over_fio_bins(bins: list[tuple[int, int]]) -> tuple[list[int], list[int]]: ...
def quantiles(
    indices: list[int], counts: list[int], quantiles: list[float], bits: int
) -> list[int | None]: ...
def coarsen(
    indices: list[int], counts: list[int], bits: int, fewer_bits: int
) -> tuple[list[int], list[int]]:
    """A histogram on the grid of `bits`, exactly as if it had been counted on the grid of
    `fewer_bits`."""

def take_over_log2(counts: list[int]) -> tuple[list[int], list[int]]:
    """Power-of-two counts (`zpool iostat -w`: entry n counts values in [2^n, 2^(n+1))) on the grid
    of 0 bits; 64 entries at most."""

# Traces
#
# `path` is a file, or "-" for standard input; gzip, xz and zstd are undone on the way, found by
# content. One file `x.blktrace.N` stands for all files `x.blktrace.*` beside it. Memory stays flat
# whatever the size. The interpreter's lock is released meanwhile, and Ctrl-C is obeyed.
#
# `format` is one of `trace_formats()`; None finds it by content (and by name, where fio's logs say
# what they hold in their name alone). `columns` describes CSV or TSV lines
# ("time:us,latency:ns,offset:bytes,-,op"; "-" skips one) and implies the format csv. Fields: time
# latency (s ms us ns), offset size (bytes KiB MiB GiB TiB sectors), op device process file job (no
# unit). Without it the header must say so, as in `time_us`, `latency:ns` or `size (bytes)`.
#
# `where` keeps the events for which every key matches one of its words. op, device, process, file,
# job: equal to the word (op: read write trim flush sync other). latency, time (ns), offset, size
# (bytes): "LOW..HIGH" with LOW <= value < HIGH in plain integers, either end may be left out. An
# event that has no such value does not match.
#
# Errors: ValueError with one line (no such file, empty file, no format known, unknown key or
# unit...). A damaged line costs that line and is counted. Nothing left after `where` is not an
# error.

def trace_formats() -> list[str]:
    """Names of the formats that can be read: fio-lat fio-lat-us fio-bw fio-iops fio-hist blktrace
    blkparse biosnoop biosnoop-bt iosnoop csv."""

def trace_detect(path: str) -> str | None:
    """Format of the trace at `path`, None where none is recognised. Not for "-": what is read of a
    pipe is gone."""

def trace_summary(
    path: str,
    format: str | None = None,
    columns: str | None = None,
    where: dict[str, list[str]] | None = None,
) -> dict[str, Any]:
    """What a trace holds, counted in one pass.

    format: str; events: int (I/Os; a line of a histogram log stands for many), skipped_by_filter:
    int; first_ns, last_ns: int | None (time of completion, as the trace counts it); backwards: int
    (events earlier than the one before); damaged: int; damaged_examples: list[(line, reason)], at
    most 5 (blktrace: byte offset for line); losses: int (records the tracer says or shows it lost),
    unpaired: int (completions without a start, starts without a completion); averaged: bool (each
    line is the mean of a window, not one I/O); assumptions: list[str] (what the file does not say
    and was assumed); ops: {op: events}; keys: {device | process | file | job: list[(name, events)],
    the 20 largest}; distinct: {the same: number of different names}; other: {the same: events
    beyond the limit of 100 000 names}; has: list of the fields present in some event, of time
    latency offset size op device process file job; bits: int (grid of the percentiles);
    percentiles: {latency | size: {"50" | "90" | "99" | "99.9" | "99.99" | "max": int}} in ns and
    bytes, upper bound of the grid's bucket; mean: {latency | size: float} (exact, of the values,
    not of the buckets);
    latency_by: {op | device | process: {name: {"count": int, "50": int, ...}}}, the 20 largest,
    where there are latencies.
    """

def trace_heatmap(
    path: str,
    y: str,
    *,
    format: str | None = None,
    columns: str | None = None,
    where: dict[str, list[str]] | None = None,
    bits: int = 3,
    interval_ns: int | None = None,
    columns_wanted: int = 400,
    y_low: int | None = None,
    y_high: int | None = None,
    linear_buckets: int | None = None,
    weight: str = "count",
) -> dict[str, Any]:
    """Histograms of `y` (latency, size: on the grid of `bits`; offset: linear) per interval of
    time, straight from the trace.

    `interval_ns` None: 1, 2 or 5 times a power of ten, so that at most `columns_wanted` columns,
    and about that many, come out; never finer than the trace's own clock. `linear_buckets` asks for
    equal buckets, at most so many (default 512 for offset; given for latency or size it replaces
    the grid). `y_low` <= value < `y_high` (ns, bytes) cuts; what is cut is counted in `outside`.
    weight "count" counts I/Os; "time" adds their latency in ns (events without latency then count
    as `without_y`).

    Returns t0_ns: int (start of column 0, a multiple of interval_ns; 0 when nothing is left),
    interval_ns: int, column_count: int; grid: "log" with bits: int, or "linear" with low: int,
    width: int, buckets: int (bucket i holds
            low + i width <= value < low + (i+1) width);
    column: bytes (u32), index: bytes (u32), count: bytes (u64), three parallel little-endian
    arrays, sorted by column, then index; events: int (in the map), outside: int, without_y: int (no
    such value), skipped_by_filter: int, damaged: int, damaged_examples, losses, unpaired, format,
    averaged, assumptions: as in `trace_summary`.
    """

def trace_events(
    path: str,
    format: str | None = None,
    columns: str | None = None,
    where: dict[str, list[str]] | None = None,
    batch: int = 65536,
) -> Iterator[dict[str, Any]]:
    """The events themselves, in batches of at most about `batch`, in the order of the trace.

    Each batch: rows: int; little-endian columns as bytes: time_ns (i64), latency_ns, offset_bytes,
    size_bytes (u64), op (u8, an index into `trace_ops()`), device, process, file, job (u32), count
    (u64: I/Os that the row stands for, 1 except in histogram logs), latency_bucket (u16: index of
    latency_ns on the grid of 6 bits, valid where latency_ns is); latency_ns_valid,
    offset_bytes_valid, size_bytes_valid, device_valid, process_valid, file_valid, job_valid (u8, 1
    or 0); device_names, process_names, file_names, job_names: list[str], the names new in this
    batch (ids continue from the batches before); damaged, losses, unpaired, skipped_by_filter: int,
    so far; format, averaged, assumptions as in `trace_summary`.
    """

def trace_ops() -> list[str]:
    """Names of the operations by their code: read write trim flush sync other."""

# Frames
#
# What `iolab-probe` writes, read back. A frame: b"ioLb", version u8 = 1, kind u8, reserved u16 = 0,
# length of the payload u32 (at most 64 MiB), CRC-32 of the payload u32, payload; all little-endian.

class FrameReader:
    """Frames out of a stream of bytes, however it is cut."""

    def __init__(self) -> None: ...
    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Take bytes; the frames that are whole with them, in order. Each has "kind": hello events
        samples loss tick process note end.

        events: source: str; rows: int; little-endian columns as bytes: time_ns (i64, since the Unix
        epoch), op (u8, an index into `trace_ops()`), count (u64), latency_ns, queue_ns,
        offset_bytes, size_bytes (u64), latency_bucket (u16, index of the latency on the grid of 6
        bits), pid, thread (u32), device, process, file, mount, client, job, error, flags (u32,
        numbers of names); `<column>_valid` (u8, 1 or 0) for all but time_ns, op, count and
        latency_bucket (valid where latency_ns is), 0 standing where there is no value;
        `<column>_names`: list[str] for columns of names: those new in this frame. Numbers run on
        per source and column, from 0, over all frames of this reader.
        samples: source, rows, time_ns (i64), object, field (u32), value (i64), object_names,
        field_names: as above. All other kinds: the JSON object that the probe wrote, with "kind"
        set. A loss's own kind ("overrun"...) is in "loss_kind".

        ValueError with one line where something does not fit (magic, version, kind, length, CRC,
        JSON, a number without a name); the reader refuses everything after that.
        """

    def unfinished(self) -> int:
        """Bytes of a frame that has begun and not ended: at the end of the stream, 0 or a torn
        frame."""
