# SPDX-License-Identifier: Apache-2.0
"""Pictures to draw: letters, rows of characters, and images, sound and damaged."""

from __future__ import annotations

import struct
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.base.errors import FormatError
from iolab.studies.workloads.picture.bitmap import Bitmap, of_file, of_rows, of_text

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CROSS = ("#..#.", ".##..", "#..##")
"""Five wide, so that rows of packed bits end within a byte."""


def chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def png(
    shades: list[list[int]],
    *,
    depth: int = 8,
    colour: int = 0,
    kinds: tuple[int, ...] = (0,),
    extra: bytes = b"",
    head: bytes = b"",
    interlaced: int = 0,
) -> bytes:
    """A PNG of samples, row by row, each row filtered by one of these kinds in turn."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    step, before, body = max(1, channels * depth // 8), b"", b""
    for number, row in enumerate(shades):
        bits = "".join(format(sample, f"0{depth}b") for sample in row)
        line = int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")
        before = before or bytes(len(line))
        kind = kinds[number % len(kinds)]
        body += bytes([kind]) + bytes(
            (line[at] - guess(kind, line, before, at, step)) & 255 for at in range(len(line))
        )
        before = line
    head = head or struct.pack(
        ">IIBBBBB", len(shades[0]) // channels, len(shades), depth, colour, 0, 0, interlaced
    )
    return (
        SIGNATURE
        + chunk(b"IHDR", head)
        + extra
        + chunk(b"IDAT", zlib.compress(body))
        + chunk(b"IEND", b"")
    )


def guess(kind: int, line: bytes, before: bytes, at: int, step: int) -> int:
    """What a filter of PNG takes away from a byte."""
    left = line[at - step] if at >= step else 0
    above, corner = before[at], before[at - step] if at >= step else 0
    if kind == 4:
        sums = {
            left: abs(above - corner),
            above: abs(left - corner),
            corner: abs(left + above - 2 * corner),
        }
        least = min(sums.values())
        return next(each for each in (left, above, corner) if sums[each] == least)
    return (0, left, above, (left + above) // 2)[kind]


def shades(rows: tuple[str, ...], dark: list[int], light: list[int]) -> list[list[int]]:
    return [
        [sample for pixel in row for sample in (dark if pixel == "#" else light)] for row in rows
    ]


def test_every_printable_character_has_a_letter_of_its_own() -> None:
    letters = [of_text(f"#{chr(code)}#").rows for code in range(32, 127)]
    assert len(set(letters)) == 95
    assert {len(rows) for rows in letters} <= {7, 8, 9}


def test_a_word_is_on_a_line_with_a_pixel_between_its_letters() -> None:
    assert of_text("il").rows == (
        "..##...####..",
        ".........##..",
        "####.....##..",
        "..##.....##..",
        "..##.....##..",
        "..##.....##..",
        "######.######",
    )
    assert of_text("ij").height == 9
    assert of_text("I\nlo").height == 7 + 2 + 7
    assert of_text("io").add_border().width == of_text("io").width + 2


def test_inverse_and_rules() -> None:
    bitmap = Bitmap(("#.", ".."))
    assert bitmap.inverse().rows == (".#", "##")
    assert bitmap.add_rules().rows == ("####", "....", ".#..", "....", "....", "####")
    assert bitmap.underline().rows == (".#..", "....", "....", "####")
    assert bitmap.lit == ((0, 1),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("é", "no letter"),
        ("a\tb", "no letter"),
        ("   ", "empty"),
        ("", "at least one pixel"),
        ("x" * 80, "at most"),
    ],
)
def test_a_text_that_can_t_be_drawn_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        of_text(text)


def test_rows_of_characters() -> None:
    assert of_rows("\n# #\n #\n").rows == ("#.#", ".#.")
    with pytest.raises(ValueError, match="written with"):
        of_rows("#x#")


PNM = {
    "P1 plain": b"P1\n# a comment\n5 3\n1 0 0 1 0\n01100\n1 0 0 1 1\n",
    "P2 plain": b"P2 5 3 9 0 9 9 0 9  9 0 0 9 9  0 9 9 0 4",
    "P4 packed": b"P4\n5 3\n" + bytes([0b10010000, 0b01100000, 0b10011000]),
    "P5 bytes": b"P5 5 3 255\n"
    + bytes(0 if pixel == "#" else 200 for row in CROSS for pixel in row),
    "P5 words": b"P5 5 3 65535\n"
    + b"".join(b"\x00\x01" if pixel == "#" else b"\xff\x00" for row in CROSS for pixel in row),
}
PNGS = {
    "grey": png(shades(CROSS, [10], [250]), kinds=(0, 1, 2)),
    "grey, 1 bit": png(shades(CROSS, [0], [1]), depth=1),
    "grey, 4 bits": png(shades(CROSS, [3], [12]), depth=4, kinds=(3, 4)),
    "grey, 16 bits": png(shades(CROSS, [300], [60000]), depth=16, kinds=(4, 3, 2)),
    "colour": png(shades(CROSS, [0, 0, 255], [255, 255, 0]), colour=2, kinds=(1, 4, 3)),
    "palette": png(
        shades(CROSS, [1], [0]),
        depth=2,
        colour=3,
        extra=chunk(b"PLTE", b"\xff\xff\xff\x00\x00\x40"),
    ),
    "transparent grey": png(shades(CROSS, [0, 255], [0, 0]), colour=4),
    "transparent colour": png(shades(CROSS, [9, 9, 9, 255], [0, 0, 0, 10]), colour=6, kinds=(4,)),
}


@pytest.mark.parametrize("name", [*PNM, *PNGS])
def test_every_kind_of_image_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes({**PNM, **PNGS}[name])
    assert of_file(path).rows == CROSS


DAMAGED = {
    "empty": b"",
    "text": b"hello",
    "no size": b"P1\n",
    "no number": b"P1 x 3 1",
    "cut": PNM["P4 packed"][:-1],
    "cut plain": PNM["P2 plain"][:-2],
    "no shade": b"P2 1 1 9 x",
    "no shades": b"P5 1 1 0\n0",
    "too wide": b"P1 99999 1 1",
    "negative": b"P1 -1 1 1",
    "empty picture": b"P1 1 1 0",
    "cut png": PNGS["grey"][:60],
    "no end": PNGS["grey"][:-12],
    "no such depth": png(
        shades(CROSS, [0], [1]),
        depth=1,
        colour=0,
        head=struct.pack(">IIBBBBB", 5, 3, 3, 0, 0, 0, 0),
    ),
    "larger than its data": png([[0]], head=struct.pack(">IIBBBBB", 300, 90, 8, 0, 0, 0, 0)),
    "huge": png([[0]], head=struct.pack(">IIBBBBB", 1 << 30, 1 << 30, 8, 0, 0, 0, 0)),
    "no palette": png([[1]], depth=1, colour=3),
    "a bit": PNGS["grey"][:45] + bytes([PNGS["grey"][45] ^ 1]) + PNGS["grey"][46:],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_image_is_refused_with_its_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(DAMAGED[name])
    with pytest.raises(FormatError) as caught:
        of_file(path)
    assert str(path) in str(caught.value)


def test_what_can_t_be_opened_or_is_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="can't be read"):
        of_file(tmp_path / "absent")
    with pytest.raises(FormatError, match="can't be read"):
        of_file(tmp_path)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(5 << 20)
    with pytest.raises(FormatError, match="larger"):
        of_file(tmp_path / "large")


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([*PNM.values(), *PNGS.values()]), st.data())
def test_whatever_happens_to_an_image_it_is_read_or_refused(
    image: bytes, data: st.DataObject
) -> None:
    cut = data.draw(st.booleans())
    place = data.draw(st.integers(0, len(image) - 1))
    broken = (
        image[:place]
        if cut
        else image[:place] + bytes([data.draw(st.integers(0, 255))]) + image[place + 1 :]
    )
    with tempfile.NamedTemporaryFile() as file:
        file.write(broken)
        file.flush()
        try:
            rows = of_file(Path(file.name)).rows
        except FormatError:
            return
    assert rows
