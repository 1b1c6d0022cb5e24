# SPDX-License-Identifier: Apache-2.0
"""The answer to a statistic: as data, ready to be drawn, in binary, as CSV."""

from __future__ import annotations

from ...documents import Model
from ...recording.base.counts import HeatCounts
from ...statistics.answers.answers import Stack
from ...statistics.answers.json_form import csv_lines
from ..base.json_answer import check_size, plain
from ..base.store import Store
from . import binary
from .heatmap_response import apart, drawn
from .percentiles import percentiles
from .query_params import Words, request_of, with_lines


def ask(store: Store, words: Words) -> Model:
    """The answer to a statistic."""
    request = request_of(store, words)
    answer = request.answer()
    if isinstance(answer, HeatCounts) and words.get("drawn") == "percentiles":
        return percentiles(request.statistic, answer)
    if isinstance(answer, HeatCounts) and words.get("drawn") == "true":
        return drawn(request.statistic, answer, request.recording, lines=with_lines(words))
    return plain(request.statistic, answer, request.top)


def ask_binary(store: Store, words: Words) -> bytes | Model:
    """The same, a heat map in binary."""
    request = request_of(store, words)
    answer = request.answer()
    if not isinstance(answer, HeatCounts):
        return plain(request.statistic, answer, request.top)
    if words.get("drawn") == "percentiles":
        return percentiles(request.statistic, answer)
    if words.get("drawn") == "true":
        return binary.drawn(
            *apart(request.statistic, answer, request.recording, lines=with_lines(words))
        )
    return binary.encode(request.statistic, answer)


def export(store: Store, words: Words) -> bytes:
    """The answer as CSV, all keys of a stack unless `top` is given."""
    request = request_of(store, words)
    answer = request.answer()
    top = request.top if "top" in words else None
    if isinstance(answer, HeatCounts):
        check_size(4 * len(answer.count))
    elif isinstance(answer, Stack):
        check_size(
            3
            * (len(answer.keys) if top is None else min(top, len(answer.keys)) + 1)
            * answer.values.shape[1]
        )
    else:
        check_size(2 * len(answer.values))
    return ("\n".join(csv_lines(request.statistic, answer, top)) + "\n").encode()
