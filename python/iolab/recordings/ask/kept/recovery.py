# SPDX-License-Identifier: Apache-2.0
"""What is to be kept, and what was, found from the existing files, where `keep.json` or
`kept.json` are lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from iolab.base.errors import FormatError, IolabError
from iolab.base.files import make_folders

from ...store.base.layout import telling, write_json
from ...store.base.lock import short_lock
from ...store.ledger import sign
from ...store.read.recording import Recording
from ..question import SECOND
from .aggregate import Sealed, sealed_after
from .files import tables
from .files.definitions import Definition, Definitions, Kept, State, read_definitions, read_state
from .files.paths import DEFINITIONS, LOCK, TIERS, File, Tier, files, folder_name, is_folder
from .files.tables import About


def definitions_of(directory: Path) -> Definitions:
    """What is to be kept where `keep.json` is missing: all that was; its pauses, floors and limits
    are not known any more."""
    try:
        state = read_state(directory)
    except IolabError:
        state = None
    definitions = Definitions()
    if state is not None:
        for name, kept in state.statistics.items():
            definitions = definitions.with_(
                Definition(
                    name, kept.added_ns, kept.source, kept.first_ns, resumed_ns=kept.resumed_ns
                )
            )
        return definitions
    for name, source, first_ns in _find_statistics(directory):
        definitions = definitions.with_(Definition(name, first_ns, source, first_ns))
    return definitions


def change_definitions(directory: Path, how: Callable[[Definitions], Definitions]) -> Definitions:
    """Change what is to be kept; one at a time. Returns what is to be kept now. ResultsError where
    it can't be written.

    Where the file is missing it is made again of what was kept.
    """
    with telling(directory / DEFINITIONS, "change what is kept"):
        make_folders((directory / LOCK).parent)
        with short_lock(directory / LOCK):
            before = read_definitions(directory) or definitions_of(directory)
            after = how(before)
            if after != before or not before.revision:
                after = replace(after, revision=before.revision + 1)
                write_json(directory / DEFINITIONS, sign(after.as_json()))
            return after


def state_of(directory: Path, recording: Recording, definitions: Definitions) -> State:
    """What was kept where `kept.json` is missing; when the budget left something out is not known
    any more."""
    state = State()
    for name, definition in definitions.statistics.items():
        contents = [
            (tier, file, about)
            for tier in TIERS
            for file, about in _files(directory, tier, folder_name(name))
            if about.statistic == name
        ]
        if contents:
            state.statistics[name] = _state_of_files(recording, definition, contents)
    return state


def _state_of_files(
    recording: Recording, wanted: Definition, held: list[tuple[Tier, File, About]]
) -> Kept:
    through = max(file.last for _, file, _ in held)
    first = min(about.first_s for _, _, about in held)
    finest = held[0][0]
    until = max((about.last_s + tier.seconds) * SECOND for tier, _, about in held if tier is finest)
    sealed = _segment(recording, through)
    if sealed is not None:
        until = sealed.until_ns
    kept = Kept(
        wanted.added_ns,
        held[0][2].source,
        through,
        sum(file.last - file.first + 1 for tier, file, _ in held if tier is finest),
        wanted.since_ns if wanted.since_ns is not None else first * SECOND,
        until,
        resumed_ns=wanted.resumed_ns,
    )
    if sealed is not None and sealed.samples is not None:
        kept.read_ns = sealed.samples.last_ns
    for place, tier in enumerate(TIERS):
        begins = [about.first_s for file_tier, _, about in held if file_tier in TIERS[: place + 1]]
        if begins and min(begins) > (kept.first_ns or 0) // SECOND:
            kept.begins[tier.name] = min(begins)
    return kept


def _segment(recording: Recording, number: int) -> Sealed | None:
    return next(
        (sealed for _, sealed in sealed_after(recording, number - 1) if sealed.number == number),
        None,
    )


def _find_statistics(directory: Path) -> Iterator[tuple[str, str, int]]:
    """(name, source, begin in ns) of each statistic that there are files of."""
    folders = sorted(
        {
            path.name
            for tier in TIERS
            for path in (directory / "histograms" / tier.name).glob("*")
            if is_folder(path.name)
        }
    )
    for folder in folders:
        abouts = [about for tier in TIERS for _, about in _files(directory, tier, folder)]
        if abouts and folder_name(abouts[0].statistic) == folder:
            yield (
                abouts[0].statistic,
                abouts[0].source,
                min(about.first_s for about in abouts) * SECOND,
            )


def _files(directory: Path, tier: Tier, folder: str) -> Iterator[tuple[File, About]]:
    for file in files(directory, tier, folder):
        try:
            yield file, tables.about(file.path)
        except (FormatError, FileNotFoundError):
            continue
