# SPDX-License-Identifier: Apache-2.0
"""What the paths of commands name: traces, recordings, and the recordings of results; and spans of
their time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..recording.base.conditions import Where
    from ..recording.read.recording import Recording
    from ..recording.read.trace import Trace


def open_path(
    path: Path, kind: str | None = None, columns: str | None = None, where: Where | None = None
) -> Trace | Recording:
    """A trace, a recording, or the one recording of a results directory. Errors as `open_events`
    has them."""
    from ..errors import UsageError
    from ..recording.base.layout import is_recording
    from ..recording.read.open import open_events

    inner = path / "recordings"
    if inner.is_dir() and not is_recording(path):
        hosts = sorted(path_inside for path_inside in inner.iterdir() if is_recording(path_inside))
        if len(hosts) > 1:
            raise UsageError(
                f"holds the recordings of {len(hosts)} hosts",
                where=path,
                hint=f"name one of {', '.join(map(str, hosts))}",
            )
        path = hosts[0] if hosts else path
    return open_events(path, format=kind, columns=columns, where=where)


def open_all(
    paths: Sequence[Path],
    kind: str | None,
    columns: str | None,
    where: Where,
    hosts: Sequence[str],
) -> list[Trace | Recording]:
    """What paths name, in their order: a path of an archive is its recordings of `hosts` (none:
    all) that have events. UsageError where hosts are named and no archive is."""
    from ..errors import UsageError
    from .archives import archive_url, open_hosts

    opened: list[Trace | Recording] = []
    for path in paths:
        url = archive_url(path)
        if url is None:
            if hosts:
                raise UsageError(
                    "only an archive has hosts", where=path, hint="leave host=NAME out"
                )
            opened.append(open_path(path, kind, columns, where))
            continue
        opened += open_hosts(url, hosts)
    return opened


def name_of(path: Path) -> str:
    """A short name for what a path names."""
    return "standard input" if str(path) == "-" else path.name or path.resolve().name or str(path)


def span_of(
    opened: Sequence[Trace | Recording], start: str | None, end: str | None
) -> tuple[int | None, int | None]:
    """(from, until) in ns of `--from` and `--to`, on the clock of what was opened, all of it
    together."""
    from ..errors import UsageError
    from ..statistics.language.times import is_after_start, parse_moment
    from .record_words import lasting

    if start is None and end is None:
        return None, None
    spans = [_span(opened_path) for opened_path in opened]
    first, last = min(span[0] for span in spans), max(span[1] for span in spans)
    # ten minutes before the end of five minutes is all of them
    begin = None if start is None else max(first, parse_moment(start, first, last))
    until = None if end is None else min(last + 1, parse_moment(end, first, last))
    for flag, text, beyond in (
        ("--from", start, begin is not None and begin > last),
        ("--to", end, until is not None and until <= first),
    ):
        if text is not None and beyond and first < last:
            before = f"; -{text.strip()} is before the end" if is_after_start(text) else ""
            raise UsageError(
                f"'{text}' is {'after the end' if flag == '--from' else 'before the start'} of what was recorded",
                where=flag,
                hint=f"it lasts {lasting((last - first) // 10**9)}{before}",
            )
    return begin, until


def _span(events: Trace | Recording) -> tuple[int, int]:
    """First and last moment; of a recording that of what is kept of it too."""
    from ..recording.read.trace import Trace

    if isinstance(events, Trace):
        from ..statistics.tiers.trace_tier import bounds

        return bounds(events)
    from ..statistics.kept.recorded import span_of as recorded

    return recorded(events) or (0, 0)
