# SPDX-License-Identifier: Apache-2.0
"""fio's normal output, the text that it prints for people, of 1.x to 3.x (HOWTO, "Interpreting the
output").

It rounds: rates to three or four digits, percentiles to whole units. The number of I/Os and the
runtime are exact, so rates come from them; bytes are I/Os times block size where that agrees with
the printed size. What stays rounded is stated in `assumptions`.

Texts come from terminals, mails, forums and logs of CI systems: with progress lines, escapes,
quoting, indentation, time stamps, and without their beginning or end. So each line is taken by its
content, wherever in the line that begins.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from iolab.base.errors import FormatError

from ..core.tables import FioDirection, FioJob, FioOutput, Latency
from ..core.text import decode, looks_binary, without_escapes, without_prefix

_LONGEST_LINE = 4096
"""Characters; lines of a report have at most some hundreds."""

_NUMBER = r"\d+(?:\.\d+)?"
_AMOUNT = rf"{_NUMBER}\s?[kKmMgGtTpPeE]?"
_HOST = re.compile(r"\s*<([^<>\s]{1,255})>(?:\s|$)")
"""What a client puts before the lines of its servers, and on a line of its own before a report."""

_ALL_CLIENTS = "All clients"
_SERVER = re.compile(r"hostname=.*\bfio=(fio-\d[-.\w]*)")

_HEADER = re.compile(
    r"(?P<name>\S.*?): \(g=(?P<group>\d{1,9})\): rw=(?P<rw>\w+), bs=(?P<bs>.+?), "
    r"ioengine=(?P<ioengine>[\w./+-]+), iodepth=(?P<iodepth>\d{1,9})\b"
)
_HEADER_BEGINS = re.compile(r": \(g=\d{1,9}\): rw=")
_JOB = re.compile(
    r"(?P<name>\S.*?|): \(groupid=(?P<group>-?\d{1,9}), jobs=(?P<jobs>\d{1,9})\): "
    r"err=\s*(?P<error>\d{1,9})(?:.*?: pid=(?P<pid>\d+)(?:: (?P<date>.*\d))?)?"
)
_VERSION = re.compile(r"\s*(fio-\d[-.\w]*)\s*$")
_NEW = re.compile(
    rf"\b(?P<operation>read|write|trim|mixed)\s*: IOPS=(?P<iops>{_AMOUNT}), "
    rf"BW=(?P<bw>{_AMOUNT}i?(?:B|bit)?(?:/s)?) \([^)]*\)"
    rf"\s*\((?P<size>{_AMOUNT}i?B)/(?P<runtime>\d+)msec\)"
)
_OLD = re.compile(
    rf"\b(?P<operation>read|write|trim|mixed)\s*: io=(?P<size>{_AMOUNT}i?B?), "
    rf"bw=\s*(?P<bw>{_AMOUNT}i?B?)/s\s?, iops=\s*(?P<iops>{_AMOUNT})\s?, "
    r"runt=\s*(?P<runtime>\d+)msec"
)
_OPERATION_BEGINS = re.compile(r"\b(?:read|write|trim|mixed)\s*: (?:IOPS=|io=)")
_LATENCY = re.compile(
    rf"\b(?P<kind>[cs]?lat|sync) \((?P<unit>[num]?sec)\)\s*: min=\s*(?P<minimum>{_AMOUNT}), "
    rf"max=\s*(?P<maximum>{_AMOUNT}), avg=\s*(?P<mean>{_NUMBER}), stdev=\s*(?P<stddev>\d+\.\d\d)"
)
_LATENCY_BEGINS = re.compile(r"\b(?:[cs]?lat|sync) \([num]?sec\)\s*: min=")
_PERCENTILES = re.compile(r"\b(?P<kind>[cs]?lat|sync) percentiles \((?P<unit>[num]?sec)\)")
_PERCENTILE = re.compile(rf"({_NUMBER})th=\[\s*({_AMOUNT})\]")
_CPU = re.compile(rf"\bcpu\s*: usr=\s*({_NUMBER})%, sys=\s*({_NUMBER})%")
_DEPTHS = re.compile(r"\bIO depths\s*: (.*)")
_DEPTH = re.compile(rf"(?:>=|&gt;=)?(\d+)=({_NUMBER})%")
_ISSUED = re.compile(
    r"\bissued (?:rwts?|rwt)?\s*: total=(?P<total>[\d,]+|r=\d+/w=\d+/d=\d+),? "
    r"short=(?P<short>[\d,]+|r=\d+/w=\d+/d=\d+)"
    r"(?:,? drop(?:ped)?=(?P<drop>[\d,]+|r=\d+/w=\d+/d=\d+))?"
)
_TARGET = re.compile(r"\blatency\s*: target=(\d+), .*\bdepth=(\d+)")
_ERRORS = re.compile(r"\berrors\s*: total=\s*(\d+)")
_STEADY = re.compile(r"\bsteadystate\s*: attained=(yes|no)")
_REPORT_ENDS = re.compile(r"\bRun status group \d+ |\bDisk stats ")
_MESSAGE = re.compile(r"(?:fio: |verify: |.*\bterminating on signal\b).*")
_BLOCK_SIZES = re.compile(rf"(?:\([RWT]\) )?({_NUMBER}[KMGT]?i?B?)-({_NUMBER}[KMGT]?i?B?)")

_PART_OF_REPORT = re.compile(
    rb": \(groupid=-?\d+, jobs=\d+\): err=|: \(g=\d+\): rw=\w+, bs="
    rb"|\b(?:read|write|trim|mixed)\s*: (?:IOPS=[\d.]+[kMG]?, BW=|io=[\d.]+\w*, bw=)"
)
_EXACT_RESULT = re.compile(rb'"(?:fio version|client_stats|jobname)"|^(?:[345];fio-|2;)', re.M)

_SCALES = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3, "sec": 1.0}
_UNITS = {"nsec": "ns", "usec": "us", "msec": "ms", "sec": "s"}
_PREFIXES = "kmgtpe"
_OPERATIONS = ("read", "write", "trim")
_MOST = 2**63


@dataclass(frozen=True)
class _Amount:
    """A rounded number of the text; the true one is within `step` of it."""

    value: float
    step: float
    text: str

    def agrees(self, value: float) -> bool:
        """Whether a number may have been rounded, or cut, to this one."""
        return abs(value - self.value) <= self.step * 1.0001


@dataclass
class _Operation:
    ios: int | None
    bytes_moved: _Amount
    bandwidth: _Amount
    iops: _Amount
    runtime: float
    latencies: dict[str, Latency] = field(default_factory=dict)


@dataclass
class _Entry:
    """The lines of one job, or of a group with group_reporting."""

    name: str
    group: int | None
    jobs: int
    line: int
    error: int = 0
    pid: str | None = None
    date: str | None = None
    host: str | None = None
    is_headed: bool = True
    operations: dict[str, _Operation] = field(default_factory=dict)
    sync: dict[str, Latency] = field(default_factory=dict)
    total: tuple[int, ...] | None = None
    short: tuple[int, ...] = ()
    drop: tuple[int, ...] = ()
    cpu: tuple[float, float] = (0.0, 0.0)
    deepest: int | None = None
    depth: int | None = None
    total_errors: int = 0
    is_steady: bool = False
    percentiles_of: tuple[dict[str, Latency], str, float] | None = None

    @property
    def identity(self) -> tuple[object, ...]:
        """What a later report of the same job has as well."""
        return (self.host, self.group, self.name, self.pid)


@dataclass(frozen=True)
class _Header:
    """A line that fio prints at its start: `name: (g=0): rw=randread, bs=..., ...`."""

    name: str
    group: int
    options: Mapping[str, str]
    block_sizes: Mapping[str, int]


@dataclass
class _Report:
    """What fio prints at its end, or every --status-interval. `run`: number of the fio run."""

    run: int
    entries: list[_Entry] = field(default_factory=list)
    is_closed: bool = False


class FioText:
    """Text that fio writes without `--output-format`. Lines of anything else are left out."""

    name = "fio-text"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes at a line of fio's report where no JSON or terse output is with it, which is
        exact."""
        if looks_binary(head):
            return False
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            head = decode(head, file_name, when_empty="").encode("utf-8", "replace")
        if _PART_OF_REPORT.search(head) and not _EXACT_RESULT.search(head):
            return True
        return None if not head.strip() else False

    def read(self, data: bytes, where: str) -> FioOutput:
        """The jobs of every run in the text; a run's last report counts (--status-interval).

        Raises FormatError: nothing in the file, no report, lines of two outputs mixed.
        """
        text = decode(data, where, when_empty="fio was killed before it could report")
        return _Reader(where).read(text)


