# SPDX-License-Identifier: Apache-2.0
"""A path to events, whatever holds them: a trace file, standard input, or a recording."""

from __future__ import annotations

from pathlib import Path

from ...errors import FormatError, UsageError
from ..base.conditions import Where
from ..base.layout import is_recording
from .recording import Recording
from .trace import STDIN, Trace


def open_events(
    path: Path, *, format: str | None = None, columns: str | None = None, where: Where | None = None
) -> Trace | Recording:
    """A recording where `path` is the directory of one, else a trace; nothing is read of it yet.

    `format` and `columns` say how to read a trace, `where` is of a trace only: conditions on a
    recording are given with each question. UsageError where there is nothing, or these are given
    for a recording; FormatError for a directory of something else.
    """
    if path != STDIN and path.is_dir():
        if not is_recording(path):
            raise FormatError(
                "is a directory, but not a recording",
                where=path,
                hint="name a trace file, or a directory that was recorded or imported into",
            )
        if format or columns:
            raise UsageError("is a recording: it needs no format and no columns", where=path)
        return Recording(path)
    return Trace(path, format, columns, where or {})
