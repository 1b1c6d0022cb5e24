# SPDX-License-Identifier: Apache-2.0
"""Commands in `console` blocks of README and guides, run as written; output shown must be output
seen.

A page with `<!-- needs: fio; numbers vary -->` measures: its output may differ in numbers, marks of
footnotes and significance. A block after `<!-- file: NAME -->` is saved before the commands run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


FILE = re.compile(r"^<!-- file: ([\w.-]+) -->\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
MEASURES = "<!-- needs: fio; numbers vary -->"
VARYING = re.compile(r"q[=<][\d.]+|~|[-+]?\d[\d.:]*(?:[ \u00a0\u202f]\d{3}(?!\d))*")


def commands(page: Path) -> list[tuple[str, list[str]]]:
    """(command, lines of output shown) in order; `...` stands for any number of lines."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall(page.read_text()):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
    return found


def without_numbers(line: str) -> str:
    """A line of measured output: one blank between words, and no numbers, tests and footnotes."""
    return " ".join(VARYING.sub("#", re.sub("[¹²³]", "", line)).split())


def shown_matches(shown: list[str], seen: list[str]) -> bool:
    """Whether the shown lines are what was seen, `...` being a gap."""
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else re.escape(line.rstrip()) + "\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in seen)) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if commands(page) and MEASURES not in page.read_text()],
    ids=lambda page: page.name,
)
def test_documented_commands_do_what_the_page_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "studies").symlink_to(ROOT / "studies")
    for name, text in FILE.findall(page.read_text()):
        (tmp_path / name).write_text(text)
    for command, shown in commands(page):
        seen = output_of(command, tmp_path)
        assert not shown or shown_matches(shown, seen), f"{command}\n{seen}"


@pytest.mark.fio
@pytest.mark.exclusive
@pytest.mark.parametrize(
    "page", [page for page in PAGES if MEASURES in page.read_text()], ids=lambda page: page.name
)
def test_documented_measurements_have_the_form_that_the_page_shows(
    page: Path, tmp_path: Path
) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    for name, text in FILE.findall(page.read_text()):
        (tmp_path / name).write_text(text)
    for command, shown in commands(page):
        seen = output_of(command, tmp_path)
        lines = [without_numbers(line) for line in seen]
        forms = [line if line == "..." else without_numbers(line) for line in shown]
        assert not shown or shown_matches(forms, lines), f"{command}\n{seen}"


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("    606.0¹  303.7¹  -49.9 %  [-72.0, +10.2]  q=0.029", "# # # % [#, #] #"),
        ("  1577  303.7  +0.1 %  [-7, +9]  ~", "# # # % [#, #] #"),
        ("    966.3  785.9  -18.7 %  [-21.1, -16.2]  q<0.001", "# # # % [#, #] #"),
        ("  1 577  303.7  +0.1 %  [-7, +9]  ~", "# # # % [#, #] #"),
        ("fsync: 12 runs, about 0:17", "fsync: # runs, about #"),
    ],
)
def test_measured_lines_are_compared_by_their_form(line: str, form: str) -> None:
    assert without_numbers(line) == form


def output_of(command: str, directory: Path) -> list[str]:
    """Lines on stdout of a shell command that succeeds."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "page",
    [*PAGES, *(ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"))],
    ids=lambda page: page.name,
)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", FENCE.sub("", page.read_text()))
    missing = [
        f"{target}#{anchor}"
        for target, anchor in targets
        if "://" not in target
        and (
            not (page.parent / target).exists()
            or (anchor and anchor not in anchors(page.parent / target if target else page))
        )
    ]
    assert not missing


@cache
def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, as a forge and `make docs` make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    texts = [re.sub(r"\]\([^)]*\)", "", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-") for text in texts}


def test_the_index_links_every_page() -> None:
    index = ROOT / "docs/README.md"
    targets = re.findall(r"\]\(([^)#]+)\)", index.read_text())
    linked = {(index.parent / target).resolve() for target in targets}
    assert {page.resolve() for page in PAGES} - linked == {ROOT / "README.md", index}


def test_every_registered_format_gate_and_metric_word_is_documented() -> None:
    from iolab.base import registry

    page = (ROOT / "docs/method/verdicts.md").read_text()
    missing = [name for name in registry.names("gate") if f"| {name} |" not in page]
    assert not missing