class _Reader:
    def __init__(self, where: str) -> None:
        self._where = where
        self._reports: list[_Report] = []
        self._open: dict[str | None, _Entry] = {}
        self._host: str | None = None
        self._headers: list[list[_Header]] = [[]]
        self._versions: list[str] = []
        self._messages: list[str] = []
        self._unreadable: list[int] = []
        self._units: set[str] = set()

    def read(self, text: str) -> FioOutput:
        lines = _clean_lines(text)
        following = iter([*lines[1:], (0, "")])
        for number, line in lines:
            _, after = next(following)
            self._line(number, line, after)
        if not any(entry.operations or entry.error for entry in self._entries()):
            raise FormatError(
                "holds the beginning of fio's normal output but no report of it",
                where=self._where,
                hint="fio was ended before it could report, or the text is cut off",
            )
        runs = list(self._last_reports())
        assume: dict[str, None] = {
            "read from fio's normal output: IOPS and bandwidth are I/Os and bytes over runtime": None
        }
        jobs: list[FioJob] = []
        all_clients = None
        for run, report in enumerate(runs):
            for entry in report.entries:
                job = self._job(run, entry, report, assume)
                if job.name == _ALL_CLIENTS and len(report.entries) > 1:
                    all_clients = job
                else:
                    jobs.append(job)
        if self._units:
            coarsest = max(self._units, key=_SCALES.__getitem__)
            unit = _UNITS[coarsest]
            assume[
                f"latencies are rounded: means to 0.01 {unit}, extremes and percentiles to 1 {unit}"
            ] = None
        if len(self._reports) > len(runs):
            assume[
                f"{len(self._reports)} reports of {_many(len(runs), 'run')}: the last of each counts"
            ] = None
        last = next(reversed(list(self._entries())))
        if last.total is None:
            assume[
                f"the text is cut off in the report of job '{last.name}': its I/Os are IOPS times runtime"
            ] = None
        if self._unreadable:
            assume[
                f"{_many(len(self._unreadable), 'line')} can't be read, such as line {self._unreadable[0]}"
            ] = None
        versions = set(self._versions)
        return FioOutput(
            version=versions.pop() if len(versions) == 1 else None,
            end_ns=None,
            jobs=tuple(jobs),
            all_clients=all_clients,
            leading_text="\n".join(self._messages),
            documents=len(self._reports),
            assumptions=tuple(assume),
        )

    def _entries(self) -> Iterator[_Entry]:
        for report in self._reports:
            yield from report.entries

    # --- lines

    def _line(self, number: int, line: str, after: str) -> None:
        words = without_prefix(line)
        host = self._host
        if (match := _HOST.match(words)) is not None:
            host, words = match[1], without_prefix(words[match.end() :])
            self._host = host if not words.strip() else self._host
        if _MESSAGE.fullmatch(words):
            self._messages.append(words.strip())
        elif (match := _VERSION.match(words) or _SERVER.match(words)) is not None:
            self._versions.append(match[1])
        elif _HEADER_BEGINS.search(words):
            match = _HEADER.match(words.strip()) or _HEADER.match(
                f"{words.strip()} {without_prefix(after).strip()}"
            )
            if match is not None:
                self._header(match)
        elif (match := _JOB.match(words.strip())) is not None:
            self._begin(number, match, host)
        elif _REPORT_ENDS.search(words):
            self._open.pop(host, None)
            if self._reports:
                self._reports[-1].is_closed = True
        else:
            self._content(number, words, without_prefix(after), host)

    def _header(self, match: re.Match[str]) -> None:
        if self._reports and self._reports[-1].run == len(self._headers) - 1:
            # fio has begun anew
            self._headers.append([])
            self._open.clear()
            self._host = None
        sizes = _block_sizes(match["bs"])
        options = {"rw": match["rw"]}
        if sizes:
            options |= _block_size_option(sizes)
        options |= {"ioengine": match["ioengine"], "iodepth": match["iodepth"]}
        self._headers[-1].append(
            _Header(
                match["name"],
                int(match["group"]),
                options,
                {name: low for name, (low, high) in sizes.items() if low == high},
            )
        )

    def _begin(self, number: int, match: re.Match[str], host: str | None) -> None:
        entry = _Entry(
            match["name"],
            int(match["group"]),
            int(match["jobs"]),
            number,
            error=int(match["error"]),
            pid=match["pid"],
            date=match["date"],
            host=None if match["name"] == _ALL_CLIENTS else host,
        )
        self._report_for(entry).entries.append(entry)
        self._open[host] = entry

    def _report_for(self, entry: _Entry) -> _Report:
        run = len(self._headers) - 1
        report = self._reports[-1] if self._reports else None
        if (
            report is None
            or report.run != run
            or (report.is_closed and entry.name != _ALL_CLIENTS and not self._is_next_host(entry))
            or any(
                other.identity == entry.identity
                or (other.host == entry.host and other.date != entry.date)
                for other in report.entries
            )
        ):
            report = _Report(run)
            self._reports.append(report)
        return report

    def _is_next_host(self, entry: _Entry) -> bool:
        """Whether a client's report continues with its next server; two may be on one host."""
        return entry.host is not None and all(
            entry.identity != other.identity for other in self._reports[-1].entries
        )

    def _content(self, number: int, line: str, after: str, host: str | None) -> None:
        entry = self._open.get(host)
        if _OPERATION_BEGINS.search(line):
            match = _complete(_NEW, line, after) or _complete(_OLD, line, after)
            if match is None:
                self._unreadable.append(number)
                return
            self._operation(number, match, entry, host)
            return
        if entry is None:
            return
        if _LATENCY_BEGINS.search(line) and "prio" not in line:
            match = _complete(_LATENCY, line, after)
            if match is None:
                self._unreadable.append(number)
            else:
                self._latency(number, match, entry)
        elif (match := _PERCENTILES.search(line)) is not None:
            self._begin_percentiles(match, entry, "prio" not in line)
        elif entry.percentiles_of is not None and (
            pairs := _PERCENTILE.findall(
                line if "[" not in line.rpartition("]")[2] else f"{line} {after}"
            )
        ):
            latencies, kind, scale = entry.percentiles_of
            percentiles = dict(latencies[kind].percentiles)
            for percent, amount in pairs:
                value = _amount(amount, 1000)
                if value is not None and 0 < float(percent) <= 100:
                    percentiles[float(percent)] = value.value * scale
            latencies[kind] = replace(latencies[kind], percentiles=percentiles)
        else:
            self._rest(line, after, entry)

    def _operation(
        self, number: int, match: re.Match[str], entry: _Entry | None, host: str | None
    ) -> None:
        name = match["operation"]
        if entry is not None and name in entry.operations:
            if entry.is_headed:
                raise FormatError(
                    f"a second '{name}:' in the report of job '{entry.name}': lines of several "
                    "outputs are mixed",
                    where=f"{self._where}:{number}",
                    hint="give each fio a file of its own (--output)",
                )
            entry = None
        if entry is None:
            # the text begins within a report
            entry = _Entry("", None, 1, number, host=host, is_headed=False)
            self._reports.append(_Report(len(self._headers) - 1, [entry]))
            self._open[host] = entry
        is_old = match.re is _OLD
        # up to 2.15 fio writes KB for 1024 bytes
        base = 1024 if is_old else 1000
        size, bandwidth, iops = (
            _amount(match["size"], base),
            _amount(match["bw"], base),
            _amount(match["iops"], 1000),
        )
        runtime = int(match["runtime"]) if len(match["runtime"]) < 15 else None
        if size is None or bandwidth is None or iops is None or runtime is None:
            self._unreadable.append(number)
            return
        entry.operations[name] = _Operation(None, size, bandwidth, iops, runtime / 1000)
        entry.percentiles_of = None

    def _latency(self, number: int, match: re.Match[str], entry: _Entry) -> None:
        minimum, maximum = _amount(match["minimum"], 1000), _amount(match["maximum"], 1000)
        mean, stddev = float(match["mean"]), float(match["stddev"])
        scale = _SCALES[match["unit"]]
        self._units.add(match["unit"])
        if minimum is None or maximum is None or not math.isfinite(mean * stddev):
            self._unreadable.append(number)
            return
        latency = Latency(
            source_field=f"{match['kind']} ({match['unit']})",
            source_scale=scale,
            mean=mean * scale,
            minimum=minimum.value * scale,
            maximum=maximum.value * scale,
            stddev=stddev * scale,
        )
        if match["kind"] == "sync":
            entry.sync["lat"] = latency
        elif entry.operations:
            next(reversed(entry.operations.values())).latencies[match["kind"]] = latency

    def _begin_percentiles(self, match: re.Match[str], entry: _Entry, is_whole: bool) -> None:
        kind = match["kind"]
        latencies = (
            entry.sync
            if kind == "sync"
            else next(reversed(entry.operations.values())).latencies
            if entry.operations
            else {}
        )
        kind = "lat" if kind == "sync" else kind
        self._units.add(match["unit"])
        entry.percentiles_of = (
            (latencies, kind, _SCALES[match["unit"]]) if is_whole and kind in latencies else None
        )

    def _rest(self, line: str, after: str, entry: _Entry) -> None:
        if (match := _CPU.search(line)) is not None:
            entry.cpu = (_percentage(match[1]), _percentage(match[2]))
            entry.percentiles_of = None
        elif (match := _DEPTHS.search(line)) is not None:
            entry.deepest = max(
                (
                    int(depth)
                    for depth, share in _DEPTH.findall(
                        match[1] if "64=" in match[1] else f"{match[1]} {after}"
                    )
                    if float(share) > 0 and len(depth) < 9
                ),
                default=None,
            )
        elif "issued" in line and (match := _complete(_ISSUED, line, after)) is not None:
            entry.total, entry.short, entry.drop = (
                _counts(match[name]) for name in ("total", "short", "drop")
            )
        elif (match := _TARGET.search(line)) is not None:
            # as in JSON: where fio searched for a depth, none was asked
            if match[1].strip("0") == "" and len(match[2]) < 9:
                entry.depth = int(match[2]) or None
        elif (match := _ERRORS.search(line)) is not None:
            entry.total_errors = int(match[1]) if len(match[1]) < 19 else 0
        elif (match := _STEADY.search(line)) is not None:
            entry.is_steady = match[1] == "yes"

    # --- results

    def _last_reports(self) -> Iterator[_Report]:
        """The last report of each run."""
        last: _Report | None = None
        for report in self._reports:
            if last is not None and not (last.run == report.run and _continues(last, report)):
                yield last
            last = report
        if last is not None:
            yield last

    def _job(self, run: int, entry: _Entry, report: _Report, assume: dict[str, None]) -> FioJob:
        headers = [
            header for header in self._headers[report.run] if header.group == (entry.group or 0)
        ]
        named = [header for header in headers if header.name == entry.name]
        clones = sum(
            (other.name, other.group, other.host) == (entry.name, entry.group, entry.host)
            for other in report.entries
        )
        if len(headers) > 1 and entry.jobs > 1:
            own = headers  # group_reporting: an entry has the jobs of all its group's sections
        else:
            own = named or (headers if len(headers) == 1 else [])
        options = _shared_options(own)
        if options and len(own) == 1 and max(entry.jobs, clones) > 1:
            options["numjobs"] = str(max(entry.jobs, clones))
        directions = {
            name: self._direction(name, operation, entry, own, assume)
            for name, operation in entry.operations.items()
        }
        if "mixed" in directions and len(directions) > 1:
            # unified_rw_reporting=both, where fio 3.33 prints zeros before right latencies
            directions["mixed"] = _sum_of(directions)
        is_unified = entry.operations.keys() == {"mixed"}
        for place, name in enumerate(_OPERATIONS):
            # I/Os that all failed have no line of their own
            total = entry.total[place] if entry.total and place < len(entry.total) else 0
            if total and name not in directions and not is_unified:
                directions[name] = FioDirection(total, 0, 0.0, 0.0, 0.0, "", 0.0, "B/s")
        runtime = max((direction.runtime for direction in directions.values()), default=0.0)
        if entry.sync:
            syncs = entry.total[3] if entry.total and len(entry.total) > 3 else 0
            if syncs:
                directions["sync"] = FioDirection(
                    syncs,
                    0,
                    runtime,
                    syncs / runtime if runtime else 0.0,
                    0.0,
                    "",
                    0.0,
                    "",
                    latencies=entry.sync,
                )
            else:
                assume["the text doesn't say how many fsyncs there were: they are left out"] = None
        return FioJob(
            name=entry.name,
            error=entry.error,
            options=options,
            directions={
                name: direction
                for name, direction in directions.items()
                if direction.ios or direction.size_bytes
            },
            total_errors=entry.total_errors,
            user_cpu=entry.cpu[0],
            system_cpu=entry.cpu[1],
            hostname=entry.host,
            group=entry.group,
            job_runtime=entry.jobs * runtime if entry.is_headed and runtime else None,
            deepest=entry.deepest,
            asked_depth=entry.depth,
            is_steady=entry.is_steady,
            run=run,
        )

    def _direction(
        self,
        name: str,
        operation: _Operation,
        entry: _Entry,
        headers: Sequence[_Header],
        assume: dict[str, None],
    ) -> FioDirection:
        runtime = operation.runtime
        place = 0 if name == "mixed" else _OPERATIONS.index(name)
        ios = entry.total[place] if entry.total and place < len(entry.total) else None
        if name == "mixed" and len(entry.operations) > 1:
            assume = {}  # replaced by a sum
        if ios is not None and runtime and not operation.iops.agrees(ios / runtime):
            assume[
                f"{name}: IOPS={operation.iops.text} isn't its I/Os over its runtime: the printed rate counts"
            ] = None
            ios = None
        iops = ios / runtime if ios is not None and runtime else operation.iops.value
        if ios is None:
            ios = round(iops * runtime)
            assume[
                f"{name}.iops is known to {_share(operation.iops)}: IOPS={operation.iops.text}"
            ] = None
        size, bandwidth = operation.bytes_moved, operation.bandwidth
        block_sizes = {_block_size(header, name) for header in headers}
        block_size = block_sizes.pop() if len(block_sizes) == 1 else None
        moved, bw, bw_field = size.value, bandwidth.value, "BW"
        if block_size and size.agrees(ios * block_size):
            moved, bw_field = ios * block_size, "issued*bs/runtime"
            bw = moved / runtime if runtime else bw
        elif size.value or bandwidth.value:
            by_size = size.step / size.value if size.value else math.inf
            by_rate = bandwidth.step / bandwidth.value if bandwidth.value else math.inf
            finer = size if by_size <= by_rate or not runtime else bandwidth
            if finer is size and runtime:
                bw, bw_field = size.value / runtime, "io/runtime"
            elif runtime:
                moved = bandwidth.value * runtime
            assume[f"{name}.bw is known to {_share(finer)}: {finer.text}"] = None
        return FioDirection(
            ios=ios,
            size_bytes=round(moved),
            runtime=runtime,
            iops=iops,
            bw=bw,
            bw_field=bw_field,
            bw_source=bw,
            bw_unit="B/s",
            short_ios=entry.short[place] if place < len(entry.short) else 0,
            drop_ios=entry.drop[place] if place < len(entry.drop) else 0,
            latencies={
                kind: operation.latencies[kind]
                for kind in ("lat", "clat", "slat")
                if kind in operation.latencies
            },
        )


