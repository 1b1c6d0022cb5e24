# SPDX-License-Identifier: Apache-2.0
"""What of the catalogue a recording or trace can answer, and why not the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from iolab.base.errors import IolabError

from ..store.base.metadata import periods_of
from ..store.read.recording import Recording
from ..store.read.trace import Trace
from ..store.write.ingest import source_of
from .engine.snapshot import Told, choose, fields_of, missing_fields, snapshot, told_by
from .language.catalogue import CATALOGUE, LAST, Entry, preference
from .language.fields import OF_DISKS
from .question import parse


@dataclass(frozen=True)
class Answering:
    """A source that can answer a statistic: whether it is counters, and the fields that it can
    tell."""

    source: str
    counted: bool
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Available:
    """Whether a statistic can be answered.

    Attributes:
        entry: the statistic. source: what answers, "" where nothing does; counted: whether these
        are counters. why_not: "" where something does. breakdowns: fields that it can be broken
        down by there; lacking: the others, with why not. sources: all that can answer when a
        question names them, the default first.
    """

    entry: Entry
    source: str
    counted: bool
    why_not: str
    breakdowns: tuple[str, ...]
    sources: tuple[Answering, ...] = ()
    lacking: Mapping[str, str] = field(default_factory=dict)


def sources_of(opened: Trace | Recording) -> tuple[list[str], list[str]]:
    """Sources of (events, samples) that are still there."""
    if isinstance(opened, Trace):
        format_name = opened.format or ("csv" if opened.columns else None) or opened.detect()
        return ([] if format_name is None else [source_of(format_name)]), []
    return snapshot(opened).sources, snapshot(opened, "samples").sources


def available(opened: Trace | Recording, has: Iterable[str] | None = None) -> list[Available]:
    """Every statistic, with what answers it there. `has`: the fields of a trace's summary, where
    that was made."""
    events, samples = sources_of(opened)
    fields = told_by(opened, events, has)
    places = _places_of(opened)
    availabilities = [
        _with_places(availability(entry, events, samples, fields), places)
        for entry in CATALOGUE.values()
    ]
    return (
        availabilities
        if isinstance(opened, Trace)
        else [_or_kept(opened, availability_) for availability_ in availabilities]
    )


def available_of_hosts(
    recordings: Sequence[Sequence[Available]], fields: Sequence[str]
) -> list[Available]:
    """Every statistic, with what answers it of several recordings: the fields that any of them has,
    and those of hosts. recordings: of each what `available` has."""
    return [_join_hosts(of_hosts, fields) for of_hosts in zip(*recordings, strict=True)]


def _join_hosts(of_hosts: Sequence[Available], fields: Sequence[str]) -> Available:
    able = [item for item in of_hosts if not item.why_not]
    if not able:
        return of_hosts[0]
    breakdowns = tuple(dict.fromkeys(name for item in able for name in item.breakdowns))
    sources: dict[str, Answering] = {}
    for source in (source for item in able for source in item.sources):
        before = sources.get(source.source)
        names = (*fields, *(before.fields if before else ()), *source.fields)
        sources[source.source] = replace(source, fields=tuple(dict.fromkeys(names)))
    return replace(
        able[0],
        breakdowns=(*fields, *breakdowns),
        sources=tuple(sources.values()),
        lacking={
            name: why
            for item in able
            for name, why in item.lacking.items()
            if name not in breakdowns
        },
    )


def _places_of(opened: Trace | Recording) -> tuple[str, ...]:
    """The fields of places that the recording has of any disk."""
    if isinstance(opened, Trace):
        return ()
    fields = {field for period in periods_of(opened.facts.origin) for field in period.places}
    return tuple(field for field in OF_DISKS if field in fields)


def _with_places(answering: Available, places: tuple[str, ...]) -> Available:
    """The recording, not the source, has the places of disks; `places`: those that it has."""
    entry = answering.entry
    if "device" not in entry.filters:
        return answering

    def replace_places(fields: tuple[str, ...], allowed: tuple[str, ...]) -> tuple[str, ...]:
        usable = (name for name in places if name in allowed and "device" in fields)
        return (*(name for name in fields if name not in OF_DISKS), *usable)

    reasons = {name: why for name, why in answering.lacking.items() if name not in OF_DISKS}
    if not answering.why_not:
        absent = (name for name in OF_DISKS if name in entry.breakdowns and name not in places)
        reasons |= {name: f"the {name} of no disk is known" for name in absent}
    return replace(
        answering,
        breakdowns=replace_places(answering.breakdowns, entry.breakdowns),
        lacking=reasons,
        sources=tuple(
            replace(source, fields=replace_places(source.fields, entry.filters))
            for source in answering.sources
        ),
    )


def _or_kept(recording: Recording, found: Available) -> Available:
    """Where nothing that is still there answers: what was kept of it."""
    if not found.why_not:
        return found
    # not where events answer: what it needs takes its time to load
    from .kept.coverage import is_counted
    from .query import roll_ups_of

    roll_ups = roll_ups_of(recording)
    if roll_ups is None:
        return found
    plain = parse(found.entry.name)
    try:
        kept = {
            name: answers
            for name in (None, *found.entry.breakdowns)
            if (answers := roll_ups.find_statistics(replace(plain, breakdown=name), None))
        }
    except IolabError:
        return found  # what is damaged answers nothing
    if not kept:
        return found
    first = next(iter(kept.values()))[0]
    counted, fields = (
        is_counted(first.statistic, first.source),
        tuple(name for name in kept if name is not None),
    )
    return replace(
        found,
        source=first.source,
        counted=counted,
        why_not="",
        breakdowns=fields,
        sources=(Answering(first.source, counted, fields),),
    )


def availability(
    entry: Entry, events: list[str], samples: list[str], known: Told | None = None
) -> Available:
    """What answers a statistic where there are events and samples of these sources. `known`: the
    fields of events, as far as known."""
    known = known or {}
    preferred = _choose(entry, events, samples, known)
    if preferred.why_not:
        return preferred
    counter = entry.counter
    names = (
        [
            name
            for name in preference(events, entry.sources)
            if not entry.only or name in entry.sources
        ]
        if entry.sources
        else []
    )
    fields = tuple(dict.fromkeys((*entry.filters, *entry.breakdowns)))
    sources = [Answering(name, False, fields_of(fields, name, known)) for name in names]
    if counter is not None and counter.source in samples:
        sources.append(Answering(counter.source, True, counter.breakdowns))
    return replace(
        preferred, sources=tuple(sorted(sources, key=lambda each: each.source != preferred.source))
    )


def _choose(entry: Entry, events: list[str], samples: list[str], known: Told) -> Available:
    counter = entry.counter
    counts = counter is not None and counter.source in samples
    if (
        counter is not None
        and counts
        and not any(name not in LAST for name in events if entry.sources)
    ):
        more = tuple(
            name
            for name in entry.breakdowns
            if entry.sources and events and name not in counter.breakdowns
        )
        # what the counters don't tell is asked of events
        first = preference(events, entry.sources)[0] if more else ""
        return Available(
            entry,
            counter.source,
            True,
            "",
            (*counter.breakdowns, *fields_of(more, first, known)),
            lacking=missing_fields(entry, more, first, known),
        )
    if counter is not None and not entry.sources:
        return Available(entry, "", False, f"there are no counters of {counter.source}", ())
    try:
        source, _ = choose(events, entry, None, None)
    except IolabError:
        sources = " or ".join([*entry.sources, *([counter.source] if counter else [])])
        return Available(entry, "", False, f"{sources} was not recorded", ())
    return Available(
        entry,
        source,
        False,
        "",
        fields_of(entry.breakdowns, source, known),
        lacking=missing_fields(entry, entry.breakdowns, source, known),
    )
