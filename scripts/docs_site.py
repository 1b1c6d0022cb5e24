# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs: the pages of docs/ as a site, unchanged as they are read on a forge.

The index, docs/README.md, is the only list of pages: its sections become the navigation. Pages and
files outside docs/ that a page links to become a part of the site, with the address that they have
in the repository.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ASSETS = ROOT / "scripts/site"
"""Scripts and styles of the site, copied to assets/."""
INDEX = "README.md"
_HEADING = re.compile(r"^(##|###) (.+)$")
_ENTRY = re.compile(r"^- \[([^]]+)\]\(([^)#\s]+)\)")
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
_CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
_OPTION = re.compile(r"[^\s|]*-[^\s|]{0,24}")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """Take the navigation from the index."""
    config["nav"] = navigation((Path(config["docs_dir"]) / INDEX).read_text("utf-8"))
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the site's own scripts and styles, and the files outside docs/ that pages link to."""
    from mkdocs.structure.files import File

    additions = {f"assets/{path.name}": path for path in sorted(ASSETS.iterdir())}
    for page in files.documentation_pages():
        for path in outside_files(page.content_string, page.src_uri):
            additions[path] = ROOT / path
    for address, source in sorted(additions.items()):
        if source.is_file():
            files.append(File.generated(config, address, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links at the pages and files of the site. The index has no navigation at its side."""
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]
    return rewrite_links(markdown, page.file.src_uri)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Keep options in code whole: a browser may break them after each hyphen."""
    return _CODE.sub(lambda code: _OPTION.sub(r'<span class="word">\g<0></span>', code[0]), html)


def navigation(index: str) -> list[dict[str, Any]]:
    """The nav of mkdocs from the text of the index.

    A heading of the second level is a tab, one of the third level a section in it, and an item that
    begins with a link a page. Other lines are left out.

    Raises:
        ValueError: a page or section precedes the first heading of the second level.
    """
    nav: list[dict[str, Any]] = [{"Home": INDEX}]
    tab: list[dict[str, Any]] | None = None
    section: list[dict[str, Any]] | None = None
    for line in index.splitlines():
        heading, entry = _HEADING.match(line), _ENTRY.match(line)
        if heading and heading[1] == "##":
            tab = section = []
            nav.append({heading[2]: tab})
        elif heading or entry:
            if tab is None or section is None:
                raise ValueError(f"{INDEX}: '{line}' precedes the first heading of level 2")
            if heading:
                section = []
                tab.append({heading[2]: section})
            elif entry:
                section.append({entry[1]: site_path(entry[2], INDEX)})
    return nav


def site_path(target: str, page: str) -> str:
    """Path in the site of what a page of the site links to as `target`.

    Files of docs/ have the path that they have there, all others the one in the repository.
    """
    directory = posixpath.dirname(repository_path(page))
    return posixpath.normpath(posixpath.join(directory, target)).removeprefix("docs/")


def repository_path(page: str) -> str:
    """Path in the repository of a page of the site: only the index is in docs/ itself."""
    return page if "/" not in page and page != INDEX else f"docs/{page}"


def rewrite_links(markdown: str, page: str) -> str:
    """The text of a page with links relative to its place in the site; code blocks are unchanged."""

    def rewrite(match: re.Match[str]) -> str:
        path = posixpath.relpath(site_path(match[1], page), posixpath.dirname(page) or ".")
        return path + (match[2] or "")

    begin, parts = 0, []
    for fence in _FENCE.finditer(markdown):
        parts += [_LINK.sub(rewrite, markdown[begin : fence.start()]), fence[0]]
        begin = fence.end()
    return "".join([*parts, _LINK.sub(rewrite, markdown[begin:])])


def outside_files(markdown: str, page: str) -> set[str]:
    """Paths in the repository of the files outside docs/ to which a page of docs/ links."""
    directory = posixpath.dirname(repository_path(page))
    targets = [match[1] for match in _LINK.finditer(_FENCE.sub("", markdown))]
    paths = {posixpath.normpath(posixpath.join(directory, target)) for target in targets}
    return {path for path in paths if not path.startswith(("docs/", "..")) and path != "docs"}
