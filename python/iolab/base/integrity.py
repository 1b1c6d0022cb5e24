# SPDX-License-Identifier: Apache-2.0
"""Whether files are still what was written: digests, and the findings of a check.

Both results and recordings are checked into the same values, which `iolab verify` prints.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Progress = Callable[[int, int], None]
"""Called with (files checked, files in all)."""


@dataclass(frozen=True)
class Finding:
    """One file that is not as it was written.

    Attributes:
        path: the file, relative to the directory that was checked.
        kind: damaged (its content changed), missing, unexpected (no list names it) or stale
        (derived from evidence that changed). text: what is wrong, as one line.
        lost: what can't be answered any more because of it, such as a time span or a run; empty
        where nothing is lost. is_derived: whether it can be made again from other files.
        is_repaired: whether it was made again.
    """

    path: str
    kind: Literal["damaged", "missing", "unexpected", "stale"]
    text: str
    lost: str = ""
    is_derived: bool = False
    is_repaired: bool = False


@dataclass(frozen=True)
class Verification:
    """The outcome of a check.

    Attributes:
        kind: what was checked.
        files: how many files were read whole.
        size_bytes: their size together.
        unverified: files without a recorded digest (written by an older iolab), which can only be
        checked for being readable. findings: what is not as it was written, in order of path.
    """

    kind: Literal["results", "recording"]
    files: int
    size_bytes: int
    unverified: int = 0
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class FileDigest:
    """A file's content, by its size and its SHA-256 in hexadecimal."""

    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> FileDigest:
        """That of this content."""
        return cls(len(data), hashlib.sha256(data).hexdigest())

    @classmethod
    def parse(cls, text: str) -> FileDigest:
        """That which `str` wrote. ValueError."""
        sha256, size = text.split(" ")
        return cls(int(size), sha256)

    def __str__(self) -> str:
        """`<sha256> <size>`."""
        return f"{self.sha256} {self.size_bytes}"


_OWN_DIGEST = re.compile(rb',\n *"sha256": "([0-9a-f]{64})"\n\}\n\Z')


def with_own_digest(document: str) -> str:
    """A JSON object of one field or more, with the SHA-256 of its text as the last field, `sha256`."""
    body = document.rstrip().removesuffix("}").rstrip()
    return f'{body},\n "sha256": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n'


def has_own_digest(document: bytes) -> bool | None:
    """Whether a document is as `with_own_digest` made it; None where it doesn't end in a digest."""
    digest = _OWN_DIGEST.search(document[-90:])
    if digest is None:
        return None
    body = document[: len(document) - (digest.end() - digest.start())]
    return hashlib.sha256(body).hexdigest().encode() == digest[1]
