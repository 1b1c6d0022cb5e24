# SPDX-License-Identifier: Apache-2.0
"""Text of sysstat's iostat, of every version: columns by their names, and rows without header, if a
user removed it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from iolab.base.errors import FormatError

from ..core.tables import DeviceTable, Floats
from ..core.text import decode, looks_binary
from .columns import SYSSTAT, true_bandwidths
from .others import left_out, other_kind
from .readings import Reading, build_table, device_samples
from .stamps import is_stamp

_HEADER = re.compile(r"^(?:Device:?\s+.*|.*\sDevice:?)\s*$", re.MULTILINE)
_BANNER = re.compile(r"^(?:Linux|GNU/Linux) \S+ \(.*\)", re.MULTILINE)
_HUMAN = {
    "B": 1.0,
    "k": 1024.0,
    "K": 1024.0,
    "M": 1024.0**2,
    "G": 1024.0**3,
    "T": 1024.0**4,
    "P": 1024.0**5,
}

_SAMPLE = 8
"""Lines that detection without a header looks at: one damaged row among them decides nothing."""


class IostatText:
    """Reports of iostat, with -x or without, in any unit; `avg-cpu` blocks are passed over.

    Of several reports the first is taken as the mean since boot and left out. A report that the end
    of the file cuts off is left out as well. Rows without any header are read by `iostat_rows`. A
    text that is called iostat and has neither is named for what it is.
    """

    name = "iostat-text"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes at a header of devices, or where most of the first lines are rows of iostat -x; None
        after the banner alone, and for any other text that is called iostat."""
        if looks_binary(head):
            return False
        text = head.decode("utf-8-sig", errors="replace")
        if not text.strip():
            return None
        for match in _HEADER.finditer(text) if "Device" in text else ():
            if _is_known(match.group()):
                return True
        lines = [line for line in text.split("\n", _SAMPLE)[:-1] if line.strip()]
        rows = 0
        for line in lines:
            rows += layout_of(line) is not None
            if 2 * rows > len(lines):
                return True
        if _BANNER.search(text):
            return None
        return False if len(lines) >= 3 and "iostat" not in file_name.lower() else None

    def read(self, data: bytes, where: str) -> DeviceTable:
        """The devices of the file.

        Raises FormatError: nothing in the file, no reading left.
        """
        text = decode(
            data, where, when_empty="iostat was killed before its first report, or printed nothing"
        )
        if "Device" in text and any(_is_known(match.group()) for match in _HEADER.finditer(text)):
            return _read_reports(text, where)
        if has_rows(text):
            return read_rows(text, where)
        if _BANNER.search(text) and "avg-cpu" not in text:
            raise FormatError(
                "nothing but iostat's first line",
                where=where,
                hint="iostat was killed at its start",
            )
        return left_out(other_kind(text))


@dataclass(frozen=True)
class _Section:
    """A header: its columns' names without the device's, its position, and where its columns
    begin in a row.

    A report has one section, but with -x and --human (or --pretty) one per operation.
    """

    fields: tuple[str, ...]
    name_last: bool
    start: int = 0


def _read_reports(text: str, where: str) -> DeviceTable:
    lines = text.split("\n")
    layout = _layout_of(lines)
    if not layout:
        raise FormatError(
            "the file ends within its first header",
            where=where,
            hint="iostat was killed at its start",
        )
    fields = [name for section in layout for name in section.fields]
    readings: list[Reading] = []
    damaged: list[tuple[int, str]] = []
    decimals = [2]
    stamp, long_name = "", ""
    section: _Section | None = None
    for number, line in enumerate(lines, 1):
        words = line.split()
        if _HEADER.match(line):
            section = _find(_section_of(line), layout)
            if section is None:
                damaged.append((number, "a header with other columns: its rows are left out"))
            elif section.start == 0:
                readings.append(Reading(stamp))
            long_name = ""
        elif not words:
            section, long_name = None, ""
        elif section is not None and readings:
            if long_name and len(words) == len(section.fields):
                words = [long_name, *words]  # -h of older versions gives the name a line of its own
            long_name = words[0] if len(words) == 1 and not section.name_last else ""
            if long_name:
                continue
            device, values = _row(words, section)
            if values is None and number == len(lines):
                continue  # cut off by the end of the file, which costs the report below
            row = readings[-1].rows.setdefault(device, [math.nan] * len(fields))
            if values is None:
                damaged.append((number, f"no row of {len(section.fields) + 1} fields"))
            else:
                row[section.start : section.start + len(values)] = values
                decimals.append(_decimals(words[-1]))
        elif is_stamp(line):
            stamp = line.strip().removeprefix("Time:").strip()
    if readings and _is_cut_off(text, readings, decimals, layout):
        damaged.append((len(lines), "the last report is cut off and left out"))
        readings.pop()
    return build_table(readings, fields, SYSSTAT, where=where, damaged=damaged)


