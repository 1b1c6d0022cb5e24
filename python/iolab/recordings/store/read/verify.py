# SPDX-License-Identifier: Apache-2.0
"""A recording checked whole: every file read, each finding with what is lost, and what can be
derived rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from iolab.base.errors import ResultsError
from iolab.base.integrity import Finding, Progress, Verification

from ..base.layout import (
    FACTS,
    KINDS,
    MAPS,
    SEGMENTS,
    replacing,
    sealed_file,
    sealed_numbers,
    telling,
)
from ..base.lock import read, take_lock, tell
from ..base.loss_log import when
from ..base.metadata import read_facts
from ..ledger import Part, check, damages
from ..segments.segment_list import rebuild_list
from ..segments.segments import (
    MAP_NAMES,
    coarse_maps_of_line,
    note_segment,
    noted_segments,
    part_of,
    read_list,
)
from .damage import damaged_lists
from .recording import Recording

BLOCK = 64
"""Files that are read between two words about how far it is."""

More = Callable[[Path, bool, Progress], Verification]
"""Checks what others keep in a recording: directory, whether to repair, progress."""


def verify_recording(
    path: Path,
    *,
    repair: bool = False,
    progress: Progress = lambda _done, _all: None,
    more: More | None = None,
) -> Verification:
    """Check all files of a recording.

    Args:
        repair: rebuild what can be derived: default maps, and lines of `segments.jsonl` from
        whole files. Nothing that was recorded is
            removed or changed. ResultsError where it is being recorded.
        more: what else it contains, such as kept statistics.
    """
    try:
        facts = read_facts(path)
    except ResultsError as error:
        if not (path / FACTS).is_file():
            raise
        return Verification(
            "recording",
            1,
            _size([path / FACTS]),
            0,
            (Finding(FACTS, "damaged", error.message, "what was recorded, when and where"),),
        )
    parts = list(_parts(path, facts.dropped_through))
    wrong: dict[Path, str] = {}
    for start in range(0, len(parts), BLOCK):
        wrong |= {part.path: words for part, words in damages(parts[start : start + BLOCK])}
        progress(min(start + BLOCK, len(parts)), len(parts))
    recording = Recording(path)
    findings = [
        *_of_segments(recording),
        *_of_maps(recording, wrong),
        *_of_hot(recording),
        *(
            Finding(
                damaged_list.path,
                damaged_list.kind,
                damaged_list.words,
                _told_by(damaged_list.path),
                is_derived=damaged_list.path == SEGMENTS
                or (damaged_list.stays and damaged_list.kind == "unexpected"),
            )
            for damaged_list in damaged_lists(path, recording.facts)
        ),
    ]
    if repair and any(finding.is_derived for finding in findings):
        findings = _repair(path, findings)
    other_files = [
        path_of_other
        for name in (
            FACTS,
            "lock",
            "segments.jsonl",
            "losses/losses.jsonl",
            "names/processes.jsonl",
            "marks.jsonl",
        )
        if (path_of_other := path / name).is_file()
    ] + sorted((path / "hot").glob("*.arrows"))
    kept = more(path, repair, progress) if more is not None else Verification("recording", 0, 0)
    present = [part.path for part in parts if part.path.exists()]
    return Verification(
        "recording",
        len(present) + len(other_files) + kept.files,
        _size([*present, *other_files]) + kept.size_bytes,
        sum(part.crc32 is None for part in parts) + kept.unverified,
        tuple(sorted((*findings, *kept.findings), key=lambda each: each.path)),
    )


def _size(paths: Sequence[Path]) -> int:
    size = 0
    for path in paths:
        with suppress(OSError):
            size += path.stat().st_size
    return size


def _parts(path: Path, through: int) -> Iterator[Part]:
    """Sealed files and default maps that are there, and joined maps."""
    content = read_list(path).content
    lines, joined = content.lines, content.firsts
    for kind in KINDS:
        yield from (
            part_of(path, lines.get(number, {}), number, kind)
            for number in sealed_numbers(path / kind)
            if number > through
        )
    for name in MAP_NAMES:
        yield from (
            part_of(path, lines.get(number, {}), number, name)
            for number in sealed_numbers(path / MAPS / name)
            if number not in joined
        )
    for number in joined:
        for name in MAP_NAMES:
            yield part_of(path, lines[number], number, name)
            for _, part in coarse_maps_of_line(path, lines[number], number, name):
                yield part


def _of_segments(recording: Recording) -> Iterator[Finding]:
    for kind in KINDS:
        for _, path, words, facts in recording.lost_segments(kind):
            yield Finding(
                _name(recording, path),
                "damaged" if path.exists() else "missing",
                words,
                _span(facts, kind),
            )


def _of_maps(recording: Recording, wrong: Mapping[Path, str]) -> Iterator[Finding]:
    through = recording.facts.dropped_through
    lost = {path for kind in KINDS for _, path, _, _ in recording.lost_segments(kind)}
    lines = noted_segments(recording.path)
    for path, words in recording.damaged_maps():
        # joined maps have the number of the last segment
        number = int(path.stem.split("-")[-1])
        is_lost = path.parent.parent.name == Path(MAPS).name
        events = sealed_file(recording.path, number, "events")
        is_derived = number > through and events.exists() and events not in lost
        yield Finding(
            _name(recording, path),
            "damaged" if path.exists() else "missing",
            words,
            "" if is_derived or not is_lost else _span(lines.get(number, {}), "events"),
            is_derived,
        )
    reported = {path for path, _ in recording.damaged_maps()}
    for path, words in wrong.items():
        if MAPS in str(path) and path not in reported:
            yield Finding(_name(recording, path), "damaged", words)


def _of_hot(recording: Recording) -> Iterator[Finding]:
    for kind in KINDS:
        for path, words, loss in recording.damaged_hot(kind):
            yield Finding(
                _name(recording, path),
                "damaged" if path.exists() else "missing",
                words,
                _span({"first_ns": loss.get("from_ns"), "last_ns": loss.get("until_ns")}, kind),
            )


def _name(recording: Recording, path: Path) -> str:
    return str(path.relative_to(recording.path))


def _told_by(name: str) -> str:
    return {
        "losses/losses.jsonl": "what was lost, of the lines that can't be believed",
        "marks.jsonl": "names of spans",
        "names/processes.jsonl": "command lines of processes",
        "lock": "until when everything is there",
    }.get(name, "")


def _span(held: Mapping[str, Any], kind: str) -> str:
    """The time that is lost, and how many events or samples, in words."""
    first, last = held.get("first_ns"), held.get("last_ns")
    counts = [
        f"{facts['events']} of {source}"
        for source, facts in (held.get("sources") or {}).items()
        if facts.get("events")
    ]
    span = (
        f"{when(first)} to {when(last)}"
        if isinstance(first, int) and isinstance(last, int)
        else f"{kind} of a time that is not known"
    )
    return f"{span}{f': {kind}, ' if counts else ''}{', '.join(counts)}"


def _repair(path: Path, found: list[Finding]) -> list[Finding]:
    """The findings after what can be derived was rebuilt."""
    from .summary import maps_of_file

    lock = take_lock(path)
    try:
        done: set[str] = set()
        lock_words = read(lock.fileno(), read_facts(path).is_signed)
        lines = noted_segments(path)
        for number in sorted(
            {
                int(Path(finding.path).stem)
                for finding in found
                if finding.is_derived and finding.path.startswith(MAPS)
            }
        ):
            events = sealed_file(path, number, "events")
            check([part_of(path, lines.get(number, {}), number, "events")])
            maps = maps_of_file(events)
            with telling(path, "make default maps again"):
                for name in MAP_NAMES:
                    place = path / MAPS / name / f"{number:06}.parquet"
                    with replacing(place) as temporary:
                        maps.write(temporary, name)
                    done.add(str(place.relative_to(path)))
                facts = {
                    key: value
                    for key, value in lines[number].items()
                    if key not in ("bytes", "digests")
                }
                note_segment(path, number, facts)
        if any(finding.is_derived and not finding.path.startswith(MAPS) for finding in found):
            rebuild_list(path)
            done |= {
                finding.path
                for finding in found
                if finding.is_derived and not finding.path.startswith(MAPS)
            }
        if lock_words.sizes:
            tell(
                lock,
                lock_words.until_ns,
                {**lock_words.sizes, SEGMENTS: (path / SEGMENTS).stat().st_size},
            )
        return [
            replace(finding, is_repaired=finding.is_derived and finding.path in done)
            for finding in found
        ]
    finally:
        lock.close()
