"""Answers from kept statistics where the events are gone or too many, joined with those of the
events that came since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import ResultsError
from ...files import refusal
from ...recording.base.intervals import joined, without
from ...recording.read.recording import Recording
from ..answers.answers import Answer
from ..engine.coverage import begun_ns, clipped, covered, sessions_of
from ..engine.snapshot import Snapshot, Span, snapshot
from ..engine.windows import Window, window_of
from ..language.catalogue import CATALOGUE, preference
from ..language.fields import QUANTIZED
from ..language.intervals import SECOND, columns_of
from ..language.names import Between, Filter, Statistic
from ..question import Question
from ..tiers import segment_maps
from ..tiers.heat import LONG_SCAN
from . import answer_counters, answer_events
from .coverage import Held, held_of, preferred
from .definitions import read_definitions
from .listed import listed, lost_files, unlisted
from .paths import DEFINITIONS, LIST, STATE, TIERS, Tier
from .sources import is_counted
from .state import read_state

MANY_MAPS = 600
"""Default maps beyond which what is kept is the quicker answer."""

_ROUND = (
    1,
    2,
    5,
    10,
    20,
    30,
    60,
    120,
    300,
    600,
    1200,
    1800,
    3600,
    7200,
    14400,
    21600,
    43200,
    86400,
    172800,
    432000,
    864000,
    1728000,
)


def span_of(recording: Recording) -> Span | None:
    """(first, last) ns that a recording can be asked about: from the first of its events, or of its
    samples where it has none, and of what was kept of those that are gone, until the last, or until
    it recorded, though nothing happened any more. Of one in which nothing happened at all, when it
    recorded, or the moment in which it began where that is all. None without any."""
    there = _there(recording)
    if there is not None and not recording.facts.dropped_through:
        return there  # what was kept is of whole seconds
    try:
        state = read_state(recording.path)
    except ResultsError:
        state = None
    kept = (
        [
            (each.first_ns, each.until_ns - 1)
            for each in state.statistics.values()
            if each.first_ns is not None and each.until_ns is not None and each.segments
        ]
        if state is not None
        else []
    )
    begins = [first for first, _ in kept] + ([] if there is None else [there[0]])
    if begins:
        return min(begins), max(last for _, last in kept) if there is None else there[1]
    sessions = sessions_of(snapshot(recording), 0)
    if sessions:
        return sessions[0][0], sessions[-1][1] - 1
    begun = begun_ns(recording)
    return None if begun is None else (begun, begun)


def _there(recording: Recording) -> Span | None:
    """As `span_of`, of the events and samples that are there."""
    first = recording.span()
    if first is None:
        return None
    last = max(first[1], max((each.last_ns for each in recording.sample_segments()), default=0))
    sessions = sessions_of(snapshot(recording), last) or []
    return first[0], max([last, *(until - 1 for _, until in sessions)])


@dataclass(frozen=True)
class RollUps:
    """Roll-ups that answer a question, joined with what is not kept.

    Attributes:
        asked: the statistic. held: the kept statistic. tiers: whose sums fit. notes: on the answer.
        window: widened to whole sums. there_ns: when the events or samples begin that are still
        there.
    """

    asked: Statistic
    held: Held
    tiers: tuple[Tier, ...]
    window: Window
    there_ns: int
    notes: tuple[str, ...]

    @property
    def is_counted(self) -> bool:
        """Whether they are of counters."""
        return is_counted(self.held.statistic, self.held.source)

    def answer(self) -> Answer:
        """The answer."""
        if self.is_counted:
            return answer_counters.answer(
                self.window, self.held, self.tiers, self.asked, self.there_ns, self.notes
            )
        return answer_events.answer(self.window, self.held, self.tiers, self.asked, self.notes)

    def maps(self, window: Window) -> segment_maps.MapFiles | None:
        """Default maps that are read for a window that remains, None where events are scanned."""
        return None if self.is_counted else answer_events.maps_in(window, self.asked)

    def remaining(self) -> list[Window]:
        """Windows of the events or samples that are read as well."""
        if self.is_counted:
            return [self.window] if self.window.snap.bounds(self.held.source) else []
        return answer_events.remaining(self.window, self.held)


def choose(recording: Recording, question: Question) -> RollUps | str:
    """The roll-ups that answer, or why none does."""
    if question.statistic is not None:
        return _choose(recording, question.statistic, question)
    if (question.low, question.high, question.buckets) != (None, None, None):
        return "roll-ups have no parts of a map"
    if not (recording.path / DEFINITIONS).is_file():
        return "the recording has no kept statistics"
    events = preference(snapshot(recording).sources)
    source = question.source or (events[0] if events else None)
    question = replace(question, source=source)
    for statistic in _statistics_of(question):
        found = _choose(recording, statistic, question)
        if isinstance(found, RollUps):
            return found
    return "no kept statistic answers this"


def _choose(recording: Recording, asked: Statistic, question: Question) -> RollUps | str:
    """As `choose`, for a statistic."""
    if not all((recording.path / name).is_file() for name in (DEFINITIONS, STATE)):
        return "the recording has no kept statistics"
    try:
        found = held_of(recording.path, asked, question.source)
    except ResultsError as error:
        return f"kept statistics can't be read: {error.message}"  # `trouble` says so
    dropped = recording.facts.dropped_through
    if not found:
        return "no kept statistic answers this"
    if not (dropped or any(not is_counted(each.statistic, each.source) for each in found)):
        return "all samples are there"
    events = snapshot(recording)
    samples = snapshot(recording, "samples")
    held = (
        found[0]
        if question.source is not None
        else preferred(found, asked, events.sources, samples.sources)
    )
    if held is None:
        return "the kept statistic is of another source"
    counted, interval_ns = is_counted(held.statistic, held.source), question.interval_ns
    snap = samples if counted else events
    window = window_of(
        snap,
        held.source,
        *question.span,
        question.interval_ns,
        question.columns,
        earlier=(held.first_ns, held.until_ns - 1),
    )
    if counted and interval_ns is None and window.interval_ns < SECOND:
        window = replace(window, interval_ns=SECOND)
    bounds = snap.bounds(held.source)
    there = held.until_ns if bounds is None else bounds[0]
    gone = bool(dropped) and max(window.first_ns, held.first_ns) < there
    if not gone and held.lost(TIERS):
        return "all events are there, and files of the kept statistic are damaged or missing"
    if not gone and (counted or not _many(window, held)):
        return f"all {'samples' if counted else 'events'} of this time are there{'' if counted else ', and few enough to scan'}"
    if interval_ns is not None and interval_ns % SECOND:
        return "columns are not whole seconds"
    if not counted and held.source in events.sources and _maps_do(window, asked):
        return "segment maps answer this on a finer grid"
    plan = _plan(window, held, free=interval_ns is None)
    columns_of(plan.window.first_ns, plan.window.until_ns - 1, plan.window.interval_ns)
    window = replace(plan.window, recorded=_recorded(plan, held, snap))
    notes = (f"from what was kept as {held.statistic}", *plan.notes)
    return RollUps(asked, held, plan.tiers, window, there, notes)


def _statistics_of(question: Question) -> Iterator[Statistic]:
    """Statistics that count the I/Os of a source, or add up their bytes, by y. None: of any
    source."""
    y, filters, source = question.y, question.filters, question.source
    ways = dict.fromkeys((tuple(filters), tuple(_as_named(each) for each in filters)))
    for entry in CATALOGUE.values():
        able = entry.sources and (source is None or not entry.only or source in entry.sources)
        asks = y in entry.breakdowns and all(each.field in entry.filters for each in filters)
        if able and asks and entry.weight == question.weight:
            group, _, name = entry.name.partition(".")
            yield from (Statistic(group, name, way, y) for way in ways)


def _as_named(condition: Filter) -> Filter:
    """A condition as a name has it: a range with an open end is a comparison."""
    match condition:
        case Filter(field, "=", (Between(int(low), None),)):
            return Filter(field, ">=", (Between(low, low + 1),))
        case Filter(field, "=", (Between(None, int(high)),)):
            return Filter(field, "<", (Between(high, high + 1),))
    return condition


def trouble(recording: Recording) -> tuple[str, ...]:
    """Why what was kept can't be asked, as a note; none where it can."""
    found = [
        f"{path.relative_to(recording.path)}: {words}" for path, words in damaged(recording.path)
    ]
    return (
        (
            f"damaged or missing files of kept statistics (iolab verify tells more): {'; '.join(found)}",
        )
        if found
        else ()
    )


