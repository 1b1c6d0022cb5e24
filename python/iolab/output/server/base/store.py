# SPDX-License-Identifier: Apache-2.0
"""What is served, by name: recordings, traces, results and histories, found in folders and opened
read-only. A name is looked up, never made into a path."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from iolab.base.errors import FormatError, IolabError, ResultsError, UsageError
from iolab.recordings.archive.address import url_of
from iolab.recordings.ask.engine.snapshot import behind_ns
from iolab.recordings.ask.kept.recorded import span_of
from iolab.recordings.store.base.layout import FACTS, is_recording
from iolab.recordings.store.read.folder import Folder
from iolab.recordings.store.read.recording import Recording, open_events
from iolab.recordings.store.read.trace import STDIN, Summary, Trace
from iolab.studies.history.store import FILE as HISTORY
from iolab.studies.history.store import History
from iolab.studies.results.evidence.manifest import FILE as MANIFEST
from iolab.studies.results.open.multi_host import FILE as HOSTS
from iolab.studies.results.open.multi_host import parts_of

from .archives import ServedArchive, label_of

Kind = Literal["recording", "results", "history", "folder"]

LIVE_NS = 2 * 10**9
"""The last time of several recordings that grow, which is in no answer."""
DEPTH = 4
"""Levels of folders that are searched."""
MOST = 20_000
"""Directories that are searched; more are left out, with a problem that says so."""

_MARKERS: dict[str, Kind] = {
    FACTS: "recording",
    HOSTS: "results",
    MANIFEST: "results",
    HISTORY: "history",
}


@dataclass
class Contents:
    """What a folder contains.

    Attributes:
        places: kind and path of each, in order of their paths. problems: folders that can't be
        read, as (path, reason).
    """

    places: list[tuple[Kind, Path]] = field(default_factory=list)
    problems: list[tuple[Path, str]] = field(default_factory=list)


def kind_of(directory: Path) -> Kind:
    """The kind of a directory. OSError where it can't be read."""
    with os.scandir(directory) as entries:
        names = {entry.name for entry in entries}
    return next((kind for name, kind in _MARKERS.items() if name in names), "folder")


def search(folder: Path) -> Contents:
    """Everything in a folder, `DEPTH` levels down. Hidden directories and symbolic links are not
    followed; nothing is searched below a recording, results or a history."""
    contents = Contents()
    level, searched = [folder], 0
    for depth in range(DEPTH + 1):
        below: list[Path] = []
        for directory in level:
            searched += 1
            if searched > MOST:
                words = f"has more than {MOST} directories; the others were not searched"
                contents.problems.append((folder, words))
                return _sort_places(contents)
            try:
                kind = kind_of(directory)
                if kind != "folder":
                    contents.places.append((kind, directory))
                elif depth < DEPTH:
                    below += _folders(directory)
            except OSError as error:
                reason = f"can't be read: {error.strerror or error}"
                contents.problems.append((directory, reason))
        level = below
    return _sort_places(contents)


def _folders(directory: Path) -> list[Path]:
    with os.scandir(directory) as entries:
        return sorted(
            directory / entry.name
            for entry in entries
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
        )


def _sort_places(contents: Contents) -> Contents:
    contents.places.sort(key=lambda place: place[1])
    return contents


Opened: TypeAlias = "Trace | Recording"
Asked: TypeAlias = "Trace | Recording | Folder"
"""What can be asked: also the recordings of all hosts together."""
ALL_HOSTS = "all hosts"


class NotServed(UsageError):
    """There is nothing of that name."""


class Gone(ResultsError):
    """What has that name was removed or moved since the service began; it is served again once it
    is back."""


