# SPDX-License-Identifier: Apache-2.0
"""Which program a load runs, read from /proc while it runs."""

from __future__ import annotations

import contextlib
import os
import stat
from io import BufferedIOBase
from pathlib import Path

from ...hosts.facts.program_identity import file_identity, program_identity

_MOST = 16
"""Different programs of one name that are recorded."""
_WHOLE_LOOKS = 8
"""First looks that look at all descendants: a load may have a thousand, and starts them at once."""
_SCRIPT_WORDS = 3
"""Words of a command line among which an interpreter has its script."""


class ProgramWatch:
    """Records the path and identity of each program of a name in the tree of a load's process.

    A program that is interpreted counts by its script. The process itself counts where none of its
    tree has the name. Files are opened while the processes run, and read later.
    """

    def __init__(self, name: str, file: str | None = None) -> None:
        """`file`: what the load is started with. It counts, with `"seen": "before the start"`, if it
        has the name and the load ended before it was looked at."""
        self._name, self._file = name, file
        self._files: dict[tuple[str, int, int], BufferedIOBase] = {}
        self._others: dict[tuple[str, int, int], BufferedIOBase] = {}
        self._known: list[int] = []
        self._looks = 0

    def look(self, pid: int) -> None:
        """Look at the processes of a load once."""
        self._looks += 1
        is_whole = self._looks <= _WHOLE_LOOKS or not self._files
        for process in _tree(pid) if is_whole else [pid, *self._known]:
            path = self._program_of(process)
            if path and len(self._files) < _MOST and _open(path, process, self._files):
                self._known.append(process)
        if not self._files and not self._others:
            _open(f"/proc/{pid}/exe", pid, self._others)

    @property
    def has_found(self) -> bool:
        """Whether a program of the name was found."""
        return bool(self._files)

    def programs(self) -> dict[str, dict[str, str]]:
        """The name to path and identity of the program; a further program of the name has its path
        as key. Empty for unknown programs. Closes the files."""
        identities: dict[str, dict[str, str]] = {}
        for (path, _, _), file in (self._files or self._others).items():
            with contextlib.suppress(OSError):
                identity = file_identity(file)
                identities.setdefault(str(identity), {"path": path, **identity})
        if not identities and self._file is not None and _is_named(self._file, self._name):
            with contextlib.suppress(OSError):
                path = str(Path(self._file).resolve())
                identity = {"path": path, **program_identity(path), "seen": "before the start"}
                identities[path] = identity
        for file in (*self._files.values(), *self._others.values()):
            file.close()
        return {
            self._name if number == 0 else f"{self._name} ({identity['path']})": identity
            for number, identity in enumerate(identities.values())
        }

    def _program_of(self, pid: int) -> str | None:
        """The file of the process if it has the name: its executable, else its script."""
        if _is_named(_exe(pid), self._name):
            return f"/proc/{pid}/exe"
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:_SCRIPT_WORDS]
        except OSError:
            return None
        paths = [os.fsdecode(word) for word in words]
        return next(
            (path for path in paths if path[:1] == "/" and _is_named(path, self._name)), None
        )


def _open(path: str, pid: int, files: dict[tuple[str, int, int], BufferedIOBase]) -> bool:
    """Open a program that is not among the files yet; whether it was opened."""
    try:
        status = Path(path).stat()
        name = _exe(pid) if path.startswith("/proc/") else path
        key = (name, status.st_dev, status.st_ino)
        if key in files or not name or not stat.S_ISREG(status.st_mode):
            return False
        files[key] = Path(path).open("rb")  # noqa: SIM115 (read and closed by `programs`)
    except OSError:
        return False
    return True


def _exe(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return ""


def _is_named(path: str, name: str) -> bool:
    return path.removesuffix(" (deleted)").rpartition("/")[2] == name


def _tree(pid: int) -> list[int]:
    """A process and its descendants."""
    tree = [pid]
    for process in tree:
        try:
            for thread in Path(f"/proc/{process}/task").iterdir():
                tree += map(int, (thread / "children").read_text("ascii").split())
        except (OSError, ValueError):
            continue
    return tree
