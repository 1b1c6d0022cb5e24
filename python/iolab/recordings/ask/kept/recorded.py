# SPDX-License-Identifier: Apache-2.0
"""The time that a recording has answers about, and which of its kept statistics are damaged."""

from __future__ import annotations

from pathlib import Path

from iolab.base.errors import ResultsError
from iolab.base.files import refusal

from ...store.read.recording import Recording
from ..engine.snapshot import Span, begun_ns, sessions_of, snapshot
from .files.definitions import read_definitions, read_state
from .files.listed import lost_files, read_list, unlisted_files
from .files.paths import DEFINITIONS, LIST, STATE


def span_of(recording: Recording) -> Span | None:
    """(first, last) ns of the time that a recording can be asked about.

    It begins with the first event (or sample where it has no events), or with roll-ups of deleted
    ones. It ends with the last event, or when recording ended. Without any event it is the time of
    recording, or its beginning alone. None without any.
    """
    recorded_span = _there(recording)
    if recorded_span is not None and not recording.facts.dropped_through:
        return recorded_span  # what was kept is of whole seconds
    try:
        state = read_state(recording.path)
    except ResultsError:
        state = None
    kept = [
        (statistic.first_ns, statistic.until_ns - 1)
        for statistic in (state.statistics.values() if state is not None else ())
        if statistic.segments and statistic.first_ns is not None and statistic.until_ns is not None
    ]
    begins = [first for first, _ in kept] + ([] if recorded_span is None else [recorded_span[0]])
    if begins:
        return min(begins), max(
            last for _, last in kept
        ) if recorded_span is None else recorded_span[1]
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
    damage = [
        f"{path.relative_to(recording.path)}: {words}"
        for path, words in find_damage(recording.path)
    ]
    if not damage:
        return ()
    title = "damaged or missing files of kept statistics (iolab verify lists them)"
    return (f"{title}: {'; '.join(damage)}",)


def find_damage(directory: Path) -> list[tuple[Path, str]]:
    """Files of what was kept that are damaged, missing or unexpected, as far as no file must be
    read for it."""
    exists = {name: (directory / name).exists() for name in (DEFINITIONS, STATE, LIST)}
    if not any(exists.values()):
        return []
    damage = [
        (directory / name, "it is missing: what was kept can't be asked")
        for name in (DEFINITIONS, STATE)
        if not exists[name]
    ]
    state, list_path = None, directory / LIST
    try:
        read_definitions(directory)
    except ResultsError as error:
        damage.append((directory / DEFINITIONS, f"what was kept can't be asked: {error.message}"))
    try:
        state = read_state(directory)
    except ResultsError as error:
        damage.append((directory / STATE, f"what was kept can't be asked: {error.message}"))
    if not exists[LIST]:
        # an older iolab had none, and no checksums
        statistics = state.statistics if state is not None and state.is_signed else {}
        if any(statistic.segments for statistic in statistics.values()):
            damage.append((list_path, "it is missing: nothing says which files there were"))
        return damage
    if refused := refusal(list_path):
        return [*damage, (list_path, f"it {refused}: the list of files is damaged")]
    list_now = read_list(directory)
    if list_now.damaged:
        lines = f"{list_now.damaged} line{'' if list_now.damaged == 1 else 's'}"
        damage.append((list_path, f"{lines} can't be believed"))
    damage += [(lost_file.file.path, lost_file.words) for lost_file in lost_files(directory)]
    return [*damage, *((path, "no line lists it") for path in unlisted_files(directory))]
