"""Saved worksheets: a JSON file each in one directory, read without trust. A name is checked before it becomes part of a path."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from ..errors import FormatError, IolabError, UsageError
from .sheet import SavedFacts, SavedWorksheets, Worksheet
from .store import NotServed

LARGEST = 1 << 20
"""Bytes of a worksheet."""
MOST = 1000
"""Worksheets that are saved."""
NAMES = r"[A-Za-z0-9_-][A-Za-z0-9 ._-]{0,63}"

_SUFFIX = ".json"


def folder(variables: Mapping[str, str], kind: str = "DATA", default: str = ".local/share") -> Path:
    """iolab's directory of a kind: `$XDG_DATA_HOME/iolab`, by default below `~/.local/share`."""
    base = variables.get(f"XDG_{kind}_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / default) / "iolab"


class Shelf:
    """The worksheets of a directory, which is made once something is saved."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def listed(self) -> SavedWorksheets:
        """What is saved, by name; what can't be read is listed with its problem."""
        found = []
        for name in self._names()[:MOST]:
            try:
                changed = self._path(name).stat().st_mtime_ns
                sheet = self.read(name)
                found.append(SavedFacts(name=name, recording=sheet.recording, graphs=len(sheet.graphs), changed_ns=changed, problem=""))
            except NotServed:
                continue  # removed meanwhile
            except IolabError as error:
                found.append(SavedFacts(name=name, recording="", graphs=0, changed_ns=changed, problem=error.message))
            except OSError:
                continue
        return SavedWorksheets(worksheets=found)

    def read(self, name: str) -> Worksheet:
        """A saved worksheet; NotServed where there is none, FormatError where the file is none."""
        path = self._path(name)
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                content = file.read(LARGEST + 1)
        except FileNotFoundError:
            raise NotServed(f"there is no worksheet '{name}'") from None
        except OSError as error:
            raise FormatError(f"worksheet '{name}' can't be read: {error.strerror}") from None
        if len(content) > LARGEST:
            raise FormatError(f"worksheet '{name}' is larger than {LARGEST} bytes")
        try:
            return Worksheet.model_validate_json(content)
        except ValidationError as error:
            raise FormatError(f"worksheet '{name}' is damaged: {said(error)}") from None

    def write(self, name: str, sheet: Worksheet) -> Worksheet:
        """Save it under its name, in place of what had that name before."""
        if sheet.name != name:
            raise UsageError("the worksheet has another name than the path", where="name", hint=f"'{name}' is in the path")
        path = self._path(name)
        content = sheet.model_dump_json(by_alias=True).encode()
        if len(content) > LARGEST:
            raise UsageError(f"the worksheet has {len(content)} bytes, and {LARGEST} are the most")
        if not path.exists() and len(self._names()) >= MOST:
            raise UsageError(f"{MOST} worksheets are the most", hint="delete one first")
        part = path.with_name(f".{secrets.token_hex(8)}")
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise IolabError(f"the worksheet can't be saved: {error.strerror}", where=self.directory) from None
        return sheet

    def remove(self, name: str) -> None:
        """Delete it; NotServed where there is none."""
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            raise NotServed(f"there is no worksheet '{name}'") from None
        except OSError as error:
            raise IolabError(f"the worksheet can't be deleted: {error.strerror}", where=self.directory) from None

    def _path(self, name: str) -> Path:
        if re.fullmatch(NAMES, name) is None:
            raise UsageError("that is no name of a worksheet", where="name",
                             hint="up to 64 letters a-z, A-Z, digits, spaces, dots, - and _; no dot or space first")
        return self.directory / f"{name}{_SUFFIX}"

    def _names(self) -> list[str]:
        try:
            found = [path.stem for path in self.directory.iterdir() if path.suffix == _SUFFIX]
        except OSError:
            return []
        return sorted(name for name in found if re.fullmatch(NAMES, name))


def said(error: ValidationError) -> str:
    """What is wrong with a document first, and where."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part)[:40] for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])
