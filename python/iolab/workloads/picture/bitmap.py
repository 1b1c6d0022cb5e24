# SPDX-License-Identifier: Apache-2.0
"""What a picture shows: pixels that are lit or dark, from text, from rows of characters, or from an
image file (PBM, PGM, PNG)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...errors import FormatError
from .font import set_text
from .png import SIGNATURE, dark_pixels

MOST_COLUMNS, MOST_ROWS = 400, 100
"""A map has about 450 columns and 90 rows to show them in."""
_LARGEST_FILE = 4 << 20
_TOKEN = re.compile(rb"(?:\s|#[^\n]*\n)*([^\s#]+)")


@dataclass(frozen=True)
class Bitmap:
    """Pixels as rows of `#` (lit) and `.` (dark) of one length, the top row first."""

    rows: tuple[str, ...]

    def __post_init__(self) -> None:
        """ValueError, with words for a user, where this is no picture that can be drawn."""
        if not self.rows or not self.width or any(len(row) != self.width for row in self.rows):
            raise ValueError("the rows of a picture have one length, and at least one pixel")
        if set("".join(self.rows)) - set("#."):
            raise ValueError("the rows of a picture are written with '#' for lit and '.' for dark")
        if self.width > MOST_COLUMNS or self.height > MOST_ROWS:
            raise ValueError(
                f"the picture has {self.width} x {self.height} pixels; a map can show {MOST_COLUMNS} x {MOST_ROWS} at most"
            )
        if not self.lit:
            raise ValueError("the picture is empty: no pixel is lit")

    @property
    def width(self) -> int:
        """Columns."""
        return len(self.rows[0]) if self.rows else 0

    @property
    def height(self) -> int:
        """Rows."""
        return len(self.rows)

    @cached_property
    def lit(self) -> tuple[tuple[int, int], ...]:
        """(column, row) of every lit pixel, row 0 being the lowest; by column, then row."""
        return tuple(
            (column, row)
            for column in range(self.width)
            for row in range(self.height)
            if self.rows[self.height - 1 - row][column] == "#"
        )

    def inverse(self) -> Bitmap:
        """Lit and dark exchanged."""
        return Bitmap(tuple(row.translate(str.maketrans("#.", ".#")) for row in self.rows))

    def add_border(self) -> Bitmap:
        """With a dark pixel all around."""
        blank = "." * (self.width + 2)
        return Bitmap((blank, *(f".{row}." for row in self.rows), blank))

    def add_rules(self) -> Bitmap:
        """With a rule above and below, a dark pixel away: it has I/O in every column."""
        rule = "#" * (self.width + 2)
        return Bitmap((rule, *self.add_border().rows, rule))

    def underline(self) -> Bitmap:
        """With a rule below alone."""
        return Bitmap(self.add_rules().rows[2:])


def of_text(text: str) -> Bitmap:
    """A text in letters; ValueError where it holds a character that isn't printable ASCII, or
    nothing to see."""
    strange = sorted(
        {character for character in text if not (" " <= character <= "~" or character == "\n")}
    )
    if strange:
        raise ValueError(
            f"there is no letter for {strange[0]!r}; a text has printable ASCII characters and line feeds"
        )
    return Bitmap(set_text(text.strip("\n")))


def of_rows(text: str) -> Bitmap:
    """Rows of `#` and `.` (or blanks), a line each; short ones are filled up."""
    lines = [line.rstrip().replace(" ", ".") for line in text.strip("\n").splitlines()]
    width = max((len(line) for line in lines), default=0)
    return Bitmap(tuple(line.ljust(width, ".") for line in lines))


def of_file(path: Path) -> Bitmap:
    """An image file: what is darker than half is lit. FormatError where it is none, damaged or too
    large."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise FormatError(f"can't be read: {error.strerror or error}", where=path) from None
    if len(data) > _LARGEST_FILE:
        raise FormatError(
            f"is larger than {_LARGEST_FILE >> 20} MiB",
            where=path,
            hint=f"scale it to {MOST_COLUMNS} x {MOST_ROWS} pixels or fewer",
        )
    try:
        if data.startswith(SIGNATURE):
            rows = dark_pixels(data, MOST_COLUMNS, MOST_ROWS)
        elif data[:1] == b"P" and data[1:2] in b"1245" and data[2:3].isspace():
            rows = _portable(data)
        else:
            raise ValueError("is no PBM, PGM or PNG image")
        return Bitmap(tuple("".join("#" if dark else "." for dark in row) for row in rows))
    except ValueError as error:
        raise FormatError(str(error), where=path) from None


def _portable(data: bytes) -> list[list[bool]]:
    """PBM (P1, P4) and PGM (P2, P5), as netpbm's manual has them."""
    kind = data[1] - ord("0")
    place, header = 2, []
    for _ in range(2 if kind in (1, 4) else 3):
        token = _TOKEN.match(data, place)
        if token is None or not token[1].isdigit():
            raise ValueError("is damaged: its header doesn't say how large it is")
        header.append(int(token[1][:9]))
        place = token.end()
    width, height = header[:2]
    if not 0 < width <= MOST_COLUMNS or not 0 < height <= MOST_ROWS:
        raise ValueError(
            f"has {width} x {height} pixels; 1 x 1 to {MOST_COLUMNS} x {MOST_ROWS} can be drawn"
        )
    most = header[2] if len(header) > 2 else 1
    if not 0 < most < 65536:
        raise ValueError(f"is damaged: {most} shades of grey")
    if kind in (1, 2):
        return _plain(data[place:], kind, width, height, most)
    body = data[place + 1 :]
    line, size = (
        (-(-width // 8), 1)
        if kind == 4
        else (width * (1 if most < 256 else 2), 1 if most < 256 else 2)
    )
    if len(body) < line * height:
        raise ValueError("is cut off")
    rows = [body[line * row : line * (row + 1)] for row in range(height)]
    if kind == 4:
        return [
            [bool(row[column // 8] & 128 >> column % 8) for column in range(width)] for row in rows
        ]
    return [
        [
            2 * int.from_bytes(row[size * column : size * (column + 1)], "big") < most
            for column in range(width)
        ]
        for row in rows
    ]


def _plain(body: bytes, kind: int, width: int, height: int, most: int) -> list[list[bool]]:
    text = re.sub(rb"#[^\n]*", b"", body)
    words = re.findall(rb"[01]", text) if kind == 1 else text.split()
    if len(words) < width * height:
        raise ValueError("is cut off")
    if not all(word.isdigit() for word in words[: width * height]):
        raise ValueError("is damaged: a shade is not a number")
    values = [int(word[:9]) for word in words[: width * height]]
    dark = [value == 1 if kind == 1 else 2 * value < most for value in values]
    return [dark[width * row : width * (row + 1)] for row in range(height)]