def damaged(directory: Path) -> list[tuple[Path, str]]:
    """Files of what was kept that are damaged, missing or unexpected, as far as no file must be
    read for it."""
    there = {name: (directory / name).exists() for name in (DEFINITIONS, STATE, LIST)}
    if not any(there.values()):
        return []
    found = [
        (directory / name, "it is missing: what was kept can't be asked")
        for name in (DEFINITIONS, STATE)
        if not there[name]
    ]
    state = None
    for name in (DEFINITIONS, STATE):
        try:
            if name == STATE:
                state = read_state(directory)
            else:
                read_definitions(directory)
        except ResultsError as error:
            found.append((directory / name, f"what was kept can't be asked: {error.message}"))
    if not there[LIST]:
        # an older iolab had none
        is_ours = (
            state is not None
            and state.is_signed
            and any(each.segments for each in state.statistics.values())
        )
        return (
            [*found, (directory / LIST, "it is missing: nothing says which files there were")]
            if is_ours
            else found
        )
    if refused := refusal(directory / LIST):
        return [
            *found,
            (directory / LIST, f"it {refused}: the list of files is damaged"),
        ]
    known = listed(directory)
    if known.damaged:
        found.append(
            (
                directory / LIST,
                f"{known.damaged} line{'' if known.damaged == 1 else 's'} can't be believed",
            )
        )
    found += [(each.file.path, each.words) for each in lost_files(directory)]
    return [*found, *((path, "no line lists it") for path in unlisted(directory))]


