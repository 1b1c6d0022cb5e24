# SPDX-License-Identifier: Apache-2.0
"""What every format must do: recognise its own files alone, read them, and refuse damaged ones with
a FormatError."""

from __future__ import annotations

import inspect
import random
from pathlib import Path

import pytest

from iolab.base import registry
from iolab.base.errors import FormatError
from iolab.formats.detect import detect

DATA = Path(__file__).parents[1] / "data" / "formats"
FILES = sorted(DATA.iterdir())


@pytest.fixture(params=registry.names("format"))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def own_files(name: str) -> list[Path]:
    return [path for path in FILES if detect(path.read_bytes(), path.name) == name]


def test_it_says_what_it_reads(name: str) -> None:
    kind = registry.load("format", name)
    assert kind.name == name
    assert len(inspect.getdoc(kind) or "") > 30


def test_it_takes_no_file_of_another_format(name: str) -> None:
    reader = registry.load("format", name)()
    taken = {path.name for path in FILES if reader.detect(path.read_bytes()[:65536], "a")}
    assert taken <= {path.name for path in own_files(name)}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\x7fELF\2\1\1\0" * 20,
        b"\xff\xfe{\0",
        b"GIF89a",
        b"<html>\n<body>\n",
        b"-\n" * 50,
        b"{}",
        b"[]",
    ],
)
def test_it_does_not_take_what_nobody_knows(name: str, data: bytes) -> None:
    assert not registry.load("format", name)().detect(data, "a")


def test_it_reads_its_files_and_refuses_damaged_ones(name: str) -> None:
    """Cut anywhere, or with bytes replaced: a table, or a FormatError that says which file."""
    reader, chance = registry.load("format", name)(), random.Random(name)
    for path in own_files(name):
        whole = path.read_bytes()
        assert reader.read(whole, path.name) is not None
        for _ in range(40):
            place = chance.randrange(len(whole))
            for damaged in (
                whole[:place],
                whole[:place] + bytes([chance.randrange(256)]) + whole[place + 1 :],
            ):
                try:
                    reader.read(damaged, path.name)
                except FormatError as error:
                    assert str(error).startswith(path.name)  # noqa: PT017 - whichever way it ends is right