def _sum_of(directions: Mapping[str, FioDirection]) -> FioDirection:
    """`mixed` from the other operations, with the latencies that are printed for it."""
    mixed = directions["mixed"]
    parts = [direction for name, direction in directions.items() if name != "mixed"]
    return replace(
        mixed,
        ios=sum(part.ios for part in parts),
        size_bytes=sum(part.size_bytes for part in parts),
        iops=sum(part.iops for part in parts),
        bw=sum(part.bw for part in parts),
        bw_field="sum",
        bw_source=sum(part.bw for part in parts),
    )


def _clean_lines(text: str) -> list[tuple[int, str]]:
    """Numbered lines without escapes. A progress line ends with a carriage return, after which
    anything may follow."""
    return [
        (number, part)
        for number, line in enumerate(without_escapes(text).split("\n"), 1)
        for part in line.split("\r")
        if part and not part.isspace() and len(part) <= _LONGEST_LINE
    ]


def _complete(pattern: re.Pattern[str], line: str, after: str) -> re.Match[str] | None:
    """The match in a line, or in a wrapped one."""
    return pattern.search(line) or pattern.search(f"{line.rstrip()} {after.strip()}")


def _amount(text: str, base: int) -> _Amount | None:
    """`30.7k`, `1024.0MB`, `8388608kbit/s` in base units; prefixes with an i are binary, all others
    powers of `base`. None for more than a counter holds."""
    match = re.match(rf"({_NUMBER})\s?([a-zA-Z]?)(i?)(bit)?", text)
    if match is None or len(match[1]) > 20:
        return None
    prefix = match[2].lower()
    power = _PREFIXES.index(prefix) + 1 if prefix and prefix in _PREFIXES else 0
    scale = float((1024 if match[3] else base) ** power) / (8 if match[4] else 1)
    value = float(match[1]) * scale
    if not value < _MOST:
        return None
    decimals = len(match[1].partition(".")[2])
    return _Amount(value, scale * 10.0**-decimals, text.strip())


