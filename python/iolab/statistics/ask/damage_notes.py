# SPDX-License-Identifier: Apache-2.0
"""Answers of recordings of which files are damaged: without these, whose time is lost, and with a
note that says so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar, cast

from ...recording.base.checked_files import DamagedError
from ...recording.base.counts import HeatCounts
from ...recording.read.recording import Recording
from ...recording.read.trace import Trace
from ..answers.answers import Series, Stack

TRIES = 5
"""Files of so many kinds may turn out to be damaged one after the other."""

T = TypeVar("T")
A = TypeVar("A", bound="Series | Stack | HeatCounts")


def answered(events: Trace | Recording, ask: Callable[[Trace | Recording], A]) -> A:
    """An answer with what is damaged of its recording as a note. `ask` gets the recording frozen,
    so that all of an answer is of one moment; it is asked again, of a later moment, where a file
    turns out to be damaged or was deleted meanwhile."""
    if not isinstance(events, Recording):
        return ask(events)

    def answer() -> A:
        frozen = events.frozen()
        return with_notes(ask(frozen), trouble(frozen))

    return again(answer)


def trouble(recording: Recording) -> tuple[str, ...]:
    """What is damaged of a recording and of what was kept of it, as notes."""
    kept: tuple[str, ...] = ()
    if (recording.path / "histograms").is_dir():
        # not for recordings without: what it needs takes its time to load
        from ..kept import recorded

        kept = recorded.trouble(recording)
    return (*recording.trouble(), *kept)


def again(ask: Callable[[], T]) -> T:
    """What is asked; asked once more where a file turns out to be damaged, as it is known then."""
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