def _layout_of(lines: list[str]) -> list[_Section]:
    """The sections of a report: all headers of the file until the first comes again."""
    layout: list[_Section] = []
    for line in lines[:-1]:  # a header without line end is cut off
        section = _section_of(line) if _HEADER.match(line) else None
        if section is None or not section.fields:
            continue
        if layout and (
            section.fields == layout[0].fields or layout[0].fields[:1] == section.fields[:1]
        ):
            break
        if _find(section, layout) is None:
            layout.append(replace(section, start=sum(len(section.fields) for section in layout)))
    return layout


def _section_of(header: str) -> _Section:
    words = header.split()
    name_last = words[0].rstrip(":") != "Device"
    return _Section(tuple(words[:-1] if name_last else words[1:]), name_last)


def _is_known(header: str) -> bool:
    return not SYSSTAT.keys().isdisjoint(_section_of(header).fields)


def _find(section: _Section, layout: list[_Section]) -> _Section | None:
    return next((candidate for candidate in layout if candidate.fields == section.fields), None)


def _row(words: list[str], section: _Section) -> tuple[str, list[float] | None]:
    """The device of a row and its values, None where the row is damaged."""
    device = words[-1] if section.name_last else words[0]
    if len(words) != len(section.fields) + 1:
        return device, None
    texts = words[:-1] if section.name_last else words[1:]
    try:
        values = [float(text) for text in texts]
    except ValueError:
        try:
            values = [_number(text, name) for text, name in zip(texts, section.fields, strict=True)]
        except (ValueError, KeyError):
            return device, None
    return device, values if all(map(math.isfinite, values)) else None


def _number(word: str, name: str) -> float:
    """A value with a decimal comma, a per cent sign, or the unit that --human gives it (then the
    column's own unit)."""
    word = word.replace(",", ".") if "." not in word else word
    if word.endswith("%"):
        return float(word[:-1])
    if not word[-1].isalpha():
        return float(word)
    size = float(word[:-1]) * _HUMAN[word[-1]]
    column = SYSSTAT.get(name)
    return size / column.scale if column is not None and column.canonical.endswith(".bw") else size


def _is_cut_off(
    text: str, readings: list[Reading], decimals: list[int], layout: list[_Section]
) -> bool:
    """Whether the file ends within its last report: within a number, or before a section or device
    that it should have.

    A whole report ends with an empty line, but shells and editors take trailing lines away, so that
    a report without it may be complete. A column has the same number of decimals everywhere, which
    shows whether the last number is whole.
    """
    report = readings[-1]
    if text.endswith("\n\n") and len(layout) == 1:
        return False
    if not text.endswith("\n") and len(decimals) > 1 and decimals[-1] < decimals[-2]:
        return True
    before = readings[-2].rows.keys() if len(readings) > 1 else set()
    unfinished = any(math.isnan(row[layout[-1].start]) for row in report.rows.values())
    return not report.rows or not before <= report.rows.keys() or (len(layout) > 1 and unfinished)


def _decimals(word: str) -> int:
    return len(word.partition(".")[2])


# Rows of iostat without their headers, as `iostat ... | grep sdb` leaves them: the columns by
# their number.
#
# The layouts are those of `iostat -x` in sysstat's history: rrqm/s first until 11.5.6 (r_await and
# w_await since 9.1.2), r/s first until 12.1.1, grouped by operation since 12.1.2, with flushes
# since 12.3.1.

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
