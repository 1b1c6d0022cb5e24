# SPDX-License-Identifier: Apache-2.0
"""Programs with more disk I/O than file operations explain, named with answers about files:
io_uring, libaio and mapped files make no system calls that are recorded."""

from __future__ import annotations

from collections.abc import Callable

from ...recording.read.recording import Recording
from ...units import format_quantity
from ..answers.answers import Answer, Stack
from ..engine.snapshot import snapshot
from ..language.names import Filter, Statistic
from .damage_notes import with_notes

MOST_EVENTS = 50_000_000
"""A recording with more events of both sources gets no note: a scan of them takes too long."""
LEAST_SHARE = 0.05
"""Of the bytes of all processes: less is a program that is started, or a directory that is read."""
LEAST_BYTES = 1 << 20
BEYOND = 10
"""A disk moves so many times the bytes of a program's system calls: read-ahead does not."""
NAMED = 3


def with_unrecorded_calls(
    answer: Answer, asked: Statistic, recording: Recording, of: Callable[[Statistic, str], Answer]
) -> Answer:
    """The answer to a statistic of files with a note that names the processes with such disk I/O.

    `of` answers another statistic from a source, for the same time. Threads of the kernel are left
    out: they do the I/O of others.
    """
    if asked.group != "file" or not {"block", "syscall"} <= set(snapshot(recording).sources):
        return answer
    events = sum(sum(segment.sources.values()) for segment in recording.segments())
    if events > MOST_EVENTS:
        return answer
    chosen = tuple(condition for condition in asked.filters if condition.field == "process")
    programs = {line["process"] for line in recording.processes() if line["command"]}
    unseen: dict[str, int] = {}
    for op in ("read", "write"):
        conditions = (Filter("op", "=", (op,)), *chosen)
        on_disk, by_calls = (
            of(Statistic(group, "bytes", conditions, "process"), source)
            for group, source in (("io", "block"), ("file", "syscall"))
        )
        if not isinstance(on_disk, Stack) or not isinstance(by_calls, Stack) or by_calls.rest_keys:
            return answer
        called = dict(zip(by_calls.keys, by_calls.totals, strict=True))
        least = max(LEAST_BYTES, LEAST_SHARE * (sum(on_disk.totals) + on_disk.rest_total))
        for process, moved in zip(on_disk.keys, on_disk.totals, strict=True):
            if moved >= max(least, BEYOND * called.get(process, 0)) and process in programs:
                unseen[f"{process} ({op} {format_quantity(moved, 'B', 3)})"] = moved
    named = sorted(unseen, key=lambda words: -unseen[words])
    if not unseen:
        return answer
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return with_notes(
        answer,
        (
            f"disk I/O that is not in file operations: {', '.join(named[:NAMED])}{more}; I/O by io_uring, "
            "libaio and mapped files makes no system calls that are recorded",
        ),
    )
