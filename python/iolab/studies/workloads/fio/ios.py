# SPDX-License-Identifier: Apache-2.0
"""fio's log of every I/O (`log_ios`): its options, its cost, and the job of
each of its files.

fio can log either every I/O or means over a time, for all logs of a job alike. With `log_ios` it
logs every I/O, and what the per-second logs say otherwise is summed from that afterwards
(`run.log_ios`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from iolab.base.units import format_quantity
from iolab.hosts.base.options import OptionProblem

from .jobfile import Section
from .options import Scalar, offered_iops, switched_on, synchronous

FOLDER = "ios"
"""Below a run's directory: fio's logs of every I/O, until they are in the recording."""

ENTRY_BYTES = 40
"""fio's memory for an I/O in one log with offsets (struct io_sample_offset; 80 bytes an I/O were
measured in 2 logs of fio 3.33)."""

_PREALLOCATED = 1 << 24
"""Entries of all jobs of a section with memory allocated beforehand: growing a log stops the
job for a moment."""

_MOST_ENTRIES = 1 << 20
_FEWEST_ENTRIES = 1024
_LONGEST_LINE = 200
_EPOCH_MS = 10**11
"""Milliseconds; a time since the epoch is later (March 1973)."""

_NAME = re.compile(r"fio(?:-(?P<section>.+))?_lat\.(?P<thread>\d+)\.log")
_BREAK = {
    "log_avg_msec": "it averages over I/Os",
    "log_max_value": "it averages over I/Os",
    "log_window_value": "it averages over I/Os",
    "log_hist_msec": "it replaces single I/Os by histograms",
    "log_store_compressed": "the log would be fio's own binary",
    "log_compression": "it changes what the log costs",
    "write_lat_log": "iolab names the log",
    "log_offset": "iolab sets it",
    "log_entries": "iolab sets it",
    "disable_lat": "there would be no latency",
    "disable_clat": "there would be no latency",
    "gtod_reduce": "there would be no latency",
    "unified_rw_reporting": "operations could not be distinguished",
}
"""Options that exclude `log_ios`. Those that switch something off may be set to 0."""


@dataclass(frozen=True)
class IoLog:
    """A log of one job: its file, the name that the section's logs share, and `section.number`
    (numbers from 0, as fio's $jobnum)."""

    path: Path
    prefix: str
    job: str


def log_options(section: Section, prefix: str) -> dict[str, Scalar]:
    """What makes fio log every I/O of a section, each job in a file of its own, in the folder
    `ios`."""
    entries = _PREALLOCATED // max(1, _number(section.options.get("numjobs", 1)))
    return {
        "write_lat_log": f"{FOLDER}/{prefix}",
        "log_offset": 1,
        "log_unix_epoch": 1,
        "per_job_logs": 1,
        "log_entries": min(_MOST_ENTRIES, max(_FEWEST_ENTRIES, entries)),
        "lat_percentiles": 1,
        "clat_percentiles": 1,
    }  # lat's histogram is what the log is held against


def log_problems(sections: Sequence[Section], *, job_file: bool) -> list[OptionProblem]:
    """Options that would keep single I/Os out of the log."""
    problem_of_name: dict[str, OptionProblem] = {}
    for section in sections:
        for name, why in _BREAK.items():
            if switched_on(section.options, name):
                where = f" (of [{section.name}])" if job_file else ""
                problem_of_name[name] = OptionProblem(
                    ("options", name),
                    f"cannot be combined with log_ios{where}: {why}",
                    "leave one of them out",
                )
    return list(problem_of_name.values())


def log_notes(sections: Sequence[Section], runtime: float) -> list[str]:
    """What logging every I/O costs, before it is run: memory of fio, known beforehand for open
    loops alone."""
    logs = max((2 if synchronous(section.options) else 3 for section in sections), default=2)
    bytes_of_logs = logs * ENTRY_BYTES
    cost = f"log_ios: fio holds {bytes_of_logs} bytes of memory for each I/O until its job ends"
    rates = [
        offered_iops(section.options, max(1, _number(section.options.get("numjobs", 1))))
        for section in sections
    ]
    if not runtime or any(rate is None for rate in rates):
        return [f"{cost}: {bytes_of_logs} MB for every million"]
    ios = sum(rate or 0 for rate in rates) * runtime
    return [
        f"{cost}: about {format_quantity(ios * bytes_of_logs, 'B')} for the {ios:.0f} I/Os offered to a run"
    ]


def io_logs(folder: Path, only: str) -> list[IoLog]:
    """The logs of total latency in a folder, in order of fio's thread numbers; `only` names the
    section where there is one."""
    matches = [
        (int(match["thread"]), match["section"], path)
        for path in _files(folder)
        if (match := _NAME.fullmatch(path.name))
    ]
    counts: dict[str | None, int] = {}
    logs = []
    for _, section, path in sorted(matches, key=lambda each: each[0]):
        number = counts[section] = counts.get(section, -1) + 1
        logs.append(
            IoLog(
                path, "fio" if section is None else f"fio-{section}", f"{section or only}.{number}"
            )
        )
    return logs


def span_ns(logs: Iterable[IoLog]) -> tuple[int, int] | None:
    """(from, until) in ns since the epoch: first and last I/O of all logs by their first and last
    lines, whole milliseconds around them.

    None where no log has a line that begins with a time since the epoch.
    """
    times = [time for log in logs for time in _ends_ms(log.path)]
    return (min(times) * 1_000_000, (max(times) + 1) * 1_000_000) if times else None


def _ends_ms(path: Path) -> list[int]:
    try:
        with path.open("rb") as file:
            first = file.readline(_LONGEST_LINE)
            file.seek(max(0, file.seek(0, 2) - _LONGEST_LINE))
            lines = file.read().splitlines()
    except OSError:
        return []
    times = (line.partition(b",")[0].strip() for line in (first, *lines[-1:]))
    return [
        int(time) for time in times if time.isdigit() and _EPOCH_MS < int(time) < 100 * _EPOCH_MS
    ]


def _files(folder: Path) -> Iterable[Path]:
    return folder.iterdir() if folder.is_dir() else ()


def _number(value: Scalar) -> int:
    return int(value) if str(value).isdigit() else 1
