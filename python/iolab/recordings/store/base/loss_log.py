# SPDX-License-Identifier: Apache-2.0
"""What was lost. The same loss in seconds that follow each other is one line, of a minute at most,
which lists its parts; what is older than the events that are left is kept by the hour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from iolab.base.errors import ResultsError
from iolab.base.files import EVIDENCE, read_regular

from ..ledger import CRC, Contents, Ledger, append_line, objects, rewrite
from .layout import LOSSES, Kind, telling

MINUTE_NS, HOUR_NS, EVER_NS = 60 * 10**9, 3600 * 10**9, 2**63

LEAST_BYTES, SHARE = 256 << 10, 8
"""Lines are joined on disk when so many bytes were added, and one part in so many of what was
there."""
MOST_FILES = 32
"""Recordings with remembered losses: a scrape asks all served ones."""

Line = Mapping[str, Any]
Part = tuple[int, int, int | None]
"""From, until (ns), and how much; None: unknown."""
Reach = Callable[[Line], tuple[int, bool]]
"""How long a line may become with this one, in ns, and whether it lists its parts."""


@dataclass(frozen=True)
class Noted:
    """Lines in the order of the first note of each: `source`, `kind`, `from_ns`, `until_ns`,
    `count`, `words`, `notes` (how many it includes), and perhaps `parts` (see `parts_of`).
    single: those to which none is joined, gaps above all. latest: of each kind the place of the
    last to which another may be joined.

    damaged: how many lines are none any more."""

    lines: Sequence[Line] = ()
    single: Sequence[Line] = ()
    latest: Mapping[tuple[object, ...], int] = field(default_factory=dict)
    damaged: int = 0


def noted_losses(directory: Path) -> Noted:
    """What is noted of a recording's losses now."""
    return read_losses(directory).content


def read_losses(directory: Path) -> Contents[Noted]:
    """The file of a recording's losses now."""
    return _LEDGER.read(directory / LOSSES)


def parts_of(line: Line) -> list[Part]:
    """The losses of a line with a time; the line itself where it doesn't list them."""
    first, until, count = line["from_ns"], line["until_ns"], line["count"]
    try:
        numbers = [int(word) for word in line.get("parts", "").split()]
    except ValueError:
        numbers = []
    if (
        not numbers
        or len(numbers) % 3
        or min(numbers[1::3]) < 0
        or sum(numbers[2::3]) != (count or 0)
    ):
        return [(first, until, count)]
    parts: list[Part] = []
    end = first
    for gap, length, amount in zip(*(iter(numbers),) * 3, strict=True):
        begin, end = end + gap, end + gap + length
        parts.append((begin, end, None if count is None else amount))
    return parts


def loss_of(
    kind: str,
    source: str = "",
    from_ns: int | None = None,
    until_ns: int | None = None,
    count: int | None = None,
    words: str | None = None,
    **more: Any,
) -> Line:
    """The line of a loss; see `RecordingWriter.loss`."""
    return {
        "source": source,
        "kind": kind,
        "from_ns": from_ns,
        "until_ns": until_ns,
        "count": count,
        **({"words": words} if words else {}),
        **more,
    }


