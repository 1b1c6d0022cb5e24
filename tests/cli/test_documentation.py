# SPDX-License-Identifier: Apache-2.0
"""Commands in `console` blocks of README and guides, run as written; output shown must be output
seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


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


def shown_matches(shown: list[str], seen: list[str]) -> bool:
    """Whether the shown lines are what was seen, `...` being a gap."""
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else re.escape(line.rstrip()) + "\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in seen)) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page)], ids=lambda page: page.name
)
def test_documented_commands_do_what_the_page_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "studies").symlink_to(ROOT / "studies")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command, shown in commands(page):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        if shown:
            assert shown_matches(shown, done.stdout.splitlines()), (
                f"{page.name}: {command}\n{done.stdout}"
            )


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
    from iolab import registry

    page = (ROOT / "docs/method/verdicts.md").read_text()
    missing = [name for name in registry.names("gate") if f"| {name} |" not in page]
    assert not missing