@dataclass(frozen=True)
class _Plan:
    """How a question is answered: the window, widened to whole sums, and the tiers whose sums fit."""

    window: Window
    tiers: tuple[Tier, ...]
    notes: tuple[str, ...]


def _plan(window: Window, held: Held, *, free: bool) -> _Plan:
    """The plan for a window of which what was kept tells a part; `free`: whether the length of
    columns was left open."""
    tier = held.needed(window.first_ns)
    interval, notes = window.interval_ns, []
    if free:
        least = max(interval, tier.seconds * SECOND)
        interval = next(
            (
                each * SECOND
                for each in _ROUND
                if each * SECOND >= least and each % tier.seconds == 0
            ),
            -(-least // (tier.seconds * SECOND)) * tier.seconds * SECOND,
        )
    length = tier.seconds * SECOND if interval % (tier.seconds * SECOND) == 0 else SECOND
    first = (
        window.first_ns // length * length if window.first_ns < held.until_ns else window.first_ns
    )
    until = (
        -(-window.until_ns // length) * length
        if window.until_ns < held.until_ns
        else window.until_ns
    )
    if (first, until) != (window.first_ns, window.until_ns) and window.cut:
        notes.append(f"widened to whole sums of {tier.name}")
    tiers = tuple(held.usable(interval, first, until))
    begin = max(
        held.first_ns, min((held.begin_s(each) * SECOND for each in tiers), default=held.until_ns)
    )
    if first < begin and any(held.begin_s(each) * SECOND < begin for each in TIERS):
        notes.append(
            f"earlier times are kept by sums of {tier.name} alone: ask for columns of a multiple of that"
        )
    return _Plan(
        replace(window, first_ns=first, until_ns=until, interval_ns=interval),
        tiers,
        tuple(notes),
    )


def _many(window: Window, held: Held) -> bool:
    """Whether a scan of the events would take long, and what is kept fits the window."""
    whole = not window.first_ns % SECOND and (
        not window.until_ns % SECOND or window.until_ns >= held.until_ns
    )
    return (not window.cut or whole) and sum(
        each.sources[held.source] for each in window.segments()
    ) > LONG_SCAN


def _maps_do(window: Window, asked: Statistic) -> bool:
    """Whether the default maps can answer, and are not too many."""
    y = next((each for each in QUANTIZED if each == asked.breakdown), QUANTIZED[0])
    fields = asked.breakdown in (None, *segment_maps.FIELDS, *QUANTIZED) and y != "queue"
    # maps go as well, and what is kept may reach further back
    if window.first_ns <= (
        (window.snap.recording.facts.dropped or {}).get("maps_until_ns") or -(2**62)
    ):
        return False
    longer = replace(window, interval_ns=max(SECOND, window.interval_ns))
    if asked.entry.measure != "ops" or not fields:
        return False
    maps = segment_maps.find_maps(longer, asked.filters, y)
    return not isinstance(maps, str) and not maps.unmapped and len(maps.files) <= MANY_MAPS


def _recorded(found: _Plan, held: Held, snap: Snapshot) -> tuple[tuple[int, int], ...] | None:
    """When there is something of the window: kept, or recorded before it was kept and after the
    last of it."""
    window = found.window
    sessions = sessions_of(snap, max(window.until_ns, held.until_ns), held.source)
    kept = held.spans(found.tiers, snap)
    if kept is None:
        return None
    if sessions is None:
        # some of what was kept is lost, and nobody knows when the rest was recorded
        sessions = [window.span]
    before = clipped(covered(snap, window.until_ns, held.source) or [], (-(2**62), held.first_ns))
    after = clipped(sessions, (held.until_ns, 2**62))
    # a lost file ends with a whole sum, later than the last event that is kept
    recorded = without(joined([*before, *kept, *after]), joined(held.holes(found.tiers)))
    return tuple(clipped(recorded, (window.first_ns, window.until_ns)))
