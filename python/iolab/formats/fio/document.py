# SPDX-License-Identifier: Apache-2.0
"""JSON documents in a file that fio wrote: text around them, several of them, numbers that aren't
JSON.

fio prints messages into its output file (io_u errors, "terminating on signal 2"), and writes one
document after another under `--status-interval`; its manual page calls the result "technically not
valid json". Scripts append runs to one file, collect them in an array, or put them under a key of
their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iolab.base.errors import FormatError

from ..core.text import decode, without_escapes, without_prefix
from .latency import finite

_BEGIN = re.compile(r'\{\s*"fio version"\s*:')
_LINE_BRACE = re.compile(r"^[ \t]*([\[{])", re.MULTILINE)
# printf's words for what C's arithmetic left; JSON has none of them
_NOT_FINITE = re.compile(r"(:[ \t]*)-?(?:nan|inf(?:inity)?)(?=[\s,}\]])", re.IGNORECASE)

_DECODER = json.JSONDecoder(strict=False)
_DEEPEST = 8
"""Levels of keys and lists below which documents are looked for."""


@dataclass(frozen=True)
class Documents:
    """What a file held: the last document of each fio run, how many documents there were, what
    stood before, and what had to be assumed."""

    runs: tuple[dict[str, Any], ...]
    count: int
    leading_text: str
    assumptions: tuple[str, ...]


def read_documents(data: bytes, where: str) -> Documents:
    """The JSON documents of a file.

    A document that a later one of the same run continues (--status-interval) does not count, nor
    does a copy of another. A torn document next to whole ones (fio killed while it reported) is
    left out, said in `assumptions`; the shorter runtime of the one before is for the judges.

    Raises FormatError: empty file, no JSON in it, JSON cut off or damaged (with the line).
    """
    text = without_escapes(
        decode(
            data, where, when_empty="fio was killed before it could write, or refused its options"
        )
    )
    parser = _Parser(text)
    documents = parser.documents()
    if not documents and '"fio version"' in text:
        # quoted in mail, or with the time stamps of a log before each line
        bare = _Parser("\n".join(map(without_prefix, text.split("\n"))))
        documents = bare.documents()
        parser = bare if documents or parser.error is None else parser
    if parser.error is not None and not documents:
        raise _damage_error(parser.error, parser.text, where) from None
    if not documents:
        if parser.values:
            raise FormatError(
                "no fio output: it has neither 'jobs' nor 'client_stats'", where=where
            )
        raise FormatError(
            f"no JSON in the file; it begins with '{_start_of(text)}'",
            where=where,
            hint="was fio run with --output-format=json or json+?",
        )
    assumptions = parser.assumptions
    distinct = documents
    if len(documents) > 1:
        distinct = list({json.dumps(document): document for document in documents}.values())
        if (copies := len(documents) - len(distinct)) > 0:
            assumptions.append(
                f"{copies} document{'s are copies' if copies > 1 else ' is a copy'} of another"
            )
    runs = [
        document
        for document, later in zip(distinct, [*distinct[1:], None], strict=True)
        if later is None or not _is_continued(document, later)
    ]
    return Documents(tuple(runs), len(documents), parser.leading_text, tuple(assumptions))


class _Parser:
    """Decodes the values of a text.

    Attributes:
        text: with null for NaN and the like. values: of JSON that were decoded.
        error: of the first value that could not be decoded; leading_text: before the first value.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.values = 0
        self.error: Exception | None = None
        self.leading_text = ""
        self.assumptions: list[str] = []

    def documents(self) -> list[dict[str, Any]]:
        """fio's documents: those that begin as fio writes them, wherever that is, else those in
        any JSON that begins a line."""
        begins_as_fio = _BEGIN.search(self.text) is not None
        documents: list[dict[str, Any]] = []
        torn: list[int] = []
        at = 0
        while (
            match := (_BEGIN if begins_as_fio else _LINE_BRACE).search(self.text, at)
        ) is not None:
            begin = match.start(0 if begins_as_fio else 1)
            if not documents and not torn:
                self.leading_text = _before(self.text, begin)
            value, at = self._decode(begin)
            if value is None:
                torn.append(len(documents) + len(torn) + 1)
                continue
            self.values += 1
            documents += list(_documents_in(value, _DEEPEST))
        if documents and torn:
            total = len(documents) + len(torn)
            for number in torn:
                self.assumptions.append(
                    f"document {number} is cut off: the one before it counts"
                    if number == total
                    else f"document {number} of {total} is damaged and left out"
                )
        return documents

    def _decode(self, begin: int) -> tuple[Any, int]:
        """The value that begins there, None for a damaged one, and where the next may begin."""
        try:
            return _DECODER.raw_decode(self.text, begin)
        except (ValueError, RecursionError) as error:
            following = _BEGIN.search(self.text, begin + 1)
            end = following.start() if following is not None else len(self.text)
            repaired, replaced = _NOT_FINITE.subn(r"\1null", self.text[begin:end])
            if replaced:
                self.assumptions.append(
                    f"{replaced} values that are not numbers (nan, inf) taken as absent"
                )
                self.text = self.text[:begin] + repaired + self.text[end:]
                return self._decode(begin)
            self.error = self.error or error
            return None, end


