# SPDX-License-Identifier: Apache-2.0
"""Plans of questions."""

from __future__ import annotations

from iolab.recording.read.recording import Recording
from iolab.recording.read.trace import Trace
from iolab.statistics.ask.query import plan_of
from iolab.statistics.plan import Plan
from iolab.statistics.question import COLUMNS, Question, Statistic, parse


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
