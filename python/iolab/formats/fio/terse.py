# SPDX-License-Identifier: Apache-2.0
"""fio's terse output (`--minimal`, `--output-format=terse`), versions 2 to 5 (HOWTO, "Terse
output").

One line per job, or per group with group_reporting; all latencies in microseconds, sizes in KiB,
rates cut to whole numbers. Fields have fixed positions; the end of each operation's block is found
from the first per cent sign.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise

from iolab.base.errors import FormatError

from ..core.tables import FioDirection, FioJob, FioOutput, Latency
from ..core.text import decode, looks_binary

_LINE = re.compile(r"^(?:([345]);(fio-[^;]*)|(2));", re.MULTILINE)
_HEAD = re.compile(rb"(?:^|\n)(?:[345];fio-[^;\n]*;|2;[^;\n]*;\d+;\d+;\d+;\d+;)")
_BLOCK = {2: 41, 3: 41, 4: 41, 5: 47}
"""Terse version to the fields of one operation: 4 of throughput, 3 x 4 latencies, 20 percentiles, 5
of bandwidth (version 5: one more, and 5 of IOPS)."""

_TAIL = 5 + 7 + 10 + 12
"""Fields after the operations that every line has: CPU, I/O depths, latencies in microseconds and
milliseconds."""

_OPERATIONS = ("read", "write", "trim", "mixed")
_NO_COUNT = "terse output has no count of I/Os: whole IOPS times runtime"
_WHICH_PERCENTILES = "terse percentiles are taken as completion latency (with lat_percentiles=1 they are total latency)"


class FioTerse:
    """Semicolon separated lines. Lines of other text are kept as `leading_text`; a line cut short
    costs the file."""

    name = "fio-terse"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes at a line that begins as terse output does; None while there is nothing to see."""
        if _HEAD.search(head):
            return True
        return (
            None
            if not head.strip()
            or (not looks_binary(head) and b";" not in head and b"{" not in head)
            else False
        )

    def read(self, data: bytes, where: str) -> FioOutput:
        """One `FioJob` per line, in the file's order.

        Under --status-interval lines come again and again, cumulative: the last report counts, said
        in `assumptions`.

        Raises FormatError: nothing in the file, no terse line, a line cut short or damaged (with
        its number).
        """
        text = decode(
            data, where, when_empty="fio was killed before it could write, or refused its options"
        )
        jobs: list[FioJob] = []
        other: list[str] = []
        version = None
        for number, line in enumerate(text.splitlines(), 1):
            match = _LINE.match(line)
            if match is None:
                if line.strip() and not jobs:
                    other.append(line)
                continue
            version = match[2] or version
            jobs.append(_job(line.split(";"), int(match[1] or match[3]), f"{where}:{number}"))
        if not jobs:
            raise FormatError(
                "no terse line in the file",
                where=where,
                hint="terse lines begin like '3;fio-3.33;'",
            )
        kept, reports = _last_report(jobs)
        assumptions = [_NO_COUNT]
        if any(
            latency.percentiles
            for job in kept
            for direction in job.directions.values()
            for latency in direction.latencies.values()
        ):
            assumptions.append(_WHICH_PERCENTILES)
        if reports > 1:
            assumptions.append(f"{reports} cumulative reports (--status-interval): the last counts")
        return FioOutput(
            version=version,
            end_ns=None,
            jobs=tuple(kept),
            leading_text="\n".join(other).strip(),
            documents=reports,
            assumptions=tuple(assumptions),
        )


def _job(fields: list[str], version: int, where: str) -> FioJob:
    start = 4 if version == 2 else 5
    width = _BLOCK[version]
    blocks = 0
    while (at := start + blocks * width) < len(fields) and not fields[at].endswith("%"):
        blocks += 1
    cpu = start + blocks * width
    if (
        not 1 <= blocks <= (3 if version == 3 else 4)
        or len(fields) < cpu + _TAIL
        or not fields[cpu + 1].endswith("%")
    ):
        raise FormatError(
            f"terse line cut short or damaged: {len(fields)} fields",
            where=where,
            hint="fio was killed while it wrote",
        )
    try:
        directions = {}
        for place, operation in enumerate(_operations(version, blocks)):
            direction = _direction(fields[start + place * width : start + (place + 1) * width])
            if direction is not None:
                directions[operation] = direction
        return FioJob(
            name=fields[start - 3],
            error=int(fields[start - 1]),
            options={},
            directions=directions,
            total_errors=_total_errors(fields[cpu + _TAIL :]),
            user_cpu=_share(fields[cpu]),
            system_cpu=_share(fields[cpu + 1]),
            group=int(fields[start - 2]),
            deepest=_deepest(fields[cpu + 5 : cpu + 12]),
        )
    except (ValueError, OverflowError) as error:
        raise FormatError(f"terse line damaged: {error}", where=where) from None


def _deepest(shares: Sequence[str]) -> int | None:
    """The deepest class of I/O depths that isn't empty: 1, 2, 4, 8, 16, 32, 64 and more."""
    return max((2**place for place, share in enumerate(shares) if _share(share) > 0), default=None)