def _before(text: str, begin: int) -> str:
    """The text before a document: not what a script writes on its line, nor JSON around it."""
    line_start = text.rfind("\n", 0, begin) + 1
    on_line = text[line_start:begin].strip()
    lines = text[:line_start].split("\n")
    outer = next(
        (
            place
            for place, line in enumerate(lines)
            if line.lstrip().startswith(("{", "[")) or line.rstrip().endswith(("{", "["))
        ),
        len(lines),
    )
    kept = lines[:outer] + ([on_line] if on_line.startswith("fio: ") else [])
    return "\n".join(kept).strip()


def _documents_in(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """fio's documents in a JSON value, also below keys and in lists."""
    if isinstance(value, dict):
        if any(name in value for name in ("jobs", "client_stats", "fio version")):
            yield value
            return
        value = list(value.values())
    if isinstance(value, list) and depth:
        for part in value:
            yield from _documents_in(part, depth - 1)


def _is_continued(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a document is a later report of the same run: the same jobs are further on, and they
    began before the earlier report."""
    old, new = _entries(before), _entries(after)
    if len(old) > len(new) or before.get("global options") != after.get("global options"):
        return False
    pairs = list(zip(old, new, strict=False))
    if any(earlier.get(name) != later.get(name) for earlier, later in pairs for name in _IDENTITY):
        return False
    starts = [(finite(a.get("job_start")), finite(b.get("job_start"))) for a, b in pairs]
    if starts and all(a and b for a, b in starts):
        return all(a == b for a, b in starts)
    if any(not _grows(earlier, later) for earlier, later in pairs):
        return False
    ended, ends = _end_ms(before), _end_ms(after)
    if ended is None or ends is None:
        return _milliseconds(new) > _milliseconds(old)
    return ends - _milliseconds(new) < ended


_IDENTITY = ("jobname", "groupid", "hostname", "job options")


def _entries(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    entries = document.get("client_stats", document.get("jobs"))
    return (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )


def _operations(entry: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {
        name: value
        for name in ("read", "write", "trim", "mixed")
        if isinstance(value := entry.get(name), dict)
    }


def _grows(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> bool:
    operations = _operations(later)
    return all(
        (finite(value.get(name)) or 0) <= (finite(operations.get(operation, {}).get(name)) or 0)
        for operation, value in _operations(earlier).items()
        for name in ("total_ios", "io_bytes", "runtime")
    )


def _milliseconds(entries: Sequence[Mapping[str, Any]]) -> float:
    """How long fio ran at least: `elapsed` is rounded up."""
    runtimes = [
        finite(value.get("runtime")) or 0.0
        for entry in entries
        for value in _operations(entry).values()
    ]
    elapsed = [1000 * ((finite(entry.get("elapsed")) or 0.0) - 1) for entry in entries]
    return max((*runtimes, *elapsed), default=0.0)


def _end_ms(document: Mapping[str, Any]) -> float | None:
    exact, seconds = finite(document.get("timestamp_ms")), finite(document.get("timestamp"))
    return exact or (seconds * 1000 if seconds else None)


def _start_of(text: str) -> str:
    line = text.strip().splitlines()[0]
    return line if len(line) <= 60 else f"{line[:60]}..."


def _damage_error(error: Exception, text: str, where: str) -> FormatError:
    if not isinstance(error, json.JSONDecodeError):
        return FormatError(
            "the JSON is damaged: nested too deeply, or a number of absurd length", where=where
        )
    line = text.count("\n", 0, error.pos) + 1
    lines = text.rstrip().count("\n") + 1
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return FormatError(
            f"JSON ends at line {lines}, before its last brace: fio was killed, or the disk was full",
            where=where,
        )
    return FormatError(f"the JSON is damaged: {error.msg.lower()}", where=f"{where}:{line}")
