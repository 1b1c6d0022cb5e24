# SPDX-License-Identifier: Apache-2.0
"""What is damaged of the files that say what a recording is and its contents; of events and
samples, see `segments` and `hot`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from iolab.base.files import refusal

from ..base.layout import FACTS, KINDS, SEGMENTS, Kind, sealed_numbers
from ..base.lock import LOCK, Told, is_written, read_lock
from ..base.metadata import Facts
from ..segments.segments import Ledgers, read_ledgers, unlisted_files


@dataclass(frozen=True)
class Damage:
    """A file that is not what was written. path: relative to the recording. stays: whether the file
    itself still reports it when a writer adds to it."""

    path: str
    kind: Literal["damaged", "missing", "unexpected"]
    words: str
    stays: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.words}"


def was_killed(directory: Path, facts: Facts) -> bool:
    """Whether the last writer ended without closing the recording, as far as can be seen from
    here."""
    is_open = bool(facts.sessions) and facts.sessions[-1].get("until_ns") is None
    return is_open and not is_written(read_lock(directory, is_signed=facts.is_signed)[0])


def damaged_lists(
    directory: Path,
    facts: Facts,
    *,
    lock: Told | None = None,
    ledgers: Ledgers | None = None,
    numbers: Mapping[Kind, Iterable[int]] | None = None,
) -> Iterator[Damage]:
    """What is damaged, cut, missing or unexpected of `recording.json`, the lock, and the ledgers.
    What was read of these already is passed; `numbers`: of sealed files."""
    if facts.is_damaged:
        yield Damage(
            FACTS,
            "damaged",
            "its checksum is not that of what was written: what it says may be wrong",
        )
    lock_words = read_lock(directory, is_signed=facts.is_signed)[0] if lock is None else lock
    ledgers = read_ledgers(directory) if ledgers is None else ledgers
    if lock_words.is_damaged:
        refused = refusal(directory / LOCK)
        yield Damage(
            LOCK,
            "damaged",
            f"{f'it {refused}' if refused else 'its checksum is wrong'}: nothing says until when "
            "the recording is complete",
            bool(refused),
        )
    elif facts.is_signed and not (directory / LOCK).exists():
        yield Damage(
            LOCK, "missing", "it is missing: nothing says until when the recording is complete"
        )
    for name, ledger in ledgers.items():
        if ledger.refusal:
            yield Damage(name, "damaged", f"it {ledger.refusal}: its lines are lost", True)
            continue
        least = lock_words.sizes.get(name, 0)
        size = ledger.size
        if size is None:
            if least and _is_still_told(directory, facts, name):
                yield Damage(name, "missing", f"{least} bytes of lines were written")
            elif (
                name == SEGMENTS
                and facts.is_signed
                and any(sealed_numbers(directory / kind) for kind in KINDS)
                and not lock_words.sizes
            ):
                yield Damage(
                    name, "missing", "it is missing: nothing says which segments there were"
                )
            continue
        if size < least and _is_still_told(directory, facts, name):
            yield Damage(name, "damaged", f"it has {size} bytes, {least} were written")
        count = ledger.content.damaged
        if count:
            yield Damage(
                name, "damaged", f"{count} line{'' if count == 1 else 's'} can't be believed", True
            )
    lines = ledgers[SEGMENTS].content.lines
    for path in unlisted_files(directory, facts.dropped_through, lines, numbers):
        yield Damage(str(path.relative_to(directory)), "unexpected", "no line lists it", True)


def _is_still_told(directory: Path, facts: Facts, name: str) -> bool:
    """Whether the lock still says more of a file than it has: it may have been replaced
    meanwhile."""
    try:
        size = (directory / name).stat().st_size
    except OSError:
        size = 0
    return size < read_lock(directory, is_signed=facts.is_signed)[0].sizes.get(name, 0)
