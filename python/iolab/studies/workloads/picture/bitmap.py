# SPDX-License-Identifier: Apache-2.0
"""What a picture shows: pixels that are lit or dark, from text, from rows of characters, or from an
image file (PBM, PGM, PNG)."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import FormatError

if TYPE_CHECKING:
    from PIL.Image import Image  # loaded late: `iolab --help` does not need it

MOST_COLUMNS, MOST_ROWS = 400, 100
"""A map has about 450 columns and 90 rows to show them in."""
_LARGEST_FILE = 4 << 20
_FORMATS = ("PNG", "PPM")
"""Pillow's names; PPM are all portable maps (P1 to P6)."""
_FACE_TOP, _FACE_BASE = 2, 8
"""Rows of Pillow's built-in face, seven pixels high: the highest of a letter, and the one above its
base line."""
_BETWEEN_LINES = 2


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
    """A text in the built-in face of Pillow, letters a pixel apart, lines two; ValueError where it
    holds a character that isn't printable ASCII, or nothing to see."""
    strange = sorted(
        {character for character in text if not (" " <= character <= "~" or character == "\n")}
    )
    if strange:
        raise ValueError(
            f"there is no letter for {strange[0]!r}; a text has printable ASCII characters and line feeds"
        )
    text = text.strip("\n")
    if len(text) > MOST_COLUMNS:
        raise ValueError(
            f"the text has {len(text)} characters; a map can show {MOST_COLUMNS} at most"
        )
    blocks = [_line(line) for line in text.split("\n")]
    width = max(len(block[0]) for block in blocks)
    rows: list[str] = []
    for block in blocks:
        rows += ["." * width] * (_BETWEEN_LINES if rows else 0)
        rows += [row.ljust(width, ".") for row in block]
    return Bitmap(tuple(rows))


def _line(text: str) -> list[str]:
    """A line's rows: those of the face, and more where a letter needs them."""
    letters = [_letter(character) for character in text]
    rows = [".".join(parts) for parts in zip(*letters, strict=True)] or [""] * (_FACE_BASE + 1)
    inked = [number for number, row in enumerate(rows) if "#" in row]
    return rows[min([_FACE_TOP, *inked]) : max([_FACE_BASE, *inked]) + 1]


@cache
def _letter(character: str) -> tuple[str, ...]:
    """All rows of a letter, as wide as its ink; a blank is three pixels wide."""
    from PIL import Image, ImageDraw, ImageFont

    face = ImageFont.load_default_imagefont()
    _, _, width, height = (int(end) for end in face.getbbox(character))
    image = Image.new("L", (width, height), 255)
    ImageDraw.Draw(image).text((0, 0), character, 0, font=face)
    ink = image.point([255 - shade for shade in range(256)]).getbbox()
    first, end = (ink[0], ink[2]) if ink else (0, 3)
    return _rows(image.crop((first, 0, end, height)))


def of_rows(text: str) -> Bitmap:
    """Rows of `#` and `.` (or blanks), a line each; short ones are filled up."""
    lines = [line.rstrip().replace(" ", ".") for line in text.strip("\n").splitlines()]
    width = max((len(line) for line in lines), default=0)
    return Bitmap(tuple(line.ljust(width, ".") for line in lines))


def of_file(path: Path) -> Bitmap:
    """An image file, on white paper: what is darker than half is lit. FormatError where it is none,
    damaged or too large."""
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
        return Bitmap(_rows(_grey(data)))
    except ValueError as error:
        raise FormatError(str(error), where=path) from None


def _grey(data: bytes) -> Image:
    """An image file's shades, 0 to 255; ValueError with the reason why it can't be drawn."""
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
        if image.width > MOST_COLUMNS or image.height > MOST_ROWS:
            raise ValueError(
                f"it has {image.width} x {image.height} pixels; {MOST_COLUMNS} x {MOST_ROWS} at most can be drawn"
            )
        image.verify()  # checksums of all chunks; an image can't be read afterwards
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
        image.load()
    except UnidentifiedImageError:
        raise ValueError("is no PBM, PGM, PPM or PNG image, or its header is damaged") from None
    # what Pillow's readers raise on purpose
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise ValueError(f"can't be drawn: {error}") from None
    if image.mode == "P" and (
        not image.palette or max(image.tobytes()) >= len(image.palette.palette) // 3
    ):
        raise ValueError("is damaged: a colour is not in its palette")
    if image.mode.startswith("I"):  # 16 bits; a conversion would cut off what is above 255
        return image.point(lambda shade: shade * (1 / 257) + 0.0).convert("L")
    if image.has_transparency_data:
        paper = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(paper, image.convert("RGBA")).convert("L")
    return image.convert("L")


def _rows(image: Image) -> tuple[str, ...]:
    """`#` where a shade is darker than half."""
    shades, width = image.tobytes(), image.width
    return tuple(
        "".join("#" if shade < 128 else "." for shade in shades[at : at + width])
        for at in range(0, len(shades), width)
    )
