# SPDX-License-Identifier: Apache-2.0
"""The build-id of ELF files: real ones, of both widths and byte orders, and damaged ones."""

from __future__ import annotations

import hashlib
import io
import random
import struct
import sys
from pathlib import Path

import pytest

from iolab.hosts.facts.program_identity import elf_build_id, program_identity

ID = bytes(range(20))


def elf(*, is_64: bool = True, order: str = "<", note: bytes | None = None) -> bytes:
    """A file of an ELF header, one program header and a segment of two notes."""
    other = struct.pack(f"{order}III", 4, 8, 1) + b"GNU\0" + bytes(8)
    own = struct.pack(f"{order}III", 4, len(ID), 3) + b"GNU\0" + ID
    notes = other + own if note is None else note
    ident = b"\x7fELF" + bytes([2 if is_64 else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    size, entry = (64, 56) if is_64 else (52, 32)
    fields = (2, 62, 1, 0, size, 0, 0, size, entry, 1)
    header = struct.pack(f"{order}{'HHIQQQIHHH' if is_64 else 'HHIIIIIHHH'}", *fields)
    header = (ident + header).ljust(size, b"\0")
    at = size + entry
    if is_64:
        segment = struct.pack(f"{order}IIQQQQQQ", 4, 4, at, 0, 0, len(notes), len(notes), 4)
    else:
        segment = struct.pack(f"{order}IIIIIIII", 4, at, 0, 0, len(notes), len(notes), 4, 4)
    return header + segment + notes


@pytest.mark.parametrize("is_64", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
def test_the_note_is_found(is_64: bool, order: str) -> None:
    assert elf_build_id(io.BytesIO(elf(is_64=is_64, order=order))) == ID.hex()


def test_a_real_program_and_a_file_without_a_note(tmp_path: Path) -> None:
    assert len(program_identity("/bin/sh").get("build_id", "")) in (0, 32, 40)
    path = tmp_path / "script"
    path.write_text("#!/bin/sh\n")
    assert program_identity(path) == {"sha256": hashlib.sha256(b"#!/bin/sh\n").hexdigest()}
    path.write_bytes(elf(note=b""))
    assert set(program_identity(path)) == {"sha256"}
    with pytest.raises(OSError, match="No such file"):
        program_identity(tmp_path / "none")


def test_damaged_files_have_no_build_id_or_the_right_one() -> None:
    whole = elf()
    for length in range(len(whole)):
        assert elf_build_id(io.BytesIO(whole[:length])) is None
    generator = random.Random(447)
    for _ in range(2000):
        damaged = bytearray(whole)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        build_id = elf_build_id(io.BytesIO(damaged))
        assert build_id is None or len(bytes.fromhex(build_id)) <= len(whole)


def test_huge_lengths_read_nothing_beyond_the_file() -> None:
    note = struct.pack("<III", sys.maxsize & 0xFFFFFFFF, 0xFFFFFFFF, 3) + b"GNU\0"
    assert elf_build_id(io.BytesIO(elf(note=note))) is None
