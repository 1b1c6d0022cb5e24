# SPDX-License-Identifier: Apache-2.0
"""Questions that read their data together: order, errors, and what is read at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from iolab.base.errors import FormatError, ResultsError, UsageError
from iolab.recordings.ask.engine.engine import REQUEST, Halted, Joint


def request(wanted: Any) -> Any:
    current = REQUEST.get()
    assert current is not None
    return current(wanted)


def ask(numbers: Sequence[int]) -> list[int]:
    """Requests some numbers, one after the other."""
    return [request(number) for number in numbers]


def double(calls: list[list[int]]) -> Callable[[Sequence[int]], list[int]]:
    def read(numbers: Sequence[int]) -> list[int]:
        calls.append(list(numbers))
        return [2 * number for number in numbers]

    return read


def test_each_step_of_all_questions_is_read_at_once() -> None:
    calls: list[list[int]] = []
    asks = [partial(ask, numbers) for numbers in ([1, 2, 3], [], [4, 5], [6])]
    assert Joint(asks).answers(double(calls)) == [[2, 4, 6], [], [8, 10], [12]]
    assert calls == [[1, 4, 6], [2, 5], [3]]
    assert REQUEST.get() is None


def test_an_error_of_one_question_is_its_outcome() -> None:
    def refuse(error: Exception) -> list[int]:
        request(1)
        raise error

    usage, damaged = UsageError("no"), FormatError("damaged", where="x")
    asks = [partial(ask, [1, 2]), partial(refuse, usage), partial(refuse, damaged)]
    assert Joint(asks).answers(double([])) == [[2, 4], usage, damaged]


def test_an_error_among_the_data_is_raised_where_it_was_requested() -> None:
    def read(numbers: Sequence[int]) -> list[Any]:
        return [FormatError("damaged") if number == 2 else number for number in numbers]

    first, second = Joint([partial(ask, [1, 3]), partial(ask, [2, 4])]).answers(read)
    assert first == [1, 3]
    assert isinstance(second, FormatError)


@pytest.mark.parametrize("error", [ResultsError("the store does not answer"), KeyboardInterrupt()])
def test_any_other_error_ends_all_questions(error: BaseException) -> None:
    ended = []

    def wait() -> list[int]:
        try:
            return ask([1, 2])
        except Halted:
            ended.append(True)
            raise

    def fail() -> list[int]:
        request(1)
        raise error

    with pytest.raises(type(error)):
        Joint([fail, wait]).answers(double([]))

    def read(numbers: Sequence[int]) -> list[int]:
        raise error

    with pytest.raises(type(error)):
        Joint([wait, wait]).answers(read)
