# SPDX-License-Identifier: Apache-2.0
"""fio's JSON and json+ output, of every version from 2.0 on (fio(1), "JSON output").

One operation of one fio job is a `FioDirection`: bytes, rates and runtime of every version in one
meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iolab.base.errors import FormatError

from ..core.tables import FioDirection, FioJob, FioOutput
from ..core.text import looks_binary
from .document import read_documents
from .latency import finite, read_latencies

OPERATIONS = ("read", "write", "trim", "mixed")
"""Operations that move bytes; `sync` is read apart, as its I/Os have neither bytes nor runtime of
their own."""

_MOST_DIGITS = 100
"""Digits of an option's number: a float, with a unit as well, ends at 309."""


@dataclass(frozen=True)
class Bandwidth:
    """B/s, with field, value and unit that it came from."""

    value: float
    field: str
    source: float
    unit: str


def _count_or_none(value: Any) -> float | None:
    """A number that a counter or rate can be: from 0 to 2^63; anything else is damage and taken as
    absent."""
    number = finite(value)
    return number if number is not None and 0 <= number < 2**63 else None


def read_directions(job: Mapping[str, Any], assume: set[str]) -> dict[str, FioDirection]:
    """Operations of a job that did at least one I/O. What had to be assumed is added to
    `assume`."""
    directions = {}
    for operation in OPERATIONS:
        value = job.get(operation)
        if isinstance(value, dict):
            direction = _direction(value, assume)
            if direction is not None:
                directions[operation] = direction
    sync = job.get("sync")
    if isinstance(sync, dict):
        runtime = max((direction.runtime for direction in directions.values()), default=0.0)
        direction = _sync(sync, runtime)
        if direction is not None:
            directions["sync"] = direction
    return directions


def _direction(value: Mapping[str, Any], assume: set[str]) -> FioDirection | None:
    runtime = (_count_or_none(value.get("runtime")) or 0.0) / 1000
    size_bytes, in_kibibytes = _size(value, runtime)
    if in_kibibytes and size_bytes:
        assume.add("io_bytes is in KiB (fio before 2.99)")
    iops = _count_or_none(value.get("iops"))
    total = _count_or_none(value.get("total_ios")) or 0
    if total == 0:
        total = round((iops or 0.0) * runtime)
        if total:
            assume.add("total_ios is absent or 0 (fio 2.0): I/Os are iops times runtime")
    if iops is None:
        iops = total / runtime if runtime else 0.0
        if total:
            assume.add("no iops: I/Os over runtime")
    if total <= 0 and size_bytes <= 0:
        return None
    bandwidth = _bandwidth(value, size_bytes, in_kibibytes, runtime)
    return FioDirection(
        ios=int(total),
        size_bytes=size_bytes,
        runtime=runtime,
        iops=iops,
        bw=bandwidth.value,
        bw_field=bandwidth.field,
        bw_source=bandwidth.source,
        bw_unit=bandwidth.unit,
        short_ios=int(_count_or_none(value.get("short_ios")) or 0),
        drop_ios=int(_count_or_none(value.get("drop_ios")) or 0),
        latencies=read_latencies(value),
    )


def _size(value: Mapping[str, Any], runtime: float) -> tuple[int, bool]:
    """Bytes moved, and whether `io_bytes` was in KiB.

    Up to fio 2.21 `io_bytes` held KiB; then it became bytes, with a separate `io_kbytes` (fio issue
    378). Without `io_kbytes`, `bw` decides: its unit has always been KiB/s.
    """
    size_bytes = _count_or_none(value.get("io_bytes"))
    kibibytes = _count_or_none(value.get("io_kbytes"))
    if size_bytes is None:
        return int(kibibytes * 1024) if kibibytes is not None else 0, False
    if kibibytes is not None:
        return int(size_bytes), False
    expected = (_count_or_none(value.get("bw")) or 0.0) * runtime
    if expected > 0 and size_bytes / expected > 32:
        return int(size_bytes), False
    return int(size_bytes) * 1024, True


