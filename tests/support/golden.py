# SPDX-License-Identifier: Apache-2.0
"""Full texts in tests/golden/NAME.txt. `make golden` renews them; the diff in git shows what changed.

A test that is not parametrized owns its file. The cases of a parametrized test share one file, with
a section per case.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

FILES = Path(__file__).parent.parent / "golden"
RENEW = "IOLAB_GOLDEN"
"""Environment variable: `renew` writes the files instead of comparing."""
_TEMPORARY = re.compile(r"[^\s'\"=(]*/pytest-of-[^/]+/pytest-\d+(?:/popen-gw\d+)?/[^/\s'\":,;)]+")
_HEADER = "=== "


class Golden:
    """Compares texts of one test with its golden files."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    def __call__(self, name: str, text: str) -> None:
        """Compare `text` with tests/golden/`name`.txt, or with this case's section of it.

        The directory of `tmp_path` is written as TMP. Other times, sizes and versions that change
        are the caller's to replace.
        """
        text = self._normal(text).rstrip("\n") + "\n"
        path = FILES / f"{name}.txt"
        case = getattr(self._request.node, "callspec", None)
        sections = _read(path)
        key = case.id if case is not None else ""
        if os.environ.get(RENEW) == "renew":
            sections[key] = text
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_written(sections), "utf-8")
            return
        where = path.relative_to(FILES.parent.parent)
        if key not in sections:
            pytest.fail(f"{where} lacks {key or 'its text'}; 'make golden' adds it:\n{text}")
        if sections[key] != text:
            diff = difflib.unified_diff(
                sections[key].splitlines(), text.splitlines(), str(where), "this run", lineterm=""
            )
            pytest.fail("\n".join([*diff, "'make golden' accepts the new text"]))
        cases = _cases(self._request.function)
        if len(sections) != cases:
            pytest.fail(
                f"{where} has {len(sections)} sections for {cases} cases; run 'make golden'"
            )

    def _normal(self, text: str) -> str:
        if "tmp_path" in self._request.fixturenames:
            text = text.replace(str(self._request.getfixturevalue("tmp_path")), "TMP")
        return _TEMPORARY.sub("TMP", text)


def validation_text(error: ValidationError) -> str:
    """A line per error: its place and message, without pydantic's version and links."""
    return "\n".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())


def _cases(function: object) -> int:
    """How many cases the marks `parametrize` of a test make; 1 if it has none."""
    marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
    return math.prod(len(list(mark.args[1])) for mark in marks)


def _read(path: Path) -> dict[str, str]:
    """Case to text; a file without sections has one case, ""."""
    if not path.exists():
        return {}
    text = path.read_text("utf-8")
    if not text.startswith(_HEADER):
        return {"": text}
    sections: dict[str, str] = {}
    for line in text.splitlines(keepends=True):
        if line.startswith(_HEADER):
            key = line.removeprefix(_HEADER).rstrip("\n")
            sections[key] = ""
        else:
            sections[key] += line
    return sections


def _written(sections: dict[str, str]) -> str:
    if set(sections) == {""}:
        return sections[""]
    return "".join(f"{_HEADER}{key}\n{text}" for key, text in sections.items())
