# SPDX-License-Identifier: Apache-2.0
"""Kept statistics of a recording, checked as a whole; files are rebuilt if their events exist."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

from iolab.base.errors import IolabError
from iolab.base.integrity import Finding, Progress, Verification

from ...store.base.lock import take_lock
from ...store.base.loss_log import when
from ...store.ledger import Part, damages
from ...store.read.recording import Recording
from ...store.read.verify import verify_recording
from ..question import SECOND, parse
from . import recorded
from .aggregate import Making, sealed_after
from .coverage import is_counted
from .files import listed, tables
from .files.definitions import read_definitions, read_state
from .files.paths import DEFINITIONS, LIST, STATE, TIERS, File, Tier, folder_name, is_folder

BLOCK = 64


def verify(
    path: Path, *, repair: bool = False, progress: Progress = lambda _done, _all: None
) -> Verification:
    """Check a recording with all that was kept of it; see `recording.verify.verify_recording`."""
    return verify_recording(path, repair=repair, progress=progress, more=_verify_kept)


def _verify_kept(path: Path, repair: bool, progress: Progress) -> Verification:
    parts = _parts(path)
    for start in range(0, len(parts), BLOCK):
        damages(parts[start : start + BLOCK])
        progress(min(start + BLOCK, len(parts)), len(parts))
    before = recorded.find_damage(path)
    if repair and not listed.is_whole(path):
        with take_lock(path):
            listed.rebuild_list(path)
    remaining = recorded.find_damage(path)
    lost = {lost_file.file.path: lost_file for lost_file in listed.lost_files(path)}
    findings = [
        Finding(
            str(place.relative_to(path)),
            "damaged" if place == path / LIST and place.exists() else "missing",
            words,
            is_derived=True,
            is_repaired=True,
        )
        for place, words in before
        if (place, words) not in remaining
    ]
    for place, words in remaining:
        loss = lost.get(place)
        span = (
            f"{when(loss.first_s * SECOND)} to {when(loss.until_s * SECOND)} of what was kept in {place.parent.name}"
            if (loss is not None and loss.first_s is not None and loss.until_s is not None)
            else ""
        )
        kind: Literal["damaged", "missing", "unexpected"] = (
            "unexpected" if words == "no line lists it" else "damaged"
        )
        kind = kind if place.exists() else "missing"
        is_derived = loss is not None and _is_covered(path, loss.tier, loss.file)
        done = repair and is_derived and loss is not None and _remake(path, loss.tier, loss.file)
        findings.append(
            Finding(
                str(place.relative_to(path)),
                kind,
                words,
                "" if is_derived else span,
                is_derived,
                done,
            )
        )
    existing = [part.path for part in parts if part.path.exists()] + [
        path / name for name in (DEFINITIONS, STATE, LIST) if (path / name).is_file()
    ]
    size = sum(place.stat().st_size for place in existing)
    return Verification(
        "recording", len(existing), size, sum(part.crc32 is None for part in parts), tuple(findings)
    )


def _parts(path: Path) -> list[Part]:
    return [
        listed.part_of(path, place)
        for tier in TIERS
        for place in sorted((path / "histograms" / tier.name).glob("*/*-*.parquet"))
        if is_folder(place.parent.name)
    ]


def _name_of(path: Path, file: File) -> str | None:
    """The statistic of a file, as far as definition and state say."""
    with suppress(IolabError):
        state, definitions = read_state(path), read_definitions(path)
        if state is not None and definitions is not None:
            names = (name for name in state.statistics if name in definitions.statistics)
            return next(
                (name for name in names if folder_name(name) == file.path.parent.name), None
            )
    return None


def _is_covered(path: Path, tier: Tier, file: File) -> bool:
    """Whether all events that a file was made of exist and are whole; counters need what was read
    before, so they are not rebuilt."""
    name, state = _name_of(path, file), None
    if name is None:
        return False
    with suppress(IolabError):
        state = read_state(path)
    source = None if state is None else state.statistics[name].source
    if source is None or is_counted(parse(name), source):
        return False
    recording = Recording(path)
    existing = {
        sealed.number
        for _, sealed in sealed_after(recording, file.first - 1)
        if sealed.events is not None
    }
    numbers = set(range(file.first, file.last + 1))
    return numbers <= existing and not damages(
        [segment.part for segment in recording.segments() if segment.number in numbers]
    )


def _remake(path: Path, tier: Tier, file: File) -> bool:
    """Rebuild a damaged file from the events."""
    name = _name_of(path, file)
    state, definitions = read_state(path), read_definitions(path)
    if name is None or state is None or definitions is None:
        return False
    kept, definition, statistic = state.statistics[name], definitions.statistics[name], parse(name)
    assert kept.source is not None
    lock = take_lock(path)
    try:
        recording, sums = Recording(path), []
        for segment in recording.segments():
            if file.first <= segment.number <= file.last and kept.source in segment.sources:
                with Making(recording, segment) as events:
                    since = (
                        kept.first_ns
                        if kept.first_ns is not None and segment.first_ns < kept.first_ns
                        else None
                    )
                    sums.append(
                        events.sums(
                            statistic,
                            kept.source,
                            since_ns=since,
                            left_out=(*definition.left_out, *kept.suspended),
                        )
                    )
        if not sums:
            return False
        total = tables.add(sums)
        total = total if tier is TIERS[0] else total.longer(tier.seconds)
        return listed.write(file.path, [total], name, kept.source) is not None
    finally:
        lock.close()
