# SPDX-License-Identifier: Apache-2.0
"""Output of other programs called iostat, which describes no device or cannot be read. It is named,
so that no file is ignored silently."""

from __future__ import annotations

import re

from ..core.tables import DeviceTable

_KINDS = (
    (
        re.compile(r"^\s*capacity\s+operations\s+bandwidth", re.MULTILINE),
        "zpool iostat; sources of a study read it",
    ),
    (
        re.compile(r"^(?:Filesystem|nfs|.* mounted on )", re.MULTILINE),
        "statistics of a network file system",
    ),
    (re.compile(r"\bKB/t\s+(?:tps|xfrs)\b"), "iostat of a BSD or macOS without -x"),
    (re.compile(r"%\s*tm_act"), "iostat of AIX"),
    (re.compile(r"\bkps\s+tps\s+serv\b"), "iostat of illumos or Solaris without -x"),
    (re.compile(r"^avg-cpu:", re.MULTILINE), "shares of the processors alone (iostat -c)"),
    (re.compile(r"^Device:?\s", re.MULTILINE), "iostat with columns that are not known"),
)
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?%?")


def left_out(what: str) -> DeviceTable:
    """A table without devices, which says what the file is instead."""
    return DeviceTable(devices={}, assumptions=(f"left out, no readable device: {what}",))


def other_kind(text: str) -> str:
    """What a text that is called iostat is, where it has neither a header of devices nor rows of a
    known layout."""
    for pattern, what in _KINDS:
        if pattern.search(text):
            return what
    lines = [line.split() for line in text.splitlines() if line.strip()]
    widths = [len(words) for words in lines if all(_NUMBER.fullmatch(word) for word in words)]
    if widths and 2 * len(widths) > len(lines):
        width = max(set(widths), key=widths.count)
        return (
            f"bare columns: rows of {width} numbers, without a header and without a device's name"
        )
    return "no output of iostat that is known"
