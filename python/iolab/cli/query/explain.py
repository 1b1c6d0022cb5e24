# SPDX-License-Identifier: Apache-2.0
"""`iolab query --explain`: what is read for an answer, and why not something else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from iolab.base.untrusted_text import json_text

from ..base.output import tell, tell_as

if TYPE_CHECKING:
    from iolab.recordings.ask.plan import Part, Plan
    from iolab.recordings.ask.question import Question
    from iolab.recordings.store.read.recording import Recording
    from iolab.recordings.store.read.trace import Trace


def explain(opened: Trace | Recording, question: Question, style: str) -> None:
    """Print the plan of a question."""
    from iolab.recordings.ask import query

    plan = query.plan_of(opened, question)
    if style == "json":
        tell_as(
            style,
            f"{json_text({'schema': 1, 'kind': 'plan', **plan.as_data()})}\n",
        )
    else:
        tell(*lines(plan))


def lines(plan: Plan) -> list[str]:
    """A plan for people."""
    *tiers, last = plan.tiers or ("nothing",)
    names = f"{', '.join(tiers)} and {last}" if tiers else last
    rows = [f"{plan.frame.question.statistic}: answered by {names}"]
    rows += [f"  reads {_part(part)}" for part in plan.parts()]
    rows += [f"  not {name}: {reason}" for name, reason in plan.refusals]
    rows += [f"  not needed: {', '.join(plan.spare)}"] if plan.spare else []
    return [*rows, *(f"  note: {note}" for note in plan.notes)]


def _part(part: Part) -> str:
    from iolab.base.units import format_quantity

    span = (
        ""
        if part.first_ns is None or part.until_ns is None
        else f" from {_moment(part.first_ns)} to {_moment(part.until_ns)}"
    )
    rows = "an unknown number of rows" if part.rows is None else f"{part.rows:,} rows"
    size = "of unknown size" if part.bytes is None else format_quantity(part.bytes, "B")
    files = "in memory" if not part.files else f"{part.files} file{'' if part.files == 1 else 's'}"
    return f"{part.name}{span}: {rows}, {size}, {files}"


def _moment(ns: int) -> str:
    """A time as `--from` takes it, in milliseconds; seconds of a clock of its own."""
    from iolab.recordings.ask.answers.answers import OWN_CLOCK_NS
    from iolab.recordings.ask.answers.json_form import seconds

    if ns < OWN_CLOCK_NS:
        return f"{seconds(ns)} s"
    return f"{datetime.fromtimestamp(ns // 10**9, UTC):%Y-%m-%dT%H:%M:%S}.{ns // 10**6 % 1000:03}"
