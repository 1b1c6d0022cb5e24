# SPDX-License-Identifier: Apache-2.0
"""How segments of another writer become a part of a recording: what a killed writer left unsealed is
sealed first, and the segments of a run are moved in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from iolab.base.errors import ResultsError
from iolab.base.files import make_folders, move, remove

from ..base.layout import (
    KINDS,
    LOSSES,
    MAPS,
    SEGMENTS,
    Kind,
    hot_file,
    hot_numbers,
    map_file,
    sealed_file,
    sealed_numbers,
    sync_folder,
    telling,
)
from ..base.lock import read_lock
from ..base.loss_log import damage, loss_of
from ..base.metadata import Facts, read_facts
from ..base.schema import schema_of
from ..ledger import append_line
from ..read.damage import damaged_lists
from ..read.recording import Recording
from ..segments.hot import HotRead, last_ns, read_hot
from ..segments.sealing import write_segment
from ..segments.segment_list import is_list_whole, rebuild_list
from ..segments.segments import MAP_NAMES, note_unlisted, noted_segments, read_ledgers


def highest_number(directory: Path) -> int:
    """The highest number that a segment has or had; 0 where there is none. What retention removed
    may have left no file."""
    folders = [*(directory / kind for kind in KINDS), *(directory / MAPS).glob("*")]
    return max(
        [
            read_facts(directory).dropped_through,
            *(number for kind in KINDS for number in hot_numbers(directory, kind)),
            *(number for folder in folders for number in sealed_numbers(folder)),
        ]
    )


def note_damage(directory: Path, facts: Facts) -> None:
    """Note the damage of files that a writer replaces or appends to, as they will no longer show
    it. A damaged list of segments is rebuilt, with lines of lost segments. ResultsError where the
    disk refuses."""
    lock, _ = read_lock(directory, is_signed=facts.is_signed)
    ledgers = read_ledgers(directory)
    is_whole = is_list_whole(
        directory, ledgers[SEGMENTS], lock, facts.dropped_through, is_signed=facts.is_signed
    )
    for damage_of_list in list(damaged_lists(directory, facts, lock=lock, ledgers=ledgers)):
        if not damage_of_list.stays:
            _note(directory, loss_of("damaged", words=str(damage_of_list)))
    if not is_whole:
        rebuild_list(directory)


def recover(directory: Path, facts: Facts, alive_ns: int, now_ns: int) -> None:
    """Seal what is hot; end a session that was not ended, and note the gap since.

    Args:
        facts: changed where a session is ended, not written. alive_ns: when the writer was last
        known to live. now_ns: when what comes
            next begins; where the clock was set back in between that is earlier, and there is no
            gap.
    ResultsError where the disk refuses; everything is then as before.
    """
    lost = list(_lost_hot(directory))
    last = None
    for number in sorted({number for kind in KINDS for number in hot_numbers(directory, kind)}):
        sealed_ns = _seal_left(directory, number, alive_ns)
        last = max((time_ns for time_ns in (last, sealed_ns) if time_ns is not None), default=None)
    for loss in lost:
        _note(directory, loss)
    session = facts.sessions[-1] if facts.sessions else None
    if session is None or session["until_ns"] is not None:
        return
    begun = session["from_ns"] or 0
    until = session["until_ns"] = max(
        begun, (last or -1) + 1, alive_ns if begun <= alive_ns <= max(now_ns, last or 0) else 0
    )
    # one before it may reach further, where the clock was set back in between
    until = max(until, *(session["until_ns"] or 0 for session in facts.sessions))
    if until >= now_ns:
        return
    words = "the recorder was ended without closing the recording"
    _note(directory, loss_of("gap", "", until, now_ns, words=words))


def _lost_hot(directory: Path) -> Iterator[Mapping[str, Any]]:
    """Losses of hot files that are missing, or cut at the end of an append, so that the segments
    sealed of them do not show it."""
    recording = Recording(directory)
    for kind in KINDS:
        for path, _, loss in recording.damaged_hot(kind):
            is_torn = path.exists() and read_hot(path, schema_of(kind)).dropped
            if loss and not is_torn:
                yield {name: value for name, value in loss.items() if name != "notes"}


def _seal_left(directory: Path, number: int, alive_ns: int) -> int | None:
    """Seal the hot files of a number, unless that was done already, and remove them. Returns the
    last time in them."""
    batches: dict[Kind, list[Any]] = {"events": [], "samples": []}
    torn: dict[Kind, HotRead] = {}
    for kind in KINDS:
        path = hot_file(directory, number, kind)
        if sealed_file(directory, number, kind).exists() or not path.exists():
            continue
        with telling(path, "read what was left"):
            hot_read = read_hot(path, schema_of(kind))
        batches[kind] = list(hot_read.batches)
        if hot_read.dropped:
            torn[kind] = hot_read
    write_segment(directory, number, batches["events"], batches["samples"], {})
    note_unlisted(directory, number)
    for kind in KINDS:
        with telling(directory, "remove what was sealed"):
            remove(hot_file(directory, number, kind))
    last = last_ns([*batches["events"], *batches["samples"]])
    for kind, read in torn.items():
        words = f"the last {read.dropped} bytes of hot {kind} {number:06} were torn or damaged"
        # whole ones stood behind: all that came until the end of the writer is not known
        _note(
            directory,
            damage(kind, last_ns(read.batches), alive_ns, None, words)
            if read.damaged
            else loss_of("damaged", "", last, words=words),
        )
    return last


def _note(directory: Path, line: Mapping[str, Any]) -> None:
    with telling(directory / LOSSES, "note a loss"):
        append_line(directory / LOSSES, line)


def move_segments(origin: Path, directory: Path, take_number: Callable[[], int]) -> int:
    """Move all segments of events in `origin` into `directory`, each under a new number, on disk
    when this returns. Returns how many.

    ResultsError where one is not listed, or the disk refuses; those that were moved by then stay
    where they are, under their label.
    """
    lines = noted_segments(origin)
    numbers = sealed_numbers(origin / "events")
    if any(number not in lines for number in numbers):
        raise ResultsError("holds segments that its list does not name", where=origin)
    with telling(directory, "take in segments"):
        folders: set[Path] = set()
        for number in numbers:
            new = take_number()
            # maps first: one without its segment is not looked at
            for source, target in (
                *(
                    (map_file(origin, number, name), map_file(directory, new, name))
                    for name in MAP_NAMES
                ),
                (sealed_file(origin, number, "events"), sealed_file(directory, new, "events")),
            ):
                make_folders(target.parent)
                move(source, target)
                folders.add(target.parent)
            append_line(directory / SEGMENTS, {**lines[number], "number": new}, durable=True)
        for folder in folders:
            sync_folder(folder)
    return len(numbers)
