# SPDX-License-Identifier: Apache-2.0
"""What identifies a program: the build-id of its ELF file, else a digest of the file.

The build-id is the note of type NT_GNU_BUILD_ID in a segment of notes (elf(5), ld(1) --build-id).
"""

from __future__ import annotations

import hashlib
import struct
from io import BufferedIOBase
from pathlib import Path

_NOTE_SEGMENT, _BUILD_ID, _OWNER = 4, 3, b"GNU\0"
_LARGEST_NOTES = 1 << 20
"""Bytes of a segment of notes that are read; a linker writes some hundred."""


def program_identity(path: str | Path) -> dict[str, str]:
    """`{"build_id": hex}`, or `{"sha256": hex}` for a file without one. Raises OSError."""
    with Path(path).open("rb") as file:
        return file_identity(file)


def file_identity(file: BufferedIOBase) -> dict[str, str]:
    """As `program_identity`, of an open file."""
    build_id = elf_build_id(file)
    if build_id is not None:
        return {"build_id": build_id}
    file.seek(0)
    return {"sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def elf_build_id(file: BufferedIOBase) -> str | None:
    """The build-id of an ELF file in hexadecimal; None for a file that has none or is damaged."""
    try:
        return _build_id(file)
    except (struct.error, OverflowError, ValueError):
        return None


def _build_id(file: BufferedIOBase) -> str | None:
    ident = file.read(16)
    if (
        len(ident) < 16
        or ident[:4] != b"\x7fELF"
        or ident[4] not in (1, 2)
        or ident[5] not in (1, 2)
    ):
        return None
    is_64, order = ident[4] == 2, "<" if ident[5] == 1 else ">"
    header = struct.Struct(f"{order}{'HHIQQQIHHH' if is_64 else 'HHIIIIIHHH'}")
    fields = header.unpack(file.read(header.size))
    table, entry_size, count = fields[4], fields[8], fields[9]
    entry = struct.Struct(f"{order}{'IIQQQQQQ' if is_64 else 'IIIIIIII'}")
    if entry_size < entry.size:
        return None
    for number in range(count):
        file.seek(table + number * entry_size)
        segment = entry.unpack(file.read(entry.size))
        if segment[0] != _NOTE_SEGMENT:
            continue
        offset, size = (segment[2], segment[5]) if is_64 else (segment[1], segment[4])
        file.seek(offset)
        notes = file.read(min(size, _LARGEST_NOTES))
        build_id = _find_note(notes, order, 8 if segment[7] == 8 else 4)
        if build_id:
            return build_id.hex()
    return None


def _find_note(notes: bytes, order: str, alignment: int) -> bytes | None:
    """The description of the note with the build-id."""
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from(f"{order}III", notes, at)
        name_at = at + 12
        description_at = name_at + name_size + -(name_at + name_size) % alignment
        description = notes[description_at : description_at + size]
        if kind == _BUILD_ID and notes[name_at : name_at + name_size] == _OWNER:
            return description if len(description) == size else None
        at = description_at + size + -(description_at + size) % alignment
    return None
