# SPDX-License-Identifier: Apache-2.0
"""A folder of recordings: of several hosts, or of several times of a host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import FormatError, IolabError, ResultsError

from ..base.layout import is_recording
from .recording import Recording
from .trace import STDIN

OF_RESULTS = "recordings"
"""The folder of results with the recordings of their hosts."""


@dataclass(frozen=True)
class Folder:
    """The recordings directly in a folder, in order of their paths.

    Attributes:
        path: the folder. recordings: those that can be opened. problems: the others, as (path,
        reason).
    """

    path: Path
    recordings: tuple[Recording, ...]
    problems: tuple[tuple[Path, str], ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about any answer: recordings that are left out."""
        return tuple(f"{path.name} is left out: {reason}" for path, reason in self.problems)


def is_folder(path: Path) -> bool:
    """Whether a path is a directory that is no recording, and not the results of one host."""
    if path == STDIN or not path.is_dir() or is_recording(path):
        return False
    return recording_of_results(path) is None


def recording_of_results(path: Path) -> Path | None:
    """The only recording in a directory of results; None where there is none or several."""
    inner = path / OF_RESULTS
    if not inner.is_dir() or is_recording(path):
        return None
    places = _places(inner)
    return places[0] if len(places) == 1 else None


def has_recordings(path: Path) -> bool:
    """Whether a path is such a directory with any recording."""
    return is_folder(path) and bool(_places(path))


def open_folder(path: Path) -> Folder:
    """The recordings of a folder, or of the hosts of results. FormatError where it can't be read or
    has none; the error of the first where none can be opened."""
    inner = path / OF_RESULTS
    folder = inner if inner.is_dir() else path
    recordings: list[Recording] = []
    errors: list[tuple[Path, IolabError]] = []
    for place in _places(folder):
        try:
            recordings.append(Recording(place))
        except ResultsError as error:
            errors.append((place, error))
    if not recordings and errors:
        raise errors[0][1]
    if not recordings:
        raise FormatError(
            "is a directory without recordings",
            where=path,
            hint="name a trace file, a recording, a folder of recordings, or archive:URL",
        )
    return Folder(path, tuple(recordings), tuple((place, error.message) for place, error in errors))


def _places(folder: Path) -> list[Path]:
    """The recordings directly in a folder. Hidden ones and symbolic links are left out."""
    try:
        return sorted(
            place
            for place in folder.iterdir()
            if not place.name.startswith(".") and not place.is_symlink() and is_recording(place)
        )
    except OSError as error:
        raise FormatError(f"can't be read: {error.strerror or error}", where=folder) from None
