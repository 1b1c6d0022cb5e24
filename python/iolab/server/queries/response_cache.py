# SPDX-License-Identifier: Apache-2.0
"""Answers that were given before, as long as nothing that they depend on has changed.

An answer depends on its question and on the recording. An answer about a past time stays valid
until the recorder seals a segment, since all unsealed events are later. An answer about a recording
at rest stays valid.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TypeAlias

from ...errors import IolabError
from ...recording.base.layout import FACTS, HOT, KINDS, LOSSES, SEGMENTS
from ...recording.base.lock import LOCK
from ...recording.read.recording import Recording
from ...recording.read.trace import Trace
from ...recording.segments.segments import sealed_facts
from ...statistics.kept.paths import DEFINITIONS, STATE, TIERS
from ...statistics.language.intervals import SECOND
from ...statistics.tiers.readings import MARGIN_NS
from ..base.store import Opened, Store
from .query_params import Words, moment, recording_of
from .ranges import ranges_of

MOST_BYTES = 64 << 20
LARGEST = MOST_BYTES // 4
"""Bytes of one answer; what is larger is made anew each time."""
MOST = 2000
"""Answers, since questions take room as well."""
LONGEST_NS = TIERS[-1].seconds * SECOND
"""Of the sums that are kept."""

Written: TypeAlias = tuple[bytes, str]
"""An answer as it is sent: its bytes, and their media type."""

_MOMENTS = tuple(
    f"{which}{end}" for which in ("", "other_", "around_", "against_") for end in ("from", "to")
)


class Remembered:
    """The latest answers, up to a number of them and of bytes. Safe to use from several threads."""

    def __init__(
        self, most_bytes: int = MOST_BYTES, largest: int = LARGEST, most: int = MOST
    ) -> None:
        self._most_bytes, self._largest, self._most = most_bytes, largest, most
        self._held: OrderedDict[Hashable, tuple[Hashable, Written]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def answer(
        self,
        store: Store,
        path: Hashable,
        words: Words,
        ends: Sequence[str],
        make: Callable[[], Written],
    ) -> Written:
        """What was answered to the same question and still holds, or else what `make` answers.

        Args:
            path: what is asked, and in which form. ends: parameters that end the spans which the
            answer is about; where one is missing it
                is about all that comes.
        """
        try:
            found = _asked(store, words, ends)
        except IolabError:
            found = None  # `make` says what is wrong
        if found is None:
            return make()
        key, state = (path, found[0]), found[1]
        with self._lock:
            held = self._held.get(key)
            if held is not None and held[0] == state:
                self._held.move_to_end(key)
                return held[1]
        made = make()
        self._keep(key, state, made)
        return made

    def _keep(self, key: Hashable, state: Hashable, made: Written) -> None:
        with self._lock:
            before = self._held.pop(key, None)
            self._bytes -= 0 if before is None else len(before[1][0])
            if len(made[0]) > self._largest:
                return
            self._held[key] = state, made
            self._bytes += len(made[0])
            while self._bytes > self._most_bytes or len(self._held) > self._most:
                _, (_, gone) = self._held.popitem(last=False)
                self._bytes -= len(gone[0])


def _asked(store: Store, words: Words, ends: Sequence[str]) -> tuple[Hashable, Hashable] | None:
    """(the question with its moments as such, the state of what it is put to); None where that
    changes all the time."""
    name = recording_of(store, words)
    given = {moment: words[moment] for moment in _MOMENTS if moment in words}
    span = (0, 0) if all(text.isdecimal() for text in given.values()) else store.ends(name)
    moments = {each: moment(text, *span) for each, text in given.items()}
    until = max(moments[end] for end in ends) if all(end in moments for end in ends) else None
    if "other_to" in ends:
        ranges = ranges_of(store, words)
        # they end with their last column
        until = max(ranges.from_ns, ranges.other_from_ns) + ranges.length_ns
    state = _state(store.open(name), until)
    rest = {word: words[word] for word in words if word not in moments}
    return (
        None
        if state is None
        else (
            (tuple(sorted(moments.items())), tuple(sorted({**rest, "recording": name}.items()))),
            state,
        )
    )


def _state(opened: Opened, until_ns: int | None) -> Hashable | None:
    """What answers up to a moment depend on (None: to the very end); None where that changes all
    the time."""
    if isinstance(opened, Trace):
        return _stamp(opened.path)
    lasting = tuple(
        _stamp(opened.path / name) for name in (FACTS, SEGMENTS, LOSSES, *KINDS, DEFINITIONS, STATE)
    )
    if not any((opened.path / HOT).glob("*")):
        return lasting, _stamp(opened.path / LOCK)
    return lasting if until_ns is not None and _is_over(opened, until_ns) else None


def _is_over(recording: Recording, until_ns: int) -> bool:
    """Whether all that is not sealed yet came later. What was sealed is looked at first: it is
    known without reading what is hot."""
    if (recording.path / STATE).is_file():
        # answers from what is kept are widened to whole sums
        until_ns = -(-until_ns // LONGEST_NS) * LONGEST_NS
    sealed = [
        facts["last_ns"]
        for _, _, facts in sealed_facts(recording.path, "events")
        if facts["last_ns"] is not None
    ]
    read = _last_readings(recording)
    if not (sealed or read) or until_ns > max(sealed or read) + 1:
        return False
    # a counter tells of the time before its next reading, unless that comes too late to be asked
    # for
    if any(last < until_ns <= last + MARGIN_NS for last in read):
        return False
    return all(
        segment.first_ns >= until_ns
        for segment in (*recording.segments(), *recording.sample_segments())
        if segment.kind == "hot"
    )


def _last_readings(recording: Recording) -> list[int]:
    """When each source of counters was last read, of what is sealed (ns)."""
    found: dict[str, int] = {}
    for _, _, facts in sealed_facts(recording.path, "samples"):
        for source, each in facts["sources"].items():
            found[source] = max(found.get(source, each["last_ns"]), each["last_ns"])
    return list(found.values())


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What tells one state of a file or directory from the next; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
