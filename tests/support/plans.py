# SPDX-License-Identifier: Apache-2.0
"""Plans of questions."""

from __future__ import annotations

from iolab.recordings.ask.plan import Plan
from iolab.recordings.ask.query import plan_of
from iolab.recordings.ask.question import COLUMNS, Question, Statistic, parse
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.trace import Trace


def explain(
    events: Trace | Recording,
    statistic: Statistic | str,
    *,
    from_ns: int | None = None,
    until_ns: int | None = None,
    interval_ns: int | None = None,
    columns: int = COLUMNS,
    kept: bool = True,
) -> Plan:
    """The plan by which `query` answers; arguments as there."""
    parsed = parse(statistic) if isinstance(statistic, str) else statistic
    question = Question.of(parsed, (from_ns, until_ns), interval_ns, columns, None)
    return plan_of(events, question, kept=kept)
