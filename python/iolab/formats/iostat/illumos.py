# SPDX-License-Identifier: Apache-2.0
"""`iostat -x` and `iostat -xn` of illumos and Solaris (iostat(8)), and `iostat -x` of FreeBSD:
"extended device statistics".

With -n two times per I/O are separate: waiting for the device (wsvc_t) and within it (asvc_t), and
the device's name is last. Queue and latency here hold both, as sysstat's do.
"""

from __future__ import annotations

import math
import re

from iolab.base.errors import FormatError

from ..core.tables import DeviceTable
from ..core.text import decode, looks_binary
from .columns import ILLUMOS, Column
from .others import left_out
from .readings import Reading, build_table
from .stamps import is_stamp

_HEADING = re.compile(r"^\s*extended device statistics|^extended device statistics", re.MULTILINE)
_HEADER = re.compile(r"^[ \t]*(?=[^\n]*\b(?:actv|qlen)\b)(?=[^\n]*\bdevice\b)[^\n]*$", re.MULTILINE)
_SPLIT = re.compile(r"[\s,]+")
_COLUMNS = {
    **ILLUMOS,
    "wait+actv": Column("queue", 1.0, ""),
    "wsvc_t+asvc_t": Column("await", 1e-3, "ms"),
}


class IostatIllumos:
    """Reports of illumos' extended device statistics, columns by their names, spaced or with commas
    (-r).

    The first report is the mean since boot and left out when there are several. A report that the
    end of the file cuts off is left out as well.
    """

    name = "iostat-illumos"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes at a header with `device` and `actv` (illumos) or `qlen` (FreeBSD); None after the
        heading alone."""
        if looks_binary(head):
            return False
        text = head.decode("utf-8", errors="replace")
        if _HEADER.search(text):
            return True
        return None if not text.strip() or _HEADING.search(text) else False

    def read(self, data: bytes, where: str) -> DeviceTable:
        """The devices of the file.

        Raises FormatError: nothing in the file, no header, no reading left.
        """
        text = decode(
            data, where, when_empty="iostat was killed before its first report, or printed nothing"
        )
        if _HEADER.search(text) is None:
            raise FormatError(
                "no header of extended device statistics",
                where=where,
                hint="run iostat with -xn (FreeBSD: -x); its header names 'device' and 'actv' (FreeBSD: 'qlen')",
            )
        readings: list[Reading] = []
        damaged: list[tuple[int, str]] = []
        fields: list[str] = []
        stamp, inside, name_first = "", False, False
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            words = [word for word in _SPLIT.split(line) if word]
            if _HEADER.match(line):
                name_first = words[0] == "device"
                values = words[1:] if name_first else words[:-1]
                fields = fields or values
                inside = values == fields
                if inside:
                    readings.append(Reading(stamp))
                else:
                    damaged.append((number, "a header with other columns: its report is left out"))
            elif is_stamp(line):
                stamp, inside = line.strip(), False
            elif (
                not words
                or "statistics" in words
                or words[0] in ("cpu", "us", "tty", "tin", "errors")
            ):
                inside = False
            elif inside:
                device, row = _row(words, fields, name_first)
                readings[-1].rows[device] = row or [math.nan] * len(fields)
                if row is None:
                    damaged.append((number, f"no row of {len(fields) + 1} fields"))
        if _is_cut_off(text, readings):
            damaged.append((len(lines), "the last report is cut off and left out"))
            readings.pop()
        names = _add_sums(readings, fields)
        if fields and not any(name.endswith("/s") for name in fields):
            return left_out(
                f"columns {', '.join(fields)} (iostat -I counts since boot and has no rates)"
            )
        return build_table(readings, names, _COLUMNS, where=where, damaged=damaged)


def _row(words: list[str], fields: list[str], name_first: bool) -> tuple[str, list[float] | None]:
    device = words[0] if name_first else words[-1]
    if len(words) != len(fields) + 1:
        return device, None
    try:
        return device, [float(word) for word in (words[1:] if name_first else words[:-1])]
    except ValueError:
        return device, None


def _add_sums(readings: list[Reading], fields: list[str]) -> list[str]:
    """Append waiting plus active, in number and in time, as columns of their own."""
    names = list(fields)
    for first, second in (("wait", "actv"), ("wsvc_t", "asvc_t")):
        if first in fields and second in fields:
            names.append(f"{first}+{second}")
            pair = fields.index(first), fields.index(second)
            for reading in readings:
                for row in reading.rows.values():
                    row.append(row[pair[0]] + row[pair[1]])
    return names


def _is_cut_off(text: str, readings: list[Reading]) -> bool:
    """Whether the last report lacks a device that the one before has, or its last line has no end.

    illumos prints no line after a report, and with names last a cut name looks like a complete
    name.
    """
    if len(readings) < 2:
        return bool(readings) and not readings[-1].rows
    return not text.endswith("\n") or not readings[-2].rows.keys() <= readings[-1].rows.keys()
