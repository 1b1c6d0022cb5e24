# SPDX-License-Identifier: Apache-2.0
"""The kind of file or directory that a path is, and which commands take it: for a path that was
given to the wrong command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from iolab.base.errors import FormatError, IolabError, ResultsError, StudyError, UsageError

Kind: TypeAlias = Literal[
    "study", "fio job file", "fio result", "results", "recording", "trace", "report"
]

_EVENTS: frozenset[Kind] = frozenset(("recording", "trace"))
_TAKES: dict[str, frozenset[Kind]] = {
    "run": frozenset(("study",)),
    "show": frozenset(("results", "fio result", "recording", "trace")),
    "compare": _EVENTS | {"results", "fio result"},
    "report": frozenset(("results", "fio result")),
    "heatmap": _EVENTS,
    "query": _EVENTS,
    "view": _EVENTS | {"results"},
    "keep": frozenset(("recording",)),
    "verify": frozenset(("results", "recording")),
}
"""Command to the kinds that it takes."""

_WORDS: dict[Kind, tuple[str, tuple[str, ...]]] = {
    "study": ("a study", ("iolab run {}",)),
    "fio job file": (
        "a fio job file",
        ("fio {} --output-format=json --output=fio.json", "iolab show fio.json"),
    ),
    "fio result": (
        "a fio result",
        ("iolab show {}", "iolab compare {} OTHER.json", "iolab import {} -o results/NAME"),
    ),
    "results": (
        "a results directory",
        ("iolab show {}", "iolab compare {}", "iolab report {} -o report.html"),
    ),
    "recording": ("a recording", ("iolab show {}", "iolab query {} io.ops", "iolab view {}")),
    "trace": (
        "a trace of I/O",
        ("iolab show {}", "iolab heatmap {}", "iolab import {} -o RECORDING"),
    ),
    "report": ("a report", ("xdg-open {}",)),
}
"""Kind to its name with an article, and the commands that take it."""

_HEAD = 65536
_JOB_SECTION = re.compile(r"^\[[^\[\]\n]+\]\s*$", re.MULTILINE)
_JOB_OPTION = re.compile(
    r"^\s*(?:rw|readwrite|ioengine|bs|blocksize|size|filename|directory|runtime|iodepth|numjobs)\s*=\s*[^\s\"']",
    re.MULTILINE,
)
_STUDY_TABLE = re.compile(r"^\[(?:study|workload|target|variants|factors)\b", re.MULTILINE)


def suggest(args: Sequence[str], error: IolabError) -> str | None:
    """One line that says what the path is that `error` is about and which commands take it.

    None where the error is of no path on the command line, the command takes files of that kind, or
    the kind is not known.
    """
    if not isinstance(error, FormatError | ResultsError | StudyError | UsageError):
        return None
    # a word after an option may be its value, such as the output
    words = [
        word
        for before, word in zip(["", *args], args, strict=False)
        if not word.startswith("-") and not before.startswith("-")
    ]
    if not words or words[0] not in _TAKES:
        return None
    # some errors name the path in their message alone
    about = [
        word
        for word in words[1:]
        if str(error).startswith(f"{Path(word)}:") and Path(word).exists()
    ]
    if not about:
        return None
    path = max(about, key=len)
    kind = find_kind(Path(path))
    if kind is None or kind in _TAKES[words[0]]:
        return None
    name, commands = _WORDS[kind]
    if kind == "results" and "recording" in _TAKES[words[0]]:
        if (Path(path) / "recordings").is_dir():
            return None
        name += " without recordings"
    listed = ", ".join(f"'{command.format(shlex.quote(path))}'" for command in commands)
    also = (
        "; a study names it as workload.job_file"
        if kind == "fio job file" and words[0] == "run"
        else ""
    )
    return f"{path} is {name}, which iolab {words[0]} does not take; use {listed}{also}"


def find_kind(path: Path) -> Kind | None:
    """What a path is, by its content; None for anything else and for what can't be read."""
    from iolab.formats.detect import detect
    from iolab.recordings.store.base.layout import is_recording
    from iolab.recordings.store.read.trace import Trace
    from iolab.studies.results.evidence.manifest import FILE
    from iolab.studies.results.imports.reading import FIO_FORMATS

    try:
        if path.is_dir():
            return (
                "recording"
                if is_recording(path)
                else "results"
                if (path / FILE).is_file()
                else None
            )
        if not path.is_file():
            return None
        with path.open("rb") as file:
            head = file.read(_HEAD)
        text = head.decode("utf-8", "replace")
        if _STUDY_TABLE.search(text):
            return "study"
        if _JOB_SECTION.search(text) and _JOB_OPTION.search(text):
            return "fio job file"
        if text.lstrip()[:15].lower().startswith("<!doctype html"):
            return "report" if "iolab" in text else None
        if detect(head, "") in FIO_FORMATS:
            return "fio result"
        return "trace" if Trace(path).detect() is not None else None
    except (OSError, IolabError):
        return None
