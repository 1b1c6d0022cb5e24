# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium, headless and without a network, for pages built from this tree; and a
worksheet in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import IolabError
from iolab.output.report.page.html import bundle_file
from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.serve import Listener
from support.browser import PATIENCE
from support.service import recorded, serving
from support.worksheet import visited

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A started browser; the tests are left out with a reason where it, or what it is to show, is
    absent."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM} (apt-get install chromium)")
    try:
        for bundle in ("report.js", "heatmap.js", "live.js", "start.js", "fleet.js"):
            bundle_file(bundle)
    except IolabError as error:
        pytest.skip(f"the pages have not been built: {error.hint}")
    sync_api.expect.set_options(timeout=PATIENCE)
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=str(CHROMIUM), headless=True, args=ARGUMENTS
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def listener(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    """A service of one recording of 90 seconds, with markup for a name."""
    home = tmp_path_factory.mktemp("worksheet")
    with (
        recorded(home / "<b>rec", seconds=90),
        serving(state_in(Store([home / "<b>rec"]), home / "data", home / "alerts.jsonl")) as found,
    ):
        yield found


@pytest.fixture
def open_page(browser: Any, listener: Listener) -> Iterator[Any]:
    """Opens the worksheet at a part of its address; all pages are looked after when the test is
    over."""
    with ExitStack() as stack:
        yield lambda at="", **options: stack.enter_context(
            visited(browser, f"{listener.url}{at}", **options)
        )
