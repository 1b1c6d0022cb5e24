# SPDX-License-Identifier: Apache-2.0
"""The kind of directory that a path is, by the names in it, and what a folder contains: recordings,
results and histories. Nothing in them is read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ...history.store import FILE as HISTORY
from ...recording.base.layout import FACTS as RECORDING
from ...results.evidence.manifest import FILE as MANIFEST
from ...results.open.multi_host import FILE as HOSTS

Kind = Literal["recording", "results", "history", "folder"]

DEPTH = 4
"""Levels of folders that are searched."""
MOST = 20_000
"""Directories that are searched; more are left out, with a problem that says so."""

_MARKERS: dict[str, Kind] = {
    RECORDING: "recording",
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
                return _sorted(contents)
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
    return _sorted(contents)


def _folders(directory: Path) -> list[Path]:
    with os.scandir(directory) as entries:
        return sorted(
            directory / entry.name
            for entry in entries
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
        )


def _sorted(contents: Contents) -> Contents:
    contents.places.sort(key=lambda place: place[1])
    return contents
