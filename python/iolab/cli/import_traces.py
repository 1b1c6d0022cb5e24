"""`iolab import TRACE... -o DIR`: traces of I/O become a recording."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from .output import say


def are_traces(paths: Sequence[Path], described: bool) -> bool:
    """Whether paths are traces: said so (`described` by format or columns), standard input, or
    found by content."""
    from .show_trace import is_trace

    return bool(paths) and all(
        (described and not path.is_dir()) or is_trace(path) for path in paths
    )


def import_traces(
    paths: Sequence[Path], output: Path, *, kind: str | None, columns: str | None, host: str
) -> None:
    """Import each into the recording at `output`, and say what came of it."""
    from ..errors import UsageError
    from ..heatmap.words import ios, number
    from ..recording.read.trace import STDIN, Trace
    from ..recording.write.ingest import ingest

    if paths.count(STDIN) > 1:
        raise UsageError("standard input can be read only once", where="import")
    started = time.monotonic()
    done = ingest([Trace(path, kind, columns) for path in paths], output, host=host)
    taken = time.monotonic() - started
    say(f"imported {ios(done.events)} into {output} in {taken:.1f} s")
    for count, words in (
        (done.lost, "records lost, says the tracer"),
        (done.damaged, "damaged lines or records left out"),
        (done.unpaired, "unmatched issue or completion events"),
    ):
        if count:
            say(f"note: {number(count)} {words}")
