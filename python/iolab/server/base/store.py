# SPDX-License-Identifier: Apache-2.0
"""What is served, by name: recordings and traces, opened read-only. A name is looked up, never made
into a path."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from ...errors import FormatError, IolabError, ResultsError, UsageError
from ...recording.base.layout import FACTS, is_recording
from ...recording.read.open import open_events
from ...recording.read.recording import Recording
from ...recording.read.trace import STDIN, Summary, Trace
from ...results.open.multi_host import parts_of
from ...statistics.engine.coverage import behind_ns
from ...statistics.kept.recorded import span_of

Opened: TypeAlias = "Trace | Recording"


class NotServed(UsageError):
    """There is nothing of that name."""


class Gone(ResultsError):
    """What has that name was removed or moved since the service began; it is served again once it
    is back."""


class Store:
    """Recordings and traces by name. Safe to use from several threads.

    Attributes:
        results: directories of results whose recordings are among them, by name.

    Each thread has a recording of its own: one keeps what it read of hot files, and is not made to
    be shared.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Each path is a recording, a trace, or a results directory, which stands for the
        recordings in it; one of several hosts stands for the results of those that have some. A
        damaged recording is served with its problem, beside what is not. Errors as `open_events`
        where there is nothing else, ResultsError where `hosts.json` is damaged."""
        self._paths: dict[str, Path] = {}
        self._of: dict[str, str] = {}
        self.results: dict[str, Path] = {}
        for path in [part for given in paths for part in _parts(given)]:
            if path == STDIN:
                raise UsageError(
                    "standard input can be read only once", hint="save the trace into a file first"
                )
            inside = _inside(path)
            home = self._home(path) if inside else ""
            for place in inside or [path]:
                name = self._free(f"{home}/{place.name}" if home else _label(path))
                self._paths[name] = place
                if home:
                    self._of[name] = home
        self._held = threading.local()
        self._summaries: dict[str, tuple[tuple[int, int], Summary]] = {}
        self._traces = self._opened()

    @property
    def names(self) -> list[str]:
        """What is served, in the order it was given."""
        return list(self._paths)

    def is_trace(self, name: str) -> bool:
        """Whether what has that name is a trace, not a recording; NotServed where nothing has."""
        if name not in self._paths:
            raise NotServed(
                f"there is no recording '{name[:80]}'", hint=f"there are {', '.join(self._paths)}"
            )
        return name in self._traces

    def open(self, name: str) -> Opened:
        """What has that name; NotServed where nothing has, Gone where it is no longer in its place."""
        trace, path = self.is_trace(name), self._paths[name]
        try:
            (path if trace else path / FACTS).stat()
        except (FileNotFoundError, NotADirectoryError):
            raise Gone("is gone: it was removed or moved", where=path) from None
        except OSError:
            pass  # who reads it says why that can't be
        if trace:
            return self._traces[name]
        held: dict[str, Recording] = self._held.__dict__.setdefault("recordings", {})
        if name not in held:
            held[name] = Recording(self._paths[name])
        return held[name]

    def recording(self, name: str) -> Recording | None:
        """The recording of that name, None where it is a trace."""
        opened = self.open(name)
        return None if isinstance(opened, Trace) else opened

    def summary(self, name: str) -> Summary:
        """What a trace holds; it is read for this once, unless it changes."""
        trace = self._traces[name]
        try:
            stat = trace.path.stat()
        except OSError as error:
            raise FormatError(f"can't be read: {error.strerror}", where=trace.path) from None
        stamp = stat.st_mtime_ns, stat.st_size
        held = self._summaries.get(name)
        if held is None or held[0] != stamp:
            held = self._summaries[name] = stamp, trace.summary()
        return held[1]

    def ends(self, name: str) -> tuple[int, int]:
        """(first, last) ns of its events and of what is kept of earlier ones; (0, 0) of what is
        empty.

        A recording that goes on ends with the latest of its events, samples and what its writer
        told, though no I/O came lately.
        """
        opened = self.open(name)
        if not isinstance(opened, Trace):
            span = span_of(opened)
            return (0, 0) if span is None else (span[0], max(span[1], _told(opened)))
        facts = self.summary(name).facts
        return (0, 0) if facts["first_ns"] is None else (facts["first_ns"], facts["last_ns"])

    def newest(self, name: str) -> int:
        """Until when (ns) it is recorded by now: less than its end where it was begun again after
        the clock was set back."""
        opened = self.open(name)
        behind = None if isinstance(opened, Trace) else behind_ns(opened)
        return self.ends(name)[1] if behind is None else behind - 1

    def path(self, name: str) -> Path:
        """Where it lies."""
        return self._paths[name]

    def results_of(self, name: str) -> str | None:
        """The results that a recording belongs to, None where it lies alone."""
        return self._of.get(name)

    def of_results(self, name: str) -> list[str]:
        """The recordings of results."""
        return [recording for recording, home in self._of.items() if home == name]

    def _opened(self) -> dict[str, Trace]:
        """The traces of what is served, once all of it was looked at."""
        traces: dict[str, Trace] = {}
        damaged: list[IolabError] = []
        for name, path in self._paths.items():
            try:
                opened = open_events(path)
            except ResultsError as error:
                damaged.append(error)
                continue
            if isinstance(opened, Trace):
                traces[name] = opened
                try:
                    opened.check()
                except FormatError as error:
                    damaged.append(error)
        if damaged and len(damaged) == len(self._paths):
            raise damaged[0]
        return traces

    def _home(self, path: Path) -> str:
        """The name of results."""
        label, name, number = _label(path), _label(path), 1
        while name in self.results:
            number += 1
            name = f"{label} ({number})"
        self.results[name] = path
        return name

    def _free(self, label: str) -> str:
        """The label, or one with a number where it is taken."""
        name, number = label, 1
        while name in self._paths:
            number += 1
            name = f"{label} ({number})"
        return name


def _parts(path: Path) -> list[Path]:
    """The results of several hosts that have recordings; any other path is itself."""
    parts = parts_of(path)
    return [part for part in parts if _inside(part)] or parts


def _inside(path: Path) -> list[Path]:
    """The recordings in a directory of results; none of anything else."""
    inner = path / "recordings"
    return (
        [each for each in sorted(inner.iterdir()) if is_recording(each)]
        if not is_recording(path) and inner.is_dir()
        else []
    )


def _told(recording: Recording) -> int:
    """Until when a recording that goes on was recorded, 0 of one at rest."""
    sessions = recording.facts.sessions
    if not sessions or sessions[-1].get("until_ns") is not None:
        return 0
    last = max(
        (each.last_ns for each in (*recording.segments(), *recording.sample_segments())), default=0
    )
    return max(last, recording.told_ns() or 0)


def _label(path: Path) -> str:
    return path.name or path.resolve().name or str(path)