def when(ns: int) -> str:
    """A moment in UTC, to the millisecond; a small one is of a trace's own clock, in seconds."""
    return (
        f"{ns / 1e9:.3f} s"
        if abs(ns) < 10**17
        else datetime.fromtimestamp(ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"
    )


def lacking_words(kind: Kind, lines: Iterable[Line]) -> list[str]:
    """What damaged files of events or samples held, and of which time, a phrase for each file."""
    by_file: dict[str, list[Line]] = {}
    for line in lines:
        by_file.setdefault(line["words"], []).append(line)
    rows = "I/Os" if kind == "events" else "samples"
    return [f"{words} ({rows} {_time(parts)} are missing)" for words, parts in by_file.items()]


def _time(parts: Sequence[Line]) -> str:
    starts, ends = ([part[name] for part in parts] for name in ("from_ns", "until_ns"))
    first = None if None in starts else when(min(starts))
    until = None if None in ends else when(max(ends))
    if first is None:
        return "of a time that is not known" if until is None else f"before {until}"
    return f"after {first}" if until is None else f"from {first} to {until}"


def damage(
    kind: Kind, last_ns: int | None, until_ns: int | None, count: int | None, words: str
) -> Line:
    """The loss of what a damaged hot file of events or samples held after `last_ns`, the last row
    that can be read. It is of any source, and has `of`, the kind of rows: of that time nothing is
    known."""
    first = None if last_ns is None else last_ns + 1
    until = until_ns if first is None or until_ns is None else max(first, until_ns)
    return loss_of("damaged", "", first, until, count, words, of=kind)


class LossLog:
    """Where a recording's writer notes what was lost."""

    def __init__(self, directory: Path, shrinks: Callable[[str], None] = lambda _: None) -> None:
        """`shrinks` is called with a file's name before it becomes shorter."""
        self._path = directory / LOSSES
        self._joined = 0
        self._shrinks = shrinks

    def add(self, line: Line, dropped: Mapping[str, Any] | None) -> None:
        """Append a line, and join the lines once it has grown. `dropped`: what retention
        removed, see `Facts`."""
        with telling(self._path, "add a line"):
            append_line(self._path, line)
            size = self._path.stat().st_size
        if size - self._joined > LEAST_BYTES + self._joined // SHARE:
            # what can't be joined now stands there as it came, and is tried again
            with suppress(ResultsError):
                self._join(dropped or {})
            with telling(self._path, "look at it"):
                self._joined = self._path.stat().st_size

    def _join(self, dropped: Mapping[str, Any]) -> None:
        until, maps_until = (
            dropped.get("until_ns") or -EVER_NS,
            dropped.get("maps_until_ns") or -EVER_NS,
        )

        def reach(line: Line) -> tuple[int, bool]:
            if line["until_ns"] > until:
                return MINUTE_NS, True
            # maps remain, which are looked at by longer columns; then nothing
            return (HOUR_NS if line["until_ns"] > maps_until else EVER_NS), False

        self._shrinks(LOSSES)
        with telling(self._path, "join its lines"):
            joined = _add_lines(Noted(), objects(read_regular(self._path, limit=EVIDENCE)), reach)
            lines = list(joined.lines)
            if joined.damaged:
                # damaged lines are not written again
                words = "lines about what was lost were damaged"
                lines.append(loss_of("damaged", words=words, notes=joined.damaged))
            rewrite(self._path, map(_short, lines))


def _short(line: Line) -> dict[str, Any]:
    """A line as it is written."""
    return {
        name: value
        for name, value in line.items()
        if (name, value) not in (("words", ""), ("notes", 1))
    }


@dataclass
class _Run:
    """A line that others are joined to. end: of the last part; parts: gap before, length and count
    of each."""

    line: Line
    until_ns: int
    count: int
    notes: int
    end: int
    parts: list[int]

    @classmethod
    def of(cls, line: Line) -> _Run:
        run = cls(line, line["until_ns"], 0, 0, line["from_ns"], [])
        run.add(line)
        return run

    def add(self, line: Line) -> None:
        for first, until, count in (
            parts_of(line)
            if "parts" in line
            else ((line["from_ns"], line["until_ns"], line["count"]),)
        ):
            self.parts += (first - self.end, until - first, count or 0)
            self.end = until
        self.until_ns = max(self.until_ns, line["until_ns"])
        self.count += line["count"] or 0
        self.notes += line["notes"]

    def line_of_run(self, detailed: bool) -> Line:
        line = {
            **self.line,
            "until_ns": self.until_ns,
            "notes": self.notes,
            "count": None if self.line["count"] is None else self.count,
        }
        return {**line, "parts": " ".join(map(str, self.parts))} if detailed else line


def _add_lines(
    before: Noted, more: Iterable[dict[str, Any] | None], reach: Reach = lambda _: (MINUTE_NS, True)
) -> Noted:
    lines, single, latest = list(before.lines), list(before.single), dict(before.latest)
    opened = {
        _begun(line): place
        for place, line in enumerate(lines)
        if line["kind"] == "gap" and line["until_ns"] is None
    }
    runs: dict[int, tuple[_Run, bool]] = {}
    damaged = before.damaged
    for raw in more:
        line = None if raw is None else _check_line(raw)
        if line is None:
            damaged += 1
            continue
        if not _is_joined(line):
            if (place := opened.pop(_begun(line), None)) is not None:
                # the same gap, which is over now
                single[single.index(lines[place])] = lines[place] = line
                continue
            if line["kind"] == "gap" and line["until_ns"] is None:
                opened[_begun(line)] = len(lines)
            lines.append(line)
            single.append(line)
            continue
        most_ns, detailed = reach(line)
        if not detailed:
            line.pop("parts", None)
        key = (line["source"], line["kind"], line["words"], line["count"] is None, most_ns)
        place = latest.get(key)
        if place is not None:
            opened_run, first = runs.get(place), lines[place]["from_ns"]
            until = lines[place]["until_ns"] if opened_run is None else opened_run[0].until_ns
            if first <= line["from_ns"] and max(until, line["until_ns"]) - first <= most_ns:
                run = _Run.of(lines[place]) if opened_run is None else opened_run[0]
                run.add(line)
                runs[place] = run, detailed
                continue
        latest[key] = len(lines)
        lines.append(line)
    for place, (run, detailed) in runs.items():
        lines[place] = run.line_of_run(detailed)
    return Noted(lines, single, latest, damaged)


def _begun(line: Line) -> tuple[object, ...]:
    """What the lines of the beginning and of the end of a gap have in common."""
    return line["kind"], line["source"], line["from_ns"]


def _check_line(line: dict[str, Any]) -> dict[str, Any] | None:
    """A line with all that it should have; None where it is none."""
    line = {"from_ns": None, "until_ns": None, "count": None, **line}
    line.pop(CRC, None)
    line["words"], line["notes"] = str(line.get("words") or ""), line.get("notes", 1)
    if not isinstance(line.get("parts", ""), str):
        del line["parts"]
    has_names = all(isinstance(line.get(name), str) for name in ("source", "kind"))
    timed = all(line[name] is None or is_time(line[name]) for name in ("from_ns", "until_ns"))
    counted = (
        (line["count"] is None or (is_time(line["count"]) and line["count"] >= 0))
        and is_time(line["notes"])
        and line["notes"] > 0
    )
    return line if has_names and timed and counted else None


def is_time(value: object) -> bool:
    """Whether it is a number of nanoseconds as columns of events have them."""
    return type(value) is int and -(2**63) <= value < 2**63


def _is_joined(line: Line) -> bool:
    """Whether it can be joined: it has a time; when nothing was recorded has a line of its own."""
    first, until = line["from_ns"], line["until_ns"]
    return (
        line["kind"] != "gap"
        and "of" not in line
        and None not in (first, until)
        and bool(first <= until)
    )


_LEDGER = Ledger(Noted(), _add_lines, MOST_FILES)
