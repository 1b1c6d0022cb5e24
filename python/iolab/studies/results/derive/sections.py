# SPDX-License-Identifier: Apache-2.0
"""Sections of a fio result: jobs that ran one after another are measurements of their own, and
nothing of one counts for another.

A run's plan names its section: `extra["section"] = {"index": 0, "name": "seq-read"}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from iolab.formats.core.tables import FioJob, FioOutput
from iolab.formats.fio.groups import FioGroup, groups_of

from ..evidence.model import RunPlan

PROCESSES = "processes"
"""Key of a plan's `extra`: files of fio processes that ran at once, in their order."""

_LOG = re.compile(r"(?P<prefix>.+)_(?P<kind>bw|iops|lat|clat|slat)(?:\.(?P<number>\d+))?\.log")
_OPTIONS = {
    "bw": "write_bw_log",
    "iops": "write_iops_log",
    "lat": "write_lat_log",
    "clat": "write_lat_log",
    "slat": "write_lat_log",
}


@dataclass(frozen=True)
class Section:
    """What of a fio result belongs to one run.

    Attributes:
        groups: all sections of the file, in the order in which they ran.
        own: this run's; None where the run is the whole file.
        problem: why the section that the plan names can't be taken; empty where it can.
    """

    groups: tuple[FioGroup, ...] = ()
    own: FioGroup | None = None
    problem: str = ""

    @property
    def is_part(self) -> bool:
        """Whether the file holds more than this run."""
        return self.own is not None and len(self.groups) > 1


def find_section(fio: FioOutput, plan: RunPlan) -> Section:
    """The section that a run's plan names, by its position and name, else by its name; without one,
    the sections there are.

    A run that iolab made is one measurement whatever its groups: what it starts one after another
    are the steps of its plan. So is a run of several processes of fio.
    """
    requested = plan.extra.get("section")
    if processes_of(plan):
        return Section()
    if not isinstance(requested, Mapping):
        return Section(groups_of(fio) if plan.status == "imported" else ())
    groups = groups_of(fio)
    index, name = requested.get("index"), requested.get("name")
    if isinstance(index, int) and 0 <= index < len(groups) and name in (None, groups[index].name):
        return Section(groups, groups[index])
    for group in groups:
        if group.name == name:
            return Section(groups, group)
    group_names = ", ".join(group.name for group in groups) or "none"
    return Section(groups, None, f"it has no section '{name}': there are {group_names}")


def processes_of(plan: RunPlan) -> tuple[str, ...]:
    """Files of the fio processes that ran at once and are one run; empty for a run of one."""
    names = plan.extra.get(PROCESSES)
    return tuple(map(str, names)) if isinstance(names, list) else ()


def entries_of(fio: FioOutput, group: FioGroup) -> tuple[int, ...]:
    """Positions in the file's `jobs` of a section's entries."""
    own = {id(job) for job in group.jobs}
    return tuple(place for place, job in enumerate(fio.jobs) if id(job) in own)


def own_logs(files: Iterable[str], fio: FioOutput, section: Section) -> tuple[list[str], list[str]]:
    """fio's logs that are the chosen section's, and those with an unknown owner.

    fio names a log by the job's name or the prefix that it was given, and by the number of the
    job's thread, counted over all sections.
    """
    assert section.own is not None
    owners = _owners_by_thread(fio.jobs, section.groups)
    matches = {file: match for file in files if (match := _LOG.fullmatch(PurePosixPath(file).name))}
    most = max((int(match["number"]) for match in matches.values() if match["number"]), default=0)
    own, unknown = [], []
    for file, match in matches.items():
        named = [group.index for group in section.groups if _writes(group, match)]
        if len(named) == 1:
            owner = named[0]
        elif match["number"] and most == len(owners):
            owner = owners[int(match["number"]) - 1] if int(match["number"]) else -1
        else:
            unknown.append(file)
            continue
        if owner == section.own.index:
            own.append(file)
    return own, unknown


def _writes(group: FioGroup, match: re.Match[str]) -> bool:
    option = _OPTIONS[match["kind"]]
    prefixes = {PurePosixPath(text).name for job in group.jobs if (text := job.options.get(option))}
    return match["prefix"] in (prefixes or {job.name for job in group.jobs})


def _owners_by_thread(jobs: Sequence[FioJob], groups: Sequence[FioGroup]) -> list[int]:
    """Section of each of fio's threads, in the order in which fio numbers them."""
    section = {id(job): group.index for group in groups for job in group.jobs}
    alike: dict[tuple[Any, ...], int] = {}
    for job in jobs:
        alike[job.hostname, job.group, job.name] = (
            alike.get((job.hostname, job.group, job.name), 0) + 1
        )
    owners: list[int] = []
    for job in jobs:
        echoed = job.options.get("numjobs", "1")
        threads = (
            int(echoed)
            if alike[job.hostname, job.group, job.name] == 1 and echoed.isdecimal()
            else 1
        )
        owners += [section[id(job)]] * threads
    return owners
