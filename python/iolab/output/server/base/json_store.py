# SPDX-License-Identifier: Apache-2.0
"""Saved documents (worksheets, alerts): a JSON file each in one directory, read without trust. A
name is checked before it becomes part of a path."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from iolab.base.documents import Model
from iolab.base.errors import FormatError, IolabError, UsageError
from iolab.base.files import make_folders, replacing

from .store import NotServed

LARGEST = 1 << 20
"""Bytes of a document."""
MOST = 1000
"""Documents of a directory at most."""
NAMES = r"[A-Za-z0-9_-][A-Za-z0-9 ._-]{0,63}"

_SUFFIX = ".json"

Document = TypeVar("Document", bound=Model)


def folder(variables: Mapping[str, str], kind: str = "DATA", default: str = ".local/share") -> Path:
    """iolab's directory of a kind: `$XDG_DATA_HOME/iolab`, by default below `~/.local/share`."""
    base = variables.get(f"XDG_{kind}_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / default) / "iolab"


class JsonStore(Generic[Document]):
    """The documents of a directory, which is made once something is saved.

    Attributes:
        model: of the documents. noun: what one is called in words. most: how many there may be.
    """

    def __init__(self, directory: Path, model: type[Document], noun: str, most: int = MOST) -> None:
        self.directory, self.model, self.noun, self.most = directory, model, noun, most

    def names(self) -> list[str]:
        """Names of what is saved, ascending."""
        try:
            stems = [path.stem for path in self.directory.iterdir() if path.suffix == _SUFFIX]
        except OSError:
            return []
        return sorted(name for name in stems if re.fullmatch(NAMES, name))[: self.most]

    def read(self, name: str) -> tuple[Document, int]:
        """(a saved document, when it was saved in ns since 1970); NotServed where there is none,
        FormatError where the file is none."""
        path = self.path(name)
        try:
            with os.fdopen(
                os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
            ) as file:
                content, changed = file.read(LARGEST + 1), os.fstat(file.fileno()).st_mtime_ns
        except FileNotFoundError:
            raise NotServed(f"there is no {self.noun} '{name}'") from None
        except OSError as error:
            raise FormatError(f"{self.noun} '{name}' can't be read: {error.strerror}") from None
        if len(content) > LARGEST:
            raise FormatError(f"{self.noun} '{name}' is larger than {LARGEST} bytes")
        try:
            return self.model.model_validate_json(content), changed
        except ValidationError as error:
            raise FormatError(f"{self.noun} '{name}' is damaged: {said(error)}") from None

    def write(self, name: str, document: Document) -> Document:
        """Save it under its name, instead of the document of that name."""
        if getattr(document, "name", name) != name:
            raise UsageError(
                f"the {self.noun} has another name than the path",
                where="name",
                hint=f"'{name}' is in the path",
            )
        path = self.path(name)
        content = document.model_dump_json(by_alias=True).encode()
        if len(content) > LARGEST:
            raise UsageError(
                f"the {self.noun} has {len(content)} bytes, and {LARGEST} are the most"
            )
        if not path.exists() and len(self.names()) >= self.most:
            raise UsageError(f"{self.most} {self.noun}s are the most", hint="delete one first")
        try:
            if self.directory.is_symlink():
                raise OSError(errno.ELOOP, "is a symbolic link, through which nothing is written")
            make_folders(self.directory, 0o700)
            with replacing(path, mode=0o600) as temporary:
                temporary.write_bytes(content)
        except OSError as error:
            raise IolabError(
                f"the {self.noun} can't be saved: {error.strerror}", where=self.directory
            ) from None
        return document

    def remove(self, name: str) -> None:
        """Delete it; NotServed where there is none."""
        try:
            self.path(name).unlink()
        except FileNotFoundError:
            raise NotServed(f"there is no {self.noun} '{name}'") from None
        except OSError as error:
            raise IolabError(
                f"the {self.noun} can't be deleted: {error.strerror}", where=self.directory
            ) from None

    def path(self, name: str) -> Path:
        """The path of a document of that name. UsageError for an invalid name."""
        if re.fullmatch(NAMES, name) is None:
            raise UsageError(
                f"that is not a name of a {self.noun}",
                where="name",
                hint="up to 64 letters a-z, A-Z, digits, spaces, dots, - and _; no dot or space first",
            )
        return self.directory / f"{name}{_SUFFIX}"


def said(error: ValidationError) -> str:
    """What is wrong with a document first, and where."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    # of the forms that a part may have, those that it does not have at all come with missing and
    # foreign fields
    first = next(
        (error for error in errors if error["type"] not in ("missing", "extra_forbidden")),
        errors[0],
    )
    # pydantic names its own validators among the parts of a place
    place = ".".join(
        str(part)[:40] for part in first["loc"] if not str(part).startswith("function-")
    )
    return f"{place}: {first['msg']}" if place else str(first["msg"])
