# SPDX-License-Identifier: Apache-2.0
"""Notes of answers: damaged files, names that did not occur, and disk I/O that file operations do not
explain."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np

from ...recording.base.checked_files import DamagedError
from ...recording.base.counts import HeatCounts
from ...recording.read.recording import Recording
from ...recording.read.trace import Trace
from ...units import format_quantity
from ..answers.answers import Answer, Series, Stack
from ..engine.snapshot import snapshot
from ..kept.files.paths import stamp
from ..language.names import Filter, Statistic
from ..language.objects import missing

TRIES = 5
"""Files of so many kinds may turn out to be damaged one after the other."""

MOST_ANSWERS = 32
MOST_BYTES = 16 << 20
"""Answers to one recording that are remembered, and the size of their arrays."""

_guard = threading.Lock()

T = TypeVar("T")
A = TypeVar("A", bound="Series | Stack | HeatCounts")


def answer_with_notes(
    events: Trace | Recording, question: Hashable, ask: Callable[[Trace | Recording], A]
) -> A:
    """An answer with what is damaged of its recording as a note. `ask` gets the recording frozen,
    so that all of an answer is of one moment; it is asked again, of a later moment, where a file
    turns out to be damaged or was deleted meanwhile. An answer is remembered by its question until
    the recording changes; its arrays can't be written."""
    if not isinstance(events, Recording):
        return ask(events)

    def answer() -> A:
        frozen = events.frozen()
        if frozen is events:
            return with_notes(ask(frozen), trouble(frozen))
        answers = frozen.catalogue().answers
        key = question, stamp(frozen.path)
        remembered: A | None = answers.get(key)
        if remembered is None:
            remembered = with_notes(ask(frozen), trouble(frozen))
            _remember(answers, key, remembered)
        return remembered

    return retry(answer)


def _remember(answers: dict[Hashable, Any], key: Hashable, answer: Answer) -> None:
    """Remember an answer, and forget the oldest ones beyond the bounds."""
    if sum(array.nbytes for array in _arrays(answer)) > MOST_BYTES:
        return
    for array in _arrays(answer):
        array.flags.writeable = False
    with _guard:
        answers[key] = answer
        sizes = {
            key: sum(array.nbytes for array in _arrays(other)) for key, other in answers.items()
        }
        while len(sizes) > MOST_ANSWERS or sum(sizes.values()) > MOST_BYTES:
            oldest = next(iter(sizes))
            del sizes[oldest], answers[oldest]


def _arrays(answer: Answer) -> list[np.ndarray[Any, Any]]:
    return [value for value in vars(answer).values() if isinstance(value, np.ndarray)]


def trouble(events: Trace | Recording) -> tuple[str, ...]:
    """What is damaged of a recording and of its kept statistics, as notes."""
    if isinstance(events, Trace):
        return ()
    kept: tuple[str, ...] = ()
    if (events.path / "histograms").is_dir():
        # not for recordings without: what it needs takes its time to load
        from ..kept import recorded

        kept = recorded.trouble(events)
    return (*events.trouble(), *kept)


def retry(ask: Callable[[], T]) -> T:
    """Ask, and ask once more where a file turns out to be damaged, as it is known then."""
    for _ in range(TRIES):
        with suppress(DamagedError):
            return ask()
    return ask()


def with_notes(answer: A, notes: tuple[str, ...]) -> A:
    """An answer with more notes."""
    if not notes:
        return answer
    if isinstance(answer, HeatCounts):
        return cast("A", replace(answer, assumptions=(*answer.assumptions, *notes)))
    return cast("A", replace(answer, notes=(*answer.notes, *notes)))


NAMED = (
    "device",
    "process",
    "file",
    "mount",
    "client",
    "job",
    "vdev",
    "pool",
    "procedure",
    "version",
)
"""Fields with names as values, which may be mistyped."""


def with_unmatched(answer: Answer, asked: Statistic, of: Callable[[Statistic], Answer]) -> Answer:
    """The answer; where it is empty, with a note for each name in its conditions that did not occur
    in the same time.

    `of` answers another statistic for that time.
    """
    fields = {
        condition.field: condition.values
        for condition in asked.filters
        if condition.sign == "="
        and condition.field in NAMED
        and condition.field in asked.entry.breakdowns
    }
    if not fields or not _is_empty(answer):
        return answer
    notes: list[str] = []
    for field, values in fields.items():
        answer_of_field = of(replace(asked, filters=(), breakdown=field))
        # of more names than are told apart nobody knows which are among the others
        if isinstance(answer_of_field, Stack) and not answer_of_field.rest_keys:
            notes += missing(
                field,
                map(str, values),
                [
                    key
                    for key, total in zip(answer_of_field.keys, answer_of_field.totals, strict=True)
                    if total
                ],
            )
    if isinstance(answer, HeatCounts):
        return replace(answer, assumptions=tuple(dict.fromkeys([*answer.assumptions, *notes])))
    return replace(answer, notes=tuple(dict.fromkeys([*answer.notes, *notes])))


def _is_empty(answer: Answer) -> bool:
    if isinstance(answer, HeatCounts):
        return answer.y != "utilization" and answer.events == 0
    return (
        isinstance(answer, Series | Stack) and answer.statistic.entry.additive and answer.total == 0
    )


MOST_EVENTS = 50_000_000
"""A recording with more events of both sources gets no note: a scan of them takes too long."""
LEAST_SHARE = 0.05
"""Of the bytes of all processes: less is a program that is started, or a directory that is read."""
LEAST_BYTES = 1 << 20
BEYOND = 10
"""A disk moves so many times the bytes of a program's system calls: read-ahead does not."""
MOST_NAMED = 3


def with_unrecorded_calls(
    answer: Answer, asked: Statistic, recording: Recording, of: Callable[[Statistic, str], Answer]
) -> Answer:
    """The answer to a statistic of files with a note that names the processes with such disk I/O.

    `of` answers another statistic from a source, for the same time. Threads of the kernel are left
    out: they do I/O for other processes.
    """
    if asked.group != "file" or not {"block", "syscall"} <= set(snapshot(recording).sources):
        return answer
    events = sum(sum(segment.sources.values()) for segment in recording.segments())
    if events > MOST_EVENTS:
        return answer
    of_process = tuple(condition for condition in asked.filters if condition.field == "process")
    programs = {line["process"] for line in recording.processes() if line["command"]}
    unseen: dict[str, int] = {}
    for op in ("read", "write"):
        conditions = (Filter("op", "=", (op,)), *of_process)
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
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return with_notes(
        answer,
        (
            f"disk I/O that is not in file operations: {', '.join(named[:MOST_NAMED])}{more}; I/O by io_uring, "
            "libaio and mapped files makes no system calls that are recorded",
        ),
    )