class Store:
    """Recordings and traces by name. Safe to use from several threads.

    Attributes:
        results: directories of results, by name. histories: directories of histories, by name.
        archives: by URL. problems: folders that can't be read, as (path, reason).
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Serve paths: archives (`archive:URL`) with their recordings, recordings, traces, results directories with the recordings in them,
        histories with the results in them, and folders of these.

        Results of several hosts are those of each host that has recordings, else one. A damaged
        recording is served with its problem, next to the others. Errors as `open_events` where a
        path is none of these, ResultsError where `hosts.json` is damaged and where nothing that
        can be read is served.
        """
        self._paths: dict[str, Path] = {}
        self._of: dict[str, str] = {}
        self.results: dict[str, Path] = {}
        self.histories: dict[str, Path] = {}
        self.archives: dict[str, ServedArchive] = {}
        self._archived: dict[str, tuple[str, str]] = {}
        self.problems: list[tuple[Path, str]] = []
        self._folders: list[Path] = []
        self._known: set[Path] = set()
        self._adding = threading.Lock()
        self._recordings: dict[str, Recording] = {}
        self._summaries: dict[str, tuple[tuple[int, int], Summary]] = {}
        for path in paths:
            self._add_given(path)
        self._traces = self._open_traces()
        self.refresh()
        if paths and not (self._paths or self.results or self.histories or self.archives):
            reasons = [f"{path}: {reason}" for path, reason in self.problems]
            raise UsageError(
                "has no recordings, results or histories" if not reasons else reasons[0],
                where=paths[0],
                hint="iolab record, run and import make some, and archive:URL names an archive",
            )

    def refresh(self) -> None:
        """Add what was made in folders and histories since they were searched."""
        with self._adding:
            problems: list[tuple[Path, str]] = []
            for folder in self._folders:
                contents = search(folder)
                problems += contents.problems
                for kind, path in contents.places:
                    if path not in self._known:
                        self._add_found(kind, path, str(path.relative_to(folder)))
            for directory in self.histories.values():
                self._add_entries(directory)
            for name, path in self.results.items():
                self._add_recordings(name, path)
            self.problems = problems
        for url in self.archives:
            self.refresh_archive(url)

    def refresh_archive(self, url: str) -> dict[str, str]:
        """Add recordings that were pushed into an archive. Returns the names of its recordings, by key."""
        recordings = self.archives[url].listing().recordings
        with self._adding:
            names = {key: name for name, (home, key) in self._archived.items() if home == url}
            for key, recording in recordings.items():
                if key not in names:
                    name = names[key] = _free(self._paths, label_of(recording))
                    self._archived = {**self._archived, name: (url, key)}
                    self._paths = {**self._paths, name: recording.path}
        return names

    def _add_given(self, path: Path) -> None:
        if path == STDIN:
            raise UsageError(
                "standard input can be read only once", hint="save the trace into a file first"
            )
        if (url := url_of(str(path))) is not None:
            self.archives[url] = ServedArchive(url)
            self.refresh_archive(url)
            return
        try:
            kind = kind_of(path)
        except OSError:
            kind = "recording"  # or a trace, or nothing: who opens it says why
        if kind == "folder":
            self._folders.append(path)
        elif kind == "history":
            self._add_history(path, _label(path))
        elif kind == "results":
            parts = [part for part in parts_of(path) if _inside(part)] or [path]
            for part in parts:
                self._add_results(part, _label(part))
        else:
            self._paths[_free(self._paths, _label(path))] = path
        self._known.add(path)

    def _add_found(self, kind: Kind, path: Path, label: str) -> None:
        """Add a directory that was found in a folder: whatever is wrong with it is its own
        problem."""
        self._known.add(path)
        if kind == "history":
            self._add_history(path, label)
        elif kind == "results":
            self._add_results(path, label)
        else:
            self._paths = {**self._paths, _free(self._paths, label): path}

    def _add_results(self, path: Path, label: str) -> None:
        """Add results, and the recordings in them."""
        self._known.add(path)
        name = _free(self.results, label)
        self.results = {**self.results, name: path}
        self._add_recordings(name, path)

    def _add_recordings(self, name: str, results: Path) -> None:
        """Add the recordings in results that are not served yet."""
        for place in _inside(results):
            if place not in self._known:
                self._known.add(place)
                recording = _free(self._paths, f"{name}/{place.name}")
                self._paths = {**self._paths, recording: place}
                self._of = {**self._of, recording: name}

    def _add_history(self, path: Path, label: str) -> None:
        self.histories = {**self.histories, _free(self.histories, label): path}

    def _add_entries(self, directory: Path) -> None:
        """Add the results of a history."""
        try:
            history = History(directory)
        except ResultsError:
            return  # its problem is stated where it is listed
        served = {_resolve(path) for path in self.results.values()}
        for entry in history.entries:
            path = history.directory(entry)
            if path in self._known:
                continue
            self._known.add(path)
            resolved = _resolve(path)
            if resolved not in served and (resolved / MANIFEST).exists():
                self._add_results(resolved, _label(resolved))

    @property
    def names(self) -> list[str]:
        """What is served, in the order it was given."""
        return list(self._paths)

    @property
    def is_fleet(self) -> bool:
        """Whether recordings of fleets are all that is served."""
        if self.results or self.histories:
            return False
        fleets = self.fleets()
        in_fleets = {name for names in fleets.values() for name in names}
        return bool(fleets) and self._paths.keys() == in_fleets

    def fleets(self) -> dict[str, list[str]]:
        """Names of the recordings of several hosts that are shown together: those of each archive, by
        URL, and of each folder that has several, by path."""
        fleets: dict[str, list[str]] = {url: [] for url in self.archives}
        for name, (url, _) in self._archived.items():
            fleets[url].append(name)
        for folder in self._folders:
            names = [
                name
                for name, path in self._paths.items()
                if path.parent == folder and name not in self._traces
            ]
            if len(names) > 1:
                fleets[str(folder)] = names
        return fleets

    def fleet_names(self) -> dict[str, str]:
        """The places of fleets, by the name under which all their recordings are asked as one."""
        names: dict[str, str] = {}
        for place in self.fleets():
            label = f"{_label(Path(place))}: {ALL_HOSTS}"
            names[_free({**self._paths, **names}, label)] = place
        return names

    def members(self, name: str) -> list[str]:
        """The names of the recordings of all hosts; of anything else, its own name."""
        place = None if name in self._paths else self.fleet_names().get(name)
        return [name] if place is None else self.fleets()[place]

    def open_asked(self, name: str) -> Asked:
        """As `open`, also all hosts: their recordings that can be read. ResultsError where none can."""
        if self.is_trace(name) or name in self._paths:
            return self.open(name)
        recordings: list[Recording] = []
        problems: list[tuple[Path, str]] = []
        for member in self.members(name):
            try:
                opened = self.open(member)
                assert isinstance(opened, Recording)
                opened.catalogue()
                recordings.append(opened)
            except (ResultsError, FormatError) as error:
                problems.append((Path(member), error.message))
        place = Path(self.fleet_names()[name])
        if not recordings:
            raise ResultsError("no recording of it can be read", where=place)
        return Folder(place, tuple(recordings), tuple(problems))

    def open_fleet(self, place: str) -> dict[str, tuple[Recording, tuple[int, int]]]:
        """The recordings of a fleet at this moment, with their (first, last) ns, by name; with those
        that were added meanwhile. NotServed where there is no such fleet. A recording that can't be
        read, or has nothing, is left out."""
        if place in self.archives:
            self.refresh_archive(place)
        else:
            self.refresh()
        fleets = self.fleets()
        if place not in fleets:
            raise NotServed(
                "there is no such archive" if place else "no archive is served",
                hint="iolab view archive:URL serves one",
            )
        recordings: dict[str, tuple[Recording, tuple[int, int]]] = {}
        for name in fleets[place]:
            with contextlib.suppress(ResultsError, FormatError):
                recording = self.recording(name)
                assert recording is not None
                recording = recording.frozen()
                # a recording here also lasts when nothing comes
                span = recording.span() if recording.in_archive else self.ends(name)
                if span is not None and span != (0, 0):
                    recordings[name] = recording, span
        return recordings

    def is_trace(self, name: str) -> bool:
        """Whether what has that name is a trace, not a recording; NotServed where nothing has."""
        if name not in self._paths and name not in self.fleet_names():
            raise NotServed(
                f"there is no recording '{name[:80]}'", hint=f"there are {', '.join(self._paths)}"
            )
        return name in self._traces

    def open(self, name: str) -> Opened:
        """The recording or trace of that name. NotServed: there is none; Gone: it was deleted or moved;
        UsageError for all hosts."""
        trace = self.is_trace(name)
        if name not in self._paths:
            raise UsageError(
                "all hosts are several recordings",
                where=name,
                hint="choose the recording of a host",
            )
        path = self._paths[name]
        if name in self._archived:
            url, key = self._archived[name]
            return self.archives[url].open(key)
        try:
            (path if trace else path / FACTS).stat()
        except (FileNotFoundError, NotADirectoryError):
            raise Gone("does not exist any more: it was removed or moved", where=path) from None
        except OSError:
            pass  # who reads it says why that can't be
        if trace:
            return self._traces[name]
        if name not in self._recordings:
            self._recordings.setdefault(name, Recording(path))
        return self._recordings[name]

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
        summary = self._summaries.get(name)
        if summary is None or summary[0] != stamp:
            summary = self._summaries[name] = stamp, trace.summary()
        return summary[1]

    def ends(self, name: str) -> tuple[int, int]:
        """(first, last) ns of its events and of what is kept of earlier ones; (0, 0) of what is
        empty.

        A current recording ends with the latest of its events, its samples and the time that
        its writer reported, though no I/O came lately.
        """
        opened = self.open_asked(name)
        if isinstance(opened, Folder):
            spans = [ends_of(recording) for recording in opened.recordings]
            nonempty = [span for span in spans if span != (0, 0)]
            return (
                min((first for first, _ in nonempty), default=0),
                max((last for _, last in nonempty), default=0),
            )
        if not isinstance(opened, Trace):
            return ends_of(opened)
        facts = self.summary(name).facts
        return (0, 0) if facts["first_ns"] is None else (facts["first_ns"], facts["last_ns"])

    def newest(self, name: str) -> int:
        """Until when (ns) it is recorded by now: less than its end where it was begun again after
        the clock was set back."""
        opened = self.open_asked(name)
        if isinstance(opened, Folder):
            # the I/Os of the last moments do not come from all hosts at one time
            is_open = any(is_being_recorded(recording) for recording in opened.recordings)
            first, last = self.ends(name)
            return max(first, last - LIVE_NS) if is_open else last
        if isinstance(opened, Trace):
            return self.ends(name)[1]
        recording = opened.frozen()
        behind = behind_ns(recording)
        return ends_of(recording)[1] if behind is None else behind - 1

    def path(self, name: str) -> Path:
        """Its path; of all hosts, that of their folder."""
        return self._paths[name] if name in self._paths else Path(self.fleet_names()[name])

    def writable_path(self, name: str) -> Path:
        """The directory of a recording that can be changed. UsageError for an archived one, and for
        all hosts."""
        if name not in self._paths:
            raise UsageError(
                "all hosts can't be changed at once",
                where=name,
                hint="choose the recording of a host",
            )
        if name in self._archived:
            raise UsageError(
                "a recording in an archive can't be changed",
                where=name,
                hint="iolab archive fetch makes a recording of a span of it",
            )
        return self._paths[name]

    def results_of(self, name: str) -> str | None:
        """The results that a recording belongs to, None where it belongs to none."""
        return self._of.get(name)

    def of_results(self, name: str) -> list[str]:
        """The recordings of results."""
        return [recording for recording, home in self._of.items() if home == name]

    def _open_traces(self) -> dict[str, Trace]:
        """The traces of what is served, once all of it was looked at."""
        traces: dict[str, Trace] = {}
        damaged: list[IolabError] = []
        for name, path in self._paths.items():
            if name in self._archived:
                continue
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
        if (
            damaged
            and len(damaged) == len(self._paths)
            and not (self.results or self.histories or self._archived)
        ):
            raise damaged[0]
        return traces


