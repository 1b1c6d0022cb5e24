# SPDX-License-Identifier: Apache-2.0
"""Sums of kept statistics, which remain where events were deleted, and are few where events are
many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from iolab.base.errors import ResultsError

from ...store.base.counts import HeatCounts, sum_by_key
from ...store.base.grids import WITHOUT, Grid, Linear, LogLinear
from ...store.base.intervals import join, without
from ...store.ledger import DamagedError
from ...store.ledger import Part as File
from ...store.read.recording import Recording
from ..engine.engine import BY, Engine, int64s
from ..engine.snapshot import Snapshot, clip, covered_spans, deleted_segments, sessions_of, snapshot
from ..engine.windows import Window, window_of
from ..language.catalogue import CATALOGUE, preference
from ..language.fields import UTILIZATION
from ..plan import Bounds, Cost, Frame, Growth, Numbers, Part, Reading, Span, Sums, files_part
from ..question import SECOND, Between, Filter, Question, Statistic, columns_of
from ..tiers import counters
from ..tiers.readings import Shares, Spread
from ..tiers.segment_maps import LONG_SCAN, SegmentMaps
from .coverage import Held, choose_kept, held_of, is_counted
from .files.listed import part_of
from .files.paths import BITS, MOST_KEYS, NO_STATISTICS, TIERS, Tier, form_of, has_statistics

MANY_MAPS = 600
"""Default maps beyond which what is kept is the quicker answer."""

_MINUTES, _HOURS, _DAYS = 60, 3600, 86400
_ROUND = (
    *(1, 2, 5, 10, 20, 30),
    *(_MINUTES * count for count in (1, 2, 5, 10, 20, 30)),
    *(_HOURS * count for count in (1, 2, 4, 6, 12)),
    *(_DAYS * count for count in (1, 2, 5, 10, 20)),
)
"""Lengths of columns in seconds."""

_BUCKETS = 2**32
"""Buckets of a column, at most."""

COLUMN = "(time_s * 1000000000 - $base) // $interval"
"""In SQL: the column of time of a row."""

_LENGTHS = {"1s": "a second", "1m": "a minute", "1h": "an hour"}
_SUMS = ("amount", "over", "covered", "broken")


@dataclass(frozen=True)
class RollUpFrame(Frame):
    """An answer that roll-ups are a part of. held: the kept statistic. lengths: tiers of it with
    sums that fit the columns. exists_ns: first event or sample that exists."""

    held: Held | None = None
    lengths: tuple[Tier, ...] = ()
    exists_ns: int = 0

    @property
    def kept_statistic(self) -> Held:
        """The kept statistic."""
        assert self.held is not None
        return self.held

    @property
    def is_counted(self) -> bool:
        """Whether it is of counters."""
        return is_counted(self.kept_statistic.statistic, self.kept_statistic.source)

    @property
    def roll_up_spans(self) -> list[Span]:
        """What roll-ups cover."""
        window, kept = self.window, self.kept_statistic
        span = self.full_span._replace(
            last=kept.kept.through, from_ns=max(window.first_ns, kept.first_ns)
        )
        if self.is_counted:
            column = max(0, -(-(self.exists_ns - window.base_ns) // window.interval_ns))
            start_ns = window.base_ns + column * window.interval_ns
            span = self.full_span._replace(until_ns=min(window.until_ns, start_ns))
        return [span] if span.from_ns < span.until_ns else []


class RollUps:
    """Kept statistics of a recording."""

    name = "roll-ups"

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    @property
    def has_statistics(self) -> bool:
        """Whether the recording has kept statistics."""
        return has_statistics(self._recording.path)

    @property
    def maps(self) -> SegmentMaps:
        """The default maps of the recording."""
        return SegmentMaps(self._recording)

    def find_statistics(self, asked: Statistic, source: str | None) -> list[Held]:
        """Kept statistics that have the answer, as `held_of`."""
        return held_of(self._recording.path, asked, source)

    def frame(self, question: Question) -> Frame | str:
        """As `Tier.frame`: where events were deleted, or a scan takes long."""
        if question.statistic is not None:
            return self._frame(question, question.statistic)
        if (question.low, question.high, question.buckets) != (None, None, None):
            return "roll-ups have no parts of a map"
        if not self.has_statistics:
            return NO_STATISTICS
        events = preference(snapshot(self._recording).sources)
        source = question.source or (events[0] if events else None)
        question = replace(question, source=source)
        for statistic in _statistics_of(question):
            frame = self._frame(question, statistic)
            if isinstance(frame, Frame):
                return frame
        return "no kept statistic answers this"

    def covers(self, frame: Frame) -> Sequence[Span] | str:
        """As `Tier.covers`. Of counters a column is of roll-ups unless samples have all of it."""
        if not isinstance(frame, RollUpFrame):
            return "roll-ups have buckets and ends of their own"
        return frame.roll_up_spans

    def cost(self, frame: Frame, span: Span) -> Cost | None:
        """As `Tier.cost`. A file has one sum of many segments."""
        assert isinstance(frame, RollUpFrame)
        if [span] != frame.roll_up_spans:
            return None
        kept = frame.kept_statistic
        files = [part_of(kept.directory, file.path) for _, file in kept.files(frame.lengths)]
        return Cost(len(files), sum(file.bytes or 0 for file in files))

    def read(self, frame: Frame, spans: Sequence[Span]) -> RollUpReading:
        assert isinstance(frame, RollUpFrame)
        return RollUpReading(frame)

    def parts(self, frame: Frame, spans: Sequence[Span]) -> Sequence[Part]:
        """As `Tier.parts`: by the length of sums."""
        # not for answers: it needs pyarrow
        from .files.tables import about

        assert isinstance(frame, RollUpFrame)
        parts = []
        for tier in frame.lengths:
            files = []
            for length, file in frame.kept_statistic.files(frame.lengths):
                content = about(file.path) if length is tier else None
                if content is not None:
                    end_s = content.last_s + tier.seconds
                    files.append((file.path, (content.first_s * SECOND, end_s * SECOND)))
            window = frame.window
            files = [
                (path, time)
                for path, time in files
                if time[0] < window.until_ns and time[1] > window.first_ns
            ]
            if files:
                paths, times = [path for path, _ in files], [time for _, time in files]
                parts.append(files_part(f"roll-ups of {tier.name}", paths, times))
        return parts

    def _frame(self, question: Question, asked: Statistic) -> Frame | str:
        """As `frame`, for a statistic."""
        recording = self._recording
        if not self.has_statistics:
            return NO_STATISTICS
        try:
            candidates = self.find_statistics(asked, question.source)
        except ResultsError as error:
            return f"kept statistics can't be read: {error.message}"  # `trouble` says so
        dropped = recording.facts.dropped_through
        if not candidates:
            return "no kept statistic answers this"
        if not (
            dropped
            or any(
                not is_counted(candidate.statistic, candidate.source) for candidate in candidates
            )
        ):
            return "all samples are there"
        events = snapshot(recording)
        samples = snapshot(recording, "samples")
        kept = (
            candidates[0]
            if question.source is not None
            else choose_kept(candidates, asked, events.sources, samples.sources)
        )
        if kept is None:
            return "the kept statistic is of another source"
        counted, interval_ns = is_counted(kept.statistic, kept.source), question.interval_ns
        snap = samples if counted else events
        window = window_of(
            snap,
            kept.source,
            *question.span,
            question.interval_ns,
            question.columns,
            earlier=(kept.first_ns, kept.until_ns - 1),
        )
        if counted and interval_ns is None and window.interval_ns < SECOND:
            window = replace(window, interval_ns=SECOND)
        bounds = snap.bounds(kept.source)
        exists_ns = kept.until_ns if bounds is None else bounds[0]
        is_deleted = bool(dropped) and max(window.first_ns, kept.first_ns) < exists_ns
        if not is_deleted and kept.lost(TIERS):
            return "all events are there, and files of the kept statistic are damaged or missing"
        if not is_deleted and (counted or not _many(window, kept)):
            return f"all {'samples' if counted else 'events'} of this time are there{'' if counted else ', and few enough to scan'}"
        if interval_ns is not None and interval_ns % SECOND:
            return "columns are not whole seconds"
        if (
            not counted
            and kept.source in events.sources
            and _maps_answer(self.maps, window, question.with_statistic(asked))
        ):
            return "segment maps answer this on a finer grid"
        wide = _widen(window, kept, is_free=interval_ns is None)
        columns_of(wide.window.first_ns, wide.window.until_ns - 1, wide.window.interval_ns)
        frame = RollUpFrame(
            replace(question.with_statistic(asked), source=kept.source),
            replace(wide.window, earlier=dropped > kept.kept.through),
            (f"from what was kept as {kept.statistic}", *wide.notes),
            is_coarse=True,
            held=kept,
            lengths=wide.lengths,
            exists_ns=exists_ns,
        )
        maps_ns = self._later_maps_ns(frame)
        window = replace(
            frame.window,
            recorded=_recorded_spans(wide, kept, snap, maps_ns),
            earlier=maps_ns is not None,
        )
        return replace(frame, recorded=window)

    def _later_maps_ns(self, frame: RollUpFrame) -> int | None:
        """From when (ns) on segment maps have deleted I/Os that are later than the last kept sum;
        None where they have none."""
        kept, window = frame.kept_statistic, frame.window
        files = self.maps.files(frame) if window.earlier else ""
        if isinstance(files, str):
            return None
        deleted, through = deleted_segments(window.snap), kept.kept.through
        numbers = deleted.later_than(through)
        later = [file for file in files.files if file.number in numbers]
        if not later:
            return None
        is_next = later[0].first <= through + 1
        return kept.until_ns if is_next else deleted.first_ns_of(later[0].number)


def _statistics_of(question: Question) -> Iterator[Statistic]:
    """Statistics that count the I/Os of a source, or add up their bytes, by y. None: of any
    source."""
    y, filters, source = question.y, question.filters, question.source
    ways = dict.fromkeys((tuple(filters), tuple(_as_named(condition) for condition in filters)))
    for entry in CATALOGUE.values():
        able = entry.sources and (source is None or not entry.only or source in entry.sources)
        asks = y in entry.breakdowns and all(
            condition.field in entry.filters for condition in filters
        )
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


@dataclass(frozen=True)
class _Widened:
    """A window that is widened to whole sums, and the tiers with sums that fit."""

    window: Window
    lengths: tuple[Tier, ...]
    notes: tuple[str, ...]


def _widen(window: Window, held: Held, *, is_free: bool) -> _Widened:
    """The window of an answer that roll-ups are a part of. is_free: whether the length of columns is
    open."""
    tier = held.finest_tier(window.first_ns)
    interval, notes = window.interval_ns, []
    if is_free:
        least = max(interval, tier.seconds * SECOND)
        interval = next(
            (
                length_s * SECOND
                for length_s in _ROUND
                if length_s * SECOND >= least and length_s % tier.seconds == 0
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
        held.first_ns, min((held.begin_s(tier) * SECOND for tier in tiers), default=held.until_ns)
    )
    if first < begin and any(held.begin_s(tier) * SECOND < begin for tier in TIERS):
        notes.append(
            f"earlier times are kept by sums of {tier.name} alone: ask for columns of a multiple of that"
        )
    return _Widened(
        replace(window, first_ns=first, until_ns=until, interval_ns=interval),
        tiers,
        tuple(notes),
    )


def _many(window: Window, held: Held) -> bool:
    """Whether a scan of the events would take long, and what is kept fits the window."""
    is_whole = not window.first_ns % SECOND and (
        not window.until_ns % SECOND or window.until_ns >= held.until_ns
    )
    return (not window.cut or is_whole) and sum(
        segment.sources[held.source] for segment in window.segments()
    ) > LONG_SCAN


def _maps_answer(maps: SegmentMaps, window: Window, question: Question) -> bool:
    """Whether segment maps can answer, and are not too many."""
    # maps are deleted as well, and roll-ups may go back further
    deleted_ns = (window.snap.recording.facts.dropped or {}).get("maps_until_ns") or -(2**62)
    if question.y == "queue" or window.first_ns <= deleted_ns:
        return False
    longer = replace(window, interval_ns=max(SECOND, window.interval_ns))
    files = maps.files(Frame(question, longer))
    return not isinstance(files, str) and not files.unmapped and len(files.files) <= MANY_MAPS


def _recorded_spans(
    wide: _Widened, held: Held, snap: Snapshot, maps_ns: int | None
) -> tuple[tuple[int, int], ...] | None:
    """When there is something of the window: kept, or recorded before it was kept and after the
    last of it. maps_ns: as `_later_maps_ns`."""
    window = wide.window
    sessions = sessions_of(snap, max(window.until_ns, held.until_ns), held.source)
    kept = held.spans(wide.lengths, snap)
    if kept is None:
        return None
    if sessions is None:
        # some of what was kept is lost, and nobody knows when the rest was recorded
        sessions = [window.span]
    existing = covered_spans(snap, max(window.until_ns, held.until_ns), held.source) or []
    before = clip(existing, (-(2**62), held.first_ns))
    if snap.recording.facts.dropped_through <= held.kept.through:
        after = clip(sessions, (held.until_ns, 2**62))
    else:
        after = clip(existing, (held.until_ns, 2**62))
        if maps_ns is not None:
            after += clip(sessions, (max(maps_ns, held.until_ns), 2**62))
    # a lost file ends with a whole sum, later than the last event that is kept
    recorded = without(join([*before, *kept, *after]), join(held.holes(wide.lengths)))
    return tuple(clip(recorded, (window.first_ns, window.until_ns)))


class RollUpReading(Reading):
    """Roll-ups while they are read."""

    def __init__(self, frame: RollUpFrame) -> None:
        self._frame, self._held, self._window = frame, frame.kept_statistic, frame.window

    def bounds(self) -> Sequence[Bounds]:
        return [Bounds(None, width) for width in self.widths(self._frame.lengths)]

    def sums(self, grid: Grid | None) -> Sequence[Sums]:
        if self._frame.is_counted:
            return self._growth()
        if self._frame.question.y is None:
            return self._numbers()
        return [self._counts_of(width) for width in self.widths(self._frame.lengths)]

    def widths(self, lengths: Sequence[Tier]) -> list[int]:
        """Widths of the equal buckets of the sums of some lengths; 1 where they have none."""
        return list(_by_width(self._held, lengths))

    def are_rows_unique(self) -> bool:
        """Whether each row is of a column of its own: then none are to be added up."""
        files = self._held.files(self._frame.lengths)
        return all(tier.seconds * SECOND == self._window.interval_ns for tier, _ in files)

    def ask(self, sql: str, lengths: Sequence[Tier], width: int) -> dict[str, Any]:
        """Columns of an SQL query on `kept`, the rows of some lengths with buckets of a width. It may
        use `COLUMN` and the conditions of `_inside`."""
        with Engine(self._window.snap.place) as engine:
            engine.files("kept", _by_width(self._held, lengths)[width])
            return engine.ask(sql, self._bound)

    @property
    def _inside(self) -> str:
        """In SQL: whether a row is in the window."""
        window = self._window
        conditions = ["time_s >= $from_s"] if window.cuts_first else []
        conditions += ["time_s < $until_s"] if window.cuts_until else []
        return " AND ".join(conditions) or "true"

    @property
    def _bound(self) -> dict[str, int]:
        window = self._window
        bound = {"base": window.base_ns, "interval": window.interval_ns}
        if window.cuts_first:
            bound["from_s"] = -(-window.first_ns // SECOND)
        if window.cuts_until:
            bound["until_s"] = -(-window.until_ns // SECOND)
        return bound

    def _counts_of(self, width: int) -> HeatCounts:
        question, window, is_unique = self._frame.question, self._window, self.are_rows_unique()
        y, weight = question.y, question.weight
        assert y is not None
        columns = {"n": "count"} if weight == "count" else {"n": "amount", "ios": "count"}
        amounts = ", ".join(
            f'"{column}" AS {name}' if is_unique else f'CAST(sum("{column}") AS BIGINT) AS {name}'
            for name, column in columns.items()
        )
        group = "" if is_unique else "GROUP BY ALL"
        cells = self.ask(
            f'SELECT {BY} {COLUMN} AS c, "index" AS b, {amounts} FROM kept WHERE {self._inside} {group}',
            self._frame.lengths,
            width,
        )
        bucket, amount = int64s(cells["b"]), int64s(cells["n"])
        ios = int64s(cells["ios" if weight != "count" else "n"])
        is_without_value = bucket == WITHOUT
        events, without_y = int(ios[~is_without_value].sum()), int(ios[is_without_value].sum())
        # I/Os that moved nothing are in no cell
        is_shown = ~is_without_value & (amount > 0)
        # one number for column and bucket, so that millions of cells are sorted once
        key = (int64s(cells["c"])[is_shown] << 32) | bucket[is_shown]
        amount = amount[is_shown]
        order = np.argsort(key, kind="stable")
        key, amount = key[order], amount[order]
        if len(key) and (key[1:] == key[:-1]).any():
            key, amount = sum_by_key(key, amount)
        column, index = key >> 32, key & (_BUCKETS - 1)
        first = int(column[0]) if len(column) else 0
        grid = Linear(0, width) if y == "offset" else LogLinear(BITS)
        return HeatCounts(
            y,
            window.base_ns + first * window.interval_ns,
            window.interval_ns,
            grid,
            column - first,
            index,
            amount,
            weight,
            events=events,
            without_y=without_y,
        )

    def _numbers(self) -> Sequence[Sums]:
        question, lengths = self._frame.question, self._frame.lengths
        key = '"key"' if question.breakdown is not None else "CAST(NULL AS VARCHAR)"
        is_map = form_of(self._held.statistic, counted=False) == "map"
        sql = (
            f"SELECT {BY} {COLUMN} AS c, {key} AS k, "
            f'CAST(sum("{"count" if is_map else "amount"}") AS BIGINT) AS n, '
            f"0 AS lacking FROM kept WHERE {self._inside} GROUP BY ALL"
        )
        parts = [self.ask(sql, lengths, width) for width in self.widths(lengths)]
        notes: tuple[str, ...] = ()
        if question.breakdown is not None and any(
            np.ma.getmaskarray(part["k"]).any() for part in parts
        ):
            notes = (
                f"names beyond the {MOST_KEYS:,} largest of a segment are in the rest: how many they are is not known, and a "
                "name that was among them for a time is counted too low",
            )
        return [Numbers(part, notes) for part in parts]

    def _growth(self) -> Sequence[Sums]:
        statistic, window, kept = self._frame.question.statistic, self._window, self._held
        assert statistic is not None
        lengths = self._frame.lengths
        is_map = statistic.breakdown == UTILIZATION.name
        if is_map:
            # longer sums tell less of how busy something was
            needed = kept.finest_tier(window.first_ns)
            lengths = (needed,) if needed in lengths else lengths[:1]
        spans = self._frame.roll_up_spans
        spreads = [
            counters.within(spread, window, spans) for spread in self._spreads(lengths, statistic)
        ]
        has_means = is_map and any(len(spread.readings.column) for spread in spreads)
        notes = [
            f"what was kept are means over {_LENGTHS[length.name]}, which count as one reading each: peaks within are not in it"
            for length in lengths
            if has_means
        ]
        return [Growth(tuple(spreads), tuple(notes))]

    def _spreads(self, lengths: Sequence[Tier], asked: Statistic) -> list[Spread]:
        parts = [part.key for part in counters.parts_of(asked)]
        spreads: dict[str, Spread] = {}
        columns, sums = (
            self._window.columns,
            ", ".join(f'sum("{name}") AS "{name}"' for name in _SUMS),
        )
        sql = (
            f'SELECT {BY} "object", "part", {COLUMN} AS c, {sums} FROM kept '
            f"WHERE {self._inside} GROUP BY ALL"
        )
        for width in self.widths(lengths):
            rows = self.ask(sql, lengths, width)
            objects, keys = np.ma.getdata(rows["object"]), np.ma.getdata(rows["part"])
            column = int64s(rows["c"])
            for name in sorted(set(objects.tolist())):
                own = spreads.setdefault(str(name), _empty(str(name), columns))
                for part in parts:
                    at = (objects == name) & (keys == part)
                    if at.any():
                        values = {name: np.ma.filled(rows[name], 0.0)[at] for name in _SUMS}
                        amounts = own.amounts.setdefault(part, np.zeros(columns))
                        np.add.at(amounts, column[at], values["amount"])
                        # the same for each part
                        own.over[column[at]] = values["over"]
                        own.covered[column[at]] = values["covered"]
                        own.broken[column[at]] = values["broken"]
            if asked.breakdown == UTILIZATION.name:
                for name, shares in self._shares(lengths, width, parts).items():
                    spreads[name] = replace(spreads[name], readings=shares)
        return list(spreads.values())

    def _shares(
        self, lengths: Sequence[Tier], width: int, parts: Sequence[str]
    ) -> dict[str, Shares]:
        """The mean over each sum that was kept, by object."""
        keys = ", ".join(f"'{part}'" for part in parts)
        rows = self.ask(
            f"""
            WITH parts AS (SELECT {BY} "object", "part", time_s, sum("amount") AS "amount",
                           sum("over") AS "over" FROM kept
                           WHERE {self._inside} AND "part" IN ({keys}) GROUP BY ALL)
            SELECT {BY} "object", {COLUMN} AS c, sum("amount") / max("over") AS share FROM parts
            GROUP BY {BY} "object", time_s HAVING max("over") > 0""",
            lengths,
            width,
        )
        objects, column = np.ma.getdata(rows["object"]), int64s(rows["c"])
        share = np.ma.filled(rows["share"], 0.0)
        return {
            str(name): Shares(column[objects == name], share[objects == name])
            for name in set(objects.tolist())
        }


def _by_width(held: Held, tiers: Sequence[Tier]) -> dict[int, list[File]]:
    """Files by the width of their equal buckets; all under 1 where they have none. DamagedError
    where a merge deleted one meanwhile."""
    by_width: dict[int, list[File]] = {}
    for _, file in held.files(tiers):
        width = 1
        if held.statistic.breakdown == "offset":
            # a question of another kind loads no pyarrow
            from .files import tables

            try:
                width = tables.about(file.path).width
            except FileNotFoundError:
                raise DamagedError("was merged meanwhile", where=file.path) from None
        by_width.setdefault(width, []).append(part_of(held.directory, file.path))
    return by_width


def _empty(name: str, columns: int) -> Spread:
    return Spread(name, {}, np.zeros(columns), np.zeros(columns), np.zeros(columns), Shares.none())
