# SPDX-License-Identifier: Apache-2.0
"""Drill-downs: the values of I/Os in a rectangle, directories of files, single I/Os and their layers, the
largest and smallest values, and what differs most from the time before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from iolab.base.errors import UsageError
from iolab.recordings.ask import attribution as shares
from iolab.recordings.ask import drill as paths
from iolab.recordings.ask import odd_words, single_ios
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.answers.json_form import number as plain_number
from iolab.recordings.ask.attribution import Rectangle
from iolab.recordings.ask.fleet import who_of_fleet
from iolab.recordings.ask.io_layers import RelatedIo, layers_of
from iolab.recordings.ask.language.fields import FIELDS, QUANTIZED
from iolab.recordings.ask.oddities import oddities
from iolab.recordings.ask.question import MOST as MOST_COLUMNS
from iolab.recordings.ask.question import SECOND, round_interval
from iolab.recordings.ask.single_ios import LARGEST_PAGE, ORDERS, PAGE, io_data, list_ios
from iolab.recordings.store.base.conditions import parse_range
from iolab.recordings.store.read.folder import Folder
from iolab.recordings.store.read.recording import Recording

from ..base.models import Extreme, Extremes, Hierarchy, IoLayers, IoList, Odd, Who
from ..base.store import Store
from .parameters import (
    LAST_SKIP,
    Request,
    Words,
    number,
    recording_of,
    request_of,
    require,
    require_columns,
    span_of,
)

SMALLEST = 0.001
"""Share of all below which a path isn't named."""
DEPTH = 12


def who(store: Store, words: Words) -> Who:
    """Every dimension's values by their share inside a rectangle against outside.

    The statistic is a map, such as io.ops[latency]; from, to, low and high bound the rectangle.
    Outside is all else that meets the statistic's filters from around_from to around_to, where
    these are left open of the whole recording. Dimensions are in the order of the command `who`.
    """
    request = request_of(store, words)
    statistic = request.statistic
    if statistic.breakdown not in QUANTIZED:
        raise UsageError(
            "I/Os are attributed in a map only",
            where="statistic",
            hint="such as io.ops[latency]",
        )
    low, high = bounds_of(words, statistic.breakdown)
    rectangle = Rectangle(request.from_ns, request.until_ns, low, high)
    around = _around(request, words, store.ends(request.recording))
    source, top = request.question.source, request.top
    if isinstance(request.opened, Folder):
        shares_found = who_of_fleet(
            request.opened.recordings,
            request.of_hosts,
            statistic.breakdown,
            rectangle,
            around=around,
            source=source,
            top=top,
        )
    else:
        shares_found = shares.who(
            request.opened,
            statistic.breakdown,
            rectangle,
            filters=statistic.filters,
            entry=statistic.entry,
            around=around,
            source=source,
            top=top,
        )
    return Who.model_validate(
        {
            "recording": request.recording,
            "statistic": str(statistic),
            **shares.as_data(
                replace(shares_found, dimensions=tuple(shares.ordered(shares_found.dimensions)))
            ),
        }
    )


def _around(request: Request, words: Words, ends: tuple[int, int]) -> tuple[int | None, int | None]:
    """The time that is looked at: that of the rectangle is in it in any case."""
    first, until = span_of(words, ends, "around_")
    return (
        None if first is None or request.from_ns is None else min(first, request.from_ns),
        None if until is None or request.until_ns is None else max(until, request.until_ns),
    )


def bounds_of(words: Words, field: str) -> tuple[int | None, int | None]:
    """The parameters low and high as values of a field; None where an end is open."""
    if "low" not in words and "high" not in words:
        return None, None
    if field not in FIELDS:
        raise UsageError(f"'{field}' has no range of values", where="low")
    kind = "time" if FIELDS[field].kind == "time" else "size"
    text = f"{words.get('low', '')}..{words.get('high', '')}"
    return parse_range(text, kind)


def hierarchy(store: Store, words: Words) -> Hierarchy:
    """Sums by directory of a statistic that is broken down by file."""
    request = request_of(store, words).of_host("paths")
    assert not isinstance(request.opened, Folder)
    tree = paths.hierarchy(
        request.opened,
        request.statistic,
        from_ns=request.from_ns,
        until_ns=request.until_ns,
        source=request.question.source,
        least=SMALLEST,
    )
    return Hierarchy.model_validate(
        {
            "recording": request.recording,
            "unit": "1" if tree.statistic.entry.measure == "ops" else "B",
            **paths.tree_as_data(tree, DEPTH),
        }
    )


