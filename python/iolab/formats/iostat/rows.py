# SPDX-License-Identifier: Apache-2.0
"""Rows of iostat without their headers, as `iostat ... | grep sdb` leaves them: the columns by
their number.

The layouts are those of `iostat -x` in sysstat's history: rrqm/s first until 11.5.6 (r_await and
w_await since 9.1.2), r/s first until 12.1.1, grouped by operation since 12.1.2, with flushes since
12.3.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np

from ...errors import FormatError
from ..core.tables import DeviceTable, Floats
from .columns import SYSSTAT, true_bandwidths
from .readings import device_samples

NO_INTERVAL = "no header: the file doesn't say the time between rows"
NO_BOOT = "no header: no row is taken as the mean since boot"

_COMMA = re.compile(r"(?<=\d),(?=\d)")
"""A locale's decimal comma."""

_OLDEST = "rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await"
_SEPARATE = "r/s w/s rkB/s wkB/s rrqm/s wrqm/s %rrqm %wrqm r_await w_await aqu-sz rareq-sz wareq-sz"
_GROUPED = (
    "r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz "
    "d/s dkB/s drqm/s %drqm d_await dareq-sz"
)
LAYOUTS = {
    12: (f"{_OLDEST} svctm %util".split(), "before 9.1.2"),
    14: (f"{_OLDEST} r_await w_await svctm %util".split(), "9.1.2 to 11.5.6"),
    16: (f"{_SEPARATE} svctm %util".split(), "11.5.7 to 12.1.1"),
    21: (f"{_GROUPED} aqu-sz %util".split(), "12.1.2 to 12.3.0"),
    23: (f"{_GROUPED} f/s f_await aqu-sz %util".split(), "12.3.1 and later"),
}
"""Fields of a row (with the device's name) to the names of the others, and the versions of sysstat
that print so."""


BASIC = {
    6: ["tps", "kB_read/s", "kB_wrtn/s", "kB_read", "kB_wrtn"],
    8: ["tps", "kB_read/s", "kB_wrtn/s", "kB_dscd/s", "kB_read", "kB_wrtn", "kB_dscd"],
}
"""The same without -x. Too few to identify a file, so that they are only tried in a file that
is called iostat."""

_SHORT = ["tps", "kB/s", "rqm/s", "await", "aqu-sz", "areq-sz", "%util"]
"""What -s prints, as many fields as without -x; those end with whole numbers."""


def layout_of(line: str) -> int | None:
    """How many fields a row without header has, if it is one of -x: a name, then as many numbers as
    some layout has."""
    return _width(line, LAYOUTS)


def has_rows(text: str) -> bool:
    """Whether a text has a whole row of -x, or most of its lines are rows without -x."""
    lines = text.split("\n")
    if any(layout_of(line) for line in lines):
        return True
    lines = [line for line in lines if line.strip()]
    return 2 * sum(_width(line, BASIC) is not None for line in lines) > len(lines)


def _width(line: str, layouts: Iterable[int]) -> int | None:
    fields = line.split()
    if len(fields) not in layouts or _is_number(fields[0]):
        return None
    try:
        numbers = list(map(float, fields[1:]))
    except ValueError:  # a decimal comma perhaps
        return len(fields) if all(map(_is_number, fields[1:])) else None
    return len(fields) if all(map(math.isfinite, numbers)) else None


def read_rows(text: str, where: str) -> DeviceTable:
    """The table of a file of rows without headers.

    All rows count: which of them is the mean since boot, if any, is unknown, and so is the
    interval.

    Raises FormatError when no row has a known number of fields.
    """
    if "," in text:
        text = _COMMA.sub(".", text)
    rows = _one_device(text)
    damaged: list[tuple[int, str]] = []
    if rows is None:
        width, series, damaged = _line_by_line(text, where)
    else:
        width, series = rows
    names, meaning = _names_of(width, text)
    true_names = true_bandwidths(names, np.concatenate(list(series.values())))
    assumptions = [f"no header: {width} fields are the columns of {meaning}", NO_INTERVAL, NO_BOOT]
    if true_names is None:
        assumptions.append("no header, and no request sizes to tell by: bandwidth is taken as kB/s")
    devices = {
        device: device_samples(device, values, true_names or names, SYSSTAT, None)
        for device, values in series.items()
    }
    return DeviceTable(devices=devices, damaged=tuple(damaged), assumptions=tuple(assumptions))


def _names_of(width: int, text: str) -> tuple[list[str], str]:
    if width in LAYOUTS:
        names, versions = LAYOUTS[width]
        return names, f"iostat -x, sysstat {versions}"
    last = next(line.split()[-1] for line in text.split("\n") if _width(line, [width]))
    return (
        (_SHORT, "iostat -s") if width == 8 and "." in last else (BASIC[width], "iostat without -x")
    )


def _one_device(text: str) -> tuple[int, dict[str, Floats]] | None:
    """All rows at once where every line is a whole row of one device, else None."""
    width = layout_of(text[: text.find("\n") + 1])
    lines = text.count("\n")
    tokens = text.split()
    if width is None or not text.endswith("\n") or len(tokens) != width * lines:
        return None
    device = tokens[0]
    if tokens[::width].count(device) != lines:
        return None
    del tokens[::width]
    try:
        values = np.array(list(map(float, tokens))).reshape(lines, width - 1)
    except ValueError:
        return None
    return (width, {device: values}) if np.isfinite(values).all() else None


def _line_by_line(text: str, where: str) -> tuple[int, dict[str, Floats], list[tuple[int, str]]]:
    lines = text.split("\n")
    layouts: Iterable[int] = LAYOUTS if any(layout_of(line) for line in lines) else BASIC
    widths = [width for line in lines[:-1] if (width := _width(line, layouts)) is not None]
    if not widths:
        raise FormatError(
            "no whole row of iostat in the file",
            where=where,
            hint=f"a row without header has {', '.join(map(str, [*LAYOUTS, *BASIC]))} fields",
        )
    width = max(set(widths), key=widths.count)
    series: dict[str, list[list[float]]] = {}
    damaged: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if _width(line, [width]) and (number < len(lines) or _is_whole(fields[-1])):
            series.setdefault(fields[0], []).append([float(field) for field in fields[1:]])
        elif fields:
            damaged.append(
                (number, f"no row of {width} fields" if number < len(lines) else "cut off")
            )
            if fields[0] in series and number < len(lines):
                series[fields[0]].append(
                    [np.nan] * (width - 1)
                )  # that second is unknown, the next ones stay in place
    return width, {device: np.array(rows) for device, rows in series.items()}, damaged


def _is_whole(field: str) -> bool:
    """Whether a number has both decimals that iostat prints; the last of a file without line end
    may be cut off."""
    return len(field.partition(".")[2]) == 2


def _is_number(field: str) -> bool:
    try:
        return math.isfinite(float(field))
    except ValueError:
        dotted = _COMMA.sub(".", field)
        return dotted != field and _is_number(dotted)
