"""Heat maps of events under conditions, where a kept statistic has the same question for its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...recording.base.counts import HeatCounts, Weight, Y
from ...recording.read.recording import Recording
from ..engine.snapshot import snapshot
from ..language.catalogue import CATALOGUE, preference
from ..language.names import Between, Filter, Statistic
from . import answer
from .paths import DEFINITIONS


def heat(recording: Recording, y: Y, filters: Sequence[Filter], *, from_ns: int | None, until_ns: int | None, interval_ns: int | None,
         columns: int, source: str | None, weight: Weight) -> HeatCounts | None:
    """The map, None where the events themselves are to be asked; arguments as in `query.heat`."""
    if not (recording.path / DEFINITIONS).is_file():
        return None
    events = preference(snapshot(recording).sources)
    chosen = source if source is not None else events[0] if events else None
    for asked in _names(y, filters, chosen, weight):
        found = answer.answer(recording, asked, from_ns=from_ns, until_ns=until_ns, interval_ns=interval_ns, columns=columns,
                                 source=chosen)
        if isinstance(found, HeatCounts):
            return found
    return None


def _names(y: Y, filters: Sequence[Filter], source: str | None, weight: Weight) -> Iterator[Statistic]:
    """Statistics that count the I/Os of a source, or add up their bytes, by y; of any source where it is None."""
    ways = dict.fromkeys((tuple(filters), tuple(_as_named(each) for each in filters)))
    for entry in CATALOGUE.values():
        able = entry.sources and (source is None or not entry.only or source in entry.sources)
        asks = y in entry.breakdowns and all(each.field in entry.filters for each in filters)
        if able and asks and entry.weight == weight:
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
