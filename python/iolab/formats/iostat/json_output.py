# SPDX-License-Identifier: Apache-2.0
"""sysstat's `iostat -o JSON` (11.5.1 and later), whole or torn.

iostat closes its brackets on SIGINT since 12.0.4, on SIGTERM only since 12.7.8, and with -y
versions up to 12.1.4 begin the list of reports with a comma; both are no JSON. Reports are
therefore taken one by one.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, TypeGuard

import numpy as np

from iolab.base.errors import FormatError

from ..core.tables import DeviceTable
from ..core.text import decode
from .columns import SYSSTAT, true_bandwidths
from .others import left_out
from .readings import Reading, build_table

_STATISTICS = re.compile(r'"statistics"\s*:\s*\[')
_SEPARATOR = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder(strict=False)


class IostatJson:
    """Reports of `iostat -o JSON`, with -x or without. Of several the first is taken as the mean
    since boot."""

    name = "iostat-json"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes at sysstat's own key with a list of reports; None while only the opening brace is
        seen."""
        text = head.replace(b"\0", b"").lstrip(b"\xff\xfe\xef\xbb\xbf \t\r\n")
        if text.startswith(b"{") and b'"sysstat"' in text[:200]:
            return True if b'"disk_device"' in text else None
        return None if not text or text == b"{" else False

    def read(self, data: bytes, where: str) -> DeviceTable:
        """The devices of the file; a torn end and a comma too many are mended, and said in
        `assumptions`.

        Raises FormatError: nothing in the file, no list of reports, no whole report, no known
        column.
        """
        text = decode(data, where, when_empty="iostat was killed before its first report")
        match = _STATISTICS.search(text)
        if match is None:
            raise FormatError(
                "no list of reports ('statistics') in the file",
                where=where,
                hint="iostat was killed at its start, or the file isn't its JSON",
            )
        reports, assumptions, damaged = _reports(text, match.end())
        disks = [disk for report in reports for disk in _disks(report)]
        if reports and not any("disk" in report for report in reports):
            kinds = dict.fromkeys(
                name for report in reports for name in report if name != "timestamp"
            )
            return left_out(f"{', '.join(kinds)} alone (iostat without -d)")
        # sysstat drops columns now and then where there are many disks (its issue 396): unknown
        # there, not 0
        fields = list(
            dict.fromkeys(
                name for disk in disks for name, value in disk.items() if _is_number(value)
            )
        )
        readings = []
        for report in reports:
            reading = Reading(
                stamp=report["timestamp"] if isinstance(report.get("timestamp"), str) else ""
            )
            for disk in _disks(report):
                values = [disk.get(name) for name in fields]
                reading.rows[disk["disk_device"]] = [
                    float(number) if _is_number(number) else math.nan for number in values
                ]
            readings.append(reading)
        every = [row for reading in readings for row in reading.rows.values()]
        names = (true_bandwidths(fields, np.array(every)) if every else None) or fields
        if names != fields:
            assumptions.append(
                "bandwidth is in another unit than its name says, as the request sizes show"
            )
        return build_table(
            readings, names, SYSSTAT, where=where, damaged=damaged, assumptions=assumptions
        )


def _reports(
    text: str, start: int
) -> tuple[list[dict[str, Any]], list[str], list[tuple[int, str]]]:
    """Whole reports from `start` on, what was mended, and the line at which the last one is cut
    off."""
    reports: list[dict[str, Any]] = []
    mended: list[str] = []
    torn: list[tuple[int, str]] = []
    at = start
    while True:
        separator = _SEPARATOR.match(text, at)
        at = separator.end() if separator else at
        if separator and "," in separator.group() and not reports:
            mended.append(
                "a comma before the first report is passed over (sysstat up to 12.1.4 with -y)"
            )
        if text[at : at + 1] == "]":
            break
        try:
            report, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            line = text.count("\n", 0, at) + 1
            if text[at:].strip():
                torn.append(
                    (line, "the report that begins here is cut off or damaged, and left out")
                )
            mended.append("the JSON isn't closed: iostat was killed; its whole reports count")
            break
        if isinstance(report, dict):
            reports.append(report)
    return reports, mended, torn


def _disks(report: dict[str, Any]) -> list[dict[str, Any]]:
    listed = report.get("disk")
    rows = listed if isinstance(listed, list) else []
    return [
        row for row in rows if isinstance(row, dict) and isinstance(row.get("disk_device"), str)
    ]


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
