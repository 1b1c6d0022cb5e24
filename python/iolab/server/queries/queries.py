# SPDX-License-Identifier: Apache-2.0
"""The answer to a statistic: as data, ready to be drawn, in binary, as CSV."""

from __future__ import annotations

from ...documents import Model
from ...recording.base.counts import HeatCounts
from ...statistics.answers.answers import Stack
from ...statistics.answers.export import csv_lines
from ..base.json_answer import check_size, plain
from ..base.store import Store
from . import binary
from .heatmap_response import apart, drawn
from .percentiles import percentiles
from .query_params import Words, question_of, with_lines


def ask(store: Store, words: Words) -> Model:
    """The answer to a statistic."""
    question = question_of(store, words)
    answer = question.answer()
    if isinstance(answer, HeatCounts) and words.get("drawn") == "percentiles":
        return percentiles(question.statistic, answer)
    if isinstance(answer, HeatCounts) and words.get("drawn") == "true":
        return drawn(question.statistic, answer, question.recording, lines=with_lines(words))
    return plain(question.statistic, answer, question.top)


def ask_binary(store: Store, words: Words) -> bytes | Model:
    """The same, a heat map in binary."""
    question = question_of(store, words)
    answer = question.answer()
    if not isinstance(answer, HeatCounts):
        return plain(question.statistic, answer, question.top)
    if words.get("drawn") == "percentiles":
        return percentiles(question.statistic, answer)
    if words.get("drawn") == "true":
        return binary.drawn(
            *apart(question.statistic, answer, question.recording, lines=with_lines(words))
        )
    return binary.encode(question.statistic, answer)


def export(store: Store, words: Words) -> bytes:
    """The answer as CSV, all keys of a stack unless `top` is given."""
    question = question_of(store, words)
    answer = question.answer()
    top = question.top if "top" in words else None
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
    return ("\n".join(csv_lines(question.statistic, answer, top)) + "\n").encode()
