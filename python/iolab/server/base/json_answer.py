# SPDX-License-Identifier: Apache-2.0
"""Answers of statistics as the service sends them: what `iolab query --format json` prints, bounded
in size."""

from __future__ import annotations

from ...errors import UsageError
from ...recording.base.counts import HeatCounts
from ...statistics.answers.answers import Answer, Stack
from ...statistics.answers.json_form import as_data
from ...statistics.language.names import Statistic
from .models import HeatAnswer, SeriesAnswer, StackAnswer

MOST_NUMBERS = 2_000_000
"""Values of a series or stack, or cells of a map, in one answer."""

SHORTER = "take a longer interval, less time, or a smaller 'top'"


def plain(asked: Statistic, answer: Answer, top: int) -> SeriesAnswer | StackAnswer | HeatAnswer:
    """An answer as data; UsageError where it would be too large. `top`: keys of a stack that are
    named."""
    if isinstance(answer, HeatCounts):
        check_size(4 * len(answer.count))
        return HeatAnswer(**as_data(asked, answer, top))
    if isinstance(answer, Stack):
        check_size((min(top, len(answer.keys)) + 1) * answer.values.shape[1])
        return StackAnswer(**as_data(asked, answer, top))
    check_size(len(answer.values))
    return SeriesAnswer(**as_data(asked, answer, top))


def check_size(count: int) -> None:
    """UsageError where so many numbers are too many for an answer."""
    if count > MOST_NUMBERS:
        raise UsageError(
            f"the answer would have {count} numbers, and {MOST_NUMBERS} are the most", hint=SHORTER
        )
