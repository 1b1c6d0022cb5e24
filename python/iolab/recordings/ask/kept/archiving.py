# SPDX-License-Identifier: Apache-2.0
"""The kept statistics of a recording, to be pushed into an archive."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...archive.rollups import ArchivedStatistic, KeptFile, KeptStatistic
from ...store.read.recording import Recording
from ..question import SECOND
from .files import tables
from .files.definitions import Definition, Kept, read_definitions, read_state
from .files.listed import lost_files
from .files.paths import TIERS, File, files, folder_name

if TYPE_CHECKING:
    import pyarrow as pa


def kept_statistics(recording: Recording) -> list[KeptStatistic]:
    """What is kept of a recording.

    While it is recorded, only hours that are over: files of the present hour are merged again and
    again. ResultsError where the state of kept statistics can't be read.
    """
    directory = recording.path
    definitions, state = read_definitions(directory), read_state(directory)
    if definitions is None or state is None:
        return []
    sessions = recording.facts.sessions
    is_open = bool(sessions) and sessions[-1].get("until_ns") is None
    statistics = []
    for name, definition in definitions.statistics.items():
        kept = state.statistics.get(name)
        if kept is None or kept.added_ns != definition.added_ns:
            continue
        if kept.source is None or kept.first_ns is None or kept.until_ns is None:
            continue
        end = _end_of_hours(recording, name, kept) if is_open else (kept.through, kept.until_ns)
        if end is None:
            continue
        through, until_ns = end
        statistics.append(
            KeptStatistic(
                ArchivedStatistic(
                    name,
                    kept.source,
                    kept.added_ns,
                    through,
                    kept.first_ns,
                    until_ns,
                    _left_out(directory, name, definition, kept, until_ns),
                    dict(kept.begins),
                ),
                {
                    tier.name: [
                        KeptFile(file.first, file.last, partial(_read, file))
                        for file in files(directory, tier, folder_name(name), through)
                    ]
                    for tier in TIERS
                },
            )
        )
    return statistics


def _end_of_hours(recording: Recording, name: str, kept: Kept) -> tuple[int, int] | None:
    """The last segment of the hours that are over, and the end of its time; None without any."""
    hours: Sequence[File] = files(recording.path, TIERS[-1], folder_name(name), kept.through)
    if not hours:
        return None
    last = hours[-1].last
    line = recording.catalogue().segments.lines.get(last, {})
    if isinstance(line.get("last_ns"), int):
        return last, line["last_ns"] + 1
    end_ns = (tables.about(hours[-1].path).last_s + TIERS[-1].seconds) * SECOND
    return last, min(end_ns, kept.until_ns or end_ns)


def _left_out(
    directory: Path, name: str, definition: Definition, kept: Kept, until_ns: int
) -> tuple[tuple[int, int | None], ...]:
    """Spans in which it was not kept, or of which a file is damaged or missing."""
    lost = [
        (part.first_s * SECOND, part.until_s * SECOND)
        for part in lost_files(directory)
        if part.file.path.parent.name == folder_name(name)
        and part.first_s is not None
        and part.until_s is not None
    ]
    spans = (*definition.left_out, *kept.suspended, *kept.missed, *lost)
    return tuple(sorted((span for span in spans if span[0] < until_ns), key=lambda span: span[0]))


def _read(file: File) -> tuple[pa.Table, int]:
    sums = tables.read(file.path)
    table = sums.table
    if sums.form == "growth":
        table = table.rename_columns(
            ["growth" if name == "amount" else name for name in table.column_names]
        )
    return table, sums.width