def _counts(text: str | None) -> tuple[int, ...]:
    """`1,2,0,0` or `r=1/w=2/d=0` as numbers."""
    numbers = re.findall(r"\d+", text or "")
    return tuple(int(number) for number in numbers if len(number) < 19)


def _percentage(text: str) -> float:
    return float(text) / 100


def _share(amount: _Amount) -> str:
    """How much of its value a rounded number may be off by, as `0.4 %`."""
    return f"{100 * amount.step / amount.value:.1g} %" if amount.value else "nothing"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _block_sizes(text: str) -> dict[str, tuple[int, int]]:
    """`(R) 4096B-4096B, (W) ...` or `4K-4K/4K-4K/4K-4K` as bytes from, to of each operation."""
    ranges = []
    for low, high in _BLOCK_SIZES.findall(text):
        ends = [_amount(end, 1024) for end in (low, high)]
        if ends[0] is None or ends[1] is None:
            return {}
        ranges.append((round(ends[0].value), round(ends[1].value)))
    return dict(zip(_OPERATIONS, ranges, strict=False))


def _block_size_option(sizes: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """Block sizes as fio's option has them: `bs=4k`, `bs=4k,16k,16k`, `bsrange=4k-16k`."""
    is_range = any(low != high for low, high in sizes.values())
    texts = [
        f"{_size_text(low)}-{_size_text(high)}" if is_range else _size_text(low)
        for low, high in sizes.values()
    ]
    text = texts[0] if len(set(texts)) == 1 else ",".join(texts)
    return {"bsrange" if is_range else "bs": text}


def _size_text(size: int) -> str:
    for suffix, scale in (("g", 2**30), ("m", 2**20), ("k", 2**10)):
        if size and size % scale == 0:
            return f"{size // scale}{suffix}"
    return str(size)


def _block_size(header: _Header, operation: str) -> int | None:
    """Bytes of each I/O of an operation; None where they differ."""
    if operation == "mixed":
        sizes = set(header.block_sizes.values())
        return sizes.pop() if len(sizes) == 1 and len(header.block_sizes) > 1 else None
    return header.block_sizes.get(operation)


def _shared_options(headers: Sequence[_Header]) -> dict[str, str]:
    if not headers:
        return {}
    return {
        name: text
        for name, text in headers[0].options.items()
        if all(header.options.get(name) == text for header in headers)
    }


def _continues(before: _Report, after: _Report) -> bool:
    """Whether a report is a later one of the same run (--status-interval): of the same processes,
    or of unknown ones that are further on."""
    if any(entry.pid for entry in (*before.entries, *after.entries)):
        known = {entry.identity for entry in before.entries}
        return any(entry.identity in known for entry in after.entries)
    pairs = list(zip(before.entries, after.entries, strict=False))
    return (
        len(before.entries) == len(after.entries)
        and all(entry.is_headed for entry in after.entries)
        and all(
            old.identity == new.identity
            and old.operations.keys() <= new.operations.keys()
            and all(
                operation.runtime < new.operations[name].runtime
                and operation.bytes_moved.value <= new.operations[name].bytes_moved.value
                for name, operation in old.operations.items()
            )
            for old, new in pairs
        )
    )
