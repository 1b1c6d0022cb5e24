# SPDX-License-Identifier: Apache-2.0
"""`iolab odd`: what differs most from the minutes before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolab.base.untrusted_text import json_text, visible

from ..base.events import name_of, open_path
from ..base.options import PATH, format_option, names_option
from ..base.output import tell, tell_as
from ..base.spans import span_of

if TYPE_CHECKING:
    from iolab.recordings.ask.odd_words import Statement
    from iolab.recordings.ask.oddities import Oddities
    from iolab.recordings.store.read.recording import Recording
    from iolab.recordings.store.read.trace import Trace


@click.command("odd")
@click.argument("path", metavar="PATH", type=PATH)
@click.option(
    "--from",
    "start",
    metavar="WHEN",
    help="Begin of the time to explain: 30s (after the start), -10m (before the end) or "
    "2026-03-01T12:00:05 (UTC). It is compared with up to five minutes before it.",
)
@click.option("--to", "end", metavar="WHEN", help="Its end, exclusive; written as --from.")
@click.option(
    "--against",
    metavar="FROM..TO",
    help="Compare with this quiet time instead; both ends written as --from.",
)
@click.option(
    "--all",
    "is_own_included",
    is_flag=True,
    help="Include iolab's own processes (recorder, probe).",
)
@format_option("text", "json")
@names_option
def command(
    path: Path,
    start: str | None,
    end: str | None,
    against: str | None,
    is_own_included: bool,
    style: str,
) -> None:
    """Find what is odd: which device, process, file, client or operation differs most from the
    minutes before, in which statistic, and since when.

    Rates, latencies, sizes, offsets and I/Os in flight are compared for all values of all fields,
    and counters by their first field. A change is judged by the variation of the quiet time, with
    at most 1 % false findings, and attributed to the smallest set of values that explains it.
    Without --from, the last ten minutes are searched for the strongest change.
    """
    from iolab.recordings.ask.odd_words import statements
    from iolab.recordings.ask.oddities import oddities

    opened = open_path(path)
    looked_at = span_of([opened], start, end)
    quiet = None if against is None else _quiet(opened, against)
    odd = oddities(
        opened,
        looked_at=looked_at,
        against=quiet,
        ends=_ends(opened),
        is_own_included=is_own_included,
    )
    stated = statements(opened, odd)
    if style == "json":
        from iolab.recordings.ask.odd_words import as_data

        data = {"schema": 1, "kind": "odd", **as_data(odd, stated)}
        tell_as(style, f"{json_text(data)}\n")
    else:
        tell(*_lines(name_of(opened.path), odd, stated))


def _quiet(opened: Trace | Recording, text: str) -> tuple[int, int]:
    from iolab.base.errors import UsageError

    first, dots, last = text.partition("..")
    if not dots or not first.strip() or not last.strip():
        raise UsageError(f"'{text}' is not FROM..TO", where="--against", hint="such as 0s..30s")
    begin, until = span_of([opened], first, last)
    assert begin is not None
    assert until is not None
    return begin, until


def _ends(opened: Trace | Recording) -> tuple[int, int]:
    """First and last moment of what was recorded."""
    from iolab.recordings.store.read.trace import Trace

    if isinstance(opened, Trace):
        from iolab.recordings.ask.tiers.trace_tier import bounds

        return bounds(opened)
    from iolab.base.errors import UsageError
    from iolab.recordings.ask.kept.recorded import span_of as recorded

    ends = recorded(opened)
    if ends is None:
        raise UsageError("nothing was recorded", where=opened.path)
    return ends


def _lines(name: str, found: Oddities, stated: list[Statement]) -> list[str]:
    from iolab.recordings.ask.odd_words import moment_words, statistic_of

    quiet = f"{moment_words(found.quiet[0])} to {moment_words(found.quiet[1])}"
    lines = [f"{name}: {found.compared} series compared with {quiet}"]
    if not stated:
        lines.append("nothing is odd: no change exceeds the variation of the time before it")
    for number, statement in enumerate(stated, 1):
        lines.append(visible(f"{number}. {statement.sentence}"))
        change = statement.oddity.changes[0]
        also = "".join(
            f"; also {field} {value}" for field, value in statement.oddity.subject.aliases[:2]
        )
        times = f"{2 ** abs(change.octaves):.3g} times {'more' if change.octaves > 0 else 'less'}"
        if change.quantity in ("latency", "size", "offset"):
            times = f"{abs(change.octaves):.2g} octaves apart"
        # the weight of a counter ranks it, and is no share of I/Os
        share = "" if change.quantity == "value" else f", {100 * change.share:.3g} % of the I/Os"
        q = "q < 0.001" if change.q < 0.001 else f"q = {change.q:.2g}"
        lines.append(
            visible(
                f"   {statistic_of(change, statement.oddity.subject)}: {times}, {q}{share}{also}"
            )
        )
    return [*lines, *(f"note: {note}" for note in found.notes)]
