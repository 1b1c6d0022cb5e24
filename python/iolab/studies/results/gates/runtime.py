# SPDX-License-Identifier: Apache-2.0
"""Did the load run as long as asked?"""

from __future__ import annotations

from collections.abc import Iterable

from iolab.base.units import format_number, format_quantity
from iolab.base.verdict import Reason

from ..facts.run_facts import RunFacts, bytes_of_job, parts_of
from .base import invalid, note, suspect

SHORT = 0.98
LONG = 1.05
SLACK = 1.0
"""Seconds over the asked runtime that never matter: fio checks the time between I/Os."""

DONE = 0.98
"""Share of its size that a load which ended by it moves at least: only whole blocks are moved."""

BEYOND = 1.05
"""A load that ends by its size moves that size; a load that moved more than this share of it did
not end by its size."""


ENDS_EARLY = ("latency_target", "exitall", "exit_what", "read_iolog", "fill_device")
"""fio's options that end a load before its time and size. The search for a depth is over, another
job is done, a recording is replayed, the device is full (fio(1))."""

PARTLY = ("offset", "zonesize", "zonerange", "zoneskip")
"""fio's options by which a job may move less than its size, depending on files of which the size the
result doesn't say."""


class RuntimeGate:
    """INVALID below 98 % of the asked runtime (unless the asked size was done or the steady state
    reached by then), SUSPECT above 105 % and a second. Of a set of files INVALID where it wasn't
    done within the runtime.

    A note where the number of I/Os was done (`number_ios`), where an option of fio ends a load
    early (`ENDS_EARLY`), and where an imported run may have ended by a size which can't be computed
    (a percentage of unknown files, several sections in one entry). Whether an imported run was `time_based` is mostly unknown
    (fio echoes no flag): SUSPECT where it ended early and moved more than a load would that ends by
    its size.

    An interrupted fio writes a healthy-looking rate over a shortened runtime; a straggler stretches
    the runtime of its group, and with it dilutes the rate (total I/Os over the longest job's time).
    """

    name = "runtime"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """The measured runtime against the asked one."""
        requested, ran = facts.asked_runtime, facts.runtime
        if not requested or not facts.directions:
            return
        if "files" in facts.plan.extra:
            if not facts.ended_by_size:
                yield invalid(
                    "runtime",
                    f"the files were not all done within {format_number(requested)} s",
                    seconds=ran,
                    asked_seconds=requested,
                )
            return
        times = f"{format_number(ran)} s of {format_number(requested)} s"
        if ran < SHORT * requested:
            ios = sum(part.ios for name, part in facts.parts.items() if name != "sync")
            moved = sum(direction.size_bytes for direction in facts.parts.values())
            time_based = facts.plan.extra.get(
                "time_based", facts.options.get("time_based", "0") != "0"
            )
            if facts.fio is not None and any(job.is_steady for job in facts.fio.jobs):
                yield note(
                    "steady-state",
                    f"the steady state was reached after {times}",
                    seconds=ran,
                    asked_seconds=requested,
                )
            elif (
                facts.asked_ios is not None
                and DONE * facts.asked_ios <= ios <= BEYOND * facts.asked_ios * _passes(facts)
            ):
                yield note(
                    "ended-by-size",
                    f"the asked number of I/Os was done after {times}",
                    seconds=ran,
                    asked_seconds=requested,
                )
            elif reasons := _ends_early(facts):
                yield note(
                    "ended-early",
                    f"the load ended after {times}, as it may with {', '.join(reasons)}",
                    seconds=ran,
                    asked_seconds=requested,
                )
            elif (
                not time_based
                and facts.asked_bytes is not None
                and moved >= DONE * facts.asked_bytes
            ):
                most = facts.asked_bytes * _passes(facts)
                if facts.plan.status == "imported" and moved > BEYOND * most:
                    yield suspect(
                        "runtime",
                        f"the load ended early, after {times}: it moved {format_quantity(moved, 'B')}, more than the "
                        f"asked size of {format_quantity(most, 'B')}, as a time_based load does that is stopped",
                        seconds=ran,
                        asked_seconds=requested,
                        bytes=moved,
                        asked_bytes=most,
                    )
                else:
                    yield note(
                        "ended-by-size",
                        f"the asked size was done after {times}",
                        seconds=ran,
                        asked_seconds=requested,
                    )
            elif (
                not time_based
                and (facts.plan.status == "imported" or "time_based" in facts.plan.extra)
                and facts.is_bounded
                and _is_unknown(facts, ios)
            ):
                yield note(
                    "runtime",
                    f"the load ended early, after {times}; whether its size was done is unknown",
                    seconds=ran,
                    asked_seconds=requested,
                )
            else:
                yield invalid(
                    "runtime",
                    f"the load ended early, after {times}",
                    seconds=ran,
                    asked_seconds=requested,
                )
        elif ran > LONG * requested + SLACK:
            yield suspect(
                "runtime", f"the load overran: {times}", seconds=ran, asked_seconds=requested
            )


def _ends_early(facts: RunFacts) -> list[str]:
    """Options of a job of the run that end a load early; `latency_run` makes the search for a depth
    last."""
    jobs = () if facts.fio is None else facts.fio.jobs
    names = {
        name for options in (facts.options, *(job.options for job in jobs)) for name in options
    }
    if "latency_run" in names:
        names.discard("latency_target")
    return [name for name in ENDS_EARLY if name in names]


def _is_unknown(facts: RunFacts, ios: int) -> bool:
    """Whether a bounded load may have done all that it was to do, though nothing says so. Neither
    where its I/Os are fewer than `number_ios` without another bound, nor where they are more."""
    if facts.asked_ios is not None:
        has_size = any(name in facts.options for name in ("size", "io_size"))
        return has_size and ios < facts.asked_ios and facts.asked_bytes is None
    return facts.asked_bytes is None or _is_partly(facts) or _is_one_job_done(facts)


def _is_one_job_done(facts: RunFacts) -> bool:
    """Whether one of several jobs moved its size: `exitall`, a flag that fio does not echo, ends
    the others then."""
    jobs = () if facts.fio is None else facts.fio.jobs
    sizes = [bytes_of_job({**facts.options, **job.options}) for job in jobs]
    moved = [sum(part.size_bytes for part in parts_of(job.directions).values()) for job in jobs]
    return len(jobs) > 1 and any(
        size and moved_bytes >= DONE * size for size, moved_bytes in zip(sizes, moved, strict=True)
    )


def _is_partly(facts: RunFacts) -> bool:
    """Whether an option lets a job move less than its size: a hole after each block (`rw=read:8k`),
    zones, or an offset into files of unknown size."""
    pattern = facts.options.get("rw", facts.options.get("readwrite", ""))
    skips = ":" in pattern and not pattern.startswith("rand")
    apart = "filesize" not in facts.options
    return skips or any(name in facts.options and (apart or name != "offset") for name in PARTLY)


def _passes(facts: RunFacts) -> int:
    """How often fio moves its size: `loops`, and once more where it verifies or trims what it
    writes."""
    loops = facts.options.get("loops", "")
    twice = "verify" in facts.options or "trim" in facts.options.get(
        "rw", facts.options.get("readwrite", "")
    )
    return (int(loops) if loops.isdecimal() and len(loops) < 9 else 1) * (2 if twice else 1)
