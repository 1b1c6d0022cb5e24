# SPDX-License-Identifier: Apache-2.0
"""The prose check finds private words and long sentences with their places, and its limits only
fall."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
import prose
from prose import LONG, Problem

LENGTHY = " ".join(["word"] * 31)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("A number stands beside it.\n", [("beside", 1), ("stands?", 1)]),
        ("`beside` and [x](gone.md)\n```\ntold\n```\nA file is gone.", [("gone", 5)]),
        (f"Short.\n\n{LENGTHY}.", [(LONG, 3)]),
        (f"{LENGTHY[:-5]}.", []),
        (f"{LENGTHY[:70]}. And {LENGTHY[:70]}.", []),
        ("| a told | b |\n", [("told", 1)]),
        ("Withstands, goneness, untold.", []),
    ],
)
def test_markdown(text: str, problems: list[tuple[str, int]]) -> None:
    found = [(problem.word, problem.line) for problem in prose.of_markdown(text, "docs/a.md")]
    assert sorted(found) == problems


def test_python_strings_and_no_names() -> None:
    text = '''"""A module.

It tells what it does.
"""
told = gone()
say(f"{told} is gone", "whose")
'''
    found = [(problem.word, problem.line) for problem in prose.of_python(text, "a.py")]
    assert sorted(found) == [("gone", 6), ("tells", 3)]


def test_text_of_pages_and_no_code() -> None:
    code = "if (a > b) { one; } else if (c < d) {\n" * 9
    text = f'{code}<p>It is gone now</p>\nlabel("who is told")'
    found = [(problem.word, problem.line) for problem in prose.of_typescript(text, "web/src/a.tsx")]
    assert sorted(found) == [("gone", 10), ("told", 11)]


@pytest.mark.parametrize(
    ("path", "area"),
    [
        ("README.md", "."),
        ("docs/README.md", "docs"),
        ("docs/guides/live.md", "docs/guides"),
        ("python/iolab/api.py", "python/iolab"),
        ("python/iolab/output/server/http/access.py", "python/iolab/output"),
        ("web/src/lib/a/b.ts", "web/src"),
    ],
)
def test_areas(path: str, area: str) -> None:
    assert prose.area_of(path) == area


def test_a_count_may_fall_and_not_grow() -> None:
    limits = {"docs": {"private words": 2, "long sentences": 1}, "web/src": {"private words": 1}}
    problems = [Problem("told", "docs/a.md", line) for line in (1, 2, 3)]
    counts = prose.count_areas([*problems, Problem(LONG, "README.md", 1)])
    assert prose.compare(limits, counts) == [
        (".", "long sentences", 1, 0),
        ("docs", "private words", 3, 2),
    ]
    assert prose.lower(limits, counts) == {"docs": {"private words": 2}}


def test_growth_fails_with_place_and_replacement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for directory in ("docs", "scripts"):
        (tmp_path / directory).mkdir()
    (tmp_path / "docs/a.md").write_text("It is gone.\n")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["prose.py", "--renew"])
    assert prose.main() == 0
    assert json.loads((tmp_path / prose.LIMITS).read_text()) == {"docs": {"private words": 1}}
    monkeypatch.setattr(sys, "argv", ["prose.py"])
    assert prose.main() == 0
    (tmp_path / "docs/a.md").write_text("It is gone.\n\nIt is told.\n")
    capsys.readouterr()
    assert prose.main() == 1
    assert "docs/a.md:3: 'told' -> reported, named" in capsys.readouterr().out
