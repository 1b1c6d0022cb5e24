# SPDX-License-Identifier: Apache-2.0
"""What the files of an import are, by their content: fio results with their groups, iolab's own
runs, evidence, traces, and the rest."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from iolab.base import registry
from iolab.base.errors import FormatError
from iolab.formats.core.tables import FioJob, FioOutput
from iolab.formats.detect import detect
from iolab.formats.fio.groups import FioGroup, groups_of

from ..evidence.files import OWN_FILES, PLAN_FILE, read_plan
from ..evidence.model import RunPlan
from .layouts.zfs_tests import result_name
from .source import Source, SourceFile

Key = TypeVar("Key")

FIO_FORMATS = ("fio-json", "fio-terse", "fio-text")

MOST_UNKNOWN = 32
"""Files of no known format that count as one result's, such as job files and notes."""

_HEAD = 65536
_MAX_RESULT = 1 << 30
"""Bytes of a fio result beyond which it is not read: json+ of many jobs has some megabytes."""


@dataclass(frozen=True)
class FioResult:
    """A file with a fio result.

    Attributes:
        groups: jobs that ran together, each a measurement; empty where it can't be read.
        damage: why it can't be read.
        digest: of its bytes.
        plan: of iolab's own `run.json` next to it.
        output: what was read from those bytes; None where it can't be read.
    """

    file: SourceFile
    groups: tuple[FioGroup, ...] = ()
    damage: str = ""
    digest: str = ""
    plan: RunPlan | None = None
    output: FioOutput | None = None

    @cached_property
    def content(self) -> str:
        """A digest of its numbers and times. Copies have the same one, however they are indented or
        named, and whatever text is before the document. "" where it can't be read."""
        if self.output is None:
            return ""
        return hashlib.sha256(repr((self.output.jobs, self.output.end_ns)).encode()).hexdigest()

    @property
    def path(self) -> str:
        """Its path below the tree."""
        return self.file.path

    @property
    def folder(self) -> str:
        """Its folder; empty for the tree's root."""
        return folder_of(self.file.path)


@dataclass
class Reading:
    """The files of a source by what they are: results and others."""

    results: list[FioResult] = field(default_factory=list)
    other_files: list[SourceFile] = field(default_factory=list)
    plans: dict[str, RunPlan] = field(default_factory=dict)


def folder_of(path: str) -> str:
    """The folder of a path with `/`; empty for the root."""
    return path.rpartition("/")[0]


def read_source(source: Source) -> Reading:
    """Read every fio result; of other files the beginning."""
    reading = Reading(plans=_own_plans(source.files))
    for file in source.files:
        name = file.path.rpartition("/")[2]
        if name in OWN_FILES and (folder_of(file.path) in reading.plans or name == PLAN_FILE):
            reading.other_files.append(file)
            continue
        try:
            head = _head(file)
            format_name = _fio_format(head, name)
        except OSError as error:
            reading.results += (
                [FioResult(file, damage=error.strerror or str(error))]
                if name.endswith(".json")
                else []
            )
            reading.other_files += [] if name.endswith(".json") else [file]
            continue
        if format_name is None:
            reading.other_files.append(file)
        else:
            reading.results.append(
                _read(file, format_name, reading.plans.get(folder_of(file.path)))
            )
    _complete_own(reading)
    return reading


def _complete_own(reading: Reading) -> None:
    """A run of iolab's own is one result, whatever fio wrote in it: the first of its fio results,
    else its plan."""
    first: dict[str, FioResult] = {}
    own_results = [result for result in reading.results if result.plan is not None]
    for result in own_results:
        if first.setdefault(result.folder, result) is not result:
            reading.results.remove(result)
            reading.other_files.append(result.file)
    for folder in reading.plans.keys() - first.keys():
        file = next(
            file
            for file in reading.other_files
            if folder_of(file.path) == folder and file.path.rpartition("/")[2] == PLAN_FILE
        )
        reading.other_files.remove(file)
        reading.results.append(FioResult(file, plan=reading.plans[folder]))


