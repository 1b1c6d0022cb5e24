# SPDX-License-Identifier: Apache-2.0
"""Which jobs of one fio result ran together, and which one after another (fio(1): stonewall,
wait_for, startdelay, new_group).

fio numbers its groups: `stonewall` begins a group that waits for all jobs before it, `new_group`
a group that runs at the same time, and both look alike in the result unless it has start times (fio
3.36 and later), echoes the option, or says how long fio ran in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from iolab.base.errors import UsageError
from iolab.base.units import parse_fio_time

from ..core.tables import FioJob, FioOutput

_MOST_NAMES = 4
"""Names that a group's name joins; of more, the first and their number."""

_TOGETHER = 0.1
"""Share of the shorter of two jobs by which they must overlap to count as running together: starts
and ends jitter."""

_AT_ONCE = 1.0
"""Seconds within which fio starts the jobs of a group that wait for nothing."""

_ROUNDED = 2.0
"""Seconds by which fio's `elapsed`, rounded up and with what starting takes, may be more than the
jobs needed."""

_ORDER_ASSUMED = "groups of fio are taken to have run one after another: the file doesn't say whether they did (new_group)"
_OVERLAP_FOUND = "groups of fio are taken to have run together: fio ran for {elapsed:g} s, and one after another they need {needed:g} s"


@dataclass(frozen=True)
class FioGroup:
    """Jobs of one fio result that ran at the same time: one measurement.

    Attributes:
        index: position in the order in which they ran, from 0.
        name: the jobs' shared name, or their names joined with `+`; numbered (`name-1`, `name-2`)
        where several groups of a run share it. jobs: in the file's order, of all hosts in client mode.
        options: echoed options that all its jobs share, [global] included.
        window: realtime nanoseconds [t0, t1] in which all of it was measured, without ramp. None
        where the file doesn't say. assumptions: what had to be assumed about the order of the
        groups, in words.
    """

    index: int
    name: str
    jobs: tuple[FioJob, ...]
    options: dict[str, str]
    window: tuple[int, int] | None = None
    assumptions: tuple[str, ...] = ()

    @property
    def run(self) -> int:
        """Which of the fio runs in the file it belongs to."""
        return self.jobs[0].run


@dataclass(frozen=True)
class _Span:
    """A job and when it ran, in seconds on its host's clock or since fio's start."""

    job: FioJob
    start: float
    end: float

    def overlaps(self, other: _Span) -> bool:
        if (
            self.job.group == other.job.group
            and abs(self.start - other.start) <= _AT_ONCE
            and not (_waits(self.job) or _waits(other.job))
        ):
            return True  # also where one of them did no I/O, or hardly any
        shorter = min(self.end - self.start, other.end - other.start)
        common = min(self.end, other.end) - max(self.start, other.start)
        return common > _TOGETHER * shorter


def groups_of(output: FioOutput) -> tuple[FioGroup, ...]:
    """The jobs of a result, apart where they ran one after another; none where the result has no
    job. Jobs of several runs in one file are never together.

    The order comes, in this order, from the jobs' start times; from echoed `stonewall`, `wait_for`
    and `startdelay`. Else it comes from fio's `elapsed`, which is too short for groups one after
    another where they ran together, and from the groups' numbers, as an assumption. In client mode groups of
    equal number belong together.
    """
    runs: dict[int, list[FioJob]] = {}
    for job in output.jobs:
        runs.setdefault(job.run, []).append(job)
    groups: list[FioGroup] = []
    for run, jobs in runs.items():
        end_ns = output.run_ends[run] if len(runs) > 1 and run < len(output.run_ends) else None
        groups += _groups_of_run(jobs, len(groups), end_ns)
    return tuple(groups)


def _groups_of_run(jobs: Sequence[FioJob], first: int, end_ns: int | None) -> list[FioGroup]:
    """The groups of one fio run, which ended at `end_ns`, numbered from `first`."""
    assume: dict[str, None] = {}
    parts: dict[tuple[int, int], list[FioJob]] = {}
    for own in _by_host(jobs):
        last_ordinal: dict[int, int] = {}
        for together in _clusters(own, assume):
            number = min(job.group or 0 for job in together)
            ordinal = last_ordinal[number] = last_ordinal.get(number, -1) + 1
            parts.setdefault((number, ordinal), []).extend(together)
    groups = _number_names(
        [
            FioGroup(
                index, _name(part), tuple(part), _common_options(part), _window(part), tuple(assume)
            )
            for index, part in enumerate(parts.values(), first)
        ]
    )
    if len(groups) == 1 and groups[0].window is None and end_ns is not None:
        groups = [replace(groups[0], window=_window_before(end_ns, groups[0]))]
    return groups


def _by_host(jobs: Sequence[FioJob]) -> Iterable[Sequence[FioJob]]:
    hosts: dict[str | None, list[FioJob]] = {}
    for job in jobs:
        hosts.setdefault(job.hostname, []).append(job)
    return hosts.values()


def _clusters(jobs: Sequence[FioJob], assume: dict[str, None]) -> list[list[FioJob]]:
    """Jobs of one host that ran together, in the order of their start."""
    if len({job.group for job in jobs}) == 1 and not any(
        _waits(job) or job.start_ns is not None for job in jobs
    ):
        return [list(jobs)]
    spans = sorted(_spans(jobs, assume), key=lambda span: span.start)
    clusters: list[list[_Span]] = []
    for span in spans:
        home = next(
            (
                cluster
                for cluster in reversed(clusters)
                if any(span.overlaps(other) for other in cluster)
            ),
            None,
        )
        if home is None:
            clusters.append([span])
        else:
            home.append(span)
    place = {id(job): position for position, job in enumerate(jobs)}
    return [
        sorted((span.job for span in cluster), key=lambda job: place[id(job)])
        for cluster in clusters
    ]