def _operations(version: int, blocks: int) -> tuple[str, ...]:
    """unified_rw_reporting leaves one block, `both` adds one; version 3 never writes trim
    (`stat.c`)."""
    if blocks == 1:
        return ("mixed",)
    if version == 3:
        return ("read", "write", "mixed")[:blocks]
    return _OPERATIONS[:blocks]


def _direction(block: Sequence[str]) -> FioDirection | None:
    kibibytes, iops, runtime = int(block[0]), float(_finite(block[2])), _finite(block[3]) / 1000
    _finite(block[1])
    ios = round(iops * runtime)
    if kibibytes <= 0 and ios <= 0:
        return None
    if runtime > 0 and kibibytes > 0:
        bandwidth, field = kibibytes / runtime, "total_io/runtime"
    else:
        bandwidth, field = _finite(block[1]), "bandwidth"
    percentiles = _percentiles(block[12:32])
    latencies = {}
    for kind, place in (("lat", 32), ("clat", 8), ("slat", 4)):
        latency = _latency(kind, block[place : place + 4], percentiles if kind == "clat" else {})
        if latency is not None:
            latencies[kind] = latency
    return FioDirection(
        # below one I/O a second the cut-off IOPS are 0 although bytes moved
        ios=max(ios, 1),
        size_bytes=kibibytes * 1024,
        runtime=runtime,
        iops=iops,
        bw=bandwidth * 1024,
        bw_field=field,
        bw_source=bandwidth,
        bw_unit="KiB/s",
        latencies=latencies,
    )


def _latency(kind: str, fields: Sequence[str], percentiles: dict[float, float]) -> Latency | None:
    minimum, maximum, mean, stddev = (_finite(field) * 1e-6 for field in fields)
    if mean == 0 and maximum == 0:
        return None
    return Latency(
        source_field=kind,
        source_scale=1e-6,
        mean=mean,
        minimum=minimum,
        maximum=maximum,
        stddev=stddev,
        percentiles=percentiles,
    )


def _percentiles(fields: Sequence[str]) -> dict[float, float]:
    percentiles = {}
    for field in fields:
        percent, _, value = field.partition("%=")
        if _finite(percent) > 0:  # "0%=0" pads the list to twenty
            percentiles[_finite(percent)] = _finite(value) * 1e-6
    return percentiles


def _total_errors(rest: list[str]) -> int:
    """After nine fields per disk come, with continue_on_error, the number of failed I/Os and the
    first errno."""
    while len(rest) >= 9 and rest[8].endswith("%"):
        rest = rest[9:]
    if len(rest) >= 2 and rest[0].isdecimal() and rest[1].isdecimal():
        return int(rest[0])
    return 0


def _share(field: str) -> float:
    return _finite(field.removesuffix("%")) / 100


def _finite(field: str) -> float:
    value = float(field)
    if not math.isfinite(value):
        raise ValueError(f"'{field}' is not a number")
    return value


def _last_report(jobs: Sequence[FioJob]) -> tuple[list[FioJob], int]:
    """The jobs of the last report, and how many reports there were (one: all lines are jobs).

    `--status-interval` repeats every job's line, and nothing marks a report's end.
    Clones of a job (numjobs without group_reporting) have equal names as well, so names alone don't
    tell them from reports. But reports grow evenly from the start, the last excepted, which comes
    when the jobs end; and what was counted stays counted, so that bytes and extremes of latency
    only grow.
    """
    total = len(jobs)
    for size in range(1, total // 2 + 1):
        if total % size == 0 and _grows(
            [jobs[start : start + size] for start in range(0, total, size)]
        ):
            return list(jobs[-size:]), total // size
    return list(jobs), 1


def _grows(reports: Sequence[Sequence[FioJob]]) -> bool:
    """Whether every report has the same jobs, each of them further on than in the report before."""
    names = [[(job.name, job.group) for job in report] for report in reports]
    if any(name != names[0] for name in names):
        return False
    if not all(
        _continues(old, new)
        for before, after in pairwise(reports)
        for old, new in zip(before, after, strict=True)
    ):
        return False
    runtimes = [max(map(_runtime, report)) for report in reports]
    steps = [after - before for before, after in pairwise(runtimes)]
    if len(reports) == 2:
        return runtimes[1] >= 1.5 * runtimes[0]
    # the first report comes one interval after the start, like each of the next
    return all(0.5 * runtimes[0] <= step <= 2 * runtimes[0] for step in steps[:-1])


def _continues(old: FioJob, new: FioJob) -> bool:
    if not old.directions.keys() <= new.directions.keys():
        return False
    for operation, before in old.directions.items():
        after = new.directions[operation]
        if after.runtime < before.runtime or after.size_bytes < before.size_bytes:
            return False
        for kind, latency in before.latencies.items():
            later = after.latencies.get(kind)
            if later is None or later.minimum > latency.minimum or later.maximum < latency.maximum:
                return False
    return True


def _runtime(job: FioJob) -> float:
    return max((direction.runtime for direction in job.directions.values()), default=0.0)