def _own_plans(files: Iterable[SourceFile]) -> dict[str, RunPlan]:
    """Plans of folders that are runs of iolab's own."""
    plans: dict[str, RunPlan] = {}
    for file in files:
        if file.path.rpartition("/")[2] == PLAN_FILE and file.size < 1 << 20:
            try:
                plans[folder_of(file.path)] = read_plan(file.place.parent)
            except FormatError:
                continue  # a run.json of others: a file like any
    return plans


def _head(file: SourceFile) -> bytes:
    if not file.size:
        return b""
    with file.place.open("rb") as opened:
        return opened.read(min(_HEAD, file.size))


def _fio_format(head: bytes, name: str) -> str | None:
    """Which of fio's formats a file is of; an empty one by its name."""
    if not head.strip():
        format_name = detect(head, name)
        return format_name if format_name in FIO_FORMATS else None
    if not any(mark in head for mark in (b'"', b";", b": (g", b"IOPS=", b"iops=")):
        return None
    for format_name in FIO_FORMATS:
        if registry.load("format", format_name)().detect(head, name):
            return format_name
    return None


def _read(file: SourceFile, format_name: str, plan: RunPlan | None) -> FioResult:
    if file.size > _MAX_RESULT:
        return FioResult(
            file, damage=f"has {file.size} bytes: no fio result is that long", plan=plan
        )
    try:
        with file.place.open("rb") as opened:
            data = opened.read(file.size)
        output: FioOutput = registry.load("format", format_name)().read(data, file.path)
        groups = groups_of(output)
    except FormatError as error:
        return FioResult(file, damage=error.message, plan=plan)
    except OSError as error:
        return FioResult(file, damage=error.strerror or str(error), plan=plan)
    return FioResult(
        file,
        groups,
        "" if groups else "reports no job",
        hashlib.sha256(data).hexdigest(),
        plan,
        output,
    )


def options_of(group: FioGroup) -> dict[str, str]:
    """What fio echoed of a group, options in which its jobs differ with each value, and how many
    jobs each host had (`numjobs`); the job's name where fio echoed nothing."""
    names = dict.fromkeys(name for job in group.jobs for name in job.options)
    texts = {
        name: "+".join(sorted({job.options.get(name, "absent") for job in group.jobs}))
        for name in names
    }
    if not texts:
        return {"section": group.name}
    hosts: dict[str | None, list[FioJob]] = {}
    for job in group.jobs:
        hosts.setdefault(job.hostname, []).append(job)
    jobs = max(max(_jobs(own), len(own)) for own in hosts.values())
    return {**texts, "numjobs": str(jobs)} if jobs > 1 or "numjobs" in texts else texts


def _jobs(jobs: Sequence[FioJob]) -> int:
    """Jobs of one host that the echo names: each name's `numjobs` once, as clones echo the same."""
    echoed = {job.name: job.options.get("numjobs", "1") for job in jobs}
    return sum(int(text) if text.isdecimal() else 1 for text in echoed.values())


def kind_of(file: SourceFile) -> str | None:
    """The format of a file that is no fio result, `trace` for one of I/O events, None for anything
    else."""
    from iolab.recordings.store.read.trace import Trace

    name = file.path.rpartition("/")[2]
    if not file.size:
        return "fio-log" if is_fio_log(name) else None
    try:
        # readings of counters are no trace; text around a trace may look like readings
        if (
            not is_fio_log(name)
            and not name.endswith(".json")
            and Trace(file.place).detect() is not None
        ):
            return "trace"
        format_name = detect(_head(file), name)
    except (OSError, FormatError):
        return None
    return format_name if format_name not in FIO_FORMATS else None


_LOG = re.compile(r"_(?:bw|iops|lat|clat|slat|clat_hist)(?:\.(\d+))?\.log(?:\.gz|\.fz)?$")
_ENDING = re.compile(r"(?:\.(?:json|txt|out|log|fio|dat|terse|result|results))+$", re.IGNORECASE)


def is_fio_log(path: str) -> bool:
    """Whether a file is one of fio's logs by its name."""
    return _LOG.search(path) is not None


