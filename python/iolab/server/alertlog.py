"""The log of alerts: a line of JSON for whatever was said, in one file that does not grow without end."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from pydantic import ValidationError

from ..errors import FormatError, IolabError
from .alert import AlertLine, AlertLog

LARGEST = 4 << 20
"""Bytes after which the file becomes `.1`, in place of what that was."""
TAIL = 1 << 20
MOST = 1000
"""Lines of an answer: the latest."""


class LogFile:
    """The file, made once there is something to say."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def write(self, line: AlertLine) -> None:
        """Add a line. IolabError where it can't be written."""
        data = line.model_dump_json().encode() + b"\n"
        try:
            with self._lock:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                number = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
                with os.fdopen(number, "ab") as file:
                    file.write(data)
                    full = file.tell() > LARGEST
                if full:
                    self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        except OSError as error:
            raise IolabError(f"the log of alerts can't be written: {error.strerror}", where=self.path) from None

    def latest(self) -> AlertLog:
        """The latest lines, the oldest first; damaged ones are left out, as is one that is still being written."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                start = file.seek(max(0, size - TAIL))
                data = file.read(TAIL)
        except FileNotFoundError:
            return AlertLog(lines=[], left=0)
        except OSError as error:
            raise FormatError(f"the log of alerts can't be read: {error.strerror}") from None
        texts = data.split(b"\n")[1 if start else 0:-1]
        found = [line for line in (_line(text) for text in texts) if line is not None]
        return AlertLog(lines=found[-MOST:], left=max(0, len(found) - MOST))


def _line(text: bytes) -> AlertLine | None:
    try:
        return AlertLine.model_validate_json(text)
    except ValidationError:
        return None
