# SPDX-License-Identifier: Apache-2.0
"""`marks.jsonl`: what happened inside a run, and when: actions, steps of a load, marks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iolab.base.errors import FormatError
from iolab.base.files import open_for_writing
from iolab.base.untrusted_text import parse_json

from .files import Files, read_file

FILE = "marks.jsonl"


@dataclass(frozen=True)
class Mark:
    """One line of `marks.jsonl`.

    Attributes:
        time_ns: realtime; kind: `action`, `step` or `mark`; label: its name.
        levels: of a step, the factors that changed and their new levels.
        data: further facts: a command with its `exit_code` and `seconds`.
    """

    time_ns: int
    kind: str
    label: str
    levels: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)

    def as_line(self) -> str:
        """The mark as a line of JSON with its line end."""
        return (
            json.dumps(
                {
                    "time_ns": self.time_ns,
                    "kind": self.kind,
                    "label": self.label,
                    "levels": dict(self.levels),
                    **self.data,
                },
                default=str,
            )
            + "\n"
        )


def add_marks(run_dir: Path, marks: Iterable[Mark]) -> None:
    """Append marks to a run's file; without any, none is made."""
    text = "".join(mark.as_line() for mark in marks)
    if text:
        with os.fdopen(
            open_for_writing(run_dir / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
            "a",
            encoding="utf-8",
        ) as file:
            file.write(text)


def seconds_of(
    run_dir: Path, window: tuple[int, int] | None, files: Files = None
) -> list[tuple[float, str]]:
    """(seconds since the window's start, label) of the marks of a run that lie inside its window;
    none where they are damaged."""
    try:
        marks = () if window is None else read_marks(run_dir, files)
    except FormatError:
        return []
    start, end = window or (0, 0)
    return [
        ((mark.time_ns - start) / 1e9, mark.label) for mark in marks if start <= mark.time_ns <= end
    ]


def read_marks(run_dir: Path, files: Files = None) -> tuple[Mark, ...]:
    """The marks of a run in order of time, none without the file; FormatError names the first
    damaged line.

    A last line without its line end was cut by a kill and is left out.
    """
    path = run_dir / FILE
    if not os.path.lexists(path):
        return ()
    try:
        text = read_file(run_dir, FILE, files).decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"can't be read: {error}", where=path) from None
    marks = []
    for number, line in enumerate(text.split("\n")[:-1], 1):
        try:
            data = parse_json(line)
            marks.append(
                Mark(
                    int(data.pop("time_ns")),
                    str(data.pop("kind")),
                    str(data.pop("label")),
                    dict(data.pop("levels", {})),
                    data,
                )
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise FormatError(f"is not a mark: {error!r}", where=f"{path}:{number}") from None
    return tuple(sorted(marks, key=lambda mark: mark.time_ns))
