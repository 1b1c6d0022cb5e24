# SPDX-License-Identifier: Apache-2.0
"""The hooks of the documentation's site: navigation from the index, and links out of docs/."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
import docs_site

INDEX = """# Documentation

Text with a [link](guides/live.md).

## Guides

- [Live](guides/live.md): in a browser
- Text without a page

### Studies

- [Files](reference/study.md)

## Project

- [Changes](../CHANGELOG.md)
"""


def test_the_index_is_the_navigation() -> None:
    assert docs_site.navigation(INDEX) == [
        {"Home": "README.md"},
        {"Guides": [{"Live": "guides/live.md"}, {"Studies": [{"Files": "reference/study.md"}]}]},
        {"Project": [{"Changes": "CHANGELOG.md"}]},
    ]


@pytest.mark.parametrize("line", ["- [Live](guides/live.md)", "### Studies"])
def test_a_page_before_the_first_section_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="precedes the first heading"):
        docs_site.navigation(f"# Documentation\n{line}\n")


@pytest.mark.parametrize(
    ("page", "link", "rewritten"),
    [
        ("guides/live.md", "keeping.md", "keeping.md"),
        ("guides/live.md", "../reference/api.md#alerts", "../reference/api.md#alerts"),
        ("guides/live.md", "../../CHANGELOG.md", "../CHANGELOG.md"),
        ("guides/live.md", "../../studies/a.toml", "../studies/a.toml"),
        ("guides/live.md", "#alerts", "#alerts"),
        ("guides/live.md", "https://example.org/docs/a.md", "https://example.org/docs/a.md"),
        ("README.md", "../ARCHITECTURE.md", "ARCHITECTURE.md"),
        ("ARCHITECTURE.md", "docs/reference/api.md", "reference/api.md"),
        ("CHANGELOG.md", "docs/README.md", "README.md"),
    ],
)
def test_links_of_a_page_in_the_site(page: str, link: str, rewritten: str) -> None:
    text = f"See [this]({link}).\n\n```md\n[code]({link})\n```\n\n![picture]({link})\n"
    assert docs_site.rewrite_links(text, page) == text.replace(
        f"[this]({link})", f"[this]({rewritten})"
    ).replace(f"picture]({link})", f"picture]({rewritten})")


def test_files_outside_the_documentation_become_part_of_the_site() -> None:
    text = "[a](../../schemas/api.json) [b](live.md) [c](../../../x.md) [d](https://example.org)"
    assert docs_site.outside_files(text, "guides/keeping.md") == {"schemas/api.json"}
    assert docs_site.outside_files("[a](../ARCHITECTURE.md#layers)", "README.md") == {
        "ARCHITECTURE.md"
    }


def test_options_in_code_are_kept_whole() -> None:
    html = "<p>a-b <code>run --only A=1 b</code></p>"
    assert docs_site.on_page_content(html, None, None, None) == (
        '<p>a-b <code>run <span class="word">--only</span> A=1 b</code></p>'
    )


def test_the_site_fetches_nothing(root: Path) -> None:
    assert "font: false" in (root / "mkdocs.yml").read_text("utf-8")
    for path in [root / "mkdocs.yml", *docs_site.ASSETS.iterdir()]:
        assert not re.search(r"https?://", path.read_text("utf-8")), path
