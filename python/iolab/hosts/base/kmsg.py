# SPDX-License-Identifier: Apache-2.0
"""The kernel's messages while iolab runs, from `/dev/kmsg` (the kernel's
Documentation/ABI/testing/dev-kmsg)."""

from __future__ import annotations

import errno
import os

PATH = "/dev/kmsg"
_LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")
_RECORD = 8192
"""Longest record that the kernel hands out (CONSOLE_EXT_LOG_MAX)."""
_MOST = 10_000
"""Records taken at once: a kernel that talks faster than it is read must not hold up a study."""


class Kmsg:
    """Messages that come after it was opened. One read() yields one record; nothing waits."""

    def __init__(self, path: str = PATH) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError:
            os.close(self._file)
            raise

    def new(self) -> list[str]:
        """Lines since the last call."""
        new_lines: list[str] = []
        while self._file >= 0 and len(new_lines) < _MOST:
            try:
                record = os.read(self._file, _RECORD)
            except BlockingIOError:
                break
            except OSError as error:
                if (
                    error.errno == errno.EPIPE
                ):  # the ring went round; the next read goes on with the oldest record there is
                    new_lines.append(
                        "iolab: messages were lost: the kernel's ring buffer went round"
                    )
                    continue
                break
            if not record:
                break
            new_lines.append(line_of(record))
        return new_lines

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def line_of(record: bytes) -> str:
    """`warn  [ 4033.860585] text` from `4,339,4033860585,-;text`, without the key=value lines below; as it is where it is no record."""
    head, semicolon, text = record.decode("utf-8", "replace").partition(";")
    fields = head.split(",")
    if not semicolon or len(fields) < 3 or not fields[0].isdecimal() or not fields[2].isdecimal():
        return record.decode("utf-8", "replace").strip().replace("\n", " ")
    return f"{_LEVELS[int(fields[0]) & 7]:<6}[{int(fields[2]) / 1e6:12.6f}] {text.partition(chr(10))[0]}"
