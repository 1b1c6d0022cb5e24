# SPDX-License-Identifier: Apache-2.0
"""What readers yield: plain values in base units (seconds, bytes, per second, shares), each with
its original name.

Readers are pure: bytes in, these out. They know no run and no study, and judge nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Latency:
    """One of fio's latency objects.

    Attributes:
        source_field: fio's name, such as `lat_ns` or `clat` (before fio 2.99).
        source_scale: seconds per unit of the file (1e-9 or 1e-6).
        mean, minimum, maximum, stddev: seconds.
        count: I/Os in it where the file says (`N`, or the sum of the bins), else None.
        percentiles: per cent to seconds.
        bins: nanoseconds to count; keys as the file has them; empty unless json+.
    """

    source_field: str
    source_scale: float
    mean: float
    minimum: float
    maximum: float
    stddev: float
    count: int | None = None
    percentiles: Mapping[float, float] = field(default_factory=dict)
    bins: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FioDirection:
    """One operation (`read`, `write`, `trim`, `mixed`, `sync`) of one fio job or group.

    Attributes:
        ios: I/Os completed; size_bytes: bytes moved; runtime: seconds, of the longest job of a
        group. iops: 1/s; bw: B/s, from bytes and runtime where the file's own field is coarser.
        bw_field, bw_source, bw_unit: where `bw` came from: field, original value and its unit.
        latencies: `lat`, `clat`, `slat` where the file has them and they aren't all zero.
    """

    ios: int
    size_bytes: int
    runtime: float
    iops: float
    bw: float
    bw_field: str
    bw_source: float
    bw_unit: str
    short_ios: int = 0
    drop_ios: int = 0
    latencies: Mapping[str, Latency] = field(default_factory=dict)


@dataclass(frozen=True)
class FioJob:
    """One entry of fio's `jobs` (a group's sum under group_reporting).

    Attributes:
        error: first errno of the entry, 0 for none; total_errors: with continue_on_error, I/Os that
        failed. options: what fio echoed, global below job, as typed; may be empty, never relied on.
        user_cpu, system_cpu: share (0 to 1) per thread of the entry.
        elapsed: seconds with ramp; start_ns: realtime start where the file says (fio 3.36 and
        later). hostname: client mode's host, else None.
        directions: operations that did at least one I/O.
        job_runtime: seconds that its threads ran, summed over them; of normal output its jobs times
        their longest operation. None where the file doesn't say (fio before 3.8 or so).
        deepest: lowest depth of the deepest class of `iodepth_level` that was reached (1, 2, 4, ...
        64): no thread had twice as many I/Os in flight; 64 means this depth or more. None where
        absent.
        asked_depth: iodepth of a thread by `latency_depth`; None where absent, or where fio
        searched for a depth (latency_target).
        is_steady: whether the steady state that `steadystate` requests was reached, which ends the
        load. False where none was requested.
        process: which of several fio processes that ran at once; 0 for the results of one process.
        run: which of several fio runs, one after another, that a file has; 0 for a file of one.
    """

    name: str
    error: int
    options: Mapping[str, str]
    directions: Mapping[str, FioDirection]
    total_errors: int = 0
    user_cpu: float = 0.0
    system_cpu: float = 0.0
    elapsed: float | None = None
    start_ns: int | None = None
    hostname: str | None = None
    group: int | None = None
    job_runtime: float | None = None
    deepest: int | None = None
    asked_depth: int | None = None
    is_steady: bool = False
    process: int = 0
    run: int = 0

    @property
    def origin(self) -> tuple[str | None, int]:
        """Host and process of fio that ran the job."""
        return self.hostname, self.process


@dataclass(frozen=True)
class FioOutput:
    """One fio invocation.

    Attributes:
        version: as fio writes it, `fio-3.33`; None for terse output that lacks it.
        end_ns: realtime of the end (`timestamp_ms`), None where absent.
        jobs: entries without client mode's synthetic "All clients".
        all_clients: that synthetic entry, where client mode wrote one.
        leading_text: what stood before the JSON, stripped; a sign of trouble when not empty.
        documents: how many JSON documents the file held (more than one: --status-interval; the last
        counts). global_options: fio's echo of [global].
        disk_reads: read requests of all disks below the files during the whole invocation, by
        fio's own count (`disk_util`, from the kernel's); None where it gives none.
        assumptions: what the reader had to assume, in words.
        run_ends: of a file with several runs, `end_ns` of each (`FioJob.run`).
    """

    version: str | None
    end_ns: int | None
    jobs: tuple[FioJob, ...]
    all_clients: FioJob | None = None
    leading_text: str = ""
    documents: int = 1
    global_options: Mapping[str, str] = field(default_factory=dict)
    disk_reads: int | None = None
    assumptions: tuple[str, ...] = ()
    run_ends: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class DeviceSamples:
    """Readings of block devices, an interval each.

    Attributes:
        device: kernel or display name.
        interval: seconds between samples; 1 where the file doesn't say.
        has_interval: whether the file says it.
        time_ns: realtime at the end of each interval, or None where the file has no clock.
        columns: canonical name to one value per interval, shape (n,): `read.iops`, `write.iops`,
        `discard.iops`,
            `flush.iops` (1/s), `read.bw`, `write.bw`, `discard.bw` (B/s), `read.await`,
            `write.await`, `await` (s), `queue` (requests), `util` (share).
        source_fields: canonical name to the file's own column name and unit, `("%util", "%")`.
    """

    device: str
    interval: float
    columns: Mapping[str, Floats]
    source_fields: Mapping[str, tuple[str, str]]
    time_ns: NDArray[np.int64] | None = None
    has_interval: bool = True

    @cached_property
    def means(self) -> dict[str, float]:
        """Mean of each column over the samples that are known; a column without any is left out."""
        means_by_metric = {}
        for name, mean in zip(self.columns, _means(list(self.columns.values())), strict=True):
            values = self.columns[name]
            if math.isnan(mean) and len(finite := values[~np.isnan(values)]):
                mean = float(finite.mean())
            if not math.isnan(mean):
                means_by_metric[name] = mean
        return means_by_metric

    @cached_property
    def wait_sums(self) -> tuple[float, float] | None:
        """Seconds that reads and writes waited, and their count, each a sum of rates over the
        samples; None without their awaits."""
        spent = done = 0.0
        for operation in ("read", "write"):
            latency, rate = (
                self.columns.get(f"{operation}.await"),
                self.columns.get(f"{operation}.iops"),
            )
            if latency is None or rate is None:
                return None
            with np.errstate(all="ignore"):
                product = latency * rate
                total = float(product.sum())
            if math.isfinite(total):
                spent, done = spent + total, done + float(rate.sum())
            else:
                is_known = np.isfinite(latency) & np.isfinite(rate)
                spent, done = (
                    spent + float(product[is_known].sum()),
                    done + float(rate[is_known].sum()),
                )
        return spent, done


def _means(columns: Sequence[Floats]) -> list[float]:
    if not columns or not len(columns[0]):
        return [math.nan] * len(columns)
    if len({len(values) for values in columns}) == 1:
        return list(np.array(columns).mean(axis=1).tolist())
    return [float(values.mean()) if len(values) else math.nan for values in columns]


@dataclass(frozen=True)
class DeviceTable:
    """All devices of one file; none if the kind of file describes no device, which
    `assumptions` name.

    Attributes:
        skipped_first: whether a first reading since boot was left out.
        damaged: lines that could not be read, as (line number, reason).
        assumptions: what the reader had to assume, in words.
    """

    devices: Mapping[str, DeviceSamples]
    skipped_first: bool = False
    damaged: tuple[tuple[int, str], ...] = ()
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostTable:
    """Readings of what a whole host did, an interval each.

    Attributes:
        kind: what they describe: `cpu`, `memory`, `vmstat`, `pressure`, `network`.
        interval: seconds between readings, the median.
        time_ns: realtime at the end of each interval, shape (n,).
        columns: name to one value per interval, shape (n,), such as `cpu.busy`; a column that this
        kernel does not report is missing. units: name to base unit. source_fields: name to the
        kernel's own words and their unit, `("Dirty", "kB")`. damaged: lines that could not be read,
        as (line number, reason).
    """

    kind: str
    interval: float
    time_ns: NDArray[np.int64]
    columns: Mapping[str, Floats]
    units: Mapping[str, str]
    source_fields: Mapping[str, tuple[str, str]]
    damaged: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class FioLogTable:
    """One of fio's logs (write_bw_log, write_iops_log, write_lat_log), rows in file order.

    Attributes:
        time: seconds since the job's start, or since the epoch with log_unix_epoch; shape (n,).
        value: as the file has it: KiB/s (bw), 1/s or 1 per I/O (iops), ns or µs (latencies); shape
        (n,). operation: 0 read, 1 write, 2 trim, 3 sync; shape (n,).
        block_size_bytes: shape (n,). offset_bytes: shape (n,) or None.
        averaged: whether rows are averages over intervals (log_avg_msec) as far as the file shows:
        None where it doesn't. has_priority: whether rows surely have the command's priority, which
        fio writes since 3.19. damaged: lines that could not be read, as (line number, reason).
    """

    time: Floats
    value: Floats
    operation: NDArray[np.int8]
    block_size_bytes: NDArray[np.int64]
    offset_bytes: NDArray[np.int64] | None = None
    averaged: bool | None = None
    has_priority: bool = False
    damaged: tuple[tuple[int, str], ...] = ()


class Format(Protocol):
    """A file format. `read` raises FormatError, with file and reason, for what can't be read at
    all."""

    name: str

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Whether a file that begins so is of this format: yes, no, or None when the head doesn't
        decide."""

    def read(self, data: bytes, where: str) -> Any:
        """The whole file as one of the tables above; `where` names it in errors."""
