# SPDX-License-Identifier: Apache-2.0
"""Notes of answers about several hosts: the host of a note, what each host lost, clocks that differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from iolab.base.units import format_quantity

from ..store.base.counts import LOST_KINDS, HeatCounts
from ..store.read.recording import Recording
from .answers.answers import Answer

NAMED = 3
"""Hosts that a note names."""
CLOCK_NS = 100_000_000
"""Difference of clocks that is noted."""
WORDS = {"lost": "records lost", "damaged": "records damaged", "unpaired": "records unmatched"}


def join_notes(notes: Iterable[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """Notes of hosts, each with the hosts that it is of, unless it is of all. notes: pairs of a host
    and its notes; a host may be there again."""
    hosts: dict[str, None] = {}
    of_note: dict[str, dict[str, None]] = {}
    for host, of_host in notes:
        hosts[host] = None
        for note in of_host:
            of_note.setdefault(note, {})[host] = None
    return tuple(
        note if len(named) == len(hosts) else f"{_names(list(named))}: {note}"
        for note, named in of_note.items()
    )


def _names(hosts: Sequence[str]) -> str:
    named = ", ".join(host or "a recording without a host" for host in hosts[:NAMED])
    return f"{named} and {len(hosts) - NAMED} more" if len(hosts) > NAMED else named


def losses_of_hosts(answers: Mapping[str, Sequence[Answer]]) -> tuple[str, ...]:
    """What each host lost, and how long it was not recorded, in a note for each of a few hosts. None
    for a single host: the answer says it."""
    if len(answers) < 2:
        return ()
    losses = [
        f"{host or 'a recording without a host'}: {', '.join(words)}"
        for host, of_host in answers.items()
        if (words := list(_losses(of_host)))
    ]
    if len(losses) > NAMED:
        more = len(losses) - NAMED
        return (*losses[:NAMED], f"{more} more host{'s' if more > 1 else ''} with losses or gaps")
    return tuple(losses)


def _losses(answers: Sequence[Answer]) -> Iterator[str]:
    for kind in LOST_KINDS:
        count = sum(_lost(answer, kind) for answer in answers)
        if count:
            yield f"{count} {WORDS[kind]}"
        elif any(at == kind for answer in answers for _, at, _ in answer.lost_at):
            yield f"an unknown number of {WORDS[kind]}"
    gap_ns = sum(_gap_ns(answer) for answer in answers)
    if gap_ns > 0:
        yield f"{format_quantity(gap_ns / 1e9, 's', 3)} of the time without a recording"


def _lost(answer: Answer, kind: str) -> int:
    counts = answer if isinstance(answer, HeatCounts) else answer.losses
    return 0 if counts is None else int(getattr(counts, kind))


def _gap_ns(answer: Answer) -> int:
    """How much of the time was not recorded; of a map, in whole columns."""
    if isinstance(answer, HeatCounts):
        return sum(past - first for first, past in answer.gaps) * answer.interval_ns
    return max(0, answer.until_ns - answer.first_ns - answer.covered_ns)


def clocks_of_hosts(recordings: Mapping[str, Recording]) -> tuple[str, ...]:
    """Notes on clocks of hosts outside archives that differ, or of which no difference is known.
    recordings: one for each host."""
    local = {host: item for host, item in recordings.items() if not item.in_archive}
    if len(local) < 2 or any(item.facts.clock != "realtime" for item in local.values()):
        return ()
    offsets = {host: _offset(item) for host, item in local.items()}
    unknown = [host for host, offset in offsets.items() if offset is None]
    differences = [
        f"{host} {format_quantity(abs(offset[0]) / 1e9, 's', 3)} {'ahead' if offset[0] > 0 else 'behind'}"
        for host, offset in offsets.items()
        if offset is not None and abs(offset[0]) - offset[1] >= CLOCK_NS
    ]
    notes = []
    if differences:
        more = f" and {len(differences) - NAMED} more" if len(differences) > NAMED else ""
        notes.append(
            f"times are those of each host's clock, which differ from the recording machine's: "
            f"{', '.join(differences[:NAMED])}{more}"
        )
    if len(unknown) > 1:
        notes.append("times are those of each host's clock, and how far these differ is not known")
    return tuple(notes)


def _offset(recording: Recording) -> tuple[int, int] | None:
    """(how far the clock was ahead, uncertainty) in ns when the last session began, None if unknown."""
    sessions = recording.facts.sessions
    offset = sessions[-1].get("clock_offset_ns") if sessions else None
    uncertainty = sessions[-1].get("clock_offset_uncertainty_ns") if sessions else None
    if not isinstance(offset, int):
        return None
    return offset, uncertainty if isinstance(uncertainty, int) else 0