def _waits(job: FioJob) -> bool:
    return "wait_for" in job.options or "startdelay" in job.options or "start_delay" in job.options


def _spans(jobs: Sequence[FioJob], assume: dict[str, None]) -> list[_Span]:
    starts = [job.start_ns for job in jobs]
    if all(start is not None for start in starts):
        first = min(start for start in starts if start is not None)
        return [
            _Span(
                job, (job.start_ns - first) / 1e9, (job.start_ns - first) / 1e9 + duration_of(job)
            )
            for job in jobs
            if job.start_ns is not None
        ]
    modelled = _model(jobs, apart=True)
    numbers = list(dict.fromkeys(job.group for job in jobs))
    walls = {job.group for job in jobs if _is_set(job, "stonewall") or "wait_for" in job.options}
    if len(numbers) == 1 or walls.issuperset(numbers[1:]):
        return modelled
    needed = max(span.end for span in modelled)
    elapsed = max((job.elapsed for job in jobs if job.elapsed is not None), default=None)
    if elapsed is not None:
        if elapsed < 0.98 * needed:
            assume[_OVERLAP_FOUND.format(elapsed=elapsed, needed=round(needed, 1))] = None
            return _model(jobs, apart=False)
        together = max(span.end for span in _model(jobs, apart=False))
        if together + _ROUNDED < elapsed <= 1.1 * needed + _ROUNDED:
            return modelled  # as long as they need one after another
    assume[_ORDER_ASSUMED] = None
    return modelled


def _model(jobs: Sequence[FioJob], *, apart: bool) -> list[_Span]:
    """When each job ran by its options: after the groups before it (`apart`: all groups, else those
    with an echoed stonewall)."""
    spans: list[_Span] = []
    ends: dict[str, float] = {}
    begin = 0.0
    group: int | None = jobs[0].group
    for job in jobs:
        if job.group != group:
            group = job.group
            if apart or _is_set(job, "stonewall"):
                begin = max(span.end for span in spans)
        # fio counts a delay from its own start, not from the end of what the job waits for
        delay = _seconds(job, "startdelay") or _seconds(job, "start_delay")
        start = max(begin, delay, ends.get(job.options.get("wait_for", ""), begin))
        span = _Span(job, start, start + duration_of(job))
        spans.append(span)
        ends[job.name] = max(ends.get(job.name, 0.0), span.end)
    return spans


def duration_of(job: FioJob) -> float:
    """Seconds from a job's start to its end: its longest operation, and the ramp where the echo
    names one."""
    return max(
        (direction.runtime for direction in job.directions.values()), default=0.0
    ) + _seconds(job, "ramp_time")


def _is_set(job: FioJob, option: str) -> bool:
    return job.options.get(option, "0") != "0"


def _seconds(job: FioJob, option: str) -> float:
    """An echoed duration; of a range (startdelay=5-10) its beginning; 0 where there is none."""
    text = job.options.get(option)
    if text is None:
        return 0.0
    try:
        return parse_fio_time(text.partition("-")[0].strip())
    except UsageError:
        return 0.0


def _window(jobs: Sequence[FioJob]) -> tuple[int, int] | None:
    starts = [job.start_ns for job in jobs]
    if any(start is None for start in starts):
        return None
    begins = [
        start + round(_seconds(job, "ramp_time") * 1e9)
        for start, job in zip(starts, jobs, strict=True)
        if start is not None
    ]
    ends = [
        start + round(duration_of(job) * 1e9)
        for start, job in zip(starts, jobs, strict=True)
        if start is not None
    ]
    return min(begins), max(ends)


def _name(jobs: Sequence[FioJob]) -> str:
    names = list(dict.fromkeys(job.name or "job" for job in jobs))
    return "+".join(names) if len(names) <= _MOST_NAMES else f"{names[0]}+{len(names) - 1} more"


def _number_names(groups: Sequence[FioGroup]) -> list[FioGroup]:
    """The groups with names that are unique in the file."""
    names = [group.name for group in groups]
    names_in_use = set(names)
    renamed = []
    for group in groups:
        name = group.name
        if names.count(name) > 1:
            name = next(
                candidate
                for number in count(1)
                if (candidate := f"{group.name}-{number}") not in names_in_use
            )
            names_in_use.add(name)
        renamed.append(replace(group, name=name))
    return renamed


def _common_options(jobs: Sequence[FioJob]) -> dict[str, str]:
    first = jobs[0].options
    if all(other.options == first for other in jobs[1:]):
        return dict(first)
    return {
        key: value
        for key, value in first.items()
        if all(job.options.get(key) == value for job in jobs)
    }


def window_of(output: FioOutput, groups: Sequence[FioGroup]) -> tuple[int, int] | None:
    """Realtime nanoseconds in which fio ran a result of one group. From the start times of its
    jobs, else from the end of fio and the longest job. None where the file doesn't say."""
    if len(groups) != 1:
        return None
    if groups[0].window is not None or output.end_ns is None:
        return groups[0].window
    return _window_before(output.end_ns, groups[0])


def _window_before(end_ns: int, group: FioGroup) -> tuple[int, int] | None:
    seconds = max(duration_of(job) for job in group.jobs)
    return (end_ns - round(seconds * 1e9), end_ns) if seconds > 0 else None
