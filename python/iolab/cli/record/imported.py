# SPDX-License-Identifier: Apache-2.0
"""`iolab import TRACE... -o DIR`: traces of I/O become a recording."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.output import say

if TYPE_CHECKING:
    from ...recording.read.trace import Trace


def are_traces(paths: Sequence[Path], described: bool) -> bool:
    """Whether paths are traces: said so (`described` by format or columns), standard input, or
    found by content."""
    from ..results.show_trace import is_trace

    return bool(paths) and all(
        (described and not path.is_dir()) or is_trace(path) for path in paths
    )


LATENCY_LOGS = {"ns": "fio-lat", "us": "fio-lat-us"}
"""Formats of fio's latency logs by their unit, as `--log-unit` names it."""


def _in_unit(trace: Trace, unit: str) -> Trace:
    """A latency log of fio in that unit; UsageError for another trace."""
    from ...errors import UsageError
    from ...recording.read.trace import STDIN

    format_name = None if trace.path == STDIN and trace.format is None else trace.detect()
    if format_name not in (None, *LATENCY_LOGS.values()) or trace.columns is not None:
        raise UsageError(
            "--log-unit is the unit of fio's latency logs, and this is not one",
            where=trace.path,
            hint="--columns states the unit of a CSV column, such as latency:us",
        )
    return replace(trace, format=LATENCY_LOGS[unit])


def import_traces(
    paths: Sequence[Path],
    output: Path,
    *,
    kind: str | None,
    columns: str | None,
    host: str,
    log_unit: str | None = None,
) -> None:
    """Import each into the recording at `output`, and say what came of it."""
    from ...errors import UsageError
    from ...heatmap.words import ios, number
    from ...recording.read.trace import STDIN, Trace
    from ...recording.write.ingest import ingest

    if paths.count(STDIN) > 1:
        raise UsageError("standard input can be read only once", where="import")
    started = time.monotonic()
    traces = [
        _in_unit(Trace(path, kind, columns), log_unit) if log_unit else Trace(path, kind, columns)
        for path in paths
    ]
    done = ingest(traces, output, host=host)
    seconds = time.monotonic() - started
    say(f"imported {ios(done.events)} into {output} in {seconds:.1f} s")
    for text in done.assumptions:
        say(f"note: {text}")
    for count, words in (
        (done.lost, "records lost, says the tracer"),
        (done.damaged, "damaged lines or records left out"),
        (done.unpaired, "unmatched issue or completion events"),
    ):
        if count:
            say(f"note: {number(count)} {words}")
