# SPDX-License-Identifier: Apache-2.0
"""The log of alerts: a line of JSON for whatever was said, in one file that does not grow without
end."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from pydantic import ValidationError

from ...errors import FormatError, IolabError
from ...files import open_regular
from .alert import AlertLine, AlertLog

LARGEST = 4 << 20
"""Bytes after which the file becomes `.1`, instead of the earlier one."""
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
                number = os.open(
                    self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600
                )
                with os.fdopen(number, "ab") as file:
                    file.write(data)
                    full = file.tell() > LARGEST
                if full:
                    self.path.replace(self._before)
        except OSError as error:
            raise IolabError(
                f"the log of alerts can't be written: {error.strerror}", where=self.path
            ) from None

    def latest(self) -> AlertLog:
        """The latest lines, the oldest first, of the file and of that before it; damaged ones are
        left out, as is an unfinished one."""
        try:
            now, then = _read_end(self.path), _read_end(self._before)
        except OSError as error:
            raise FormatError(f"the log of alerts can't be read: {error.strerror}") from None
        # another service may have moved the file between the two
        parts = [then[1], now[1]] if now[0] != then[0] else [now[1]]
        texts = [text for data in parts for text in data.split(b"\n")[:-1]]
        alert_lines: list[AlertLine] = []
        while texts and len(alert_lines) < MOST:
            line = _line(texts.pop())
            if line is not None:
                alert_lines.append(line)
        return AlertLog(lines=alert_lines[::-1], left=len(texts))

    @property
    def _before(self) -> Path:
        return self.path.with_name(f"{self.path.name}.1")


def _read_end(path: Path) -> tuple[int | None, bytes]:
    """(inode, None without a file; content). Of a file that another process let grow, only
    the end is read."""
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            start = file.seek(max(0, status.st_size - 2 * LARGEST))
            data = file.read(2 * LARGEST)
    except FileNotFoundError:
        return None, b""
    return status.st_ino, data.partition(b"\n")[2] if start else data


def _line(text: bytes) -> AlertLine | None:
    try:
        return AlertLine.model_validate_json(text)
    except ValidationError:
        return None