def ios(store: Store, words: Words) -> IoList:
    """A page of the I/Os inside a rectangle; low and high bound the values of the statistic's
    map."""
    request = request_of(store, words).of_host("single I/Os")
    assert not isinstance(request.opened, Folder)
    field = request.statistic.breakdown
    low, high = bounds_of(words, field) if field is not None else (None, None)
    order = words.get("order", "time")
    if order not in ORDERS:
        raise UsageError(
            f"'{order[:40]}' is no order", where="order", hint=f"there are {', '.join(ORDERS)}"
        )
    page = list_ios(
        request.opened,
        request.statistic,
        Rectangle(request.from_ns, request.until_ns, low, high),
        source=request.question.source,
        order=order,
        descending=words.get("descending") == "true",
        skip=number(words, "skip", 0, 0, LAST_SKIP),
        limit=number(words, "limit", PAGE, 1, LARGEST_PAGE),
    )
    about = {"recording": request.recording, "statistic": str(request.statistic)}
    return IoList.model_validate({**about, **single_ios.as_data(page)})


def io_layers(store: Store, words: Words) -> IoLayers:
    """One I/O with the calls above it and the I/Os below it."""
    name = recording_of(store, words)
    opened = store.open_asked(name)
    if isinstance(opened, Folder):
        raise _one_host("an I/O belongs to one host", name)
    if not isinstance(opened, Recording):
        raise UsageError(
            "a trace holds one layer", where=name, hint="recordings of block and syscall hold two"
        )
    layers = layers_of(opened, require(words, "id"))

    def as_item(item: RelatedIo) -> dict[str, Any]:
        return {
            "io": io_data(item.io),
            "match": item.match,
            "start_ns": item.io.start_ns - layers.io.start_ns,
            "end_ns": item.io.end_ns - layers.io.start_ns,
        }

    return IoLayers.model_validate(
        {
            "recording": name,
            "io": io_data(layers.io),
            "above": [as_item(item) for item in layers.above],
            "below": [as_item(item) for item in layers.below],
            "above_left": layers.above_left,
            "below_left": layers.below_left,
            "elsewhere": layers.elsewhere,
            "layers": list(layers.layers),
            "notes": list(layers.notes),
        }
    )


def odd(store: Store, words: Words) -> Odd:
    """The oddities of a recording, the strongest first, with a sentence for each.

    from and to bound the time that is explained. It is compared with the time before it, or with
    that from against_from to against_to.
    """
    name = recording_of(store, words)
    opened, ends = store.open_asked(name), store.ends(name)
    if isinstance(opened, Folder):
        raise _one_host("what is odd is asked of one host", name)
    against = span_of(words, ends, "against_")
    quiet = None
    if against != (None, None):
        if against[0] is None or against[1] is None:
            raise UsageError(
                "the quiet time has no end", where="against_to", hint="name both of its ends"
            )
        quiet = against[0], against[1]
    oddities_found = oddities(opened, looked_at=span_of(words, ends), against=quiet, ends=ends)
    sentences = odd_words.statements(opened, oddities_found)
    return Odd.model_validate({"recording": name, **odd_words.as_data(oddities_found, sentences)})


def _one_host(problem: str, name: str) -> UsageError:
    return UsageError(problem, where=name, hint="open the worksheet of the host")


COUNT = 10
MOST = 1000
FEWER = MOST_COLUMNS // 2
"""Columns at most, where their length is left open."""


def extremes(store: Store, words: Words) -> Extremes:
    """The moments with the largest (smallest) values of the statistic without its breakdown, in
    that order, the earlier first.

    Columns that the span or the recording's ends cut are left out, unless there are no others: what
    is in a part of a column says little.
    """
    request = require_columns(request_of(store, words))
    least = words.get("kind") == "min"
    if request.question.interval_ns is None:
        first, last = store.ends(request.recording)
        span = (
            first if request.from_ns is None else request.from_ns,
            last if request.until_ns is None else request.until_ns - 1,
        )
        request = request.with_parts(
            interval_ns=max(SECOND, round_interval(span[0], max(span), FEWER))
        )
    statistic = replace(request.statistic, breakdown=None)
    answer = request.answer(statistic)
    assert isinstance(answer, Series)
    places = np.flatnonzero(~np.isnan(answer.values))
    uncut = places[
        (answer.t0_ns + places * answer.interval_ns >= answer.first_ns)
        & (answer.t0_ns + (places + 1) * answer.interval_ns <= answer.until_ns)
    ]
    places_used = uncut if len(uncut) else places
    values = answer.values[places_used]
    order = np.argsort(values if least else -values, kind="stable")[
        : number(words, "count", COUNT, 1, MOST)
    ]
    moments = []
    for place in order.tolist():
        begin = answer.t0_ns + int(places_used[place]) * answer.interval_ns
        value = plain_number(float(values[place]))
        assert value is not None
        moments.append(Extreme(from_ns=begin, until_ns=begin + answer.interval_ns, value=value))
    return Extremes(
        statistic=str(statistic),
        which="min" if least else "max",
        unit=answer.unit,
        interval_ns=answer.interval_ns,
        columns=len(places_used),
        moments=moments,
        notes=list(answer.notes),
    )
