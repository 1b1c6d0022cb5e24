# SPDX-License-Identifier: Apache-2.0
"""What fio prints in addition to its results: notes and progress as always, its normal output, and
messages that mean trouble."""

from __future__ import annotations

import re

_HOST = re.compile(r"<[^<>]*> ")
"""What a client puts before the lines of its servers."""

_ORDINARY = re.compile(
    "|".join(
        (
            r"note: .*",
            r"fio-\d[-.\w]*",
            r"\.\.\.",
            r"Starting \d+ (?:process|thread).*",
            r".*: Laying out IO files? .*",
            r".*: \(g=\d+\): rw=.*",
            r"hostname=.*\bfio=.*",
            r"Jobs: \d+ .*",
            r"(?:[345];fio-|2;).*;.*;.*",
        )
    )
)
"""Lines that every run may have: notes, the banner of normal output and of clients, progress, terse
lines of several formats at once."""

_REPORT = re.compile(
    r".*: \(groupid=-?\d+, jobs=\d+\): err= 0\b.*|Run status group \d+ .*|Disk stats .*"
)
"""Lines after which fio's normal report continues indented; the line of a job with an error is not
one of them."""


def trouble_in(text: str) -> str | None:
    """The first line of fio's messages that is none of its ordinary notes, such as an I/O error or
    the end by a signal."""
    in_report = False
    for line in re.split(r"[\r\n]+", text):
        words = _HOST.sub("", line, count=1).rstrip()
        if not words or (in_report and words[0] in " \t"):
            continue
        in_report = _REPORT.fullmatch(words) is not None
        if not in_report and not _ORDINARY.fullmatch(words.strip()):
            return line.strip()
    return None
