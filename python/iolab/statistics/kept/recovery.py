# SPDX-License-Identifier: Apache-2.0
"""What is to be kept, and what was, told by the files that are there, where `keep.json` or
`kept.json` are lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from ...errors import FormatError, IolabError
from ...recording.base.layout import telling, write_json
from ...recording.base.lock import short_lock
from ...recording.ledger import sign
from ...recording.read.recording import Recording
from ..language.intervals import SECOND
from . import tables
from .definitions import Definition, Definitions, read_definitions
from .paths import DEFINITIONS, LOCK, TIERS, File, Tier, files, folder_name, is_folder
from .sealed import Sealed, sealed_after
from .state import Kept, State, read_state
from .tables import About


def definitions_of(directory: Path) -> Definitions:
    """What is to be kept where `keep.json` is missing: all that was; its pauses, floors and limits
    are not known any more."""
    try:
        state = read_state(directory)
    except IolabError:
        state = None
    found = Definitions()
    if state is not None:
        for name, kept in state.statistics.items():
            found = found.with_(
                Definition(
                    name, kept.added_ns, kept.source, kept.first_ns, resumed_ns=kept.resumed_ns
                )
            )
        return found
    for name, source, first_ns in _told(directory):
        found = found.with_(Definition(name, first_ns, source, first_ns))
    return found


def change_definitions(directory: Path, how: Callable[[Definitions], Definitions]) -> Definitions:
    """Change what is to be kept; one at a time. Returns what is to be kept now. ResultsError where
    it can't be written.

    Where the file is missing it is made again of what was kept.
    """
    with telling(directory / DEFINITIONS, "change what is kept"):
        (directory / LOCK).parent.mkdir(exist_ok=True)
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
    for name, wanted in definitions.statistics.items():
        held = [
            (tier, each, told)
            for tier in TIERS
            for each, told in _files(directory, tier, folder_name(name))
            if told.statistic == name
        ]
        if held:
            state.statistics[name] = _kept(recording, wanted, held)
    return state


def _kept(recording: Recording, wanted: Definition, held: list[tuple[Tier, File, About]]) -> Kept:
    through = max(each.last for _, each, _ in held)
    first = min(told.first_s for _, _, told in held)
    finest = held[0][0]
    until = max((told.last_s + tier.seconds) * SECOND for tier, _, told in held if tier is finest)
    sealed = _segment(recording, through)
    if sealed is not None:
        until = sealed.until_ns
    found = Kept(
        wanted.added_ns,
        held[0][2].source,
        through,
        sum(each.last - each.first + 1 for tier, each, _ in held if tier is finest),
        wanted.since_ns if wanted.since_ns is not None else first * SECOND,
        until,
        resumed_ns=wanted.resumed_ns,
    )
    if sealed is not None and sealed.samples is not None:
        found.read_ns = sealed.samples.last_ns
    for place, tier in enumerate(TIERS):
        begins = [told.first_s for each, _, told in held if each in TIERS[: place + 1]]
        if begins and min(begins) > (found.first_ns or 0) // SECOND:
            found.begins[tier.name] = min(begins)
    return found


def _segment(recording: Recording, number: int) -> Sealed | None:
    return next(
        (each for _, each in sealed_after(recording, number - 1) if each.number == number), None
    )


def _told(directory: Path) -> Iterator[tuple[str, str, int]]:
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
        held = [told for tier in TIERS for _, told in _files(directory, tier, folder)]
        if held and folder_name(held[0].statistic) == folder:
            yield held[0].statistic, held[0].source, min(each.first_s for each in held) * SECOND


def _files(directory: Path, tier: Tier, folder: str) -> Iterator[tuple[File, About]]:
    for each in files(directory, tier, folder):
        try:
            yield each, tables.about(each.path)
        except (FormatError, FileNotFoundError):
            continue
