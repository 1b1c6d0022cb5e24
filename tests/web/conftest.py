"""Debian's Chromium, headless and without a network, for pages built from this tree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.errors import IolabError
from iolab.report.html import bundle_file

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A started browser; the tests are left out with a reason where it, or what it is to show, is absent."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM} (apt-get install chromium)")
    try:
        for bundle in ("report.js", "heatmap.js", "live.js"):
            bundle_file(bundle)
    except IolabError as error:
        pytest.skip(f"the pages have not been built: {error.hint}")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), headless=True, args=ARGUMENTS)
        yield started
        started.close()
