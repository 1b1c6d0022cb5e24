# SPDX-License-Identifier: Apache-2.0
"""The moments at which a statistic was largest or smallest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...statistics.answers.answers import Series
from ...statistics.answers.json_form import number as plain_number
from ...statistics.language.intervals import MOST as MOST_COLUMNS
from ...statistics.language.intervals import SECOND, round_interval
from ..base.models import Extreme, Extremes
from ..base.store import Store
from .query_params import Words, columned, number, request_of

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
    request = columned(request_of(store, words))
    least = words.get("kind") == "min"
    if request.question.interval_ns is None:
        first, last = store.ends(request.recording)
        span = (
            first if request.from_ns is None else request.from_ns,
            last if request.until_ns is None else request.until_ns - 1,
        )
        request = request.changed(
            interval_ns=max(SECOND, round_interval(span[0], max(span), FEWER))
        )
    asked = replace(request.statistic, breakdown=None)
    answer = request.answer(asked)
    assert isinstance(answer, Series)
    places = np.flatnonzero(~np.isnan(answer.values))
    uncut = places[
        (answer.t0_ns + places * answer.interval_ns >= answer.first_ns)
        & (answer.t0_ns + (places + 1) * answer.interval_ns <= answer.until_ns)
    ]
    held = uncut if len(uncut) else places
    values = answer.values[held]
    order = np.argsort(values if least else -values, kind="stable")[
        : number(words, "count", COUNT, 1, MOST)
    ]
    moments = []
    for place in order.tolist():
        begin = answer.t0_ns + int(held[place]) * answer.interval_ns
        value = plain_number(float(values[place]))
        assert value is not None
        moments.append(Extreme(from_ns=begin, until_ns=begin + answer.interval_ns, value=value))
    return Extremes(
        statistic=str(asked),
        which="min" if least else "max",
        unit=answer.unit,
        interval_ns=answer.interval_ns,
        columns=len(held),
        moments=moments,
        notes=list(answer.notes),
    )