def _free(taken: Mapping[str, object], label: str) -> str:
    """The label, or one with a number where it is taken."""
    name, number = label, 1
    while name in taken:
        number += 1
        name = f"{label} ({number})"
    return name


def _resolve(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _inside(path: Path) -> list[Path]:
    """The recordings in a directory of results."""
    try:
        return [place for place in sorted((path / "recordings").iterdir()) if is_recording(place)]
    except OSError:
        return []


def is_being_recorded(recording: Recording) -> bool:
    """Whether its last session has no end."""
    sessions = recording.facts.sessions
    return bool(sessions) and sessions[-1].get("until_ns") is None


def ends_of(recording: Recording) -> tuple[int, int]:
    """(first, last) ns of a recording; (0, 0) of an empty one."""
    recording = recording.frozen()
    span = span_of(recording)
    return (0, 0) if span is None else (span[0], max(span[1], _told_until_ns(recording)))


def _told_until_ns(recording: Recording) -> int:
    """Until when a current recording was recorded, 0 of one at rest."""
    if not is_being_recorded(recording):
        return 0
    last = max(
        (segment.last_ns for segment in (*recording.segments(), *recording.sample_segments())),
        default=0,
    )
    return max(last, recording.told_ns() or 0)


def _label(path: Path) -> str:
    return path.name or path.resolve().name or str(path)