def _bandwidth(
    value: Mapping[str, Any], size_bytes: int, in_kibibytes: bool, runtime: float
) -> Bandwidth:
    exact = _count_or_none(value.get("bw_bytes"))
    if exact is not None:
        return Bandwidth(exact, "bw_bytes", exact, "B/s")
    if runtime > 0 and size_bytes > 0:
        rate = size_bytes / runtime
        return Bandwidth(
            rate,
            "io_bytes/runtime",
            rate / 1024 if in_kibibytes else rate,
            "KiB/s" if in_kibibytes else "B/s",
        )
    coarse = _count_or_none(value.get("bw")) or 0.0
    return Bandwidth(coarse * 1024, "bw", coarse, "KiB/s")


def _sync(value: Mapping[str, Any], runtime: float) -> FioDirection | None:
    """fsync and its kin: fio counts and times them, but gives no rate; it is their number over the
    job's runtime."""
    latencies = read_latencies(value)
    total = _count_or_none(value.get("total_ios")) or 0
    # after a ramp fio 3.33 writes 0 here beside a filled latency, whose count is right
    if total == 0:
        total = next((latency.count for latency in latencies.values() if latency.count), 0)
    if total <= 0:
        return None
    iops = total / runtime if runtime else 0.0
    return FioDirection(
        ios=int(total),
        size_bytes=0,
        runtime=runtime,
        iops=iops,
        bw=0.0,
        bw_field="",
        bw_source=0.0,
        bw_unit="",
        latencies=latencies,
    )


_ALL_CLIENTS = "All clients"
_KEY = re.compile(rb'"(?:fio version|client_stats|jobname)"\s*:')
_BRACE = re.compile(rb"^[ \t]*[\[{]", re.MULTILINE)
_BEGIN = re.compile(rb'\{[^{}"]{0,200}"fio version"\s*:')


class FioJson:
    """JSON that fio wrote with `--output-format=json` or `json+`, alone or as the client of
    servers.

    Jobs without group_reporting stay separate; `fio_pool.pool_jobs` merges them. A file in which
    `jobs` is empty (no job came as far as reporting) has no jobs here either.
    """

    name = "fio-json"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes where a document begins as fio writes it, or at fio's own keys after a brace that
        begins a line, as scripts name the keys too. None for nothing but text, which fio may write
        before its JSON."""
        text = head.replace(b"\0", b"")
        if _BEGIN.search(text):
            return True
        brace = _BRACE.search(text.removeprefix(b"\xef\xbb\xbf"))
        if brace is not None and _KEY.search(text, brace.start()):
            return True
        if looks_binary(head):
            return False
        start = head.lstrip()
        if not start or start == b"{":
            return None
        # messages come before the first brace; a document of someone else's has other keys
        return False if start.startswith((b"{", b"[")) else None

    def read(self, data: bytes, where: str) -> FioOutput:
        """The fio runs that the file reports.

        Raises FormatError: nothing in the file, no JSON, JSON cut off, JSON that isn't fio's.
        """
        documents = read_documents(data, where)
        jobs: list[FioJob] = []
        assume: set[str] = set()
        all_clients = None
        for run, document in enumerate(documents.runs):
            hosts, entries = _entries(document, where)
            for entry in entries:
                job = _job(entry, hosts.options_of(entry), assume, run)
                if "client_stats" in document and job.name == _ALL_CLIENTS:
                    all_clients = job
                else:
                    jobs.append(job)
        is_one = len(documents.runs) == 1
        version = document.get("fio version")
        return FioOutput(
            version=version if isinstance(version, str) else None,
            end_ns=_end_ns(document),
            jobs=tuple(jobs),
            all_clients=all_clients if is_one else None,
            leading_text=documents.leading_text,
            documents=documents.count,
            global_options=hosts.common if is_one else {},
            disk_reads=_disk_reads(document.get("disk_util")) if is_one else None,
            assumptions=(*documents.assumptions, *sorted(assume)),
            run_ends=() if is_one else tuple(map(_end_ns, documents.runs)),
        )


def _disk_reads(disks: Any) -> int | None:
    """Reads of all disks that fio lists; None without a list, or where one of them lacks the
    count."""
    counts = [
        disk.get("read_ios") if isinstance(disk, dict) else None
        for disk in (disks if isinstance(disks, list) else ())
    ]
    known = [count for count in counts if type(count) is int and count >= 0]
    return sum(known) if known and len(known) == len(counts) else None


def _entries(document: Mapping[str, Any], where: str) -> tuple[_Hosts, list[dict[str, Any]]]:
    """The entries of a document, and the options that hold for them."""
    entries = (
        document["client_stats"]
        if isinstance(document.get("client_stats"), list)
        else document.get("jobs")
    )
    if not isinstance(entries, list):
        raise FormatError("no fio output: it has neither 'jobs' nor 'client_stats'", where=where)
    if not all(isinstance(entry, dict) for entry in entries):
        raise FormatError("the JSON is damaged: an entry of 'jobs' is not an object", where=where)
    global_options = document.get("global options")
    for options in (
        *(global_options if isinstance(global_options, list) else [global_options]),
        *(entry.get("job options") for entry in entries),
    ):
        _check_options(_options(options), where)
    return _Hosts(document.get("global options"), entries), entries


class _Hosts:
    """fio's echo of [global]: an object, or in client mode a list with one object per host, in the
    hosts' order."""

    def __init__(self, value: Any, entries: list[dict[str, Any]]) -> None:
        self._by_host: dict[str, dict[str, str]] = {}
        listed = [_options(entry) for entry in value] if isinstance(value, list) else []
        if isinstance(value, dict):
            self.common = _options(value)
        elif listed and all(options == listed[0] for options in listed):
            self.common = listed[0]
        else:
            self.common = {}
            names = list(
                dict.fromkeys(host for entry in entries if (host := _text(entry.get("hostname"))))
            )
            if len(names) == len(listed):
                self._by_host = dict(zip(names, listed, strict=True))

    def options_of(self, entry: Mapping[str, Any]) -> dict[str, str]:
        """Global options that hold for an entry."""
        return self._by_host.get(_text(entry.get("hostname")) or "", self.common)


