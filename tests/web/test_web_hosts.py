# SPDX-License-Identifier: Apache-2.0
"""The worksheet of all hosts of a folder in a browser: hosts as a breakdown, and the way to the worksheet of
one host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.serve import Listener
from support.archives import record
from support.browser import violations
from support.service import serving
from support.worksheet import visited

pytestmark = pytest.mark.browser
ALL = "fleet: all hosts"
HOSTS = ("<b>db1", "db2", "web")


@pytest.fixture(scope="module")
def folder_listener(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    """A service of a folder of recordings of three hosts."""
    home = tmp_path_factory.mktemp("hosts")
    for seed, host in enumerate(HOSTS):
        record(home / "fleet" / str(seed), segments=2 + seed, host=host, seed=seed)
    with serving(
        state_in(Store([home / "fleet"]), home / "data", home / "alerts.jsonl")
    ) as listener:
        yield listener


def test_hosts_are_told_apart_and_lead_to_their_worksheets(
    browser: Any, folder_listener: Listener
) -> None:
    with visited(browser, folder_listener.url, width=1440, height=900) as page:
        page.get_by_role("link", name="Worksheet of all hosts").click()
        page.wait_for_url("**/worksheet#recording=*all*hosts*")
        page.locator("#recording option").first.wait_for(state="attached")
        assert page.locator("#recording option").all_inner_texts()[0] == ALL
        graphs = [("graph", "io.ops[host]"), ("graph", "io.ops[latency]")]
        words = urlencode([("recording", ALL), *graphs])
        page.evaluate("words => { location.hash = words; }", words)
        stack = page.locator("section[data-statistic='io.ops[host]']")
        stack.wait_for()
        stack.get_by_text("db2", exact=True).first.click(button="right")
        menu = page.locator(".graph-menu")
        menu.wait_for()
        assert not violations(page)
        menu.get_by_role("menuitem", name="worksheet of this host").click()
        page.wait_for_url("**/worksheet#recording=1&*")
        page.wait_for_selector("section[data-statistic='io.ops']")
        assert page.locator("section[data-statistic='io.ops[host]']").count() == 0