def join_files(
    results: Sequence[FioResult], others: Sequence[SourceFile]
) -> tuple[dict[str, list[SourceFile]], list[SourceFile]]:
    """Files by the path of the result that they belong to, and those that belong to none.

    A folder's only result has the folder's files, and readings and logs of folders below that have
    no result. Of files in no known format it has none where they are more than `MOST_UNKNOWN`: then
    the folder isn't the result's. Among several, a file belongs to the result with the echoed log
    prefix, name or values that its own name begins with or holds.
    """
    by_folder: dict[str, list[FioResult]] = {}
    for result in results:
        by_folder.setdefault(result.folder, []).append(result)
    joined: dict[str, list[SourceFile]] = {}
    rest = []
    indices = {folder: _Index(group) for folder, group in by_folder.items() if len(group) > 1}
    neighbours = Counter(folder_of(file.path) for file in others if not is_fio_log(file.path))
    unknown = Counter(
        folder
        for file in others
        if neighbours[folder := folder_of(file.path)] > MOST_UNKNOWN and not _is_reading(file)
    )
    crowded = {folder for folder, count in unknown.items() if count > MOST_UNKNOWN}
    for file in others:
        folder = folder_of(file.path)
        while folder and folder not in by_folder:
            folder = folder_of(folder)
        group = by_folder.get(folder, [])
        below = folder != folder_of(file.path)
        if below and not folder:
            group = []  # a result at the root says nothing of other folders
        owner = (
            (group[0] if (folder not in crowded and not below) or _is_reading(file) else None)
            if len(group) == 1
            else indices[folder].owner(file.path.rpartition("/")[2])
            if group
            else None
        )
        if owner is None:
            rest.append(file)
        else:
            joined.setdefault(owner.path, []).append(file)
    return joined, rest


def _is_reading(file: SourceFile) -> bool:
    """Whether a file has readings or a log, by its content."""
    return kind_of(file) not in (None, "trace")


class _Index:
    """The results of one folder by the names that files of theirs have."""

    def __init__(self, results: Sequence[FioResult]) -> None:
        self._names = {result.path.rpartition("/")[2]: result for result in results}
        self._prefixes = _unique(
            (prefix, result) for result in results for prefix in _log_prefixes(result)
        )
        self._stems = _unique(
            (_ENDING.sub("", result.path.rpartition("/")[2]), result) for result in results
        )
        self._values = _unique(
            (_values(_ENDING.sub("", result.path.rpartition("/")[2])), result) for result in results
        )

    def owner(self, name: str) -> FioResult | None:
        """The one result that a file of that name belongs to."""
        if (result := self._names.get(result_name(name) or "")) is not None:
            return result
        match = _LOG.search(name)
        stem = name[: match.start()] if match is not None else _ENDING.sub("", name)
        if match is not None and self._prefixes.get(stem) is not None:
            return self._prefixes[stem]
        if match is not None and stem in self._prefixes:
            return (
                None  # several results echo that prefix: the later one wrote over the others' logs
            )
        near = [
            begin
            for begin in self._stems
            if begin and name.startswith(begin) and not name[len(begin) : len(begin) + 1].isalnum()
        ]
        if near:
            return self._stems[max(near, key=len)]
        return self._values.get(_values(stem))


def _unique(pairs: Iterable[tuple[Key, FioResult]]) -> dict[Key, FioResult | None]:
    results_by_key: dict[Key, FioResult | None] = {}
    for key, result in pairs:
        results_by_key[key] = (
            None if key in results_by_key and results_by_key[key] is not result else result
        )
    return results_by_key


def _log_prefixes(result: FioResult) -> set[str]:
    return {
        Path(text).name
        for group in result.groups
        for job in group.jobs
        for name, text in job.options.items()
        if re.fullmatch(r"write_(?:bw|lat|iops|hist)_log", name) and text
    }


def _values(stem: str) -> tuple[str, ...]:
    """The words of a name but its keys: `randread-iodepth-8-numjobs-1` and `randread-8-1` have the
    same."""
    from .layouts.path_words import words_of

    return tuple(
        token.text.lower()
        for token in words_of(stem, is_file=False)
        if token.kind not in ("glue", "key")
    )
