# SPDX-License-Identifier: Apache-2.0
"""An answer over all of its time as one column: sums per second recorded, levels and shares on
average."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...recording.base.counts import HeatCounts, LostAt, added
from ...statistics.answers.answers import Answer, Series, Stack
from ...statistics.answers.json_form import is_averaged, largest


def whole(answer: Answer) -> Answer:
    """The answer with one column, which is its span; of a map the columns from the first to the
    last that hold anything."""
    if isinstance(answer, HeatCounts):
        columns = max(1, answer.columns)
        return replace(answer.coarser(columns=columns), gaps=(), lost_at=_lost(answer))
    one = {
        "t0_ns": answer.first_ns,
        "interval_ns": answer.until_ns - answer.first_ns,
        "lost_at": _lost(answer),
    }
    if isinstance(answer, Series):
        return replace(answer, values=np.array([answer.mean]), **one)  # type: ignore[arg-type]
    rows, _ = largest(answer, None)
    means = np.array([row.mean for row in rows[: len(answer.keys)]], dtype=float).reshape(
        len(answer.keys), 1
    )
    return replace(answer, values=means, rest=_rest(answer), **one)  # type: ignore[arg-type]


def _lost(answer: Answer) -> tuple[LostAt, ...]:
    return added((0, kind, count) for _, kind, count in answer.lost_at)


def _rest(answer: Stack) -> np.typing.NDArray[np.float64] | None:
    if answer.rest is None:
        return None
    assert not is_averaged(answer)
    return np.array(
        [answer.rest_total / (answer.covered_ns / 1e9) if answer.covered_ns else np.nan]
    )
