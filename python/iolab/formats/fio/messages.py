# SPDX-License-Identifier: Apache-2.0
"""What fio prints in addition to its results: notes and progress as always, its normal output, and
messages that mean trouble."""

from __future__ import annotations

import re
from dataclasses import dataclass

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

_NOTICES = re.compile(
    "|".join(
        (
            r"fio: this platform does not support process shared mutexes.*",
            r"(?:fio: )?(?:native|posix)[ _]fallocate\b.*",
            r"fio: Any use of \w+= turns off randommap.*",
            r"fio: multiple writers may overwrite blocks.*",
            r"fio: cache invalidation of .* failed.*",
            r"fio: clocksource=cpu may not be reliable.*",
            r"fio: fadvise hint failed.*",
            r"fio: .*\bUse the \S+ option to (?:get rid of this warning|switch to ).*",
            r"fio: file .* exceeds 32-bit tausworthe random generator.*",
            r"fio: file .* failed allocating random map\. Running job without.*",
            r"fio: norandommap given for variable block sizes, verify limited.*",
            r"fio: bs_unaligned may not work with raw io.*",
            r"fio: verification read phase will never start .*",
            r"fio: (?:kb_base|unit_base|lat_percentiles) .*differs .*",
            r"fio: disabling status file updates.*",
            r"fio: only root may flush block devices.*",
            r"fio: limiting mlocked memory to .*",
            r"fio: failed setting verify thread affinity.*",
            r"fio: .* Pre-read disabled.*",
            r"fio: set (?:all )?debug .*",
            r"fio: --?\S+ is deprecated.*|Option \S+ is deprecated.*",
            r"clock setaffinity failed.*",
        )
    )
)
"""Warnings of fio that every run on some system, or with some options, has: they say nothing about
its numbers."""

_OF_FIO = re.compile(
    r"fio\b.*|.*\bfio: .*|.*\(groupid=-?\d+, jobs=\d+\): err=.*|.*\bpid=\d+, err=.*"
    r"|.*\bio_u error\b.*|.*\bterminating on signal\b.*|(?:verify|meta|crc\S*|md5|sha\S*|xxhash\S*): .*"
    r"|smalloc\b.*|hdr_fail\b.*|(?:received|expected) .*(?:checksum|data|crc).*|client: .*|steadystate\b.*"
    r"|bad (?:header|magic|block)\b.*|.*: No I/O performed by .*|file:\S+\.c:\d+.*|.*\bfunc=\w+, error=.*",
    re.IGNORECASE,
)
"""Messages that begin as fio's do, and those without its name."""

_REPORT = re.compile(
    r".*: \(groupid=-?\d+, jobs=\d+\): err= 0\b.*|Run status group \d+ .*|Disk stats .*"
)
"""Lines after which fio's normal report continues indented; the line of a job with an error is not
one of them."""


@dataclass(frozen=True)
class Messages:
    """Lines before fio's JSON, without the ordinary ones.

    Attributes:
        trouble: fio's, such as an I/O error or the end by a signal, and unknown messages of fio.
        notices: fio's known warnings, which say nothing about the numbers.
        others: lines
        that don't look like fio's, such as those of a shell or of ssh.
    """

    trouble: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def messages_in(text: str) -> Messages:
    """What a text before fio's JSON says, line by line."""
    trouble, notices, others = list[str](), list[str](), list[str]()
    in_report = False
    for line in re.split(r"[\r\n]+", text):
        words = _HOST.sub("", line, count=1).rstrip()
        if not words or (in_report and words[0] in " \t"):
            continue
        in_report = _REPORT.fullmatch(words) is not None
        if in_report or _ORDINARY.fullmatch(words.strip()):
            continue
        if _NOTICES.fullmatch(words.strip()):
            notices.append(line.strip())
        elif _OF_FIO.fullmatch(words.strip()):
            trouble.append(line.strip())
        else:
            others.append(line.strip())
    return Messages(tuple(trouble), tuple(notices), tuple(others))
