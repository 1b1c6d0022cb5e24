# SPDX-License-Identifier: Apache-2.0
"""The time that a recording has answers about, and which of its kept statistics are damaged."""

from __future__ import annotations

from pathlib import Path

from ...errors import ResultsError
from ...files import refusal
from ...recording.read.recording import Recording
from ..engine.coverage import begun_ns, sessions_of
from ..engine.snapshot import Span, snapshot
from .definitions import read_definitions
from .listed import listed, lost_files, unlisted
from .paths import DEFINITIONS, LIST, STATE
from .state import read_state


def span_of(recording: Recording) -> Span | None:
    """(first, last) ns of the time that a recording can be asked about.

    It begins with the first event (or sample where it has no events), or with roll-ups of deleted
    ones. It ends with the last event, or when recording ended. Without any event it is the time of
    recording, or its beginning alone. None without any.
    """
    there = _there(recording)
    if there is not None and not recording.facts.dropped_through:
        return there  # what was kept is of whole seconds
    try:
        state = read_state(recording.path)
    except ResultsError:
        state = None
    kept = (
        [
            (statistic.first_ns, statistic.until_ns - 1)
            for statistic in state.statistics.values()
            if statistic.first_ns is not None
            and statistic.until_ns is not None
            and statistic.segments
        ]
        if state is not None
        else []
    )
    begins = [first for first, _ in kept] + ([] if there is None else [there[0]])
    if begins:
        return min(begins), max(last for _, last in kept) if there is None else there[1]
    sessions = sessions_of(snapshot(recording), 0)
    if sessions:
        return sessions[0][0], sessions[-1][1] - 1
    begun = begun_ns(recording)
    return None if begun is None else (begun, begun)


def _there(recording: Recording) -> Span | None:
    """As `span_of`, of the events and samples that are there."""
    first = recording.span()
    if first is None:
        return None
    last = max(
        first[1],
        max((sample_segment.last_ns for sample_segment in recording.sample_segments()), default=0),
    )
    sessions = sessions_of(snapshot(recording), last) or []
    return first[0], max([last, *(until - 1 for _, until in sessions)])


def trouble(recording: Recording) -> tuple[str, ...]:
    """Why what was kept can't be asked, as a note; none where it can."""
    found = [
        f"{path.relative_to(recording.path)}: {words}" for path, words in damaged(recording.path)
    ]
    return (
        (
            f"damaged or missing files of kept statistics (iolab verify tells more): {'; '.join(found)}",
        )
        if found
        else ()
    )


def damaged(directory: Path) -> list[tuple[Path, str]]:
    """Files of what was kept that are damaged, missing or unexpected, as far as no file must be
    read for it."""
    there = {name: (directory / name).exists() for name in (DEFINITIONS, STATE, LIST)}
    if not any(there.values()):
        return []
    found = [
        (directory / name, "it is missing: what was kept can't be asked")
        for name in (DEFINITIONS, STATE)
        if not there[name]
    ]
    state = None
    for name in (DEFINITIONS, STATE):
        try:
            if name == STATE:
                state = read_state(directory)
            else:
                read_definitions(directory)
        except ResultsError as error:
            found.append((directory / name, f"what was kept can't be asked: {error.message}"))
    if not there[LIST]:
        # an older iolab had none
        is_ours = (
            state is not None
            and state.is_signed
            and any(statistic.segments for statistic in state.statistics.values())
        )
        return (
            [*found, (directory / LIST, "it is missing: nothing says which files there were")]
            if is_ours
            else found
        )
    if refused := refusal(directory / LIST):
        return [
            *found,
            (directory / LIST, f"it {refused}: the list of files is damaged"),
        ]
    known = listed(directory)
    if known.damaged:
        found.append(
            (
                directory / LIST,
                f"{known.damaged} line{'' if known.damaged == 1 else 's'} can't be believed",
            )
        )
    found += [(lost_file.file.path, lost_file.words) for lost_file in lost_files(directory)]
    return [*found, *((path, "no line lists it") for path in unlisted(directory))]