def _job(
    entry: Mapping[str, Any], global_options: Mapping[str, str], assume: set[str], run: int
) -> FioJob:
    started = finite(entry.get("job_start"))
    group = finite(entry.get("groupid"))
    ran = finite(entry.get("job_runtime"))
    depth = finite(entry.get("latency_depth"))
    steady = entry.get("steadystate")
    return FioJob(
        name=_text(entry.get("jobname")) or "",
        error=int(finite(entry.get("error")) or 0),
        options={**global_options, **_options(entry.get("job options"))},
        directions=read_directions(entry, assume),
        total_errors=int(finite(entry.get("total_err")) or 0),
        user_cpu=(finite(entry.get("usr_cpu")) or 0.0) / 100,
        system_cpu=(finite(entry.get("sys_cpu")) or 0.0) / 100,
        elapsed=finite(entry.get("elapsed")),
        start_ns=int(started) * 1_000_000 if started else None,
        hostname=_text(entry.get("hostname")),
        group=None if group is None else int(group),
        job_runtime=ran / 1000 if ran and ran > 0 else None,
        deepest=_deepest(entry.get("iodepth_level")),
        asked_depth=int(depth)
        if depth and depth > 0 and not finite(entry.get("latency_target"))
        else None,
        is_steady=isinstance(steady, dict) and finite(steady.get("attained")) == 1,
        run=run,
    )


def _deepest(levels: Any) -> int | None:
    """The deepest class of `iodepth_level` that isn't empty; fio writes at least 0.1 for what
    isn't."""
    if not isinstance(levels, dict):
        return None
    digits = [
        str(name).removeprefix(">=") for name, share in levels.items() if (finite(share) or 0) > 0
    ]
    reached = [
        int(number)
        for number in digits
        if number.isascii() and number.isdecimal() and len(number) < 9
    ]
    return max(reached, default=None)


def _end_ns(document: Mapping[str, Any]) -> int | None:
    for field, scale in (("timestamp_ms", 1_000_000), ("timestamp", 1_000_000_000)):
        value = finite(document.get(field))
        if value:
            return int(value) * scale
    return None


def _options(value: Any) -> dict[str, str]:
    return (
        {str(key): str(option) for key, option in value.items()} if isinstance(value, dict) else {}
    )


def _check_options(options: Mapping[str, str], where: str) -> None:
    """FormatError for a number with which nothing can be computed."""
    for name, value in options.items():
        digits = re.match(r"[0-9]*", value)
        if digits is not None and len(digits[0]) > _MOST_DIGITS:
            raise FormatError(
                f"the JSON is damaged: option '{name[:40]}' is a number of {len(digits[0])} digits",
                where=where,
            )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
